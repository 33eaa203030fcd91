// Chapter 13: the eight pairs of a trained model with RoPE as clocks. The height of a hand is what its pair adds to the score of a
// key at some distance. Readers meet one clock, then all eight, and move the key; at last they make clocks slower, and the model reads
// the chapter's texts with these frequencies.
import { clip, counted, listed, mean, shortest, written } from "./draw.js";
import { frequencies, llama3, ntkAware, positionInterpolation, yarn } from "./formulas.js";
import { drop, run } from "./models.js";

const WIDTH = 16; // positions averaged in each point of the loss
const HIGH = 0.5; // nats: the cliff is where the loss first rises by this, above its mean within the training length
const SLIGHT = 0.1; // nats: by less, a loss doesn't count as higher from the beginning
const TEXTS = 16;
const FIRST = 256; // bytes of the first text, which are asked for before all of it
const DEEP = -20; // where the axis of the score ends: below what is as trained, so that the ring there hides no dot
const [LOW, HIGHEST] = [-0.4, 2.2]; // and that of the loss
const NEAR = 3; // distances to each side, whose highest score is shown
const LOUDER = 0.5; // of a score: by less, neither it nor what a pair adds to it counts as more than in training
const OCTAVE = Math.PI / 4; // how far a ring goes round its clock for half or twice the speed
const HOLDS = 0.2; // octaves to each side of a half, a quarter or twice the speed, where a ring stays at it
const [SLOWEST, FASTEST] = [-3, 1]; // in octaves
const ALONE = 4; // the pair that is shown first: it leaves its grey, and nothing comes of it
const [ONE, EIGHT, SLOW] = ["1", "2", "3"]; // the steps
const ORDERS = {
  [ONE]: "Drag the key’s ring to the right: when does the hand leave the grey?",
  [EIGHT]: "Drag the key to the cliff: which of the eight clocks is filled there?",
  [SLOW]: "Drag that clock’s ring to the left, to ×1/2: where is the cliff now?",
};
const RECIPES = {
  pi: ["Position interpolation", positionInterpolation],
  ntk: ["NTK-aware", ntkAware],
  yarn: ["YaRN", yarn],
  llama3: ["Llama 3", llama3],
};
const TURN = 2 * Math.PI;
const past = (angle) => angle - TURN * Math.floor(angle / TURN); // past full rotations

// The model: its frequencies and the length of its training. What the cell gave is of several seeds, with as many heads each.
const OMEGA = frequencies(16);
const TRAINED = 64; // bytes
const LONGEST = 8 * TRAINED;

const pairs = (make) => Object.fromEntries(Array.from(OMEGA, (_, i) => [`p${i}`, make(i)]));
const held = (octaves) => (Math.abs(octaves - Math.round(octaves)) < HOLDS ? Math.round(octaves) : Math.round(4 * octaves) / 4);
const times = (octaves) => {
  const whole = Math.round(octaves);
  const speed = (2 ** octaves).toFixed(2);
  if (speed !== (2 ** whole).toFixed(2)) return `×${speed}`; // a recipe may nearly halve one
  return whole < 0 ? `×1/${2 ** -whole}` : `×${2 ** whole}`;
};
// The state of a recipe: where the rings are, in octaves.
function placed({ method, by }) {
  if (method === "own") return { method, by };
  const stretched = RECIPES[method]?.[1](OMEGA, Number(by), TRAINED) ?? OMEGA;
  return { method, by, ...pairs((i) => Math.round(1e6 * Math.log2(stretched[i] / OMEGA[i])) / 1e6) };
}
const named = (list) => {
  const row = list.length > 2 && list.at(-1) - list[0] === list.length - 1;
  const which = row ? `${list[0]} to ${list.at(-1)}` : listed(list.map(String)); // 0 is a name, too
  return `pair${list.length > 1 ? "s" : ""} ${which}`;
};
const capital = (words) => words[0].toUpperCase() + words.slice(1);

const smooth = (curve) => Array.from({ length: curve.length - WIDTH + 1 }, (_, m) => mean(curve.slice(m, m + WIDTH)));
const shownFrom = (low, high = Infinity) => (y) => (y < low || y > high ? NaN : y); // no line where the axis has ended
const middle = (at) => at + (WIDTH - 1) / 2;
const level = (curve) => mean(curve.slice(0, TRAINED)); // a curve that is high from the beginning needn't have a cliff
const cliffOf = (smoothed, curve) => {
  const line = level(curve) + HIGH;
  const at = smoothed.findIndex((added) => added > line);
  return at < 0 ? undefined : middle(at);
};
const standing = (cliff, was, high) => {
  const [now, before] = [cliff, was].map(Math.round);
  const where = cliff === undefined ? `the cliff at position ${before} is gone`
    : now === before ? `the cliff stays at position ${now}` : `the cliff moves from position ${before} to ${now}`;
  return where + (high ? ", but the loss is higher from the beginning" : "");
};

