// Chapter 10: one pair of a query and of a key as arrows, rotated by their positions, and the score that they give.
import { written } from "./draw.js";

const SPEED = 0.3; // ω, in radians per token
const QUERY = [2, 0.6];
const KEY = [0.75, 1];
const REACH = 2.6;

const rotated = ([x, y], angle) => [x * Math.cos(angle) - y * Math.sin(angle), x * Math.sin(angle) + y * Math.cos(angle)];
const angleOf = ([x, y]) => Math.atan2(y, x);
const score = (offset) => {
  const [x, y] = rotated(KEY, SPEED * offset); // of the key, seen from the query
  return QUERY[0] * x + QUERY[1] * y;
};
const OFFSETS = Array.from({ length: 161 }, (_, at) => (at - 80) / 4);

export const figure = {
  label: "A query and a key as two arrows, each rotated by its position",
  controls: {
    m: { label: "Query's position", min: 0, max: 20, value: 5 },
    n: { label: "Key's position", min: 0, max: 20, value: 2 },
    both: { label: "Move both by", min: 0, max: 20, value: 0, show: (value) => `${value} token${value === 1 ? "" : "s"}` },
    play: { label: "Play", plays: "both", perSecond: 4 },
  },
  draw(stage, { m, n, both }) {
    const { width } = stage;
    const side = width < 480 ? Math.min(width, 300) : Math.min(0.46 * width, 300);
    const plane = stage.plot({ left: width < 480 ? (width - side) / 2 : 0, top: 0, width: side, height: side, right: 0 }, { x: [-REACH, REACH], y: [-REACH, REACH] });
    const circle = Array.from({ length: 100 }, (_, at) => (2 * Math.PI * at) / 99);
    const shown = [];
    for (const [vector, position, name, color] of [[QUERY, m + both, "q", "vermillion"], [KEY, n + both, "k", "blue"]]) {
      const radius = Math.hypot(...vector);
      plane.line(circle.map((angle) => radius * Math.cos(angle)), circle.map((angle) => radius * Math.sin(angle)), "faint");
      if (both) plane.arrow(...rotated(vector, SPEED * (position - both)), `${color} faint`, false);
      const [x, y] = rotated(vector, SPEED * position);
      plane.arrow(x, y, color);
      plane.text(x * (1 + 0.4 / radius), y * (1 + 0.4 / radius), name, `${color} words`, "middle", [0, 4]);
      shown.push(angleOf([x, y]));
    }
    const apart = ((shown[1] - shown[0] + 3 * Math.PI) % (2 * Math.PI)) - Math.PI; // the short way
    const arc = Array.from({ length: 30 }, (_, at) => shown[0] + (apart * at) / 29);
    plane.line(arc.map((angle) => 0.7 * Math.cos(angle)), arc.map((angle) => 0.7 * Math.sin(angle)));

    const below = width < 480;
    const chart = stage.plot(
      below ? { left: 0, top: side + 8, width, height: 190 } : { left: side + 16, top: 20, width: width - side - 16, height: side - 20 },
      { x: [-20, 20], y: [-3.2, 3.2], xTicks: [-20, -10, 0, 10, 20], yTicks: [-2, 0, 2], xLabel: "key's position − query's", yLabel: "score" },
    );
    chart.rule({ y: 0 }, "faint");
    chart.line(OFFSETS, OFFSETS.map(score), "green", false);
    chart.rule({ x: n - m }, "faint");
    chart.dots([n - m], [score(n - m)], "black", 5, false);
    const angle = Math.round((Math.abs(apart) * 180) / Math.PI);
    const stands = n === m ? "the same position" : `${Math.abs(n - m)} ${n < m ? "before" : "after"} it`;
    const result = `The angle between the arrows is ${angle}°, and the score is ${written(score(n - m), 2)}`;
    return both
      ? `The query has moved to ${m + both} and the key to ${n + both}, which is still ${stands}. ${result}, as before the move.`
      : `The query is at ${m} and the key at ${n}, which is ${stands}. ${result}.`;
  },
};
