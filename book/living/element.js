// What all living figures share: they replace a figure, have native controls, keep their state in the address, and say
// what they show in words.
import { Stage, paint, escaped, written } from "./draw.js";

const still = matchMedia("(prefers-reduced-motion: reduce)");
const SETTLED = 600; // milliseconds without a change, after which a change counts as complete

/** A control's element, with `value` to read and to set. Kinds: a slider, a choice, a switch, a text, a button. */
function made(name, control, change) {
  const label = document.createElement("label");
  if (control.press || control.plays) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", textContent: control.label });
    button.addEventListener("click", () => change(name, true));
    return { element: button, set() {} };
  }
  if (control.options) {
    const select = document.createElement("select");
    const keys = Object.keys(control.options);
    select.append(...keys.map((key) => new Option(control.options[key], key)));
    select.addEventListener("change", () => change(name, select.value));
    label.append(`${control.label} `, select);
    return { element: label, set(value) { select.value = value; }, read: (text) => (keys.includes(text) ? text : undefined) };
  }
  const input = document.createElement(control.rows ? "textarea" : "input");
  if (typeof control.value === "boolean") {
    input.type = "checkbox";
    input.addEventListener("change", () => change(name, input.checked));
    label.append(input, ` ${control.label}`);
    return { element: label, set(value) { input.checked = value; }, read: (text) => text === "true" };
  }
  if (typeof control.value === "string") {
    Object.assign(input, control.rows ? { rows: control.rows } : { type: "text" }, { maxLength: control.most, spellcheck: false, autocomplete: "off" });
    input.addEventListener("input", () => change(name, input.value));
    label.append(`${control.label} `, input);
    label.className = "wide";
    return { element: label, set(value) { if (input.value !== value) input.value = value; }, read: (text) => text.slice(0, control.most) };
  }
  // A slider over `values` runs over their indices, so that each key press moves to the next value.
  const { values, show = (value) => written(value) } = control;
  const shown = document.createElement("span"); // an output would take the label for itself
  const { min = 0, max = values?.length - 1, step = 1 } = control;
  const movable = typeof max === "function"; // an end that depends on the state
  Object.assign(input, { type: "range", min, step }, movable ? {} : { max });
  const inside = (value) => (values ? values.includes(value) : value >= min && (movable || value <= max));
  input.addEventListener("input", () => change(name, values ? values[input.value] : Number(input.value)));
  label.append(`${control.label} `, shown, input);
  return {
    element: label,
    set(value, state) {
      if (movable) input.max = max(state);
      input.value = values ? values.indexOf(value) : value;
      shown.textContent = show(value, state);
      input.setAttribute("aria-valuetext", shown.textContent);
    },
    read: (text) => (text.trim() && inside(Number(text)) ? Number(text) : undefined),
  };
}

/**
 * Start a living figure instead of the plain one. `figure` has
 * - label: what a screen reader calls it; controls: name -> {label, value, …}, by name in the state and in the address
 *   (a slider's max may be a function of the state; one that shows only a part of the state has get(state) and put(value, state); those
 *   that are `compact` stand close together, a text with `rows` may have several lines, a button with `named(state, own)` is
 *   called so);
 * - draw(stage, state, own): draws a frame on the stage and returns what it shows in words. `own` is one object for all frames: the
 *   figure keeps there what it has computed; own.data is what `needs` names, own.redraw() asks for another frame, own.asked tells
 *   whether models are to be asked, and own.wait(promise) says what went wrong with them, until a button is pressed again;
 * - needs(state, target): names of data to load before the first frame;
 * - point(x, y, state, own): where the pointer is, in pixels of the stage, -> what of the state changes.
 */
