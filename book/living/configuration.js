// What a configuration says about the positions in each layer: posenc_course.inspector without its probe, with the same results in
// the same words. `known` are the package's tables of names, classes and findings: data/inspector.
import { dynamicNtk, frequencies, llama3, positionInterpolation, yarn, yarnAttentionFactor } from "./formulas.js";

const ORIGINAL = "original_max_position_embeddings";
/** @typedef {Record<string, any>} Json an object of a configuration, by its keys */
/** @typedef {[kind: string, factor: number, original: number]} Stretch */
/** @typedef {{ encoding: string, base: number, rotated: number[], layout: string, frequencies: number[], trained: number[], far: number[],
 *    stretch: Stretch, attentionFactor: number, window: number, rows: number, sinks: boolean, firstChannel: number, score: number }} Layer */
/** @typedef {{ layers: number[], count: number, known: Layer }} Kind layers that are alike */
/** @typedef {{ level: string, code: string, text: string, symptom?: string, page?: string, thread?: string }} Finding */
/** @typedef {{ name: string, layers: number, length: number, kinds: Kind[], findings: Finding[], limits: [at: number, what: string][],
 *    read?: boolean, like?: string, unknown?: string }} Report */

/** @type {Layer} */
const NOTHING = {
  encoding: null, base: null, rotated: null, layout: null, frequencies: [], trained: [], far: [],
  stretch: ["none", 1, null], attentionFactor: 1, window: null, rows: null, sinks: null, firstChannel: null, score: null,
};

const isMap = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const given = (value) => (isMap(value) || Array.isArray(value) ? Object.keys(value).length > 0 : Boolean(value)); // as in Python
const own = (map, key) => (Object.hasOwn(map, key) ? map[key] : undefined); // a key may be "constructor"
const whole = (number) => number.toLocaleString("en", { maximumFractionDigits: 0 });
const close = (a, b, tolerance = 1e-4) => Math.abs(a - b) <= Math.max(tolerance * Math.max(Math.abs(a), Math.abs(b)), 1e-12);
// Python's format g.
function short(number, digits = 6) {
  const text = (Math.abs(number) < 1e-4 ? number.toExponential(digits - 1) : number.toPrecision(digits)).replace(/e([+-])(\d)$/, "e$10$2");
  return text.includes(".") ? text.replace(/\.?0+(?=e|$)/, "") : text;
}

const wrong = (what) => new Error(`${what}: correct the configuration`);

function ruleInWords([kind, least, most, listed]) {
  const to = `from ${least} to ${most < 1e15 ? whole(most) : "10^" + Math.round(Math.log10(most))}`;
  const spoken = { whole: `a whole number ${to}`, number: `a number ${to}`, zero: "0", flag: "true or false", text: "a string", object: "an object with keys" };
  const words = kind.split(" or ").map((each) => spoken[each]).join(" or ");
  return listed ? `a list, each item ${words}` : words;
}

function checkedValue(rule, value, path, known) {
  const [kind, least, most, listed] = rule;
  if (listed && Array.isArray(value)) return value.map((each, at) => checkedValue([kind, least, most], each, `${path}[${at}]`, known));
  if (!listed) {
    if (kind === "object" && isMap(value)) return checked(value, known, `${path}.`);
    if (kind.startsWith("text") && typeof value === "string") return value;
    if (kind === "flag" && [true, false, 0, 1].includes(value)) return Boolean(value);
    const fits = typeof value === "number" && ((value >= least && value <= most) || (kind.startsWith("zero") && value === 0));
    if (fits && (kind.endsWith("number") || (kind.endsWith("whole") && Number.isInteger(value)))) return value;
  }
  const text = JSON.stringify(value);
  throw wrong(`${path} must be ${ruleInWords(rule)}, got ${text.length > 40 ? text.slice(0, 39) + "…" : text}`);
}