// What was recorded of a seed: its waves, the means over the heads of its last layer, and by how much its losses exceed those of the
// same model with only TRAINED bytes in sight.
function recordOf({ worse, window, up, right }, seed) {
  const heads = up.length / worse.length;
  const over = (rows, i) => mean(rows.slice(heads * seed, heads * (seed + 1)).map((row) => row[i]));
  const waves = Array.from(OMEGA, (_, i) => ({ height: Math.hypot(over(up, i), over(right, i)), phase: Math.atan2(over(right, i), over(up, i)) }));
  const distances = [...worse[seed].keys()];
  const most = Math.max(...distances.slice(0, TRAINED).map((distance) => scoreAt(distance, waves, OMEGA)));
  return { waves, distances, most, curve: worse[seed], smoothed: smooth(worse[seed]), bar: window[0][seed] };
}

// What each pair adds to the score at a distance; whether training had shown it this angle, and what it added there at most.
function handsAt(distance, waves, omega) {
  return waves.map(({ height, phase }, i) => {
    const reach = OMEGA[i] * (TRAINED - 1);
    const turned = omega[i] * distance;
    const most = past(-phase) <= reach ? height : height * Math.max(Math.cos(phase), Math.cos(phase + reach));
    const angle = phase + turned;
    return { angle, adds: height * Math.cos(angle), most, reach, known: past(turned + 1e-9) <= reach + 2e-9 };
  });
}
const total = (hands) => hands.reduce((sum, { adds }) => sum + adds, 0);
const scoreAt = (...given) => total(handsAt(...given));

// By how much each text's loss exceeds that of the same model with only TRAINED bytes in sight, which was recorded.
function compute({ seed, omega, key }, own) {
  own.key = key;
  let near;
  const load = async () => {
    const [texts, losses] = await Promise.all([living.load("data/windows-16"), living.load(`data/near-rope-${seed}`)]);
    near = losses;
    return texts;
  };
  return run({ model: `text-rope-${seed}`, texts: load(), changes: { frequencies: omega }, first: FIRST, slot: "hands" }, ({ done, each }) => {
    const added = (_, m) => mean(each.map(({ losses }, text) => losses[m] - near[text][m]));
    own.shown = { key, done, curve: near[0].map(added) };
    own.redraw();
  });
}

const changedPairs = (state) => [...OMEGA.keys()].filter((i) => state[`p${i}`] !== 0);
const stepOf = (state) => (state.step === ONE && changedPairs(state).length ? SLOW : state.step);
function described(state) {
  if (state.method in RECIPES) return `${RECIPES[state.method][0]} with factor ${state.by}`;
  const moved = changedPairs(state);
  const [first] = moved.map((i) => times(state[`p${i}`]));
  const speed = moved.length === 1 ? `at ${first}` : "changed";
  return `${capital(named(moved))} ${speed}`;
}

function handsInWords(state, hands, score, [pull, other, unit]) {
  const those = (test) => [...hands.keys()].filter((i) => test(hands[i]));
  const outside = those(({ known }) => !known);
  const louder = those(({ adds, most }) => adds - most > LOUDER);
  const where = outside.length ? `${capital(named(outside))} ${outside.length > 1 ? "are" : "is"} at angles that training never showed` : "All eight pairs are at angles that they had in training";
  const none = ["", ", but it adds hardly more than it did then"][outside.length] ?? ", but none of them adds much more than it did then";
  const more = louder.length ? `, and ${named(louder)} (filled) ${louder.length > 1 ? "add" : "adds"} more than in training` : none;
  const by = written(Math.abs(score), 1);
  const over = by === "0.0" ? "as high as the highest in training" : `${by} ${score > 0 ? "above" : "below"} the highest in training`;
  const far = Math.round(state.d);
  const moved = changedPairs(state);
  const same = Math.round(far * 2 ** state[`p${moved[0]}`]); // a slower clock shows the same angle farther away
  const alike = moved.length === 1 ? ` There, pair ${moved[0]} points where it pointed at ${same} before.` : "";
  return `${where}${more}. The ${other} is ${counted(far, unit)} back.${alike} The eight add up to a ${pull} ${over}.`;
}

