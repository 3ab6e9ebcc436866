// The network: nodes, their phases and the messages under way. Above twelve nodes, a matrix.

import { arrange, links, radius } from "./arrange.js";
import { arrows } from "./waits.js";
import { h, put, s, still } from "./dom.js";
import { matrix } from "./matrix.js";
import { arrangePills, drawPills } from "./pills.js";
import { kindOf } from "./story.js";

const MOST = 12;

/** @param {import("./lab.js").Lab} lab */
export function network(lab) {
  // A group, since its nodes can have the focus.
  const picture = s("svg.network", { role: "group" });
  const element = h("section.panel.net", { "aria-label": "Network" }, h("h2", {}, "Network"), picture);
  /** @type {import("./pills.js").Pill[]} */
  let before = [];
  const draw = (moved) => {
    if (!lab.story) return;
    const { story, at } = lab;
    element.classList.toggle("many", story.n > MOST);
    const width = Math.max(260, picture.clientWidth || element.clientWidth - 24);
    const height = Math.max(180, picture.clientHeight || 240);
    picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const inside = story.states(at).map((it, node) => [it, node + 1]).filter(([it]) => it.held > 0);
    const names = inside.map(([, node]) => story.name(node)).join(", ") || "no node";
    const flights = story.underWay(at);
    picture.setAttribute("aria-label", `${story.n} nodes; inside: ${names}; under way: ${flights.length}`);
    const focused = picture.contains(document.activeElement) ? document.activeElement.id : "";
    if (story.n > MOST) return put(picture, matrix(lab, flights, width, height));
    const places = arrange(story, width, height);
    const pills = arrangePills(flights, places, width, height, document.body.classList.contains("present"));
    const [tails, marks] = drawPills(lab, pills, places);
    put(picture, links(story, places, width, height), tails, arrows(story, at, places, [width, height]), bodies(lab, places), marks);
    if (focused) document.getElementById(focused)?.focus();
    if (moved === 1 && !lab.asked && !still()) animate(picture, lab, before, pills, places);
    before = pills;
    return undefined;
  };
  new ResizeObserver(() => draw(0)).observe(element);
  return { element, draw };
}

function bodies(lab, places) {
  const round = radius(places);
  const { story, at } = lab;
  const actor = story.steps[at - 1]?.node;
  const bad = new Set(story.violation(at)?.nodes ?? []);
  const { quorums } = story.frame.group;
  return story.states(at).map((state, index) => {
    const node = index + 1;
    const [x, y] = places[node];
    const label = `${story.name(node)}, ${state.phase}${state.shared ? ", shared" : ""}`;
    const quorum = quorums[index] ?? [];
    const light = (on) => quorum.forEach((member) => document.getElementById(`node-${member}`)?.classList.toggle("quorum", on));
    const short = story.name(node).replace(/^node (?=\d+$)/, "").slice(0, 6);
    return s(`g.node.${state.phase}${state.held > 0 ? ".holds" : ""}${bad.has(node) ? ".bad" : ""}`, {
      id: `node-${node}`, transform: `translate(${x} ${y})`,
      onpointerenter: () => light(true), onpointerleave: () => light(false),
      onfocus: () => light(true), onblur: () => light(false),
      role: "img", "aria-label": label + (quorum.length ? `, quorum: ${quorum.join(", ")}` : ""), tabindex: quorum.length ? 0 : null,
    },
      s("title", {}, label),
      node === actor ? s("circle.glow", { r: round + 5 }) : null,
      s("circle.body", { r: round }),
      state.phase === "waiting" ? s("circle.ring", { r: round - 4 }) : null,
      state.phase === "crashed" ? s("path.cross", { d: "M-12 -12L12 12M-12 12L12 -12" }) : null,
      s("text", { "text-anchor": "middle", dy: "0.35em" }, short),
      state.held > 1 ? s("text.held", { "text-anchor": "middle", y: round + 14 }, `×${state.held}`) : null);
  });
}

/** The message that was taken arrives, then the new ones leave: 250 ms each. */
function animate(picture, lab, before, next, places) {
  const step = lab.story.steps[lab.at - 1];
  const move = (element, from, to, delay, then) => {
    const frames = [from, to].map(([x, y]) => ({ transform: `translate(${x}px, ${y}px)` }));
    const run = element.animate(frames, { duration: 250, delay, fill: "backwards", easing: "ease-in-out" });
    run.onfinish = then ?? null;
  };
  const of = (pills, id) => pills.find((pill) => pill.flights.some((flight) => flight.id === id));
  const flight = lab.story.flights.get(step.took);
  const from = of(before, step.took);
  if (flight && from && !step.lost?.includes(step.took)) {
    const alone = { ...from, flights: [flight], label: kindOf(flight.text) };
    const [, [ghost]] = drawPills(lab, [alone], places);
    ghost.removeAttribute("id");
    ghost.classList.add("ghost");
    picture.append(ghost);
    move(ghost, from.at, places[flight.to], 0, () => ghost.remove());
    setTimeout(() => ghost.remove(), 400);
  }
  for (const send of step.sends ?? []) {
    const pill = picture.querySelector(`#pill-${send.id}`);
    if (pill) move(pill, places[step.node], of(next, send.id).at, flight ? 250 : 0);
  }
}
