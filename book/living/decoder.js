// The package's decoder with RoPE or ALiBi: it runs the weights that the book trained, as they are stored. Sums are taken in double
// precision and kept in single. Nothing here touches the page, so that a worker can run it.
import { alibiSlopes, applyRope, ropeTables } from "./formulas.js";

/** @typedef {import("./formulas.js").Numbers} Numbers */
/** @typedef {{ name: string, frequencies?: Numbers }} Scheme */
/** @typedef {{ config: { num_heads: number }, scheme: Scheme, shapes: Record<string, number[]>, weights: string }} Stored weights in base64 */
/** @typedef {ReturnType<typeof unpackModel>} Model */
/** @typedef {[numbers: Numbers, first: number, apart: number]} Rows numbers, where the first row stands, how far apart rows stand */

/** float16, little-endian, in base64 -> Float32Array; every value is exact, those too small for the exponent included.
 *  @param {string} base64 */
function unpackHalf(base64) {
  const bytes = atob(base64);
  const numbers = new Float32Array(bytes.length / 2);
  for (let i = 0; i < numbers.length; i++) {
    const bits = bytes.charCodeAt(2 * i) | bytes.charCodeAt(2 * i + 1) << 8;
    const exponent = bits >> 10 & 31;
    const fraction = bits & 1023;
    const size = exponent ? (1024 + fraction) * 2 ** (exponent - 25) : fraction * 2 ** -24;
    numbers[i] = bits >> 15 ? -size : size;
  }
  return numbers;
}

/** A stored model made ready: the sizes and each array.
 *  @param {Stored} stored */
export function unpackModel({ config, scheme, shapes, weights }) {
  const numbers = unpackHalf(weights);
  /** @type {Record<string, Float32Array>} */
  const arrays = {};
  let at = 0;
  for (const [name, shape] of Object.entries(shapes)) {
    const size = shape.reduce((a, b) => a * b, 1);
    arrays[name] = numbers.subarray(at, at += size);
  }
  const [, width] = shapes["embedding.weight"];
  const layers = Object.keys(shapes).filter((name) => name.endsWith(".attention.query.weight")).length;
  return { scheme, arrays, width, layers, hidden: shapes["blocks.0.mlp.0.weight"][0], heads: config.num_heads };
}

/** y[r, c] = Σ_i x[r, i] · w[c, i] for `rows` of x and `columns` rows of w, of n numbers each. Four sums at a time stay in the
 *  processor's registers; at the end some are taken twice. Each is taken in the order of i, so that a token alone gives what it
 *  gives among others.
 *  @type {(x: Rows, rows: number, w: Rows, columns: number, n: number, y: Rows) => void} */
function multiply([x, xAt, xStep], rows, [w, wAt, wStep], columns, n, [y, yAt, yStep]) {
  for (let r = 0; r < rows; r++) {
    const from = xAt + r * xStep;
    const to = yAt + r * yStep;
    for (let c = 0; c < columns; c += 4) {
      const c1 = Math.min(c + 1, columns - 1);
      const c2 = Math.min(c + 2, columns - 1);
      const c3 = Math.min(c + 3, columns - 1);
      const w0 = wAt + c * wStep;
      const w1 = wAt + c1 * wStep;
      const w2 = wAt + c2 * wStep;
      const w3 = wAt + c3 * wStep;
      let s0 = 0, s1 = 0, s2 = 0, s3 = 0;
      for (let i = 0; i < n; i++) {
        const number = x[from + i];
        s0 += number * w[w0 + i];
        s1 += number * w[w1 + i];
        s2 += number * w[w2 + i];
        s3 += number * w[w3 + i];
      }
      y[to + c] = s0;
      y[to + c1] = s1;
      y[to + c2] = s2;
      y[to + c3] = s3;
    }
  }
}

/** Each row of x, brought to mean 0 and variance 1, times weight plus bias.
 *  @type {(x: Numbers, weight: Numbers, bias: Numbers, y: Numbers) => void} */
function layerNorm(x, weight, bias, y) {
  const width = weight.length;
  for (let at = 0; at < x.length; at += width) {
    let mean = 0;
    for (let i = 0; i < width; i++) mean += x[at + i];
    mean /= width;
    let variance = 0;
    for (let i = 0; i < width; i++) variance += (x[at + i] - mean) ** 2;
    const scale = 1 / Math.sqrt(variance / width + 1e-5);
    for (let i = 0; i < width; i++) y[at + i] = (x[at + i] - mean) * scale * weight[i] + bias[i];
  }
}

// x·Φ(x), the exact GELU, to 2·10⁻⁷: by Abramowitz and Stegun, 7.1.26.
function gelu(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x) * Math.SQRT1_2);
  const fits = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
  const rest = fits * Math.exp(-x * x / 2) / 2; // 1 - Φ(|x|)
  return x > 0 ? x - x * rest : x * rest;
}

