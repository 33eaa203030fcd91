// What a configuration says about the positions in each layer: posenc_course.inspector without its probe, with the same results in
// the same words. `known` are the package's tables of names, classes and findings: data/inspector.
import { dynamicNtk, frequencies, llama3, positionInterpolation, yarn, yarnAttentionFactor } from "./formulas.js";

const MANY = { layers: 10_000, channels: 65_536, number: 1e15 }; // more than any model has; more could stop the browser
const LENGTHS = ["max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx", "max_sequence_length"];
const ENDING = "correct the configuration";
const NOTHING = {
  encoding: null, base: null, rotated: null, layout: null, frequencies: [], trained: [], far: [],
  stretch: ["none", 1, null], attentionFactor: 1, window: null, rows: null, sinks: null,
};

const isMap = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const given = (value) => (isMap(value) || Array.isArray(value) ? Object.keys(value).length > 0 : Boolean(value)); // as in Python
const python = (value) => (value === null || value === undefined ? "None" : typeof value === "string" ? `'${value}'` : String(value));
const whole = (number) => number.toLocaleString("en", { maximumFractionDigits: 0 });
const close = (a, b, tolerance = 1e-4) => Math.abs(a - b) <= Math.max(tolerance * Math.max(Math.abs(a), Math.abs(b)), 1e-12);
// Python's format g.
function short(number, digits = 6) {
  const text = number.toPrecision(digits).replace(/e([+-])(\d)$/, "e$10$2");
  return text.includes(".") ? text.replace(/\.?0+(?=e|$)/, "") : text;
}

/** The number under a name, or null. */
function number(part, name) {
  const value = part[name];
  if (value === null || value === undefined || value === false) return null;
  if (typeof value !== "number") throw new Error(`${name} must be a number, got ${python(value)}: ${ENDING}`);
  if (value < 0 || value > MANY.number) throw new Error(`${name} must be a number between 0 and 10^15, got ${value}: ${ENDING}`);
  return value;
}
const first = (part, names) => names.map((name) => number(part, name)).find(Boolean) ?? null;
function counted(part, names) {
  const name = names.find((each) => part[each] !== null && part[each] !== undefined);
  if (name && !(Number.isInteger(part[name]) && part[name] > 0)) {
    throw new Error(`${name} must be a whole number >= 1, got ${python(part[name])}: ${ENDING}`);
  }
  return name ? number(part, name) : null;
}

/** The dictionaries that describe RoPE: one, or one for each type of layer. */
function parts(config) {
  return ["rope_parameters", "rope_scaling"].map((name) => config[name]).filter(isMap).flatMap((all) => {
    const nested = Object.values(all).filter(isMap);
    return nested.length ? nested : [all];
  });
}
const kindOf = (part) => String(part.rope_type || part.type || "default");

function layersOf(config) {
  const name = ["num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers"].find((each) => each in config);
  const list = ["layers_block_type", "layer_types", "hybrid_override_pattern"].map((each) => config[each]).find(given);
  const count = name ? config[name] : list?.length;
  if (!Number.isInteger(count) || count < 1) {
    throw new Error(`the configuration has ${python(count)} layers, under num_hidden_layers: give the config.json of a model that has layers`);
  }
  if (count > MANY.layers) throw new Error(`${name} is ${whole(count)}: no model has more than ${whole(MANY.layers)} layers, so ${ENDING}`);
  return count;
}

function trainingLength(config) {
  const name = "original_max_position_embeddings";
  return [...parts(config), config].map((part) => number(part, name)).find(Boolean) || first(config, LENGTHS);
}

/** What the configuration calls this layer, or null if it doesn't say. */
function typeOf(config, at) {
  for (const types of [config.layer_types, config.layers_block_type]) {
    if (Array.isArray(types) && at < types.length) return String(types[at]);
  }
  const pattern = config.sliding_window_pattern;
  if (typeof pattern === "number" && pattern > 0) return (at + 1) % pattern ? "sliding_attention" : "full_attention";
  if (typeof pattern === "string" && pattern) return pattern[at % pattern.length] === "L" ? "sliding_attention" : "full_attention";
  const narrow = config.use_sliding_window ? number(config, "max_window_layers") : null;
  return narrow === null ? null : at >= narrow ? "sliding_attention" : "full_attention";
}

