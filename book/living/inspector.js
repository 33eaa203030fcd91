// The inspector: which pairs of a model rotate fully in a text of some length, and which reach angles that training didn't show.
// Readers choose a model or paste its configuration, which is read here and sent nowhere.
import { described, headline, inspect, inspectModel, pairs, reduced, rest } from "./configuration.js";
import { clip, counted, escaped, written } from "./draw.js";

const [FROM, TO] = [4, 2 ** 24]; // tokens
const TICKS = [[64, "64"], [1024, "1K"], [16_384, "16K"], [262_144, "256K"], [4_194_304, "4M"]];
const quarters = (from, to) => Array.from({ length: 4 * Math.log2(to / from) + 1 }, (_, at) => from * 2 ** Math.floor(at / 4) * (1 + (at % 4) / 4));
const LENGTHS = quarters(256, TO);
const FIRST = "Llama 3.1 8B";
const OWN = "your own";
const LARGE = 1_000_000; // characters; a configuration has some thousand
const COMMAND = "python -m posenc_course inspect config.json";
const LEGEND = [["old", "less than a circle"], ["blue", "a full circle"], ["vermillion", "angles that training didn’t show"]];

const lengthOf = (report) => report?.trained || report?.limit;
const tokens = (count) => `${written(count)} tokens`;
const range = (list) => (list.length > 1 ? `${list[0]} to ${list.at(-1)}` : `${list[0]}`);

/** What a reader has pasted, as the few values that are read of it; raises an Error of one sentence. */
function pasted(text, known) {
  if (text.startsWith("GGUF")) throw new Error(`This is a GGUF file, which only the command reads: ${COMMAND.replace("config.json", "model.gguf")}`);
  if (text.length >= LARGE) throw new Error(`This has more than ${written(LARGE)} characters, so it’s no config.json: give the small file beside the weights.`);
  let config;
  try { config = JSON.parse(text); } catch (error) { throw new Error(`This isn’t JSON (${error.message}): paste the whole config.json, from { to }.`); }
  try { return JSON.stringify(reduced(config, known)); } catch ({ message }) { throw new Error(`This can’t be read: ${message}.`); }
}

/** What a reader has pasted, if it is shown: {text, config, problem}. */
const ownOf = ({ model, config }, own) => (model === OWN && own.pasted?.config === config ? own.pasted : undefined);

/** The report on what is chosen; while a reader's text can't be read, the one before. */
function reportOf({ model, config, trained }, own) {
  const known = own.data.inspector;
  const key = [model, config, trained].join();
  if (own.key === key) return own.last;
  const options = { length: trained || undefined };
  try {
    if (model in known.released) own.last = inspect(known.released[model].config, known, { ...options, name: model });
    else if (model in known.table) own.last = inspectModel(model, known, options);
    else if (config) own.last = inspect(JSON.parse(config), known, options);
  } catch ({ message }) { own.pasted = { text: config, config, problem: `This link can’t be read: ${message}.` }; }
  own.last ??= inspect(known.released[FIRST].config, known, { name: FIRST });
  own.key = key;
  return own.last;
}

const unstretched = (known) => ({ ...known, frequencies: known.trained.length ? known.trained : known.frequencies, trained: [], far: [] });

/** Where each pair completes its circle, and where its angles begin that training didn't show. */
function drawnOf(known, length) {
  const { used, incomplete, slowed } = pairs(known, length || TO);
  return used.map((omega, i) => ({ full: (2 * Math.PI) / omega, fresh: length && incomplete.includes(i) ? length * slowed[i] : Infinity }));
}

/** Lines of several pairs as one: from and to, in tokens, or nothing where the first isn't below the second.
 *  @returns {[xs: number[], ys: number[]]} */
function bars(rows, reach, ends) {
  const [xs, ys] = [[], []];
  rows.forEach((row, i) => {
    const [from, to] = ends(row).map((at) => clip(at, FROM, reach));
    if (from < to) { xs.push(from, to, to); ys.push(i, i, NaN); }
  });
  return [xs, ys];
}

