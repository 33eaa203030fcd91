// Chapter 1: two sentences with the same words in a decoder without positions. Layer by layer, and token by token, it shows which
// vectors differ between the two.
import { clip, listed } from "./draw.js";

const SENTENCES = [["John", "likes", "Jane", "."], ["Jane", "likes", "John", "."]];
const COUNT = SENTENCES[0].length;
const LAYERS = 2;
const LEVELS = ["words", "layer 1", "layer 2"];
const SAME = 0.005; // in two digits, it's 0.00
const tokens = [...SENTENCES[0].keys()];
const layerOf = (at) => Math.ceil(at / COUNT);
const tokenOf = (at) => (at - 1) % COUNT;
const named = (word) => (word === "." ? "the full stop" : `“${word}”`);

/** @type {import("./element.js").Figure<{ mask: string, at: number }>} */
export const figure = {
  label: "Two sentences in two layers of attention, and the vectors that differ between them",
  needs: ["{for}"],
  controls: {
    mask: { label: "Mask", options: { decoder: "causal", encoder: "none" }, value: "decoder" },
    at: { label: "Computed so far", min: 1, max: LAYERS * COUNT, value: LAYERS * COUNT, show: (at) => `layer ${layerOf(at)}, position ${tokenOf(at)}` },
    play: { label: "Play", plays: "at", perSecond: 1.5 },
  },
  enters: { plays: "at", from: () => 1, to: LAYERS * COUNT, perSecond: 1.5 },
  draw(stage, { mask, at }, own) {
    const differs = own.data["{for}"][mask]; // of the first sentence's words
    const by = (word, level) => differs[level][SENTENCES[0].indexOf(word)];
    const seen = (token) => tokens.slice(0, mask === "decoder" ? token + 1 : COUNT);
    const [layer, token] = [layerOf(at), tokenOf(at)];
    const { width } = stage;
    const columns = width < 340 ? 1 : 2;
    const wide = Math.min((width - 46 - 14 * (columns - 1)) / columns, 300);
    const edge = (width - 46 - columns * wide - 14 * (columns - 1)) / 2;

    SENTENCES.forEach((words, which) => {
      const [left, top] = columns > 1 ? [edge + 46 + which * (wide + 14), 0] : [edge + 46, 262 * which];
      const plot = stage.plot({ left, top, width: wide, height: 262, right: 0 }, {
        x: [-0.5, COUNT - 0.5], y: [-0.35, LAYERS + 0.3], title: `${which ? "second" : "first"} sentence`,
      });
      if (columns === 1 || !which) LEVELS.forEach((name, level) => stage.text(edge, plot.y(level) + 4, name, "number", "start"));
      const nodes = LEVELS.flatMap((_, level) => tokens.map((t) => [t, level]));
      /** @type {(node: number[]) => boolean} */
      const known = ([t, level]) => COUNT * (level - 1) + t < at;
      /** @type {(node: number[]) => boolean} */
      const off = ([t, level]) => by(words[t], level) > SAME;
      for (const [t, level] of nodes.filter((node) => node[1] && known(node))) {
        const chosen = t === token && level === layer;
        for (const other of seen(t)) {
          const color = off([other, level - 1]) ? "vermillion" : "blue";
          plot.line([other, t], [level - 1, level], chosen ? color : "thin faint", false);
        }
      }
      const put = (some, names, kept) => some.length && plot.dots(some.map(([t]) => t), some.map(([, level]) => level), names, 8, kept);
      put(nodes.filter((node) => !known(node)), "hollow faint", false);
      put(nodes.filter((node) => known(node) && off(node)), "vermillion");
      put(nodes.filter((node) => known(node) && !off(node)), "blue hollow");
      for (const [t, level] of nodes.filter((node) => node[1] && known(node))) {
        plot.text(t, level, by(words[t], level).toFixed(2), "number halo", "middle", [0, -14]);
      }
      words.forEach((word, t) => plot.text(t, 0, word, t === token ? "strong" : "", "middle", [0, 26]));
      stage.handle(`at${which}`, plot.x(token), plot.y(layer), (x, y) => {
        const [column, row] = [(x - plot.x(0)) / (plot.x(1) - plot.x(0)), (y - plot.y(0)) / (plot.y(1) - plot.y(0))];
        const inside = (value, low, high) => clip(Math.round(value), low, high);
        return { at: COUNT * (inside(row, 1, LAYERS) - 1) + inside(column, 0, COUNT - 1) + 1 };
      });
    });
    stage.text(width / 2, stage.height + 14, "filled: the two vectors differ, by this much", "number");
    stage.height += 20;

    const looked = SENTENCES.map((words) => seen(token).map((t) => words[t]));
    const [one, other] = looked.map((words) => listed(words.map(named)));
    const looks = one === other ? `${one} in both sentences` : `${one} in the first sentence, and at ${other} in the second`;
    const alike = [...looked[0]].sort().join() === [...looked[1]].sort().join();
    const found = [...new Set(SENTENCES.map((words) => words[token]))].map((word) => [named(word), by(word, layer)]);
    const many = found.length > 1;
    const differ = found.map(([name, off]) => `the vector of ${name} differs by up to ${off.toFixed(2)}`);
    const verdict = found.every(([, off]) => off <= SAME)
      ? `the vector${many ? "s" : ""} of ${listed(found.map(([name]) => name))} ${many ? "are" : "is"} the same`
      : listed(differ);
    const why = alike && found[0][1] > SAME ? " Some of the vectors that it looks at already differ." : "";
    return `Between the two sentences, ${verdict}. In layer ${layer}, position ${token} looks at ${looks}.${why}`;
  },
};
