// Chapter 1: the attention weights of a sentence and of its words in a different order, with and without positions.
import { clip, escaped, shade } from "./draw.js";
import { alibiSlopes, applyRope, frequencies, ropeTables, sinusoidalTable } from "./formulas.js";

const SENTENCE = "only who can prevent forest fires";
const MOST = 8; // words
const LETTERS = 8; // of a word, beside its row
const WIDTH = 4; // numbers per word, per query and per key
const SLOPE = alibiSlopes(8)[0]; // the steepest of eight heads
const SLIDE = 400; // milliseconds, in which words come to their places
const ROUNDING = 1e-9; // a sum in another order may differ in its last digits
const DOORS = {
  none: "nowhere",
  sinusoidal: "embedding",
  rope: "query and key",
  alibi: "score",
};
const WITH = { none: "", sinusoidal: "with sinusoids; ", rope: "with RoPE; ", alibi: "with ALiBi; " };

/** The words of the reader's sentence, or of ours as long as there aren't two. */
function wordsOf({ text }) {
  const words = text.split(/\s+/).filter(Boolean).slice(0, MOST);
  return words.length > 1 ? words : SENTENCE.split(" ");
}

/** Four random numbers, always the same ones for a word: what a model has before it's trained. */
function vectorOf(word) {
  let seed = Array.from(word).reduce((sum, letter) => (sum * 1021 + letter.codePointAt(0)) % 2147483647, 1);
  const random = () => (seed = following(seed)) / 2147483647;
  return Array.from({ length: WIDTH }, () => Math.sqrt(-2 * Math.log(random())) * Math.cos(2 * Math.PI * random()));
}

/** Row by row, how much attention each word pays to each, in the given order. */
function weights(order, door, X, { W_q, W_k }) {
  const positions = [...order.keys()];
  const table = sinusoidalTable(positions, WIDTH);
  const { cos, sin } = ropeTables(positions, frequencies(WIDTH));
  const x = order.map((word, m) => X[word].map((number, c) => number + (door === "sinusoidal" ? table[m][c] : 0)));
  const projected = (W) => x.map((row, m) => {
    const vector = W[0].map((_, c) => row.reduce((sum, number, r) => sum + number * W[r][c], 0));
    return door === "rope" ? applyRope(vector, cos[m], sin[m]) : vector;
  });
  const keys = projected(W_k);
  return projected(W_q).map((q, m) => {
    const powers = keys.map((k, n) => {
      const score = k.reduce((sum, number, c) => sum + number * q[c], 0) / Math.sqrt(WIDTH);
      return Math.exp(score - (door === "alibi" ? SLOPE * Math.abs(m - n) : 0));
    });
    const sum = powers.reduce((a, b) => a + b);
    return powers.map((power) => power / sum);
  });
}

/** The next of a sequence of random whole numbers below 2147483647. */
const following = (seed) => (seed * 48271) % 2147483647;
const inkOn = (weight) => (weight < 0.5 ? "on-dark" : "on-light");

/** The order in which a word was moved last; that of the sentence itself for one of another length. */
const orderOf = (state) => {
  const first = [...wordsOf(state).keys()];
  return state.order.length === first.length ? Array.from(state.order, Number) : first;
};

/** The second sentence: its words in that order, and then one of them moved. */
function moved(state) {
  const rest = orderOf(state).filter((other) => other !== state.word - 1);
  return [...rest.slice(0, state.to), state.word - 1, ...rest.slice(state.to)];
}

const into = (order, word) => ({ order: order.join(""), to: order.indexOf(word - 1) });

/** Where the words are on their way to this order. */
function placed(order, own) {
  const to = order.map((_, token) => order.indexOf(token));
  if (own.to?.join() !== to.join()) {
    const from = own.still || own.at?.length !== to.length ? to : own.at;
    Object.assign(own, { to, from, since: performance.now() });
  }
  const part = Math.min((performance.now() - own.since) / SLIDE, 1);
  own.at = to.map((place, token) => own.from[token] + (place - own.from[token]) * part * (2 - part));
  if (part < 1) own.redraw();
  return own.at;
}

/** The next of a fixed sequence of shuffles. */
function shuffled(order, own) {
  for (let last = order.length - 1; last > 0; last--) {
    own.seed = following(own.seed ?? 8);
    const other = own.seed % (last + 1);
    [order[last], order[other]] = [order[other], order[last]];
  }
  return order;
}

