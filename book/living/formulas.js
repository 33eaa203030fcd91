// The encodings, named and laid out as in the Python package. Positions, offsets and lengths are in tokens, frequencies in
// radians per token, fastest first; results are arrays of numbers, tables one row (a Float64Array) per position.

/** @typedef {number[] | Float32Array | Float64Array} Numbers */

/** @type {(value: number, low: number, high: number) => number} */
const clip = (value, low, high) => Math.min(Math.max(value, low), high);

/** @type {(count: number, value: (i: number) => number) => Float64Array<ArrayBuffer>} */
const pairs = (count, value) => Float64Array.from({ length: count }, (_, i) => value(i));

// The first door: what is added to a token's vector.

/** ω_i = base^(-2i/dModel): (⌈dModel/2⌉,)
 *  @param {number} dModel @param {number} [base] */
export function frequencies(dModel, base = 10000) {
  return pairs(Math.ceil(dModel / 2), (i) => base ** (-2 * i / dModel));
}

/** sin(ω_0 m), cos(ω_0 m), sin(ω_1 m), …: a row of dModel numbers per position.
 *  @param {Numbers} positions @param {number} dModel @param {number} [base] */
export function sinusoidalTable(positions, dModel, base = 10000) {
  const omega = frequencies(dModel, base);
  return Array.from(positions, (m) => pairs(dModel, (c) => (c % 2 ? Math.cos : Math.sin)(m * omega[c >> 1])));
}

/** m / (length - 1), from 0 to 1: one number per position.
 *  @param {Numbers} positions @param {number} length */
export function normalized(positions, length) {
  return Float64Array.from(positions, (m) => m / Math.max(length - 1, 1));
}

// The second door: how far a query or a key is rotated.

/** cos(ω_i m) and sin(ω_i m): for each of them, a row of pairs per position.
 *  @param {Numbers} positions @param {Numbers} omega */
export function ropeTables(positions, omega) {
  /** @type {(wave: (angle: number) => number) => Float64Array[]} */
  const rows = (wave) => Array.from(positions, (m) => pairs(omega.length, (i) => wave(omega[i] * m)));
  return { cos: rows(Math.cos), sin: rows(Math.sin) };
}

/** One head's vector x, its pairs rotated by the angles whose cosines and sines are given; channels beyond these pairs stay the same.
 *  Pairs are channels (2i, 2i+1). `into` may be x itself.
 *  @param {Numbers} x @param {Numbers} cos @param {Numbers} sin @param {Numbers} [into] */
export function applyRope(x, cos, sin, into = Float64Array.from(x)) {
  for (let i = 0; i < cos.length; i++) {
    const a = x[2 * i];
    const b = x[2 * i + 1];
    into[2 * i] = a * cos[i] - b * sin[i];
    into[2 * i + 1] = a * sin[i] + b * cos[i];
  }
  return into;
}

/** x - 2 (x·w)/(w·w) w: x, reflected in the mirror that is perpendicular to w.
 *  @param {number[]} x @param {number[]} w */
export function reflect(x, w) {
  /** @type {(a: number[], b: number[]) => number} */
  const dot = (a, b) => a.reduce((sum, number, c) => sum + number * b[c], 0);
  const twice = (2 * dot(x, w)) / dot(w, w);
  return Float64Array.from(x, (number, c) => number - twice * w[c]);
}

/** ω_i / factor
 *  @param {Numbers} omega @param {number} factor */
export function positionInterpolation(omega, factor) {
  return pairs(omega.length, (i) => omega[i] / factor);
}

/** ω_i · factor^(-i/(n-1)): the fastest pair stays, the slowest is divided by factor.
 *  @param {Numbers} omega @param {number} factor */
export function ntkAware(omega, factor) {
  return pairs(omega.length, (i) => omega[i] * factor ** (-i / (omega.length - 1)));
}

/** Keeps pairs that make `fast` rotations within originalLength, divides by factor those that make `slow`, and blends in between;
 *  `truncate` rounds both ends to whole pairs.
 *  @param {Numbers} omega @param {number} factor @param {number} originalLength
 *  @param {{ slow?: number, fast?: number, truncate?: boolean }} [options] */
