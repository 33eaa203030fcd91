// Chapter 13: which of RoPE's eight pairs makes the cliff? The trained model reads the chapter's texts with different frequencies.
import { listed, mean } from "./draw.js";
import { frequencies, ntkAware, positionInterpolation, yarn, yarnAttentionFactor } from "./formulas.js";
import { drop, run } from "./models.js";

const TRAINED = 64; // bytes, the training length
const WIDTH = 16; // positions averaged in each point of the curve
const HIGH = 0.5; // nats: the cliff is where the curve first rises above this
const TEXTS = 16;
const PATIENCE = 3000; // milliseconds for one text; where it takes longer, the recorded curve stays
const OMEGA = frequencies(16);
const STRETCHINGS = {
  pi: positionInterpolation,
  ntk: ntkAware,
  yarn: (omega, factor) => yarn(omega, factor, TRAINED),
  base: () => frequencies(16, 1e5),
  trained: (omega) => omega,
};
const NAMES = { trained: "as trained", pi: "position interpolation", ntk: "NTK-aware", yarn: "YaRN", base: "base 100,000", own: "your own" };
const pairs = (make) => Object.fromEntries(Array.from(OMEGA, (_, i) => [`p${i}`, make(i)]));
const times = (octaves) => {
  if (octaves % 1) return `×${(2 ** octaves).toFixed(2)}`;
  return octaves < 0 ? `×1/${2 ** -octaves}` : `×${2 ** octaves}`;
};

// The state of a predefined method: the positions of the sliders, in octaves.
function placed({ method, by }) {
  if (method === "own") return { method, by };
  const stretched = STRETCHINGS[method](OMEGA, Number(by));
  return { method, by, ...pairs((i) => Math.round(1e6 * Math.log2(stretched[i] / OMEGA[i])) / 1e6) };
}

const usesFactor = (method) => ["pi", "ntk", "yarn"].includes(method);
const smooth = (curve) => Array.from({ length: curve.length - WIDTH + 1 }, (_, m) => mean(curve.slice(m, m + WIDTH)));
const MIDDLES = Array.from({ length: 8 * TRAINED - WIDTH + 1 }, (_, m) => m + (WIDTH - 1) / 2);
// A curve that is high from the beginning has no cliff.
const cliffOf = (smoothed) => {
  const at = MIDDLES[smoothed.findIndex((added) => added > HIGH)];
  return at < TRAINED / 2 ? undefined : at;
};
const standing = (cliff, high) => {
  if (cliff !== undefined) return `the cliff is at position ${Math.round(cliff)}`;
  return high ? "there is no cliff, but the loss is higher from the beginning" : "there is no cliff up to position 512";
};

// What the curve on the screen belongs to: the model's seed, the frequencies, and YaRN's attention factor.
function questionOf(state) {
  const sharp = state.method === "yarn" ? yarnAttentionFactor(Number(state.by)) : 1;
  const frequencies = Array.from(OMEGA, (omega, i) => omega * 2 ** state[`p${i}`]);
  return { key: JSON.stringify([state.seed, frequencies, sharp]), changes: { frequencies, attentionFactor: sharp } };
}

// By how much each text's loss exceeds that of the same model with 64 bytes in sight, which was recorded.
function compute(seed, { key, changes }, own) {
  own.key = key;
  let near;
  const load = async () => {
    const [texts, losses] = await Promise.all([living.load("data/windows-16"), living.load(`data/near-rope-${seed}`)]);
    near = losses;
    return texts;
  };
  return run({ model: `text-rope-${seed}`, texts: load(), changes, slot: "pairs" }, ({ done, ms, each }) => {
    own.slow ||= done === 1 && ms > PATIENCE;
    if (own.slow) drop("pairs");
    const added = (m) => mean(each.map(({ losses }, text) => losses[m] - near[text][m]));
    if (!own.slow) own.shown = { key, done, curve: Array.from({ length: 8 * TRAINED }, (_, m) => added(m)) };
    own.redraw();
  });
}

function described(state) {
  const { method, by } = state;
  if (method !== "own") return NAMES[method][0].toUpperCase() + NAMES[method].slice(1) + (usesFactor(method) ? ` with factor ${by}` : "");
  const moved = Object.keys(pairs(() => 0)).filter((name) => state[name] !== 0);
  if (moved.length === 1) return `Pair ${moved[0][1]} at ${times(state[moved[0]])}`;
  return moved.length ? `Pairs ${listed(moved.map((name) => name[1]))} changed` : "As trained";
}

