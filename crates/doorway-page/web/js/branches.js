// The ways that were taken before another choice was made.

import { h, put } from "./dom.js";

/** @param {import("./lab.js").Lab} lab */
export function branches(lab) {
  const list = h("div.list", {});
  const element = h("section.panel.ways", { "aria-label": "Branches" }, h("h2", {}, "Branches"), list);
  const draw = () => {
    element.hidden = !lab.story || !lab.branches.length;
    put(list, lab.branches.map((branch) => {
      let at = 0;
      const mine = lab.story.steps;
      while (at < mine.length && mine[at].do === branch.steps[at]?.do) at += 1;
      return h("button.choice", { type: "button", onclick: () => lab.switchTo(branch) },
        `after step ${at}: ${branch.steps[at] ? branch.sentence(at + 1) : "ends there"}`);
    }));
  };
  return { element, draw, focus: () => list.querySelector("button")?.focus() };
}
