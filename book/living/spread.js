// Chapter 7: which pairs a text uses. The base spreads a fixed number of pairs over slower and slower frequencies; how far each
// moves within the text depends on the text's length.
import { nearest, range, written } from "./draw.js";
import { frequencies } from "./formulas.js";

const COLORS = { 100: "orange", 10000: "blue", 1000000: "green", 100000000: "vermillion" };
/** @type {[base: number, name: string, x: number, y: number][]} */
const COMPARED = [[100, "10²", 7, 84], [10000, "10⁴", 700, 90], [100000000, "10⁸", 7000, 50]];
const AT_FIRST = 50; // tokens
const ANGLES = [2 * Math.PI, 0.1]; // what may count as use
const LENGTHS = [...new Set(Array.from({ length: 60 }, (_, at) => Math.round(10 ** (0.7 + (4.3 * at) / 59))))];
const steps = (from, to) => Array.from({ length: 3 * (to - from) + 1 }, (_, at) => (
  [1, 2, 5][at % 3] * 10 ** (from + Math.floor(at / 3))
));
const BASES = steps(1, 8);
const used = (omega, length, angle) => omega.filter((frequency) => frequency * (length - 1) > angle * (1 + 1e-12)).length;

/** @type {import("./element.js").Figure<{ length: number, base: number, width: string }>} */
export const figure = {
  label: "The frequencies of a table's pairs, and how many of these pairs a text uses",
  controls: {
    length: { label: "Tokens in the text", values: [5, ...steps(1, 5)], value: AT_FIRST },
    base: { label: "Base", values: BASES, value: 10000 },
    width: { label: "Width", options: { 32: "32 (16 pairs)", 128: "128 (64 pairs)", 512: "512 (256 pairs)" }, value: "128" },
  },
  draw(stage, { length, base, width: d }) {
    const { width } = stage;
    const omega = frequencies(Number(d), base);
    const pairs = omega.length;
    const [full, moved] = ANGLES.map((angle) => used(omega, length, angle));
    const color = COLORS[base] ?? "black";

    const one = stage.plot({ left: 0, top: 0, width, height: 240, right: 24 }, {
      x: [-0.5, pairs - 0.5], y: [1e-8, 1e3], log: "y", xLabel: "pair", yLabel: "radians per token",
      xTicks: [0, pairs / 4, pairs / 2, (3 * pairs) / 4],
      yTicks: [1, [1e-2, "10⁻²"], [1e-4, "10⁻⁴"], [1e-6, "10⁻⁶"], [1e-8, "10⁻⁸"]],
    });
    const edges = [0, full, moved, pairs];
    for (const at of [0, 1, 2]) {
      const [from, to] = [edges[at] - 0.5, edges[at + 1] - 0.5];
      if (at < 2) one.band(from, to, `${color} ${at ? "faint" : ""}`);
      const room = one.x(to) - one.x(from);
      if (room > 24) one.text((from + to) / 2, 100, `${edges[at + 1] - edges[at]}${room > 60 ? " pairs" : ""}`);
    }
    for (const [at, count, name, names] of [[0, full, "a full rotation", ""], [1, moved, "0.1 radians", "dashed"]]) {
      const limit = ANGLES[at] / (length - 1);
      const words = `${name} in ${written(length)} tokens`;
      one.rule({ y: limit }, names);
      // Where no frequency is: above the limit on the right, or below it on the left.
      if (count < pairs / 2) one.text(pairs - 0.5, limit, words, "", "end", [0, -5]);
      else one.text(-0.5, limit, words, "", "start", [8, 16]);
    }
    one.dots(range(pairs), omega, color, pairs > 100 ? 1.5 : 2.5, false);
    // The slowest pair, which the base makes as slow as it is.
    const slowest = (of) => one.y(frequencies(Number(d), of).at(-1));
    stage.handle("base", one.x(pairs - 1), slowest(base), (_, y) => ({ base: nearest(BASES, (of) => Math.abs(slowest(of) - y)) }));

    const all = stage.plot({ left: 0, top: 256, width, height: 220, right: 24 }, {
      x: [4.5, 1e5], y: [0, 104], log: "x", xLabel: "tokens in the text", yLabel: "pairs in use, %",
      xTicks: [10, 1000, 100000], yTicks: [0, 50, 100],
    });
    const others = COMPARED.map(([other]) => other);
    for (const other of others.includes(base) ? others : [...others, base]) {
      const values = frequencies(Number(d), other);
      const [low, high] = ANGLES.map((angle) => LENGTHS.map((tokens) => (100 * used(values, tokens, angle)) / pairs));
      const names = `${COLORS[other] ?? "black"} ${other === base ? "" : "faint"}`;
      all.area(LENGTHS, low, high, names);
      all.line(LENGTHS, low, names);
      all.line(LENGTHS, high, `${names} dashed`);
    }
    for (const [, name, x, y] of COMPARED) all.text(x, y, `base ${name}`, "", "start");
    const shares = [full, moved].map((count) => (100 * count) / pairs);
    all.rule({ x: length });
    all.dots([length, length], shares, color, 5, false);

    all.handle("length", length, shares[0], [5, ...steps(1, 5)]);
    const [fully, partly] = shares.map((share) => `${Math.round(share)} %`);
    const rest = pairs - moved;
    const more = full - used(omega, AT_FIRST, ANGLES[0]);
    const compared = more ? `, ${Math.abs(more)} ${more > 0 ? "more" : "fewer"} than in ${AT_FIRST} tokens` : "";
    return `In ${written(length)} tokens, ${full} of the ${pairs} pairs complete a rotation (${fully}${compared}), `
      + `and ${moved} rotate by more than 0.1 radians (${partly}).` + (rest ? ` The other ${rest} rotate by less.` : "");
  },
};
