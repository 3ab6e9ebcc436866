// The network: nodes, their phases and the messages under way. Above twelve nodes, a matrix.

import { arrange, links, radius } from "./arrange.js";
import { h, put, s, still } from "./dom.js";
import { matrix } from "./matrix.js";
import { kindOf } from "./story.js";

const MOST = 12;

/** @param {import("./lab.js").Lab} lab */
export function network(lab) {
  const picture = s("svg.network", { role: "img" });
  const element = h("section.panel.net", { "aria-label": "Network" }, h("h2", {}, "Network"), picture);
  let before = new Map();
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
    if (story.n > MOST) return put(picture, matrix(lab, flights, width, height));
    const places = arrange(story, width, height);
    const next = pillPlaces(flights, places);
    put(picture, links(story, places, width, height), waits(story, at, places), bodies(lab, places), pills(lab, flights, next));
    if (moved === 1 && !still()) animate(picture, lab, before, next, places);
    before = next;
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
    const light = (on) => (quorums[index] ?? []).forEach((member) =>
      document.getElementById(`node-${member}`)?.classList.toggle("quorum", on));
    const short = story.name(node).replace(/^node (?=\d+$)/, "").slice(0, 6);
    return s(`g.node.${state.phase}${state.held > 0 ? ".holds" : ""}${bad.has(node) ? ".bad" : ""}`, {
      id: `node-${node}`, transform: `translate(${x} ${y})`,
      onpointerenter: () => light(true), onpointerleave: () => light(false),
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

/** Of a deadlock: an arrow from each node that waits to each node whose answer it misses. */
function waits(story, at, places) {
  const all = story.violation(at)?.waits ?? [];
  const round = radius(places) + 3;
  return [
    all.length ? s("defs", {}, s("marker", {
      id: "waits-for", viewBox: "0 0 10 10", refX: 9, refY: 5, markerWidth: 12, markerHeight: 12, orient: "auto", markerUnits: "userSpaceOnUse",
    }, s("path.wanted", { d: "M0 0L10 5L0 10z" }))) : null,
    all.flatMap(({ node, on }) => on.map((other) => {
      const [[a, b], [c, d]] = [places[node], places[other]];
      const long = Math.hypot(c - a, d - b) || 1;
      // Two nodes that wait for each other have an arrow each, side by side.
      const [along, across] = [[(c - a) / long, (d - b) / long], [(b - d) / long, (c - a) / long]];
      const point = (x, y, share) => `${x + share * round * along[0] + 6 * across[0]} ${y + share * round * along[1] + 6 * across[1]}`;
      return s("path.waits", { d: `M${point(a, b, 1)}L${point(c, d, -1)}`, "marker-end": "url(#waits-for)" },
        s("title", {}, `${story.name(node)} waits for an answer from ${story.name(other)}`));
    })),
  ];
}

/** Where the messages of a channel stand: near the sender, the oldest ahead. */
function pillPlaces(flights, places) {
  const channels = new Map();
  for (const flight of flights) {
    const key = `${flight.from}-${flight.to}`;
    channels.set(key, [...(channels.get(key) ?? []), flight]);
  }
  const found = new Map();
  for (const channel of channels.values()) {
    channel.forEach((flight, index) => {
      const [a, b] = [places[flight.from], places[flight.to]];
      if (!a || !b) return;
      const share = 0.42 - (0.16 * index) / Math.max(1, channel.length - 1 || 1);
      const crowd = channel.length > 1 ? share : 0.36;
      found.set(flight.id, [a[0] + (b[0] - a[0]) * crowd, a[1] + (b[1] - a[1]) * crowd + index * 4]);
    });
  }
  return found;
}

function pills(lab, flights, places) {
  return [...flights].reverse().map((flight) => {
    const place = places.get(flight.id);
    if (!place) return null;
    const kind = kindOf(flight.text);
    const large = document.body.classList.contains("present");
    const [width, height] = large ? [9.4 * kind.length + 18, 26] : [7.4 * kind.length + 14, 20];
    const colour = lab.story.frame.colours[kind] ?? 6;
    const asked = lab.asked && lab.story.steps[lab.asked - 1].took === flight.id ? ".asked" : "";
    return s(`g.pill.k${colour % 7}${asked}`, {
      id: `pill-${flight.id}`, transform: `translate(${place[0]} ${place[1]})`,
      onclick: () => {
        const choice = lab.choices?.find((it) => it.id === flight.id);
        if (choice) lab.take(choice.do[0]);
      },
    },
      s("title", {}, `${flight.text} from ${flight.from} to ${flight.to}`),
      s("rect", { x: -width / 2, y: -height / 2, width, height, rx: height / 2 }),
      s("text", { "text-anchor": "middle", dy: "0.35em" }, kind));
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
  const flight = lab.story.flights.get(step.took);
  const from = before.get(step.took);
  if (flight && from && !step.lost?.includes(step.took)) {
    const [ghost] = pills(lab, [flight], new Map([[flight.id, from]]));
    ghost.removeAttribute("id");
    ghost.classList.add("ghost");
    picture.append(ghost);
    move(ghost, from, places[flight.to], 0, () => ghost.remove());
    setTimeout(() => ghost.remove(), 400);
  }
  for (const send of step.sends ?? []) {
    const pill = picture.querySelector(`#pill-${send.id}`);
    if (pill) move(pill, places[step.node], next.get(send.id), flight ? 250 : 0);
  }
}