/** The configuration with values as the package's rules have them, without what is null; raises an Error for the first one that isn't. */
function checked(config, known, path = "") {
  const entries = Object.entries(config);
  const values = entries.filter(([key, value]) => own(known.rules, key) && value !== null)
    .map(([key, value]) => [key, checkedValue(known.rules[key], value, path + key, known)]);
  let rest = entries.filter(([key]) => !own(known.rules, key));
  if (/rope_(parameters|scaling)\.$/.test(path) && rest.some(([, value]) => isMap(value))) {
    // One part for each type of layer; null turns RoPE off.
    const part = known.rules.rope_parameters;
    rest = rest.map(([key, value]) => [key, value === null ? null : checkedValue(part, value, path + key, known)]);
  }
  return Object.fromEntries([...values, ...rest]);
}

/** The first of these that is given, and isn't 0. */
const first = (parts, names) => parts.flatMap((part) => names.map((name) => own(part, name))).find(Boolean) ?? null;

/** The dictionaries that describe RoPE: one, or one for each type of layer. */
function parts(config) {
  return [config.rope_parameters ?? {}, config.rope_scaling ?? {}].flatMap((all) => {
    const nested = Object.values(all).filter(isMap);
    return nested.length ? nested : [all];
  });
}
const kindOf = (part) => first([part], ["rope_type", "type"]) ?? "default";

function layersOf(config, known) {
  const found = first([config], [...known.layers, "layers_block_type", "layer_types", "hybrid_override_pattern"].filter((name) => given(own(config, name))));
  if (found === null) throw new Error(`no key says how many layers there are, such as ${known.layers[0]}: give the config.json of a model`);
  return typeof found === "number" ? found : checkedValue(known.rules[known.layers[0]], found.length, known.layers[0], known);
}

const trainingLength = (config, known) => first([...parts(config), config], [ORIGINAL]) ?? first([config], known.lengths);

/** What the configuration calls this layer, or null if it doesn't say. */
function typeOf(config, at) {
  const types = [config.layer_types, config.layers_block_type].find((each) => at < each?.length);
  if (types) return types[at];
  const pattern = config.sliding_window_pattern;
  let narrow = null;
  if (typeof pattern === "number") narrow = (at + 1) % pattern > 0;
  else if (pattern) narrow = pattern[at % pattern.length] === "L";
  else if (config.use_sliding_window && "max_window_layers" in config) narrow = at >= config.max_window_layers;
  return narrow === null ? null : narrow ? "sliding_attention" : "full_attention";
}

/** What describes RoPE in layers of this type, and its base. */
function ropeOf(config, type, known) {
  const local = first([config], known.localBases);
  let parameters = config.rope_parameters ?? {};
  const nested = Object.keys(parameters).filter((name) => isMap(parameters[name]));
  if (nested.length) {
    const names = own({ sliding_attention: ["sliding_attention", "main"], full_attention: ["full_attention", "compress"] }, type) ?? [type];
    parameters = parameters[names.find((name) => nested.includes(name)) ?? nested.at(-1)];
  }
  if (!given(parameters) && local && known.narrow.includes(type)) return [{ rope_type: "default" }, local];
  const scaling = Object.entries(config.rope_scaling ?? {}).filter(([, value]) => !isMap(value));
  const merged = { ...parameters, ...Object.fromEntries(scaling) };
  return [merged, first([merged], ["rope_theta"]) ?? first([config], known.bases)];
}

/** Whether this layer has no RoPE, in one of three spellings: a flag or a base of 0 in a list, or null for its type. */
function turnedOff(config, at, type) {
  const lists = [config.no_rope_layers ?? [], config.layer_rope_theta ?? []];
  return lists.some((listed) => at < listed.length && !listed[at]) || own(config.rope_parameters ?? {}, type) === null;
}