export async function start(host, figure) {
  const id = host.getAttribute("for");
  const plain = document.getElementById(id);
  const address = id.replace("fig-", "");
  const controls = figure.controls;
  const defaults = Object.fromEntries(Object.entries(controls).map(([name, { value }]) => [name, value]));
  const state = { ...defaults };
  const own = { redraw, data: {} };
  own.wait = async (answer) => {
    try { await answer; } catch (error) { Object.assign(own, { asked: false, failed: error.message }); }
    changed(); // the change is complete, and is to be spoken
  };
  for (const name of figure.needs ?? []) own.data[name] = await living.load(`data/${name.replace("{for}", id)}`);

  host.setAttribute("role", "group");
  host.setAttribute("aria-label", figure.label);
  // What is drawn is said in words below; the picture is hidden from screen readers.
  host.innerHTML = `<p class="try">${escaped(host.getAttribute("try"))}</p><div class="stage"><svg aria-hidden="true"></svg></div>`
    + '<p class="says"></p><p role="status"></p><div class="controls"></div><div class="buttons"></div>';
  const [, stageBox, says, spoken, panel, buttons] = host.children;
  const [svg] = stageBox.children;

  const compact = document.createElement("div");
  compact.className = "compact";
  if (Object.values(controls).some((control) => control.compact)) panel.append(compact);
  const parts = {};
  let playing = null;
  for (const [name, control] of Object.entries(controls)) {
    if (!control.label) continue; // part of the state, moved by other controls
    parts[name] = made(name, control, (which, value) => {
      if (control.plays) return play(control, parts[name].element);
      if (control.press) {
        own.failed = "";
        Object.assign(state, control.press(state, own));
      }
      else if (control.put) Object.assign(state, control.put(value, state));
      else state[which] = value;
      changed();
    });
    const grid = control.compact ? compact : panel;
    (control.press || control.plays ? buttons : grid).append(parts[name].element);
  }
  const back = document.createElement("button");
  Object.assign(back, { type: "button", textContent: "Start again" });
  back.addEventListener("click", () => { stop(); Object.assign(state, defaults); changed(); });
  buttons.append(back);

  function play(control, button) {
    if (playing) { stop(); return changed(); }
    const { plays, label, perSecond = 1 } = control;
    const { min, max, step = 1 } = controls[plays];
    const speed = () => (typeof perSecond === "function" ? perSecond(state) : perSecond);
    const forward = (by) => {
      const next = Number((state[plays] + by).toFixed(6)); // without the rounding errors of many small steps
      state[plays] = Math.min(next, max);
      if (next >= max) stop();
      changed();
    };
    if (state[plays] >= max) state[plays] = min;
    if (still.matches) return forward(Math.max(step, speed())); // a step for each press
    button.textContent = "Pause";
    let before;
    const tick = (now) => {
      if (!playing) return;
      if (before !== undefined) {
        const by = Math.floor(((now - before) / 1000) * speed() / step) * step;
        if (by > 0) { forward(by); before = now; }
      } else before = now;
      playing.frame = requestAnimationFrame(tick);
    };
    playing = { stop() { cancelAnimationFrame(this.frame); button.textContent = label; } };
    playing.frame = requestAnimationFrame(tick);
  }
  function stop() { playing?.stop(); playing = null; }

  // The words follow every step for the eye, and are spoken when a change is complete; then the address is updated, too.
  let settling;
  function changed() {
    redraw();
    clearTimeout(settling);
    if (!playing) settling = setTimeout(() => { spoken.textContent = says.textContent; keep(); }, SETTLED);
  }
  function keep() {
    const url = new URL(location);
    for (const [name, value] of Object.entries(state)) {
      if (value === defaults[name] || value === undefined) url.searchParams.delete(`${address}.${name}`);
      else url.searchParams.set(`${address}.${name}`, value);
    }
    if (url.search !== location.search) url.hash = id; // a link to the setting leads to the figure
    try { history.replaceState(history.state, "", url); } catch { /* some browsers keep the address of a file as it is */ }
  }
  for (const [key, text] of new URLSearchParams(location.search)) {
    const name = key.startsWith(`${address}.`) && key.slice(address.length + 1);
    if (!name || !(name in controls)) continue;
    const value = (parts[name]?.read ?? controls[name].read)?.(text);
    if (value !== undefined) state[name] = value;
  }

  let asked = false;
  function redraw() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; draw(); });
  }
  function draw() {
    const width = stageBox.clientWidth;
    if (!width) return;
    const stage = new Stage(width);
    const words = figure.draw(stage, state, own);
    for (const [name, part] of Object.entries(parts)) {
      part.set(controls[name].get ? controls[name].get(state) : state[name], state);
      if (controls[name].named) part.element.textContent = controls[name].named(state, own);
      const gone = controls[name].when ? !controls[name].when(state, own) : false;
      if (gone && part.element.contains(document.activeElement)) back.focus({ preventScroll: true }); // else it would be nowhere
      part.element.hidden = gone;
    }
    svg.setAttribute("viewBox", `0 0 ${width} ${stage.height}`);
    svg.innerHTML = stage.parts.join("");
    const canvases = [...stageBox.querySelectorAll("canvas")];
    stage.heats.forEach((heat, at) => {
      const canvas = canvases[at] ?? stageBox.insertBefore(document.createElement("canvas"), svg);
      paint(canvas, heat);
    });
    canvases.slice(stage.heats.length).forEach((canvas) => canvas.remove());
    says.textContent = own.failed || words;
    host.drawn = stage.drawn; // what the tests compare with the plain figure's numbers
    host.state = { ...state };
  }

  if (figure.point) {
    const moved = (event) => {
      if (event.pointerType === "touch" && event.type === "pointermove" && !event.isPrimary) return;
      const box = svg.getBoundingClientRect();
      const part = figure.point(event.clientX - box.left, event.clientY - box.top, state, own, event.buttons > 0);
      if (part) { stop(); Object.assign(state, part); changed(); }
    };
    svg.addEventListener("pointerdown", moved);
    svg.addEventListener("pointermove", moved);
  }

  plain.insertBefore(host, plain.querySelector("figcaption"));
  plain.classList.add("lives");
  new ResizeObserver(redraw).observe(stageBox);
  draw();
  // It is taller than the plain figure, so a reader who followed a link to it is scrolled to its beginning again.
  if (location.hash === `#${id}` && Math.abs(plain.getBoundingClientRect().top) < innerHeight) plain.scrollIntoView();
}
