// The first page: models that were trained to count to twenty, on 64 letters at a time, continue until they lose their place.

const TRAINED = 64; // letters
const LONGEST = 256;
const GIVEN = 24; // letters that a model is given before it writes
const SCHEMES = {
  sinusoidal: "sinusoids", learned: "a learned table", rope: "RoPE", alibi: "ALiBi", shaw: "Shaw's offsets", t5: "T5's bias", none: "none",
};

// What a model writes when it starts from another number is computed here; what it writes from "one" on is recorded.
async function compute(key, scheme, begin, own) {
  own.key = key;
  const { run } = await living.load("models");
  const prompt = own.right(begin, GIVEN);
  const written = await run({ model: `recite-${scheme}-0`, texts: [prompt], write: { bytes: LONGEST - GIVEN }, slot: "recites" });
  if (written) own.found[key] = prompt + String.fromCharCode(...written.each[0].written);
}

export const figure = {
  label: "What a model that was trained to count to twenty writes",
  needs: ["recited"],
  controls: {
    length: { label: "Letters", min: GIVEN + 16, max: LONGEST, value: 2 * TRAINED },
    scheme: { label: "Positional encoding", options: SCHEMES, value: "sinusoidal" },
    begin: { label: "Start from number", min: 1, max: 20, value: 1, when: (state, own) => own.asked },
    run: { label: "Start from other numbers (loads 140 kB)", when: (state, own) => !own.asked, press(state, own) { Object.assign(own, { asked: true, key: "" }); } },
  },
  draw(stage, state, own) {
    const { numbers, written } = own.data.recited;
    own.found ??= {};
    own.right ??= (begin, count) => {
      const starts = [0, ...Array.from(numbers.matchAll(/, (?=.)/g), ({ index }) => index + 2)];
      return numbers.repeat(4).slice(starts[begin - 1]).slice(0, count);
    };
    const { length, scheme } = state;
    const begin = own.asked ? state.begin : 1;
    const key = `${scheme} ${begin}`;
    const all = own.asked ? own.found[key] : written[scheme];
    if (own.asked && !all && own.key !== key) own.wait(compute(key, scheme, begin, own));
    const text = (all ?? own.right(begin, GIVEN)).slice(0, length);
    const right = own.right(begin, length);
    const wrong = Array.from(text).findIndex((letter, at) => letter !== right[at]);
    const good = wrong < 0 ? text.length : wrong;

    const { width } = stage;
    const row = width < 480 ? 32 : TRAINED; // letters in a line
    const size = Math.min(18, width / row / 0.6);
    const high = 1.7 * size;
    const step = width / row;
    stage.drawn.texts = [text];
    stage.add(`<rect class="band" x="0" y="0" width="${width}" height="${(TRAINED / row) * high}"/>`);
    for (let at = 0; at < text.length; at += row) {
      const line = Array.from(text.slice(at, at + row), (letter, column) => {
        const lost = at + column >= good ? ' class="lost"' : "";
        if (letter === " " && !lost) return "";
        return `<tspan x="${((column + 0.5) * step).toFixed(1)}"${lost}>${letter === " " ? "␣" : letter}</tspan>`;
      });
      stage.add(`<text class="letters" style="font-size: ${size.toFixed(1)}px" y="${((at / row + 0.68) * high).toFixed(1)}">${line.join("")}</text>`);
    }
    stage.add(`<path class="rule" d="M0 ${0.93 * high}H${GIVEN * step}"/>`);
    if (wrong >= 0) { // a second sign beside the colour
      const [x, y] = [(good % row) * step, Math.floor(good / row) * high];
      stage.add(`<path class="rule vermillion" d="M${x} ${y + 0.1 * high}v${0.85 * high}"/>`);
    }
    stage.height = Math.ceil(LONGEST / row) * high; // as for the longest, so that nothing below jumps

    if (!all) return "The model is loading.";
    const name = scheme === "none" ? "Without positions" : `With ${SCHEMES[scheme]}`;
    const trained = `It was trained on ${TRAINED} letters at a time (grey). Here, it was given the first ${GIVEN} (underlined).`;
    return wrong < 0
      ? `${name}, the model counts to letter ${length} without a mistake. ${trained}`
      : `${name}, the model writes up to letter ${length}, and its first mistake is at letter ${good + 1}. ${trained}`;
  },
};
