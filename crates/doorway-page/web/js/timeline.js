// What the space-time diagram shows: when nodes waited and were inside, messages, and marks. Each item knows its steps and
// how it is drawn.

import { s } from "./dom.js";
import { kindOf } from "./story.js";

/** The pixels of a step, of half a bar, and before the first step. A class needs more of them. */
export const scale = { step: 24, half: 6, left: 18 };

/** @param {number} step */
export const x = (step) => scale.left + step * scale.step;

/** When each node waited and was inside. */
export function stays(story) {
  const found = [];
  const end = story.steps.length;
  for (let node = 1; node <= story.n; node += 1) {
    let [since, state] = [0, story.frame.base[node - 1]];
    const close = (to) => {
      const [from, { phase, held, shared }] = [since, state];
      if (phase === "outside" && !held) return;
      const kind = held > 0 ? (shared ? "shared" : "inside") : phase;
      found.push({
        from, to, tip: `${story.name(node)} ${phase}, steps ${from} to ${to}`, in: () => true,
        draw: (y) => (phase === "crashed"
          ? s("path.crashed", { d: `M${x(from)} ${y(node)}H${x(to)}` })
          : s(`rect.stay.${kind}`, { x: x(from), y: y(node) - scale.half, width: Math.max(2, x(to) - x(from)), height: 2 * scale.half, rx: 2 })),
      });
      if (held > 0 && phase === "waiting") {
        // It has a permit and waits for one more: a strip across the solid bar.
        const strip = (name) => found.push({
          from, to, tip: `${story.name(node)} inside and waiting, steps ${from} to ${to}`, in: () => true,
          draw: (y) => s(name, { x: x(from), y: y(node) - 2, width: Math.max(2, x(to) - x(from)), height: 4 }),
        });
        strip("rect.knock");
        strip("rect.stay.waiting");
      }
    };
    for (const act of story.acts[node - 1]) {
      const next = story.steps[act - 1].state;
      if (next.phase === state.phase && next.held === state.held) continue;
      close(act);
      [since, state] = [act, next];
    }
    close(Math.max(end, since) + 1);
  }
  return found;
}

/** Every message: an arrow, a stub while it is under way or if it is never received, a cross where it was lost. */
export function flights(story) {
  const found = [];
  const end = story.steps.length;
  for (const flight of story.flights.values()) {
    const kind = kindOf(flight.text);
    const colour = story.frame.colours[kind] ?? 6;
    const tip = `${flight.text} from ${story.name(flight.from)} to ${story.name(flight.to)}`;
    const known = (cone) => flight.arrived.some((step) => cone.has(step));
    const item = (to, draw, kinds) => found.push({ from: flight.sent, to, tip, in: known, draw, ...kinds });
    const dash = colour >= 7 ? ".dashed" : "";
    for (const arrived of flight.arrived) {
      item(arrived, (y) => s(`path.arrow.k${colour % 7}${dash}`, {
        d: `M${x(flight.sent)} ${y(flight.from)}L${x(arrived)} ${y(flight.to)}`,
        "marker-end": `url(#head-${colour % 7})`,
      }), { arrow: true });
    }
    if (flight.lost !== null) {
      item(flight.lost, (y) => {
        const [a, b] = [x(flight.lost), y(flight.from) + (y(flight.to) - y(flight.from)) * 0.7];
        return s(`path.lost.k${colour % 7}`, {
          d: `M${x(flight.sent)} ${y(flight.from)}L${a} ${b}m-5 -5l10 10m0 -10l-10 10`,
        });
      });
    } else if (flight.ended === null || !flight.arrived.length) {
      const to = Math.min(flight.sent + 2, end + 1);
      item(to, (y) => s(`path.stub.k${colour % 7}`, {
        d: `M${x(flight.sent)} ${y(flight.from)}l${scale.step * 1.2} ${(y(flight.to) - y(flight.from)) * 0.3}`,
      }), { open: true });
    }
  }
  return found;
}

/** Violations, crashes, and the loop of a node that starves. */
export function marks(story) {
  const loops = story.round ? [loop(story.round)] : [];
  return loops.concat(story.steps.flatMap((step, index) => {
    const at = index + 1;
    const mark = (tip, draw) => ({ from: at, to: at, tip, in: () => true, draw });
    if (step.violation) return [mark(step.violation.text, (y) => s("path.alarm", { d: `M${x(at)} 2V${y(story.n) + 12}` }))];
    if (step.do.startsWith("c")) {
      return [mark(`${story.name(step.node)} crashes`, (y) => s("path.cross", { d: `M${x(at) - 6} ${y(step.node) - 6}l12 12m0 -12l-12 12` }))];
    }
    return [];
  }));
}

/** Steps that can be repeated for ever: an arrow from the last of them back to the first. */
function loop([from, to]) {
  const [a, b] = [x(from), x(to)];
  return {
    from, to, tip: `steps ${from + 1} to ${to} can be repeated for ever`, in: () => true,
    draw: (y) => s("path.loop", { d: `M${b} ${y(1) - 4}V5H${a}V${y(1) - 4}m-4 -5l4 6l4 -6` }),
  };
}