export const figure = {
  label: "What distant keys add to the loss of a trained model with RoPE, whose eight frequencies you can change",
  needs: ["{for}"],
  controls: {
    ...pairs((i) => ({ label: `Pair ${i}`, min: -3, max: 1, step: 0.5, value: 0, show: times, compact: true, put: (value) => ({ [`p${i}`]: value, method: "own" }) })),
    method: { label: "Frequencies", options: NAMES, value: "trained", put: (method, { by }) => placed({ method, by }) },
    by: { label: "Factor", options: { 2: "2", 4: "4", 8: "8" }, value: "4", put: (by, { method }) => placed({ method, by }), when: ({ method }) => usesFactor(method) },
    seed: { label: "Model", options: { 0: "seed 0", 1: "seed 1", 2: "seed 2" }, value: "0" },
  },
  asks: { label: "Run the model here (loads 260 kB)" },
  draw(stage, state, own) {
    if (state.method !== "own") Object.assign(state, placed(state)); // an address may give only the method
    const { worse, window } = own.data["{for}"];
    const trained = worse[state.seed];
    const question = questionOf(state);
    const changed = question.key !== questionOf({ ...state, ...pairs(() => 0), method: "trained" }).key;
    const running = own.asked && !own.slow && changed;
    if (running && own.key !== question.key) own.wait(compute(state.seed, question, own), () => { own.key = ""; });
    if (!changed && own.key) { // nothing is wanted any more
      own.key = "";
      drop("pairs");
    }
    const found = running && own.shown?.key === question.key ? own.shown : null;
    const before = smooth(trained);
    const curve = found ? found.curve : running && own.shown ? own.shown.curve : trained;
    const now = curve === trained ? before : smooth(curve);

    const { width } = stage;
    const plot = stage.plot({ left: 0, top: 0, width, height: width < 480 ? 250 : 280 }, {
      x: [0, 512], y: [-0.4, 2.2], xTicks: width < 480 ? [0, 64, 128, 256, 512] : [0, 64, 128, 256, 384, 512], yTicks: [0, 1, 2],
      xLabel: "position in the text", yLabel: own.repeated ? "harm done by what is far" : "above the 64-byte window, nats",
    });
    plot.band(0, TRAINED);
    plot.rule({ y: 0 });
    plot.rule({ y: HIGH }, "dotted faint"); // where the cliff is measured
    plot.text(512, 0, "only the last 64 bytes in sight", "number", "end", [0, 16]);
    if (width >= 480) plot.text(TRAINED / 2, 2.2, "trained", "number", "middle", [0, 12]);
    if (curve !== trained) {
      plot.line(MIDDLES, before, "dashed thin", false);
      plot.text(120, 0.9, "as trained", "number", "end");
    }
    const inside = now.map((added) => Math.min(Math.max(added, -0.4), 2.2));
    plot.line(MIDDLES, inside, running && !found ? "old" : "green");
    const [was, cliff] = [cliffOf(before), cliffOf(now)];
    if (cliff !== undefined) {
      plot.rule({ x: cliff }, "dashed");
      plot.text(cliff, 2.2, `cliff at ${Math.round(cliff)}`, "", cliff > 400 ? "end" : "start", [cliff > 400 ? -6 : 6, 12]);
    }

    const bar = window[0][state.seed];
    const level = (added) => (bar + mean(added.slice(0, 256))).toFixed(2);
    const record = own.repeated ? `As trained, ${standing(was)}.` : `As trained, ${standing(was)}, and the mean loss over 256 bytes is ${level(trained)} nats, while for the same model with only the last 64 bytes in sight it is ${bar.toFixed(2)}.`;
    if (own.slow) return `This browser is too slow to run the model, so the curve is still the recorded one. ${record}`;
    if (!changed) return record;
    if (!running) return `${described(state)}: run the model to see what this changes. The curve is still the recorded one. ${record}`;
    if (!found) return `${described(state)}: the model is reading the first text. The curve in grey is the one before.`;
    if (found.done < TEXTS) return `${described(state)}: so far, the curve is the mean over ${found.done} of ${TEXTS} texts.`;
    const cost = mean(found.curve.slice(0, TRAINED)) - mean(trained.slice(0, TRAINED));
    const within = Math.abs(cost) < 0.0005 ? "it doesn't change" : `it ${cost > 0 ? "rises" : "falls"} by ${Math.abs(cost).toFixed(3)} nats`;
    const far = `${level(found.curve)} nats instead of ${level(trained)} (with only the last 64 bytes in sight, it is ${bar.toFixed(2)})`;
    const stands = `${described(state)}: ${standing(cliff, now[0] > HIGH || cost > 0.3)}; as trained, ${standing(was)}.`;
    return own.repeated ? stands : `${stands} The mean loss over 256 bytes is ${far}; over the first 64 bytes, ${within}.`;
  },
};
