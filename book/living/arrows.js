// Chapter 10: one pair of a query and of a key as arrows, rotated by their positions, and their score.
import { clip, counted, shortest, written } from "./draw.js";

const SPEED = Math.PI / 9; // ω, in radians per token: 20°
const QUERY = 2; // their lengths
const KEY = 1.25;
const AHEAD = (25 * Math.PI) / 180; // at position 0, the query's arrow points to the right, and the key's is ahead of it by this angle
const REACH = 2.9;

/** @type {(length: number, angle: number) => [x: number, y: number]} */
const tip = (length, angle) => [length * Math.cos(angle), length * Math.sin(angle)];
const score = (offset) => QUERY * KEY * Math.cos(SPEED * offset - AHEAD);
const OFFSETS = Array.from({ length: 161 }, (_, at) => (at - 80) / 4);

/** @type {import("./element.js").Figure<{ m: number, n: number, both: number }>} */
export const figure = {
  label: "A query and a key as two arrows, each rotated by its position",
  controls: {
    m: { label: "Query's position", min: 0, max: 20, value: 5, more: true },
    n: { label: "Key's position", min: 0, max: 20, value: 2, more: true },
    both: { label: "Move both by", min: 0, max: 20, value: 0, show: (value) => counted(Math.round(value), "token") },
    play: { label: "Play", plays: "both", perSecond: 4 },
    swap: { label: "Swap the positions", press: ({ m, n }) => ({ m: n, n: m }) },
  },
  enters: { plays: "both", from: () => 0, to: 18, perSecond: 4, step: 0.02 }, // 18 times 20° is a whole rotation
  draw(stage, { m, n, both }) {
    const { width } = stage;
    const side = width < 480 ? Math.min(width, 270) : Math.min(0.46 * width, 300);
    const plane = stage.plot({ left: width < 480 ? (width - side) / 2 : 0, top: 0, width: side, height: side, right: 0 }, { x: [-REACH, REACH], y: [-REACH, REACH] });
    const circle = Array.from({ length: 100 }, (_, at) => (2 * Math.PI * at) / 99);
    /** @type {[length: number, start: number, position: number, name: string, color: string][]} */
    const arrows = [[QUERY, 0, m, "q", "vermillion"], [KEY, AHEAD, n, "k", "blue"]];
    for (const [length, start, position, name, color] of arrows) {
      const angle = start + SPEED * (position + both);
      plane.line(circle.map((at) => length * Math.cos(at)), circle.map((at) => length * Math.sin(at)), "faint");
      if (both) plane.arrow(...tip(length, start + SPEED * position), `${color} faint`, false);
      plane.arrow(...tip(length, angle), color);
      plane.text(...tip(length + 0.7, angle), name, `${color} words`, "middle", [0, 4]);
      const which = name === "q" ? "m" : "n";
      const [endX, endY] = tip(length + 0.28, angle);
      stage.handle(which, plane.x(endX), plane.y(endY), (x, y) => {
        const to = Math.atan2(plane.y(0) - y, x - plane.x(0));
        const by = Math.round(shortest(to - angle) / SPEED);
        return { [which]: clip(position + by, 0, 20) };
      });
    }
    const apart = shortest(SPEED * (n - m) + AHEAD);
    const arc = Array.from({ length: 30 }, (_, at) => SPEED * (m + both) + (apart * at) / 29);
    plane.line(arc.map((angle) => 0.7 * Math.cos(angle)), arc.map((angle) => 0.7 * Math.sin(angle)));
    const angle = Math.round((Math.abs(apart) * 180) / Math.PI);
    if (angle) plane.text(...tip(1.3, SPEED * (m + both) + apart / 2), `${angle}°`, "words", "middle", [0, 4]);

    const below = width < 480;
    const chart = stage.plot(
      below ? { left: 0, top: side + 8, width, height: 170 } : { left: side + 16, top: 20, width: width - side - 16, height: side - 20 },
      { x: [-20, 20], y: [-3.2, 3.2], xTicks: [-20, -10, 0, 10, 20], yTicks: [-2, 0, 2], xLabel: "query's position − key's", yLabel: "score" },
    );
    chart.rule({ y: 0 }, "faint");
    chart.line(OFFSETS, OFFSETS.map(score), "green", false);
    chart.rule({ x: m - n }, "faint");
    chart.dots([m - n], [score(m - n)], "black", 5, false);
    const still = both ? "still " : "";
    const now = Math.round(both);
    const key = `${counted(Math.abs(n - m), "token")} ${n < m ? "before" : "after"} it, at position ${n + now}`;
    const where = n === m
      ? `The query and the key are ${still}both at position ${m + now}.`
      : `The query ${both ? "has moved to" : "is at"} position ${m + now}, and the key is ${still}${key}.`;
    return `The angle between the arrows is ${still}${angle}°, and the score is ${still}${written(score(m - n), 2)}. ${where}`;
  },
};
