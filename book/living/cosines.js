// Chapter 8: how similar the rows of a trained table are, measured by the cosine, beside rows of sines and cosines.
import { unpackHalf } from "./decoder.js";
import { range, written } from "./draw.js";
import { sinusoidalTable } from "./formulas.js";

const TRAINED = 64; // rows that training reached
const WIDTH = 64; // numbers in a row

function cosines(rows) {
  const units = rows.map((row) => row.map((value) => value / Math.hypot(...row)));
  return units.map((one) => units.map((other) => one.reduce((sum, value, c) => sum + value * other[c], 0)));
}

const lastRow = ({ beyond }) => (beyond ? 2 : 1) * TRAINED - 1;
const rowOf = (state) => Math.min(state.row, lastRow(state));

/** @type {import("./element.js").Figure<{ row: number, beyond: boolean }>} */
export const figure = {
  label: "Cosines between the rows of a learned table and between those of the sinusoidal one",
  needs: ["learned-rows"],
  controls: {
    row: { label: "Row", min: 0, max: lastRow, value: 16, get: rowOf },
    beyond: { label: "Also show rows that training never reached", value: false },
  },
  draw(stage, state, own) {
    const { beyond } = state;
    const row = rowOf(state);
    if (!own.cosines) {
      const numbers = unpackHalf(own.data["learned-rows"]);
      const rows = Array.from({ length: 2 * TRAINED }, (_, m) => Float64Array.from(numbers.slice(m * WIDTH, (m + 1) * WIDTH)));
      own.cosines = [cosines(rows), cosines(sinusoidalTable(range(2 * TRAINED), WIDTH))];
    }
    const count = lastRow(state) + 1;
    const places = range(count);
    const ticks = [0, 20, 40, 60, ...(beyond ? [80, 100, 120] : [])];
    const left = 54;
    const side = (stage.width - left - 24) / 2;
    const shown = own.cosines.map((table, at) => {
      const heat = stage.plot(
        { left: at ? left + side + 16 : 0, top: 0, width: side + (at ? 0 : left), height: side + 66, right: 0 },
        {
          x: [-0.5, count - 0.5], y: [count - 0.5, -0.5], title: ["learned", "sinusoidal"][at],
          xTicks: stage.width < 480 && beyond ? [0, 60, 120] : ticks, xLabel: "position", yTicks: at ? [] : ticks, yLabel: at ? "" : "position",
        },
      );
      heat.heat(places.map((m) => places.map((n) => table[m][n])), [-1, 1]);
      heat.rule({ y: row });
      return places.map((n) => table[row][n]);
    });

    const [learned, waves] = shown;
    const chart = stage.plot(
      { left: 0, top: side + 72, width: stage.width, height: 220 },
      { x: [0, count - 1], y: [-1, 1.05], xTicks: ticks, yTicks: [-1, 0, 1], xLabel: "position", yLabel: `cosine with row ${row}` },
    );
    chart.rule({ y: 0 }, "faint");
    if (beyond) {
      chart.band(TRAINED - 0.5, count - 1);
      chart.text((3 * TRAINED) / 2, 1.05, "never trained", "", "middle", [0, 12]);
    }
    chart.line(places, waves, "blue", false);
    chart.line(places, learned, "navy dashed", false);
    chart.dots([row], [1], "navy", 5, false);
    chart.handle("row", row, 1, places);
    const apart = places.filter((n) => waves[n] < 0.8).reduce((best, n) => (waves[n] - learned[n] > waves[best] - learned[best] ? n : best));
    const anchor = apart < count / 2 ? "start" : "end";
    chart.text(apart, waves[apart], "sinusoidal", "blue words", anchor, [0, -10]);
    chart.text(apart, learned[apart], "learned", "navy words", anchor, [0, learned[apart] < -0.8 ? -12 : 20]);

    const within = (from, to) => {
      const some = learned.slice(from, to).filter((_, n) => from + n !== row);
      return `between ${written(Math.min(...some), 2)} and ${written(Math.max(...some), 2)}`;
    };
    if (row >= TRAINED) {
      return `Training never reached row ${row}. Its cosines with all other rows lie ${within(0, count)}; with row ${row - 1}, right `
        + `before it, the cosine is ${written(learned[row - 1], 2)}.`;
    }
    const lowest = learned.indexOf(Math.min(...learned.slice(0, TRAINED)));
    const sides = [row - 1, row + 1].filter((n) => n >= 0 && n < TRAINED);
    const nearby = sides.reduce((sum, n) => sum + learned[n], 0) / sides.length;
    const [s, average] = sides.length > 1 ? ["s", " on average"] : ["", ""];
    return `Row ${row} of the learned table and its neighbour${s} have a cosine of ${written(nearby, 2)}${average}. The row least like it `
      + `is row ${lowest}, with a cosine of ${written(learned[lowest], 2)}. In the sinusoidal table, no cosine with row ${row} `
      + `is below ${written(Math.min(...waves.slice(0, TRAINED)), 2)}.`
      + (beyond ? ` The learned row's cosines with rows that were never trained lie ${within(TRAINED, count)}.` : "");
  },
};
