// Chapter 14: two tokens, the tokens that each of them averages, and how similar the two averages are.
import { clip, counted, range, written } from "./draw.js";

const WIDTHS = [4, 8, 16, 32];
const FROM = [63, 255, 1023]; // positions of the later token
const DISTANCES = Array.from({ length: 25 }, (_, at) => 2 * at);
const SHOWN = 80; // tokens in the row

const first = (at, width) => Math.max(at - width + 1, 0); // of the tokens that the token at this position averages
const count = (at, width) => at - first(at, width) + 1;
const shared = (m, n, width) => Math.max(n - first(m, width) + 1, 0);
/** The cosine of the averages of tokens m and n ≤ m, if all tokens are equally long and at right angles to each other. */
const cosine = (m, n, width) => shared(m, n, width) / Math.sqrt(count(m, width) * count(n, width));
const tokens = (count) => counted(count, "token");

/** @type {import("./element.js").Figure<{ kind: string, w: number, m: number, d: number }>} */
export const figure = {
  label: "The tokens that two tokens average, and the cosine of the two averages as a function of the distance",
  needs: ["{for}"],
  controls: {
    kind: { label: "Each token averages", options: { window: "its window", all: "everything so far" }, value: "window" },
    w: { label: "Window", values: WIDTHS, value: 16, show: tokens, more: true, when: ({ kind }) => kind === "window" },
    m: { label: "Later token’s position", values: FROM, value: 63 },
    d: { label: "Distance", min: 0, max: 48, value: 4, show: tokens, more: true },
  },
  draw(stage, { kind, w, m, d }, own) {
    const windows = kind === "window";
    const width = windows ? w : m + 1;
    const n = m - d;
    const [later, earlier, both] = [count(m, width), count(n, width), shared(m, n, width)];

    // The row of tokens ends with the later one. What reaches beyond its left end is shown by arrows.
    const row = stage.plot(
      { left: 0, top: 0, width: stage.width, height: 160, right: 16 },
      { x: [m - SHOWN, m + 0.5], y: [-2.7, 2.4], xTicks: d > 8 ? [n, m] : [m], xLabel: "position" },
    );
    const left = m - SHOWN + 0.5;
    const ends = (at) => [Math.max(first(at, width) - 0.5, left), at + 0.5];
    if (both) row.band(Math.max(first(m, width) - 0.5, left), n + 0.5);
    const before = Math.max(m - SHOWN + 1, 0);
    const all = Array.from({ length: m - before + 1 }, (_, at) => before + at);
    row.dots(all, all.map(() => 0), "faint", 1.75, false);
    /** @type {[at: number, y: number, color: string, held: number][]} */
    const rows = [[n, -1.15, "blue", earlier], [m, 1.15, "vermillion", later]];
    for (const [at, y, color, held] of rows) {
      const [from, to] = ends(at);
      const [x, top] = [row.x(from), row.y(y)];
      stage.add(`<path class="hand line ${color}" style="stroke-width: 8; stroke-linecap: butt" d="M${x} ${top}H${row.x(to)}"/>`);
      if (first(at, width) < before) stage.add(`<g class="${color}"><polygon points="${x},${top - 9} ${x - 10},${top} ${x},${top + 9}"/></g>`);
      row.dots([at], [0], color, 5, false);
      const anchor = row.x(to) > 200 ? "end" : "start";
      row.text(anchor === "end" ? to : from, y, `token ${written(at)} averages ${tokens(held)}`, `${color} words`, anchor, [0, y > 0 ? -10 : 20]);
    }

    stage.handle("earlier", row.x(n), row.y(0), (x) => ({ d: clip(Math.round((row.x(m) - x) / (row.x(m) - row.x(m - 1))), 0, 48) }), false);

    const chart = stage.plot(
      { left: 0, top: 164, width: stage.width, height: 270, right: 12 },
      { x: [0, 48], y: [-0.06, 1.1], xTicks: [0, 8, 16, 24, 32, 40, 48], yTicks: [0, 0.5, 1], xLabel: "distance, tokens", yLabel: "cosine" },
    );
    const given = own.data["{for}"];
    for (const ofWindow of windows ? [false, true] : [true, false]) { // the chosen one on top
      const chosen = ofWindow === windows;
      const over = ofWindow ? w : m + 1;
      const color = chosen ? (ofWindow ? "vermillion" : "blue") : "faint";
      chart.line(DISTANCES, DISTANCES.map((by) => cosine(m, m - by, over)), color);
      if (chosen) chart.dots(DISTANCES, given[ofWindow ? `means${w}` : "means1024"][FROM.indexOf(m)], color, 3);
      const style = chosen ? `${color} words` : "pale";
      const part = Math.abs(d - 0.55 * w) < 0.3 * w ? 0.15 : 0.55; // not where the point is
      if (ofWindow) chart.text(part * w, 1 - part, "windows", style, "start", [12, 0]);
      else chart.text(48, cosine(m, m - (m > 63 ? 48 : 22), over), `everything, from ${written(m)}`, style, "end", [0, m > 63 ? 22 : -8]);
    }
    const value = cosine(m, n, width);
    chart.rule({ x: d }, "faint");
    chart.dots([d], [value], "", 6, false);
    chart.handle("d", d, value, range(49));
    const formula = windows ? `${both}/${w}` : `√(${earlier}/${later})`;
    chart.text(d, value, formula, "strong", d > 36 ? "end" : "start", windows || m > 63 ? [d > 36 ? -10 : 10, -8] : [d > 36 ? -4 : 2, 26]);

    const cosineIs = `the cosine of the averages is ${value.toFixed(2)}`;
    if (!d) return `At distance 0, both averages are the same, so ${cosineIs} in any case.`;
    if (windows) {
      const same = both ? `${both} of the ${w} tokens that each of them averages ${both === 1 ? "is" : "are"} in both windows` : "their windows don’t overlap";
      return `Tokens ${written(n)} and ${written(m)} are ${tokens(d)} apart, and ${same}. So ${cosineIs}, `
        + "and it’s the same for any two tokens that are equally far apart, wherever they are.";
    }
    const [early, late] = [FROM[0], FROM.at(-1)];
    const seen = (at) => cosine(at, at - d, at + 1).toFixed(2);
    return `Token ${written(m)} averages ${tokens(later)}, and token ${written(n)} the first ${written(earlier)} of them. So ${cosineIs}. `
      + `At the same distance, it’s ${seen(early)} if the later token is at position ${early}, and ${seen(late)} if it’s at ${written(late)}: it depends on where you are.`;
  },
};
