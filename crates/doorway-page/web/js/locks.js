// The locks of the live page, one in each row, the longest wait first.

import { h, inOrder, plain, say } from "./dom.js";
import { short } from "./lock.js";

/** A wait of this many milliseconds is marked. */
export const LONG = 10_000;

/** @param {(name: string) => void} choose @param {(name: string) => void} waitsLong */
export function lockList(choose, waitsLong) {
  const rows = h("tbody", {});
  const table = h("table", {}, h("thead", {}, h("tr", {}, ["Lock", "Inside", "Waiting", "Longest", "Held"].map((it) => h("th", { scope: "col" }, it)))), rows);
  const none = h("p", {}, "No client holds a lock or waits for one.");
  const rest = h("p.quiet", {}, "And more: type the beginning of a name.");
  /** The rows by lock. A row stays while its figures change, so that a click on it is never lost. */
  let known = new Map();
  /** The locks for which a client waits long, and what was shown last. */
  let [long, last] = [null, null];

  /** Which rows can be seen: the figures of the others are left as they are. */
  const seen = new IntersectionObserver((changes) => {
    for (const { target, isIntersecting } of changes) target.classList.toggle("unseen", !isIntersecting);
    if (last) figures(last);
  }, { rootMargin: "300px" });

  function newRow(name) {
    const cells = Array.from({ length: 4 }, () => h("td", {}));
    const button = h("button", { type: "button", "data-lock": name, onclick: () => choose(name) }, plain(name));
    const element = h("tr", {}, h("td", {}, button), cells);
    seen.observe(element);
    return { element, cells };
  }

  const waits = (it) => it.waiting > 0 && it.longest_wait_ms >= LONG;

  function figures({ told, chosen }) {
    for (const it of told.locks) {
      const { element, cells } = known.get(it.lock);
      if (element.classList.contains("unseen")) continue;
      const wait = it.waiting ? `${short(it.longest_wait_ms)}${waits(it) ? " !" : ""}` : "";
      [it.inside, it.waiting, wait, it.holder ? short(it.holder.held_ms) : ""].forEach((text, index) => say(cells[index], text));
      element.classList.toggle("long", waits(it));
      if (it.lock === chosen) element.setAttribute("aria-current", "true");
      else element.removeAttribute("aria-current");
    }
  }

  /** In whole seconds, and then by name: milliseconds of several members would shuffle the rows at every look. */
  function steady(locks) {
    const seconds = (ms) => Math.floor((ms ?? 0) / 1000);
    const rank = (it) => [it.waiting > 0 ? 1 : 0, seconds(it.longest_wait_ms), seconds(it.holder?.held_ms)];
    const order = locks.map((it) => [rank(it), it]);
    order.sort(([[a, b, c], one], [[d, e, f], other]) => d - a || e - b || f - c || (one.lock < other.lock ? -1 : 1));
    return order.map(([, it]) => it);
  }

  function show(told, chosen) {
    if (last?.told === told && last.chosen === chosen) return;
    const now = new Map(steady(told.locks).map((it) => [it.lock, known.get(it.lock) ?? newRow(it.lock)]));
    for (const [lock, { element }] of known) if (!now.has(lock)) seen.unobserve(element);
    known = now;
    last = { told, chosen };
    figures(last);
    inOrder(rows, [...now.values()].map((row) => row.element));
    [table.hidden, none.hidden, rest.hidden] = [!now.size, now.size > 0, !told.more];
    const waiting = told.locks.filter(waits).map((it) => it.lock);
    if (long) waiting.filter((it) => !long.has(it)).forEach(waitsLong);
    long = new Set(waiting);
  }

  return { elements: [table, none, rest], show, forget: () => { long = null; } };
}
