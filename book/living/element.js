// What all living figures share: they replace a figure, have native controls, keep their state in the address, and say
// what they show in words.
import { Stage, paint, escaped, written } from "./draw.js";

const still = matchMedia("(prefers-reduced-motion: reduce)");
const SETTLED = 600; // milliseconds without a change, after which a change counts as complete
const SLIP = 8; // pixels that a finger moves before it is clear whether it scrolls
const FEW = 4; // options, all of which are seen at once
const ROOM = 28; // letters that have room in a third of the width, where each option takes the room of three more
const STICKS = 0.68; // of the window's height: a picture that is lower stays in sight on a phone while its controls are used

// What moves by itself does so once, when most of it is in view, and one figure at a time.
/** @typedef {{ seen: boolean, begin(): void }} Entrance */
/** @type {Set<Entrance>} */
const waiting = new Set();
/** @type {Entrance | null} */
let entering = null;
function enter() {
  if (entering) return;
  entering = [...waiting].find(({ seen }) => seen) ?? null;
  entering?.begin();
}

/** @type {<Tag extends keyof HTMLElementTagNameMap>(tag: Tag, properties: object, ...children: (Node | string)[]) => HTMLElementTagNameMap[Tag]} */
const create = (tag, properties, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

/** A control: its element, set(value, state), and read(text), the value that an address gives. Buttons apart, it has two lines: its
 *  name and its value above, and what is moved below. Kinds: a button, a choice, a switch, a text, a slider.
 *  @typedef {{ element: HTMLElement, set(value: any, state?: any): void, read?(text: string): any }} Part
 *  @param {string} name @param {Control} control @param {(name: string, value: any) => void} change @param {string} id @param {Own} own
 *  @returns {Part} */
function made(name, control, change, id, own) {
  if (control.press || control.plays) {
    const button = create("button", { type: "button", textContent: control.label });
    button.addEventListener("click", () => change(name, true));
    return { element: button, set(value, state) { if (control.pressed) button.ariaPressed = `${control.pressed(state)}`; } };
  }
  const title = create("span", { textContent: control.label });
  if (control.options) {
    const options = typeof control.options === "function" ? control.options(own.data) : control.options;
    const keys = Object.keys(options);
    const read = (text) => (keys.includes(text) ? text : undefined);
    if (keys.length > FEW) {
      const select = create("select", {}, ...keys.map((key) => new Option(options[key], key)));
      for (const [label, within] of Object.entries(control.groups?.(own.data) ?? {})) {
        select.append(create("optgroup", { label }, ...[...select.options].filter(({ value }) => within.includes(value))));
      }
      select.addEventListener("change", () => change(name, select.value));
      return { element: create("label", { className: "control" }, title, select), set(value) { select.value = value; }, read };
    }
    const group = `${id}.${name}`;
    const radios = keys.map((key) => create("input", { type: "radio", name: group, value: key }));
    const words = keys.map((key) => create("span", { textContent: options[key] }));
    const segments = create("div", { className: "segments" }, ...radios.map((radio, at) => create("label", {}, radio, words[at])));
    const element = create("div", { className: `control${segments.textContent.length + 3 * keys.length > ROOM ? " wide" : ""}` }, title, segments);
    title.id = group;
    element.setAttribute("role", "radiogroup");
    element.setAttribute("aria-labelledby", group);
    for (const radio of radios) radio.addEventListener("change", () => change(name, radio.value));
    return { element, set(value) { for (const radio of radios) radio.checked = radio.value === value; }, read };
  }
  const input = /** @type {HTMLInputElement} */ (create(control.rows ? "textarea" : "input", {}));
  const element = create("label", { className: "control" }, title, input);
  if (typeof control.value === "boolean") {
    input.type = "checkbox";
    input.setAttribute("role", "switch");
    input.addEventListener("change", () => change(name, input.checked));
    return { element, set(value) { input.checked = value; }, read: (text) => text === "true" };
  }
  if (typeof control.value === "string") {
    Object.assign(input, control.rows ? { rows: control.rows } : { type: "text" }, { maxLength: control.most, spellcheck: false, autocomplete: "off" });
    input.addEventListener("input", () => change(name, input.value));
    element.classList.add("wide");
    const set = (value) => { if (input.value !== value) input.value = value; };
    if (control.file) return { element: withFile(element, control, (text) => change(name, text)), set };
    return { element, set, read: (text) => text.slice(0, control.most) };
  }
  // A slider over `values` runs over their indices, so that each key press moves to the next value.
  const { values, show = (value) => written(value) } = control;
  const shown = create("span", {}); // an output would take the label for itself
  shown.setAttribute("aria-hidden", "true"); // the slider says it as its value
  title.after(shown);
  const { min = 0, max = values?.length - 1, step = 1 } = control;
  const movable = typeof max === "function"; // an end that depends on the state
  Object.assign(input, { type: "range", min, step }, movable ? {} : { max });
  const inside = (value) => (values ? values.includes(value) : value >= min && (movable || value <= max));
  input.addEventListener("input", () => change(name, values ? values[input.value] : Number(input.value)));
  return {
    element,
    set(value, state) {
      if (movable) input.max = `${max(state)}`;
      input.value = values ? values.indexOf(value) : value;
      shown.textContent = show(value, state, own);
      input.setAttribute("aria-valuetext", shown.textContent);
    },
    read: (text) => (text.trim() && inside(Number(text)) ? Number(text) : undefined),
  };
}

/** A text that may also come from a file, which is chosen, or dropped on it.
 *  @param {HTMLElement} label @param {Control} control @param {(text: string) => void} change */
function withFile(label, control, change) {
  const file = create("input", { type: "file", accept: control.file });
  file.setAttribute("aria-label", `${label.textContent}: a file`);
  const element = create("div", { className: "wide file" }, label, file);
  const read = async (one) => one && change(await one.slice(0, control.most).text());
  file.addEventListener("change", () => { read(file.files[0]); file.value = ""; }); // so that the same file can be chosen again
  element.addEventListener("dragover", (event) => event.preventDefault());
  element.addEventListener("drop", (event) => {
    if (!event.dataTransfer.files.length) return; // a text that is dropped goes where it is dropped
    event.preventDefault();
    read(event.dataTransfer.files[0]);
  });
  return element;
}

/**
 * The form of a figure's module, which exports `figure`. The state holds the controls' values, by name.
 * @template {Record<string, any>} [State=any]
 * @typedef {object} Figure
 * @property {string} label what a screen reader calls it
 * @property {Record<string, Control<State>>} controls by their names in the state and in the address
 * @property {(stage: Stage, state: State, own: Own) => string} draw draws a frame on the stage and returns what it shows in words
 * @property {(x: number, y: number, state: State, own: Own) => Partial<State> | void} [point] what of the state changes where the pointer is
 *   pressed, in pixels of the stage
 * @property {string[]} [needs] data to load before the first frame; "{for}" stands for what a cell gave to the plain figure
 * @property {{ label: string, only?: boolean }} [asks] it has models to ask. Any change that the reader makes asks
 *   them, unless it is `only` the button of this label that does; else this button is there where data are to be saved, or after a
 *   failure
 * @property {{ plays: keyof State & string, from(width: number, state: State): number, to?: number, perSecond: number, step?: number }} [enters] what
 *   it moves by itself, once, to its value in the first state if there is no `to`
 * @property {boolean} [reports] whether it sets own.finding and own.report, beside which its words stay in sight
 * @property {boolean} [unsent] whether the address keeps the state in its fragment, which no server gets
 */
/**
 * A control is a button (`press` or `plays`), a choice (`options`), a switch, a text, or a slider, by its value. Without a label it is
 * part of the state, moved by other controls, or by none.
 * @template {Record<string, any>} [State=any]
 * @typedef {object} Control
 * @property {string} [label]
 * @property {boolean | string | number} [value] in the first state
 * @property {number} [min] of a slider @property {number | ((state: State) => number)} [max] @property {number} [step]
 * @property {number[]} [values] of a slider that has only these @property {(value: any, state: State, own: Own) => string} [show]
 * @property {Record<string, string> | ((data: any) => Record<string, string>)} [options] value -> name
 * @property {(data: any) => Record<string, string[]>} [groups] of many options
 * @property {number} [rows] of a text with several lines @property {number} [most] letters @property {string} [file] kinds that may hold it
 * @property {(state: State, own: Own) => Partial<State> | void} [press] what of the state changes
 * @property {keyof State & string} [plays] what a button moves @property {number} [perSecond]
 * @property {(state: State) => number} [to] where it ends
 * @property {(state: State, own: Own) => string} [named] what a button is called now
 * @property {(state: State) => string} [told] what a screen reader calls it @property {(state: State) => boolean} [pressed]
 * @property {(state: State, own: Own) => any} [get] what it shows @property {(value: any, state: State, own: Own) => Partial<State>} [put]
 * @property {(text: string) => any} [read] the value that an address gives
 * @property {(state: State, own: Own) => unknown} [when] whether it is there
 * @property {boolean} [more] folded @property {boolean} [placed] in the picture
 */
/**
 * One object for all frames, where the figure keeps what it has computed.
 * @typedef {Record<string, any> & Shared} Own
 * @typedef {object} Shared
 * @property {Record<string, any>} data what the figure `needs`, by these names
 * @property {() => void} redraw asks for another frame
 * @property {boolean} [asked] whether models are to be asked
 * @property {(answer: Promise<unknown>, undo?: () => void) => void} wait says what went wrong with the models, until the reader tries again
 * @property {string} [failed] what went wrong
 * @property {boolean} still whether nothing may move
 * @property {string} [moves] what moves by itself now
 * @property {boolean} repeated whether the page repeats the figure for readers who know no nats
 * @property {boolean} before whether a prediction waits, so that the answer isn't to be shown before the reader moves something
 * @property {string} [order] what to try now
 * @property {string} [finding] a sentence that stands above the picture, instead of the first of its words
 * @property {string} [report] HTML that stands below the words
 */

/**
 * Start a living figure instead of the plain one. An element may begin with another `state`, and so show another view; if it repeats
 * a figure of another page, it says so (`of`), and may show only some controls (`shows`). As long as the prediction above it waits,
 * its state is that `before` the answer. It tells one thing to `try`, and what `more` there is in a fold.
 * @param {HTMLElement & { drawn?: object, state?: object, said?: string }} host @param {Figure} figure
 */
export async function start(host, figure) {
  const id = host.getAttribute("for");
  const plain = document.getElementById(id);
  const address = id.replace("fig-", "");
  const { asks, enters } = figure;
  const saves = navigator.connection?.saveData;
  /** @type {Record<string, Control>} */
  const controls = { ...figure.controls, ...asks && { asks: {
    label: asks.label, press: () => ask() && {}, when: () => !own.asked && Boolean(asks.only || saves || own.failed),
  } } };
  const defaults = Object.fromEntries(Object.entries(controls).map(([name, { value }]) => [name, value]));
  const set = (attribute) => {
    for (const [name, text] of new URLSearchParams(host.getAttribute(attribute) ?? "")) {
      defaults[name] = typeof defaults[name] === "number" ? Number(text) : text;
    }
  };
  set("state");
  const linked = `${location.search}${location.hash}`.includes(`${address}.`); // to a setting of this figure
  const asked = linked ? null : plain.closest(".asked");
  const answered = { ...defaults };
  if (asked) set("before");
  const shown = host.getAttribute("shows")?.split(" ");
  /** @type {any} */
  const state = { ...defaults };
  /** @type {Own} */
  const own = { redraw, wait, still: still.matches, repeated: host.hasAttribute("of"), before: Boolean(asked), data: {} };
  const ask = () => Object.assign(own, { asked: true, failed: "" });
  /** @param {Promise<unknown>} answer @param {() => void} [undo] */
  async function wait(answer, undo) {
    try { await answer; } catch (error) {
      undo?.();
      Object.assign(own, { asked: false, failed: error.message });
    }
    changed(); // the change is complete, and is to be spoken
  }
  for (const name of figure.needs ?? []) own.data[name] = await living.load(`data/${name.replace("{for}", host.getAttribute("of") ?? id)}`);

  host.setAttribute("role", "group");
  host.setAttribute("aria-label", figure.label);
  // What is drawn is said in words, the first sentence above the picture, which is hidden from screen readers.
  host.innerHTML = `<div class="head"><p class="try">${escaped(host.getAttribute("try"))}</p></div><p class="finding"></p>`
    + '<div class="stage"><svg aria-hidden="true"></svg></div><div class="controls"></div><div class="buttons"></div><p role="status"></p>';
  const [head, finding, stageBox, panel, buttons, spoken] = /** @type {HTMLCollectionOf<HTMLElement>} */ (host.children);
  const svg = stageBox.querySelector("svg");
  const folded = (control) => !shown && control.more; // where few are shown, all are in sight
  const folds = Object.values(controls).some(folded);
  const report = create("div", { className: "report" });
  const says = create("p", { className: "says" });
  const more = create("div", { className: "controls" });
  const orders = host.getAttribute("more") ?? "";
  const fold = create("details", { className: "more" }, create("summary", { textContent: orders || folds ? "More to try" : "In numbers" }),
    create("p", { textContent: orders }), more, says);
  if (figure.reports) {
    finding.setAttribute("aria-live", "polite");
    buttons.after(says, report);
  } else buttons.after(fold);

  /** @type {Record<string, Part>} */
  const parts = {};
  /** @type {{ plays: string, button: HTMLElement, frame: number } | null} */
  let playing = null;
  for (const [name, control] of Object.entries(controls)) {
    if (!control.label) continue; // part of the state, moved by other controls, or by none
    parts[name] = made(name, control, (which, value) => {
      if (control.plays) return play(control, parts[name].element);
      move(control.press ? control.press(state, own) ?? {} : control.put ? control.put(value, state, own) : { [which]: value });
    }, id, own);
    if (shown && !shown.includes(name)) continue; // only an address moves it
    const button = control.press || control.plays;
    const box = control.placed ? stageBox : folded(control) ? more : button ? buttons : panel;
    parts[name].element.classList.toggle("placed", Boolean(control.placed));
    box.append(parts[name].element);
  }
  panel.prepend(...panel.querySelectorAll(":scope > .wide:has(.segments)")); // so that no row of the others is torn apart
  const back = create("button", { type: "button", className: "again", textContent: "Start again" });
  back.addEventListener("click", () => { stop(); Object.assign(state, defaults); changed(); });
  const menu = create("div", { id: `${id}-menu`, className: "menu", popover: "auto" }, back); // filled when it is opened
  const menuButton = create("button", { type: "button", textContent: "⋯", ariaLabel: "Menu of this figure", popoverTargetElement: menu });
  menu.addEventListener("beforetoggle", () => living.load("take").then(
    ({ take }) => take(menu, host, plain),
    ({ message }) => { finding.textContent = message; },
  ), { once: true });
  head.append(menuButton, menu);
  asked?.addEventListener("opened", () => {
    const untouched = Object.keys(state).every((name) => state[name] === defaults[name]);
    own.before = false;
    Object.assign(defaults, answered);
    if (untouched) Object.assign(state, defaults);
    changed();
  }, { once: true });

  /** @type {{ x: number, y: number, ring: Stage["handles"][0], acts: boolean, before: object, part?: object } | null} */
  let held = null; // the pointer that is down: where, on which ring, whether it acts, the state before, and what it changed last
  /** What the reader changes. The models are asked about it when no pointer is down any more. */
  function move(part) {
    if (!part) return;
    if (held) held.part = part;
    if (held && !held.acts) return;
    host.dispatchEvent(new Event("moved"));
    if (playing?.plays in part) stop();
    own.failed = "";
    if (asks && !asks.only && !saves && !held) ask();
    Object.assign(state, part);
    changed();
  }

  function play(control, button) {
    if (playing) { stop(); return changed(); }
    const { plays, perSecond = 1 } = control;
    const { min, max, step = 1 } = /** @type {Control & { max: number }} */ (controls[plays]);
    const to = control.to?.(state) ?? max;
    if (state[plays] >= to) state[plays] = enters?.plays === plays ? enters.from(stageBox.clientWidth, state) : min;
    if (still.matches) {
      state[plays] = Math.min(state[plays] + Math.max(step, perSecond), to); // a step for each press
      return changed();
    }
    run({ plays, perSecond, step, to, button });
  }
  // Moves a part of the state on to `to`, a frame at a time, and then calls `ended`.
  function run({ plays, perSecond, step, to, button, ended = () => { stop(); changed(); } }) {
    clearTimeout(settling);
    let before;
    const tick = (now) => {
      if (!playing) return;
      const by = Math.floor(((now - (before ??= now)) / 1000) * perSecond / step) * step;
      if (by > 0) {
        before = now;
        state[plays] = Math.min(Number((state[plays] + by).toFixed(6)), to); // without the rounding errors of many small steps
        if (state[plays] >= to) return ended();
        redraw();
      }
      playing.frame = requestAnimationFrame(tick);
    };
    playing = { plays, button, frame: requestAnimationFrame(tick) };
    redraw();
  }
  function stop() {
    if (!playing) return;
    cancelAnimationFrame(playing.frame);
    const { min = 0, step = 1 } = controls[playing.plays];
    state[playing.plays] = Number((min + Math.round((state[playing.plays] - min) / step) * step).toFixed(6));
    playing = null;
    redraw();
  }

  // The words follow every step for the eye, and are spoken when a change is complete; then the address is updated, too.
  let settling;
  function changed() {
    redraw();
    clearTimeout(settling);
    if (!playing) settling = setTimeout(() => { spoken.textContent = host.said; keep(); }, SETTLED);
  }
  function keep() {
    const url = new URL(location.href);
    const kept = figure.unsent ? new URLSearchParams() : url.searchParams;
    for (const [name, value] of Object.entries(state)) {
      if (value === answered[name] || value === undefined) kept.delete(`${address}.${name}`);
      else kept.set(`${address}.${name}`, value);
    }
    if (figure.unsent) url.hash = `${kept}`;
    else if (url.search !== location.search) url.hash = id; // a link to the setting leads to the figure
    try { history.replaceState(history.state, "", url); } catch { /* some browsers keep the address of a file as it is */ }
  }
  let sent = false; // a link led to this state
  function takeUp() {
    for (const [key, text] of new URLSearchParams(figure.unsent ? location.hash.slice(1) : location.search)) {
      const name = key.startsWith(`${address}.`) && key.slice(address.length + 1);
      if (!name || !(name in controls)) continue;
      const value = (parts[name]?.read ?? controls[name].read)?.(text);
      if (value !== undefined) { state[name] = value; sent = true; }
    }
  }
  takeUp();
  if (figure.unsent) {
    addEventListener("hashchange", () => {
      if (!location.hash.startsWith(`#${address}.`)) return;
      Object.assign(state, defaults);
      takeUp();
      changed();
    });
  }

  let drawing = false;
  /** @type {Stage["handles"]} */
  let handles = [];
  function redraw() {
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(() => { drawing = false; draw(); });
  }
  function draw() {
    const width = stageBox.clientWidth;
    if (!width) return;
    const stage = new Stage(width);
    own.moves = playing?.plays;
    const words = figure.draw(stage, state, own);
    for (const [name, part] of Object.entries(parts)) {
      const { get, named, told, when, label } = controls[name];
      part.set(get ? get(state, own) : state[name], state);
      if (part.element === playing?.button) part.element.textContent = "Pause";
      else if (part.element.matches("button")) part.element.textContent = named?.(state, own) ?? label;
      if (told) part.element.setAttribute("aria-label", told(state));
      const gone = when ? !when(state, own) : false;
      if (gone && part.element.contains(document.activeElement)) menuButton.focus({ preventScroll: true }); // else it would be nowhere
      part.element.hidden = gone;
      if (stage.placed[name]) Object.assign(part.element.style, stage.placed[name]);
    }
    // As many columns as leave no control alone in its row.
    for (const box of [panel, more]) {
      const cells = box.querySelectorAll(":scope > :not([hidden], .wide)").length;
      box.style.setProperty("--columns", String(cells % 3 && cells < 5 ? Math.min(cells, 2) : 3));
    }
    svg.setAttribute("viewBox", `0 0 ${width} ${stage.height}`);
    svg.innerHTML = stage.parts.join("");
    const canvases = [...stageBox.querySelectorAll("canvas")];
    stage.heats.forEach((heat, at) => {
      const canvas = canvases[at] ?? stageBox.insertBefore(document.createElement("canvas"), svg);
      paint(canvas, heat);
    });
    canvases.slice(stage.heats.length).forEach((canvas) => canvas.remove());
    if (own.order) head.firstChild.textContent = own.order;
    host.said = own.failed || words;
    const [, first, , rest = ""] = host.said.match(/^(.*?[.?!]\)?)( (.*))?$/) ?? ["", host.said];
    const above = own.finding ?? first;
    if (finding.textContent !== above) finding.textContent = above; // else it would be spoken again
    says.textContent = own.finding ? host.said : rest;
    fold.hidden = !(orders || rest || folds);
    if (figure.reports && own.reported !== own.report) report.innerHTML = own.reported = own.report; // else a focus in it would be lost
    host.classList.toggle("sticks", stage.height < STICKS * innerHeight);
    host.style.setProperty("--stage", `${stage.height}px`);
    ({ handles } = stage);
    host.drawn = stage.drawn; // what the tests compare with the plain figure's numbers
    host.state = { ...state };
  }

  // A finger that moves up or down scrolls the page, and changes nothing: what it means is known only when it has moved sideways,
  // or has been lifted. Only a ring that is steep may be dragged whichever way, unless the page is still gliding on.
  const place = ({ clientX, clientY }) => {
    const box = svg.getBoundingClientRect();
    return [clientX - box.left, clientY - box.top];
  };
  const act = (x, y) => {
    const ring = handles.find(({ name }) => name === held.ring?.name);
    move(ring ? ring.move(x, y) : figure.point?.(x, y, state, own));
  };
  host.addEventListener("pointerdown", (event) => {
    if (event.button || !event.isPrimary) return;
    const target = /** @type {Element} */ (event.target);
    const finger = event.pointerType === "touch";
    const [x, y] = place(event);
    const far = (ring) => Math.hypot(ring.x - x, ring.y - y);
    const ring = handles.filter((one) => far(one) < (finger ? 28 : 18)).sort((a, b) => far(a) - far(b))[0];
    const pictured = svg.contains(target) && (ring || figure.point);
    if (pictured || target.matches("[type=range]")) held = { x, y, ring, acts: !finger, before: { ...state } };
    if (!pictured) return;
    svg.setPointerCapture(event.pointerId); // the ring itself is drawn anew
    event.preventDefault();
    act(x, y);
  });
  svg.addEventListener("touchstart", (event) => {
    if (!held?.ring?.steep || !event.cancelable) return;
    event.preventDefault(); // or it scrolls
    held.acts = true;
  }, { passive: false });
  host.addEventListener("pointermove", (event) => {
    if (!held || !event.isPrimary) return;
    const [x, y] = place(event);
    held.acts ||= Math.abs(x - held.x) > Math.max(SLIP, Math.abs(y - held.y));
    if (held.acts && event.target === svg) act(x, y);
  });
  host.addEventListener("pointerup", ({ isPrimary }) => {
    if (!held || !isPrimary) return;
    const { part } = held;
    held = null;
    move(part);
  });
  host.addEventListener("pointercancel", () => {
    if (held?.acts) Object.assign(state, held.before);
    if (held) redraw(); // a slider has moved already
    held = null;
  });
  svg.classList.toggle("points", Boolean(figure.point));

  plain.insertBefore(host, plain.querySelector("figcaption"));
  plain.classList.add("lives");
  new ResizeObserver(redraw).observe(stageBox);
  if (sent && asks && !asks.only && !saves) ask();
  if (enters && !sent && !still.matches && !(own.before && host.hasAttribute("before"))) {
    const play = Object.keys(controls).find((name) => controls[name].plays === enters.plays);
    const one = { seen: false, begin() {
      leave();
      state[enters.plays] = enters.from(stageBox.clientWidth, state);
      const { step = controls[enters.plays].step ?? 1, to = defaults[enters.plays], perSecond } = enters;
      run({ plays: enters.plays, perSecond, step, to, button: parts[play]?.element, ended() {
        stop();
        Object.assign(state, defaults);
        redraw();
        done();
      } });
    } };
    const near = new IntersectionObserver((changes) => { one.seen = changes.at(-1).intersectionRatio >= 0.6; enter(); }, { threshold: 0.6 });
    const leave = () => { near.disconnect(); waiting.delete(one); };
    const done = () => { if (entering === one) { entering = null; enter(); } };
    // The first touch ends it; a finger that only scrolls the page doesn't.
    const touched = (event) => {
      leave();
      if (entering !== one) return;
      if (!playing?.button?.contains(event.target)) { stop(); changed(); }
      done();
    };
    host.addEventListener("click", touched, { capture: true, once: true });
    host.addEventListener("moved", touched, { once: true });
    waiting.add(one);
    near.observe(stageBox);
  }
  draw();
  // It is taller than the plain figure, so a reader who followed a link to it is scrolled to its beginning again.
  if (location.hash === `#${id}` && Math.abs(plain.getBoundingClientRect().top) < innerHeight) plain.scrollIntoView();
}
