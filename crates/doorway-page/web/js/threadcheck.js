// "Look at every schedule": whether an algorithm between threads can go wrong at all.

import { h, many, put } from "./dom.js";

const LOOK = "Look at every schedule";

/**
 * @param {(signal: AbortSignal) => AsyncIterable<any>} ask  asks about the algorithm and the memory that are chosen now
 * @param {(line: any) => void} open  shows the schedule of an answer
 */
export function checker(ask, open) {
  const answer = h("div", { role: "status" });
  const button = h("button.ask", { type: "button", onclick: () => (looking ? looking.abort() : look()) }, LOOK);
  /** A check that runs. @type {AbortController|null} */
  let looking = null;

  async function look() {
    const mine = looking = new AbortController();
    // The answer is about this algorithm in this memory. If the reader has chosen another one, it is not shown.
    const tell = (...content) => { if (looking === mine) put(answer, content); };
    button.textContent = "stop";
    tell(h("p.quiet", {}, "looking at every schedule …"));
    try {
      for await (const line of ask(mine.signal)) {
        mine.signal.throwIfAborted();
        if (!line.looking) tell(verdict(line));
        else if (line.states) tell(h("p.quiet", {}, `looking at every schedule: ${many(line.states, "state")}`));
      }
    } catch (error) {
      tell(h("p", {}, error.name === "AbortError" ? "Stopped: nothing is known." : error.message));
    } finally {
      if (looking === mine) forget();
    }
  }

  function verdict(line) {
    const bad = line.exclusion === false ? "Two can be inside together" : line.deadlockFree === false ? "It can deadlock"
      : line.cycle ? "A process can be locked out" : null;
    const shut = bad || line.lockoutFree !== false ? "" : " A process can be locked out; the algorithm does not claim otherwise.";
    const loop = line.cycle ? ` The schedule ends with ${many(line.cycle, "step")} that can be repeated for ever.` : "";
    return [
      h("p", {}, h("strong", {}, bad ?? (line.exhausted ? "No two are ever inside together" : "Not exhausted")), `: ${many(line.states, "state")}.${shut}${loop}`),
      bad && line.steps ? h("button", { type: "button", onclick: () => open(line) }, "show the schedule") : null,
    ];
  }

  function forget() {
    looking = null;
    button.textContent = LOOK;
  }

  /** Stop a check; its answer would be about something else than what is on the screen. */
  function stop() {
    looking?.abort();
    forget();
  }

  return { element: h("div", {}, h("p", {}, button), answer), stop, clear: () => { stop(); put(answer); } };
}
