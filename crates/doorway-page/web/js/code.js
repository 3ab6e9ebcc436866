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

/** @param {import("./lab.js").Lab} lab */
export function code(lab) {
  const file = h("small", {});
  const lines = h("ol.code", { tabindex: 0, "aria-label": "Source of the algorithm" });
  const element = h("section.panel.source", { "aria-label": "The code that ran" },
    h("h2", {}, "The code that ran ", file), lines);
  let shown = null;
  let first = 0;
  const draw = () => {
    const algorithm = lab.algorithm;
    element.hidden = !algorithm || Boolean(lab.story.frame.names);
    if (element.hidden) return;
    if (shown !== algorithm) {
      const all = algorithm.source.split("\n");
      first = algorithm.skipped;
      file.textContent = algorithm.file;
      // Half the indentation: the column is narrow.
      const narrow = (line) => line.replace(/^( {4})+/, (spaces) => " ".repeat(spaces.length / 2));
      put(lines, all.map((line, index) => h("li", { value: first + index + 1 }, narrow(line))));
      shown = algorithm;
    }
    for (const item of lines.querySelectorAll(".acted")) item.classList.remove("acted", "hit");
    const step = lab.story.steps[lab.at - 1];
    let top = null;
    for (const [from, to] of step?.lines ?? []) {
      for (let number = from; number <= to; number += 1) {
        const item = lines.children[number - 1 - first];
        item?.classList.add("acted");
        top ??= item;
      }
    }
    for (const number of step?.hits ?? []) lines.children[number - 1 - first]?.classList.add("hit");
    const focus = lines.querySelector(".hit") ?? top;
    if (top) {
      const [from, hit] = [top.offsetTop - 20, focus.offsetTop];
      lines.scrollTop = hit - from > lines.clientHeight - 40 ? hit - lines.clientHeight / 2 : from;
    }
  };
  return { element, draw };
}