/** What describes RoPE in layers of this type, and its base. */
function ropeOf(config, type, known) {
  const local = first(config, known.localBases);
  let parameters = isMap(config.rope_parameters) ? config.rope_parameters : {};
  const nested = Object.keys(parameters).filter((name) => isMap(parameters[name]));
  if (nested.length) {
    const names = { sliding_attention: ["sliding_attention", "main"], full_attention: ["full_attention", "compress"] }[type] ?? [type];
    parameters = parameters[names.find((name) => name in parameters) ?? nested.at(-1)];
  }
  if (!given(parameters) && local && known.narrow.includes(type)) return [{ rope_type: "default" }, local];
  const scaling = Object.entries(isMap(config.rope_scaling) ? config.rope_scaling : {}).filter(([, value]) => !isMap(value));
  const merged = { ...parameters, ...Object.fromEntries(scaling) };
  return [merged, number(merged, "rope_theta") || first(config, known.bases)];
}

/** Whether this layer has no RoPE, in one of three spellings: a flag or a base of 0 in a list, or null for its type. */
function turnedOff(config, at, type) {
  const lists = [config.no_rope_layers, config.layer_rope_theta].filter(Array.isArray);
  return lists.some((listed) => at < listed.length && !listed[at]) || (isMap(config.rope_parameters) && config.rope_parameters[type] === null);
}

/** What a reader of the configuration would expect of this layer. */
function written(config, at, like, known) {
  const type = typeOf(config, at);
  const wide = known.wide.includes(type);
  let window = first(config, ["sliding_window", "attention_chunk_size"]);
  if (!window || config.use_sliding_window === false || wide) window = 0;
  else if (!known.narrow.includes(type) && like?.mixed) window = null;
  const plain = { ...NOTHING, window };
  const position = config.position_embedding_type;
  if (position === "nope") return { ...plain, encoding: "none" };
  if (given(config.alibi) || given(config.attn_config?.alibi)) return { ...plain, encoding: "ALiBi" };
  const buckets = number(config, "relative_attention_num_buckets");
  if (buckets) return { ...plain, encoding: "T5's bias", rows: buckets };
  if (turnedOff(config, at, type)) return { ...plain, encoding: "none" };
  const [parameters, theirs] = ropeOf(config, type, known);
  const base = Array.isArray(config.layer_rope_theta) ? config.layer_rope_theta[at] ?? theirs : theirs;
  if (base === null && !given(parameters)) {
    const learned = position === "absolute" || "n_positions" in config;
    return learned ? { ...plain, encoding: "learned table", rows: first(config, LENGTHS) } : plain;
  }
  return { ...plain, ...rope(config, parameters, base, wide) };
}

function rope(config, parameters, base, wide) {
  const [heads, hidden] = [["num_attention_heads", "n_head", "n_heads"], ["hidden_size", "n_embd", "d_model"]].map((names) => counted(config, names));
  const kind = kindOf(parameters);
  const share = [parameters, config].find((part) => "partial_rotary_factor" in part)?.partial_rotary_factor ?? config.rotary_pct ?? null;
  let width = (wide && number(config, "global_head_dim")) || number(config, "head_dim") || (hidden && heads && Math.floor(hidden / heads));
  let rotated = number(config, "rotary_dim") || (width && share !== null ? Math.trunc(width * share) : width);
  if (number(config, "qk_rope_head_dim")) {
    rotated = config.qk_rope_head_dim;
    width = number(config, "qk_nope_head_dim") ? rotated + config.qk_nope_head_dim : width;
  }
  if (Math.max(width, rotated) > MANY.channels) throw new Error(`a head has ${whole(Math.max(width, rotated))} channels: no model has more than ${whole(MANY.channels)}, so ${ENDING}`);
  const longest = first(config, LENGTHS);
  const name = "original_max_position_embeddings";
  const original = number(parameters, name) || number(config, name);
  const factor = number(parameters, "factor") ?? (["longrope", "yarn"].includes(kind) && longest && original ? longest / original : null);
  if (factor !== null && factor < 1) throw new Error(`factor must be a number >= 1, got ${factor}: ${ENDING}`);
  const plain = ["default", "none", "mrope", "axial", "proportional"].includes(kind);
  const length = kind === "dynamic" ? longest : original || (kind === "linear" ? null : longest);
  const stretch = plain ? NOTHING.stretch : [kind, factor || 1, length ? Math.trunc(length) : null];
  const found = { encoding: "RoPE", base, rotated: rotated && width ? [rotated, width] : null, stretch };
  if (!(base && rotated && width)) return found;

  const omega = frequencies(kind === "proportional" ? width : rotated, base).slice(0, Math.floor(rotated / 2));
  const divided = (divisors) => omega.map((speed, i) => speed / divisors[i]);
  const fits = (key) => Array.isArray(parameters[key]) && parameters[key].length === omega.length;
  let [now, far, attention] = [plain ? omega : null, [], number(parameters, "attention_factor")];
  if (kind === "linear") now = positionInterpolation(omega, factor || 1);
  else if (kind === "llama3" && length) {
    const turns = { slow: number(parameters, "low_freq_factor") ?? 1, fast: number(parameters, "high_freq_factor") ?? 4 };
    now = llama3(omega, factor || 1, length, turns);
  } else if (kind === "yarn" && length) {
    const turns = { slow: number(parameters, "beta_slow") || 1, fast: number(parameters, "beta_fast") || 32 };
    now = yarn(omega, factor || 1, length, { ...turns, truncate: parameters.truncate ?? true });
    attention ||= yarnFactor(factor || 1, parameters);
  } else if (kind === "dynamic" && length) [now, far] = [omega, dynamicNtk(omega, 4 * length, length, factor || 1)];
  else if (kind === "longrope" && fits("short_factor") && fits("long_factor")) {
    [now, far] = [divided(parameters.short_factor), divided(parameters.long_factor)];
    if (!attention && factor > 1 && length) attention = Math.sqrt(1 + Math.log(factor) / Math.log(length));
  } else if (kind === "divisors" && fits("divisors")) now = divided(parameters.divisors);
  if (!now) return { ...found, attentionFactor: attention || 1 }; // the page has no formula for this kind, or lacks a number
  if (![...now, ...far].every((speed) => speed > 0 && speed < Infinity)) {
    throw new Error(`the scaling (${kind}) gives frequencies that no pair can have: correct its numbers`);
  }
  return { ...found, frequencies: [...now], trained: [...omega], far: [...far], attentionFactor: attention || 1 };
}

