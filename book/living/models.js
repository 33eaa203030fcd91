// The page's side of the trained models: one worker runs them for all figures of a page, one text at a time.
import { serve } from "./decoder.js";

/** What the package calls each scheme, and how its lines look: the build fills it in (tools/sphinx/living_data.py).
 *  @type {Record<string, [name: string, look: string]>} */
export const LOOKS = {};

/**
 * @typedef {object} Job
 * @property {string} model name of its data, e.g. "text-rope-0", the same as of its file in posenc_course/data/models/text.zip
 * @property {string[] | Promise<string[]>} texts in ASCII; one of n + 1 bytes has n losses, since its first is given
 * @property {Question["changes"]} [changes] what differs from the scheme as trained, such as {frequencies}
 * @property {number} [window] how many bytes a query sees, itself included
 * @property {Question["write"]} [write] go on after each text
 * @property {number} [first] how many bytes of the first text are asked for before all of it, so that a first curve is soon there
 * @property {string} slot a job replaces an unfinished one in the same slot, whose promise then resolves to null
 *
 * @typedef {object} Result
 * @property {number} done how many texts; 0 after the first bytes of the first one
 * @property {Answer[]} each of each text
 *
 * @typedef {import("./decoder.js").Question} Question
 * @typedef {import("./decoder.js").Answer} Answer
 */

/** @type {{ job: Job, result: Result, begun?: boolean, onProgress: (result: Result) => void, resolve: (result: Result | null) => void, reject: (error: Error) => void }[]} */
const queue = [];
let working = false;

/**
 * Asks a model, and promises what came of all texts. onProgress is called after each text, with the same that the promise gives in the
 * end. Texts of several jobs take turns. Up to any position, the losses don't depend on what follows, so one pass over a long text
 * serves all shorter ones.
 * The model, the texts and the worker are loaded at the same time; if one of them fails, the error is reported when its turn comes.
 * @param {Job} job @param {(result: Result) => void} [onProgress] @returns {Promise<Result | null>}
 */
export function run(job, onProgress = () => {}) {
  return new Promise((resolve, reject) => {
    drop(job.slot);
    queue.push({ job, result: { done: 0, each: [] }, onProgress, resolve, reject });
    living.load(`data/${job.model}`).catch(() => {});
    Promise.resolve(job.texts).catch(() => {});
    try { start(); } catch { /* as above */ }
    if (!working) work();
  });
}

/** Gives up the unfinished job in this slot, if there is one.
 *  @param {string} slot */
export function drop(slot) {
  const at = queue.findIndex(({ job }) => job.slot === slot);
  if (at >= 0) queue.splice(at, 1)[0].resolve(null);
}

async function work() {
  working = true;
  while (queue.length) {
    const task = queue[0];
    const { job: { model, texts, slot, first, ...rest }, result } = task;
    try {
      const all = await texts;
      const text = Array.from(all[result.done], (sign) => sign.charCodeAt(0));
      const part = !task.begun && first + 1 < text.length; // a text of n + 1 bytes has n losses
      task.begun = true;
      const answered = await ask(model, { ...rest, text: part ? text.slice(0, first + 1) : text });
      if (!queue.includes(task)) continue;
      if (part) {
        task.onProgress({ done: 0, each: [answered] });
        continue;
      }
      queue.shift();
      result.each.push(answered);
      result.done = result.each.length;
      if (result.done < all.length) queue.push(task);
      task.onProgress(result);
      if (result.done === all.length) task.resolve(result);
    } catch (error) {
      if (queue.includes(task)) queue.splice(queue.indexOf(task), 1);
      task.reject(error);
    }
  }
  working = false;
}

const REFUSED = "The model can't run here, because this browser doesn't let the page start a worker.";
const sent = new Set();
/** @type {Worker} */
let worker;
/** @type {(answered: any) => void} */
let give; // takes the answer that is waited for

// A page opened as a file may not start a worker from an address, but it may from a text: the modules' own source.
function start() {
  if (worker) return;
  const source = `${living.source("decoder")}modules.decoder.${serve.name}(self);`;
  worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  worker.onmessage = ({ data }) => give(data);
  worker.onerror = () => { // the next question tries again
    worker = undefined;
    sent.clear();
    give?.({ error: REFUSED });
  };
}

/** One question at a time, so that the next message is its answer.
 *  @param {string} name @param {Question} question @returns {Promise<Answer>} */
async function ask(name, question) {
  const model = sent.has(name) ? undefined : await living.load(`data/${name}`);
  const answered = await new Promise((resolve) => {
    give = resolve;
    try { start(); } catch { return resolve({ error: REFUSED }); }
    worker.postMessage({ name, model, question });
    sent.add(name);
  });
  if (answered.error !== undefined) throw new Error(answered.error);
  return answered;
}
