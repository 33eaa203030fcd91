// Chapter 16: the share of the attention that one key gets whose score leads those of all others, in longer and longer texts, and
// what factors for the scores change about it.
import { clip, written } from "./draw.js";
import { llama4Factor, logFactor } from "./formulas.js";

const OTHERS = { 4: "blue", 12: "green" }; // leads shown for comparison
const KEYS = Array.from({ length: 193 }, (_, at) => 2 ** (4 + at / 12));
const powers = (from, to) => Array.from({ length: to - from + 1 }, (_, at) => 2 ** (from + at));
const share = (lead, n) => 100 / (1 + (n - 1) * Math.exp(-lead));
const LEADS = Array.from({ length: 16 }, (_, at) => at + 1);
const half = (lead) => Math.exp(lead) + 1; // keys, with which half of the attention is left

// What the scores of the last query of n tokens are multiplied by.
const FACTORS = {
  none: () => 1,
  log: (n, trained) => logFactor([n - 1], trained)[0],
  llama4: (n, trained) => llama4Factor([n - 1], trained)[0],
};
const NAMES = { log: (trained) => `ln n / ln ${written(trained)}`, llama4: () => "Llama 4's factor" };

/** A percentage with as many digits as say something. */
function percent(value) {
  if (value > 99.99) return "over 99.99\u00a0%";
  if (value < 0.01) return "under 0.01\u00a0%";
  return `${written(value, value > 99 || value < 1 ? 2 : 1)}\u00a0%`;
}

/** @type {import("./element.js").Figure<{ lead: number, keys: number, factor: string, trained: number }>} */
export const figure = {
  label: "The share of the key that matches best by the number of keys, with and without a factor for the scores",
  controls: {
    lead: { label: "Lead of the best key", min: 1, max: 16, value: 8 },
    keys: { label: "Keys in the text", values: powers(4, 20), value: 16384 },
    factor: { label: "Factor for the scores", options: { none: "none", log: "growing like ln n", llama4: "Llama 4's" }, value: "log" },
    trained: { label: "Training length", values: powers(4, 16), value: 64, more: true, when: ({ factor }) => factor !== "none" },
  },
  draw(stage, { lead, keys, factor, trained }, { before }) {
    const times = (n) => FACTORS[factor](n, trained);
    const multiplied = factor !== "none";
    const { width } = stage;
    const narrow = width < 480;
    const chart = stage.plot(
      { left: 0, top: 0, width, height: 280, right: 24 },
      {
        x: [16, 2 ** 20], y: [0, 114], log: "x", yTicks: [0, 50, 100],
        xTicks: narrow ? [16, 2048, 2 ** 18] : [16, 64, 1024, 2 ** 14, 2 ** 20],
        xLabel: "keys in the text, n", yLabel: "attention on the best key, %",
      },
    );
    chart.rule({ y: 50 }, "dashed");
    chart.rule({ x: keys }, "faint");
    // The chosen one is on top.
    const leads = [...before ? [] : Object.keys(OTHERS).map(Number).filter((other) => other !== lead), lead];
    for (const each of leads) {
      const color = each === lead ? "vermillion" : OTHERS[each];
      chart.line(KEYS, KEYS.map((n) => share(each, n)), color);
      if (multiplied) chart.line(KEYS, KEYS.map((n) => share(each * times(n), n)), `${color} dotted`);
      const at = clip(half(each), 20, 2 ** 19);
      if (at === half(each)) chart.dots([at], [50], color);
      if (each === lead) chart.handle("lead", at, 50, LEADS.map(half), (keys) => ({ lead: LEADS.find((one) => half(one) === keys) }));
      const late = chart.x(at) + 65 > width; // its name wouldn't fit beside it
      if (each === lead || Math.abs(each - lead) > (narrow ? 2 : 1)) {
        chart.text(at, share(each, at), `lead ${each}`, `${color} words`, late ? "end" : "start", late ? [-8, 18] : [8, -7]);
      }
    }
    if (multiplied) chart.text(2 ** 20, 106, `dotted: ${narrow ? "" : "scores "}× ${NAMES[factor](trained)}`, "words", "end");

    const rows = [["scores as they are", 1], ...(multiplied ? [[`scores × ${written(times(keys), 2)}`, times(keys)]] : [])];
    const left = narrow ? 0 : chart.left;
    const right = narrow ? width : chart.right;
    const wide = right - left;
    rows.forEach(([name, by], row) => {
      const held = share(lead * by, keys);
      const top = 296 + 50 * row;
      const edge = left + (wide * held) / 100;
      chart.dots([keys], [held], "vermillion", row ? 4 : 5, false);
      if (!row) chart.handle("keys", keys, held, powers(4, 20));
      stage.text(left, top + 12, `${name}: lead ${written(Number((lead * by).toFixed(1)))}`, "", "start");
      stage.add(`<path class="line vermillion" style="stroke-width:16" d="M${left} ${top + 26}H${edge.toFixed(2)}"/>`);
      stage.add(`<path class="line blue faint" style="stroke-width:16" d="M${edge.toFixed(2)} ${top + 26}H${right}"/>`);
      stage.text(right, top + 12, percent(held), "vermillion words", "end");
    });

    stage.height = 384; // for two rows, so that nothing below jumps
    const alone = share(lead, keys);
    const rest = `the other ${written(keys - 1)} keys share ${percent(100 - alone)}`;
    const first = `One of ${written(keys)} keys leads by ${lead} and gets ${percent(alone)} of the attention; ${rest}.`;
    if (!multiplied) return first;
    const by = times(keys);
    const name = factor === "log" ? `ln\u00a0${written(keys)} / ln\u00a0${written(trained)}` : "Llama 4's factor";
    const why = by === 1 ? `${name} isn't more than 1 here, so the scores stay as they are` : `With all scores times ${written(by, 2)}, ${name}, it gets ${percent(share(lead * by, keys))}`;
    return `${first} ${why}.`;
  },
};
