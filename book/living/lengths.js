// Chapter 12: the small models beyond 64 bytes, each against ALiBi's, on the recorded texts of the experiment or on a text of the reader's.
import { counted, listed, mean, written } from "./draw.js";
import { SCHEMES, bytesOf, drop, run } from "./models.js";

const TRAINED = 64; // bytes, the training length
const BIN = 8; // positions averaged in each point of a recorded curve
const SPAN = 32; // and of a curve on a single text, which scatters more; also those that the words below the figure speak of
const PATIENCE = 3000; // milliseconds for one text; where it takes longer, the recorded curves stay
const LINE = 15; // pixels from one name to the next
const SIZES = { learned: 300 }; // kB that a model loads, where it isn't the others' 230; as all sizes, compressed
const ROWS = ["none", "normalized", "linear", "sinusoidal", "learned", "shaw", "t5", "rope", "alibi"]; // of what is recorded
const NAMES = Object.keys(SCHEMES).filter((name) => name !== "alibi"); // whose curve is the line at 0
const LENGTHS = Array.from({ length: 15 }, (_, at) => TRAINED + SPAN * at);
const SAMPLE = `class Counter:
    """Counts words and lists the frequent ones."""

    def __init__(self):
        self.counts = {}

    def add(self, text):
        for word in text.lower().split():
            self.counts[word] = self.counts.get(word, 0) + 1

    def frequent(self, least=2):
        found = []
        for word, count in self.counts.items():
            if count >= least:
                found.append((count, word))
        return sorted(found, reverse=True)
`;

const binned = (losses) => Array.from({ length: Math.floor(losses.length / SPAN) }, (_, b) => mean(losses.slice(b * SPAN, (b + 1) * SPAN)));
const shownOf = (state) => NAMES.filter((name) => state[name]);
const called = (name) => (name === "none" ? "the model without positions" : SCHEMES[name][0]);
const beside = (more) => `${Math.abs(more).toFixed(2)} nats ${more < 0 ? "below" : "above"}`;
/** @type {(state: any, own: import("./element.js").Own) => string[]} */
const missing = (state, { asked, runs }) => [...new Set(["alibi", ...shownOf(state)])].filter((name) => !(asked && runs?.[name]));
const keyOf = ({ length }, scheme) => `${scheme} ${scheme === "normalized" ? length : ""}`;

// Asks the models that the reader has loaded for what isn't known yet: first the curve that all are compared with. own.found holds
// the losses on the reader's text, and null for those that are being computed.
function ask(state, own) {
  const ids = bytesOf(state.own).slice(0, 513);
  if (own.text !== state.own) Object.assign(own, { text: state.own, found: {} });
  if (ids.length < 2) return;
  const { found } = own;
  const jobs = [];
  for (const scheme of ["alibi", ...shownOf(state)]) {
    const key = keyOf(state, scheme);
    if (!own.runs[scheme] || key in found) continue;
    found[key] = null;
    const texts = [scheme === "normalized" ? ids.slice(0, state.length + 1) : ids]; // the others know nothing of what follows
    /** @type {import("./models.js").Job} */
    const job = { model: `text-${scheme}-0`, texts, slot: `lengths-${scheme}` };
    jobs.push(run(job, ({ each, ms }) => {
      found[key] = Array.from(each[0].losses);
      own.slow ||= ms > PATIENCE;
      if (own.slow) drop("lengths");
      own.redraw();
    }).finally(() => { if (!found[key]) delete found[key]; })); // a newer question replaced it, or it failed
  }
  if (jobs.length) own.wait(Promise.all(jobs));
}

/** Lines' names behind their right ends, each [x, y, name, class], moved apart where they would overlap. */
function nameEnds(stage, plot, names) {
  const sorted = names.map(([x, y, ...rest]) => ({ x: plot.x(x), y: plot.y(y), rest })).sort((a, b) => a.y - b.y);
  for (let round = 0; round < 50; round++) {
    for (let at = 1; at < sorted.length; at++) {
      const overlap = LINE - (sorted[at].y - sorted[at - 1].y);
      if (overlap <= 0) continue;
      sorted[at - 1].y -= overlap / 2;
      sorted[at].y += overlap / 2;
    }
  }
  for (const { x, y, rest: [name, look] } of sorted) stage.text(x + 6, y + 4, name, look, "start");
}