const LEVELS = { wrong: "Wrong", unknown: "Not known", note: "Note" };
const item = (html) => `<li>${html}</li>`;
function reportInHtml(report, { model }, own) {
  const root = document.documentElement.dataset.content_root ?? "";
  const link = (address, words) => `<a href="${escaped(address)}">${words}</a>`;
  const found = report.findings.map(({ level, text, symptom, page, thread }) => {
    const links = [link(`${root}book/${page.replace(/(?=#|$)/, ".html")}`, "why"), link(thread, "a report of it")].join(", ");
    return `<p><strong>${LEVELS[level]}:</strong> ${escaped(text)}. What you’d see: ${escaped(symptom)} (${links}).</p>`;
  });
  const kinds = report.kinds.map((kind) => {
    const [head, ...lines] = described(kind, report).map(escaped);
    return item([`<strong>${head}</strong><ul>`, ...lines.map(item), "</ul>"].join(""));
  });
  if (rest(report)) kinds.push(item(`<strong>${rest(report)}</strong>`));
  const limits = report.limits.map(([at, , what]) => item(escaped(`${tokens(at)}: ${what}`)));
  const grows = limits.length ? `<p>As texts grow:</p><ul>${limits.join("")}</ul>` : "";
  const source = own.data.inspector.released[model]?.source;
  const from = source ? `Its configuration is ${link(source, "a published one")}. ` : "";
  return `${found.join("")}<ul>${kinds.join("")}</ul>${grows}<p>${from}The class may do something else. This builds it: <code>${COMMAND}</code></p>`;
}

/** The kinds of layers that rotate, those first that see farthest. */
const rotaryOf = ({ kinds }) => kinds.filter(({ known }) => known.frequencies.length)
  .sort((a, b) => (b.known.window || Infinity) - (a.known.window || Infinity) || 0);
const isRotary = ({ kinds }) => kinds.some(({ known }) => known.encoding === "RoPE");
const chosen = (state, own) => {
  const rotary = rotaryOf(reportOf(state, own));
  return rotary[state.kind % (rotary.length || 1)];
};
const isStretched = (state, own) => {
  const kind = chosen(state, own);
  return kind && kind.known.stretch[0] !== "none" && kind.known.trained.length > 0;
};

