// Chapter 2: the numbers that tokens get in texts of several lengths, when positions are scaled to [0, 1] and when they are counted.
import { listed, range } from "./draw.js";
import { normalized } from "./formulas.js";

const OTHERS = [4, 6, 24, 64]; // tokens in the texts other than the reader's own, which is the third
const rowsOf = ({ length }) => [...OTHERS.slice(0, 2), length, ...OTHERS.slice(2)];
const followsValue = ({ follow }) => follow === "value";
const ROW = 52; // pixels
const VALUES = range(21).map((step) => step / 20);

/** @type {import("./element.js").Figure<{ follow: string, token: number, value: number, length: number }>} */
export const figure = {
  label: "The positions of the tokens in texts of five lengths, one line for each text",
  controls: {
    follow: { label: "Follow", value: "token", options: { token: "a token", value: "a value", counted: "a token (counting)" } },
    token: { label: "Token", min: 1, max: 64, value: 3, when: (state) => !followsValue(state) },
    value: { label: "Value", min: 0, max: 1, step: 0.05, value: 0.4, show: (value) => value.toFixed(2), when: followsValue },
    length: { label: "Tokens in your text", min: 2, max: 81, value: 12 },
  },
  draw(stage, state) {
    const { token } = state;
    const scaled = state.follow !== "counted";
    const rows = rowsOf(state);
    const tables = rows.map((tokens) => (scaled ? normalized(range(tokens), tokens) : range(tokens)));
    const end = scaled ? 1 : Math.max(...rows) - 1;
    const plot = stage.plot({ left: 8, top: 0, width: stage.width - 16, height: ROW * rows.length + 48 }, {
      x: [0, end], y: [rows.length - 0.5, -0.7], xLabel: scaled ? "normalized position" : "position, counted",
      xTicks: scaled ? [0, 0.2, 0.4, 0.6, 0.8, 1] : range(Math.floor(end / 10) + 1).map((ten) => 10 * ten),
    });
    if (followsValue(state)) plot.rule({ x: state.value }, "vermillion dashed");
    if (!scaled) {
      plot.band(0, 1, "blue");
      plot.text(rows[0] - 1, 0, `shaded: ${stage.width < 480 ? "" : "the size of "}a vector’s numbers`, "", "start", [12, 4]);
    }
    if (followsValue(state)) plot.handle("value", state.value, rows.length - 0.5, VALUES);
    else plot.handle("token", tables.at(-1)[token - 1], rows.length - 1, [...tables.at(-1)], (value) => ({ token: tables.at(-1).indexOf(value) + 1 }));
    const found = tables.map((values) => [...values].findIndex((value) => Math.abs(value - state.value) < 1e-9));
    const shown = (value) => (scaled ? value.toFixed(3) : `${value}`);
    tables.forEach((values, row) => {
      plot.dots(values, range(values.length).fill(row), "sky hollow");
      const at = followsValue(state) ? found[row] : token - 1;
      if (at in values) plot.dots([values[at]], [row], "vermillion", 6);
      const before = Math.floor(state.value * (values.length - 1)) + 1;
      const said = followsValue(state)
        ? (at < 0 ? `between tokens ${before} and ${before + 1}` : `token ${at + 1}`)
        : (at in values ? shown(values[at]) : `no token ${token}`);
      plot.text(0, row, `${row === 2 ? "yours: " : ""}${values.length} tokens`, "", "start", [0, -14]);
      plot.text(end, row, said, at in values ? "vermillion words" : "number", "end", [0, -14]);
    });

    if (followsValue(state)) {
      const name = `The value ${state.value.toFixed(2)}`;
      const here = rows.flatMap((tokens, row) => (found[row] < 0 ? [] : [`token ${found[row] + 1} of ${tokens}`]));
      const nowhere = rows.filter((_, row) => found[row] < 0);
      if (!here.length) return `${name} falls between two tokens in all five texts, so no token has it.`;
      const rest = nowhere.length ? `, and no token has it in texts of ${listed([...new Set(nowhere)])} tokens` : "";
      return `${name} is the position of ${listed([...new Set(here)])}${rest}.`;
    }
    if (!scaled) {
      return `Token ${token} has position ${token - 1}, however long the text is, and neighbours are 1 apart. `
        + `But the last of ${end + 1} tokens has position ${end}, while the numbers in a token’s vector are only about 1 in size.`;
    }
    const lengths = rows.filter((tokens) => tokens >= token).sort((a, b) => a - b);
    const [shortest, longest] = [lengths[0], lengths.at(-1)];
    const number = (tokens) => normalized([token - 1], tokens)[0].toFixed(3);
    const step = (tokens) => (1 / (tokens - 1)).toFixed(3);
    const place = `Token ${token} has position ${number(shortest)} in a text of ${shortest} tokens`;
    return shortest === longest
      ? `${place}, where neighbours are ${step(longest)} apart. The other texts are too short to have a token ${token}.`
      : `${place} and position ${number(longest)} in a text of ${longest}. `
        + `Neighbours are ${step(shortest)} apart in the shorter text and ${step(longest)} apart in the longer one.`;
  },
};
