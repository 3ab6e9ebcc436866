// The paper's rules with the ones that just ran, and the lines of the shipped code that acted.

import { h, put } from "./dom.js";
import { edges } from "./edges.js";

/** @param {import("./lab.js").Lab} lab */
export function rules(lab) {
  const list = edges(h("ol.rules", { tabindex: 0, "aria-label": "Rules, scrollable" }));
  const element = h("section.panel.law", { "aria-label": "Rules" }, h("h2", {}, "Rules"), list);
  // Names of algorithms stand between backquotes.
  const text = (rule) => rule.text.split("\x60").map((part, place) => (place % 2 ? h("code", {}, part) : part));
  let shown = null;
  const draw = () => {
    const algorithm = lab.algorithm;
    element.hidden = !algorithm;
    if (!algorithm) return;
    if (shown !== algorithm) {
      put(list, algorithm.rules.map((rule) => h("li", { value: rule.number }, text(rule))));
      shown = algorithm;
    }
    const ran = new Set(lab.story.steps[lab.at - 1]?.rules ?? []);
    for (const item of list.children) {
      const now = ran.has(item.value);
      item.classList.toggle("ran", now);
      if (now) item.setAttribute("aria-current", "step");
      else item.removeAttribute("aria-current");
    }
    const now = list.querySelector(".ran");
    if (now) {
      const [top, height] = [now.offsetTop, list.clientHeight];
      if (top < list.scrollTop || top + now.offsetHeight > list.scrollTop + height) list.scrollTop = top;
    }
  };
  return { element, draw };
}

/**
 * The files of the algorithm below each other. The heading names those in which something acted; a click goes there.
 * @param {import("./lab.js").Lab} lab
 */
export function code(lab) {
  const places = h("small", {});
  const lines = h("ol.code", { tabindex: 0, "aria-label": "Source of the algorithm" });
  const element = h("section.panel.source", { "aria-label": "The code that ran" },
    h("h2", {}, "The code that ran ", places), lines);
  let shown = null;
  /** For each file, its heading and its lines. @type {{head: HTMLElement, items: HTMLElement[], skipped: number}[]} */
  let files = [];
  // Half the indentation: the column is narrow.
  const narrow = (line) => line.replace(/^( {4})+/, (spaces) => " ".repeat(spaces.length / 2));
  const file = ({ path, source, skipped }) => ({
    head: h("li.file", {}, path), skipped,
    items: source.trimEnd().split("\n").map((line, index) => h("li", { value: skipped + index + 1 }, narrow(line))),
  });
  const line = (of, number) => files[of].items[number - 1 - files[of].skipped];
  const draw = () => {
    const algorithm = lab.algorithm;
    element.hidden = !algorithm || Boolean(lab.story.frame.names);
    if (element.hidden) return;
    if (shown !== algorithm) {
      files = algorithm.files.map(file);
      put(lines, files.length > 1 ? files.map(({ head, items }) => [head, items]) : files[0].items);
      shown = algorithm;
    }
    for (const item of lines.querySelectorAll(".acted")) item.classList.remove("acted", "hit");
    const step = lab.story.steps[lab.at - 1];
    /** The first line that acted in each file. @type {Map<number, HTMLElement>} */
    const first = new Map();
    for (const [of, from, to] of step?.lines ?? []) {
      for (let number = from; number <= to; number += 1) {
        const item = line(of, number);
        item?.classList.add("acted");
        if (item && !first.has(of)) first.set(of, item);
      }
    }
    for (const [of, number] of step?.hits ?? []) line(of, number)?.classList.add("hit");
    const go = (top, focus) => {
      const [from, hit] = [top.offsetTop - 20, focus.offsetTop];
      lines.scrollTop = hit - from > lines.clientHeight - 40 ? hit - lines.clientHeight / 2 : from;
    };
    const name = (of) => algorithm.files[of].path;
    const link = ([of, top]) => h("button.file", { type: "button", onclick: () => go(top, top) }, name(of));
    put(places, first.size > 1 ? [...first].map(link) : document.createTextNode(name([...first.keys()][0] ?? 0)));
    const hit = lines.querySelector(".hit");
    const [top] = first.values();
    // What was sent or entered counts most; then where the message went.
    const begin = hit ? [...first.values()].findLast((it) => it.compareDocumentPosition(hit) & 4 || it === hit) : [...first.values()].at(-1);
    if (top) go(begin ?? top, hit ?? begin ?? top);
  };
  return { element, draw };
}
