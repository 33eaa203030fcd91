// What a configuration says about the positions in each layer: posenc_course.inspector without its probe, with the same results in
// the same words. `known` are the package's tables of names, families, classes and findings: data/inspector.
import { frequencies, llama3, positionInterpolation, yarn, yarnAttentionFactor } from "./formulas.js";

const ORIGINAL = "original_max_position_embeddings";
const UNTRAINED = "its training length isn't written down, so nobody can say which angles it has met";
const OWN_CODE = "the model brings its own code, which wasn't run";
/** @typedef {Record<string, any>} Json an object of a configuration, by its keys */
/** @typedef {[kind: string, factor: number, original: number]} Stretch */
/** @typedef {{ encoding: string, base: number, rotated: number[], layout: string, frequencies: number[], trained: number[], far: number[],
 *    stretch: Stretch, attentionFactor: number, farFactor: number, window: number, rows: number, firstRow: number, more: boolean, sinks: boolean, firstChannel: number, score: number }} Layer */
/** @typedef {{ layers: number[], count: number, known: Layer, side?: string, guessed?: boolean }} Kind layers that are alike */
/** @typedef {[at: number, kind: string, text: string]} Limit */
/** @typedef {{ level: string, code: string, text: string, symptom?: string, page?: string, thread?: string }} Finding */
/** @typedef {{ name: string, layers: number, trained: number, limit: number, kinds: Kind[], findings: Finding[], limits: Limit[],
 *    how: string }} Report */

/** @type {Layer} */
const NOTHING = {
  encoding: null, base: null, rotated: null, layout: null, frequencies: [], trained: [], far: [],
  stretch: ["none", 1, null], attentionFactor: 1, farFactor: null, window: null, rows: null, firstRow: 0, more: false, sinks: null, firstChannel: null, score: null,
};

const isMap = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const given = (value) => (isMap(value) || Array.isArray(value) ? Object.keys(value).length > 0 : Boolean(value)); // as in Python
const own = (map, key) => (Object.hasOwn(map, key) ? map[key] : undefined); // a key may be "constructor"
const grouped = (number) => number.toLocaleString("en", { maximumFractionDigits: 0, roundingMode: "halfEven" }); // as in Python
const close = (a, b, tolerance = 1e-4) => Math.abs(a - b) <= Math.max(tolerance * Math.max(Math.abs(a), Math.abs(b)), 1e-12);
// Python's format g.
function short(number, digits = 6) {
  const text = (Math.abs(number) < 1e-4 ? number.toExponential(digits - 1) : number.toPrecision(digits)).replace(/e([+-])(\d)$/, "e$10$2");
  return text.replace(/\.0+(?=e|$)|(\.\d*[1-9])0+(?=e|$)/, "$1"); // not those of an exponent
}

const wrong = (what) => new Error(`${what}: correct the configuration`);