/** What a reader of the configuration would expect of this layer. */
function written(config, at, like, known) {
  const type = typeOf(config, at);
  const wide = known.wide.includes(type);
  let window = first([config], ["sliding_window", "attention_chunk_size"]);
  if (!window || config.use_sliding_window === false || wide) window = 0;
  else if (!known.narrow.includes(type) && like?.mixed) window = null;
  const plain = { ...NOTHING, window };
  const position = config.position_embedding_type;
  if (position === "nope") return { ...plain, encoding: "none" };
  if (config.alibi || config.attn_config?.alibi) return { ...plain, encoding: "ALiBi" };
  const buckets = config.relative_attention_num_buckets;
  if (buckets) return { ...plain, encoding: "T5's bias", rows: buckets };
  if (turnedOff(config, at, type)) return { ...plain, encoding: "none" };
  const [parameters, theirs] = ropeOf(config, type, known);
  const base = config.layer_rope_theta?.[at] ?? theirs;
  if (base === null && !given(parameters)) {
    const learned = position === "absolute" || "n_positions" in config;
    return learned ? { ...plain, encoding: "learned table", rows: first([config], known.lengths) } : plain;
  }
  const layout = "gguf" in config ? null : like?.layout ?? null;
  return { ...plain, ...rope(config, parameters, base, wide, known), layout };
}

/** @param {Json} config @param {Json} parameters @param {number} base @param {boolean} wide @param {any} known @returns {Partial<Layer>} */
function rope(config, parameters, base, wide, known) {
  const [heads, hidden] = [known.heads, known.hidden].map((names) => first([config], names));
  const kind = kindOf(parameters);
  const share = first([parameters, config], ["partial_rotary_factor", "rotary_pct"]);
  let width = (wide && config.global_head_dim) || config.head_dim || (hidden && heads && Math.floor(hidden / heads));
  let rotated = config.rotary_dim || (width && share ? Math.trunc(width * share) : width);
  if (config.qk_rope_head_dim) {
    rotated = config.qk_rope_head_dim;
    width = config.qk_nope_head_dim ? rotated + config.qk_nope_head_dim : width;
  }
  if (width && rotated > width) throw wrong(`${whole(rotated)} channels can't rotate in a head that has ${whole(width)}`);
  const longest = first([config], known.lengths);
  const original = first([parameters, config], [ORIGINAL]);
  let factor = parameters.factor ?? null;
  if (factor === null && ["longrope", "yarn"].includes(kind) && longest && original) {
    factor = longest / original;
    if (factor < 1) throw wrong(`the longest text, ${whole(longest)} tokens, must be at least ${ORIGINAL}, ${whole(original)}`);
  }
  const plain = ["default", "none", "mrope", "axial", "proportional"].includes(kind);
  const length = kind === "dynamic" ? longest : original || (kind === "linear" ? null : longest);
  /** @type {Stretch} */
  const stretch = plain ? NOTHING.stretch : [kind, factor || 1, length];
  const turns = kind === "llama3" ? turnsOf(parameters, { low_freq_factor: 1, high_freq_factor: 4 })
    : kind === "yarn" ? turnsOf(parameters, { beta_slow: 1, beta_fast: 32 }) : null;
  /** @type {Partial<Layer>} */
  const found = { encoding: "RoPE", base, rotated: rotated && width ? [rotated, width] : null, stretch };
  let attention = parameters.attention_factor || null;
  if (kind === "yarn") attention ??= yarnFactor(factor || 1, parameters);
  if (kind === "longrope" && length > 1) attention ??= Math.sqrt(1 + Math.log(factor || 1) / Math.log(length));
  if (attention && !plain) found.attentionFactor = attention;
  if (config.qk_rope_head_dim) { // DeepSeek's kind of attention: the last channels rotate, and YaRN may multiply the scores, too
    found.firstChannel = config.qk_nope_head_dim ?? null;
    const { mscale_all_dim: allDim } = parameters;
    if (allDim && kind === "yarn") found.score = (0.1 * allDim * Math.log(factor || 1) + 1) ** 2;
  } else found.firstChannel = 0;
  if (!(base && rotated && width)) return found;

  const omega = frequencies(kind === "proportional" ? width : rotated, base).slice(0, Math.floor(rotated / 2));
  const divided = (divisors) => omega.map((speed, i) => speed / divisors[i]);
  const fits = (key) => Array.isArray(parameters[key]) && parameters[key].length === omega.length;
  /** @type {(number[] | Float64Array)[]} */
  let [now, far] = [plain ? omega : null, []];
  const many = omega.length > 1; // of a single pair, nobody can say how fast frequencies fall
  if (kind === "linear") now = positionInterpolation(omega, factor || 1);
  else if (kind === "llama3" && length) now = llama3(omega, factor || 1, length, turns);
  else if (kind === "yarn" && length && many) now = yarn(omega, factor || 1, length, { ...turns, truncate: parameters.truncate ?? true });
  else if (kind === "dynamic" && length && many) [now, far] = [omega, dynamicNtk(omega, 4 * length, length, factor || 1)];
  else if (kind === "longrope" && fits("short_factor") && fits("long_factor")) {
    [now, far] = [divided(parameters.short_factor), length ? divided(parameters.long_factor) : []];
  } else if (kind === "divisors" && fits("divisors")) now = divided(parameters.divisors);
  return now ? { ...found, frequencies: [...now], trained: [...omega], far: [...far] } : found; // the page has no formula for other kinds
}

