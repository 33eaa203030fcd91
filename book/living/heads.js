// Chapter 19: where the 270 heads of a released model look, and with which of their pairs.
import { clip, range, written } from "./draw.js";

const LAYERS = 30;
const HEADS = 9; // in each layer
const MAPS = { first: "on the first token", previous: "on the token before", own: "on the token itself", equal: "on equal tokens", after: "on tokens after equal ones" };
const rounded = (share) => `${written(share < 1 ? Math.round(10 * share) / 10 : Math.round(share))} %`;

// Bars from 0 to the heights at these whole numbers.
function bars(stage, plot, at, heights, color) {
  const each = at.map((x) => `M${plot.x(x - 0.4)} ${plot.y(0)}V${plot.y(heights[x])}H${plot.x(x + 0.4)}V${plot.y(0)}Z`);
  stage.add(`<path class="dot ${color}" d="${each.join("")}"/>`);
}

/** @type {import("./element.js").Figure<{ map: string, layer: number, head: number }>} */
export const figure = {
  label: "A map of all heads of a released model, with the attention of one of them by distance, and the shares of its pairs",
  needs: ["{for}"],
  controls: {
    map: { label: "Attention", options: MAPS, value: "first" },
    layer: { label: "Layer", min: 0, max: LAYERS - 1, step: 1, value: 16, more: true },
    head: { label: "Head", min: 0, max: HEADS - 1, step: 1, value: 0, more: true },
  },
  draw(stage, { map, layer, head }, own) {
    const { first: [first], equal: [equal], after: [after], edges: [edges], distances, shares } = own.data["{for}"];
    // A row for each head, with a number for each layer.
    own.maps ??= Object.fromEntries(Object.entries({
      first, equal, after, own: distances.map(([itself]) => itself), previous: distances.map(([, previous]) => previous),
    }).map(([name, all]) => [name, range(HEADS).map((row) => range(LAYERS).map((column) => all[HEADS * column + row]))]));
    const { width } = stage;
    const narrow = width < 480;

    const plot = stage.plot({ left: 0, top: 24, width, height: narrow ? 170 : 220 }, {
      x: [-0.5, LAYERS - 0.5], y: [HEADS - 0.5, -0.5], xTicks: range(6).map((fifth) => 5 * fifth), yTicks: [0, 4, 8], xLabel: "layer", yLabel: "head",
    });
    plot.heat(own.maps[map], [0, 100]);
    own.plot = plot;
    const ramp = width < 300 ? 48 : 80; // pixels of the key to the colours
    stage.heats.push({ rows: [range(81).map((at) => at / 0.8)], low: 0, high: 100, left: width - ramp - 44, top: 6, width: ramp, height: 10 });
    stage.text(width - ramp - 50, 15, "0 %", "number", "end");
    stage.text(width, 15, "100 %", "number", "end");
    stage.text(plot.left, 15, narrow ? MAPS[map].slice(3) : `attention ${MAPS[map]}`, "", "start");
    const near = (value, most) => clip(Math.round(value), 0, most);
    own.at = (x, y) => ({
      layer: near(plot.share(x) * LAYERS - 0.5, LAYERS - 1),
      head: near(((y - plot.top) / (plot.bottom - plot.top)) * HEADS - 0.5, HEADS - 1),
    });
    stage.handle("head", plot.x(layer), plot.y(head), own.at);

    const at = HEADS * layer + head;
    const top = stage.height + 16;
    const half = narrow ? width : width / 2 - 8;
    const high = narrow ? 140 : 190;
    const boxes = [0, 1].map((at) => ({ left: at * (width - half), top: narrow ? top + at * (high + 10) : top, width: half, height: high }));
    const bins = range(edges.length + 1);
    const names = ["first", ...edges].map((edge, bin) => [bin, edge]).filter(([bin]) => [0, 2, 5, 8, 11].includes(bin));
    const by = stage.plot(boxes[0], { x: [-0.5, edges.length + 0.5], y: [0, 100], xTicks: names, yTicks: [0, 50, 100], xLabel: "at least this far back", yLabel: "attention, %" });
    const looks = [first[at], ...distances[at]];
    bars(stage, by, bins.slice(0, 1), looks, "vermillion");
    bars(stage, by, bins.slice(1), looks, "green");
    stage.drawn.lines.push({ x: bins, y: looks });
    const pairs = range(32);
    const most = Math.max(20, ...shares[at]);
    const parts = stage.plot(boxes[1], { x: [-0.5, 31.5], y: [0, most > 20 ? 100 : 20], xTicks: [0, 8, 16, 24, 31], yTicks: most > 20 ? [0, 50, 100] : [0, 10, 20], xLabel: "pair, from fast to slow", yLabel: "share of scores, %" });
    bars(stage, parts, pairs, shares[at], "blue");
    stage.drawn.lines.push({ x: pairs, y: shares[at] });

    const fast = shares[at].slice(0, 16).reduce((a, b) => a + b, 0);
    return `Head ${head} of layer ${layer} has ${rounded(looks[0])} of its attention on the first token and ${rounded(looks[2])} on the token before. `
      + `It has ${rounded(looks[1])} on the token itself, ${rounded(equal[at])} on earlier tokens equal to it, and ${rounded(after[at])} on tokens right after those. `
      + `The fast half of its pairs makes ${rounded(fast)} of the variance of its scores.`;
  },
  point(x, y, state, { plot, at }) {
    return y < plot.top || y > plot.bottom ? undefined : at(x, y);
  },
};
