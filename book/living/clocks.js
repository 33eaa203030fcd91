// Chapters 4 and 6: one position as digits, waves, clocks and a row of the table, and another one beside it, which may be hidden,
// so that readers work it out. Where both move together, all hands rotate alike, wherever they begin.
import { frequencies } from "./formulas.js";
import { clip, counted, listed, shade, shortest, written } from "./draw.js";

const OMEGA = frequencies(8);
const NAMES = ["first", "second", "third", "fourth"];
const DIGITS = ["ones", "tens", "hundreds", "thousands"];
const AGREE = 10; // degrees
const AROUND = 15; // positions to each side, of which the waves are shown
const LAST = 6299; // position
const MOVED = 100; // the last one for two that move together
const APART = 6; // tokens between these two, at most
const FIRST = 1; // where the hands in grey stay
const RIM = 1.15; // where their arcs are
// What the hidden row shows: first 37, then the chapter's row, 2024.
const shown = (round) => (round ? 300 + ((3541 * round + 3883) % 5700) : 37);

/** @type {(angle: number, length?: number) => [right: number, up: number]} */
const tip = (angle, length = 1) => [length * Math.sin(angle), length * Math.cos(angle)];
const row = (position) => Array.from(OMEGA, (speed) => tip(speed * position));
const degrees = (angle) => `${written((angle * 180) / Math.PI, 1)}°`;
const hands = (at) => `The ${listed(at.map((i) => NAMES[i]).reverse())} hand${at.length > 1 ? "s" : ""}`;
const reads = ({ view }) => view === "read";

// By how many degrees the other hand is ahead of the reader's, from -180 to 180.
const ahead = (speed, tokens) => Math.round((180 / Math.PI) * shortest(speed * tokens));

function comparison(other, m, hidden) {
  const off = [...OMEGA].map((speed) => ahead(speed, other - m));
  const same = [3, 2, 1, 0].filter((i) => Math.abs(off[i]) <= AGREE);
  const apart = [3, 2, 1, 0].filter((i) => !same.includes(i));
  const agree = `${hands(same)} agree${same.length > 1 ? "" : "s"}`;
  if (!hidden) {
    if (other === m) return `Both positions are ${written(m)}.`;
    const turns = [...OMEGA].map((speed) => ((speed * Math.abs(other - m)) / (2 * Math.PI)).toFixed(1));
    const made = `Between positions ${written(other)} and ${written(m)}, the four hands make ${listed(turns)} turns.`;
    if (!same.length) return `No hand points the same way at both positions. ${made}`;
    if (!apart.length) return `All hands nearly agree. ${made}`;
    return `${agree} to within ${AGREE}°, so only the ${listed(apart.map((i) => NAMES[i]))} can tell the two positions apart. ${made}`;
  }
  if (!apart.length) return `All four hands agree: you have read the row. It shows position ${written(other)}.`;
  const next = apart[0];
  const by = next === 3 ? Math.round((180 / Math.PI) * OMEGA[3] * (other - m)) : off[next]; // the slowest never comes round here
  const way = `is ${Math.abs(by)}° ${by > 0 ? "ahead of" : "behind"} yours`;
  if (next === 3) {
    const chance = same.length ? ` ${agree}, but that tells you little yet: fast hands often come round.` : "";
    return `The hidden row's fourth hand, the slowest, ${way}. Begin with this hand, because it can tell distant positions apart.${chance}`;
  }
  const reach = Math.floor(((AGREE + 0.5) * Math.PI) / 180 / OMEGA[next + 1]);
  const sure = same.filter((i) => i > next);
  return `${hands(sure)} agree${sure.length > 1 ? "" : "s"}, so you are at most ${counted(reach, "position")} off. The ${NAMES[next]} hand ${way}.`;
}

function together(m, by) {
  const turns = listed([...OMEGA].map((speed) => degrees(speed * by)));
  return `From position ${m} to position ${m + by}, the four hands rotate by ${turns}, as they do from position ${FIRST} to position ${FIRST + by}. `
    + "The matrix below a clock makes this rotation, and no number in it depends on where a hand starts.";
}

