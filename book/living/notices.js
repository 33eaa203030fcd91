// Chapter 17: the nine models read 64 bytes in order, but get different positions for them; which models notice?
import { mulberry32 } from "./decoder.js";
import { listed, mean, range, written } from "./draw.js";
import { SCHEMES, run } from "./models.js";

const LENGTH = 64;
const ROWS = 512; // of the learned table
const RECORDED = "With all positions moved by 1,000";
const MODELS = Object.entries(SCHEMES); // from top to bottom
const ORDER = range(LENGTH);

function shuffled(seed) {
  const random = mulberry32(seed);
  const left = [...ORDER];
  return ORDER.map(() => left.splice(Math.floor(random() * left.length), 1)[0]);
}

// The positions that the schemes are given, and their description.
/** @returns {[positions: number[], told: string]} */
function toldOf({ change, n, seed }) {
  if (change === "shuffled") return [shuffled(seed), `With the positions shuffled (shuffle ${seed})`];
  if (change === "backwards") return [[...ORDER].reverse(), "With positions that run backwards from 63 to 0"];
  if (change === "same") return [ORDER.map(() => 0), "With position 0 for every byte"];
  return [ORDER.map((m) => m + n), `With all positions moved by ${written(n)}`];
}

// Asks all nine models; each text's loss is compared with its loss at its own positions.
/** @param {import("./element.js").Own} own */
async function ask({ answers, data, redraw }, told, positions) {
  const found = answers[told] = { done: 0, by: {}, moved: {} };
  const texts = living.load("data/windows").then((all) => all.map((text) => text.slice(0, LENGTH + 1)));
  const { before } = data["{for}"];
  await Promise.all(MODELS.map(async ([name], row) => {
    if (name === "learned" && Math.max(...positions) >= ROWS) {
      found.by[name] = NaN;
      return;
    }
    /** @type {import("./models.js").Job} */
    const job = { model: `text-${name}-0`, texts, positions, slot: `told-${name}` };
    const part = ({ done, each }) => {
      const more = each.map(({ losses }, text) => mean([...losses]) - before[row][text]);
      found.by[name] = mean(before[row]) + mean(more);
      found.moved[name] = more.some((by) => Math.abs(by) > SAME); // though they may cancel in the mean
      found.done = done;
      redraw();
    };
    if (!await run(job, part)) delete answers[told]; // a newer question replaced it
  }));
}

const SAME = 5e-4; // nats: rounding is less

/** @type {import("./element.js").Figure<{ change: string, n: number, seed: number }>} */
export const figure = {
  label: "Loss of nine models that are given wrong positions for their bytes",
  needs: ["{for}"],
  controls: {
    change: {
      label: "Positions", value: "moved",
      options: { moved: "all moved", shuffled: "shuffled", backwards: "backwards", same: "all 0" },
    },
    n: {
      label: "Move all by", values: [1, 2, 5, 10, 20, 50, 100, 200, 448, 449, 1000, 2000, 5000, 10000], value: 1000,
      when: ({ change }) => change === "moved",
    },
    seed: { label: "", value: 1, read: (text) => Math.max(1, Math.floor(Number(text)) || 1) },
    again: { label: "Shuffle again", when: ({ change }) => change === "shuffled", press: ({ seed }) => ({ seed: seed + 1 }) },
  },
  asks: { label: "Ask the nine models (loads 2.1 MB)", always: true, only: true },
  draw(stage, state, own) {
    const { before, moved } = own.data["{for}"];
    const recorded = { by: Object.fromEntries(MODELS.map(([name], row) => [name, moved[0][row] || NaN])) };
    own.answers ??= { [RECORDED]: recorded };
    const [positions, told] = toldOf(state);
    if (own.asked && !own.answers[told]) own.wait(ask(own, told, positions), () => { delete own.answers[told]; });
    const found = own.answers[told] ?? { by: {} };
    own.last ??= recorded;
    if (found.done !== 0 && own.answers[told]) own.last = found; // stays in grey until there are others

    const names = stage.width < 480 ? 88 : 96;
    const high = 30;
    const plot = stage.plot(
      { left: names, top: 0, width: stage.width - names, height: MODELS.length * high + 48, right: 56 },
      { x: [1.7, 3.5], y: [MODELS.length - 0.5, -0.5], xTicks: [2, 2.5, 3, 3.5], xLabel: "loss, nats per byte" },
    );
    const [same, worse, none] = [[], [], []];
    MODELS.forEach(([name, [label, look]], row) => {
      const [color] = look.split(" ");
      const a = mean(before[row]);
      const b = found.by[name];
      stage.text(names - 6, plot.y(row) + 4, label, `${color} words`, "end");
      const by = b - a;
      const still = found.moved ? !found.moved[name] : Math.abs(by) < SAME;
      const shown = still ? "±0" : `${by < 0 ? "−" : "+"}${Math.abs(by).toFixed(Math.abs(by) < 0.01 ? 3 : 2)}`;
      if (b) plot.line([a, b], [row, row], `${color} thick`, false);
      plot.dots([a], [row], `${color} ring`, 6);
      if (b === undefined) {
        const old = own.last.by[name];
        if (old) plot.dots([old], [row], "old", 3.5, false);
        return;
      }
      if (Number.isNaN(b)) {
        plot.text(a, row, `no row ${written(Math.max(ROWS, positions[0]))}`, "", "start", [14, 4]);
        none.push(label);
        return;
      }
      plot.dots([b], [row], color, 3.5);
      plot.text(Math.max(a, b), row, shown, "number", "start", [12, 4]);
      if (shown !== "±0") worse.push(`${label} ${shown}`);
      else if (name === "none") same.push("the model without positions");
      else same.unshift(label);
    });
    if (!own.answers[told]) return "The models haven't been asked about these positions yet. The button asks them; the dots in grey are those before.";
    if (found.done === 0) return "The models are loading. The dots in grey are those before.";
    const all = before[0].length;
    const texts = found.done < all ? `means over ${found.done} of ${all} texts so far` : `means over ${all} texts`;
    const parts = [
      same.length && `nothing changes for ${listed(same)}.`,
      worse.length && `${same.length ? "The losses of the others" : "the losses"} change by this many nats per byte: ${listed(worse)}.`,
      none.length && `The learned table has no row beyond ${ROWS - 1}.`,
    ];
    return `${told} (${texts}), ${parts.filter(Boolean).join(" ")}`;
  },
};