/** Between how many rotations a stretching blends. */
function turnsOf(parameters, defaults) {
  const [[low, slow], [high, fast]] = Object.entries(defaults).map(([name, value]) => [name, parameters[name] ?? value]);
  if (slow >= fast) throw wrong(`${low} must be less than ${high}, got ${short(slow)} and ${short(fast)}`);
  return { slow, fast };
}

/** DeepSeek's two settings multiply the logarithm, and divide one factor by the other. */
function yarnFactor(factor, parameters) {
  const { mscale: one, mscale_all_dim: allDim } = parameters;
  return one && allDim ? (0.1 * one * Math.log(factor) + 1) / (0.1 * allDim * Math.log(factor) + 1) : yarnAttentionFactor(factor);
}

/** What the configuration alone gives away: [level, code, text]. */
function* findings(config, kinds, like, known) {
  const tops = known.bases.filter((name) => name in config).map((name) => [name, config[name]]);
  const nested = Object.values(config.rope_parameters ?? {}).some(isMap);
  const longest = first([config], known.lengths);
  for (const part of parts(config)) {
    const kind = kindOf(part);
    const { rope_theta: inside, factor, [ORIGINAL]: original } = part;
    if (inside && tops.length && !nested && !tops.some(([, value]) => value === inside)) {
      yield ["wrong", "two-bases", `the base is ${whole(tops[0][1])} under ${tops[0][0]}, and ${whole(inside)} with the scaling`];
    }
    const reads = own(known.keys, kind);
    if (!reads && kind !== "divisors" && kind !== "none") {
      yield ["wrong", "unread-key", `the type of scaling is '${kind}', and transformers knows ${Object.keys(known.keys).join(", ")}`];
    }
    for (const key of Object.keys(part)) {
      if (!reads || reads.includes(key) || known.always.includes(key) || key.endsWith("_theta")) continue;
      yield ["wrong", "unread-key", `${key} isn't read for ${kind}${key.startsWith("attn") ? "; attention_factor is" : ""}`];
    }
    if (kind === "yarn" && factor && longest && original && !close(original * factor, longest, 0.01)) {
      if (original === longest) {
        yield ["warning", "lengths", `${ORIGINAL} and max_position_embeddings are both ${whole(longest)}, but stretched by ${short(factor)}, the second should be ${whole(original * factor)}, or the first ${whole(longest / factor)}`];
      } else {
        const text = `${whole(original)} tokens stretched by ${short(factor)} are ${whole(original * factor)}, not ${whole(longest)}`;
        yield ["wrong", "lengths", `${text}: ${ORIGINAL} is the length before stretching`];
      }
    }
  }
  if (given(config.rope_scaling) && given(config.rope_parameters)) {
    yield ["warning", "scaling", "there are both rope_scaling and rope_parameters, and transformers reads the first"];
  }
  const listed = config.no_rope_layers ?? [];
  const off = listed.filter((rotates) => !rotates).length;
  if (2 * off > listed.length) {
    yield ["warning", "nope-list", `no_rope_layers leaves ${off} of ${listed.length} layers without RoPE: in this list, 1 means that a layer rotates`];
  }
  const rotary = kinds.filter((kind) => kind.known.encoding === "RoPE");
  if (rotary.some((kind) => kind.known.base === null)) {
    yield ["warning", "base-missing", "no base is written down" + (like?.bases ? `, and the class takes ${like.bases}` : "")];
  }
  if (like && like.encodings.join() === "none" && rotary.length) {
    yield ["warning", "no-rope", `the configuration has a base, but ${like.name} has no RoPE in any layer`];
  } else if (like && like.encodings.includes("none") && !kinds.some((kind) => kind.known.encoding === "none")) {
    yield ["warning", "no-rope", `${like.name} has layers without RoPE, and the configuration doesn't say which`];
  }
}

