// Chapter 11: how ALiBi's bias lowers the score with the distance, and how many of the nearest keys then get most of a head's attention.
import { written } from "./draw.js";
import { alibiSlopes } from "./formulas.js";

const SHARE = 90; // % of the attention, which a window holds
// Percent of the attention on the n nearest of all keys: sums of a geometric series.
const held = (slope, n, length) => (100 * Math.expm1(-slope * n)) / Math.expm1(-slope * length);
const holding = (share, slope, length) => Math.ceil(-Math.log1p((share / 100) * Math.expm1(-slope * length)) / slope);

const headOf = ({ heads, head }) => Math.min(head, heads);

/** A different number of heads, and the head among them whose slope is nearest to that of the chosen head. */
function among(heads, state) {
  const slope = alibiSlopes(state.heads)[headOf(state) - 1];
  const off = Array.from(alibiSlopes(heads), (other) => Math.abs(Math.log(other / slope)));
  return { heads, head: off.indexOf(Math.min(...off)) + 1 };
}

/** @type {import("./element.js").Figure<{ heads: number, head: number, length: number }>} */
export const figure = {
  label: "Each head's share of attention on its nearest keys, and its bias as a function of the distance",
  controls: {
    heads: { label: "Heads", values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 20, 24, 32, 40, 64, 112], value: 8, put: among },
    head: { label: "Head", min: 1, max: ({ heads }) => heads, value: 8, get: headOf },
    length: { label: "Tokens in the text", values: Array.from({ length: 11 }, (_, i) => 2 ** (i + 3)), value: 8192 },
  },
  draw(stage, state) {
    const { heads, length } = state;
    const head = headOf(state);
    const slopes = alibiSlopes(heads);
    const power = 2 ** Math.floor(Math.log2(heads));
    const own = slopes[head - 1];
    const style = (h) => (h === head - 1 ? "vermillion" : `blue ${heads > 16 ? "faint" : "thin"}${h < power ? "" : " dashed"}`);
    const inOrder = [...slopes.keys()].sort((a, b) => Number(a === head - 1) - Number(b === head - 1)); // the chosen one on top

    const below = stage.width < 480;
    const wide = below ? stage.width : 0.6 * stage.width;
    const chart = stage.plot(
      { left: 0, top: 0, width: wide, height: 270 },
      {
        x: [1, 8192], y: [0, 116], log: "x", xTicks: [1, 10, 100, 1000], yTicks: [0, 50, SHARE],
        xLabel: "nearest keys", yLabel: "attention on them, %",
      },
    );
    chart.rule({ y: SHARE }, "dashed");
    const nearest = [...new Set(Array.from({ length: 300 }, (_, i) => Math.round(length ** (i / 299))))];
    let before = -Infinity; // where the last number stands
    for (const h of inOrder) {
      chart.line(nearest, nearest.map((n) => held(slopes[h], n, length)), style(h));
      const at = chart.x(holding(62, slopes[h], length));
      if (heads > 8 || h === head - 1 || at < before + 10) continue; // in a short text, all curves are alike
      before = at;
      stage.text(at - 4, chart.y(62) + 4, h + 1, "blue words", "end");
    }
    const keys = holding(SHARE, own, length);
    chart.dots([keys], [SHARE], "vermillion", 5, false);
    const windows = Array.from(slopes, (slope) => holding(SHARE, slope, length));
    chart.handle("head", keys, SHARE, windows, (kept) => ({ head: windows.indexOf(kept) + 1 }));
    chart.text(keys, 107, `head ${head}: ${written(keys)} keys`, "vermillion words", keys > 60 ? "end" : "start");

    const costs = stage.plot(
      below ? { left: 0, top: 280, width: wide, height: 190 } : { left: wide + 16, top: 0, width: stage.width - wide - 16, height: 270 },
      { x: [0, 64], y: [-4, 0.4], xTicks: [0, 32, 64], yTicks: [-4, -2, 0], xLabel: "distance, tokens", yLabel: "bias" },
    );
    for (const h of inOrder) {
      const far = Math.min(64, 4 / slopes[h]);
      costs.line([0, far], [0, -slopes[h] * far], style(h), false);
    }
    const flat = own < 1 / 50;
    const far = flat ? 64 : Math.min(40, 2.5 / own);
    costs.text(far, -own * far, `head ${head}`, "vermillion words", flat ? "end" : "start", flat ? [0, -8] : [6, 4]);

    const between = head > power ? `, one of those added because ${heads} isn't a power of two` : "";
    const all = heads > 1 ? ` The narrowest of the ${heads} windows has ${Math.min(...windows)} keys and the widest ${Math.max(...windows)}.` : "";
    return `Head ${head} of ${heads} has the slope 1/${Number((1 / own).toFixed(2))}${between}. If all keys match the query equally well, `
      + `at least ${SHARE}\u00a0% of its attention is on the ${written(keys)} nearest of ${written(length)} keys.${all}`;
  },
};
