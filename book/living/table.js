// Chapter 3: the table of sines and cosines as a heatmap, with the row and the column of one cell shown as waves beside it.
import { clip, written } from "./draw.js";
import { frequencies, sinusoidalTable } from "./formulas.js";

const LINES = 240; // as many rows as can be seen; a longer table shows the means of so many positions each
const KEY = [Array.from({ length: 81 }, (_, at) => at / 40 - 1)];
const rounded = (number) => (number < 100 ? number.toFixed(1) : written(Math.round(number)));
const tens = (from, to) => Array.from({ length: to - from + 1 }, (_, at) => 10 ** (from + at));

// In a shorter or narrower table, the chosen row or column is at most the last one.
const rowOf = ({ row, length }) => Math.min(row, length - 1);
const columnOf = ({ column, width }) => Math.min(column, width - 1);

// The mean of k waves that begin at a is the wave halfway, flatter by a factor that does not depend on a.
function shown(length, width, base, first) {
  const k = Math.ceil(length / LINES);
  const flatter = frequencies(width, base).map((omega) => (k > 1 ? Math.sin(k * omega / 2) / (k * Math.sin(omega / 2)) : 1));
  const halfway = Array.from({ length: length / k }, (_, at) => first + k * at + (k - 1) / 2);
  return sinusoidalTable(halfway, width, base).map((row) => row.map((value, column) => value * flatter[column >> 1]));
}

function cellAt(x, y, { length, width }, { left, right, top, bottom }) {
  const at = (share, count) => Math.min(Math.floor(share * count), count - 1);
  return { row: at((y - top) / (bottom - top), length), column: at((x - left) / (right - left), width) };
}

/** @type {import("./element.js").Figure<{ length: number, width: number, base: number, first: number, row: number, column: number }>} */
export const figure = {
  label: "The sinusoidal table as a heatmap, with one of its rows and one of its columns as waves",
  controls: {
    length: { label: "Positions", values: [20, 60, 120, 240, 480, 1200, 2400, 4800, 12000, 24000, 48000], value: 60 },
    width: { label: "Width d", values: [8, 16, 32, 64, 128, 256], value: 64, more: true },
    base: { label: "Base", values: tens(1, 7), value: 10000, more: true },
    first: { label: "First position", values: [0, ...tens(2, 7)], value: 0, more: true },
    row: { label: "Chosen position", max: ({ length }) => length - 1, value: 12, get: rowOf, show: (row, { first }) => written(first + row) },
    column: { label: "Chosen column", max: ({ width }) => width - 1, value: 8, get: columnOf },
  },
  draw(stage, state, own) {
    const { length, width: d, base, first } = state;
    const [row, column] = [rowOf(state), columnOf(state)];
    const key = [length, d, base, first].join();
    if (own.key !== key) Object.assign(own, { key, rows: shown(length, d, base, first) });
    const omega = frequencies(d, base);
    const k = Math.ceil(length / LINES);

    const narrow = stage.width < 480;
    const left = Math.max(0, 7 * written(first + length).length - 36);
    const side = narrow ? 64 : 130;
    const tall = narrow ? 260 : 340;
    const box = { left, top: 22, width: stage.width - side - left, height: tall };
    const ends = [length - 0.5, -0.5];
    const across = { x: [-0.5, d - 0.5], yLabel: "position" };
    const heat = stage.plot(box, { ...across, y: ends, yTicks: [0, 1, 2].map((third) => [third * length / 3, written(first + Math.round(third * length / 3))]) });
    heat.heat(own.rows, [-1, 1]);
    own.heat = heat;

    const wave = column % 2 ? "dashed" : "";
    const down = stage.plot({ left: stage.width - side, top: 22, width: side, height: tall, right: 4 }, { x: [-1.1, 1.1], y: ends });
    stage.heats.push({ rows: KEY, low: -1, high: 1, left: down.x(-1), top: 16, width: down.x(1) - down.x(-1), height: 8 });
    for (const value of [-1, 0, 1]) stage.text(down.x(value), 11, written(value), "number");
    down.rule({ x: 0 }, "faint");
    down.line(own.rows.map((values) => values[column]), own.rows.map((_, at) => k * at + (k - 1) / 2), wave, false);

    const values = sinusoidalTable([first + row], d, base)[0];
    const below = { left, top: 22 + tall, width: stage.width - side - left, height: 124 };
    const along = stage.plot(below, { ...across, y: [-1.2, 1.2], xTicks: [0, d / 4, d / 2, (3 * d) / 4], yTicks: [-1, 0, 1], xLabel: "column", yLabel: "row" });
    along.rule({ y: 0 }, "faint");
    const [sines, cosines] = [0, 1].map((odd) => values.filter((_, at) => at % 2 === odd));
    along.line(sines.map((_, pair) => 2 * pair), sines, "", false);
    along.line(cosines.map((_, pair) => 2 * pair + 1), cosines, "dashed", false);
    const [low, high] = [along.y(sines.at(-1)), along.y(cosines.at(-1))];
    const apart = Math.max(0, 15 - Math.abs(high - low)) / 2 * (high > low ? 1 : -1);
    stage.text(along.right + 6, low - apart + 4, narrow ? "sines" : "sines (solid)", "", "start");
    stage.text(along.right + 6, high + apart + 4, narrow ? "cosines" : "cosines (dashed)", "", "start");

    // Where the row and the column cross: black on white is seen on every colour.
    const [x, y] = [heat.x(column), heat.y(row)];
    stage.add(`<path d="M${heat.left} ${y}H${heat.right}M${x} ${heat.top}V${heat.bottom}" stroke="black" opacity="0.5"/>`
      + `<rect x="${x - 6}" y="${y - 6}" width="12" height="12" fill="none" stroke="white" stroke-width="4"/>`
      + `<rect x="${x - 6}" y="${y - 6}" width="12" height="12" fill="none" stroke="black" stroke-width="2"/>`);
    stage.handle("cell", x, y, (toX, toY) => cellAt(clip(toX, heat.left, heat.right), clip(toY, heat.top, heat.bottom), state, heat));
    down.dots([own.rows[Math.floor(row / k)][column]], [row], "vermillion", 5, false);
    along.dots([column], [values[column]], "vermillion", 5, false);

    const speed = omega[column >> 1];
    const digits = Math.max(3, 2 + Math.ceil(Math.log10(first + row + 1))); // enough for the product to give this result
    const cell = `${column % 2 ? "cos" : "sin"}(${written(first + row)} · ${Number(speed.toPrecision(digits))}) = ${written(values[column], 2)}`;
    const turns = [...omega].map((fast) => (2 * Math.PI) / fast);
    const within = turns.filter((turn) => turn <= length).length;
    const means = k > 1 ? ` Each line of the picture is the mean of ${k} positions, which makes fast waves paler.` : "";
    return `At position ${written(first + row)}, column ${column} is ${cell}. Its wave repeats every ${rounded(turns[column >> 1])} positions. `
      + `Of the ${turns.length} pairs of columns, ${within} make${within === 1 ? "s" : ""} a full rotation within these ${written(length)} positions; the slowest pair takes ${rounded(turns.at(-1))} positions.${means}`;
  },
  point(x, y, state, { heat }) {
    return x < heat.left || x > heat.right || y < heat.top || y > heat.bottom ? undefined : cellAt(x, y, state, heat);
  },
};
