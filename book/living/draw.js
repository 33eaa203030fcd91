// Pictures in the reader's own pixels, so that words keep their size on a phone. The numbers drawn are kept, too.

/** @typedef {import("./formulas.js").Numbers} Numbers */
/** @typedef {"start" | "middle" | "end"} Anchor where in a text its point is */
/** @typedef {{ left: number, top: number, width: number, height: number, right?: number }} Box in pixels; inside it, what stays free on the right */
/** @typedef {{ rows: Numbers[], low: number, high: number, left: number, top: number, width: number, height: number }} Heat */

// matplotlib's cividis, at equal distances.
const STOPS = "00224e 002a5f 003170 1a386f 2a3f6d 38476c 434e6c 4d556c 575d6d 61656f 6a6c71 737475 7d7c78 868379 918b78 9b9476 a59c74 b0a571 bcae6c c6b667 d2c060 dec958 e9d34e f6dd3f fee838"
  .split(" ").map((color) => [0, 2, 4].map((at) => parseInt(color.slice(at, at + 2), 16)));
const DIVERGING = [[0, 114, 178], [218, 218, 218], [213, 94, 0]];
const between = (stops, share) => {
  const at = clip(share, 0, 1) * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  return stops[low].map((part, channel) => Math.round(part + (at - low) * (stops[low + 1][channel] - part)));
};

/** Red, green and blue of a share from 0 to 1: blue over grey to vermillion if diverging, else dark to light (cividis).
 *  @param {number} share @param {boolean} [diverging] */
export function shade(share, diverging = false) {
  return between(diverging ? DIVERGING : STOPS, share);
}

