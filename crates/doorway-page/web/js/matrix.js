// The network of a large group as a matrix: a row for each sender, a column for each receiver.

import { s } from "./dom.js";
import { kindOf } from "./story.js";

/** The width of the phases. */
const PHASE = 12;

/** @param {import("./lab.js").Lab} lab */
export function matrix(lab, flights, width, height) {
  const { story, at } = lab;
  const { n } = story;
  const large = document.body.classList.contains("present");
  // The least distance of two numbers, along a row and down a column; and the places of the head and of the numbers.
  const [apart, top, first] = large ? [[30, 19], 44, 38] : [[22, 14], 36, 30];
  const wide = Math.min((width - first - PHASE - 12) / n, 44);
  const tall = Math.min((height - top - 4) / n, 26);
  const left = Math.max(first + PHASE, (width - wide * n) / 2);
  const x = (node) => left + (node - 1) * wide;
  const y = (node) => top + (node - 1) * tall;
  const step = story.steps[at - 1];
  const bad = new Set(story.violation(at)?.nodes ?? []);
  const nodes = Array.from({ length: n }, (_, index) => index + 1);
  const every = (size, least) => nodes.filter((node) => (node - 1) % Math.ceil(least / size) === 0);

  const states = story.states(at).map((state, index) => s(
    `rect.row.${state.held > 0 ? "inside" : state.phase}${bad.has(index + 1) ? ".bad" : ""}`,
    { x: left - PHASE, y: y(index + 1) + 0.5, width: PHASE - 3, height: Math.max(1, tall - 1) },
    s("title", {}, `${story.name(index + 1)}, ${state.phase}`)));
  const square = (tag, from, to, title, more) => s(tag, {
    x: x(to) + 0.5, y: y(from) + 0.5, width: Math.max(1, wide - 1), height: Math.max(1, tall - 1), ...more,
  }, title ? s("title", {}, title) : null);

  const cells = new Map();
  for (const flight of flights) {
    const key = `${flight.from}-${flight.to}`;
    cells.set(key, [...(cells.get(key) ?? []), flight]);
  }
  const marks = [...cells.values()].map((all) => {
    const [{ from, to, id, text }] = all;
    const colour = story.frame.colours[kindOf(text)] ?? 6;
    const title = all.map((it) => `${it.text} from ${story.name(from)} to ${story.name(to)}`).join("\n");
    const take = () => {
      const choice = lab.choices?.find((it) => it.id === id);
      if (choice) lab.take(choice.do[0]);
    };
    return [
      square(`rect.cell.f${colour % 7}`, from, to, title, { onclick: take }),
      all.length > 1 && wide >= (large ? 18 : 14) && tall >= (large ? 17 : 13)
        ? s("text.count", { x: x(to) + wide / 2, y: y(from) + tall / 2, dy: "0.35em", "text-anchor": "middle" }, all.length) : null,
    ];
  });
  const taken = step && story.flights.get(step.took);
  const middle = (size) => size / 2;
  return [
    s("text.label", { x: left, y: large ? 16 : 12 }, `rows send, columns receive; ${flights.length} under way`),
    linked(story).map(([from, to]) => square("rect.may", from, to)),
    s("rect.frame", { x: left, y: top, width: wide * n, height: tall * n }),
    every(wide, apart[0]).map((node) => s("text.label", { x: x(node) + middle(wide), y: top - 5, "text-anchor": "middle" }, node)),
    every(tall, apart[1]).map((node) => s("text.label", { x: left - PHASE - 4, y: y(node) + middle(tall), dy: "0.35em", "text-anchor": "end" }, node)),
    states, marks,
    step ? s("rect.glowing", { x: left - PHASE - 2, y: y(step.node) - 1.5, width: wide * n + PHASE + 3, height: tall + 3 }) : null,
    taken ? square("rect.took", taken.from, taken.to, `${taken.text} has arrived`) : null,
  ];
}

/** Who sends to whom, if not everybody to everybody: the links of the group, or each node to its quorum. */
function linked(story) {
  const { edges, quorums } = story.frame.group;
  if (edges.length) return story.frame.group.layout === "ring" ? edges : edges.flatMap(([a, b]) => [[a, b], [b, a]]);
  return quorums.flatMap((quorum, index) => quorum.map((member) => [index + 1, member]));
}
