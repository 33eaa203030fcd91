// Chapter 5: a position added to a word, at a right angle to it. The angle between the sum and the word depends on
// their lengths, and the lengths depend on the width and on how large the word's numbers are.

const MEASURED = [8, 32, 128, 512, 2048]; // the widths of the plain figure
/** @type {[name: string, down: number, color: string][]} */
const LINES = [["words of length d", 18, "vermillion"], ["length √d", 18, "blue"], ["length 1", -10, "orange"]];
const WIDTHS = Array.from({ length: 9 }, (_, at) => 2 ** (at + 3));

function lengths(d, sigma, factor) {
  const size = sigma === "root" ? d ** -0.5 : Number(sigma);
  const [word, position] = [(factor ? Math.sqrt(d) : 1) * size * Math.sqrt(d), Math.sqrt(d / 2)];
  return { word, position, sum: Math.hypot(word, position) };
}

/** @type {import("./element.js").Figure<{ d: number, sigma: string, factor: boolean }>} */
export const figure = {
  label: "A word and a position as two arrows, their sum, and the cosine between the sum and the word",
  needs: ["{for}"],
  controls: {
    d: { label: "Width d", values: WIDTHS, value: 512 },
    sigma: { label: "σ of the word's numbers", options: { 1: "1", 0.3: "0.3", 0.1: "0.1", root: "1/√d" }, value: "1" },
    factor: { label: "Multiply the word by √d", value: false },
  },
  draw(stage, { d, sigma, factor }, own) {
    const { width } = stage;
    const below = width < 600;
    const { word, position, sum } = lengths(d, sigma, factor);
    const [x, y] = [word / sum, position / sum];
    const angle = Math.atan2(y, x);

    // As long as they are beside each other; the sum always has one length.
    const unit = Math.min(width / 2.15, 160);
    const left = below ? (width - 2.15 * unit) / 2 : 0;
    const box = { left, top: 0, width: 2.15 * unit, height: 1.3 * unit + 12, right: 0 };
    const plane = stage.plot(box, { x: [-0.3, 1.85], y: [-0.2, 1.1] });
    plane.arrow(x, 0, "green", false);
    plane.arrow(x, y, "purple", false, [x, 0]);
    plane.arrow(x, y, "", false);
    plane.text(x / 2, 0, `word: ${word.toFixed(1)}`, "green words", x < 0.4 ? "start" : "middle", [x < 0.4 ? -20 : 0, 20]);
    plane.text(x, y / 2, `position: ${position.toFixed(1)}`, "purple words", "start", [10, y < 0.2 ? -6 : 4]);
    plane.text(x / 2, y / 2, "sum", "", "end", [-8, -8]);
    const arc = Array.from({ length: 20 }, (_, at) => (angle * at) / 19);
    plane.line(arc.map((part) => 0.3 * Math.cos(part)), arc.map((part) => 0.3 * Math.sin(part)), "", false);

    const place = below ? { left: 0, top: 1.3 * unit + 20, width } : { left: 2.2 * unit, top: 0, width: width - 2.2 * unit };
    const chart = stage.plot({ ...place, height: 240, right: 16 }, {
      x: [7, 2300], y: [0, 1.05], log: "x", xTicks: MEASURED, yTicks: [0, 0.5, 1], xLabel: "width d", yLabel: "cosine",
      title: "dots: measured; dashes: computed",
    });
    const { measured } = own.data["{for}"];
    measured.forEach((cosines, at) => {
      const [name, down, color] = LINES[at];
      chart.line(MEASURED, cosines, color);
      chart.dots(MEASURED, cosines, color, 3, false);
      chart.text(2048, cosines.at(-1), name, `${color} words`, "end", [0, down]);
    });
    const right = WIDTHS.map((other) => lengths(other, sigma, factor));
    chart.line(WIDTHS, right.map((all) => all.word / all.sum), "dashed", false);
    chart.dots([d], [x], "", 6, false);

    chart.handle("d", d, x, WIDTHS);
    const line = { 1: factor ? 0 : 1, root: factor ? 1 : 2 }[sigma];
    const found = measured[line]?.[MEASURED.indexOf(d)];
    const share = (100 * y * y).toPrecision(3);
    return `The word has length ${word.toFixed(1)}, and the position ${position.toFixed(1)}: `
      + `${share} % of the sum's squared length comes from the position. `
      + `If the two are at a right angle, their sum points ${Math.round((angle * 180) / Math.PI)}° away from the word, so the cosine is ${x.toFixed(2)}.`
      + (found === undefined ? "" : ` After LayerNorm, the mean cosine measured over 500 random words is ${found.toFixed(2)}.`);
  },
};