/** @param {string | number} text */
export function escaped(text) {
  return String(text).replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

/** A number as it is written, with this many digits after the point, if given.
 *  @param {number} number @param {number} [digits] */
export function written(number, digits) {
  const text = digits === undefined ? number.toLocaleString("en") : number.toFixed(digits);
  return text.replace("-", "−").replace(/^−(?=[0.]*$)/, "");
}

/** Names as a sentence lists them.
 *  @param {(string | number)[]} names */
export function listed(names) {
  return [names.slice(0, -1).join(", "), ...names.slice(-1)].filter(Boolean).join(" and ");
}

/** The whole numbers from 0 up to count, without it.
 *  @param {number} count */
export const range = (count) => [...Array(count).keys()];

/** @type {(value: number, low: number, high: number) => number} */
export const clip = (value, low, high) => Math.min(Math.max(value, low), high);

/** How many there are, with the word in its plural unless it is one.
 *  @param {number} count @param {string} word */
export const counted = (count, word) => `${written(count)} ${word}${count === 1 ? "" : "s"}`;

/** The value that is the least far.
 *  @param {number[]} values @param {(value: number) => number} far */
export const nearest = (values, far) => values.reduce((best, value) => (far(value) < far(best) ? value : best));

/** @param {number[]} numbers */
export function mean(numbers) {
  return numbers.reduce((a, b) => a + b, 0) / numbers.length;
}

/** The angle in radians without full rotations: the short way round.
 *  @param {number} angle */
export function shortest(angle) {
  return angle - 2 * Math.PI * Math.round(angle / (2 * Math.PI));
}

const round = (number) => Math.round(number * 100) / 100;
const SIZE = 13; // of letters, in pixels

/** @type {CanvasRenderingContext2D} */
let pen;
/** How wide words of these classes are, in pixels.
 *  @param {any} words @param {string} names */
export function widthOf(words, names) {
  pen ??= document.createElement("canvas").getContext("2d");
  pen.font = `${/words|strong/.test(names) ? 600 : 400} ${/number/.test(names) ? 12 : SIZE}px system-ui, sans-serif`;
  return pen.measureText(words).width;
}
const BEFORE = { start: 0, middle: 0.5, end: 1 }; // the share of a text that stands before its anchor

/** One frame of a figure: as wide as its column; `height` is known when all is drawn. */
export class Stage {
  /** @param {number} width */
  constructor(width) {
    this.width = width;
    this.height = 0;
    /** @type {string[]} */
    this.parts = [];
    /** @type {Heat[]} */
    this.heats = [];
    /** @type {{ name: string, x: number, y: number, move(x: number, y: number): object, steep: boolean }[]} */
    this.handles = [];
    /** @type {Record<string, object>} */
    this.placed = {}; // styles of the controls that stand in the picture, by name
    /** @type {Record<string, any[]>} */
    this.drawn = { lines: [], points: [], images: [], arrows: [] };
  }

  /** @param {string} svg */
  add(svg) { this.parts.push(svg); }

  /** Words, moved where they would hang out of the stage.
   *  @param {number} x @param {number} y @param {string | number} words @param {string} [names] @param {Anchor} [anchor] */
  text(x, y, words, names = "", anchor = "middle") {
    const wide = `${words}`.length > 1 ? widthOf(words, names) : 0;
    const left = x - BEFORE[anchor] * wide;
    const inside = x + Math.max(-left, 0) - Math.max(left + wide - this.width, 0);
    this.add(`<text x="${round(inside)}" y="${round(y)}" text-anchor="${anchor}" class="${names}">${escaped(words)}</text>`);
  }

  /** A ring that can be dragged: move(x, y) tells what of the state changes when it is dragged there. One that isn't steep is dragged
   *  sideways, at least at first, so that a finger that comes to it up or down scrolls the page.
   *  @param {string} name @param {number} x @param {number} y @param {(x: number, y: number) => object} move @param {boolean} [steep] */
  handle(name, x, y, move, steep = true) {
    this.handles.push({ name, x, y, move, steep });
    const circles = '<circle r="22"/><circle r="10"/><circle r="10"/>'; // what is hit, the ring's rim, the ring
    this.add(`<g class="handle" transform="translate(${round(x)} ${round(y)})">${circles}</g>`);
  }

  /** Axes in a box given in pixels; x and y are [from, to] in the data's units, `log` names the axes that are logarithmic.
   *  @param {Box} box @param {Axes} options */
  plot(box, options) {
    this.height = Math.max(this.height, box.top + box.height);
    return new Plot(this, box, options);
  }
}

/** @typedef {(number | (number | string)[])[]} Ticks where, or where and what to write there */
/** @typedef {{ x: number[], y: number[], log?: "" | "x" | "y", xTicks?: Ticks, yTicks?: Ticks, xLabel?: string, yLabel?: string, title?: string }} Axes */

class Plot {
  /** @param {Stage} stage @param {Box} box @param {Axes} options */
  constructor(stage, box, { x, y, log = "", xTicks = [], yTicks = [], xLabel = "", yLabel = "", title = "" }) {
    this.stage = stage;
    /** @type {(ends: number[], start: number, length: number, isLog: boolean) => (value: number) => number} */
    const scale = ([from, to], start, length, isLog) => {
      const measure = !isLog ? (value) => value : from > 0 ? Math.log : Math.asinh; // which is linear near 0, logarithmic far out
      return (value) => start + (length * (measure(value) - measure(from))) / (measure(to) - measure(from));
    };
    const left = this.left = box.left + (yTicks.length ? 36 : 0) + (yLabel ? 18 : 0);
    const right = this.right = box.left + box.width - (box.right ?? 8);
    const top = this.top = box.top + (title ? 26 : 8);
    const bottom = this.bottom = box.top + box.height - (xTicks.length ? 20 : 4) - (xLabel ? 20 : 0);
    this.x = scale(x, left, right - left, log.includes("x"));
    this.y = scale(y, bottom, top - bottom, log.includes("y"));
    /** @type {(tick: any) => any[]} */
    const named = (tick) => (Array.isArray(tick) ? tick : [tick, written(tick)]);
    for (const [at, name] of xTicks.map(named)) {
      stage.add(`<path class="tick" d="M${round(this.x(at))} ${bottom}v5"/>`);
      stage.text(this.x(at), bottom + 17, name, "number");
    }
    for (const [at, name] of yTicks.map(named)) {
      stage.add(`<path class="tick" d="M${left} ${round(this.y(at))}h-5"/>`);
      stage.text(left - 8, this.y(at) + 4, name, "number", "end");
    }
    if (xTicks.length) stage.add(`<path class="tick" d="M${left} ${bottom}H${right}"/>`);
    if (yTicks.length) stage.add(`<path class="tick" d="M${left} ${bottom}V${top}"/>`);
    if (xLabel) stage.text((left + right) / 2, box.top + box.height - 3, xLabel);
    if (title) stage.text((left + right) / 2, box.top + SIZE, title);
    if (yLabel) stage.add(`<text transform="translate(${box.left + SIZE} ${(top + bottom) / 2}) rotate(-90)" text-anchor="middle">${escaped(yLabel)}</text>`);
  }

  /** A line through the points; lines shown only for comparison are not `kept` among the drawn numbers. "stairs" makes steps, with each
   *  number in the middle of its step.
   *  @param {Numbers} xs @param {Numbers} ys @param {string} [names] @param {boolean} [kept] */
  line(xs, ys, names = "", kept = true) {
    if (kept) this.stage.drawn.lines.push({ x: [...xs], y: [...ys] });
    let pen = "M";
    const stairs = names.includes("stairs");
    const path = Array.from(xs, (x, at) => {
      if (!Number.isFinite(ys[at])) { pen = "M"; return ""; }
      const side = stairs && pen === "L" ? `H${round(this.x((xs[at - 1] + x) / 2))}V${round(this.y(ys[at]))}` : "";
      const step = `${side}${pen}${round(this.x(x))} ${round(this.y(ys[at]))}`;
      pen = "L";
      return step;
    });
    this.stage.add(`<path class="line ${names}" d="${path.join("")}"/>`);
  }

  /** @param {Numbers} xs @param {Numbers} ys @param {string} [names] @param {number} [radius] @param {boolean} [kept] */
  dots(xs, ys, names = "", radius = 4, kept = true) {
    if (kept) this.stage.drawn.points.push({ x: [...xs], y: [...ys] });
    const half = (by) => `a${radius} ${radius} 0 1 0 ${by} 0`;
    const dots = Array.from(xs, (x, at) => `M${round(this.x(x) - radius)} ${round(this.y(ys[at]))}${half(2 * radius)}${half(-2 * radius)}`);
    this.stage.add(`<path class="dot ${names}" d="${dots.join("")}"/>`); // one element, however many they are
  }

  /** An arrow to (x, y), from the origin by default.
   *  @param {number} x @param {number} y @param {string} [names] @param {boolean} [kept] @param {number[]} [from] */
  arrow(x, y, names = "", kept = true, from = [0, 0]) {
    if (kept) this.stage.drawn.arrows.push({ x, y });
    const [fromX, fromY, toX, toY] = [this.x(from[0]), this.y(from[1]), this.x(x), this.y(y)];
    const length = Math.hypot(toX - fromX, toY - fromY);
    if (length < 1) return;
    const [ux, uy] = [(toX - fromX) / length, (toY - fromY) / length];
    const head = Math.min(14, length);
    const [baseX, baseY] = [toX - head * ux, toY - head * uy];
    const tip = [[toX, toY], [baseX - 0.45 * head * uy, baseY + 0.45 * head * ux], [baseX + 0.45 * head * uy, baseY - 0.45 * head * ux]];
    this.stage.add(`<g class="arrow ${names}"><path d="M${round(fromX)} ${round(fromY)}L${round(baseX)} ${round(baseY)}"/><polygon points="${tip.map((point) => point.map(round)).join(" ")}"/></g>`);
  }

  /** How far to the right a pixel lies, from 0 to 1.
   *  @param {number} x */
  share(x) {
    return clip((x - this.left) / (this.right - this.left), 0, 1);
  }

  /** A ring at (x, y), which is dragged to the nearest of these values of x; put(value) is what of the state changes.
   *  @param {string} name @param {number} x @param {number} y @param {number[]} values @param {(value: number) => object} [put] */
  handle(name, x, y, values, put = (value) => ({ [name]: value })) {
    this.stage.handle(name, this.x(x), this.y(y), (pixel) => put(nearest(values, (value) => Math.abs(this.x(value) - pixel))), false);
  }

  /** @param {number} x @param {number} y @param {string | number} words @param {string} [names] @param {Anchor} [anchor] @param {number[]} [by] */
  text(x, y, words, names = "", anchor = "middle", [right, down] = [0, 0]) {
    this.stage.text(this.x(x) + right, this.y(y) + down, words, names, anchor);
  }

  /** A straight line across, at x or at y.
   *  @param {{ x?: number, y?: number }} at @param {string} [names] */
  rule({ x, y }, names = "") {
    const path = x === undefined ? `M${this.left} ${round(this.y(y))}H${this.right}` : `M${round(this.x(x))} ${this.bottom}V${this.top}`;
    this.stage.add(`<path class="rule ${names}" d="${path}"/>`);
  }

  /** What lies between two values of x.
   *  @param {number} from @param {number} to @param {string} [names] */
  band(from, to, names = "") {
    const [a, b] = [this.x(from), this.x(to)];
    this.stage.add(`<rect class="band ${names}" x="${round(Math.min(a, b))}" y="${this.top}" width="${round(Math.abs(b - a))}" height="${round(this.bottom - this.top)}"/>`);
  }

  /** Rows of numbers as colours, the first on top; fills the axes, whose x and y run over columns and rows.
   *  @param {Numbers[]} rows @param {number[]} ends @param {boolean} [kept] */
  heat(rows, [low, high], kept = true) {
    if (kept) this.stage.drawn.images.push(rows.map((row) => [...row]));
    const { left, top, right, bottom } = this;
    this.stage.heats.push({ rows, low, high, left, top, width: right - left, height: bottom - top });
  }
}

const STEPS = 1023;
const palettes = {}; // each shade as the four bytes of a pixel
const palette = (diverging) => (palettes[diverging] ??= Uint32Array.from({ length: STEPS + 1 }, (_, at) => {
  const [red, green, blue] = shade(at / STEPS, diverging);
  return (255 << 24) | (blue << 16) | (green << 8) | red;
}));

/** Paint a heatmap's cells on a canvas, one pixel each; the page's style makes them as large as they are.
 *  @param {HTMLCanvasElement & { rows?: Numbers[] }} canvas @param {Heat} heat */
export function paint(canvas, { rows, low, high, left, top, width, height }) {
  Object.assign(canvas.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
  if (canvas.rows === rows) return; // already painted
  Object.assign(canvas, { rows, width: rows[0].length, height: rows.length });
  const colors = palette(low === -high);
  const share = (value) => clip((value - low) / (high - low), 0, 1);
  const pixels = new Uint32Array(canvas.width * canvas.height);
  rows.forEach((row, y) => row.forEach((value, x) => { pixels[y * canvas.width + x] = colors[Math.round(STEPS * share(value))]; }));
  canvas.getContext("2d").putImageData(new ImageData(new Uint8ClampedArray(pixels.buffer), canvas.width), 0, 0);
}