/** @type {import("./element.js").Figure<{ length: number, text: string, own: string, [scheme: string]: any }>} */
export const figure = {
  label: "Loss of the schemes beyond the training length, minus ALiBi's, by position",
  needs: ["{for}"],
  controls: {
    ...Object.fromEntries(NAMES.map((name) => [name, { label: SCHEMES[name][0], value: true, more: true }])),
    length: { label: "Length", min: TRAINED, max: 512, step: SPAN, value: 512, show: (value) => `${value} bytes` },
    text: { label: "Text", options: { lab: "32 recorded texts", own: "your own text" }, value: "lab", more: true },
    clear: { label: "Only ALiBi", more: true, press: () => Object.fromEntries(NAMES.map((name) => [name, false])) },
    all: { label: "All models", more: true, press: () => Object.fromEntries(NAMES.map((name) => [name, true])) },
    own: { label: "Your text, at most 513 characters", value: SAMPLE, most: 513, rows: 8, more: true, when: ({ text }) => text === "own" },
    run: {
      label: "Run the models here",
      named: (state, own) => {
        const wanted = missing(state, own);
        const size = wanted.reduce((sum, name) => sum + (SIZES[name] ?? 230), 0);
        const models = wanted.length === 1 ? "the model" : wanted.length + " models";
        return `Run ${models} here (loads ${size < 1000 ? size + " kB" : (size / 1000).toFixed(1) + " MB"})`;
      },
      when: (state, own) => state.text === "own" && !own.slow && missing(state, own).length > 0,
      press(state, own) {
        for (const name of missing(state, own)) own.runs[name] = true;
        own.asked = true;
      },
    },
  },
  draw(stage, state, own) {
    own.runs ??= {};
    const given = own.data["{for}"];
    const live = state.text === "own" && !own.slow;
    if (live && own.asked) ask(state, own);
    const length = live ? Math.min(state.length, bytesOf(state.own).length - 1) : state.length;
    const shown = shownOf(state);
    const base = own.found?.[keyOf(state, "alibi")];
    // By how much the scheme is above ALiBi, some positions at a time; undefined if it isn't known.
    const bin = live ? SPAN : BIN;
    const curveOf = (name) => {
      if (!live) return name !== "normalized" || length === 512 ? given.more[ROWS.indexOf(name)].slice(0, length / BIN) : undefined;
      const losses = base && own.found[keyOf(state, name)];
      return losses ? binned(losses.slice(0, length).map((loss, m) => loss - base[m])) : undefined;
    };
    const curves = Object.fromEntries(shown.map((name) => [name, curveOf(name)]).filter(([, curve]) => curve));

    const { width } = stage;
    const height = 180;
    const all = Object.values(curves).flat();
    const [low, high] = [Math.min(-0.5, ...all), Math.max(1.6, ...all)];
    const xTicks = width < 480 ? [0, 64, 256, 512] : [0, 64, 128, 256, 384, 512];
    const yTicks = [low, 0, high].map((tick) => [tick, written(tick, 1)]);
    const middle = (_, b) => (b + 0.5) * bin;
    [0, 1].forEach((panel) => {
      const plot = stage.plot({ left: 0, top: panel * height, width, height: height + 40 * panel, right: 92 }, {
        x: [0, 512], y: [low, high], xTicks: xTicks.map((tick) => [tick, panel ? `${tick}` : ""]), yTicks,
        xLabel: panel ? "position in the text" : "", yLabel: "nats above ALiBi",
      });
      plot.band(0, TRAINED);
      plot.rule({ y: 0 }, "faint");
      if (length < 512) plot.rule({ x: length }, "faint");
      if (panel) plot.handle("length", length, high, LENGTHS);
      const ends = [];
      for (const [name, curve] of Object.entries(curves)) {
        const [label, look] = SCHEMES[name];
        if ((NAMES.indexOf(name) < 4) === Boolean(panel) || !curve.length) continue;
        plot.line(curve.map(middle), curve, look);
        ends.push([middle(0, curve.length - 1), curve.at(-1), label, `${look.split(" ")[0]} words`]);
      }
      nameEnds(stage, plot, ends);
    });

    const bytes = [...state.own].length;
    const unknown = [...state.own].filter((sign) => sign > "\x7f").length;
    const odd = live && unknown ? ` The models read ${counted(unknown, "character")} outside ASCII as ${unknown > 1 ? "question marks" : "a question mark"}.` : "";
    const about = own.slow && state.text === "own" ? "This browser is too slow to run the models, so these are the recorded curves. " : "";
    if (live && bytes <= SPAN) return `Your text has ${counted(bytes, "byte")}. A curve needs at least ${SPAN + 1}, and it goes beyond the training length if there are more than ${TRAINED + SPAN}.`;
    if (!shown.length) return "Choose a scheme to see its curve.";
    if (live && !Object.keys(curves).length) {
      return own.asked && shown.some((name) => own.runs[name]) ? "The models are reading your text." : `Run the models to see what they make of your ${bytes} bytes.${odd}`;
    }
    /** @type {[name: string, more: number][]} */
    const means = Object.entries(curves).map(([name, curve]) => [called(name), mean(curve.slice(-SPAN / bin))]);
    const last = means.sort((a, b) => a[1] - b[1]);
    if (!last.length) return "The losses of the normalized model were recorded only at 512 bytes.";
    const end = Math.floor(length / SPAN) * SPAN;
    const where = `At positions ${end - SPAN} to ${end - 1}`;
    const [best, worst] = [last[0], last.at(-1)];
    const lowest = last.length > 1 ? `${best[0]} has the lowest loss, ` : `the loss of ${best[0]} is `;
    const others = last.length > 1 ? `. ${worst[0]} has the highest, ${beside(worst[1])} it` : "";
    const broken = last.filter(([, more]) => more > 0.75).map(([name]) => name);
    const cliff = broken.length > 1 ? ` The losses of ${listed(broken)} are more than three quarters of a nat above it.` : "";
    const level = live ? ` ALiBi's loss on your text is ${mean(base.slice(0, length)).toFixed(2)} nats per byte; on the recorded texts it is ${mean(given.alibi[0]).toFixed(2)}.${odd}` : "";
    const [wanted, done] = [shown.length, Object.keys(curves).length];
    const soFar = live && done < wanted ? ` (So far, ${done} of ${wanted} models have finished.)` : "";
    const note = !live && state.normalized && length < 512 ? " (The normalized model isn't shown: its losses were recorded only at 512 bytes.)" : "";
    return `${about}${where}, ${lowest}${beside(best[1])} ALiBi's on the same bytes${others}.${cliff}${level}${note}${soFar}`;
  },
};
