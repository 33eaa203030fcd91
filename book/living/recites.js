// The first page: models that were trained to count to twenty, on 64 letters at a time, go on until they lose their place.
import { listed } from "./draw.js";

const TRAINED = 64; // letters
const RACE = 2 * TRAINED;
const LONGEST = 4 * TRAINED;
const GIVEN = 24; // letters that a model is given before it writes
const HIDDEN = 54; // letters before the two lines of a phone, which begin after a comma and end with the race
const SLICE = 48; // letters
const SPEED = 12; // letters per second
const NAMES = {
  sinusoidal: "sinusoids", learned: "learned table", rope: "RoPE", alibi: "ALiBi", none: "no positions", t5: "T5's bias", shaw: "Shaw's offsets",
};
const beginning = (width) => (width < 480 ? HIDDEN + 1 : GIVEN);
const FOUR = ["sinusoidal", "learned", "rope", "alibi"];
// "slice" has no option: the story sets it, to show the four as chapter 17 repairs them.
const LANES = { four: FOUR, slice: FOUR, others: ["none", "t5", "shaw", "alibi"] };

const worn = ({ glasses }) => glasses.split(",").filter(Boolean);
const wearing = (state, lane) => worn(state).includes(LANES[state.lanes][lane]);
const changed = (all, name) => (all.includes(name) ? all.filter((other) => other !== name) : [...all, name]);

const glasses = (lane) => ({
  label: "Glasses", placed: true,
  told: ({ lanes }) => `Glasses for ${NAMES[LANES[lanes][lane]]}: it sees only the last ${TRAINED} letters`,
  pressed: (state) => wearing(state, lane),
  when: (state, own) => !own.moves || own.lost[lane],
  press(state, own) {
    const name = LANES[state.lanes][lane];
    own.begun = { [name]: performance.now() }; // it writes again what it wrote beyond the training length
    return { glasses: changed(worn(state), name).join() };
  },
});

/** @type {import("./element.js").Figure<{ length: number, lanes: string, glasses: string }>} */
export const figure = {
  label: "What four models write that were trained to count to twenty, and where they lose their place",
  needs: ["recited"],
  controls: {
    length: { label: "Letters", min: GIVEN, max: LONGEST, value: RACE },
    play: {
      label: "Go on", plays: "length", perSecond: SPEED, to: ({ length }) => (length < RACE ? RACE : LONGEST),
      named: ({ length }) => (length < LONGEST ? "Go on" : "Race again"),
    },
    ...Object.fromEntries([0, 1, 2, 3].map((lane) => [`glasses${lane}`, glasses(lane)])),
    lanes: { label: "Models", options: { four: "the four above", others: "three others and ALiBi" }, value: "four", more: true },
    glasses: { value: "", read: (text) => text.split(",").filter((name) => name in NAMES).join() },
  },
  enters: { plays: "length", from: beginning, to: RACE, perSecond: SPEED },
  draw(stage, state, own) {
    const { width } = stage;
    const { recited } = own.data;
    own.early ??= 5;
    const early = !own.still && !own.moves && own.early-- > 0;
    if (early) own.redraw();
    const length = early ? beginning(width) : state.length; // the first frames don't give its end away
    own.begun ??= {};
    const names = LANES[state.lanes];
    const narrow = width < 480;
    const row = narrow ? (RACE - HIDDEN) / 2 : TRAINED; // letters in a line, of which two are shown
    const size = Math.min(18, width / row / 0.6);
    const [high, step] = [1.55 * size, width / row];
    const correct = recited.numbers.repeat(4).slice(0, LONGEST);
    const comma = correct.indexOf(", ", HIDDEN - 2) + 2;
    const hidden = narrow && length > comma ? comma : 0;
    const first = Math.max(Math.ceil((length - hidden) / row) - 2, 0); // the line on top
    stage.drawn.texts = [];

    const found = names.map((name, lane) => {
      const near = wearing(state, lane);
      const sliced = state.lanes === "slice";
      const since = own.still || !(name in own.begun) ? Infinity : ((performance.now() - own.begun[name]) / 1000) * 2 * SPEED;
      const count = Math.min(length, TRAINED + Math.floor(since));
      if (count < length) own.redraw();
      const text = recited[sliced ? "sliced" : near ? "near" : "written"][name].slice(0, count);
      const wrong = Array.from(text).findIndex((letter, at) => letter !== correct[at]);
      stage.drawn.texts.push(text);

      const top = lane * (2 * high + 42);
      const [word, said] = wrong < 0 ? ["strong", `letter ${text.length}`] : ["strong lost", `first mistake: ${narrow ? "" : "letter "}${wrong + 1}`];
      stage.text(0, top + 20, NAMES[name], word, "start");
      stage.text(narrow ? 108 : 128, top + 20, said, wrong < 0 ? "number" : "lost", "start");
      stage.placed[`glasses${lane}`] = { right: 0, top: `${top + 1}px` };
      for (const line of [0, 1]) {
        const from = hidden + (first + line) * row;
        const y = top + 30 + line * high;
        const band = (begins, ends, color) => {
          const [a, b] = [Math.max(begins, from), Math.min(ends, from + row)];
          if (a < b) stage.add(`<rect class="band ${color}" x="${(a - from) * step}" y="${y}" width="${(b - a) * step}" height="${high}"/>`);
        };
        band(0, TRAINED, "");
        if (near || sliced) band(text.length - (sliced ? SLICE : TRAINED), text.length, "blue");
        const letters = Array.from(text.slice(from, from + row), (letter, column) => {
          const lost = wrong >= 0 && from + column >= wrong ? ' class="lost"' : "";
          if (letter === " " && !lost) return "";
          return `<tspan x="${((column + 0.5) * step).toFixed(1)}"${lost}>${letter === " " ? "␣" : letter}</tspan>`;
        });
        stage.add(`<text class="letters" style="font-size: ${size.toFixed(1)}px" y="${(y + 0.7 * high).toFixed(1)}">${letters.join("")}</text>`);
        if (wrong >= from && wrong < from + row) { // a second sign beside the colour
          stage.add(`<path class="rule lost" d="M${(wrong - from) * step} ${y}v${high}"/>`);
        }
      }
      return { name, near, wrong, written: text.length };
    });
    stage.height = Math.ceil(names.length * (2 * high + 42) - 8);
    own.lost = found.map(({ wrong }) => wrong >= 0);

    const told = (begins, some) => {
      if (!some.length) return "";
      const lost = some.filter(({ wrong }) => wrong >= 0).sort((a, b) => a.wrong - b.wrong).map(({ name, wrong }) => `${NAMES[name]} at letter ${wrong + 1}`);
      const kept = some.filter(({ wrong }) => wrong < 0);
      const none = kept.length && `${listed(kept.map(({ name }) => NAMES[name]))} none up to letter ${Math.min(...kept.map(({ written }) => written))}`;
      return `${begins}: ${[listed(lost), none].filter(Boolean).join("; ")}. `;
    };
    const [helped, plain] = [true, false].map((which) => found.filter(({ near }) => near === which));
    return told("First mistakes with glasses", helped) + told("First mistakes", plain);
  },
};