// One sequence under way: `extend` takes the next tokens and keeps their keys and values, so that tokens one by one give
// exactly the numbers of one pass.
export class Decoding {
  /** changes: what is different from the trained scheme; window: how many keys a query sees, itself included; capacity: how many
   *  tokens there may be.
   *  @param {Model} model @param {{ changes?: Partial<Scheme>, window?: number, capacity?: number }} [options] */
  constructor(model, { changes = {}, window = Infinity, capacity = 512 } = {}) {
    this.model = model;
    this.window = window;
    this.capacity = capacity;
    this.length = 0;
    this.scheme = { ...model.scheme, ...changes };
    this.slopes = this.scheme.name === "alibi" ? alibiSlopes(model.heads) : null;
    const store = () => Array.from({ length: model.layers }, () => new Float32Array(capacity * model.width));
    this.keys = store(); // (capacity, width), rotated
    this.values = store(); // (width, capacity), so that they are mixed along rows
  }

  /** The scores of the next byte after each of these tokens, (tokens, vocabulary).
   *  @param {number[]} tokens */
  extend(tokens) {
    const { model, scheme, length: start } = this;
    const { arrays, width, hidden } = model;
    const count = tokens.length;
    const positions = tokens.map((_, t) => start + t);
    const x = new Float32Array(count * width);
    tokens.forEach((token, t) => x.set(arrays["embedding.weight"].subarray(token * width, (token + 1) * width), t * width));
    const turns = scheme.name === "rope" ? ropeTables(positions, scheme.frequencies) : null;
    const y = new Float32Array(count * width);
    const mixed = new Float32Array(count * width);
    const wide = new Float32Array(count * hidden);
    for (let layer = 0; layer < model.layers; layer++) {
      /** @type {(name: string) => Float32Array} */
      const of = (name) => arrays[`blocks.${layer}.${name}`];
      /** @type {(from: Numbers, inner: number, name: string, outer: number, to: Numbers) => void} */
      const times = (from, inner, name, outer, to) => {
        multiply([from, 0, inner], count, [of(`${name}.weight`), 0, inner], outer, inner, [to, 0, outer]);
      };
      layerNorm(x, of("attention_norm.weight"), of("attention_norm.bias"), y);
      times(y, width, "attention.query", width, wide);
      const keys = this.keys[layer].subarray(start * width, (start + count) * width);
      times(y, width, "attention.key", width, keys);
      multiply([of("attention.value.weight"), 0, width], width, [y, 0, width], count, width, [this.values[layer], start, this.capacity]);
      if (turns) {
        this.turn(wide, turns, count);
        this.turn(keys, turns, count);
      }
      this.attend(layer, wide, count, mixed);
      times(mixed, width, "attention.output", width, y);
      for (let i = 0; i < x.length; i++) x[i] += y[i];
      layerNorm(x, of("mlp_norm.weight"), of("mlp_norm.bias"), y);
      times(y, width, "mlp.0", hidden, wide);
      const bias = of("mlp.0.bias");
      for (let t = 0, at = 0; t < count; t++) for (let i = 0; i < hidden; i++, at++) wide[at] = gelu(wide[at] + bias[i]);
      times(wide, hidden, "mlp.2", width, y);
      const last = of("mlp.2.bias");
      for (let t = 0, at = 0; t < count; t++) for (let i = 0; i < width; i++, at++) x[at] += y[at] + last[i];
    }
    this.length += count;
    layerNorm(x, arrays["norm.weight"], arrays["norm.bias"], y);
    const outputs = arrays["head.bias"].length;
    const logits = new Float32Array(count * outputs);
    multiply([y, 0, width], count, [arrays["head.weight"], 0, width], outputs, width, [logits, 0, outputs]);
    for (let t = 0, at = 0; t < count; t++) for (let i = 0; i < outputs; i++, at++) logits[at] += arrays["head.bias"][i];
    return logits;
  }

  /** The second door.
   *  @param {Float32Array} x @param {{ cos: Float64Array[], sin: Float64Array[] }} turns @param {number} count */
  turn(x, { cos, sin }, count) {
    const { width, heads } = this.model;
    const size = width / heads;
    for (let t = 0; t < count; t++) {
      for (let at = t * width; at < (t + 1) * width; at += size) {
        const head = x.subarray(at, at + size);
        applyRope(head, cos[t], sin[t], head);
      }
    }
  }

