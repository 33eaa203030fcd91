// Chapter 18: how far a released model reads on beyond its training length, and in every changed setting that was measured. Each pair
// that is slowed down leaves a bar: the excess that's left.
import { clip, mean, range, written } from "./draw.js";

const TRAINED = 8192; // tokens, the length in its file
const WIDTH = 256; // tokens in each point of a curve
const LAST = 14336; // tokens that were read
const HIGH = 0.5; // nats: the cliff is where a curve first rises above this
const AT = range(LAST / WIDTH).map((n) => WIDTH * n + WIDTH / 2);
const LATE = [11264, 12287]; // tokens whose excess is the height of a bar
const PAIRS = 32;
const [NONE, PAIR] = ["none", "pair"];
// In the order of the recorded curves.
const TOGETHER = ["22 and 23", "21 to 23", "22 to 24", "20 to 24", "20 to 31", "22 to 31", "24 to 31"];
const RECIPES = ["Position interpolation", "NTK-aware scaling", "YaRN", "Llama 3’s recipe", "YaRN without its attention factor"];
const SETTINGS = [
  ...TOGETHER.map((pairs) => `Pairs ${pairs} at half their speed`),
  ...[2, 4].flatMap((factor) => RECIPES.map((name) => `${name}, factor ${factor}`)),
];

const triedOf = ({ tried }) => tried.split(".").filter(Boolean).map(Number);
const halved = ({ settings, singles }, pair) => singles[settings.findIndex(([one, speed]) => one === pair && speed === 0.5)];

// The curve of what is chosen, and what it is called.
function chosen({ what, pair }, data) {
  if (what === NONE) return [data.released[0]];
  if (what === PAIR) return [halved(data, pair), `Pair ${pair} at half its speed`];
  return [[...data.together, ...data.recipes][SETTINGS.indexOf(what)], what];
}

const from = (curve, first, last) => mean(curve.slice(first / WIDTH, (last + 1) / WIDTH));
const early = (curve) => from(curve, 0, 2047);
const cliffOf = (curve) => curve.findIndex((excess, n) => n >= TRAINED / WIDTH && excess > HIGH);

function standing(curve) {
  if (early(curve) > HIGH) return "the loss is higher from the beginning";
  const at = cliffOf(curve);
  return at < 0 ? `there is no cliff up to token ${written(WIDTH * curve.length)}` : `the cliff is at about token ${written(100 * Math.round((WIDTH * at) / 100))}`;
}

// A bar for each pair that has been slowed down alone, beside the height without any change.
function drawBars(stage, state, own) {
  const data = own.data["{for}"];
  const { width } = stage;
  const plot = stage.plot({ left: 0, top: 0, width, height: 128 }, {
    x: [-0.6, PAIRS - 0.4], y: [0, 2.4], xTicks: [0, 5, 10, 15, 20, 25, 31], yTicks: [0, 1, 2], yLabel: "left",
    title: `${own.repeated ? "harm" : "excess"} left if this pair has half its speed`,
  });
  const unchanged = from(data.released[0], ...LATE);
  if (state.read === LAST) plot.rule({ y: unchanged }, "dashed");
  for (const pair of range(PAIRS)) {
    const now = pair === state.pair && state.what === PAIR;
    const top = triedOf(state).includes(pair) ? from(halved(data, pair), ...LATE) : 0.06; // what isn't tried is only marked
    const color = top > 0.06 && top < unchanged / 2 ? "vermillion" : now ? "" : "old";
    stage.add(`<path class="dot ${color}" d="M${plot.x(pair - 0.38)} ${plot.y(0)}V${plot.y(top)}H${plot.x(pair + 0.38)}V${plot.y(0)}Z"/>`);
    if (now) plot.text(pair, Math.min(top, 2), `pair ${pair}`, "strong halo", "middle", [0, -5]);
  }
  own.bars = plot;
}

