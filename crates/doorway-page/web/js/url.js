// Links: `#/lab/NAME+n=3/a2d2-3?at=3&w=9c0f12aa...`. They name choices, not states.

import { decoded } from "./token.js";

/**
 * @typedef {Object} Link
 * @property {string} screen  "shelf", "lab", "first" or "compare"
 * @property {string} [run]   the group, as in a script
 * @property {string} [steps]
 * @property {number} [at]    the step to show
 * @property {string} [print] what was told when the link was made
 * @property {string} [rest]  for screens with parameters of their own
 */

// A semicolon is the end of a line, unless a digit follows: no line begins with one, but quorums are listed as 1,2;2,3.
const packed = (run) => encodeURI(run).replaceAll("+", "%2B").replaceAll("%20", "+").replace(/;(?!\d)/g, "%3B")
  .replaceAll("%0A", ";").replaceAll("#", "%23").replaceAll("?", "%3F").replaceAll("/", "%2F");
const unpacked = (text) => decoded(text.replaceAll("+", "%20").replace(/;(?!\d)/g, "%0A"));

const bytes64 = (bytes) => btoa(String.fromCharCode(...bytes)).replaceAll("+", "-")
  .replaceAll("/", "_").replaceAll("=", "");

/** The most bytes that a link may have when its steps are inflated: far more than the longest story has. */
const MOST = 1_000_000;

class TooLong extends Error {}

async function through(stream, bytes, most = Infinity) {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  const parts = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(parts).arrayBuffer());
    parts.push(value);
    length += value.length;
    if (length > most) {
      await reader.cancel();
      throw new TooLong("The steps in this link are longer than those of any story. They are not read.");
    }
  }
}

/** Steps above this length are deflated. */
const LONG = 400;

/** @param {string} steps */
export async function packSteps(steps) {
  if (steps.length <= LONG) return steps;
  const small = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(steps));
  let text = "";
  for (let at = 0; at < small.length; at += 3000) text += bytes64(small.slice(at, at + 3000));
  return `~${text}`;
}

/** @param {string} text */
export async function unpackSteps(text) {
  if (!text.startsWith("~")) return text;
  try {
    return await inflated(text);
  } catch (error) {
    if (error instanceof TooLong) throw error;
    throw new Error("The steps in this link are damaged. Copy the whole link.");
  }
}

async function inflated(text) {
  const plain = atob(text.slice(1).replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
  return new TextDecoder().decode(await through(new DecompressionStream("deflate-raw"), bytes, MOST));
}

/** @param {Link} link */
export async function write(link) {
  const query = [`at=${link.at}`, link.print && `w=${link.print}`].filter(Boolean).join("&");
  return `#/lab/${packed(link.run)}/${await packSteps(link.steps)}?${query}`;
}

/** A place without the step and the print. @param {string} hash */
export function placeOf(hash) {
  const [path, query] = hash.split("?");
  const params = new URLSearchParams(query);
  params.delete("at");
  params.delete("w");
  return params.size ? `${path}?${params}` : path;
}

/** Whether a place is known to one server alone. @param {string} address */
export const passing = (address) => /#\/(recorded|first)\b/.test(address);

/** A place with a step, and what was told there. @param {string} place @param {number} at @param {string} [print] */
export const step = (place, at, print) => `${place}${place.includes("?") ? "&" : "?"}at=${at}${print ? `&w=${print}` : ""}`;

/** @param {string} hash @returns {Promise<Link>} */
export async function read(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [screen = "", run = "", steps = ""] = path.split("/");
  const params = new URLSearchParams(query);
  const step = Number.parseInt(params.get("at") ?? "", 10);
  const at = Number.isFinite(step) ? step : undefined;
  const print = params.get("w") ?? undefined;
  if (screen !== "lab") return { screen: screen || "shelf", rest: query, at, print };
  return {
    screen,
    run: unpacked(run),
    steps: await unpackSteps(steps),
    at,
    print,
  };
}

/** How many marks a print has besides that of the last step. */
const MARKS = 64;

/** A mark has six bits. */
const SIGNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

const stride = (count) => Math.max(1, Math.ceil(count / MARKS));

/**
 * What was told, short: the print of the last step, and a sign for some of the steps before it. The steps of an atlas have
 * no prints, so it is empty for them.
 * @param {{print: number|null}[]} steps
 */
export function print(steps) {
  if (!steps.length || steps.at(-1).print === null) return "";
  const last = steps.at(-1).print.toString(16).padStart(8, "0");
  let marks = "";
  for (let at = stride(steps.length); at < steps.length; at += stride(steps.length)) {
    marks += SIGNS[steps[at - 1].print & 63];
  }
  return last + marks;
}

/**
 * From which step a story differs from the one that a link was made of; 0 if it does not, or if that is not known.
 * @param {string} known @param {{print: number|null}[]} steps
 */
export function differs(known, steps) {
  const now = print(steps);
  // Every print is made from the one before, so the last one speaks for all.
  if (!known || !now || known.slice(0, 8) === now.slice(0, 8)) return 0;
  if (known.length !== now.length) return 1;
  for (let mark = 8; mark < now.length; mark += 1) {
    if (known[mark] !== now[mark]) return (mark - 8) * stride(steps.length) + 1;
  }
  return (now.length - 8) * stride(steps.length) + 1;
}
