// Chapter 4: four pendulums at any moment. Each bob writes its position on a strip of paper that moves down, and so draws a column of the table.
import { clip, nearest, written } from "./draw.js";
import { frequencies } from "./formulas.js";

const OMEGA = frequencies(8);
const LONGEST = 200; // seconds
const PAPER = 20; // seconds of it
const FLOW = 0.04; // of its length, per second, in lengths where a string is 0.6 long
const times = (turns) => Number(turns < 0.1 ? turns.toPrecision(1) : turns.toFixed(1));
/** The moment nearest to t at which a pendulum of this speed is where its sine is this. */
function moment(omega, sine, t) {
  const half = Math.asin(clip(sine, -1, 1)) / omega; // and half a swing later it passes there on its way back
  const swing = (2 * Math.PI) / omega;
  const near = [half, swing / 2 - half].map((first) => first + swing * Math.round((t - first) / swing));
  return clip(Number(nearest(near, (one) => Math.abs(one - t)).toFixed(2)), 0, LONGEST);
}
const seconds = (t, digits) => `${Number(t.toFixed(digits))} second${t === 1 ? "" : "s"}`;

/** @type {import("./element.js").Figure<{ t: number, photograph: boolean }>} */
export const figure = {
  label: "Four pendulums, each ten times slower than the one to its left",
  controls: {
    seconds: { label: "Seconds", min: 0, max: LONGEST, get: ({ t }) => t, put: (t) => ({ t }), show: (t) => `${Number(t.toFixed(1))}` },
    t: { value: 10, min: 0, max: LONGEST, step: 0.01, read: (text) => (/^\d+\.?\d*$/.test(text) && Number(text) <= LONGEST ? Number(text) : undefined) },
    photograph: { label: "Photograph (no velocity)", value: false },
    play: { label: "Play", plays: "t", perSecond: 1 },
  },
  enters: { plays: "t", from: () => 0, to: 10, perSecond: 1 },
  draw(stage, { t, photograph }) {
    const [low, high] = [-1.64, 0.06];
    const wide = Math.min(stage.width, 760);
    const unit = wide / 4; // one pendulum's share
    const height = unit * (high - low);
    const plot = stage.plot({ left: (stage.width - wide) / 2, top: 0, width: wide, height: height + 12, right: 0 }, { x: [-0.5, 3.5], y: [low, high] });
    const paper = plot.y(-0.8);
    const narrow = stage.width < 480;
    stage.add(`<path class="line beam" d="M${plot.x(-0.45)} ${plot.y(0)}H${plot.x(3.45)}"/>`);
    OMEGA.forEach((omega, i) => {
      const [sine, cosine] = [Math.sin(omega * t), Math.cos(omega * t)];
      const [x, y] = [i + 0.24 * sine, -Math.sqrt(0.36 - (0.24 * sine) ** 2)];

      // The paper runs down, so that what was written longest ago is lowest; dots stand at whole seconds, the rows of the table.
      stage.add(`<rect class="paper" x="${plot.x(i - 0.32)}" y="${paper}" width="${0.64 * unit}" height="${plot.y(low) - paper}"/>`);
      if (!photograph) {
        const from = Math.max(0, t - PAPER);
        const write = (moments, mark) => mark(moments.map((then) => i + 0.24 * Math.sin(omega * then)), moments.map((then) => -0.8 - (t - then) * FLOW));
        write(Array.from({ length: 641 }, (_, at) => from + ((t - from) * at) / 640), (xs, ys) => plot.line(xs, ys, "blue", false));
        const whole = Array.from({ length: Math.floor(t) - Math.ceil(from) + 1 }, (_, at) => Math.ceil(from) + at);
        write(whole, (xs, ys) => plot.dots(xs, ys, "blue", narrow ? 1.8 : 3, false));
        stage.add(`<path class="tick dashed" d="M${plot.x(x)} ${plot.y(y)}V${paper}"/>`);
      }

      stage.add(`<path class="rule dotted" d="M${plot.x(i)} ${plot.y(0)}V${plot.y(-0.72)}"/>`);
      const bow = Array.from({ length: 25 }, (_, at) => 0.24 * (at / 12 - 1));
      plot.line(bow.map((way) => i + way), bow.map((way) => -Math.sqrt(0.36 - way ** 2)), "faint", false);
      plot.line([i, x], [0, y], "thin");
      if (!photograph) plot.arrow(x + 0.4 * cosine, y, "vermillion", false, [x, y]);
      plot.dots([x], [y], "blue", Math.max(6, unit / 17), false);
      stage.handle(`bob${i}`, plot.x(x), plot.y(y), (to) => ({ t: moment(omega, (to - plot.x(i)) / (0.24 * unit), t) }), false);
      const bottom = plot.y(low) + 20;
      const beside = photograph || narrow ? 0 : 10;
      stage.text(plot.x(i) - beside, bottom, written(sine, 2), "blue words", beside ? "end" : "middle");
      if (!photograph) stage.text(plot.x(i) + beside, bottom + (narrow ? 18 : 0), written(cosine, 2), "vermillion words", beside ? "start" : "middle");
      stage.text(plot.x(i), bottom + (narrow ? 36 : 18), `${2 * i} and ${2 * i + 1}`, "number");
    });
    const bottom = plot.y(low) + (narrow ? 74 : 56);
    stage.text(stage.width / 2, bottom, photograph ? "dimensions" : `dimensions (paper: the last ${PAPER} seconds)`, "number");
    const key = bottom + 24;
    const middle = stage.width / 2 + (photograph ? 0 : narrow ? -8 : 18); // the left words are longer, or the right ones
    stage.text(middle - (photograph ? 0 : 8), key, narrow ? "sine: position" : "sine: the bob’s position", "blue words", photograph ? "middle" : "end");
    if (!photograph) stage.text(middle + 8, key, narrow ? "cosine: velocity" : "cosine: its velocity (greatest: 1)", "vermillion words", "start");
    stage.height = key + 8;

    const swings = [...OMEGA].map((omega) => (omega * t) / (2 * Math.PI));
    const [sine, cosine] = [Math.sin(t), Math.cos(t)];
    const where = Math.abs(sine) < 0.005 ? "at the bottom" : `to the ${sine > 0 ? "right" : "left"} (${written(sine, 2)})`;
    const moves = photograph ? "; a photograph doesn't show which way it is moving" : ` and is moving to the ${cosine > 0 ? "right" : "left"} (${written(cosine, 2)})`;
    return `${seconds(t, 1)} after the push, the first pendulum hangs ${where}${moves}. `
      + `It has swung back and forth ${times(swings[0])} times, and the last pendulum ${times(swings[3])} times. `
      + `The second pendulum is now doing what the first one did after ${seconds(t / 10, 2)}.`;
  },
};