function handInWords({ known, adds, most }, distance) {
  if (known) return `At distance ${distance}, the hand of pair ${ALONE} is at an angle that it had in training.`;
  const more = adds - most > LOUDER ? "and it adds more" : "but it adds hardly more";
  return `At distance ${distance}, the hand of pair ${ALONE} is at an angle that training never showed, ${more} than it did then.`;
}

// One clock, or a row of eight (on a phone, two), with a ring at each that makes it slower, if asked for; returns where they end.
function drawClocks(stage, state, hands, waves, pull, step) {
  const phone = stage.width < 480;
  const columns = step === ONE ? 1 : phone ? 4 : 8;
  const cell = stage.width / columns;
  const all = phone ? 192 : 156; // pixels
  const tall = phone && columns > 1 ? all / 2 : all;
  const R = Math.min(cell / 2 - 13, tall / 2 - 19);
  const highest = step === ONE ? waves[ALONE].height : Math.max(...waves.map(({ height }) => height));
  const thick = step === ONE ? `height of the thick hand: what it adds to the ${pull}` : `heights of thick hands add up to the ${pull}`;
  const keys = [thick, `grey: met in training; red: not${step === ONE ? "" : "; filled: adds more"}`];
  keys.forEach((words, line) => stage.text(stage.width / 2, 12 + 15 * line, words, "number"));
  const top = 31;
  hands.forEach(({ angle, adds, most, reach, known }, i) => {
    if (step === ONE && i !== ALONE) return;
    const at = step === ONE ? 0 : i;
    const [x, y] = [cell * (at % columns + 0.5), top + tall * Math.floor(at / columns) + R + 16];
    const on = (turned, r) => `${(x + r * Math.sin(turned)).toFixed(2)} ${(y - r * Math.cos(turned)).toFixed(2)}`;
    const { phase, height } = waves[i];
    const more = adds - most;
    const guilty = more > LOUDER ? "vermillion words" : "";
    const color = known ? "" : "vermillion";
    const sector = reach < TURN ? `<path class="band" d="M${x} ${y}L${on(phase, R)}A${R} ${R} 0 ${reach > Math.PI ? 1 : 0} 1 ${on(phase + reach, R)}Z"/>`
      : `<circle class="band" cx="${x}" cy="${y}" r="${R}"/>`;
    stage.add(`<circle class="vermillion" cx="${x}" cy="${y}" r="${R}" fill="currentColor" opacity="${guilty ? Math.min(more / highest, 0.8).toFixed(3) : 0}"/>${sector}`
      + `<circle class="line faint" cx="${x}" cy="${y}" r="${R}"/><path class="line thin ${color}" d="M${x} ${y}L${on(angle, R)}"/>`
      + `<path class="line hand ${color}" d="M${x} ${y}L${on(angle, (R * height) / highest)}"/>`);
    const octaves = state[`p${i}`];
    const name = octaves ? `${i} ${times(octaves)}` : `pair ${i}`;
    stage.text(x, y + R + 18, `${name}: ${adds > 0 ? "+" : ""}${written(adds, 1)}`, guilty || "number");
    const dial = octaves * OCTAVE;
    const arc = `A${R + 5} ${R + 5} 0 0 ${dial > 0 ? 1 : 0} ${on(dial, R + 5)}`;
    if (octaves) stage.add(`<path class="line blue" d="M${on(0, R + 5)}${arc}"/>`);
    if (step === SLOW) stage.handle(`p${i}`, x + (R + 5) * Math.sin(dial), y - (R + 5) * Math.cos(dial), (toX, toY) => {
      const to = Math.atan2(toX - x, y - toY);
      const by = shortest(to - dial) / OCTAVE;
      return { [`p${i}`]: clip(held(octaves + by), SLOWEST, FASTEST), method: "own" };
    }, octaves !== 0); // on top, it moves sideways
  });
  return top + all;
}

