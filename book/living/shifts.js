// Chapter 6: two pairs as clocks. Over the same number of tokens, each hand rotates by the same angle, wherever it starts.
import { listed, shortest, written } from "./draw.js";

const OMEGA = [0.3, 0.1];
const STARTS = [[1, "blue"], [7, "green"], [13, "vermillion"]];
const MOST = 63; // tokens, in which the slower pair makes a whole rotation, and the faster one three
const FARTHEST = 20;
const RIM = 1.15; // where the arcs are
const tip = (angle, radius = 1) => [radius * Math.sin(angle), radius * Math.cos(angle)];
const degrees = (angle) => `${Math.round((angle * 180) / Math.PI)}°`;

export const figure = {
  label: "Two pairs of the table as clocks, each with three hands that are rotated by the same matrix",
  controls: {
    by: { label: "Move all starts by", min: 0, max: MOST, value: 0, show: (by) => written(Math.round(by)) },
    delta: { label: "Tokens later", min: 0, max: FARTHEST, value: 3 },
    play: { label: "Play", plays: "by", perSecond: 6 },
  },
  enters: { plays: "by", from: () => 0, to: MOST, perSecond: 12, step: 0.05 },
  draw(stage, { by, delta }) {
    const { width } = stage;
    const side = Math.min((width - 16) / 2, 270);
    const apart = Math.min(width / 2, 330);
    OMEGA.forEach((omega, pair) => {
      const left = width / 2 + (pair - 1) * apart + (apart - side) / 2;
      const plane = stage.plot({ left, top: 0, width: side, height: side + 12, right: 0 }, { x: [-1.3, 1.3], y: [-1.3, 1.3] });
      const circle = Array.from({ length: 100 }, (_, at) => tip((2 * Math.PI * at) / 99));
      plane.line(circle.map(([x]) => x), circle.map(([, y]) => y), "faint", false);
      for (const [start, color] of STARTS) {
        const [from, to] = [omega * (start + by), omega * (start + by + delta)];
        const [x, y] = tip(from);
        plane.line([0, x], [0, y], `${color} thin`, false);
        const arc = Array.from({ length: 40 }, (_, at) => tip(from + ((to - from) * at) / 39, RIM));
        plane.line(arc.map(([right]) => right), arc.map(([, up]) => up), color);
        if (delta) plane.arrow(...tip(to, RIM), color, false, tip(to - Math.min(omega * delta, 0.15), RIM));
        for (const [angle, position, fill] of [[from, start + by, ""], [to, start + by + delta, "hollow"]]) {
          plane.dots(...tip(angle).map((at) => [at]), `${color} ${fill}`, 5);
          plane.text(...tip(angle, 0.72), Math.round(position), "number halo", "middle", [0, 4]);
        }
      }
      // The last hand's start and end can be dragged around.
      const last = STARTS.at(-1)[0] + by;
      const ring = (name, angle, radius, put) => stage.handle(`${name}${pair}`, ...[plane.x, plane.y].map((scale, axis) => scale(tip(angle, radius)[axis])), (x, y) => {
        const to = Math.atan2(x - plane.x(0), plane.y(0) - y);
        return { [name]: put(Math.round(shortest(to - angle) / omega)) };
      });
      ring("by", omega * last, 1, (more) => (by + more + MOST) % MOST); // where both pairs come home, it begins again
      ring("delta", omega * (last + delta), RIM, (more) => Math.min(Math.max(delta + more, 0), FARTHEST));

      const middle = plane.x(0);
      const top = side + 30;
      stage.text(middle, top, `pair with ω = ${omega}`);
      stage.text(middle, top + 22, `${delta} token${delta === 1 ? "" : "s"}: ${side < 150 ? "" : "always "}${degrees(omega * delta)}`, "words");
      const [cos, sin] = [Math.cos(omega * delta), Math.sin(omega * delta)];
      [[cos, sin], [-sin, cos]].forEach((row, line) => row.forEach((number, column) => (
        stage.text(middle + (column ? 44 : -2), top + 48 + 20 * line, written(number, 2), "number", "end")
      )));
      stage.add(`<path class="line thin" d="M${middle - 38} ${top + 34}h-6v40h6M${middle + 46} ${top + 34}h6v40h-6"/>`);
    });
    stage.height = side + 112;

    const starts = listed(STARTS.map(([start]) => `${Math.round(start + by)}`));
    return `The hands start at positions ${starts}. Over ${delta} token${delta === 1 ? "" : "s"}, each of them rotates by `
      + `${degrees(OMEGA[0] * delta)} in the left pair and by ${degrees(OMEGA[1] * delta)} in the right one. `
      + "The matrix below a clock makes this rotation, and no number in it depends on where a hand starts.";
  },
};
