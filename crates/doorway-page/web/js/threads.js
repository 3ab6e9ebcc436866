// Algorithms between threads, step by step: which process goes next, the registers, the places.

import { h, many, put } from "./dom.js";

/**
 * The screen of the algorithms between threads.
 * @param {any} home  the server
 * @param {string} rest  what the address says after "?"
 * @param {(error: Error|null) => void} onerror
 */
export function threads(home, rest, onerror) {
  const asked = new URLSearchParams(rest);
  const state = {
    all: [], name: asked.get("name") ?? "", n: Number(asked.get("n") ?? 2), buffers: asked.get("buffers") === "1",
    dropped: asked.get("drop") ?? "", words: asked.get("steps")?.match(/p[^p]+/g) ?? [], at: 0, moments: [],
    /** After how many steps those begin that can be repeated for ever; they end with the last one. @type {number|null} */
    round: /^\d+$/.test(asked.get("round") ?? "") ? Number(asked.get("round")) : null,
  };
  state.at = Number(asked.get("at") ?? state.words.length);
  const [setup, turns, places, registers, schedule, source, answer] = Array.from({ length: 7 }, () => h("div", {}));
  const sentence = h("p.sentence", { role: "status", "aria-live": "polite" });
  const element = h("div.threads", {}, h("h1", {}, "Between threads"), setup, sentence, h("div.parts", {},
    h("section.panel", { "aria-label": "Which process goes next" }, h("h2", {}, "Which process goes next"), turns, answer),
    h("section.panel", { "aria-label": "Processes and registers" }, h("h2", {}, "Processes"), places, h("h2", {}, "Registers"), registers, h("h2", {}, "Schedule"), schedule),
    h("section.panel.source", { "aria-label": "Source" }, h("h2", {}, "The algorithm"), source)));

  const LOOK = "Look at every schedule";
  const ask = h("button.ask", { type: "button", onclick: () => (looking ? looking.abort() : look()) }, LOOK);
  /** A check that runs. @type {AbortController|null} */
  let looking = null;

  const question = (steps) => ({ name: state.name, n: state.n, buffers: state.buffers, dropped: state.dropped, steps });

  async function load() {
    try {
      if (!state.all.length) state.all = await home.threads();
      state.name ||= state.all[0].name;
      const told = await home.walk(question(state.words.join("")));
      state.moments = told.moments;
      state.at = Math.min(state.at, state.words.length);
      onerror(null);
    } catch (error) {
      onerror(error);
      if (!state.moments.length) return;
    }
    draw();
  }

  async function take(word) {
    if (state.words[state.at] !== word) {
      state.words = [...state.words.slice(0, state.at), word];
      state.round = null;
    }
    state.at += 1;
    await load();
  }

  function begin(change) {
    Object.assign(state, { words: [], at: 0, round: null }, change);
    const known = state.all.find((it) => it.name === state.name);
    state.n = Math.max(known.fewest, Math.min(known.most, state.n));
    state.dropped = [...state.dropped].filter((letter) => known.fences.includes(letter)).join("");
    stop();
    put(answer);
    load();
  }

  function show(at) {
    state.at = Math.max(0, Math.min(at, state.words.length));
    draw();
  }

  /** Stop a check; its answer would be about something else than what is on the screen. */
  function stop() {
    looking?.abort();
    looking = null;
    ask.textContent = LOOK;
  }

  async function look() {
    const mine = looking = new AbortController();
    // The answer is about this algorithm in this memory. If the reader has chosen another one, it is not shown.
    const tell = (...content) => { if (looking === mine) put(answer, content); };
    ask.textContent = "stop";
    tell(h("p.quiet", {}, "looking at every schedule …"));
    try {
      for await (const line of home.threadsCheck(question(""), mine.signal)) {
        mine.signal.throwIfAborted();
        if (line.looking) {
          if (line.states) tell(h("p.quiet", {}, `looking at every schedule: ${many(line.states, "state")}`));
          continue;
        }
        const bad = line.exclusion === false ? "Two can be inside together" : line.deadlockFree === false ? "It can deadlock"
          : line.cycle ? "A process can be locked out" : null;
        const shut = bad || line.lockoutFree !== false ? "" : " A process can be locked out; the algorithm does not claim otherwise.";
        const loop = line.cycle ? ` The schedule ends with ${many(line.cycle, "step")} that can be repeated for ever.` : "";
        tell(h("p", {}, h("strong", {}, bad ?? (line.exhausted ? "No two are ever inside together" : "Not exhausted")), `: ${many(line.states, "state")}.${shut}${loop}`),
          bad && line.steps ? h("button", { type: "button", onclick: () => open(line) }, "show the schedule") : null);
      }
    } catch (error) {
      tell(h("p", {}, error.name === "AbortError" ? "Stopped: nothing is known." : error.message));
    } finally {
      if (looking === mine) {
        looking = null;
        ask.textContent = LOOK;
      }
    }
  }

  /** Show a schedule that breaks the algorithm, at its end. */
  function open(line) {
    state.words = line.steps.match(/p[^p]+/g);
    state.at = state.words.length;
    state.round = line.cycle ? line.round : null;
    load();
  }

  /** Keep the address bar at the moment on which the reader rests: browsers refuse changes that follow each other quickly. */
  function remember(address) {
    clearTimeout(remember.timer);
    const place = location.hash;
    remember.timer = setTimeout(() => { if (location.hash === place) history.replaceState(null, "", address); }, 150);
  }

  function draw() {
    const moment = state.moments[state.at];
    const before = state.moments[state.at - 1];
    const known = state.all.find((it) => it.name === state.name);
    if (!moment || !known) return;
    const address = new URLSearchParams({ ...question(state.words.join("")), at: state.at });
    address.set("drop", state.dropped);
    address.delete("dropped");
    address.set("buffers", state.buffers ? "1" : "0");
    if (state.round !== null) address.set("round", state.round);
    remember(`#/threads?${address}`);
    const toggle = (label, checked, onchange) => h("label.switch", {}, h("input", { type: "checkbox", checked, onchange }), label);
    put(setup, h("form.plan", { onsubmit: (event) => event.preventDefault() },
      h("label", {}, "algorithm", h("select", { onchange: (event) => begin({ name: event.target.value }) },
        state.all.map((it) => h("option", { value: it.name, selected: it.name === state.name }, `${it.name}${it.lock ? "" : " (refuted)"}`)))),
      h("label", {}, "processes", h("input", { type: "number", min: known.fewest, max: known.most, value: state.n, onchange: (event) => begin({ n: Number(event.target.value) }) })),
      toggle("store buffers, as on x86", state.buffers, (event) => begin({ buffers: event.target.checked })),
      [...known.fences].map((letter) => toggle(`fence ${letter}`, !state.dropped.includes(letter),
        (event) => begin({ dropped: event.target.checked ? state.dropped.replace(letter, "") : state.dropped + letter })))));
    const buttons = [["|<", 0], ["<", state.at - 1], [">", state.at + 1], [">|", state.words.length]]
      .map(([label, at]) => h("button", { type: "button", onclick: () => show(at), "aria-label": { "|<": "First", "<": "Back", ">": "Step", ">|": "Last" }[label] }, label));
    put(turns, h("p", {}, buttons, ` ${state.at} of ${state.words.length}`),
      moment.right ? h("div.list", {}, moment.turns.map((turn, index) => h("button.choice", { type: "button", "data-do": turn.do, onclick: () => take(turn.do) },
        index < 9 ? h("kbd", {}, index + 1) : null, `P${turn.process} ${turn.text}`))) : h("p.violated", {}, "Two processes are inside together."),
      h("p", {}, ask));
    put(places, h("table", {}, h("thead", {}, h("tr", {}, ["process", "place", "section"].map((it) => h("th", { scope: "col" }, it)))),
      h("tbody", {}, moment.places.map(([place, section], process) => h(`tr.${section}`, {}, h("th", { scope: "row" }, `P${process}`),
        h(before && before.places[process][0] !== place ? "td.changed" : "td", {}, place),
        h(!moment.right && section === "inside" ? "td.over" : "td", {}, section))))));
    put(registers, h("table", {}, h("tbody", {}, moment.registers.map(([name, value], index) => h("tr", {}, h("th", { scope: "row" }, name),
      h(before && before.registers[index][1] !== value ? "td.changed" : "td", {}, String(value)))))));
    const again = (step) => (state.round !== null && step > state.round ? ".again" : "");
    put(schedule, h("ol.schedule", {}, state.moments.slice(1).map((it, index) => h(`li${again(index + 1)}${index + 1 === state.at ? ".ran" : ""}`, {},
      h("button.plain", { type: "button", onclick: () => show(index + 1) }, it.line)))));
    const loop = state.round === null ? "" : `Steps ${state.round + 1} to ${state.words.length} can be repeated for ever.`;
    if (loop) schedule.append(h("p.quiet", {}, `${loop} They have a line beside them.`));
    const ending = loop && state.at === state.words.length ? ` ${loop}` : "";
    sentence.textContent = state.at ? `Step ${state.at}: ${moment.line}.${ending}` : "The beginning.";
    const names = new Set(moment.places.map(([place]) => place.match(/^\w+/)[0]));
    put(source, h("ol.code", { tabindex: 0, "aria-label": "Source of the algorithm" }, known.source.split("\n").filter((line) => !line.startsWith("//!"))
      .map((line) => line.replace(/^( {4})+/, (spaces) => " ".repeat(spaces.length / 2)))
      .map((line) => h([...names].some((name) => new RegExp(`At::${name}\\b.*=>`).test(line)) ? "li.acted" : "li", {}, line))));
    source.querySelector(".acted")?.scrollIntoView({ block: "nearest" });
  }

  element.press = (number) => { const turn = state.moments[state.at]?.turns[number - 1]; if (turn) take(turn.do); };
  element.leave = () => { stop(); clearTimeout(remember.timer); };
  element.move = (by) => show(state.at + by);
  load();
  return element;
}