/** @type {import("./element.js").Figure<{ d: number, seed: string, by: string, method: string, [pair: string]: any }>} */
export const figure = {
  label: "The eight pairs of a trained model as clocks, what they add to the score of a distant key, and the loss",
  needs: ["{for}"],
  controls: {
    step: { label: "Step by step", options: { [ONE]: "one clock", [EIGHT]: "eight", [SLOW]: "slow one down" }, value: ONE, get: stepOf },
    d: { label: "How far back", min: 0, max: LONGEST - 1, step: 1, value: 56, show: (value) => written(Math.round(value)) },
    play: { label: "Play", plays: "d", perSecond: 20 },
    slow: {
      label: "Slow down pair 3", named: ({ p3 }) => (p3 ? "Speed up pair 3 again" : "Slow down pair 3"), when: (_, { repeated }) => repeated,
      press: ({ p3 }) => ({ p3: p3 ? 0 : -1, method: "own" }),
    },
    method: {
      label: "Slow down by", value: "trained", more: true, options: { trained: "nothing", own: "rings or sliders", ...Object.fromEntries(Object.entries(RECIPES).map(([key, [name]]) => [key, name])) },
      put: (method, { by }) => placed({ method, by }),
    },
    by: { label: "Factor", options: { 2: "2", 4: "4", 8: "8" }, value: "4", more: true, put: (by, { method }) => placed({ method, by }), when: ({ method }) => method in RECIPES },
    seed: { label: "Model", options: { 0: "seed 0", 1: "seed 1", 2: "seed 2" }, value: "0", more: true },
    ...pairs((i) => ({ label: `Pair ${i}`, min: SLOWEST, max: FASTEST, step: 0.25, value: 0, show: times, more: true, put: (value) => ({ [`p${i}`]: value, method: "own" }) })),
  },
  asks: { label: "Run the model here (260 kB)" },
  enters: { plays: "d", from: () => 0, perSecond: 20, step: 0.05 }, // as far as pair 3 brakes; what comes then is the reader's
  draw(stage, state, own) {
    if (state.method === "trained" && changedPairs(state).length) state.method = "own"; // an address may give only a speed,
    if (state.method !== "own") Object.assign(state, placed(state)); // or only the method
    const { seed } = state;
    own.records ??= {};
    const record = own.records[seed] ??= recordOf(own.data["{for}"], Number(seed));
    const { waves, distances, most } = record;
    const omega = Array.from(OMEGA, (trained, i) => trained * 2 ** state[`p${i}`]);
    const key = JSON.stringify([seed, omega]);
    const changed = omega.some((speed, i) => speed !== OMEGA[i]);
    const running = own.asked && changed;
    if (running && own.key !== key) own.wait(compute({ seed, omega, key }, own), () => { own.key = ""; });
    if (!changed && own.key) { // nothing is wanted any more
      own.key = "";
      drop("hands");
    }
    const found = running && own.shown?.key === key ? own.shown : null;
    const { curve } = found || (running && own.shown) || record;
    const smoothed = curve === record.curve ? record.smoothed : smooth(curve);

    const { width } = stage;
    const phone = width < 500;
    const hands = handsAt(state.d, waves, omega);
    if (own.scored?.key !== key) own.scored = { key, scores: distances.map((distance) => scoreAt(distance, waves, omega) - most) };
    const step = own.repeated ? EIGHT : stepOf(state);
    const added = (distance) => handsAt(distance, waves, omega)[ALONE].adds - hands[ALONE].most;
    const scores = step === ONE ? distances.map(added) : own.scored.scores;
    const score = step === ONE ? added(state.d) : total(hands) - most;
    const [pull, other, unit] = own.repeated ? ["pull", "other letter", "letter"] : ["score", "key", "byte"];
    if (!own.repeated) own.order = ORDERS[step];
    const top = drawClocks(stage, state, hands, waves, pull, step);
    const x = [0, LONGEST];
    const of = phone ? "" : own.repeated ? " of the other letter" : " of mean query and key";
    const apart = phone ? `distance, and position, in ${unit}s` : `distance of the ${other}, and position in the text, in ${unit}s`;

    const deep = step === ONE ? -3 * waves[ALONE].height : DEEP;
    const above = stage.plot({ left: 0, top, width, height: phone ? 92 : 140 }, {
      x, y: [deep, step === ONE ? 2 * waves[ALONE].height : 6], yTicks: step === ONE ? [0] : [-10, 0], yLabel: pull,
      title: step === ONE ? `what pair ${ALONE} adds to the ${pull} (0: most in training)` : `${pull}${of} (0: highest in training, thick: ${phone ? "" : "highest "}nearby)`,
    });
    above.band(0, TRAINED);
    above.rule({ y: 0 });
    above.line(distances, scores.map((more) => Math.max(more, deep)), "green faint", false); // in pieces, it would be slow to draw
    const peaks = scores.map((_, at) => Math.max(...scores.slice(Math.max(at - NEAR, 0), at + NEAR + 1)));
    above.line(distances, peaks.map(shownFrom(deep)), "green", false);
    const inSight = (peak, distance) => (peak > 0 && distance <= state.d + NEAR ? peak : NaN); // of a query at this position
    above.line(distances, peaks.map(inSight), "vermillion over", false);
    above.rule({ x: state.d }, "dashed");
    above.dots([state.d], [Math.max(score, deep)], score > 0 ? "vermillion" : "black", 4, false);
    above.handle("d", state.d, deep, distances);
    const left = state.d > LONGEST / 2;
    above.text(state.d, deep, other, "number halo", left ? "end" : "start", [left ? -15 : 15, -3]);

    const over = phone ? "" : ` over ${TEXTS} texts and ${WIDTH} positions`;
    const line = level(curve) + HIGH; // where the cliff is measured
    stage.add(`<g opacity="${step === ONE ? 0.2 : 1}">`); // one thing at a time
    const below = stage.plot({ left: 0, top: above.bottom + 12, width, height: phone ? 126 : 170 }, {
      x, y: [LOW, HIGHEST], xTicks: [0, 1, 2, 4, ...phone ? [] : [6], 8].map((lengths) => lengths * TRAINED), yTicks: [[line, "cliff"], ...[0, 1, 2].filter((tick) => Math.abs(tick - line) > 0.2)],
      xLabel: apart, yLabel: own.repeated ? "harm" : "nats",
      title: own.repeated ? "harm done by what is far" : `mean loss${over} (0: as trained, ${TRAINED} bytes in sight)`,
    });
    below.band(0, TRAINED);
    below.rule({ y: 0 });
    below.rule({ y: line }, "dotted faint");
    const middles = smoothed.map((_, at) => middle(at));
    if (curve !== record.curve) {
      below.line(middles, record.smoothed, "dashed thin", false);
      below.text(TRAINED, 1.3, "as trained", "number", "start", [4, 0]);
    }
    below.line(middles, smoothed.map(shownFrom(LOW, HIGHEST)), running && !found ? "old" : "green");
    below.rule({ x: state.d }, "faint");
    const [was, cliff] = [cliffOf(record.smoothed, record.curve), cliffOf(smoothed, curve)];
    const cost = level(curve) - level(record.curve);
    const high = cost > SLIGHT;
    const final = !running || found?.done === TEXTS; // more texts may move the cliff
    if (cliff !== undefined) {
      const far = cliff > LONGEST / 2;
      const soFar = final ? "" : ` so far (${found?.done ?? 0} of ${TEXTS} texts)`;
      below.rule({ x: cliff }, soFar ? "dashed faint" : "dashed");
      below.text(cliff, HIGHEST, `cliff at ${Math.round(cliff)}${soFar}`, soFar && "number halo", far ? "end" : "start", [far ? -6 : 6, 12]);
    } else if (final) below.text(x[1], HIGHEST, high ? "no cliff, but higher from the beginning" : "no cliff", "", "end", [0, 12]);
    stage.add("</g>");
    Object.assign(stage.drawn, { hands, scores });
    Object.assign(own, { axes: below, top });

    const hand = handsInWords(state, hands, score, [pull, other, unit]);
    const { bar } = record;
    const nats = (losses) => (bar + mean(losses.slice(0, 4 * TRAINED))).toFixed(2);
    const before = `As trained, the cliff is at position ${Math.round(was)}.`;
    if (step === ONE) return handInWords(hands[ALONE], Math.round(state.d));
    if (!changed) return `${hand} ${before}`;
    if (!running) return `${described(state)}: the model hasn't been asked about this yet. The curve is still the recorded one. ${before}`;
    if (!found) return `${described(state)}: the model is reading the first text. The curve in grey is the one before.`;
    const read = found.done ? `is the mean over ${found.done} of ${TEXTS} texts` : `shows the first ${FIRST} bytes of one text`;
    if (found.done < TEXTS) return `${described(state)}: so far, the curve ${read}.`;
    const within = Math.abs(cost) < 0.0005 ? "it doesn't change" : `it ${cost > 0 ? "rises" : "falls"} by ${Math.abs(cost).toFixed(3)} nats`;
    const finding = `${described(state)}: ${standing(cliff, was, high)}. ${hand}`;
    if (own.repeated) return finding;
    return `${finding} The mean loss over ${4 * TRAINED} bytes is ${nats(curve)} nats instead of ${nats(record.curve)}; over the first ${TRAINED} bytes, ${within}.`;
  },
  point: (x, y, state, own) => (y > own.top ? { d: Math.min(Math.round(LONGEST * own.axes.share(x)), LONGEST - 1) } : undefined),
};