// Above the clocks: the position's digits, and a short part of each pair's waves, in whose middle the position is.
function drawAbove(stage, exact) {
  const cell = stage.width / 4;
  stage.text(0, 80, `waves, ${AROUND} positions each way; cosines dashed`, "number", "start");
  OMEGA.forEach((speed, i) => {
    const middle = (i + 0.5) * cell;
    stage.text(middle, 36, DIGITS[i], "number");
    stage.text(middle, 58, Math.floor(Math.round(exact) / 10 ** i) % 10, "digit");
    const waves = stage.plot({ left: i * cell, top: 78, width: cell - 4, height: 56, right: 0 }, { x: [-AROUND, AROUND], y: [-1.2, 1.2] });
    const steps = Array.from({ length: 121 }, (_, at) => AROUND * (at / 60 - 1));
    waves.rule({ x: 0 }, "faint");
    [Math.sin, Math.cos].forEach((wave, odd) => {
      waves.line(steps, steps.map((step) => wave(speed * (exact + step))), `blue ${odd ? "thin dashed" : ""}`, false);
      waves.dots([0], [wave(speed * exact)], "vermillion", 4, false);
    });
  });
  return 136;
}

// The numbers of both, in colours: the tip of each hand, to the right and up.
function drawRows(stage, top, rows) {
  stage.text(0, top - 6, "the rows of the table at these two positions", "number", "start");
  const cell = stage.width / 8;
  rows.forEach((pairs, row) => pairs.flat().forEach((value, column) => {
    const [x, y] = [cell * column + (column % 2 ? 0 : 3), top + 24 * row];
    stage.add(`<rect x="${x}" y="${y}" width="${cell - 3}" height="21" fill="rgb(${shade((value + 1) / 2, true)})"/>`);
    stage.text(x + (cell - 3) / 2, y + 15, written(value, 1), value < -0.9 ? "on-dark" : "on-light");
  }));
  return top + 24 * rows.length;
}

