// Chapter 4: two rows of clocks, whose hands show two positions; the upper row may hide its position, so that readers work it out.
import { frequencies } from "./formulas.js";
import { listed, shade, shortest, written } from "./draw.js";

const OMEGA = frequencies(8);
const NAMES = ["first", "second", "third", "fourth"];
const AGREE = 10; // degrees
const hands = (at) => `The ${listed(at.map((i) => NAMES[i]).reverse())} hand${at.length > 1 ? "s" : ""}`;
// What the upper row shows: first 37, then the chapter's row, 2024.
const shown = (round) => (round ? 300 + ((3541 * round + 3883) % 5700) : 37);
// The first 100 positions in 20 shades, each of which is drawn as one path: lines of no length with round ends.
const POSITIONS = Array.from({ length: 100 }, (_, m) => m);
const SHADES = Array.from({ length: 20 }, (_, at) => [POSITIONS.slice(5 * at, 5 * at + 5), shade((0.85 * (5 * at + 2)) / 99)]);

// By how many degrees the upper hand is ahead of the lower, from -180 to 180.
function ahead(speed, tokens) {
  const turns = (speed * tokens) / (2 * Math.PI);
  return Math.round(360 * (turns - Math.round(turns)));
}

function says(above, below, hidden) {
  const off = [...OMEGA].map((speed) => ahead(speed, above - below));
  const same = [3, 2, 1, 0].filter((i) => Math.abs(off[i]) <= AGREE);
  const apart = [3, 2, 1, 0].filter((i) => !same.includes(i));
  const agree = `${hands(same)} agree${same.length > 1 ? "" : "s"}`;
  if (!hidden) {
    if (above === below) return `Both rows show position ${written(above)}.`;
    const turns = [...OMEGA].map((speed) => ((speed * Math.abs(above - below)) / (2 * Math.PI)).toFixed(1));
    const made = `Between positions ${written(above)} and ${written(below)}, the four hands make ${listed(turns)} turns.`;
    if (!same.length) return `${made} No hand points the same way in both rows.`;
    if (!apart.length) return `${made} All hands nearly agree.`;
    return `${made} ${agree} to within ${AGREE}°. At that precision, only the ${listed(apart.map((i) => NAMES[i]))} can tell the two positions apart.`;
  }
  if (!apart.length) return `All four hands agree: you have read the row. It shows position ${written(above)}.`;
  const next = apart[0];
  const by = next === 3 ? Math.round((180 / Math.PI) * OMEGA[3] * (above - below)) : off[next]; // the slowest never comes round here
  const way = `is ${Math.abs(by)}° ${by > 0 ? "ahead of" : "behind"} yours`;
  if (next === 3) {
    const chance = same.length ? ` ${agree}, but that tells you little yet, because a fast hand comes back to the same angle again and again.` : "";
    return `The hidden row's fourth hand, the slowest, ${way}. Begin with this hand, because it can tell distant positions apart.${chance}`;
  }
  const reach = Math.floor(((AGREE + 0.5) * Math.PI) / 180 / OMEGA[next + 1]);
  const sure = same.filter((i) => i > next);
  return `${hands(sure)} agree${sure.length > 1 ? "" : "s"}, so you are at most ${reach} position${reach > 1 ? "s" : ""} off. `
    + `The ${NAMES[next]} hand ${way}. Because it is faster, it can tell apart positions as close as these.`;
}

