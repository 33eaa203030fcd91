// Chapter 10: a key that is its query, rotated by an offset: the wave of each pair has a crest at that offset, and so does their sum.
import { clip, counted, range } from "./draw.js";
import { frequencies } from "./formulas.js";

const LONGEST = 400;
const OFFSETS = range(LONGEST + 1);

/** @type {import("./element.js").Figure<{ made: number, pairs: number, first: string }>} */
export const figure = {
  label: "The waves of all pairs over the offset, and the score that they sum to",
  needs: ["{for}"],
  controls: {
    made: { label: "Key made for offset", min: 0, max: LONGEST, value: 300 },
    pairs: { label: "Pairs used", min: 1, max: 32, value: 32 },
    first: { label: "Starting with", value: "fast", options: { fast: "the fastest", slow: "the slowest" } },
  },
  draw(stage, { made, pairs, first }, own) {
    const [squares] = own.data["{for}"].squares; // |q_i|², by which a pair's wave is high
    const omega = frequencies(2 * squares.length);
    const from = first === "fast" ? 0 : squares.length - pairs;
    const part = squares.slice(from, from + pairs);
    const waves = part.map((_, i) => OFFSETS.map((offset) => Math.cos(omega[from + i] * (offset - made))));
    const largest = part.reduce((sum, square) => sum + square);
    const score = OFFSETS.map((_, offset) => waves.reduce((sum, wave, i) => sum + part[i] * wave[offset], 0) / largest);

    const chart = stage.plot(
      { left: 0, top: 0, width: stage.width, height: 340 },
      {
        x: [0, LONGEST], y: [-1, 1.2], xTicks: [0, 100, 200, 300, 400], yTicks: [-1, 0, 0.9],
        xLabel: "offset, tokens", yLabel: "share of the largest score",
      },
    );
    chart.rule({ y: 0.9 }, "dashed faint");
    const step = Math.ceil(pairs / 8); // all of them would hide the score
    waves.forEach((wave, i) => {
      if (i % step) return;
      const period = ((2 * Math.PI) / omega[from + i]) * (chart.x(1) - chart.x(0)); // in pixels
      stage.add(`<g opacity="${clip(period / 120, 0.15, 0.7)}">`); // the fast ones would cover all others
      chart.line(OFFSETS, wave, "blue faint", false);
      stage.add("</g>");
    });
    chart.line(OFFSETS, score, "vermillion");
    chart.dots([made], [score[made]], "vermillion", 5, false);
    chart.handle("made", made, score[made], OFFSETS);
    const side = made > LONGEST / 2 ? "end" : "start";
    chart.text(made, 1, pairs > 1 ? "all crests meet" : "the crest", "vermillion words", side, [0, -10]);
    own.chart = chart;

    const high = OFFSETS.filter((offset) => offset !== made && score[offset] >= 0.9);
    const farthest = Math.max(...high.map((offset) => Math.abs(offset - made)));
    const shown = step > 1 ? ` (the figure shows every ${["second", "third", "fourth"][step - 2]} one)` : "";
    const crests = pairs > 1 ? `All ${pairs} waves${shown} have a crest` : "The only wave has a crest";
    const others = high.length
      ? `At ${counted(high.length, "other offset")}, the score reaches 0.9 of that; ${high.length > 1 ? "the farthest" : "it"} is ${counted(farthest, "token")} away.`
      : "At no other offset does the score reach 0.9 of that.";
    const shares = [Math.min(...part), Math.max(...part)].map((square) => ((100 * square) / largest).toPrecision(2));
    const weights = pairs > 1
      ? ` The query is random, so its pairs have different weights: each contributes between ${shares[0]} and ${shares[1]} % of the sum.`
      : "";
    return `${crests} at offset ${made}, so the score is largest there. ${others}${weights}`;
  },
  point: (x, y, state, own) => ({ made: Math.round(LONGEST * own.chart.share(x)) }),
};
