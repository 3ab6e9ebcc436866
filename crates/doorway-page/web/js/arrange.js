// Where the nodes of a small group stand, and the links between them.

import { s } from "./dom.js";

/** The largest and the smallest radius of a node. */
const [LARGE, SMALL] = [22, 13];

const AIR = LARGE + 12;

/** The radius of the nodes at these places: smaller where they stand close together. */
export function radius(places) {
  const all = places.slice(1);
  const gaps = all.flatMap(([x, y], index) => all.slice(index + 1).map(([a, b]) => Math.hypot(a - x, b - y)));
  return Math.max(SMALL, Math.min(LARGE, 0.42 * Math.min(Infinity, ...gaps)));
}

/** The places of the nodes, counted from 1: the quorums decide, or the tree, or they stand in a circle. */
export function arrange(story, width, height) {
  const { layout } = story.frame.group;
  if (layout === "tree") return tree(story, width, height);
  if (layout === "grid" || layout === "triangle") return rows(story.frame.group.rows, width, height, layout === "grid");
  if (layout === "plane" && story.n === 7) return plane(story, width, height).places;
  return circle(story.n, width, height);
}

function circle(n, width, height) {
  const [x, y] = [width / 2, height / 2];
  // Many nodes have many messages between them, so they take the whole width.
  const [rx, ry] = [Math.min(x - 40, y * (n > 4 ? 3 : 1.7)), y - AIR];
  if (n === 1) return [, [x, y]];
  // Side by side: a picture is wider than it is tall.
  if (n === 2) return [, [Math.max(AIR, x - 0.75 * rx), y], [Math.min(width - AIR, x + 0.75 * rx), y]];
  // Equal ways along the ellipse, since equal angles would crowd its ends.
  const turn = (share) => [x + rx * Math.sin(2 * Math.PI * share), y - ry * Math.cos(2 * Math.PI * share)];
  const points = Array.from({ length: 721 }, (_, point) => turn(point / 720));
  const ways = [0];
  for (let point = 1; point <= 720; point += 1) ways.push(ways[point - 1] + Math.hypot(points[point][0] - points[point - 1][0], points[point][1] - points[point - 1][1]));
  const places = [];
  for (let node = 1; node <= n; node += 1) places[node] = points[ways.findIndex((way) => way >= (ways[720] * (node - 1)) / n)];
  return places;
}

/** In levels, the root on top, or on the left where the picture is wide. */
function tree({ n, frame }, width, height) {
  const { parents } = frame.group;
  const level = (node) => (parents[node - 1] ? 1 + level(parents[node - 1]) : 0);
  const levels = [];
  for (let node = 1; node <= n; node += 1) (levels[level(node)] ??= []).push(node);
  const wide = width > 1.4 * height;
  const along = (row, size) => AIR + (row * (size - 2 * AIR)) / Math.max(1, levels.length - 1);
  const places = [];
  levels.forEach((nodes, row) => nodes.forEach((node, column) => {
    const across = (size) => (size * (column + 1)) / (nodes.length + 1);
    places[node] = wide ? [along(row, width * 0.8) + width * 0.1, across(height)] : [across(width), along(row, height)];
  }));
  return places;
}

/** In rows from the top: columns in line for a grid, and each row half a place further left for a triangle. */
function rows(lengths, width, height, grid) {
  const places = [];
  const down = (height - 2 * AIR) / Math.max(1, lengths.length - 1);
  const most = Math.max(...lengths);
  const apart = Math.min((width - 2 * AIR) / Math.max(1, most - 1), 4 * Math.max(down, AIR));
  const first = (length) => width / 2 - ((grid ? most : length) - 1) * (apart / 2);
  let node = 0;
  lengths.forEach((length, row) => {
    const y = lengths.length === 1 ? height / 2 : AIR + row * down;
    for (let column = 0; column < length; column += 1) places[node += 1] = [first(length) + column * apart, y];
  });
  return places;
}

/**
 * The plane of seven points: three corners, the middles of the sides, and the centre. A line of the plane is a side, a
 * line from a corner through the centre, or the ellipse through the middles.
 */
function plane({ frame }, width, height) {
  const lines = [...new Set(frame.group.quorums.map((line) => [...line].sort().join()))].map((line) => line.split(",").map(Number));
  const third = (a, b) => lines.find((line) => line.includes(a) && line.includes(b)).find((it) => it !== a && it !== b);
  const [a, b] = [1, 2];
  const c = [3, 4, 5, 6, 7].find((it) => it !== third(a, b));
  const [ab, bc, ca] = [third(a, b), third(b, c), third(c, a)];
  const centre = [1, 2, 3, 4, 5, 6, 7].find((it) => ![a, b, c, ab, bc, ca].includes(it));
  const tall = height - 2 * AIR;
  const [x, y] = [width / 2, AIR];
  const half = Math.min(x - AIR, 1.3 * tall);
  const places = [];
  [places[a], places[b], places[c]] = [[x, y], [x - half, y + tall], [x + half, y + tall]];
  const middle = (one, other) => [(places[one][0] + places[other][0]) / 2, (places[one][1] + places[other][1]) / 2];
  [places[ab], places[bc], places[ca]] = [middle(a, b), middle(b, c), middle(c, a)];
  places[centre] = [x, y + (2 * tall) / 3];
  return { places, lines, round: [ab, bc, ca], centre: places[centre], rx: half / Math.sqrt(3), ry: tall / 3 };
}

const path = (...points) => s("path.link", { d: points.map(([px, py], index) => `${index ? "L" : "M"}${px} ${py}`).join("") });

/** What is drawn between the nodes: links, or the lines of the quorums. */
export function links(story, places, width, height) {
  const { edges, layout } = story.frame.group;
  if (edges.length) return edges.map(([a, b]) => path(places[a], places[b]));
  if (layout === "plane" && story.n === 7) {
    const { lines, round, centre: [cx, cy], rx, ry } = plane(story, width, height);
    const isRound = (line) => line.every((it) => round.includes(it));
    const far = (line) => line.flatMap((a) => line.map((b) => [a, b]))
      .reduce((one, other) => (distance(places, other) > distance(places, one) ? other : one));
    return lines.map((line) => (isRound(line) ? s("ellipse.link", { cx, cy, rx, ry }) : path(...far(line).map((it) => places[it]))));
  }
  if (layout === "grid" || layout === "triangle") return neighbours(story.frame.group.rows, places);
  const all = [];
  if (layout !== "graph") {
    for (let a = 1; a <= story.n; a += 1) for (let b = a + 1; b <= story.n; b += 1) all.push(path(places[a], places[b]));
  }
  return all;
}

const distance = (places, [a, b]) => Math.hypot(places[a][0] - places[b][0], places[a][1] - places[b][1]);

/** The rows and columns of a grid, or of a triangle whose columns begin at its left side. */
function neighbours(lengths, places) {
  const all = [];
  let first = 1;
  lengths.forEach((length, row) => {
    if (length > 1) all.push(path(places[first], places[first + length - 1]));
    const below = lengths[row + 1] ?? 0;
    for (let column = 0; column < Math.min(length, below); column += 1) {
      all.push(path(places[first + column], places[first + length + column]));
    }
    first += length;
  });
  return all;
}
