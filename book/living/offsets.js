// Chapter 6: a query and a key moved along a text together. All angles between their pairs stay the same, and so does the score,
// unless random projections come between them.
import { counted, mean, range, shortest, written } from "./draw.js";
import { frequencies, sinusoidalTable } from "./formulas.js";

const LENGTH = 512;
const WIDTH = 16;
const CLOCKS = 4; // the pairs shown
const COLORS = { none: "blue", first: "black", second: "vermillion" };
const TABLE = sinusoidalTable(range(LENGTH), WIDTH);
const CHANNELS = range(WIDTH);
const IDENTITY = CHANNELS.map((row) => CHANNELS.map((column) => Number(row === column)));
const dot = (a, b) => a.reduce((sum, part, at) => sum + part * b[at], 0);

/** The standard deviation. */
function spreadOf(values) {
  const middle = mean(values);
  return Math.sqrt(values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (values.length - 1));
}

/** What p_m M p_n is in standard deviations from the mean of all scores, for rows m and n of the table. */
function standardized(M) {
  const queries = TABLE.map((p) => CHANNELS.map((column) => p.reduce((sum, part, row) => sum + part * M[row][column], 0)));
  const scores = queries.flatMap((query) => TABLE.map((key) => dot(query, key)));
  const [middle, spread] = [mean(scores), spreadOf(scores)];
  return (m, n) => (dot(queries[m], TABLE[n]) - middle) / spread;
}

/** @type {import("./element.js").Figure<{ n: number, offset: number, M: string }>} */
export const figure = {
  label: "A query and a key, moved along a text together, and their score",
  needs: ["{for}"],
  controls: {
    n: { label: "Move both", min: 0, max: 480, value: 100, show: (value) => `key at ${value}` },
    offset: { label: "Query ahead by", min: 0, max: 30, value: 3, show: (value) => counted(value, "token") },
    M: {
      label: "Projections",
      options: { none: "none", first: "random", second: "random, second seed" },
      value: "none",
    },
    play: { label: "Play", plays: "n", perSecond: 8 },
  },
  enters: { plays: "n", from: () => 60, to: 100, perSecond: 8 },
  draw(stage, { n, offset, M }, own) {
    const { width } = stage;
    const m = n + offset;
    const { first, second } = own.data["{for}"];
    own.scores ??= Object.fromEntries(Object.entries({ none: IDENTITY, first, second }).map(([name, matrix]) => (
      [name, standardized(matrix)]
    )));

    const side = Math.min(width / CLOCKS, 140);
    const apart = (width - CLOCKS * side) / (CLOCKS - 1);
    const circle = Array.from({ length: 61 }, (_, at) => (Math.PI * at) / 30);
    frequencies(WIDTH).slice(0, CLOCKS).forEach((speed, pair) => {
      const box = { left: pair * (side + apart), top: 0, width: side, height: side + 12, right: 0 };
      const plane = stage.plot(box, { x: [-1.5, 1.5], y: [-1.5, 1.5] });
      const along = (angles, radius, names) => {
        const [across, up] = [Math.sin, Math.cos].map((wave) => angles.map((angle) => radius * wave(angle)));
        plane.line(across, up, names, false);
      };
      along(circle, 1, "faint");
      const turn = shortest(speed * offset);
      along(circle.map((part) => speed * n + (turn * part) / (2 * Math.PI)), 0.4);
      const aside = Math.abs(turn) < 0.5 ? 0.2 * (Math.sign(turn) || 1) : 0; // of the letters
      /** @type {[angle: number, name: string, color: string, by: number][]} */
      const hands = [[speed * n, "n", "orange", -aside], [speed * m, "m", "green", aside]];
      for (const [angle, name, color, by] of hands) {
        plane.arrow(Math.sin(angle), Math.cos(angle), color, false);
        plane.text(1.27 * Math.sin(angle + by), 1.27 * Math.cos(angle + by), name, `${color} words`, "middle", [0, 4]);
      }
      const name = side < 75 ? "" : `pair ${pair}: `;
      stage.text(box.left + side / 2, side + 20, `${name}${Math.round((Math.abs(turn) * 180) / Math.PI)}°`, "number");
    });

    stage.text(width / 2, side + 38, "pairs 0 to 3 of 8", "number");

    const chart = stage.plot({ left: 0, top: side + 48, width, height: 220, right: 12 }, {
      x: [0, LENGTH - 1], y: [-4.2, 4.2], xLabel: "query's position m", yLabel: "score of m and n",
      xTicks: [0, 200, 400], yTicks: [-4, -2, 0, 2, 4],
    });
    const positions = Array.from({ length: LENGTH - offset }, (_, at) => at + offset);
    const scores = (name) => positions.map((at) => own.scores[name](at, at - offset));
    for (const name of [...own.before ? [] : Object.keys(COLORS).filter((other) => other !== M), M]) {
      chart.line(positions, scores(name), `${COLORS[name]} ${name === M ? "" : "faint"} ${name === "none" ? "" : "thin"}`);
    }
    const here = own.scores[M](m, n);
    chart.rule({ x: m }, "faint");
    chart.dots([m], [here], COLORS[M], 6, false);
    chart.handle("n", m, here, positions.filter((at) => at - offset <= 480), (at) => ({ n: at - offset }));
    chart.text(LENGTH - 1, 3.5, "no projections: always the same", "blue words", "end");
    if (!own.before) chart.text(0, -3.9, "random projections: it varies", M === "second" ? "vermillion words" : "", "start", [6, 0]);

    const line = scores(M);
    const ratio = spreadOf(line);

    const angles = `At positions ${m} and ${n}, the angle of every pair is the same as at any two positions with offset ${offset}.`;
    const from = `${Math.abs(here).toFixed(2)} standard deviations ${here < 0 ? "below" : "above"} the mean of all scores`;
    if (M === "none") return `${angles} The score is the same, too: ${from}.`;
    const [low, high] = [Math.min(...line), Math.max(...line)].map((score) => written(score, 2));
    return `${angles} The score is not the same: here it is ${from}, and along the text it ranges from ${low} to ${high}. `
      + `Its standard deviation at this offset is ${ratio.toFixed(2)} times that of all scores.`;
  },
};