/** @type {import("./element.js").Figure<{ read: number, what: string, pair: number, tried: string }>} */
export const figure = {
  label: "The loss of a released model beyond its training length, as released and with some of its pairs slowed down",
  needs: ["{for}"],
  controls: {
    read: {
      label: "Read up to token", min: TRAINED, max: LAST, step: WIDTH, value: LAST, put: (read) => ({ read, what: NONE }),
      get: (state, own) => Math.min(state.read, WIDTH * chosen(state, own.data["{for}"])[0].length),
    },
    pair: { label: "Pair at half its speed", min: 0, max: PAIRS - 1, value: 0, put: (pair) => ({ pair, what: PAIR, read: LAST }) },
    tried: { value: "", read: (text) => (/^[\d.]*$/.test(text) ? text : undefined) },
    play: { label: "One pair after another", plays: "pair", perSecond: 4 },
    none: { label: "As released", press: () => ({ what: NONE }), pressed: ({ what }) => what === NONE },
    what: {
      label: "Setting", value: NONE, more: true, put: (what) => ({ what, read: LAST }),
      options: { [NONE]: "As released", [PAIR]: "One pair at half its speed", ...Object.fromEntries(SETTINGS.map((name) => [name, name])) },
    },
  },
  draw(stage, state, own) {
    if (own.moves === "pair") Object.assign(state, { what: PAIR, read: LAST });
    if (state.what === PAIR && !triedOf(state).includes(state.pair)) state.tried += `.${state.pair}`;
    const data = own.data["{for}"];
    const [curve, name] = chosen(state, data);
    const [plain] = data.released;
    const { width } = stage;
    drawBars(stage, state, own);
    const plot = stage.plot({ left: 0, top: 136, width, height: width < 480 ? 210 : 240 }, {
      x: [0, LAST], y: [-0.4, 4.2], xTicks: width < 480 ? [0, 4096, 8192, 12288] : range(8).map((at) => 2048 * at), yTicks: [0, 1, 2, 3, 4],
      xLabel: "token", yLabel: own.repeated ? "harm" : "excess, nats",
    });
    own.plot = plot;
    const [beyond, end] = [TRAINED / WIDTH, state.read / WIDTH];
    plot.band(0, TRAINED);
    plot.rule({ y: 0 });
    plot.text(TRAINED / 2, 4.2, "training length", "number", "middle", [0, 12]);
    const far = state.read === LAST;
    const at = far ? cliffOf(curve) : -1;
    if (at >= 0 && early(curve) < HIGH) {
      plot.rule({ x: WIDTH * at }, "dotted");
      plot.text(WIDTH * at, 4.2, "cliff", "", "end", [-6, 12]);
    }
    if (name) {
      plot.line(AT.slice(beyond), plain.slice(beyond), "dashed thin", false);
      plot.line(AT.slice(0, curve.length), curve, "green");
    } else plot.line(AT.slice(beyond, end), plain.slice(beyond, end), "green", far);
    if (!name) plot.handle("read", state.read, plain[end - 1], range(25).map((step) => TRAINED + WIDTH * step));

    const left = (one) => `${written(from(one, ...LATE), 2)} nats`;
    if (!far) return `Up to token ${written(state.read)}, ${plain.slice(0, end).some((excess) => excess > HIGH) ? standing(plain) : "there is no cliff"}.`;
    if (own.repeated) return `${name ?? "As released"}: ${standing(curve)} (mean of ten texts).`;
    if (!name) return `As released, ${standing(plain)}, and the excess from token 11,264 to 12,287 is ${left(plain)} (mean of ten texts).`;
    return `${name}: ${standing(curve)}, and the excess from token 11,264 to 12,287 is ${left(curve)} instead of ${left(plain)}. `
      + `In the first 2,048 tokens, the change costs ${written(early(curve), 3)} nats (means of ten texts).`;
  },
  point(x, y, { what }, { bars, plot }) {
    if (y > plot.top) return what === NONE ? { read: clip(WIDTH * Math.round((LAST * plot.share(x)) / WIDTH), TRAINED, LAST) } : undefined;
    return y > bars.bottom ? undefined : { pair: clip(Math.floor(bars.share(x) * PAIRS), 0, PAIRS - 1), what: PAIR, read: LAST };
  },
};
