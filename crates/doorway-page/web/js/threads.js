// Algorithms between threads, step by step: which process goes next, the registers, the places.

import { h, icon, put } from "./dom.js";
import { edges } from "./edges.js";
import { checker } from "./threadcheck.js";
import { plan } from "./threadplan.js";
import { buffers, places, refill, registers, source } from "./threadview.js";

/** The most other ways that are kept. */
const WAYS = 20;

/** @typedef {{words: string[], moments: any[], round: number|null}} Way  steps, and what is seen after each of them */

/**
 * The screen of the algorithms between threads.
 * @param {any} home  the server
 * @param {string} rest  what the address says after "?"
 * @param {(error: Error|null) => void} onerror
 * @param {() => void} copy  copies the link to the moment
 */
export function threads(home, rest, onerror, copy) {
  const asked = new URLSearchParams(rest);
  const state = {
    all: [], name: asked.get("name") ?? "", n: Number(asked.get("n") ?? 2), buffers: asked.get("buffers") === "1",
    dropped: asked.get("drop") ?? "", at: 0,
    /** After how many steps those begin that can be repeated for ever, or null; they end with the last one. @type {Way} */
    way: { words: asked.get("steps")?.match(/p[^p]+/g) ?? [], moments: [], round: /^\d+$/.test(asked.get("round") ?? "") ? Number(asked.get("round")) : null },
    /** The ways that were taken before another choice was made. @type {Way[]} */
    others: [],
  };
  state.at = /^\d+$/.test(asked.get("at") ?? "") ? Number(asked.get("at")) : state.way.words.length;
  const known = () => state.all.find((it) => it.name === state.name);
  const part = () => h("div", {});
  const [turns, spots, memory, waiting, schedule] = [part(), part(), part(), part(), edges(h("ol.schedule", { tabindex: 0, "aria-label": "Schedule, scrollable" }))];
  const [again, ways, text] = [h("p.quiet", {}), h("div.list", {}), source()];
  const writes = h("div", {}, h("h2", {}, "Store buffers"), waiting);
  const other = h("section.panel.ways", { "aria-label": "Branches" }, h("h2", {}, "Branches"), ways);
  const sentence = h("p.sentence", { role: "status", "aria-live": "polite" });
  const button = (name, label, onclick) => h("button", { type: "button", "aria-label": label, title: label, onclick }, icon(name));
  const play = button("play", "Play", () => run());
  const count = h("span.count", {});
  const slider = h("input.slider", { type: "range", min: 0, max: 0, value: 0, "aria-label": "Step", oninput: (event) => show(Number(event.target.value)) });
  const player = h("div.transport", {}, h("div.controls", {},
    button("first", "First moment", () => show(0)), button("back", "Back", () => show(state.at - 1)), play,
    button("step", "Step", () => show(state.at + 1)), button("last", "Last moment", () => show(state.way.words.length)), slider, count,
    h("button.word", { type: "button", onclick: copy, title: "Copy the link to this moment" }, "link")), sentence);
  const check = checker((signal) => home.threadsCheck(question(""), signal), (line) => open(line));
  const setup = plan(state, known, (change) => begin(change));
  const element = h("div.threads", {}, h("h1", {}, "Between threads"), setup.element, h("div.parts", {},
    h("div.stack", {},
      h("section.panel", { "aria-label": "Which process goes next" }, h("h2", {}, "Which process goes next"), turns, check.element),
      h("section.panel", { "aria-label": "Schedule" }, h("h2", {}, "Schedule"), schedule, again), other),
    h("section.panel", { "aria-label": "Processes and registers" }, h("h2", {}, "Processes"), spots, h("h2", {}, "Registers"), memory, writes),
    h("section.panel.source", { "aria-label": "Source" }, h("h2", {}, "The algorithm"), text.element)), player);

  /** The timer of the player. */
  let playing = 0;

  const question = (steps) => ({ name: state.name, n: state.n, buffers: state.buffers, dropped: state.dropped, steps });

  /** Do one thing after the other. A refusal becomes a sentence. */
  let queue = Promise.resolve();
  const attempt = (work) => {
    queue = queue.then(work).then(() => onerror(null), (error) => onerror(error));
    return queue;
  };

  /** The way with these steps, as the server tells it. @returns {Promise<Way>} */
  const told = async (words, round) => ({ words, round, moments: (await home.walk(question(words.join("")))).moments });

  const load = () => attempt(async () => {
    if (!state.all.length) state.all = await home.threads();
    state.name ||= state.all[0].name;
    const unknown = known() ? null : new Error(`no algorithm between threads has the name "${state.name}"`);
    if (unknown) Object.assign(state, { name: state.all[0].name, way: { words: [], round: null }, at: 0 });
    state.way = await told(state.way.words, state.way.round);
    state.at = Math.min(state.at, state.way.words.length);
    draw();
    if (unknown) throw unknown;
  });

  /** Take a step. In the middle of a way another choice begins a branch. @param {() => string|undefined} wanted */
  const take = (wanted) => attempt(async () => {
    pause();
    const { way, at } = state;
    const word = wanted();
    if (!word) return;
    if (way.words[at] !== word) {
      const next = await told([...way.words.slice(0, at), word], null);
      if (at < way.words.length) state.others = [way, ...state.others].slice(0, WAYS);
      state.way = next;
    }
    state.at = at + 1;
    draw();
  });

  /** Go to another way, at the step where it parts from this one. */
  function switchTo(way) {
    state.others = state.others.map((it) => (it === way ? state.way : it));
    const at = parting(way);
    state.way = way;
    show(at + 1);
  }

  /** How many steps this way and another one have in common. */
  function parting(way) {
    const at = way.words.findIndex((word, index) => word !== state.way.words[index]);
    return at < 0 ? way.words.length : at;
  }

  function begin(change) {
    Object.assign(state, { way: { words: [], moments: [], round: null }, others: [], at: 0 }, change);
    state.n = Math.max(known().fewest, Math.min(known().most, state.n));
    state.dropped = [...state.dropped].filter((letter) => known().fences.includes(letter)).join("");
    pause();
    check.clear();
    load();
  }

  function show(at) {
    pause();
    go(at);
  }

  function go(at) {
    state.at = Math.max(0, Math.min(at, state.way.words.length));
    draw();
  }

  function pause() {
    clearTimeout(playing);
    playing = 0;
  }

  /** Play the way that is known, from the beginning if this is its end; or pause. */
  function run() {
    const next = () => {
      if (state.at + 1 >= state.way.words.length) pause();
      else playing = setTimeout(next, 500);
      go(state.at + 1);
    };
    if (playing) pause();
    else {
      if (state.at === state.way.words.length) state.at = 0;
      playing = setTimeout(next, 500);
    }
    draw();
  }

  /** Show a schedule that breaks the algorithm, at its end. */
  const open = (line) => attempt(async () => {
    const { way } = state;
    const next = await told(line.steps.match(/p[^p]+/g), line.cycle ? line.round : null);
    [state.way, state.at] = [next, next.words.length];
    if (parting(way) < way.words.length) state.others = [way, ...state.others].slice(0, WAYS);
    draw();
  });

  function address() {
    const { way: { words, round }, at, dropped } = state;
    const query = new URLSearchParams({ name: state.name, n: state.n, buffers: state.buffers ? "1" : "0", steps: words.join(""), at, drop: dropped });
    if (round !== null) query.set("round", round);
    return `#/threads?${query}`;
  }

  /** Keep the address bar at the moment on which the reader rests: browsers refuse changes that follow each other quickly. */
  function remember() {
    clearTimeout(remember.timer);
    const place = location.hash;
    remember.timer = setTimeout(() => { if (location.hash === place) history.replaceState(null, "", address()); }, 150);
  }

  /** Keep the step and the code that ran in sight. */
  function follow() {
    const ran = schedule.children[state.at - 1];
    if (ran) schedule.scrollTop = ran.offsetTop - schedule.clientHeight / 2;
    text.follow();
  }

  function draw() {
    const { way: { words, moments, round }, at } = state;
    const [moment, before] = [moments[at], moments[at - 1]];
    if (!moment || !known()) return;
    remember();
    setup.draw();
    [slider.max, slider.value, count.textContent] = [words.length, at, `${at} of ${words.length}`];
    slider.setAttribute("aria-valuetext", `step ${count.textContent}`);
    play.replaceChildren(icon(playing ? "pause" : "play"));
    play.setAttribute("aria-label", playing ? "Pause" : "Play");
    refill(turns, moment.right ? h("div.list", {}, moment.turns.map((turn, index) => h(`button.choice${words[at] === turn.do ? ".taken" : ""}`,
      { type: "button", "data-do": turn.do, onclick: () => take(() => turn.do) },
      index < 9 ? h("kbd", {}, index + 1) : null, `P${turn.process} ${turn.text}`))) : h("p.violated", {}, "Two processes are inside together."));
    other.hidden = !state.others.length;
    refill(ways, state.others.map((way) => h("button.choice", { type: "button", onclick: () => switchTo(way) },
      `after step ${parting(way)}: ${way.moments[parting(way) + 1]?.line ?? "ends there"}`)));
    put(spots, places(moment, before));
    put(memory, registers(moment, before));
    writes.hidden = !state.buffers;
    put(waiting, buffers(moment, before));
    const kind = (step) => (round !== null && step > round ? ".again" : "") + (step === at ? ".ran" : "");
    refill(schedule, moments.slice(1).map((it, index) => h(`li${kind(index + 1)}`, {}, h("button.plain", { type: "button", onclick: () => show(index + 1) }, it.line))));
    text.draw(known(), moment, before);
    follow();
    const loop = round === null ? "" : `Steps ${round + 1} to ${words.length} can be repeated for ever.`;
    again.textContent = loop && `${loop} They have a line beside them.`;
    sentence.textContent = at ? `Step ${at}: ${moment.line}.${loop && at === words.length ? ` ${loop}` : ""}` : "The beginning.";
  }

  new ResizeObserver(follow).observe(element);
  element.press = (number) => take(() => state.way.moments[state.at]?.turns[number - 1]?.do);
  element.leave = () => { check.stop(); pause(); clearTimeout(remember.timer); };
  element.move = (by) => show(state.at + by);
  element.address = address;
  element.keys = { Home: () => show(0), End: () => show(state.way.words.length), " ": run, u: copy, b: () => ways.querySelector("button")?.focus() };
  load();
  return element;
}
