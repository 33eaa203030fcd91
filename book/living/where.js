// Chapter 13: where one query of the trained RoPE looks, in each layer and head, beyond the distances of training.
import { mean } from "./draw.js";
import { frequencies } from "./formulas.js";
import { run } from "./models.js";

const TRAINED = 64;
const STEP = 8; // distances plotted as one
const TEXTS = 16;
const POSITIONS = Array.from({ length: 29 }, (_, at) => 32 + 8 * at);
const DASHES = ["", "dashed", "dotted", "thin"]; // of the heads

// A head's weights over the keys, first to last -> percent of its attention for each step of distances, nearest first.
function bySteps(weights) {
  const steps = new Array(Math.ceil(weights.length / STEP)).fill(0);
  weights.forEach((weight, key) => { steps[Math.floor((weights.length - 1 - key) / STEP)] += 100 * weight; });
  return steps;
}

/** @param {import("./element.js").Own} own */
async function ask({ answers, redraw }, key, { position, slow }) {
  const found = answers[key] = { done: 0, layers: null };
  const omega = [...frequencies(16)];
  omega[3] /= slow ? 2 : 1;
  const part = ({ done, each }) => {
    const now = each.at(-1).attention.map((heads) => heads.map(([weights]) => bySteps(weights)));
    found.layers = now.map((heads, layer) => heads.map((steps, head) => steps.map((share, at) => {
      const before = found.layers?.[layer][head][at] ?? 0;
      return before + (share - before) / done; // the mean over the texts so far
    })));
    found.done = done;
    redraw();
  };
  const texts = living.load("data/windows").then((all) => all.slice(0, TEXTS).map((text) => text.slice(0, position + 2)));
  /** @type {import("./models.js").Job} */
  const job = { model: "text-rope-0", texts, queries: [position], changes: { frequencies: omega }, slot: "where" };
  if (!await run(job, part)) delete answers[key]; // a newer question replaced it
}

/** @type {import("./element.js").Figure<{ position: number, slow: boolean }>} */
export const figure = {
  label: "How a query's attention is distributed over distances, in two layers of four heads",
  needs: ["{for}"],
  controls: {
    position: { label: "Query's position", min: 32, max: 256, step: 8, value: 200 },
    slow: { label: "Pair 3 at half its speed", value: false },
  },
  asks: { label: "Ask the model (loads 240 kB)" },
  draw(stage, { position, slow }, own) {
    const { steps } = own.data["{for}"];
    own.answers ??= { "200/false": { done: TEXTS, layers: [steps.slice(0, 4), steps.slice(4)] } };
    const key = `${position}/${slow}`;
    if (own.asked && !own.answers[key]) own.wait(ask(own, key, { position, slow }), () => { delete own.answers[key]; });
    const { done, layers } = own.answers[key] ?? { done: 0, layers: null };
    own.last = layers ?? own.last ?? own.answers["200/false"].layers; // stays in grey until there are others

    const shares = [0, 1].map((layer) => {
      const last = layer === 1;
      const plot = stage.plot(
        { left: 0, top: layer * 158, width: stage.width, height: last ? 190 : 158, right: 14 },
        {
          x: [0, 256], y: [0, 50], yTicks: [0, 25, 50], yLabel: "attention, %",
          ...(last && { xTicks: [0, 64, 120, 200, 256], xLabel: stage.width < 480 ? "distance, in steps of 8 bytes" : "distance from query to key, in steps of 8 bytes" }),
        },
      );
      plot.band(0, TRAINED);
      plot.rule({ x: TRAINED });
      plot.text(TRAINED, 50, `layer ${layer + 1}`, "", "start", [6, 12]);
      if (last) plot.handle("position", position, 0, POSITIONS); // up to it, there are keys
      const heads = (layers ?? own.last)[layer];
      const middles = heads[0].map((_, step) => STEP * step + STEP / 2);
      heads.forEach((head, at) => plot.line(middles, head, `${layers ? "green" : "old"} ${DASHES[at]}`));
      if (!layers) return null;
      const far = layers[layer].map((head) => head.slice(TRAINED / STEP).reduce((a, b) => a + b, 0));
      const share = Math.round(mean(far));
      plot.text(TRAINED, 50, `${share} % at 64 or more`, "number", "start", [6, 29]);
      return share;
    });
    const who = `${slow ? "With pair 3 at half its speed, the" : "The"} query at position ${position}`;
    if (!layers) {
      return `The model ${own.asked ? "is reading" : "hasn't been asked about this query yet"}. Grey lines are those before.`;
    }
    const over = done < TEXTS ? `mean over ${done} of ${TEXTS} texts so far` : `mean over ${TEXTS} texts`;
    return position < TRAINED
      ? `${who} sees no key that is 64 or more bytes away.`
      : `${who} gives ${shares[0]} % of its attention in layer 1 and ${shares[1]} % in layer 2 `
        + `to keys that are 64 or more bytes away (${over}, and over four heads).`;
  },
};