/** DeepSeek's two settings multiply the logarithm, and divide one factor by the other. */
function yarnFactor(factor, parameters) {
  const [one, allDim] = [number(parameters, "mscale"), number(parameters, "mscale_all_dim")];
  return one && allDim ? (0.1 * one * Math.log(factor) + 1) / (0.1 * allDim * Math.log(factor) + 1) : yarnAttentionFactor(factor);
}

/** What the configuration alone gives away: [level, code, text]. */
function* findings(config, kinds, like, known) {
  const tops = known.bases.filter((name) => typeof config[name] === "number").map((name) => [name, config[name]]);
  const nested = Object.values(isMap(config.rope_parameters) ? config.rope_parameters : {}).some(isMap);
  const longest = first(config, LENGTHS);
  for (const part of parts(config)) {
    const kind = kindOf(part);
    const [inside, factor, original] = ["rope_theta", "factor", "original_max_position_embeddings"].map((name) => number(part, name));
    if (inside && tops.length && !nested && !tops.some(([, value]) => value === inside)) {
      yield ["wrong", "two-bases", `the base is ${whole(tops[0][1])} under ${tops[0][0]}, and ${whole(inside)} with the scaling`];
    }
    const reads = known.keys[kind];
    if (!reads && kind !== "divisors" && kind !== "none") {
      yield ["wrong", "unread-key", `the type of scaling is ${python(kind)}, and transformers knows ${Object.keys(known.keys).join(", ")}`];
    }
    for (const key of Object.keys(part)) {
      if (!reads || reads.includes(key) || known.always.includes(key) || key.endsWith("_theta")) continue;
      yield ["wrong", "unread-key", `${key} isn't read for ${kind}${key.startsWith("attn") ? "; attention_factor is" : ""}`];
    }
    if (kind === "yarn" && factor && longest && original && !close(original * factor, longest, 0.01)) {
      if (original === longest) {
        yield ["warning", "lengths", `original_max_position_embeddings and max_position_embeddings are both ${whole(longest)}: the first is the length before stretching by ${short(factor)}, and the second the one after it`];
      } else {
        const text = `${whole(original)} tokens stretched by ${short(factor)} are ${whole(original * factor)}, not ${whole(longest)}`;
        yield ["wrong", "lengths", `${text}: original_max_position_embeddings is the length before stretching`];
      }
    }
  }
  if (given(config.rope_scaling) && given(config.rope_parameters)) {
    yield ["warning", "scaling", "there are both rope_scaling and rope_parameters, and transformers reads the first"];
  }
  const listed = config.no_rope_layers;
  const off = Array.isArray(listed) ? listed.filter((rotates) => !given(rotates)).length : 0;
  if (off && 2 * off > listed.length) {
    yield ["warning", "nope-list", `no_rope_layers leaves ${off} of ${listed.length} layers without RoPE: in this list, 1 means that a layer rotates`];
  }
  const rotary = kinds.filter((kind) => kind.known.encoding === "RoPE");
  if (rotary.some((kind) => kind.known.base === null)) yield ["warning", "base-missing", "no base is written down"];
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

/** The pairs of a rotation against the training length, as `inspector.pairs` has them; `slowed` is by how much each is slowed. */
export function pairs({ frequencies: now, trained, far }, length) {
  const [used, before] = [far.length ? far : now, trained.length ? trained : far.length ? far : now];
  const circles = before.map((omega) => (omega * length) / (2 * Math.PI));
  const incomplete = [...circles.keys()].filter((i) => circles[i] < 1);
  const slowed = before.map((omega, i) => omega / used[i]);
  const most = Math.max(...slowed);
  return {
    incomplete,
    brakes: incomplete.filter((i) => circles[i] >= 0.25 && circles[i] <= 0.5),
    kept: slowed.filter((by) => by < 1.001).length,
    divided: most > 1.001 ? slowed.filter((by) => by > 0.999 * most).length : 0,
    firstNew: incomplete.length ? Math.min(...incomplete.map((i) => Math.ceil(length * slowed[i] - 1e-3))) : null,
    slowed,
  };
}

/** What happens as texts grow: lengths in tokens, and what is there. */
function limits(config, kinds, length) {
  const found = new Map();
  const add = (at, what) => found.set(`${at} ${what}`, [at, what]);
  const total = kinds.reduce((sum, kind) => sum + kind.count, 0);
  for (const kind of kinds) {
    const { known } = kind;
    const where = named(kind, total);
    if (["learned table", "sinusoids"].includes(known.encoding) && known.rows) add(known.rows, "the table ends: the next position has no row");
    if (known.window) add(known.window, `the window of ${where} is full: keys farther away are out of sight there`);
    const far = known.encoding === "T5's bias" && number(config, "relative_attention_max_distance");
    if (far) add(Math.trunc(far), "all larger distances share the last bucket");
    if (known.encoding === "Inkling's bias" && known.rows && !known.window) add(known.rows, `from this distance on, the bias of ${where} is 0`);
    if (known.encoding !== "RoPE" || !known.frequencies.length || (known.window && known.window <= length)) continue;
    if (known.far.length && known.stretch[2]) add(known.stretch[2], "the frequencies switch: cached keys keep the old angles");
    if (!length) continue;
    const { firstNew, brakes } = pairs(known, length);
    if (firstNew) add(firstNew, `the first distance with an angle that training didn't show, in ${where}`);
    if (brakes.length) {
      const back = Math.ceil((2 * Math.PI) / (known.far.length ? known.far : known.frequencies)[brakes[0]]);
      add(back, `pair ${brakes[0]} completes its first circle in ${where}`);
    }
  }
  return [...found.values()].sort(([a, one], [b, other]) => a - b || (one < other ? -1 : 1));
}

const ORDER = ["wrong", "warning", "note"];

/** The report on a configuration. Raises an Error of one sentence if it doesn't say what the model is. */
export function inspect(config, known, { name, length } = {}) {
  if (!isMap(config)) throw new Error(`it holds ${Array.isArray(config) ? "a list" : python(config)}: a configuration is a JSON object with keys`);
  if (isMap(config.text_config)) config = config.text_config;
  const count = layersOf(config);
  const like = known.classes[String(config.model_type ?? "").toLowerCase().replace(/[_-]|text$/g, "")];
  const trained = length || trainingLength(config);
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
    name: name || String(config._name_or_path || config.model_type || "this model"),
    layers: count, length: trained, kinds: made, findings: found, limits: limits(config, made, trained),
  };
}

