// The arrows of a deadlock: from each node that waits to each node whose answer it misses.

import { radius } from "./arrange.js";
import { s } from "./dom.js";

/** How far an arrow swings out in its middle, in pixels. The first that passes by all nodes is taken. */
const BENDS = Array.from({ length: 35 }, (_, place) => (place % 2 ? 6 : -6) * Math.ceil(place / 2));
/** The points of an arrow that are looked at. */
const POINTS = Array.from({ length: 19 }, (_, point) => (point + 1) / 20);
/** Air between an arrow and a node. */
const AIR = 5;

/** @param {[number, number][]} places @param {[number, number]} size  of the picture */
export function arrows(story, at, places, size) {
  const all = story.violation(at)?.waits ?? [];
  const head = s("marker", {
    id: "waits-for", viewBox: "0 0 10 10", refX: 9, refY: 5, markerWidth: 12, markerHeight: 12, orient: "auto", markerUnits: "userSpaceOnUse",
  }, s("path.wanted", { d: "M0 0L10 5L0 10z" }));
  return [
    all.length ? s("defs", {}, head) : null,
    all.flatMap(({ node, on }) => on.map((other) => s("path.waits", {
      d: path(node, other, places, size), "data-ends": `${node} ${other}`, "marker-end": "url(#waits-for)",
    }, s("title", {}, `${story.name(node)} waits for an answer from ${story.name(other)}`)))),
  ];
}

/** The way from one node to another that passes by all the others: a line, or else a curve. */
function path(from, to, places, size) {
  const round = radius(places);
  const others = places.filter((_, node) => node && node !== from && node !== to);
  const ways = BENDS.map((bend) => {
    const way = curve(places[from], places[to], bend, round + 3);
    const points = POINTS.map((share) => along(way, share));
    const inside = points.every((point) => point.every((value, axis) => value > 3 && value < size[axis] - 3));
    const nearest = Math.min(Infinity, ...points.flatMap(([x, y]) => others.map(([a, b]) => Math.hypot(a - x, b - y))));
    return { way, air: inside ? nearest - round : -Infinity };
  });
  const { way: [a, b, c] } = ways.find(({ air }) => air >= AIR) ?? ways.reduce((one, other) => (other.air > one.air ? other : one));
  return `M${a.join(" ")}Q${b.join(" ")} ${c.join(" ")}`;
}

/** The three points of a curve between the edges of two nodes. */
function curve([a, b], [c, d], bend, round) {
  const long = Math.hypot(c - a, d - b) || 1;
  const [along, across] = [[(c - a) / long, (d - b) / long], [(b - d) / long, (c - a) / long]];
  // Two nodes that wait for each other have an arrow each, side by side.
  const beside = ([x, y], far, wide) => [x + far * along[0] + (6 + wide) * across[0], y + far * along[1] + (6 + wide) * across[1]];
  // A curve reaches half as far out as the point that pulls it.
  return [beside([a, b], round, 0), beside([(a + c) / 2, (b + d) / 2], 0, 2 * bend), beside([c, d], -round, 0)];
}

/** The point of a curve at this share of its way. */
const along = (points, share) => [0, 1].map((axis) => {
  const [a, b, c] = points.map((point) => point[axis]);
  return (1 - share) ** 2 * a + 2 * share * (1 - share) * b + share ** 2 * c;
});
