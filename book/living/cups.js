// Chapter 15: the shell game with three cups, where the ball is an arrow and each swap a mirror; and the same swaps as rotations.
import { clip, listed } from "./draw.js";
import { reflect } from "./formulas.js";

const THIRD = (2 * Math.PI) / 3;
/** @type {[x: number, y: number][]} */
const CUPS = [0, 1, 2].map((cup) => [Math.cos(Math.PI / 2 + cup * THIRD), Math.sin(Math.PI / 2 + cup * THIRD)]);
const SWAPS = { A: [0, 1], B: [1, 2], C: [0, 2] };
const MOST = 12; // swaps in a game
const REACH = 1.65;

const played = ({ game, steps }) => game.slice(0, steps);
const third = (name) => CUPS[3 - SWAPS[name][0] - SWAPS[name][1]]; // the cup that stays, and lies on the mirror
/** A swap's rotation, a third of a whole one for each cup from the first to the second of the two. */
const angle = (name) => (SWAPS[name][1] - SWAPS[name][0]) * THIRD;

/** The arrow after each swap, first that to cup 0. */
function arrows(swaps, mode) {
  /** @type {[x: number, y: number][]} */
  const found = [CUPS[0]];
  for (const name of swaps) {
    const [x, y] = found.at(-1);
    const [a, b] = SWAPS[name].map((cup) => CUPS[cup]);
    const [cos, sin] = [Math.cos(angle(name)), Math.sin(angle(name))];
    const [right, up] = mode === "mirrors" ? reflect([x, y], [a[0] - b[0], a[1] - b[1]]) : [x * cos - y * sin, x * sin + y * cos];
    found.push([right, up]);
  }
  return found;
}

/** The ball's cup after each swap, played with three cups. */
function cups(swaps) {
  const found = [0];
  for (const name of swaps) {
    const [a, b] = SWAPS[name];
    const cup = found.at(-1);
    found.push(cup === a ? b : cup === b ? a : cup);
  }
  return found;
}

const pointed = ([x, y]) => CUPS.findIndex((cup) => x * cup[0] + y * cup[1] > 0.9);

const add = (name) => ({
  label: `${name}: swap ${SWAPS[name][0]} and ${SWAPS[name][1]}`,
  press: ({ game }) => (game.length < MOST ? { game: game + name, steps: game.length + 1 } : {}),
});