function ruleInWords([kind, least, most, listed]) {
  const to = `from ${least} to ${most < 1e15 ? grouped(most) : "10^" + Math.round(Math.log10(most))}`;
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
const kindOf = (part, known) => { const given = first([part], ["rope_type", "type"]) ?? "default"; return own(known.same_type, given) ?? given; };
const allKeys = (known) => Object.values(known.rope_types).flat();
const hasOwnCode = (...configs) => configs.some(({ auto_map: map }) => given(map));

/** The part that describes the layers that read text; the whole, if there is none. */
function textPart(config, known) {
  const found = known.names.parts.map((name) => own(config, name)).filter(isMap).map((part) => textPart(part, known));
  const has = (part) => known.names.layers.some((name) => name in part);
  return found.find((part) => has(part) || ("model_type" in part && !has(config))) ?? config;
}

/** What is known of the model's type: its row of the tables, or an empty one. */
function rowOf(config, whole, known) {
  const listed = config.model_type || (given(whole.model_type) && whole.model_type) || ("dim" in config ? "params.json" : "");
  const kind = typeof listed === "string" ? listed : "";
  if ("gguf" in config) return own(known.gguf, kind) ?? {};
  const coded = hasOwnCode(config, whole);
  const names = coded || !own(known.classes, kind) ? [...(Array.isArray(config.architectures) ? config.architectures : []).filter((name) => typeof name === "string"), kind] : [];
  let row = [...names, kind].map((name) => own(known.families, name)).find((found) => found && (names.length || found.as)) ?? own(known.classes, kind) ?? {};
  const ofClass = known.classes[row.as] ?? {};
  // A key that's null says that there is nothing, whatever the class would take instead of a missing one.
  const defaults = Object.entries({ ...ofClass.defaults, ...row.defaults }).filter(([key]) => own(config, key) !== null);
  row = { ...ofClass, ...row, defaults: Object.fromEntries(defaults) };
  return coded && row.reads && !row.source ? { ...row, reads: [...row.reads, "position_embedding_type", "alibi"] } : row;
}
const isNamed = (row) => "name" in row;
const unreadByClass = (row, known) => (row.reads ? known.by_class.filter((key) => !row.reads.includes(key)) : []);

/** The values by their usual names, as the row of the model's type says. */
function reading(config, row, known) {
  const values = { ...config };
  for (const [path, ours] of Object.entries(row.keys ?? {})) {
    const value = path.split(".").reduce((map, key) => (isMap(map) ? own(map, key) : undefined), /** @type {any} */ (config));
    if (value !== -1) values[ours] ??= value ?? undefined; // with -1, some say that there is none
  }
  const unread = unreadByClass(row, known);
  const read = Object.fromEntries(Object.entries(values).filter(([key, value]) => value !== undefined && !unread.includes(key)));
  const { rope_parameters: whole, ...rest } = row.defaults ?? {};
  const partly = whole?.rope_theta && ["rope_scaling", "rope_parameters", ...known.names.bases].some((name) => name in read);
  // Of what describes RoPE, only the base is left to the class.
  let defaults = Object.entries(partly ? { rope_theta: whole.rope_theta, ...rest } : row.defaults ?? {});
  const nested = Object.values(read.rope_parameters ?? {}).some(isMap);
  for (const group of ["layers", "heads", "hidden", "bases", "local_bases", "shares", "windows"]) {
    if (known.names[group].some((name) => name in read) || (nested && ["bases", "local_bases", "shares"].includes(group))) {
      defaults = defaults.filter(([key]) => !known.names[group].includes(key));
    }
  }
  return { ...checked({ ...Object.fromEntries(defaults), ...read }, known), known: isNamed(row) };
}

const windowsOf = (row) => [row, ...Object.values(row.sides ?? {})].map((each) => each.window?.[0]).filter(Boolean);

/** The keys that look like positions, and that aren't read for this type of model. */
function unreadKeys(config, row, known, path = "") {
  const [like, unlike, unread] = [new RegExp(known.like_positions), new RegExp(known.not_positions), unreadByClass(row, known)];
  const windows = windowsOf(row);
  // A type of RoPE is read beside its values, and nowhere else.
  const reads = (name) => (own(known.rules, name) && !unread.includes(name) && name !== "rope_type")
    || own(row.says ?? {}, name) || own(row.keys ?? {}, name) || windows.includes(name);
  return Object.entries(config).flatMap(([key, value]) => {
    const off = value === null || (value === false && key.startsWith("use_")) || isMap(value);
    const here = like.test(key) && !unlike.test(key) && !off && !reads(path + key) ? [path + key] : [];
    return [...(isMap(value) && /att|sparse/.test(key) ? unreadKeys(value, row, known, `${path}${key}.`) : []), ...here];
  });
}

/** The keys that look as if they told layers apart, and that aren't read. */
function unreadLayers(config, row, known) {
  const like = new RegExp(known.like_layers);
  const inner = Object.entries(config).filter(([, part]) => isMap(part))
    .flatMap(([key, part]) => Object.entries(part).map(([name, value]) => [`${key}.${name}`, value]));
  const all = Object.fromEntries([...Object.entries(config), ...inner]);
  const says = (value) => ![false, null, 0].includes(value) && (typeof value !== "object" || given(value));
  return Object.keys(all).filter((key) => like.test(key) && says(all[key]) && !own(known.rules, key) && !own(row.keys ?? {}, key));
}

function layersOf(config, known) {
  const [usual] = known.names.layers;
  const lists = ["layers_block_type", "layer_types", "attn_layers", "hybrid_override_pattern"].map((name) => config[name]?.length);
  const blocks = (config.block_sizes ?? []).reduce((sum, size) => sum + size, 0);
  const found = [first([config], known.names.layers), ...lists, blocks].find(Boolean);
  if (found) return checkedValue(known.rules[usual], found, usual, known);
  const of = config.base_model_name_or_path || config.base_model_name;
  throw new Error(of ? `this is an adapter of ${of}, and its config.json is what counts: give that one`
    : `no key says how many layers there are, such as ${usual}: give the config.json of a model`);
}

// Llama 3's limits count rotations in a length, which is that of the training if the lower one is 1.
const trainedLength = (config, known) => first([...parts(config).filter(({ low_freq_factor: low = 1 }) => low === 1), config], known.names.trained);
const longestOf = (config, known) => first([config], known.names.lengths);

/** What the configuration calls this layer, or null if it doesn't say. */
function typeOf(config, row, at, known) {
  const types = [config.layer_types, config.layers_block_type, config.attention_layers].find((each) => at < each?.length);
  if (types) return types[at];
  const nested = config.attention_types;
  if (Array.isArray(nested) && nested.every((each) => Array.isArray(each) && each.length === 2)) {
    const listed = nested.flatMap(([some, times]) => (Array.isArray(some) && Number.isInteger(times) ? Array(Math.max(times, 0)).fill(some).flat() : []));
    return listed.length ? String(listed[at % listed.length]) : null;
  }
  if (config.cross_attention_layers?.includes(at)) return "cross_attention";
  for (const [name, number] of /** @type {[string, number][]} */ ([["full_attn_idxs", at], ["full_attn_layers", at + 1]])) {
    if (config[name]) return config[name].includes(number) ? "full_attention" : "linear_attention";
  }
  for (const [name, kinds] of Object.entries(known.types_by)) {
    if (at < config[name]?.length) return own(kinds, String(config[name][at])) ?? "mamba";
  }
  const pattern = config.sliding_window_pattern;
  let narrow = null;
  if (typeof pattern === "number") narrow = (at + 1) % pattern > 0;
  else if (pattern) narrow = pattern[at % pattern.length] === "L";
  else if (config.global_attn_every_n_layers) narrow = at % config.global_attn_every_n_layers > 0;
  else if (config.use_sliding_window && "max_window_layers" in config) narrow = at >= config.max_window_layers;
  else if (row.types) return row.types[at % row.types.length];
  return narrow === null ? null : narrow ? "sliding_attention" : "full_attention";
}

/** What describes RoPE in layers of this type, and its base. */
function ropeOf(config, type, at, known) {
  const local = first([config], known.names.local_bases);
  let parameters = config.rope_parameters ?? {};
  const nested = Object.keys(parameters).filter((name) => isMap(parameters[name]));
  if (nested.length) {
    const names = own({ sliding_attention: ["sliding_attention", "main"], full_attention: ["full_attention", "compress"] }, type) ?? [type];
    parameters = parameters[names.find((name) => nested.includes(name)) ?? nested.at(-1)];
  }
  if (!given(parameters) && local && known.names.narrow.includes(type)) return [{ rope_type: "default" }, local];
  const scaling = Object.entries(config.rope_scaling ?? {}).filter(([, value]) => !isMap(value));
  const merged = { ...parameters, ...Object.fromEntries(scaling) };
  const base = config.layer_rope_theta?.[at] ?? first([merged], ["rope_theta"]) ?? first([config], known.names.bases);
  const far = nested.length ? null : config.compress_rope_theta;
  if (!far) return [merged, base];
  // Layers with another base, which alone are stretched.
  return known.names.narrow.includes(type) ? [{ rope_type: "default" }, base] : [{ ...merged, attention_factor: 1 }, far];
}

/** Whether this layer has no RoPE: a flag or a base of 0 in a list, null for its type, or a type that the class leaves out. */
function turnedOff(config, row, at, type) {
  const lists = [config.no_rope_layers ?? [], config.layer_rope_theta ?? []];
  const rotates = lists[0].length ? [] : row.rotates ?? [];
  return lists.some((listed) => at < listed.length && !listed[at]) || (rotates.length > 0 && !rotates[at % rotates.length])
    || (row.without ?? []).includes(type) || own(config.rope_parameters ?? {}, type) === null;
}

/** How many tokens a query sees in this layer, of this type; 0 if there is no limit, and null if nobody can say. */
function windowOf(config, row, at, type, known) {
  if (known.names.wide.includes(type) || config.use_sliding_window === false) return 0;
  const [key, times, more] = row.window ?? [null, 1, 0];
  let size = key ? config[key] ?? null : first([config], known.names.windows);
  if (Array.isArray(size) && at < size.length) size = size[at];
  const anywhere = type === null && !isNamed(row); // which layers have it, only the class knows
  if (given(size)) return !Number.isInteger(size) || anywhere || given(config.use_bidirectional_attention) ? null : times * size + more;
  return row.blind || !isNamed(row) ? null : 0;
}

/** What a reader of the configuration would expect of this layer; null if it has no attention. */
function written(config, row, at, known) {
  const type = typeOf(config, row, at, known);
  if (known.names.no_attention.includes(type)) return null;
  const usual = type === null || [...known.names.wide, ...known.names.narrow, "cross_attention"].includes(type);
  // Layers of other kinds may see farther by other means.
  const plain = { ...NOTHING, window: usual ? windowOf(config, row, at, type, known) : null };
  const named = (config.position_embedding_type ?? "").toLowerCase();
  if (named === "nope" || type === "cross_attention" || turnedOff(config, row, at, type)) return { ...plain, encoding: "none" };
  if (config.alibi || named === "alibi") return { ...plain, encoding: "ALiBi" };
  const buckets = config.relative_attention_num_buckets;
  if (buckets) return { ...plain, encoding: "T5's bias", rows: buckets };
  let encodings = row.encodings ?? [];
  for (const [key, byValue] of Object.entries(row.by_value ?? {})) {
    if (key in config) encodings = [own(byValue, String(config[key]).toLowerCase())].filter(Boolean);
  }
  const [parameters, base] = ropeOf(config, type, at, known);
  const byName = /^(rot|rope)/.test(named);
  const several = type === null && !isNamed(row) && first([config], known.names.local_bases) !== null;
  const stated = base !== null || given(parameters);
  // Which layers have which base, only the class knows.
  if ((byName && !stated) || (stated && several)) return { ...plain, encoding: "RoPE" };
  if (stated && (byName || encodings.includes("RoPE") || !encodings.length)) {
    const found = { ...plain, sinks: row.sinks ?? null, ...rope(config, parameters, base, known.names.wide.includes(type), known) };
    if (row.reads?.includes("long_mscale")) found.farFactor = parameters.long_mscale ?? null;
    if (row.last && found.rotated) found.firstChannel = found.rotated[1] - found.rotated[0];
    const layout = config.original_rope === false ? "halves" : row.layout ?? null;
    const interleaved = config.rotary_emb_interleaved;
    return { ...found, layout: interleaved === undefined ? layout : interleaved ? "interleaved" : "halves" };
  }
  let rows = row.rows ? config[row.rows] ?? null : longestOf(config, known);
  if (!encodings.length && named === "absolute") return { ...plain, encoding: "learned table", rows };
  const encoding = encodings.length === 1 ? encodings[0] : null;
  if (!["learned table", "sinusoids"].includes(encoding)) return { ...plain, encoding };
  rows = row.grows || !rows ? null : rows + (row.more_rows ?? 0);
  return { ...plain, encoding, rows, firstRow: row.first_row ?? 0, more: row.more ?? false };
}

/** @param {Json} config @param {Json} parameters @param {number} base @param {boolean} wide @param {any} known @returns {Partial<Layer>} */
function rope(config, parameters, base, wide, known) {
  const [heads, hidden] = [known.names.heads, known.names.hidden].map((names) => first([config], names));
  const kind = kindOf(parameters, known);
  const share = first([parameters, config], known.names.shares) ?? (config.known ? 1 : null);
  let width = (wide && config.global_head_dim) || config.head_dim || (hidden && heads && Math.floor(hidden / heads)) || null;
  let rotated = config.rotary_dim || (width && share ? Math.trunc(width * share) : null);
  if (config.qk_rope_head_dim) {
    rotated = config.qk_rope_head_dim;
    width = config.qk_nope_head_dim ? rotated + config.qk_nope_head_dim : width;
  }
  if (width && rotated > width) throw wrong(`${grouped(rotated)} channels can't rotate in a head that has ${grouped(width)}`);
  const longest = longestOf(config, known);
  const original = first([parameters, config], [ORIGINAL]);
  let factor = parameters.factor ?? null;
  if (factor === null && ["longrope", "yarn"].includes(kind) && longest && original) {
    factor = longest / original;
    if (factor < 1) throw wrong(`the longest text, ${grouped(longest)} tokens, must be at least ${ORIGINAL}, ${grouped(original)}`);
  }
  let plain = known.unstretched.includes(kind);
  if (base) base *= config.base_times ?? 1;
  if (base && kind === "dynamic" && parameters.alpha && rotated > 2) { // another base for all lengths
    [plain, base] = [true, base * parameters.alpha ** (rotated / (rotated - 2))];
  }
  const length = kind === "dynamic" ? longest : original || (kind === "linear" ? null : longest);
  /** @type {Stretch} */
  const stretch = plain ? NOTHING.stretch : [kind, factor || 1, length];
  const turns = kind === "llama3" ? turnsOf(parameters, { low_freq_factor: 1, high_freq_factor: 4 })
    : kind === "yarn" ? turnsOf(parameters, { beta_slow: 1, beta_fast: 32 }) : null;
  /** @type {Partial<Layer>} */
  const found = { encoding: "RoPE", base, rotated: rotated && width ? [rotated, width] : null, stretch };
  let attention = parameters.attention_factor || null;
  if (kind === "yarn") attention ??= yarnFactor(factor || 1, parameters);
  if (kind === "longrope") attention ??= parameters.short_mscale || null;
  const ours = [...allKeys(known), ...known.always]; // with other keys, a model has another factor
  if (kind === "longrope" && length > 1 && Object.keys(parameters).every((key) => ours.includes(key))) attention ??= Math.sqrt(1 + Math.log(factor || 1) / Math.log(length));
  if (attention && !plain) found.attentionFactor = attention;
  if (config.qk_rope_head_dim) { // DeepSeek's kind of attention: the last channels rotate, and YaRN may multiply the scores, too
    found.firstChannel = config.qk_nope_head_dim ?? null;
    const { mscale_all_dim: allDim } = parameters;
    if (allDim && kind === "yarn") found.score = (0.1 * allDim * Math.log(factor || 1) + 1) ** 2;
  } else found.firstChannel = kind === "proportional" && rotated < width ? null : 0; // these are the first of each half
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
  else if (kind === "dynamic" && !plain && length && many) now = omega;
  else if (kind === "longrope" && fits("short_factor") && fits("long_factor")) {
    [now, far] = [divided(parameters.short_factor), length ? divided(parameters.long_factor) : []];
  } else if (kind === "divisors" && fits("divisors")) now = divided(parameters.divisors);
  return now ? { ...found, frequencies: [...now], trained: [...omega], far: [...far] } : found; // the page has no formula for other kinds
}

/** Between how many rotations a stretching blends. */
function turnsOf(parameters, defaults) {
  const [[low, slow], [high, fast]] = Object.entries(defaults).map(([name, value]) => [name, parameters[name] ?? value]);
  if (slow > fast) throw wrong(`${low} must be at most ${high}, got ${short(slow)} and ${short(fast)}`);
  return { slow, fast };
}

/** DeepSeek's two settings multiply the logarithm, and divide one factor by the other. */
function yarnFactor(factor, parameters) {
  const { mscale: one, mscale_all_dim: allDim } = parameters;
  return one && allDim ? (0.1 * one * Math.log(factor) + 1) / (0.1 * allDim * Math.log(factor) + 1) : yarnAttentionFactor(factor);
}

/** The parts of a file that describe other layers than those that read text. */
function partners(whole, raw, known) {
  const marks = [...known.names.layers, ...known.names.hidden];
  return Object.keys(whole).filter((key) => isMap(whole[key]) && marks.some((mark) => mark in whole[key]) && textPart(whole[key], known) !== raw);
}

/** What isn't known, and where the file contradicts itself or leaves something out: [level, code, text]. */
function* findings(whole, raw, part, values, row, unread, apart, kinds, length, known) {
  const [total, coded] = [kinds.reduce((sum, { count }) => sum + count, 0), hasOwnCode(whole, part)];
  const name = row.name ?? "its class";
  if (coded) {
    const rules = isNamed(row) ? `what follows is read by the rules of ${row.name}` : "its rules aren't known here";
    yield ["unknown", "own-code", `${OWN_CODE}: ${rules}`];
  } else if ("gguf" in part && !isNamed(row)) {
    yield ["unknown", "not-known", `llama.cpp may have rules for ${part.model_type} that aren't in the file: this is what the file says`];
  } else if (!isNamed(row)) {
    const of = part.model_type ? `model_type ${quoted(part.model_type)}` : "a file without model_type";
    yield ["unknown", "not-known", `nobody here knows the rules of ${of}: its keys are read by their usual names`];
  }
  const open = [...unread.filter((key) => coded || !row.reads || (row.also ?? []).includes(key)), ...apart];
  if (open.length) yield ["unknown", "not-known", `what looks like positions isn't read here: ${open.join(", ")}`];
  const others = unread.filter((key) => !open.includes(key));
  if (others.length) yield ["note", "unread", `${name} doesn't read what looks like positions: ${others.join(", ")}`];
  for (const [key, [level, text]] of Object.entries(row.says ?? {})) {
    if (![null, false, 0, -1].includes(own(values, key) ?? null)) yield [level, "rule", text.replace("{}", String(values[key]))];
  }
  for (const kind of kinds) {
    const { encoding, base, frequencies: omega, window, more } = kind.known;
    if (encoding === null) yield ["unknown", "not-known", `the encoding of ${named(kind, total)} isn't known`];
    else if (encoding === "RoPE" && base === null && !omega.length) {
      const perhaps = unread.filter((name) => /base|theta/.test(name));
      yield ["unknown", "base-missing", `the base isn't known${perhaps.length ? ", and perhaps it's under " + perhaps.join(" or ") : ""}`];
    }
    if (encoding !== null && window === null) yield ["unknown", "not-known", `how far queries see in ${named(kind, total)} isn't known`];
    if (more) yield ["unknown", "not-known", `something else tells the order of tokens in ${named(kind, total)}, too, and isn't known`];
    if (omega.length && !length) yield ["unknown", "not-known", UNTRAINED];
  }
  const tops = known.names.bases.filter((key) => part[key]).map((key) => [key, part[key]]);
  const nested = Object.values(part.rope_parameters ?? {}).some(isMap);
  const factors = kinds.filter((kind) => kind.known.encoding === "RoPE").map((kind) => kind.known.attentionFactor);
  for (const each of parts(part)) {
    const inside = each.rope_theta;
    if (inside && tops.length && !nested && !tops.some(([, value]) => value === inside)) {
      yield ["wrong", "two-bases", `the base is ${grouped(tops[0][1])} under ${tops[0][0]}, and ${grouped(inside)} with the scaling`];
    }
    yield* ofScaling(each, part, row, coded, factors, known);
  }
  if (given(part.rope_scaling) && given(part.rope_parameters)) {
    yield ["note", "scaling", "there are both rope_scaling and rope_parameters, and transformers reads the first"];
  }
  const listed = part.no_rope_layers ?? [];
  const off = listed.filter((rotates) => !rotates).length;
  if (2 * off > listed.length) {
    yield ["note", "nope-list", `no_rope_layers leaves ${off} of ${listed.length} layers without RoPE: in this list, 1 means that a layer rotates`];
  }
  yield* ofBases(part, row, kinds, name, total, known);
  const encodings = row.encodings ?? [];
  if (encodings.includes("none") && encodings.includes("RoPE") && !kinds.some((kind) => kind.known.encoding === "none")) {
    yield ["unknown", "no-rope", `${name} has layers without RoPE, and the file doesn't say which`];
  }
  const saysNone = (part.position_embedding_type ?? "").toLowerCase() === "nope"
    || Object.entries(row.by_value ?? {}).some(([key, byValue]) => own(byValue, String(part[key]).toLowerCase()) === "none");
  if (tops.length && kinds.length && kinds.every((kind) => kind.known.encoding === "none") && !saysNone) {
    yield ["note", "no-rope", `the file has a base, but ${name} doesn't rotate in any layer`];
  }
  const besides = partners(whole, raw, known);
  if (besides.length) {
    yield ["note", "not-known", `only what reads text is described here, and ${besides.join(", ")} may have positions of their own`];
  }
  for (const { mrope_section: sections } of parts(part)) {
    if (sections?.length) {
      yield ["note", "not-known", `sections of ${sections.join(", ")} pairs rotate by time, row and column, which are alike in a text`];
    }
  }
}

/** Which bases aren't written, and which are made by another key. */
function* ofBases(part, row, kinds, name, total, known) {
  const keys = Object.entries(row.keys ?? {});
  const inner = Object.values(part).filter(isMap);
  const stated = [...["bases", "local_bases", "other_bases"].flatMap((group) => known.names[group]).map((key) => own(part, key)), ...part.layer_rope_theta ?? [],
    ...[...inner, ...inner.flatMap((rope) => Object.values(rope).filter(isMap))].map((rope) => own(rope, "rope_theta"))].filter((base) => base && typeof base === "number");
  const rotary = kinds.filter((kind) => kind.known.encoding === "RoPE" && kind.known.base);
  const taken = rotary.filter((kind) => !stated.some((base) => close(base, kind.known.base)));
  const makers = keys.filter(([path, ours]) => ours === "base_times" && part[path]).map(([path]) => path);
  if (parts(part).some((rope) => rope.alpha && kindOf(rope, known) === "dynamic")) makers.push("alpha");
  if (taken.length && makers.length) yield ["note", "base-missing", `${makers[0]} makes the base ${grouped(taken[0].known.base)}`];
  else if (taken.length && (taken.length < rotary.length || !stated.length) && !keys.some(([path]) => path.endsWith("theta"))) {
    const several = new Set(rotary.map((kind) => kind.known.base)).size > 1;
    const bases = new Set(taken.map((kind) => grouped(kind.known.base) + (several ? ` in ${named(kind, total)}` : "")));
    yield ["note", "base-missing", `no base is written where ${name} reads one, and it takes ${[...bases].join(" and ")}`];
  }
}

/** What is odd in one dictionary about RoPE. */
function* ofScaling(each, part, row, coded, factors, known) {
  const [kind, types] = [kindOf(each, known), known.rope_types];
  const reads = own(types, kind);
  if (!reads && kind !== "none") {
    yield ["unknown", "unread-key", `the type of scaling is ${quoted(kind)}, and transformers knows ${Object.keys(types).slice(0, -1).join(", ")}`];
  }
  const ofLibrary = !row.source && !coded;
  for (const key of Object.keys(each)) {
    if (!reads || [...reads, ...known.always, ...row.reads ?? []].includes(key) || key.endsWith("_theta")) continue;
    const synonym = key.startsWith("attn") && reads.includes("attention_factor");
    const contradicted = synonym && !coded && !factors.every((factor) => typeof each[key] === "number" && close(each[key], factor));
    const level = contradicted ? "wrong" : isNamed(row) && (allKeys(known).includes(key) || ofLibrary) ? "note" : "unknown";
    const where = level === "unknown" ? "here" : `for ${kind}`;
    yield [level, "unread-key", `${key} isn't read ${where}${synonym ? "; attention_factor is" : ""}`];
  }
  const [factor, original, most] = [each.factor, each[ORIGINAL], longestOf(part, known)];
  if (kind === "yarn" && factor > 1 && most && !original) {
    yield ["note", "lengths", `${ORIGINAL} isn't written, so ${grouped(most)} tokens are the length before stretching`];
  }
  if (kind !== "yarn" || !factor || !most || !original || close(original * factor, most, 0.01)) return;
  const text = `${grouped(original)} tokens stretched by ${short(factor)} are ${grouped(original * factor)}, not ${grouped(most)}`;
  if (original > most) yield ["wrong", "lengths", `${text}: ${ORIGINAL} is the length before stretching`];
  else if (original === most) {
    yield ["note", "lengths", `${ORIGINAL} and max_position_embeddings are both ${grouped(most)}, but stretched by ${short(factor)}, the second should be ${grouped(original * factor)}, or the first ${grouped(most / factor)}`];
  } else yield ["note", "lengths", text];
}

/** A name as Python shows it. */
const quoted = (name) => (name.includes("'") && !name.includes('"') ? `"${name}"` : `'${name.replaceAll("'", "\\'")}'`);

function named(kind, number) {
  if (kind.guessed && kind.count === number) return "its layers with attention (if alike)";
  if (kind.side) return `the ${kind.side}'s ${kind.count} layers`;
  if (kind.count === number) return "all layers";
  const some = kind.layers.length ? [...kind.layers.slice(0, 3), ...kind.count > 3 ? ["…"] : []].join(", ") : "";
  return `${kind.count} of ${number} layers` + (some && ` (${some})`);
}

/** The pairs of a rotation against the training length, as `inspector.pairs` has them; `used` are the frequencies of
 *  long texts, and `slowed` is by how much each is slowed.
 *  @param {Pick<Layer, "frequencies" | "trained" | "far" | "stretch">} known @param {number} length */
export function pairs({ frequencies: now, trained, far, stretch: [kind, factor] }, length) {
  const used = far.length ? far : now;
  const before = trained.length && (factor > 1 || kind === "divisors") ? trained : used; // longrope by 1 holds from the start
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
 *  @param {Json} config @param {Kind[]} kinds @param {number} layers @param {number} trained @param {number} most @returns {Limit[]} */
function limits(config, kinds, layers, trained, most) {
  const length = trained || most;
  const found = new Map();
  /** @type {(...limit: Limit) => any} */
  const add = (...limit) => found.set(limit.join(" "), limit);
  const total = Math.max(layers, kinds.reduce((sum, kind) => sum + kind.count, 0));
  for (const kind of kinds) {
    const { known } = kind;
    const where = named(kind, total);
    if (["learned table", "sinusoids"].includes(known.encoding) && known.rows) add(known.rows - known.firstRow, "end", `the table ends in ${where}: the next position has no row`);
    if (known.window) add(known.window, "window", `no query of ${where} sees all of a longer text`);
    const far = ["T5's bias", "DeBERTa's bias"].includes(known.encoding) && config.relative_attention_max_distance;
    if (far) add(far, "bucket", "all larger distances share the last bucket");
    if (known.encoding === "Inkling's bias" && known.rows && !known.window) add(known.rows, "bucket", `from this distance on, the bias of ${where} is 0`);
    if (known.encoding !== "RoPE" || !known.frequencies.length || (known.window && known.window <= length)) continue;
    const [name, factor, start] = known.stretch;
    const switches = known.far.some((speed, i) => !close(speed, known.frequencies[i])) || (name === "dynamic" && factor > 1);
    if (start && switches) add(start, "switch", "the frequencies switch: cached keys keep the old angles, unless they're computed anew");
    if (!length || name === "dynamic") continue; // dynamic: each longer text has frequencies of its own
    const { used, firstNew, brakes } = pairs(known, length);
    const after = factor > 1 ? " and stretched afterwards" : "";
    const condition = trained ? "that training didn't show" : `that's new if it was trained up to its limit${after}`;
    if (firstNew) add(firstNew, "new", `the first distance with an angle ${condition}, in ${where}`);
    if (brakes.length) add(Math.ceil((2 * Math.PI) / used[brakes[0]]), "circle", `pair ${brakes[0]} completes its first circle in ${where}`);
  }
  return [...found.values()].sort(([a, ...one], [b, ...other]) => a - b || (one.join(" ") < other.join(" ") ? -1 : 1));
}

const ORDER = ["wrong", "unknown", "note"];

/** The report on a configuration. Raises an Error of one sentence if it doesn't say what the model is.
 *  @param {Json} all @param {any} known @param {{ name?: string, length?: number }} [asked] @returns {Report} */
export function inspect(all, known, { name, length } = {}) {
  if (!isMap(all)) throw new Error(`it holds ${Array.isArray(all) ? "a list" : JSON.stringify(all)}: a configuration is a JSON object with keys`);
  const raw = textPart(all, known);
  const part = checked(raw, known);
  let row = rowOf(raw, all, known);
  const [unread, apart] = [unreadKeys(raw, row, known), unreadLayers(raw, row, known)];
  if (apart.length) row = { ...row, types: undefined, rotates: undefined };
  if (unread.some((key) => /window|sparse/.test(key))) row = { ...row, blind: true };
  const values = reading(part, row, known);
  const count = layersOf(values, known);
  const kinds = new Map();
  const add = (layer, at, side = "") => {
    const key = JSON.stringify([layer, side]);
    if (!kinds.has(key)) kinds.set(key, { layers: [], count: 0, known: layer, side, guessed: apart.length > 0 || !isNamed(row) });
    kinds.get(key).layers.push(at);
    kinds.get(key).count++;
  };
  for (const [side, of] of Object.entries(row.sides ?? { "": {} })) {
    for (let at = 0; at < ((side && values[of.layers]) || count); at++) {
      const layer = written(values, { ...row, ...of }, at, known);
      if (layer) add(layer, at, side);
    }
  }
  const made = [...kinds.values()];
  const lengths = reading(part, { ...row, defaults: {} }, known); // a class's default says nothing of what this model was trained on
  const [trained, limit] = [length || trainedLength(lengths, known), longestOf(lengths, known)];
  const found = new Map([...findings(all, raw, part, values, row, unread, apart, made, trained || limit, known)].map((each) => [each.join("\n"), each]));
  const sorted = [...found.values()].map(([level, code, text]) => ({ level, code, text, ...known.catalogue[code] }));
  sorted.sort((a, b) => ORDER.indexOf(a.level) - ORDER.indexOf(b.level));
  return {
    name: name || (first([part, all], ["gguf", "_name_or_path", "model_type"]) ?? "this model"), layers: count, trained, limit,
    kinds: made, findings: sorted, limits: limits(values, made, count, trained, limit), how: "as written",
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
  return { name, layers: row.layers, trained, limit: null, kinds, findings: [], limits: limits({}, kinds, row.layers, trained, null), how: "by the table of models" };
}

/** The configuration with only what `inspect` reads, but for a name that may be a private folder.
 *  @param {Json} all @param {any} known */
export function reduced(all, known) {
  inspect(all, known);
  const raw = textPart(all, known);
  const row = rowOf(raw, all, known);
  const kept = [...unreadKeys(raw, row, known), ...unreadLayers(raw, row, known), ...Object.keys(row.keys ?? {}), ...Object.keys(row.says ?? {}), ...windowsOf(row), "seq_length", "use_dynamic_ntk"];
  const keep = (map, path) => Object.fromEntries(Object.entries(map).flatMap(([key, value]) => {
    const inner = isMap(value) && !own(known.rules, key) && kept.some((name) => name.startsWith(`${path}${key}.`));
    if (inner) return [[key, keep(value, `${path}${key}.`)]];
    return (!path && own(known.rules, key) && key !== "_name_or_path") || kept.includes(path + key) ? [[key, value]] : [];
  }));
  const read = keep(raw, "");
  const architectures = (Array.isArray(raw.architectures) ? raw.architectures : []).filter((name) => own(known.families, name));
  return {
    ...(raw.model_type ?? all.model_type ? { model_type: raw.model_type ?? all.model_type } : {}),
    ...(hasOwnCode(raw, all) ? { auto_map: { "": "" } } : {}), ...read,
    ...Object.fromEntries(partners(all, raw, known).filter((key) => !own(known.rules, key)).map((key) => [key, { ...read[key], hidden_size: 1 }])), ...(architectures.length ? { architectures } : {}),
  };
}

/** The main finding, in one sentence: what's wrong, or else what isn't known, or else up to what length it's safe.
 *  @param {Report} report */
export function headline(report) {
  const { name, findings: found, how } = report;
  for (const level of ORDER.slice(0, 2)) {
    const worst = found.filter((each) => each.level === level);
    const more = worst.length > 1 ? ` (${worst.length - 1} more below)` : "";
    if (worst.length) return `${name}: ${worst[0].text}${more}`;
  }
  const notes = found.length ? ` (${found.length} note${found.length > 1 ? "s" : ""} below)` : "";
  return `${name}: ${how}, ${verdict(report)}${notes}`;
}

/** Up to what length of text all is as in training, in plain words. */
function verdict({ trained, limit, kinds, limits: at }) {
  const length = trained || limit;
  const rotary = kinds.map(({ known }) => known).filter(({ encoding }) => encoding === "RoPE");
  const ends = [...new Set(at.filter(([, kind]) => kind === "end").map(([rows]) => rows))];
  if (ends.length > 1) return `its tables end at ${ends.map(grouped).join(" and ")} tokens`;
  if (ends.length) return `it takes texts of up to ${grouped(ends[0])} tokens, where its table ends`;
  if (kinds.some(({ known }) => ["learned table", "sinusoids"].includes(known.encoding))) return "each position beyond those of its training is new to it";
  if (!rotary.length) {
    const has = [...new Set(kinds.map(({ known }) => (known.encoding === "none" ? "no encoding" : known.encoding)))].join(" and ");
    return `no layer rotates (${has || "no attention"}), so no length brings a new angle`;
  }
  if (!rotary.every(({ frequencies: omega }) => omega.length)) return "its frequencies don't follow from what is written";
  if (!length) return UNTRAINED;
  const after = rotary.some(({ stretch: [kind, factor] }) => factor > 1 && kind !== "dynamic") ? " and stretched afterwards," : "";
  const condition = trained ? "" : `if it was trained on ${grouped(length)} tokens, its limit,${after} it's `;
  const seeing = rotary.filter(({ window }) => !(window && window <= length));
  if (!seeing.length) return `where layers rotate, no query sees farther than ${grouped(Math.max(...rotary.map(({ window }) => window || 0)))} tokens`;
  if (seeing.some(({ stretch: [kind] }) => kind === "dynamic")) return `${condition}safe up to ${grouped(length)} tokens; beyond, frequencies change with the length of the text`;
  const fresh = seeing.map((known) => ({ ...pairs(known, length), count: known.frequencies.length })).filter(({ firstNew }) => firstNew);
  if (!fresh.length) return `${condition}safe at any length, because ${grouped(length)} tokens show every pair all its angles`;
  const [{ firstNew, incomplete, count }] = fresh.sort((a, b) => a.firstNew - b.firstNew || a.incomplete.length - b.incomplete.length || a.count - b.count);
  const which = trained ? `that training on ${grouped(length)} tokens didn't` : "that training didn't";
  return `${condition}safe up to ${grouped(firstNew)} tokens; from there on, ${incomplete.length} of ${count} pairs show angles ${which}`;
}

/** What there is to say of layers without attention; empty if there are none.
 *  @param {Report} report */
export function rest({ layers, kinds }) {
  const number = layers - kinds.reduce((sum, { count }) => sum + count, 0);
  return number > 0 && !kinds.some(({ guessed, side }) => guessed || side) ? `${number} of ${layers} layers: no softmax attention` : "";
}

/** Kinds of layers in words: a heading, and lines below it.
 *  @param {Kind} kind @param {Report} report */
export function described(kind, report) {
  const { known } = kind;
  const total = Math.max(report.layers, report.kinds.reduce((sum, { count }) => sum + count, 0));
  const door = /bias$/.test(known.encoding) ? "score" : { RoPE: "query and key", ALiBi: "score", none: "" }[known.encoding ?? "none"] ?? "embedding";
  const what = { null: "encoding", none: "no encoding" }[known.encoding] ?? known.encoding;
  const lines = [`${named(kind, total)}: ${what}` + (door && `, at the ${door}`) + ` [${known.encoding === null ? "not known" : "written"}]`];
  if (known.encoding === "RoPE") lines.push(rotationWords(known), ...pairWords(known, report));
  if (known.rows) lines.push(`${grouped(known.rows)} ${{ "T5's bias": "buckets", "Inkling's bias": "offsets" }[known.encoding] ?? "rows"}` + (known.firstRow ? `, of which the first token gets row ${known.firstRow}` : ""));
  lines.push(known.window ? `a query sees at most ${grouped(known.window)} tokens, its own included` : known.window === null ? "window not known" : "no window");
  if (known.sinks) lines.push("sinks: each head has a score that belongs to no token");
  if (known.score && !close(known.score, 1)) lines.push(`scores are multiplied by ${short(known.score, 4)} in addition to 1/√d`);
  return lines;
}

/** @param {Layer} known */
function rotationWords({ base, rotated, firstChannel, layout }) {
  const words = [base ? `base ${grouped(base)}` : "base not known"];
  const side = { null: "", 0: ", the first" }[firstChannel] ?? `, from channel ${firstChannel}`;
  if (!rotated) words.push("how many channels rotate isn't known");
  else words.push(rotated[0] === rotated[1] ? `all ${rotated[1]} channels` : `${rotated[0]} of ${rotated[1]} channels${side}`);
  if (layout) words.push(layout === "interleaved" ? "pairs of neighbours" : "pairs of halves");
  return words.join("; ");
}

/** @param {Layer} known @param {Report} report */
function pairWords(known, report) {
  const count = known.frequencies.length;
  const length = report.trained || report.limit;
  const shown = [...known.frequencies.slice(0, 3), ...known.frequencies.slice(3).slice(-1)].map((omega) => short(omega, 4));
  if (count > 3) shown.splice(3, 0, "…");
  const lines = [`frequencies ${shown.join(", ") || "not known"}`];
  const found = pairs(known, length || 1);
  const [kind, factor, original] = known.stretch;
  if (length && count) {
    lines.push(`within ${grouped(length)} tokens, its ${report.trained ? "training length" : "limit"}, ${found.incomplete.length} of ${count} pairs complete no rotation${factor > 1 ? " before stretching" : ""}`);
    const { brakes } = found;
    const range = brakes.length > 1 ? `pairs ${brakes[0]} to ${brakes.at(-1)}, which complete` : `pair ${brakes[0]}, which completes`;
    if (brakes.length) lines.push(`suspects, as in chapters 13 and 18: ${range} between 1/4 and 1/2 of one`);
  }
  if (kind !== "none") {
    lines.push(`stretched: ${kind}, by ${short(factor)}` + (original ? ` from ${grouped(original)} tokens` : ""));
    if (known.trained.length && kind !== "dynamic") {
      const divisors = known.trained.map((omega, i) => omega / found.used[i]);
      const [least, most] = [Math.min(...divisors), Math.max(...divisors)].map((by) => short(by, 3));
      lines.push(["longrope", "divisors"].includes(kind)
        ? `each pair has a divisor of its own, from ${least} to ${most}`
        : `${found.kept} pairs as they were, ${count - found.kept - found.divided} between, ${found.divided} divided by ${most}`);
    }
    if (known.trained.length && factor > 1) {
      const moved = known.frequencies.filter((speed, i) => !close(speed, known.trained[i])).length;
      const paid = moved ? `pay, too: ${moved} of ${count} pairs have other frequencies` : "keep their frequencies";
      lines.push(`texts within the old length ${paid}`);
    }
  }
  const [one, far] = [known.attentionFactor, known.farFactor];
  if (far) {
    const beyond = `and times ${short(far, 4)} in texts beyond ${grouped(original ?? 0)} tokens`;
    lines.push(`queries and keys times ${short(one, 4)}, ${beyond}: scores times ${short(one ** 2, 4)} and ${short(far ** 2, 4)}`);
  } else if (!close(one, 1, 1e-6)) lines.push(`queries and keys times ${short(one, 4)}: scores times ${short(one ** 2, 4)}, at any length`);
  return lines;
}