function named(kind, number) {
  if (kind.count === number) return "all layers";
  const some = kind.layers.length ? [...kind.layers.slice(0, 3), ...kind.count > 3 ? ["…"] : []].join(", ") : "";
  return `${kind.count} of ${number} layers` + (some && ` (${some})`);
}

/** The pairs of a rotation against the training length, as `inspector.pairs` has them; `used` are the frequencies of
 *  long texts, and `slowed` is by how much each is slowed.
 *  @param {Pick<Layer, "frequencies" | "trained" | "far">} known @param {number} length */
export function pairs({ frequencies: now, trained, far }, length) {
  const used = far.length ? far : now;
  const before = trained.length ? trained : used;
  const circles = before.map((omega) => (omega * length) / (2 * Math.PI));
  const incomplete = [...circles.keys()].filter((i) => circles[i] < 1);
  const slowed = before.map((omega, i) => omega / used[i]);
  const most = Math.max(...slowed);
  return {
    used,
    incomplete,
    brakes: incomplete.filter((i) => circles[i] >= 0.25 && circles[i] <= 0.5),
    kept: slowed.filter((by) => by < 1.001).length,
    divided: most > 1.001 ? slowed.filter((by) => by > 0.999 * most).length : 0,
    firstNew: incomplete.length ? Math.min(...incomplete.map((i) => Math.ceil(length * slowed[i] - 1e-3))) : null,
    slowed,
  };
}

/** What happens as texts grow: lengths in tokens, and what is there.
 *  @param {Json} config @param {Kind[]} kinds @param {number} length @returns {[at: number, what: string][]} */
function limits(config, kinds, length) {
  const found = new Map();
  const add = (at, what) => found.set(`${at} ${what}`, [at, what]);
  const total = kinds.reduce((sum, kind) => sum + kind.count, 0);
  for (const kind of kinds) {
    const { known } = kind;
    const where = named(kind, total);
    if (["learned table", "sinusoids"].includes(known.encoding) && known.rows) add(known.rows, "the table ends: the next position has no row");
    if (known.window) add(known.window, `the window of ${where} is full: keys farther away are out of sight there`);
    const far = known.encoding === "T5's bias" && config.relative_attention_max_distance;
    if (far) add(far, "all larger distances share the last bucket");
    if (known.encoding === "Inkling's bias" && known.rows && !known.window) add(known.rows, `from this distance on, the bias of ${where} is 0`);
    if (known.encoding !== "RoPE" || !known.frequencies.length || (known.window && known.window <= length)) continue;
    if (known.far.length && known.stretch[2]) add(known.stretch[2], "the frequencies switch: cached keys keep the old angles");
    if (!length) continue;
    const { used, firstNew, brakes } = pairs(known, length);
    if (firstNew) add(firstNew, `the first distance with an angle that training didn't show, in ${where}`);
    if (brakes.length) add(Math.ceil((2 * Math.PI) / used[brakes[0]]), `pair ${brakes[0]} completes its first circle in ${where}`);
  }
  return [...found.values()].sort(([a, one], [b, other]) => a - b || (one < other ? -1 : 1));
}

