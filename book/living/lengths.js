// Chapter 12: the small models beyond 64 bytes, each against ALiBi's, on the lab's texts as recorded or on one of the reader's.
import { listed, mean, written } from "./draw.js";
import { bytesOf } from "./models.js";

const TRAINED = 64; // bytes, the training length
const BIN = 32; // positions that a point is a mean over
const PATIENCE = 3000; // milliseconds for one text; where it takes longer, the recorded curves stay
const SIZES = { learned: 300 }; // kB that a model loads, where it isn't the others' 230
const SCHEMES = ["none", "normalized", "linear", "sinusoidal", "learned", "shaw", "t5", "rope", "alibi"]; // as in the package
const STYLES = { // the panel, the name and the look of each, as in the plain figure
  normalized: [0, "normalized", "sky"],
  linear: [0, "linear", "vermillion"],
  sinusoidal: [0, "sinusoidal", "blue"],
  learned: [0, "learned", "orange"],
  none: [1, "no position", "black dotted"],
  shaw: [1, "Shaw", "purple dashed"],
  t5: [1, "T5 bias", "sky dashed"],
  rope: [1, "RoPE", "green"],
};
const SAMPLE = `class Counter:
    """Counts words, and tells which are frequent."""

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

const binned = (losses) => Array.from({ length: Math.floor(losses.length / BIN) }, (_, b) => mean(losses.slice(b * BIN, (b + 1) * BIN)));
const shownOf = (state) => Object.keys(STYLES).filter((name) => state[name]);
const beside = (more) => `${Math.abs(more).toFixed(2)} nats ${more < 0 ? "below" : "above"}`;
const missing = (state, own) => ["alibi", ...shownOf(state)].filter((name) => !own.runs?.[name]);

// Asks the models that the reader has loaded for what isn't known yet; the newest text of each model wins.
async function ask(state, own) {
  const { run, drop } = await living.load("models");
  const ids = bytesOf(state.own).slice(0, 513);
  if (ids.length < 2) return;
  for (const scheme of ["alibi", ...shownOf(state)].filter((name) => own.runs[name])) {
    const window = state.masked && scheme !== "alibi" ? TRAINED : undefined;
    const text = scheme === "normalized" ? ids.slice(0, state.length + 1) : ids; // the others know nothing of what follows
    const key = JSON.stringify([ids, window, text.length]);
    if (own.asked[scheme] === key) continue;
    own.asked[scheme] = key;
    delete own.curves[scheme]; // of another text
    run({ model: `text-${scheme}-0`, texts: [text], window, slot: `lengths-${scheme}` }).then((result) => {
      if (!result) return;
      own.slow ||= result.ms > PATIENCE;
      if (own.slow) Object.keys(own.asked).forEach((name) => drop(`lengths-${name}`));
      const losses = Array.from(result.each[0].losses);
      own.known[scheme] = key;
      if (scheme === "alibi") own.base = losses; // asked first, so that it is there when the others come
      own.curves[scheme] = losses.map((loss, m) => loss - own.base[m]);
      if (Object.keys(own.asked).every((name) => own.known[name] === own.asked[name])) own.wait(); // to be spoken
      else own.redraw();
    }, (error) => {
      own.failed = error.message;
      own.asked = {};
      own.runs[scheme] = false;
      own.redraw();
    });
  }
}

export const figure = {
  label: "Loss of eight schemes beyond the training length, minus ALiBi's, by position",
  needs: ["{for}"],
  controls: {
    ...Object.fromEntries(Object.entries(STYLES).map(([name, [, label]]) => [name, { label, value: true, compact: true }])),
    length: { label: "Length", min: TRAINED, max: 512, step: BIN, value: 512, show: (value) => `${value} bytes` },
    text: { label: "Text", options: { lab: "32 texts of the lab", own: "a text of yours" }, value: "lab" },
    masked: { label: "Only the last 64 bytes in sight", value: false },
    own: { label: "Your text, at most 513 characters", value: SAMPLE, most: 513, rows: 8, when: ({ text }) => text === "own" },
    run: {
      label: "Run the models here",
      named: (state, own) => {
        const wanted = missing(state, own);
        const size = wanted.reduce((sum, name) => sum + (SIZES[name] ?? 230), 0);
        const models = wanted.length === 1 ? "the model" : wanted.length + " models";
        return `Run ${models} here (${size} kB)`;
      },
      when: (state, own) => state.text === "own" && !own.slow && missing(state, own).length > 0,
      press(state, own) {
        for (const name of missing(state, own)) own.runs[name] = true;
        own.failed = "";
        return {};
      },
    },
  },
  draw(stage, state, own) {
    for (const store of ["runs", "asked", "known", "curves"]) own[store] ??= {};
    const given = own.data["{for}"];
    const live = state.text === "own" && !own.slow;
    if (live) ask(state, own);
    const length = live ? Math.min(state.length, bytesOf(state.own).length - 1) : state.length;
    const recorded = given[state.masked ? "window" : "plain"];
    const curves = {};
    for (const name of shownOf(state)) {
      if (live) {
        if (own.curves[name]) curves[name] = binned(own.curves[name].slice(0, length));
      } else if (name !== "normalized" || length === 512) curves[name] = recorded[SCHEMES.indexOf(name)].slice(0, length / BIN);
    }

    const { width } = stage;
    const height = width < 480 ? 200 : 220;
    const all = Object.values(curves).flat(); // a single text scatters more than the lab's
    const [low, high] = [Math.min(-0.5, ...all), Math.max(1.6, ...all)];
    const yTicks = [low, 0, high].map((tick) => [tick, written(tick, 1)]);
    const middle = (_, b) => (b + 0.5) * BIN;
    [0, 1].forEach((panel) => {
      const plot = stage.plot({ left: 0, top: panel * height, width, height: height + 40 * panel, right: 92 }, {
        x: [0, 512], y: [low, high], xTicks: width < 480 ? [0, 64, 256, 512] : [0, 64, 128, 256, 384, 512], yTicks,
        xLabel: panel ? "position in the text" : "", yLabel: "nats above ALiBi",
      });
      plot.band(0, TRAINED);
      plot.rule({ y: 0 }, "faint");
      if (length < 512) plot.rule({ x: length }, "faint");
      const ends = [];
      for (const [name, curve] of Object.entries(curves)) {
        const [where, label, look] = STYLES[name];
        if (where !== panel || !curve.length) continue;
        plot.line(curve.map(middle), curve, look);
        ends.push([middle(0, curve.length - 1), curve.at(-1), label, `${look.split(" ")[0]} words`]);
      }
      plot.ends(ends);
    });

    const bytes = [...state.own].length;
    const unknown = [...state.own].filter((sign) => sign > "\x7f").length;
    const odd = live && unknown ? ` Characters outside ASCII that the models read as question marks: ${unknown}.` : "";
    const about = own.slow && state.text === "own" ? "This browser takes too long for the models, so these are the recorded curves. " : "";
    if (own.failed) return own.failed;
    if (live && bytes <= BIN) return `Your text has ${bytes} bytes: from ${BIN + 1} on there is something to see, and beyond ${TRAINED + BIN} the training length is passed.`;
    if (live && !Object.keys(curves).length) {
      return missing(state, own).length < 1 + shownOf(state).length ? "The models read your text." : `Run the models to see what they make of your ${bytes} bytes.${odd}`;
    }
    const last = Object.entries(curves).map(([name, curve]) => [STYLES[name][1], curve.at(-1)]).sort((a, b) => a[1] - b[1]);
    if (!last.length) return state.normalized ? "The normalized model was recorded at 512 bytes only." : "Choose a scheme to see its curve.";
    const end = Math.floor(length / BIN) * BIN;
    const where = `At positions ${end - BIN} to ${end - 1}${state.masked ? ", with only the last 64 bytes in sight," : ""}`;
    const [best, worst] = [last[0], last.at(-1)];
    const others = last.length > 1 ? `; ${worst[0]} is highest of these, ${beside(worst[1])} it` : "";
    const broken = last.filter(([, more]) => more > 0.75).map(([name]) => name);
    const cliff = broken.length > 1 ? ` More than three quarters of a nat above it: ${listed(broken)}.` : "";
    const level = live ? ` ALiBi's loss on your text is ${mean(own.base.slice(0, length)).toFixed(2)} nats per byte; on the lab's texts it is ${mean(given.alibi[0]).toFixed(2)}.${odd}` : "";
    const [wanted, done] = [shownOf(state).length, Object.keys(curves).length];
    const soFar = live && done < wanted ? ` (So far ${done} of ${wanted} models.)` : "";
    const note = !live && state.normalized && length < 512 ? " (The normalized model isn't shown: its losses were recorded at 512 bytes only.)" : "";
    return `${about}${where} ${best[0]} is ${last.length > 1 ? "lowest, " : ""}${beside(best[1])} ALiBi on the same bytes${others}.${cliff}${level}${note}${soFar}`;
  },
};
