// The space-time diagram: a lane for each node, time to the right. Only what is near the window is
// in the document, in tiles of 32 steps, so a long story scrolls like a short one.

import { h, put, s } from "./dom.js";
import { overview } from "./overview.js";
import { kindOf } from "./story.js";

const TILE = 32;
const STEP = 24;
const LEFT = 18;
const x = (step) => LEFT + step * STEP;

/** @param {import("./lab.js").Lab} lab */
export function spacetime(lab) {
  const names = h("div.lanes", { "aria-hidden": "true" });
  const shapes = s("g", {});
  const lanes = s("g", {});
  const future = s("rect.future", { y: 0 });
  const now = s("path.now", {});
  const picture = s("svg.spacetime", { role: "img" }, arrowHeads(), lanes, shapes, future, now);
  const scroller = h("div.scroller", { tabindex: 0, "aria-label": "Space-time diagram, scrollable" }, picture);
  const whole = overview(lab);
  const element = h("section.panel.time", { "aria-label": "Space-time", tabindex: 0 },
    h("h2", {}, "Space-time"), whole.element, h("div.timebox", {}, names, scroller));
  let drawn = { story: null, length: -1, n: 0 };
  /** @type {any[][]} */
  let tiles = [];
  let shown = new Map();

  const gap = () => (lab.story.n <= 4 ? 36 : lab.story.n <= 5 ? 30 : lab.story.n <= 12 ? 22 : 18);
  const y = (node) => 16 + (node - 1) * gap();

  function rebuild() {
    const { story } = lab;
    const items = [...stays(story), ...flights(story), ...marks(story)];
    tiles = Array.from({ length: Math.ceil((story.steps.length + 2) / TILE) + 1 }, () => []);
    for (const item of items) {
      const last = Math.floor(item.to / TILE);
      for (let tile = Math.floor(item.from / TILE); tile <= last; tile += 1) tiles[tile]?.push(item);
    }
    for (const node of shown.values()) node.remove();
    shown = new Map();
    const [width, height] = [x(story.steps.length + 3), y(story.n) + 20];
    picture.setAttribute("width", width);
    picture.setAttribute("height", height);
    picture.setAttribute("aria-label", `${story.n} nodes, ${story.steps.length} steps, ${story.flights.size} messages`);
    const nodes = Array.from({ length: story.n }, (_, node) => node + 1);
    put(lanes, nodes.map((node) => s("path.lane", { d: `M0 ${y(node)}H${width}` })));
    put(names, h("div", { class: "lanebox" }, nodes.map((node) => {
      const label = h("span", {}, story.name(node));
      label.style.top = `${y(node) - 9}px`;
      return label;
    })));
    names.firstChild.style.height = `${height}px`;
  }

  function window_() {
    if (!lab.story) return;
    const from = Math.floor((scroller.scrollLeft - LEFT) / STEP / TILE);
    const to = Math.floor((scroller.scrollLeft + scroller.clientWidth) / STEP / TILE) + 1;
    // Most scrolling stays within the tiles that are drawn already.
    if (window_.drawn?.tiles === tiles && window_.drawn.from === from && window_.drawn.to === to
      && window_.drawn.cone === lab.coneSet) return;
    window_.drawn = { tiles, from, to, cone: lab.coneSet };
    const wanted = new Set();
    for (let tile = Math.max(0, from); tile <= Math.min(to, tiles.length - 1); tile += 1) {
      for (const item of tiles[tile]) wanted.add(item);
    }
    for (const [item, node] of shown) {
      if (!wanted.has(item)) {
        node.remove();
        shown.delete(item);
      }
    }
    for (const item of wanted) {
      if (shown.has(item)) continue;
      const node = item.draw(y);
      shapes.append(node);
      shown.set(item, node);
    }
    for (const [item, node] of shown) node.classList.toggle("dim", lab.coneSet ? !item.in(lab.coneSet) : false);
  }

  const draw = () => {
    const { story, at } = lab;
    if (!story) return;
    lab.coneSet = lab.cone ? story.cone(at) : null;
    const { round, steps } = story;
    if (drawn.story !== story || drawn.length !== steps.length || drawn.round !== round) {
      rebuild();
      drawn = { story, length: steps.length, round };
    }
    whole.draw();
    const height = y(story.n) + 20;
    now.setAttribute("d", `M${x(at)} 0V${height}`);
    future.setAttribute("x", x(at) + 1);
    future.setAttribute("width", Math.max(0, x(story.steps.length + 3) - x(at)));
    future.setAttribute("height", height);
    const [left, wide] = [scroller.scrollLeft, scroller.clientWidth];
    if (x(at) < left + 60 || x(at) > left + wide - 60) scroller.scrollLeft = x(at) - wide * 0.7;
    window_();
  };
  scroller.addEventListener("scroll", window_, { passive: true });
  new ResizeObserver(() => { window_(); if (lab.story) whole.draw(); }).observe(scroller);
  picture.addEventListener("click", (event) => {
    const place = event.clientX - picture.getBoundingClientRect().left;
    lab.pause();
    lab.show(Math.round((place - LEFT) / STEP));
  });
  picture.addEventListener("pointerover", (event) => {
    const item = [...shown].find(([, node]) => node === event.target)?.[0];
    if (item && !event.target.firstChild) event.target.append(s("title", {}, item.tip));
  });
  return { element, draw };
}

function arrowHeads() {
  const heads = Array.from({ length: 7 }, (_, colour) => s(`marker.k${colour}`, {
    id: `head-${colour}`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8,
    orient: "auto", markerUnits: "userSpaceOnUse",
  }, s("path.head", { d: "M0 0L8 4L0 8z" })));
  const hatch = s("pattern", {
    id: "hatch", width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)",
  }, s("path.hatch", { d: "M0 0V5" }));
  return s("defs", {}, heads, hatch);
}

/** When each node waited and was inside. */
function stays(story) {
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
          : s(`rect.stay.${kind}`, { x: x(from), y: y(node) - 6, width: Math.max(2, x(to) - x(from)), height: 12, rx: 2 })),
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
function flights(story) {
  const found = [];
  const end = story.steps.length;
  for (const flight of story.flights.values()) {
    const kind = kindOf(flight.text);
    const colour = story.frame.colours[kind] ?? 6;
    const tip = `${flight.text} from ${story.name(flight.from)} to ${story.name(flight.to)}`;
    const known = (cone) => flight.arrived.some((step) => cone.has(step));
    const item = (to, draw) => found.push({ from: flight.sent, to, tip, in: known, draw });
    const dash = colour >= 7 ? ".dashed" : "";
    for (const arrived of flight.arrived) {
      item(arrived, (y) => s(`path.arrow.k${colour % 7}${dash}`, {
        d: `M${x(flight.sent)} ${y(flight.from)}L${x(arrived)} ${y(flight.to)}`,
        "marker-end": `url(#head-${colour % 7})`,
      }));
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
        d: `M${x(flight.sent)} ${y(flight.from)}l${STEP * 1.2} ${(y(flight.to) - y(flight.from)) * 0.3}`,
      }));
    }
  }
  return found;
}

/** Violations, crashes, and the loop of a node that starves. */
function marks(story) {
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