const ORDER = ["wrong", "warning", "note"];

/** What can be read of a configuration, or of its part about text. */
function read(config, known) {
  if (!isMap(config)) throw new Error(`it holds ${Array.isArray(config) ? "a list" : JSON.stringify(config)}: a configuration is a JSON object with keys`);
  const all = checked(config, known);
  return all.text_config ?? all;
}

/** The report on a configuration. Raises an Error of one sentence if it doesn't say what the model is.
 *  @param {Json} config @param {any} known @param {{ name?: string, length?: number }} [asked] @returns {Report} */
export function inspect(config, known, { name, length } = {}) {
  config = read(config, known);
  const count = layersOf(config, known);
  const like = own(known.classes, (config.model_type ?? "").toLowerCase().replace(/[_-]|text$/g, ""));
  const trained = length || trainingLength(config, known);
  const kinds = new Map();
  for (let at = 0; at < count; at++) {
    const layer = written(config, at, like, known);
    layer.encoding ??= like?.encoding ?? null;
    const key = JSON.stringify(layer);
    if (!kinds.has(key)) kinds.set(key, { layers: [], count: 0, known: layer });
    const kind = kinds.get(key);
    kind.layers.push(at);
    kind.count++;
  }
  const made = [...kinds.values()];
  const found = [...findings(config, made, like, known)].map(([level, code, text]) => ({ level, code, text, ...known.catalogue[code] }));
  found.sort((a, b) => ORDER.indexOf(a.level) - ORDER.indexOf(b.level));
  return {
    name: name || (first([config], ["gguf", "_name_or_path", "model_type"]) ?? "this model"),
    layers: count, length: trained, kinds: made, findings: found, limits: limits(config, made, trained), read: true, like: like?.model, unknown: !like && config.model_type,
  };
}

/** The report on a model of the table.
 *  @param {string} name @param {any} known @param {{ length?: number }} [asked] @returns {Report} */
export function inspectModel(name, known, { length } = {}) {
  const row = known.table[name];
  const kinds = row.kinds.map(({ spectrum, truncate, count, ...rest }) => {
    const [kind, factor, original] = rest.stretch;
    const [rotated, width] = rest.rotated ?? [];
    const makes = { linear: positionInterpolation, llama3, yarn, none: (omega) => omega }[kind];
    const omega = rest.base && rotated && makes
      ? [...frequencies({ whole: rotated, fast: width, axial: rotated / 2 }[spectrum], rest.base).slice(0, Math.floor(rotated / 2))] : [];
    const now = omega.length ? [...makes(omega, factor, original, kind === "yarn" ? { truncate } : undefined)] : [];
    return { layers: [], count, known: { ...NOTHING, ...rest, frequencies: now, trained: omega } };
  });
  const trained = length || row.length;
  return { name, layers: row.layers, length: trained, kinds, findings: [], limits: limits({}, kinds, trained) };
}

/** The configuration with only the numbers and names that `inspect` reads, but for one that may be a private folder.
 *  @param {Json} config @param {any} known */
export function reduced(config, known) {
  inspect(config, known);
  return Object.fromEntries(Object.entries(read(config, known)).filter(([key]) => own(known.rules, key) && key !== "_name_or_path"));
}

/** What is found, if anything is wrong or likely to be built wrongly, in one sentence.
 *  @param {Report} report */
export function worst({ name, findings: found }) {
  const bad = found.filter(({ level }) => level !== "note");
  const more = bad.length > 1 ? ` (${bad.length - 1} more below)` : "";
  return bad.length ? `${name}: ${bad[0].text}${more}` : "";
}

