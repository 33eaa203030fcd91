// Chapter 9: T5's bucket of each offset, for different numbers of buckets, and how many offsets share a bucket.
import { nearest, written } from "./draw.js";
import { t5Buckets } from "./formulas.js";

const FARTHEST = 300;

/** @type {import("./element.js").Figure<{ distance: number, side: string, buckets: number, reach: number }>} */
export const figure = {
  label: "T5's bucket of each offset",
  controls: {
    distance: { label: "Distance of the key", min: 0, max: FARTHEST, value: 10 },
    side: { label: "The key is in the", value: "decoder", options: { decoder: "past (decoder)", past: "past (encoder)", future: "future (encoder)" } },
    buckets: { label: "Buckets", min: 4, max: 64, step: 2, value: 32 },
    reach: { label: "Maximum distance", values: [40, 64, 96, 128, 192, 256], value: 128 },
  },
  draw(stage, { distance, side, buckets, reach }) {
    const causal = side === "decoder";
    const offset = side === "future" ? 0 - distance : distance;
    const from = causal ? 0 : -FARTHEST;
    const offsets = Array.from({ length: FARTHEST - from + 1 }, (_, at) => from + at);
    const found = t5Buckets(offsets, buckets, reach, causal);
    const bucket = found[offset - from];
    const alike = offsets.filter((_, at) => found[at] === bucket);
    const [first, last] = [alike[0], alike[alike.length - 1]];

    const chart = stage.plot(
      { left: 0, top: 0, width: stage.width, height: 320 },
      {
        x: [from, FARTHEST], y: [0, buckets], log: "x", xLabel: "offset m − n, tokens", yLabel: "bucket",
        xTicks: causal ? [0, 1, 4, 16, 64, 256] : [-128, -8, 0, 8, 128],
        yTicks: [0, 1 / 4, 1 / 2, 3 / 4, 1].map((part) => Math.floor(part * buckets)),
      },
    );
    chart.band(Math.max(first - 0.5, from), Math.min(last + 0.5, FARTHEST), "rose");
    if (causal) {
      chart.line(offsets, offsets.map((one) => Math.min(one, buckets - 1)), "stairs dotted");
      chart.text(buckets / 2, 0.82 * buckets, "clipping", "", "end", [-10, 0]);
      chart.text(0.2, 0.44 * buckets, "near: one each", "", "start");
      chart.text(FARTHEST, 0.5 * buckets, "far: shared", "", "end", [-6, 0]);
      chart.line(offsets, found, "rose stairs");
    } else {
      for (const past of [true, false]) {
        const half = offsets.filter((one) => (one >= 0) === past);
        chart.line(half, half.map((one) => found[one - from]), "rose stairs");
        chart.text(past ? FARTHEST : from, 0.57 * buckets, past ? "the past" : "the future", "", past ? "end" : "start");
      }
    }
    chart.dots([offset], [bucket], "black", 5, false);
    stage.handle("distance", chart.x(offset), chart.y(bucket), (x) => {
      const to = nearest(offsets, (one) => Math.abs(chart.x(one) - x));
      return { distance: Math.abs(to), side: causal ? side : to < 0 ? "future" : "past" };
    }, false);

    const open = last === FARTHEST || first === -FARTHEST; // the outermost bucket of a side has no end
    const shared = open
      ? `with every offset from ${first === -FARTHEST ? written(last) + " down" : first + " on"}`
      : alike.length === 1 ? "with no other offset"
        : `with ${alike.length - 1} other offset${alike.length > 2 ? "s" : ""}: the bucket holds offsets ${written(first)} to ${written(last)}`;
    const single = Math.floor(buckets / (causal ? 2 : 4));
    return `Offset ${written(offset)} falls into bucket ${bucket}, which it shares ${shared}. `
      + `${causal ? "Each offset" : "On each side, each distance"} up to ${single - 1} has its own bucket.`;
  },
};