/** The report on a model of the table. */
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

/** The configuration with only the numbers and names that `inspect` reads. */
export function reduced(config, known) {
  const [source, read] = [isMap(config?.text_config) ? config.text_config : config, new Set()];
  const note = (kept, key) => { read.add(key); return Reflect.get(kept, key); };
  inspect(isMap(source) ? new Proxy(source, { get: note, has: (kept, key) => note(kept, key) !== undefined }) : source, known);
  read.delete("_name_or_path"); // it may be a private folder
  return Object.fromEntries(Object.entries(source).filter(([key]) => read.has(key)));
}

/** What is found, if anything is wrong or likely to be built wrongly, in one sentence. */
export function worst({ name, findings: found }) {
  const bad = found.filter(({ level }) => level !== "note");
  const more = bad.length > 1 ? ` (${bad.length - 1} more below)` : "";
  return bad.length ? `${name}: ${bad[0].text}${more}` : "";
}

/** Kinds of layers in words: a heading, and lines below it. */
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
  return lines;
}

function rotationWords({ base, rotated, layout }) {
  const words = [base ? `base ${whole(base)}` : "base not written down"];
  if (rotated) words.push(rotated[0] === rotated[1] ? `all ${rotated[1]} channels` : `${rotated[0]} of ${rotated[1]} channels, the first`);
  if (layout) words.push(layout === "interleaved" ? "pairs of neighbours" : "pairs of halves");
  return words.join("; ");
}

function pairWords(known, length) {
  const count = known.frequencies.length;
  if (!count) return [];
  const lines = [];
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
