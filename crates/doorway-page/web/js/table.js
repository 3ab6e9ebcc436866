// What each node knows: a row for each field, a column for each node. Cells that the last step
// changed are marked.

import { h, put } from "./dom.js";
import { edges } from "./edges.js";

/** @param {import("./lab.js").Lab} lab */
export function table(lab) {
  const body = h("table", {});
  const scroller = edges(h("div.tablebox", { tabindex: 0, "aria-label": "State of the nodes, scrollable" }, body));
  const element = h("section.panel.knows", { "aria-label": "What each node knows" },
    h("h2", {}, "What each node knows"), scroller);
  let shown = null;
  /** @type {HTMLTableCellElement[][]} */
  let cells = [];

  function rebuild() {
    const { story, algorithm } = lab;
    const nodes = Array.from({ length: story.n }, (_, index) => index + 1);
    const fields = ["phase", ...story.frame.fields];
    const tip = (field) => algorithm?.fields[field.split(".").at(-1)] ?? null;
    cells = fields.map(() => nodes.map(() => h("td", {})));
    put(body,
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "field"),
        nodes.map((node) => h("th", { scope: "col" }, story.name(node))))),
      h("tbody", {}, fields.map((field, row) => h("tr", {},
        h("th", { scope: "row", title: tip(field) }, field), cells[row]))));
  }

  const values = (state) => [state.phase + (state.shared ? ", shared" : "")
    + (state.held > 1 ? ` ×${state.held}` : ""), ...state.fields];

  const draw = () => {
    const { story, at } = lab;
    if (!story) return;
    if (shown !== story) rebuild();
    shown = story;
    const actor = story.steps[at - 1]?.node;
    for (let node = 1; node <= story.n; node += 1) {
      const now = values(story.state(node, at));
      const before = node === actor ? values(story.state(node, at - 1)) : now;
      now.forEach((value, row) => {
        const cell = cells[row]?.[node - 1];
        if (!cell) return;
        if (cell.textContent !== value) {
          cell.textContent = value;
          cell.title = value.length > 20 ? value : "";
        }
        cell.classList.toggle("changed", before[row] !== value);
      });
    }
    if (actor) {
      const cell = cells[0][actor - 1];
      const [left, wide] = [cell.offsetLeft, scroller.clientWidth];
      if (left < scroller.scrollLeft + 90 || left > scroller.scrollLeft + wide - 90) scroller.scrollLeft = left - wide / 2;
    }
  };
  return { element, draw };
}
