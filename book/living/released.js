// Chapter 18: what a released model's loss does beyond its training length, in every setting that was measured.
import { mean, written } from "./draw.js";

const TRAINED = 8192; // tokens, the length in its file
const WIDTH = 256; // tokens in each point of a curve
const HIGH = 0.5; // nats: the cliff is where a curve first rises above this
const AT = Array.from({ length: 56 }, (_, n) => WIDTH * n + WIDTH / 2);
// In the order of the recorded curves.
const TOGETHER = ["22 and 23", "21 to 23", "22 to 24", "20 to 24", "20 to 31", "22 to 31", "24 to 31"];
const RECIPES = ["position interpolation", "NTK-aware scaling", "YaRN", "Llama 3’s recipe", "YaRN without its attention factor"];

const named = (names) => Object.fromEntries(names.map((name, at) => [`${at}`, name]));
const anySpeed = (pair) => pair >= 19 && pair <= 25; // these pairs ran at all speeds
const speedOf = ({ pair, speed }) => (anySpeed(pair) ? speed : "0.5");

// The curve of a setting, what it is called, and of how many texts it is the mean.
function chosen(state, { released, settings, singles, together, recipes }) {
  if (state.what === "together") return { curve: together[state.together], name: `Pairs ${TOGETHER[state.together]} at half their speed`, texts: 10 };
  if (state.what === "recipe") {
    const name = `${RECIPES[state.recipe]}, factor ${state.factor}`;
    return { curve: recipes[Number(state.recipe) + (state.factor === "4" ? RECIPES.length : 0)], name: name[0].toUpperCase() + name.slice(1), texts: 10 };
  }
  if (state.what === "pair") {
    const speed = Number(speedOf(state));
    const at = settings.findIndex(([pair, factor]) => pair === state.pair && factor === speed);
    const how = { 0: "stopped", 0.5: "at half its speed" }[speed] ?? `at ${speed} times its speed`;
    return { curve: singles[at], name: `Pair ${state.pair} ${how}`, texts: speed === 0.5 ? 10 : 4 };
  }
  return { curve: released[0], texts: 10 };
}

const from = (curve, token, last = token + 1023) => mean(curve.slice(token / WIDTH, (last + 1) / WIDTH));

function standing(curve) {
  if (from(curve, 0, 2047) > HIGH) return "the loss is higher from the beginning";
  const at = curve.findIndex((excess, n) => n >= TRAINED / WIDTH && excess > HIGH);
  return at < 0 ? `there is no cliff up to token ${written(WIDTH * curve.length)}` : `the cliff is at about token ${written(100 * Math.round((WIDTH * at) / 100))}`;
}

/** @type {import("./element.js").Figure<{ what: string, pair: number, speed: string, together: string, recipe: string, factor: string }>} */
export const figure = {
  label: "The loss of a released model beyond its training length",
  needs: ["{for}"],
  controls: {
    what: { label: "Changed", options: { released: "nothing", pair: "one pair", together: "several pairs", recipe: "a recipe" }, value: "released" },
    pair: { label: "Pair", min: 0, max: 31, step: 1, value: 22, put: (pair) => ({ pair, what: "pair" }), when: ({ what }) => what === "released" || what === "pair" },
    speed: {
      label: "Speed", options: { 0: "stopped", 0.25: "×1/4", 0.5: "×1/2", 0.75: "×3/4", 1.25: "×5/4", 1.5: "×3/2" }, value: "0.5",
      when: ({ what, pair }) => what === "pair" && anySpeed(pair),
    },
    together: { label: "Half as fast", options: named(TOGETHER), value: "0", when: ({ what }) => what === "together" },
    recipe: { label: "Recipe", options: named(RECIPES), value: "1", when: ({ what }) => what === "recipe" },
    factor: { label: "Factor", options: { 2: "2", 4: "4" }, value: "2", when: ({ what }) => what === "recipe" },
  },
  draw(stage, state, own) {
    const data = own.data["{for}"];
    const { curve, name, texts } = chosen(state, data);
    const plain = data.released[texts === 10 ? 0 : 1];
    const { width } = stage;
    const plot = stage.plot({ left: 0, top: 0, width, height: width < 480 ? 250 : 280 }, {
      x: [0, 14336], y: [-0.4, 4.2], xTicks: width < 480 ? [0, 4096, 8192, 12288] : [0, 2048, 4096, 6144, 8192, 10240, 12288, 14336], yTicks: [0, 1, 2, 3, 4],
      xLabel: "token", yLabel: own.repeated ? "harm done by what is far" : "excess, nats",
    });
    const beyond = TRAINED / WIDTH;
    plot.band(0, TRAINED);
    plot.rule({ y: 0 });
    plot.rule({ y: HIGH }, "dotted faint"); // where the cliff is measured
    plot.text(TRAINED / 2, 4.2, "training length", "number", "middle", [0, 12]);
    if (name) {
      plot.line(AT.slice(beyond), plain.slice(beyond), "dashed thin", false);
      plot.line(AT.slice(0, curve.length), curve, "green");
    } else plot.line(AT.slice(beyond), plain.slice(beyond), "green");

    const near = (losses) => `${written(from(losses, 11264), 2)} nats`;
    const record = `As released, ${standing(plain)}, and the excess from token 11,264 to 12,287 is ${near(plain)}`;
    if (own.repeated) return `${name ?? "As released"}: ${standing(curve)} (mean of ${texts === 10 ? "ten" : "four"} texts).`;
    if (!name) return `${record} (mean of ten texts).`;
    const cost = `In the first 2,048 tokens, the change costs ${written(from(curve, 0, 2047), 3)} nats.`;
    return `${name}: ${standing(curve)}, and the excess from token 11,264 to 12,287 is ${near(curve)}. ${cost} ${record} (means of ${texts === 10 ? "ten" : "the first four"} texts).`;
  },
};