/** @type {import("./element.js").Figure<{ word: number, to: number, door: string, text: string, order: string }>} */
export const figure = {
  label: "Attention weights of a sentence, and of the same words in another order",
  needs: ["{for}"],
  controls: {
    text: { label: "Your own sentence, at most eight words", value: SENTENCE, most: 70, put: (text) => ({ text, word: 1, to: wordsOf({ text }).length - 1, order: "" }) },
    word: { label: "Word to move", min: 1, max: (state) => wordsOf(state).length, value: 1, show: (word, state) => wordsOf(state)[word - 1] },
    to: { label: "Its new position", min: 0, max: (state) => wordsOf(state).length - 1, value: 5 },
    door: { label: "Position enters at", value: "none", options: DOORS },
    order: { value: "", read: (text) => ([...text].sort().every((sign, at) => sign === `${at}`) ? text : undefined) },
    shuffle: { label: "Shuffle", press: (state, own) => into(shuffled([...wordsOf(state).keys()], own), state.word) },
    mirror: { label: "Read backwards", press: (state) => into([...wordsOf(state).keys()].reverse(), state.word) },
  },
  enters: { plays: "to", from: () => 0, perSecond: 2 },
  draw(stage, state, own) {
    const { door } = state;
    const words = wordsOf(state);
    const count = words.length;
    const chosen = state.word - 1;
    const first = [...words.keys()];
    const order = moved(state);
    const orders = [first, order];
    const given = own.data["{for}"];
    const X = words.join(" ") === SENTENCE ? given.X : words.map(vectorOf);
    const [before, after] = orders.map((one) => weights(one, door, X, given));
    const place = (token) => order.indexOf(token);
    const places = [first, placed(order, own)];
    const change = (q, k) => Math.abs(after[place(q)][place(k)] - before[q][k]);
    const pairs = first.flatMap((q) => first.map((k) => [q, k]));
    const most = pairs.reduce((one, other) => (change(...other) > change(...one) ? other : one));
    const changed = change(...most) > ROUNDING;
    const [q, k] = changed ? most : [chosen, before[chosen].indexOf(Math.max(...before[chosen]))];

    const columns = stage.width < 310 ? 1 : 2;
    const side = Math.min((stage.width - 140) / columns, 240);
    const cell = side / count;
    const edge = (stage.width - columns * (side + 16) + 16) / 2;
    const grids = [before, after].map((rows, at) => {
      const [left, top] = columns === 2 ? [edge + at * (side + 16), 0] : [edge, at * (side + 90)];
      const plot = stage.plot({ left, top, width: side, height: side + 30, right: 0 }, {
        x: [-0.5, count - 0.5], y: [count - 0.5, -0.5], title: `${at ? "second" : "first"} sentence`,
      });
      stage.drawn.images.push(rows);
      rows.forEach((row, query) => {
        const word = words[orders[at][query]];
        const m = places[at][orders[at][query]];
        const name = word.length > LETTERS ? `${word.slice(0, LETTERS - 1)}…` : word;
        const color = orders[at][query] === chosen ? "orange words" : "";
        plot.text(at ? count - 0.5 : -0.5, m, name, color, at ? "start" : "end", [at ? 6 : -6, 4]);
        const turned = `translate(${plot.x(m) + 4} ${plot.bottom + 6}) rotate(-90)`;
        stage.add(`<text class="${color}" transform="${turned}" text-anchor="end">${escaped(name)}</text>`);
        row.forEach((weight, key) => {
          const n = places[at][orders[at][key]];
          stage.add(`<rect x="${plot.x(n - 0.5)}" y="${plot.y(m - 0.5)}" width="${cell + 0.5}" height="${cell + 0.5}" fill="rgb(${shade(weight)})"/>`);
          if (cell >= 30) plot.text(n, m, weight.toFixed(2), inkOn(weight), "middle", [0, 4]);
        });
      });
      const [m, row, column] = [chosen, q, k].map((token) => places[at][token]);
      const [x, y] = [plot.x(m - 0.5), plot.y(m - 0.5)];
      stage.add(`<rect class="line orange" x="${plot.left}" y="${y}" width="${side}" height="${cell}"/>`);
      stage.add(`<rect class="line orange" x="${x}" y="${plot.top}" width="${cell}" height="${side}"/>`);
      if (changed) {
        const ring = `cx="${plot.x(column)}" cy="${plot.y(row)}" r="${cell / 2 - 2}"`;
        stage.add(`<circle class="line ${inkOn([before[q][k], after[place(q)][place(k)]][at])}" ${ring}/>`);
      }
      if (at) { // the word in its row, up and down
        stage.handle("to", plot.left - 8, plot.y(place(chosen)), (_, to) => ({ to: clip(Math.floor((to - plot.top) / cell), 0, count - 1) }));
      }
      return plot;
    });
    const below = grids[1].bottom + 76;
    const axes = stage.width < 480 ? "rows: queries, columns: keys" : "rows: the words that look (queries), columns: what they look at (keys)";
    stage.text(stage.width / 2, below, `${WITH[door]}${axes}`);
    const scale = stage.plot(
      { left: stage.width / 2 - 60, top: below + 8, width: 120, height: 24, right: 0 }, { x: [0, 1], y: [0, 1] },
    );
    scale.heat([Array.from({ length: 60 }, (_, at) => at / 59)], [0, 1], false);
    scale.text(0, 0, "weight 0", "number", "end", [-6, -2]);
    scale.text(1, 0, "1", "number", "start", [6, -2]);

    const sentence = `“${order.map((token) => words[token]).join(" ")}”`;
    if (order.join() === first.join()) return `${sentence}: so far, both sentences have the same word order.`;
    const [one, other] = [before[q][k], after[place(q)][place(k)]].map((weight) => weight.toFixed(3));
    const heard = q === k ? "itself" : `“${words[k]}”`;
    const where = change(q, k) > ROUNDING ? `the first sentence and ${other} in the second` : "both sentences";
    const both = `“${words[q]}” gives ${heard} a weight of ${one} in ${where}`;
    const [verdict, said] = changed
      ? ["the order makes a difference", `The largest change in a weight is ${change(...most).toFixed(3)}: `]
      : ["the weights have moved with their words, and none has changed", door === "alibi" ? "All distances are the same in reverse: " : "For example, "];
    return `${sentence}: ${verdict}. ${said}${both}.`;
  },
};