/** @type {import("./element.js").Figure<{ game: string, mode: string, steps: number }>} */
export const figure = {
  label: "The shell game as arrows that are reflected or rotated, beside the game with three cups",
  controls: {
    game: { value: "AB", read: (text) => (/^[ABC]{0,12}$/.test(text) ? text : undefined) },
    mode: { label: "Each swap is a", value: "mirrors", options: { mirrors: "mirror", rotations: "rotation" }, more: true },
    steps: {
      label: "Swaps so far", min: 0, max: ({ game }) => game.length, value: 2, get: ({ game, steps }) => Math.min(steps, game.length),
      show: (value, { game }) => `${value} of ${game.length}`,
    },
    A: add("A"),
    B: add("B"),
    C: add("C"),
    back: { label: "Take back the last swap", more: true, press: ({ game }) => ({ game: game.slice(0, -1), steps: Math.max(game.length - 1, 0) }) },
  },
  draw(stage, state) {
    const { mode } = state;
    const swaps = [...played(state)];
    const { width } = stage;
    const below = width < 480;
    const side = below ? Math.min(width, 240) : Math.min(0.5 * width, 320);
    const way = arrows(swaps, mode);
    const ball = way.at(-1);
    const turned = arrows([...swaps].reverse(), mode).at(-1);
    const real = cups(swaps);
    const [cup, found, reversed] = [real.at(-1), pointed(ball), pointed(turned)];
    const last = swaps.at(-1);

    const plane = stage.plot(
      { left: below ? (width - side) / 2 : 0, top: 0, width: side, height: 0.92 * side, right: 0 },
      { x: [-REACH, REACH], y: [-1.3, 1.6] },
    );
    if (mode === "mirrors") {
      for (const name of Object.keys(SWAPS)) {
        const [x, y] = third(name);
        plane.line([-0.95 * x, x], [-0.95 * y, y], `dashed ${name === last ? "" : "faint"}`, name === last);
        plane.text(-1.1 * x, -1.1 * y, name, name === last ? "words" : "pale", "middle", [0, 4]);
      }
    } else if (last) {
      const to = Math.atan2(ball[1], ball[0]);
      const arc = Array.from({ length: 40 }, (_, at) => to - angle(last) * (1 - at / 39));
      plane.line(arc.map((each) => 0.5 * Math.cos(each)), arc.map((each) => 0.5 * Math.sin(each)), "thin", false);
      const degrees = Math.round((angle(last) * 180) / Math.PI);
      const middle = to - angle(last) / 2;
      plane.text(0.72 * Math.cos(middle), 0.72 * Math.sin(middle), `${degrees}°`, "", "middle", [0, 4]);
    }
    CUPS.forEach(([x, y], at) => plane.text(1.25 * x, 1.25 * y, `cup ${at}`, at === found ? "vermillion words" : "", "middle", [0, 4]));
    if (reversed !== found) {
      plane.arrow(...turned, "blue faint");
      plane.text(1.25 * CUPS[reversed][0], 1.25 * CUPS[reversed][1], "reversed", "blue words", "middle", [0, reversed ? 20 : -14]);
    }
    plane.arrow(...ball, "vermillion");

    // The game with cups: a row for each swap, on a phone for the last five.
    const rows = swaps.length + 1;
    const most = below ? 6 : MOST + 1;
    const from = Math.max(0, rows - most);
    const step = Math.min(34, (20 * most) / (rows - from));
    const [left, top] = below ? [Math.max(0, (width - 300) / 2), 0.92 * side + 16] : [side + 24, 0];
    const right = below ? left + Math.min(300, width) : width;
    const table = stage.plot(
      { left: left + 84, top, width: right - left - 84, height: 40 + (rows - from) * step, right: 0 },
      { x: [-0.5, 2.5], y: [rows - 0.5, from - 0.5], title: from ? "the cups, last five swaps" : "the cups, swap by swap" },
    );
    real.forEach((_, row) => {
      if (row < from) return;
      const name = swaps[row - 1];
      table.text(-0.5, row, row ? `${name}: ${SWAPS[name].join(" and ")}` : "start", "", "end", [-10, 4]);
      if (row > from) {
        SWAPS[name].forEach((from, first) => {
          const to = SWAPS[name][1 - first];
          const moves = real[row - 1] === from;
          table.line([from, to], [row - 1, row], moves ? "vermillion" : "thin faint", false);
        });
        const still = 3 - SWAPS[name][0] - SWAPS[name][1];
        table.line([still, still], [row - 1, row], real[row - 1] === still ? "vermillion" : "thin faint", false);
      }
    });
    real.forEach((at, row) => {
      if (row < from) return;
      table.dots([0, 1, 2].filter((one) => one !== at), [row, row], "hollow", 6, false);
      table.dots([at], [row], "vermillion", 6, false);
    });
    const pitch = table.y(1) - table.y(0);
    stage.handle("steps", table.x(cup), table.y(rows - 1), (_, y) => (
      { steps: clip(swaps.length + Math.round((y - table.y(rows - 1)) / pitch), 0, state.game.length) }
    ));
    const bottom = table.bottom + 20;
    [0, 1, 2].forEach((one) => stage.text(table.x(one), bottom, `cup ${one}`, one === cup ? "vermillion words" : "number"));
    stage.height = Math.max(0.92 * side, top + 20 * most + 68); // as for the longest game, so that nothing below jumps

    if (!swaps.length) return "The ball begins under cup 0, and no cups have been swapped yet.";
    const how = mode === "mirrors" ? "reflected" : "rotated";
    const ends = found === cup ? `and the ball is under cup ${cup}, too` : `but the ball is under cup ${cup}`;
    const said = `After ${listed(swaps)}, the ${how} arrow points to cup ${found}, ${ends}.`;
    if (mode === "rotations") return `${said} (A and B rotate the arrow by 120°, and C by 240°.)`;
    const backwards = [...swaps].reverse();
    if (backwards.join("") === swaps.join("")) return said;
    const end = reversed === found ? `cup ${found}, too` : `cup ${reversed} (pale arrow)`;
    return `${said} In reverse order, the same swaps take it to ${end}.`;
  },
};