/** @type {import("./element.js").Figure<{ model: string, n: number, trained: number, before: string, text: string, config: string, kind: number }>} */
export const figure = {
  label: "The pairs of a model as lines over the length of a text: where each completes a circle, and where angles are new",
  needs: ["inspector"],
  reports: true,
  unsent: true,
  controls: {
    model: {
      label: "Model", value: FIRST,
      options: ({ inspector: { released, table } }) => Object.fromEntries([OWN, ...Object.keys(released), ...Object.keys(table)].map((name) => [name, name])),
      groups: ({ inspector: { released, table } }) => ({
        "Released configurations": Object.keys(released), "The table of models": Object.keys(table).filter((name) => !(name in released)),
      }),
      put: (model, state, own) => ({ model, kind: 0, config: (model === OWN && own.pasted?.config) || "" }), // no link holds what isn't shown
    },
    n: { label: "Length of the text", values: LENGTHS, value: 131_072, show: tokens },
    trained: {
      label: "Training length", values: [0, ...quarters(512, 2 ** 20)], value: 0,
      show: (value, state, own) => (value || lengthOf(own.last) ? written(value || lengthOf(own.last)) : "not written"),
    },
    before: { label: "Frequencies", options: { no: "stretched", yes: "as trained" }, value: "no", when: isStretched },
    text: {
      label: "Or paste a config.json here, or drop the file", value: "", rows: 5, most: LARGE, file: ".json,application/json",
      get({ model, config }, own) {
        const stored = own.data.inspector.released[model]?.config;
        const read = stored ?? (model === OWN && config && JSON.parse(config));
        return ownOf({ model, config }, own)?.text ?? (read ? JSON.stringify(read, null, 2) : "");
      },
      put(text, { config }, own) {
        own.pasted = { text, config };
        try { own.pasted.config = pasted(text, own.data.inspector); } catch ({ message }) { own.pasted.problem = message; }
        return { model: OWN, config: own.pasted.config, kind: 0 };
      },
    },
    config: { value: "", read: (text) => { try { JSON.parse(text); return text; } catch { return undefined; } } },
    kind: { value: 0, read: (text) => (/^\d$/.test(text) ? Number(text) : undefined) },
    other: {
      label: "Other layers", press: ({ kind }, own) => ({ kind: (kind + 1) % rotaryOf(own.last).length }),
      when: (state, own) => rotaryOf(reportOf(state, own)).length > 1,
    },
    copy: {
      label: "Copy the link", named: (state, own) => (own.copied?.link === location.href ? own.copied.words : "Copy the link"),
      press(state, own) {
        setTimeout(async () => { // when the address has the state
          own.copied = { link: location.href, words: "Copied" };
          try { await navigator.clipboard.writeText(location.href); } catch { own.copied.words = "Copy it from the address bar"; }
          own.redraw();
        }, 700);
      },
    },
  },
  draw(stage, state, own) {
    const report = reportOf(state, own);
    const kind = chosen(state, own);
    const problem = ownOf(state, own)?.problem;
    own.finding = problem || (state.model === OWN && !state.config ? "Paste a config.json below, or drop the file there." : headline(report));
    own.report = reportInHtml(report, state, own);

    const { width } = stage;
    const phone = width < 480;
    let [x, y] = [0, 12];
    for (const [color, words] of LEGEND) {
      if (phone && color === "vermillion") [x, y] = [0, 30];
      stage.add(`<path class="line ${color}" d="M${x} ${y - 4}h18"/>`);
      stage.text(x + 24, y, words, "", "start");
      x += phone ? 150 : 170;
    }
    const top = phone ? 34 : 16;
    const stretched = isStretched(state, own) && state.before === "no";
    const length = lengthOf(report);
    const known = kind && (stretched ? kind.known : unstretched(kind.known));
    const rows = known ? drawnOf(known, length) : [];
    const last = Math.max(rows.length - 1, 1);
    const axes = stage.plot({ left: 0, top, width, height: phone ? 330 : 380 }, {
      x: [FROM, TO], y: [last + 0.5, -0.5], log: "x", xTicks: TICKS, yTicks: rows.length ? [0, Math.round(last / 2), last] : [],
      xLabel: "length of the text, in tokens", yLabel: rows.length ? "pair, from the fastest" : "",
    });
    const reach = Math.min(known?.window || TO, TO); // beyond it, all keys are out of sight
    axes.line(...bars(rows, reach, ({ full, fresh }) => [FROM, Math.min(full, fresh)]), "old");
    axes.line(...bars(rows, reach, ({ full, fresh }) => (fresh < Infinity ? [TO, TO] : [full, TO])), "blue");
    axes.line(...bars(rows, reach, ({ fresh }) => [fresh, TO]), "vermillion");
    if (reach < TO) axes.text(reach, last / 2, "beyond the window", "", "start", [8, 4]);
    const suspects = length && known ? pairs(known, length).brakes : [];
    if (suspects.length && reach === TO) axes.text(TO, (suspects[0] + suspects.at(-1)) / 2, `suspects: ${range(suspects)}`, "halo strong", "end", [-6, 4]);
    const none = isRotary(report) ? "frequencies not known" : "no pair rotates";
    if (!rows.length) axes.text(1024, 0.5, none, "", "middle", [0, 4]);
    if (length && rows.length) {
      axes.rule({ x: length }, "dashed");
      axes.text(length, last + 0.5, report.trained ? "training length" : "limit", "halo number", "end", [-5, -6]);
    }
    axes.rule({ x: state.n });
    axes.handle("n", state.n, last + 0.5, LENGTHS);

    if (!rows.length) return problem ? `${problem} The picture still shows ${report.name}.` : "There are no pairs to draw.";
    const which = (test) => [...rows.keys()].filter((i) => test(rows[i]));
    const farthest = Math.min(state.n, reach);
    const full = which((row) => row.fresh === Infinity && row.full <= farthest);
    const fresh = which((row) => row.fresh < farthest);
    const where = rotaryOf(report).length > 1 ? ` of ${described(kind, report)[0].split(":")[0]}` : "";
    const switched = known?.far.length ? ", as in long texts" : "";
    const how = stretched ? `, stretched (${kind.known.stretch[0]}${switched}),` : isStretched(state, own) ? ", as they were trained," : "";
    const unseen = !length ? "" : fresh.length
      ? ` ${fresh.length} (${range(fresh)}) reach angles that training didn’t show.` : " None reaches an angle that training didn’t show.";
    const kept = problem ? `The picture still shows ${report.name}. ` : "";
    return `${kept}In a text of ${tokens(state.n)}, ${full.length} of ${counted(rows.length, "pair")}${where}${how} complete a circle${length ? ", and training showed all their angles" : ""}.${unseen}`;
  },
};
