// The messages under way in the network: a pill for each kind on each channel, so that no pill covers another or a node.

import { radius } from "./arrange.js";
import { s } from "./dom.js";
import { kindOf } from "./story.js";

/** How far along its channel a pill stands, the best place first: nearer to the sender. */
const ALONG = Array.from({ length: 25 }, (_, place) => 0.38 + (place % 2 ? 1 : -1) * Math.ceil(place / 2) * 0.02)
  .concat(Array.from({ length: 9 }, (_, place) => 0.64 + place * 0.02));
/** How far beside its channel, in pixels. */
const BESIDE = [0, 12, -12, 24, -24, 36, -36];

/**
 * @typedef {Object} Pill
 * @property {import("./story.js").Flight[]} flights  messages of one kind on one channel, the oldest first
 * @property {string} label
 * @property {[number, number]} at
 * @property {number} dot  the radius of a dot, if there is no room for the labels; else 0
 */

const size = (label, large) => (large ? [10.2 * label.length + 18, 28] : [7.4 * label.length + 14, 20]);
/** The radius of a dot; where there are many, they are smaller. */
const dotOf = (count) => (count > 60 ? 3 : 5);
/** Air around a pill. */
const AIR = 1.5;

const overlap = (a, b) => Math.max(0, Math.min(a[2], b[2]) - Math.max(a[0], b[0])) * Math.max(0, Math.min(a[3], b[3]) - Math.max(a[1], b[1]));
const box = ([x, y], [width, height], air = AIR) => [x - width / 2 - air, y - height / 2 - air, x + width / 2 + air, y + height / 2 + air];

/**
 * Where the messages under way stand.
 * @param {import("./story.js").Flight[]} flights @param {[number, number][]} places
 * @returns {Pill[]}
 */
export function arrangePills(flights, places, width, height, large) {
  const groups = new Map();
  for (const flight of flights) {
    if (!places[flight.from] || !places[flight.to]) continue;
    const key = `${flight.from}-${flight.to}-${kindOf(flight.text)}`;
    groups.set(key, [...(groups.get(key) ?? []), flight]);
  }
  const ends = ({ flights: [{ from, to }] }) => [places[from], places[to]];
  const length = (pill) => { const [a, b] = ends(pill); return Math.hypot(b[0] - a[0], b[1] - a[1]); };
  const pills = [...groups.values()].map((all) => {
    const kind = kindOf(all[0].text);
    return { flights: all, label: all.length > 1 ? `${kind} ×${all.length}` : kind, dot: 0, at: [0, 0] };
  });
  const round = radius(places) + 3;
  const nodes = places.slice(1).map((place) => box(place, [2 * round, 2 * round], 0));
  // A short channel has the fewest places.
  const order = [...pills].sort((a, b) => length(a) - length(b));
  /** Place all of them. Returns false if one finds no place at which it covers nothing. */
  const place = (measures, most) => {
    const taken = [...nodes];
    return order.every((pill) => {
      const found = best(ends(pill), measures(pill), taken, width, height);
      pill.at = found.at;
      taken.push(box(found.at, measures(pill)));
      return found.cost <= most;
    });
  };
  if (!place((pill) => size(pill.label, large), 0)) {
    for (const pill of pills) pill.dot = dotOf(pills.length);
    place(({ dot }) => [2 * dot, 2 * dot], Infinity);
  }
  return pills;
}

/** The first place at which a pill covers nothing, or else the one at which it covers the least. */
function best([a, b], measures, taken, width, height) {
  const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
  const long = Math.hypot(dx, dy) || 1;
  let found = { cost: Infinity, at: a };
  for (const beside of BESIDE) {
    for (const along of ALONG) {
      const at = [a[0] + dx * along - (dy / long) * beside, a[1] + dy * along + (dx / long) * beside];
      const mine = box(at, measures);
      if (mine[0] < 0 || mine[1] < 0 || mine[2] > width || mine[3] > height) continue;
      const cost = taken.reduce((sum, other) => sum + overlap(mine, other), 0);
      if (cost < found.cost) found = { cost, at };
      if (cost === 0) return found;
    }
  }
  return found;
}

/** @param {import("./lab.js").Lab} lab @param {Pill[]} pills @param {[number, number][]} places */
export function drawPills(lab, pills, places) {
  const large = document.body.classList.contains("present");
  const asked = lab.asked && lab.story.steps[lab.asked - 1].took;
  const colour = (pill) => (lab.story.frame.colours[kindOf(pill.flights[0].text)] ?? 6) % 7;
  return [
    pills.map((pill) => s(`path.tail.k${colour(pill)}`, { d: `M${places[pill.flights[0].from].join(" ")}L${pill.at.join(" ")}` })),
    [...pills].reverse().map((pill) => {
      const { flights: all, at: [x, y], dot, label } = pill;
      const [width, height] = size(label, large);
      const now = all.some((flight) => asked === flight.id) ? ".asked" : "";
      return s(`g.pill.k${colour(pill)}${dot ? ".dot" : ""}${now}`, {
        id: `pill-${all[0].id}`, "data-ids": all.map((flight) => flight.id).join(" "), transform: `translate(${x} ${y})`,
        onclick: () => {
          const choice = all.map((flight) => lab.choices?.find((it) => it.id === flight.id)).find(Boolean);
          if (choice) lab.take(choice.do[0]);
        },
      },
        s("title", {}, all.map((flight) => `${flight.text} from ${flight.from} to ${flight.to}`).join("\n")),
        dot ? s(`circle.f${colour(pill)}`, { r: dot }) : null,
        s("g.label", {},
          s("rect", { x: -width / 2, y: -height / 2, width, height, rx: height / 2 }),
          s("text", { "text-anchor": "middle", dy: "0.35em" }, label)));
    }),
  ];
}

/** Light the pill of a message, and show its label. @param {number|undefined} id @param {boolean} on */
export function light(id, on) {
  document.querySelector(`.pill[data-ids~="${id}"]`)?.classList.toggle("lit", on);
}