  /** Mixes the values that each query sees. A block of queries meets all keys that any of them sees; the others get no weight.
   *  @param {number} layer @param {Numbers} queries @param {number} count @param {Numbers} mixed */
  attend(layer, queries, count, mixed) {
    const { model: { width, heads }, length: start, slopes, window, capacity } = this;
    const size = width / heads;
    const BLOCK = 16;
    const weights = new Float32Array(BLOCK * capacity);
    const scale = 1 / Math.sqrt(size);
    for (let begin = 0; begin < count; begin += BLOCK) {
      const rows = Math.min(BLOCK, count - begin);
      const first = Math.max(0, start + begin - window + 1); // of the keys that the block sees
      const seen = start + begin + rows - first;
      for (let h = 0; h < heads; h++) {
        /** @type {Rows} */
        const block = [queries, begin * width + h * size, width];
        multiply(block, rows, [this.keys[layer], first * width + h * size, width], seen, size, [weights, 0, seen]);
        for (let r = 0; r < rows; r++) {
          const query = start + begin + r;
          const row = weights.subarray(r * seen, (r + 1) * seen);
          const low = Math.max(0, query - window + 1) - first;
          const high = query - first;
          let most = -Infinity;
          for (let k = low; k <= high; k++) {
            row[k] = scale * row[k] - (slopes ? slopes[h] * (high - k) : 0);
            if (row[k] > most) most = row[k];
          }
          let sum = 0;
          for (let k = low; k <= high; k++) sum += (row[k] = Math.exp(row[k] - most));
          for (let k = low; k <= high; k++) row[k] /= sum;
          row.fill(0, 0, low);
          row.fill(0, high + 1);
        }
        /** @type {Rows} */
        const values = [this.values[layer], h * size * capacity + first, capacity];
        multiply([weights, 0, seen], rows, values, size, seen, [mixed, begin * width + h * size, width]);
      }
    }
  }
}

/** −ln of the probability of the target after each row of scores, in nats.
 *  @param {Float32Array} logits @param {number[]} targets */
function lossesOf(logits, targets) {
  const outputs = logits.length / targets.length;
  return Float64Array.from(targets, (target, t) => {
    const row = logits.subarray(t * outputs, (t + 1) * outputs);
    const most = Math.max(...row);
    return Math.log(row.reduce((sum, score) => sum + Math.exp(score - most), 0)) + most - row[target];
  });
}

/** Random numbers from 0 to 1, the same for the same seed in every browser (mulberry32).
 *  @param {number} seed */
function mulberry32(seed) {
  return () => {
    seed = seed + 0x6d2b79f5 | 0;
    let mixed = Math.imul(seed ^ seed >>> 15, seed | 1);
    mixed ^= mixed + Math.imul(mixed ^ mixed >>> 7, mixed | 61);
    return ((mixed ^ mixed >>> 14) >>> 0) / 2 ** 32;
  };
}

/** A byte sampled by its scores; at temperature 0, the likeliest byte.
 *  @param {Float32Array} logits @param {number} temperature @param {() => number} random */
function drawn(logits, temperature, random) {
  const most = Math.max(...logits);
  if (!temperature) return logits.indexOf(most);
  const chances = Array.from(logits, (score) => Math.exp((score - most) / temperature));
  let left = random() * chances.reduce((a, b) => a + b);
  const found = chances.findIndex((chance) => (left -= chance) < 0);
  return found < 0 ? logits.indexOf(most) : found; // rounding may leave a tiny rest
}

/** What is asked about one text of byte ids:
 *  @typedef {{ text: number[], changes?: Partial<Scheme>, window?: number,
 *    write?: { bytes: number, temperature?: number, seed?: number } }} Question */
/** The losses of text[1], text[2], …, and the ids that follow the text:
 *  @typedef {{ losses: Float64Array, written: number[] }} Answer */
/** What a model computes for one text.
 *  @param {Model} model @param {Question} question @returns {Answer} */
function answer(model, { text, changes, window, write = { bytes: 0 } }) {
  const { bytes, temperature = 0, seed = 0 } = write;
  const decoding = new Decoding(model, { changes, window, capacity: text.length + bytes });
  const losses = lossesOf(decoding.extend(text.slice(0, -1)), text.slice(1));
  const written = [];
  const random = mulberry32(seed);
  for (let last = text.at(-1); written.length < bytes;) {
    last = drawn(decoding.extend([last]), temperature, random);
    written.push(last);
  }
  return { losses, written };
}

/** The worker's side: it keeps the models that it was sent, and answers one question at a time.
 *  @param {MessagePort} scope */
export function serve(scope) {
  /** @type {Record<string, Model>} */
  const models = {};
  scope.onmessage = ({ data: { name, model, question } }) => {
    try {
      if (model) models[name] = unpackModel(model);
      scope.postMessage(answer(models[name], question));
    } catch (error) {
      scope.postMessage({ error: error.message });
    }
  };
}
