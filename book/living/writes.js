// Chapter 12: what a model with RoPE writes beyond its training length, with and without a window, beside a model with ALiBi.
import { LOOKS, run } from "./models.js";

const PROMPT = 32;
const SIZE = 256;
const FROM = 112; // where RoPE's loss begins to climb
const [ROPE, ALIBI] = [LOOKS.rope[1], LOOKS.alibi[1]];
const WRITERS = [ // as in the plain figure
  { name: "RoPE", color: ROPE, model: "text-rope-0" },
  { name: "RoPE, window of 64", color: ROPE, dash: "dotted", model: "text-rope-0", window: 64 },
  { name: "ALiBi", color: ALIBI, model: "text-alibi-0" },
];

// Each word that begins after the prompt, unless the text's end cuts it off: [begin, end, whether it's known].
function wordsOf(text, known) {
  const found = [...text.matchAll(/[A-Za-z]{3,}(?=[^A-Za-z])/g)].filter(({ index }) => index >= PROMPT);
  return found.map(({ 0: word, index }) => [index, index + word.length, known.has(word.toLowerCase())]);
}

async function write(own, key, { sample, temperature }) {
  const all = own.texts;
  const texts = all[key] = [];
  const words = living.load("data/words").then((known) => { own.known = new Set(known); });
  const prompt = promptOf(own, sample);
  await Promise.all([words, ...WRITERS.map(async ({ model, window }, at) => {
    const asked = { bytes: SIZE - PROMPT, temperature, seed: sample };
    const answer = await run({ model, window, texts: [prompt], write: asked, slot: `writes-${at}` });
    await words;
    if (!answer) delete all[key]; // a newer question replaced it
    else texts[at] = prompt + String.fromCharCode(...answer.each[0].written);
    own.redraw();
  })]);
}

/** @type {(own: import("./element.js").Own, sample: number) => string} */
const promptOf = ({ data: { windows } }, sample) => windows[(sample - 1) % windows.length].slice(0, PROMPT);

// One text, byte by byte on a grid, so that a byte's place in the grid shows its position.
function lay(stage, top, text, { name, color }, known) {
  const perRow = stage.width < 560 ? 32 : 64;
  const step = Math.min(9, stage.width / perRow);
  const x = (at) => (at % perRow) * step;
  const y = (at) => top + 40 + Math.floor(at / perRow) * 28;
  stage.text(0, top + 14, name, `${color} words`, "start");
  for (const at of [64, FROM]) {
    stage.add(`<path class="rule" d="M${x(at)} ${y(at) - 22}v28"/>`);
    stage.text(x(at) + 3, y(at) - 14, at, "number tiny", "start");
  }
  const words = wordsOf(text, known);
  const strange = words.filter(([, , is]) => !is);
  const pale = new Set(strange.flatMap(([begin, end]) => Array.from({ length: end - begin }, (_, i) => begin + i)));
  Array.from(text).forEach((sign, at) => {
    if (sign === " ") return;
    const names = `byte${at < PROMPT ? " given" : ""}${pale.has(at) || sign < " " ? " pale" : ""}`;
    stage.text(x(at) + step / 2, y(at), sign < " " ? "↵" : sign, names);
  });
  for (const at of pale) stage.add(`<path class="line thin pale" d="M${x(at)} ${y(at) - 4}h${step}"/>`);
  stage.height = y(SIZE - 1) + 10;
  return words;
}

/** @type {import("./element.js").Figure<{ sample: number, temperature: number }>} */
export const figure = {
  label: "What RoPE, RoPE with a window and ALiBi write, byte by byte, beyond the training length",
  needs: ["{for}", "windows"],
  controls: {
    sample: { label: "Prompt", min: 1, max: 32, value: 1 },
    temperature: { label: "Temperature", values: [0, 0.2, 0.4, 0.6, 0.8, 1], value: 0.6 },
    another: { label: "Another prompt", when: (_, own) => own.asked, press: ({ sample }) => ({ sample: sample % 32 + 1 }) },
  },
  asks: { label: "Let the models write (loads 470 kB)", only: true },
  draw(stage, { sample, temperature }, own) {
    const { shares } = own.data["{for}"];
    own.texts ??= {};
    const key = `${temperature}/${sample}`;
    if (own.asked && !own.texts[key]) own.wait(write(own, key, { sample, temperature }), () => { delete own.texts[key]; });
    const middles = shares[0].map((_, at) => PROMPT + 16 + 32 * at);
    const plot = stage.plot(
      { left: 0, top: 0, width: stage.width, height: 200, right: 16 },
      {
        x: [32, 256], xTicks: [32, 64, FROM, 160, 208, 256], xLabel: "byte at which the word begins",
        y: [0, 100], yTicks: [0, 50, 100], yLabel: "known words, %", title: "32 prompts, temperature 0.6",
      },
    );
    for (const at of [64, FROM]) plot.rule({ x: at });
    WRITERS.forEach(({ name, color, dash }, at) => {
      plot.line(middles, shares[at], `${color} ${dash ?? ""}`);
      plot.text(middles.at(-1), shares[at].at(-1), name, `${color} words`, "end", [8, at === 2 ? 22 : -8]);
    });

    if (!own.asked) {
      const [rope, windowed, alibi] = shares.map((row) => `${Math.round(row[3])} %`);
      return sample === 1 && temperature === 0.6
        ? `Over 32 prompts, of the words that begin at bytes 128 to 159, ${rope} are known with RoPE, `
          + `${windowed} with RoPE and the window, and ${alibi} with ALiBi.`
        : `The models haven't continued prompt ${sample} at temperature ${temperature} yet. `
          + "The button lets them write.";
    }
    const texts = own.texts[key];
    // Texts to come have their space already, so that nothing below jumps.
    const put = (writer, at) => lay(stage, stage.height + 12, texts?.[at] ?? promptOf(own, sample), writer, own.known);
    const counts = WRITERS.map(put);
    if (!WRITERS.every((_, at) => texts?.[at])) return `The models are continuing prompt ${sample}.`;
    const [rope, windowed, alibi] = counts.map((words) => {
      const far = words.filter(([begin]) => begin >= FROM);
      return `${far.filter(([, , is]) => is).length} of ${far.length}`;
    });
    return `From byte ${FROM} on after prompt ${sample}, ${rope} words are known with RoPE, ${windowed} with RoPE and the window, and ${alibi} with ALiBi. `
      + "The prompt is bold; words that are not among the 4,000 most frequent ones of the training text are struck out.";
  },
};
