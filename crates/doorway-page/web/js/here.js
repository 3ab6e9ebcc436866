// "From here": an exhaustive check of the very moment on screen.

import { h, many, put } from "./dom.js";
import { verdict } from "./verdict.js";

/** @param {import("./lab.js").Lab} lab */
export function here(lab) {
  const select = (label, options) => h("label", {}, `${label} `, h("select", {}, options.map(([value, text]) => h("option", { value }, text))));
  const asks = select("each node asks", [["", "for ever"], ["0", "no more"], ["1", "once more"], ["2", "twice more"]]);
  const faults = [["losses", "losses"], ["duplicates", "doubled"], ["crashes", "crashes"]]
    .map(([name, label]) => [name, select(label, [["0", "0"], ["1", "1"], ["2", "2"]])]);
  /** With losses or doubled messages, only a check of nodes that stop asking comes to an end. */
  const endless = () => {
    const [losses, doubled] = faults.map(([, label]) => Number(label.lastChild.value));
    const times = asks.lastChild;
    times.options[0].disabled = losses + doubled > 0;
    if (times.options[0].disabled && times.value === "") times.value = "1";
  };
  for (const [, label] of faults) label.addEventListener("change", endless);
  const givesUp = h("input", { type: "checkbox" });
  const giveUps = h("label", {}, givesUp, " clients may give up");
  const toggle = () => (running ? running.abort() : run());
  const ask = h("button.ask", { type: "button", onclick: toggle }, "Can this still go wrong?");
  const answer = h("div.answer", { role: "status", "aria-live": "polite" });
  const element = h("section.panel.here", { "aria-label": "From here" }, h("h2", {}, "From here"),
    h("details", {}, h("summary", {}, "what may happen"), asks, faults.map(([, label]) => label), giveUps), ask, answer);
  /** @type {AbortController|null} */
  let running = null;
  let asked = { story: null, at: -1 };
  /** Whether the moment on screen is the one that was asked about. */
  const same = () => asked.story === lab.story && asked.at === lab.at;

  async function run() {
    endless();
    const question = Object.fromEntries(faults.map(([name, label]) => [name, Number(label.lastChild.value)]));
    const times = asks.lastChild.value;
    if (times !== "") question.acquires = Number(times);
    question.withdrawing = givesUp.checked && !giveUps.hidden;
    asked = { story: lab.story, at: lab.at };
    running = new AbortController();
    const { signal } = running;
    ask.textContent = "stop";
    put(answer, h("p.quiet", {}, "looking …"));
    try {
      let answered = false;
      await lab.about(async (place) => {
        for await (const line of lab.home.check(place, question, signal)) {
          signal.throwIfAborted();
          answered ||= Boolean(line.verdict);
          if (line.verdict) tell(line);
          else put(answer, h("p.quiet", {}, `looking from step ${line.step}: ${many(line.worlds, "world")}, depth ${line.depth}`));
        }
      });
      if (!answered) throw new Error("The check ended without an answer. Please report it with the link.");
    } catch (error) {
      const stopped = same() ? "Stopped: nothing is known." : "Stopped, because another moment is on the screen.";
      put(answer, h("p", {}, error.name === "AbortError" ? stopped : error.message));
    } finally {
      running = null;
      ask.textContent = "Can this still go wrong?";
    }
  }

  function tell(line) {
    if (line.verdict === "not-exhausted") {
      put(answer, h("p", {}, h("strong", {}, "Not exhausted"), `: ${many(line.worlds, "world")} looked at, and there are more. Nothing is known.`));
    } else if (line.verdict === "impossible") {
      const since = line.since === 0 ? "from the beginning" : `${line.exact ? "" : "at the latest "}since step ${line.since}`;
      const bound = line.overtaken === null || line.overtaken === undefined ? "" : ` While a node waits, others enter at most ${many(line.overtaken, "time")}.`;
      put(answer, h("p", {}, h("strong", {}, "Impossible"), ` ${since}: ${many(line.worlds, "world")}, all of them looked at.${bound}`));
    } else {
      const count = line.steps.length + line.cycle.length;
      const loop = line.cycle.length ? `, and then ${many(line.cycle.length, "step")} that are repeated for ever` : "";
      const [head, rest] = count === 0 ? ["This is wrong already", ""] : ["Still possible", `: ${many(line.steps.length, "step")}${loop}`];
      put(answer,
        h("p.possible", {}, h("strong", {}, head), `${rest}. ${verdict(line.violation).head}`),
        count === 0 ? null : h("p", {},
          h("button", { type: "button", onclick: () => lab.take(() => (same() ? line.steps[0] ?? line.cycle[0] : undefined)) }, "hint: one step"), " ",
          h("button", { type: "button", onclick: () => shown(line) }, "show the way")));
    }
  }

  async function shown(line) {
    const from = lab.at + line.steps.length;
    await lab.append([...line.steps, ...line.cycle].join(""));
    if (line.cycle.length && lab.story) {
      lab.story.round = [from, from + line.cycle.length];
      lab.story.ends = line.violation;
      lab.show(lab.at);
    }
  }

  // An answer is about one moment. At another one it would be wrong, so the check stops and the answer goes.
  const draw = () => {
    element.hidden = !lab.story || Boolean(lab.story.frame.names) || !lab.home.check;
    giveUps.hidden = !lab.algorithm?.withdraws;
    if (same()) return;
    if (running) running.abort();
    else put(answer);
  };
  return { element, draw, ask: toggle, stop: () => running?.abort() };
}
