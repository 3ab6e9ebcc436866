// The space-time diagram: a lane for each node, time to the right. Only what is near the window is
// in the document, in tiles of 32 steps, so a long story scrolls like a short one.

import { h, put, s, still } from "./dom.js";
import { overview } from "./overview.js";
import { flights, marks, scale, stays, x } from "./timeline.js";

const TILE = 32;

/** @param {import("./lab.js").Lab} lab */
export function spacetime(lab) {
  const names = h("div.lanes", { "aria-hidden": "true" });
  const shapes = s("g", {});
  const lanes = s("g", {});
  const future = s("rect.future", { y: 0 });
  // Messages that are under way at this moment lie above the veil of the future.
  const open = s("g", {});
  const now = s("path.now", {});
  const picture = s("svg.spacetime", { role: "img" }, arrowHeads(), lanes, shapes, future, open, now);
  const scroller = h("div.scroller", { tabindex: 0, "aria-label": "Space-time diagram, scrollable" }, picture);
  const whole = overview(lab);
  const element = h("section.panel.time", { "aria-label": "Space-time", tabindex: 0 },
    h("h2", {}, "Space-time"), whole.element, h("div.timebox", {}, names, scroller));
  let drawn = { story: null, length: -1, n: 0 };
  /** @type {any[][]} */
  let tiles = [];
  let shown = new Map();

  const large = () => document.body.classList.contains("present");
  /** The pixels between two lanes: the first of these rows that has room for all nodes. */
  const gap = () => (large() ? [[2, 100], [3, 80], [4, 60], [5, 48], [7, 36], [100, 26]] : [[4, 36], [5, 30], [12, 22], [100, 18]])
    .find(([most]) => lab.story.n <= most)[1];
  const y = (node) => (large() ? 24 : 16) + (node - 1) * gap();

  function rebuild() {
    const { story } = lab;
    [scale.step, scale.half] = large() ? [40, 9] : [24, 6];
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
      label.style.top = `${y(node)}px`;
      return label;
    })));
    names.firstChild.style.height = `${height}px`;
  }

  function window_() {
    if (!lab.story) return;
    const from = Math.floor((scroller.scrollLeft - scale.left) / scale.step / TILE);
    const to = Math.floor((scroller.scrollLeft + scroller.clientWidth) / scale.step / TILE) + 1;
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
    lift();
  }

  /** Put the messages that have been sent and have not ended above the veil. */
  function lift() {
    for (const [item, node] of shown) {
      if (!item.open) continue;
      const layer = item.from <= lab.at ? open : shapes;
      if (node.parentNode !== layer) layer.append(node);
    }
  }

  /** The arrow of a message that was just taken, and then the messages that were just sent, grow at the pace of the network. */
  function grow() {
    for (const [item, node] of shown) {
      const arrives = item.arrow && item.to === lab.at;
      if (!arrives && !(item.open && item.from === lab.at)) continue;
      const whole = [-12, -12, -12, -12].map((side) => `${side}px`);
      const none = whole.with(1, "100%");
      node.animate([none, whole].map((sides) => ({ clipPath: `inset(${sides.join(" ")})` })),
        { duration: 250, delay: arrives ? 0 : 250, fill: "backwards", easing: "ease-in-out" });
    }
  }

  const draw = (moved) => {
    const { story, at } = lab;
    if (!story) return;
    lab.coneSet = lab.cone ? story.cone(at) : null;
    const { round, steps } = story;
    if (drawn.story !== story || drawn.length !== steps.length || drawn.round !== round || drawn.large !== large()) {
      rebuild();
      drawn = { story, length: steps.length, round, large: large() };
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
    lift();
    if (moved === 1 && !lab.asked && !still()) grow();
  };
  scroller.addEventListener("scroll", window_, { passive: true });
  new ResizeObserver(() => { window_(); if (lab.story) whole.draw(); }).observe(scroller);
  picture.addEventListener("click", (event) => {
    const place = event.clientX - picture.getBoundingClientRect().left;
    lab.pause();
    lab.show(Math.round((place - scale.left) / scale.step));
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