/** @type {import("./element.js").Figure<{ by: number, m: number, round: number, view: string }>} */
export const figure = {
  label: "Four clocks, whose hands show two positions",
  controls: {
    hundreds: { label: "Position, hundreds", min: 0, max: 6200, step: 100, get: ({ m }) => 100 * Math.floor(m / 100), put: (value, { m }) => ({ m: value + (m % 100) }), when: reads },
    ones: { label: "Position, tens and ones", min: 0, max: 99, get: ({ m }) => Math.round(m) % 100, put: (value, { m }) => ({ m: m - (m % 100) + value }), when: reads },
    start: { label: "Move both to", min: 0, max: MOVED, get: ({ m }) => Math.round(m), put: (m) => ({ m }), when: (state) => !reads(state) },
    by: { label: "Tokens apart", min: 0, max: APART, value: 3, when: (state) => !reads(state) },
    m: { value: 1922, min: 0, max: LAST, read: (text) => (/^\d{1,4}$/.test(text) && Number(text) <= LAST ? Number(text) : undefined) },
    round: { value: 0, read: (text) => (/^\d{1,4}$/.test(text) ? Number(text) : undefined) },
    view: { value: "read" },
    play: { label: "Play", plays: "m", perSecond: 8, to: (state) => (reads(state) ? LAST : MOVED) },
    hide: { label: "Read a hidden row", press: ({ round }) => ({ round: round + 1, m: 0 }), when: reads },
    tell: { label: "Show its position", press: ({ round }) => ({ m: shown(round) }), when: ({ round }) => round > 0 },
  },
  enters: { plays: "m", from: (_, state) => (reads(state) ? 1882 : FIRST), perSecond: 8, step: 0.05 },
  draw(stage, state) {
    const { m: exact, round, by } = state;
    const m = Math.round(exact);
    const read = reads(state);
    const other = read ? shown(round) : exact + by;
    const hidden = round > 0 && other !== m;
    const rows = [row(exact), row(other)];
    const cell = stage.width / 4;
    const side = Math.min(cell - 4, 150);
    const there = hidden ? "?" : written(Math.round(other));
    stage.text(0, 14, read ? `Position ${written(m)}, and dashed, ${there}` : `From position ${m} to ${there}`, "strong", "start");
    const top = read ? drawAbove(stage, exact) : 20;
    OMEGA.forEach((speed, i) => {
      const plane = stage.plot({ left: i * cell + (cell - side) / 2, top, width: side, height: side + 12, right: 0 }, { x: [-1.3, 1.3], y: [-1.3, 1.3] });
      const middle = [plane.x(0), plane.y(0)];
      stage.add(`<circle class="line faint" cx="${middle[0]}" cy="${middle[1]}" r="${side / 2.6}"/>`);
      const [mine, its] = rows.map((row) => row[i]);
      const arc = (from, color, radius) => {
        const way = Array.from({ length: 40 }, (_, at) => tip(from + (speed * by * at) / 39, radius));
        plane.line(way.map(([right]) => right), way.map(([, up]) => up), color);
      };
      const hand = ([right, up], look) => plane.line([0, right], [0, up], look);
      if (!read) {
        hand(tip(speed * FIRST), "old hand");
        hand(tip(speed * (FIRST + by)), "old thin");
        arc(speed * FIRST, "old", RIM);
        arc(speed * exact, "vermillion", RIM + 0.1);
      }
      hand(its, read ? "thin dashed" : "vermillion thin");
      hand(mine, "vermillion hand");
      stage.add(`<circle cx="${middle[0]}" cy="${middle[1]}" r="4" class="vermillion" fill="currentColor"/>`);
      const ring = (name, [right, up], position, put) => stage.handle(`${name}${i}`, plane.x(right), plane.y(up), (toX, toY) => {
        const turned = shortest(Math.atan2(toX - middle[0], middle[1] - toY) - Math.atan2(right, up));
        return put(Math.round(position + turned / speed));
      }, Math.abs(right) > Math.abs(up)); // a hand that points up or down moves sideways
      const last = read ? LAST : MOVED;
      if (read || i < 2) ring("hand", mine, m, (to) => ({ m: clip(to, 0, last) }));
      if (!read && i < 2) ring("other", tip(speed * other, RIM + 0.1), by, (to) => ({ by: clip(to, 0, APART) }));
    });

    const bottom = drawRows(stage, top + side + 28, rows);
    OMEGA.forEach((speed, i) => {
      const middle = (i + 0.5) * cell;
      if (read) {
        const off = Math.abs(ahead(speed, other - m));
        stage.text(middle, bottom + 16, off <= AGREE ? "✓ agrees" : `${off}°${side < 76 ? "" : " apart"}`, off <= AGREE ? "green words" : "");
        stage.text(middle, bottom + 36, ((2 * Math.PI) / speed).toLocaleString("en", { maximumFractionDigits: 1, minimumFractionDigits: 1 }), "number");
      } else {
        const [sin, cos] = tip(speed * by);
        const [half, digits] = [Math.min(48, cell / 2 - 4), cell < 86 ? 1 : 2];
        stage.text(middle, bottom + 16, degrees(speed * by), "words");
        [[cos, sin], [-sin, cos]].forEach((row, line) => row.forEach((number, column) => (
          stage.text(middle + column * (half - 2), bottom + 40 + 20 * line, written(number, digits), "number", "end")
        )));
        stage.add(`<path class="line thin" d="M${middle - half + 4} ${bottom + 26}h-4v40h4M${middle + half - 2} ${bottom + 26}h4v40h-4"/>`);
      }
    });
    if (read) stage.text(stage.width / 2, bottom + 54, "positions per turn", "number");
    stage.height = bottom + (read ? 60 : 74);
    return read ? comparison(other, m, round > 0) : together(m, by);
  },
};
