// Chapter 9: the numbers that four heads learned for T5's buckets, by offset; training texts reached only the nearer ones.
import { written } from "./draw.js";
import { t5Buckets } from "./formulas.js";

const FARTHEST = 60;
const LENGTH = 20; // of the texts in training
const OFFSETS = Array.from({ length: 2 * FARTHEST + 1 }, (_, at) => at - FARTHEST);
const BUCKETS = t5Buckets(OFFSETS, 32, 128, false);
const COLORS = ["raspberry", "wine", "rose", "mauve"];

/** @type {import("./element.js").Figure<{ offset: number, head: string }>} */
export const figure = {
  label: "What four trained heads add to the score at each offset",
  needs: ["{for}"],
  controls: {
    offset: { label: "Offset of a key", min: -FARTHEST, max: FARTHEST, value: 40 },
    head: { label: "Head", value: "1", options: { 1: "1", 2: "2", 3: "3", 4: "4" } },
  },
  draw(stage, { offset, head }, own) {
    const { learned } = own.data["{for}"];
    const curves = COLORS.map((_, h) => Array.from(BUCKETS, (bucket) => learned[bucket][h]));
    const chart = stage.plot(
      { left: 0, top: 0, width: stage.width, height: 300 },
      {
        x: [-FARTHEST, FARTHEST], y: [-1.15, 1.15], xTicks: [-60, -40, -20, 0, 20, 40, 60], yTicks: [-1, 0, 1],
        xLabel: "offset m − n, tokens", yLabel: "number added",
      },
    );
    chart.band(0.5 - LENGTH, LENGTH - 0.5);
    chart.text(-LENGTH - 1, 0.6, "grey: seen", "", "end");
    chart.text(-LENGTH - 1, 0.6, "in training", "", "end", [0, 18]);
    curves.forEach((curve, h) => chart.line(OFFSETS, curve, `${COLORS[h]} stairs ${h + 1 === Number(head) ? "" : "thin"}`));
    const color = COLORS[Number(head) - 1];
    const chosen = curves[Number(head) - 1];
    const at = offset + FARTHEST;
    chart.dots([offset], [chosen[at]], "black", 5, false);
    const far = offset > 30;
    chart.text(offset, chosen[at], `head ${head}`, `${color} words`, far ? "end" : "start", [far ? 4 : -4, -12]);
    chart.handle("offset", offset, chosen[at], OFFSETS);
    own.chart = chart;

    const most = BUCKETS.filter((bucket) => bucket === BUCKETS[at]).length - 1;
    const reached = OFFSETS.some((one) => Math.abs(one) < LENGTH && BUCKETS[one + FARTHEST] === BUCKETS[at]);
    const trained = reached ? "which occurred in training" : "which never occurred in training";
    const shares = most ? `${most} other offset${most > 1 ? "s" : ""} shown here fall${most > 1 ? "" : "s"} into it, too` : "no other offset falls into it";
    const four = chosen[FARTHEST + 4];
    const compared = chosen[at] === four ? "" : `, which is ${chosen[at] > four ? "more" : "less"} than at offset 4 (${written(four, 2)})`;
    return `Offset ${written(offset)} falls into bucket ${BUCKETS[at]}, ${trained}; ${shares}. `
      + `Head ${head} adds ${written(chosen[at], 2)} there${compared}.`;
  },
  point: (x, y, state, own) => ({ offset: Math.round(FARTHEST * (2 * own.chart.share(x) - 1)) }),
};