export function yarn(omega, factor, originalLength, { slow = 1, fast = 32, truncate = true } = {}) {
  const step = Math.log(omega[0] / omega[omega.length - 1]) / (omega.length - 1);
  /** @type {(turns: number) => number} */
  const pairOf = (turns) => Math.log(omega[0] * originalLength / (2 * Math.PI * turns)) / step;
  const [low, high] = truncate ? [Math.floor(pairOf(fast)), Math.ceil(pairOf(slow))] : [pairOf(fast), pairOf(slow)];
  const [first, last] = [Math.max(low, 0), Math.min(high, 2 * omega.length - 1)];
  return pairs(omega.length, (i) => {
    const slowed = clip((i - first) / Math.max(last - first, 1e-3), 0, 1);
    return (1 - slowed) * omega[i] + slowed * omega[i] / factor;
  });
}

/** Keeps pairs that make `fast` rotations within originalLength, divides by factor those that make `slow`, and blends in between.
 *  @param {Numbers} omega @param {number} factor @param {number} originalLength @param {{ slow?: number, fast?: number }} [options] */
export function llama3(omega, factor, originalLength, { slow = 1, fast = 4 } = {}) {
  return pairs(omega.length, (i) => {
    const kept = clip(((originalLength * omega[i]) / (2 * Math.PI) - slow) / (fast - slow), 0, 1);
    return kept * omega[i] + (1 - kept) * omega[i] / factor;
  });
}

/** What YaRN multiplies query and key by, each.
 *  @param {number} factor */
export function yarnAttentionFactor(factor) {
  return 0.1 * Math.log(factor) + 1;
}

// The third door: what is added to a score, by the offset from key to query, positive where the key lies in the past.

/** The T5 bucket of each offset, in whole numbers as the package has it.
 *  @param {Numbers} offsets @param {number} [numBuckets] @param {number} [maxDistance] @param {boolean} [causal] */
export function t5Buckets(offsets, numBuckets = 32, maxDistance = 128, causal = true) {
  const oneSided = causal ? numBuckets : numBuckets / 2;
  const single = Math.floor(oneSided / 2);
  // The smallest distance of each bucket except the first; one that is whole may come out a little above.
  const edges = Array.from({ length: oneSided - 1 }, (_, i) => (
    i < single ? i + 1 : Math.ceil(single * (maxDistance / single) ** ((i + 1 - single) / (oneSided - single)) * (1 - 1e-12))
  ));
  /** @type {(distance: number) => number} */
  const bucket = (distance) => {
    const beyond = edges.findIndex((edge) => edge > distance);
    return beyond < 0 ? edges.length : beyond;
  };
  return Array.from(offsets, (offset) => (
    causal ? bucket(offset) : bucket(Math.abs(offset)) + (offset < 0 ? numBuckets / 2 : 0)
  ));
}

/** 2^(-8h/numHeads), h = 1 … numHeads, for a power of two; otherwise those of the next smaller power, then slopes between them.
 *  @param {number} numHeads */
export function alibiSlopes(numHeads) {
  const power = 2 ** (31 - Math.clz32(numHeads)); // the largest power of two that is not more
  return pairs(numHeads, (h) => 2 ** -(h < power ? (h + 1) * 8 / power : (2 * (h - power) + 1) * 4 / power));
}

// By what a query is multiplied, so that its scores grow with the number of keys before it.

/** max(1, ln(m + 1) / ln(trained)) for each position m.
 *  @param {Numbers} positions @param {number} trained */
export function logFactor(positions, trained) {
  return Float64Array.from(positions, (m) => Math.max(1, Math.log1p(m) / Math.log(trained)));
}

/** 1 + scale · ln(1 + ⌊(m + 1) / floor⌋) for each position m.
 *  @param {Numbers} positions @param {number} [floor] @param {number} [scale] */
export function llama4Factor(positions, floor = 8192, scale = 0.1) {
  return Float64Array.from(positions, (m) => 1 + scale * Math.log1p(Math.floor((m + 1) / floor)));
}