/** Kinds of layers in words: a heading, and lines below it.
 *  @param {Kind} kind @param {Report} report */
export function described(kind, report) {
  const { known } = kind;
  const total = Math.max(report.layers, report.kinds.reduce((sum, { count }) => sum + count, 0));
  const door = { RoPE: "query and key", ALiBi: "score", "T5's bias": "score", "Inkling's bias": "score", none: "" }[known.encoding ?? "none"] ?? "embedding";
  const what = { null: "encoding not written down", none: "no encoding" }[known.encoding] ?? known.encoding;
  const lines = [`${named(kind, total)}: ${what}` + (door && `, at the ${door}`)];
  if (known.encoding === "RoPE") lines.push(rotationWords(known), ...pairWords(known, report.length));
  if (known.rows) lines.push(`${whole(known.rows)} ${{ "T5's bias": "buckets", "Inkling's bias": "offsets" }[known.encoding] ?? "rows"}`);
  if (known.window !== null) lines.push(known.window ? `window of ${whole(known.window)} tokens, its own included` : "no window");
  if (known.sinks) lines.push("sinks: each head has a score that belongs to no token");
  if (known.score && !close(known.score, 1)) lines.push(`scores are multiplied by ${short(known.score, 4)} in addition to 1/√d`);
  return lines;
}

/** @param {Layer} known */
function rotationWords({ base, rotated, firstChannel, layout }) {
  const words = [base ? `base ${whole(base)}` : "base not written down"];
  const side = { null: "", 0: ", the first" }[firstChannel] ?? `, from channel ${firstChannel}`;
  if (rotated) words.push(rotated[0] === rotated[1] ? `all ${rotated[1]} channels` : `${rotated[0]} of ${rotated[1]} channels${side}`);
  if (layout) words.push(layout === "interleaved" ? "pairs of neighbours" : "pairs of halves");
  return words.join("; ");
}

/** @param {Layer} known @param {number} length */
function pairWords(known, length) {
  const count = known.frequencies.length;
  if (!count) return [];
  const shown = [...known.frequencies.slice(0, 3), ...known.frequencies.slice(3).slice(-1)].map((omega) => short(omega, 4));
  if (count > 3) shown.splice(3, 0, "…");
  const lines = [`frequencies ${shown.join(", ")}`];
  const found = pairs(known, length || 1);
  if (length) {
    lines.push(`within ${whole(length)} tokens, ${found.incomplete.length} of ${count} pairs complete no rotation`);
    const { brakes } = found;
    const range = brakes.length > 1 ? `pairs ${brakes[0]} to ${brakes.at(-1)}, which complete` : `pair ${brakes[0]}, which completes`;
    if (brakes.length) lines.push(`suspects, as in chapters 13 and 18: ${range} between 1/4 and 1/2 of one`);
  }
  const [kind, factor, original] = known.stretch;
  if (kind !== "none") {
    lines.push(`stretched: ${kind}, by ${short(factor)}` + (original ? ` from ${whole(original)} tokens` : ""));
    if (known.trained.length) {
      const [least, most] = [Math.min(...found.slowed), Math.max(...found.slowed)].map((by) => short(by, 3));
      lines.push(["longrope", "divisors"].includes(kind)
        ? `each pair has a divisor of its own, from ${least} to ${most}`
        : `${found.kept} pairs as they were, ${count - found.kept - found.divided} between, ${found.divided} divided by ${most}`);
      const moved = known.frequencies.filter((speed, i) => !close(speed, known.trained[i])).length;
      const paid = moved ? `pay, too: ${moved} of ${count} pairs have other frequencies` : "keep their frequencies";
      lines.push(`texts within the old length ${paid}`);
    }
  }
  const factors = known.attentionFactor;
  if (!close(factors, 1, 1e-6)) lines.push(`queries and keys times ${short(factors, 4)}: scores times ${short(factors ** 2, 4)}, at any length`);
  return lines;
}