export const figure = {
  label: "Two rows of four clocks, whose hands show two positions",
  controls: {
    hundreds: { label: "Lower row, hundreds", min: 0, max: 6200, step: 100, get: ({ m }) => 100 * Math.floor(m / 100), put: (value, { m }) => ({ m: value + (m % 100) }) },
    ones: { label: "Lower row, tens and ones", min: 0, max: 99, get: ({ m }) => Math.round(m) % 100, put: (value, { m }) => ({ m: m - (m % 100) + value }) },
    m: { value: 1922, min: 0, max: 6299, read: (text) => (/^\d{1,4}$/.test(text) && text <= 6299 ? Number(text) : undefined) },
    round: { value: 0, read: (text) => (/^\d{1,4}$/.test(text) ? Number(text) : undefined) },
    play: { label: "Play", plays: "m", perSecond: 8 },
    hide: { label: "Read a hidden row", press: ({ round }) => ({ round: round + 1, m: 0 }) },
    tell: { label: "Show its position", press: ({ round }) => ({ m: shown(round) }), when: ({ round }) => round > 0 },
  },
  enters: { plays: "m", from: () => 1882, to: 1922, perSecond: 8, step: 0.05 },
  draw(stage, { m: exact, round }, own) {
    const above = shown(round);
    const m = Math.round(exact);
    const cell = stage.width / 4;
    const side = Math.min(cell - 4, 150);
    if (own.side !== side) Object.assign(own, { side, dots: null });
    own.dots ??= [...OMEGA].map((speed) => SHADES.map(([tokens, color]) => {
      const path = tokens.map((token) => [Math.sin(speed * token), -Math.cos(speed * token)].map((value) => ((value * side) / 2.3).toFixed(2)));
      return `<path stroke="rgb(${color})" d="M${path.map((at) => at.join(" ")).join("h0M")}h0"/>`;
    }).join(""));
    const pens = `stroke-width="${side < 100 ? 3 : 4.4}" stroke-linecap="round"`;
    [above, m].forEach((position, row) => {
      const top = row * (side + 36);
      const name = round && !row ? (above === m ? `Hidden position: ${written(above)}` : "Hidden position: ?") : `Position ${written(position)}`;
      stage.text(0, top + 14, name, "strong", "start");
      OMEGA.forEach((speed, i) => {
        const plane = stage.plot({ left: i * cell + (cell - side) / 2, top: top + 14, width: side, height: side + 12, right: 0 }, { x: [-1.15, 1.15], y: [-1.15, 1.15] });
        const [x, y] = [Math.sin, Math.cos].map((wave) => wave(speed * (row ? exact : above)));
        stage.add(`<circle class="line faint" cx="${plane.x(0)}" cy="${plane.y(0)}" r="${side / 2.3}"/><g ${pens} transform="translate(${plane.x(0)} ${plane.y(0)})">${own.dots[i]}</g>`);
        stage.drawn.points.push({ x: POSITIONS.map((token) => Math.sin(speed * token)), y: POSITIONS.map((token) => Math.cos(speed * token)) });
        if (row) plane.line([0, Math.sin(speed * above)], [0, Math.cos(speed * above)], "thin dashed", false);
        plane.line([0, x], [0, y], "vermillion hand");
        stage.add(`<circle cx="${plane.x(0)}" cy="${plane.y(0)}" r="4" class="vermillion" fill="currentColor"/>`);
        if (!row) return;
        stage.handle(`hand${i}`, plane.x(x), plane.y(y), (toX, toY) => {
          const turned = shortest(Math.atan2(toX - plane.x(0), plane.y(0) - toY) - speed * m);
          return { m: Math.min(Math.max(Math.round(m + turned / speed), 0), 6299) };
        });
        const off = Math.abs(ahead(speed, above - m));
        const bottom = top + side + 40;
        stage.text(plane.x(0), bottom, off <= AGREE ? "✓ agrees" : `${off}°${side < 76 ? "" : " apart"}`, off <= AGREE ? "green words" : "");
        const turn = (2 * Math.PI) / speed;
        stage.text(plane.x(0), bottom + 26, turn.toLocaleString("en", { maximumFractionDigits: 1, minimumFractionDigits: 1 }), "number");
      });
    });
    const bottom = 2 * (side + 36) + 56;
    stage.text(stage.width / 2, bottom - 6, "positions per turn", "number");
    stage.height = bottom;
    return says(above, m, round > 0);
  },
};
