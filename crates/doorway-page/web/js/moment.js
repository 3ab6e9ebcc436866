// The screen of one moment: the network, the space-time diagram and everything beside them.

import { bills } from "./bills.js";
import { branches } from "./branches.js";
import { choices } from "./choices.js";
import { code, rules } from "./code.js";
import { h } from "./dom.js";
import { edges } from "./edges.js";
import { here } from "./here.js";
import { network } from "./network.js";
import { spacetime } from "./spacetime.js";
import { table } from "./table.js";
import { transport } from "./transport.js";

/**
 * @param {import("./lab.js").Lab} lab @param {HTMLElement} player  where the player stands
 */
export function moment(lab, player) {
  const [next, ask, ways] = [choices(lab), here(lab), branches(lab)];
  const panels = [network(lab), spacetime(lab), table(lab), rules(lab), code(lab), bills(lab), next, ask, ways];
  const [net, time, knows, law, source, cost] = panels;
  const element = h("div.lab", {},
    h("h1.unseen", {}, "One moment of a story"),
    h("div.column.left", {}, next.element, ask.element, ways.element),
    h("div.column.middle", {}, net.element, time.element, knows.element),
    h("div.column.right", {}, law.element, source.element, cost.element));
  element.leave = ask.stop;
  edges(source.element.querySelector(".code"));
  // The panels beside them may grow after these two were drawn, and take the place of what has just run.
  for (const { element: panel, draw } of [law, source]) new ResizeObserver(draw).observe(panel);
  return { element, draws: [...panels.map((panel) => panel.draw), transport(lab, player)], next, ask, ways };
}
