// Chapter 12: the small models beyond 64 bytes, each against ALiBi's, on the texts of the experiment.
import { listed, mean, written } from "./draw.js";
import { LOOKS } from "./models.js";

const TRAINED = 64; // bytes, the training length
const BIN = 8; // positions averaged in each point of a curve
const SPAN = 32; // and those that the words below the figure speak of
const LINE = 15; // pixels from one name to the next
const ROWS = ["none", "normalized", "linear", "sinusoidal", "learned", "shaw", "t5", "rope", "alibi"]; // of what is recorded
const ADDED = ["linear", "normalized", "sinusoidal", "learned"]; // to the embedding
const NAMES = [...ADDED, "none", "shaw", "t5", "rope"]; // ALiBi's curve is the line at 0
const LENGTHS = Array.from({ length: 15 }, (_, at) => TRAINED + SPAN * at);

const shownOf = (state) => NAMES.filter((name) => state[name]);
const called = (name) => (name === "none" ? "the model without positions" : LOOKS[name][0]);
const beside = (more) => `${Math.abs(more).toFixed(2)} nats ${more < 0 ? "below" : "above"}`;

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

/** @type {import("./element.js").Figure<{ length: number, [scheme: string]: any }>} */
export const figure = {
  label: "Loss of the schemes beyond the training length, minus ALiBi's, by position",
  needs: ["{for}"],
  controls: {
    ...Object.fromEntries(NAMES.map((name) => [name, { label: LOOKS[name][0], value: true, more: true }])),
    length: { label: "Length", min: TRAINED, max: 512, step: SPAN, value: 512, show: (value) => `${value} bytes` },
    clear: { label: "Only ALiBi", more: true, press: () => Object.fromEntries(NAMES.map((name) => [name, false])) },
    all: { label: "All models", more: true, press: () => Object.fromEntries(NAMES.map((name) => [name, true])) },
  },
  draw(stage, state, own) {
    const given = own.data["{for}"];
    const { length } = state;
    const shown = shownOf(state).filter((name) => name !== "normalized" || length === 512); // whose losses hang on the length
    // By how much the scheme is above ALiBi, some positions at a time.
    const curves = Object.fromEntries(shown.map((name) => [name, given.more[ROWS.indexOf(name)].slice(0, length / BIN)]));

    const { width } = stage;
    const height = 180;
    const all = Object.values(curves).flat();
    const [low, high] = [Math.min(-0.5, ...all), Math.max(1.6, ...all)];
    const xTicks = width < 480 ? [0, 64, 256, 512] : [0, 64, 128, 256, 384, 512];
    const yTicks = [low, 0, high].map((tick) => [tick, written(tick, 1)]);
    const middle = (_, b) => (b + 0.5) * BIN;
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
        const [label, look] = LOOKS[name];
        if (ADDED.includes(name) === Boolean(panel)) continue;
        plot.line(curve.map(middle), curve, look);
        ends.push([middle(0, curve.length - 1), curve.at(-1), label, `${look.split(" ")[0]} words`]);
      }
      nameEnds(stage, plot, ends);
    });

    if (!shownOf(state).length) return "Choose a scheme to see its curve.";
    /** @type {[name: string, more: number][]} */
    const means = Object.entries(curves).map(([name, curve]) => [called(name), mean(curve.slice(-SPAN / BIN))]);
    const last = means.sort((a, b) => a[1] - b[1]);
    if (!last.length) return "The losses of the normalized model were recorded only at 512 bytes.";
    const end = Math.floor(length / SPAN) * SPAN;
    const where = `At positions ${end - SPAN} to ${end - 1}`;
    const [best, worst] = [last[0], last.at(-1)];
    const lowest = last.length > 1 ? `${best[0]} has the lowest loss, ` : `the loss of ${best[0]} is `;
    const others = last.length > 1 ? `. ${worst[0]} has the highest, ${beside(worst[1])} it` : "";
    const broken = last.filter(([, more]) => more > 0.75).map(([name]) => name);
    const cliff = broken.length > 1 ? ` The losses of ${listed(broken)} are more than three quarters of a nat above it.` : "";
    const note = state.normalized && length < 512 ? " (The normalized model isn't shown: its losses were recorded only at 512 bytes.)" : "";
    return `${where}, ${lowest}${beside(best[1])} ALiBi's on the same bytes${others}.${cliff}${note}`;
  },
};
