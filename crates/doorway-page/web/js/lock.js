// One lock of the live page: who is inside, who waits and why, breaking and recording.

import { h, inOrder, plain, put, s } from "./dom.js";
import { breakLock, handOver, hasLab, labAddress, record } from "./livecall.js";
import { lockNews, newsList, words } from "./news.js";

/** A time for people, as `doorway top` writes it. @param {number} ms */
export function time(ms) {
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds / 60) % 60} min`;
}

/** A time for a narrow column. @param {number} ms */
export const short = (ms) => time(ms).split(" ").slice(0, 2).join(" ");

/** A session of a circle: as node/number, and with the label of its client where that is known. */
function member(session, report) {
  const known = [...report.holders, ...report.waiters].find((it) => `${it.node}/${it.session}` === session);
  return known?.client ? `${plain(known.client)} [${session}]` : session;
}

/** Why a client waits, in words. */
function why(waiter, report) {
  if (waiter.circle) {
    return `deadlock: ${[...waiter.circle, waiter.circle[0]].map((it) => member(it, report)).join(" waits for ")}`;
  }
  const reasons = waiter.missing.map((node) => {
    const away = report.away.find((it) => it.node === node);
    if (away) return `needs the word of ${node}, which cannot be reached for ${time(away.for_ms)}`;
    const inside = report.holders.find((it) => it.node === node);
    return inside ? `needs the word of ${node}, whose client is inside` : `needs the word of ${node}`;
  });
  if (reasons.length) return reasons.join("; ");
  if (report.view === null) return "the members agree on the next view";
  if (waiter.place > 0) return `${waiter.place} before it at ${waiter.node}`;
  const holder = report.holders[0];
  if (holder) return `held at ${holder.node} by session ${holder.session ?? "unknown"}`;
  const away = report.away.map((it) => it.node);
  return away.length ? `${away.join(", ")} cannot be reached` : "its turn comes next";
}

/** A circle of sessions that wait for each other, as a ring. @param {string[]} circle */
function ring(circle) {
  const two = circle.length === 2;
  const [width, height, round] = [300, two ? 60 : 170, 17];
  const place = (index) => {
    const turn = (2 * Math.PI * index) / circle.length - Math.PI / (two ? 1 : 2);
    return [width / 2 + (width / 2 - 60) * Math.cos(turn), height / 2 + (height / 2 - round - 4) * Math.sin(turn)];
  };
  const arrows = circle.map((_, index) => {
    const [[a, b], [c, d]] = [place(index), place((index + 1) % circle.length)];
    const long = Math.hypot(c - a, d - b) || 1;
    const [x, y] = [(c - a) / long, (d - b) / long];
    // Side by side, where two sessions wait for each other.
    const at = (px, py, far) => `${px + far * x * (round + 4) - 6 * y} ${py + far * y * (round + 4) + 6 * x}`;
    return s("path.waits", { d: `M${at(a, b, 1)}L${at(c, d, -1)}`, "marker-end": "url(#waits-for)" });
  });
  const nodes = circle.map((session, index) => {
    const [x, y] = place(index);
    return s("g", {}, s("circle", { cx: x, cy: y, r: round }), s("text", { x, y, dy: "0.35em", "text-anchor": "middle" }, plain(session).slice(0, 18)));
  });
  const head = s("marker", { id: "waits-for", viewBox: "0 0 10 10", refX: 9, refY: 5, markerWidth: 11, markerHeight: 11, orient: "auto", markerUnits: "userSpaceOnUse" }, s("path", { d: "M0 0L10 5L0 10z" }));
  return s("svg.ring", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `Deadlock of ${circle.length} sessions` },
    s("defs", {}, head), arrows, nodes);
}

/** What a client says about itself. */
const label = (it) => (it.client ? h("code", {}, plain(it.client)) : h("span.quiet", {}, "without a label"));

/** Who held a lock at a member that is away, when the node last heard of it. It may have been released since. */
const lastHolder = (it) => h("li", {}, label(it), `, node ${it.node}`, it.shared ? ", in shared mode" : "",
  it.fence ? [", fence ", h("code", {}, it.fence)] : "", `, heard of ${time(it.heard_ms)} ago`);

/** Ask for the fence before a lock is broken. */
function askFence(name, holder, tell) {
  const dialog = document.getElementById("dialog");
  const fence = h("input", { id: "fence", inputmode: "numeric", autocomplete: "off" });
  const said = h("p.bad", { role: "alert" });
  const send = async (event) => {
    event.preventDefault();
    if (fence.value.trim() !== holder.fence) {
      put(said, "This is not the fence of the holder. Nothing was done.");
      return;
    }
    try {
      await breakLock(name, holder.fence);
      dialog.close();
      tell("The lock was taken from its holder.");
    } catch (error) {
      put(said, error.message);
    }
  };
  put(dialog, h("form", { onsubmit: send },
    h("h2", { id: "dialog-title" }, "Break the lock"),
    h("p", {}, "The client ", label(holder), " at ", holder.node,
      " loses ", h("code", {}, plain(name)), ". If it still works, two clients may be inside. Only the ",
      "fence protects what they change."),
    h("p", {}, h("label", { for: "fence" }, "Type its fence, ", h("code", {}, holder.fence), ": "), fence),
    said,
    h("button", { type: "submit" }, "Break"), " ",
    h("button", { type: "button", onclick: () => dialog.close() }, "Cancel")));
  dialog.showModal();
}

/** What the page says until the node tells that the recording has begun, and from then on. */
const [ASKED, BEGUN] = ["Asking the members to record …", "Recording for 10 s …"];

/** Record for ten seconds, and offer what was recorded: in the laboratory if there is one, and as a file. */
async function recordNow(name, button, place) {
  button.disabled = true;
  put(place, ASKED);
  try {
    const { text, missing } = await record(name, 10_000);
    const file = `${name.replace(/[^A-Za-z0-9._-]/g, "_")}.recording`;
    const save = h("a", { href: URL.createObjectURL(new Blob([text])), download: file }, `Save ${file}`);
    const lack = missing ? h("span.bad", {}, ` Nothing came from ${missing}.`) : null;
    if (hasLab()) {
      put(place, save, lack);
      const kept = await handOver(name, text);
      put(place, h("button", { type: "button", onclick: async () => open(await labAddress(kept), "_blank") }, "Open in the laboratory"), " ", save, lack);
    } else {
      put(place, save, " and open it at your own machine: ", h("code", {}, `doorway diagram --recorded ${file} --page`), lack);
    }
  } catch (error) {
    // What was recorded can still be saved.
    if (place.querySelector("a")) place.append(` ${error.message}`);
    else put(place, error.message);
  }
  button.disabled = false;
}

/**
 * What stays of a lock while its figures change.
 * @param {string} name @param {Function} tell @param {() => string|undefined} here  the node whose page this is
 */
export function lockPanel(name, tell, here) {
  const [about, inside, queue] = [h("p.quiet", {}), h("ul", {}), h("ul", {})];
  const [past, silent] = [h("div", {}), h("p.bad", {})];
  const recorded = h("p", { role: "status" });
  const deadlock = h("div", {});
  const news = newsList("News of the lock");
  // A name that ends with a star would be taken for the beginning of names.
  const leave = name.endsWith("*") ? () => {} : news.listen({ lock: name, kind: "waiting,gave-up,granted,released,lost" });
  let [before, drawn] = [null, ""];
  const button = h("button", { type: "button", onclick: () => recordNow(name, button, recorded) }, "Record 10 s");
  const panel = h("section", { "aria-label": "The lock that was chosen" },
    h("h2", {}, "Lock"), h("p", {}, h("code", {}, plain(name))), about,
    h("h2", {}, "Inside"), inside, past, h("h2", {}, "Queue, and why each one waits"), queue, deadlock, silent,
    h("p", {}, button), recorded, h("h2", {}, "News of the lock"), news.element);
  /** The holders by their fences. A button to break a lock stays while the time beside it changes. */
  let known = new Map();

  function newHolder(it) {
    const times = h("span", {});
    const act = h("button", { type: "button", onclick: () => askFence(name, it, tell) }, "Break …");
    return { times, element: h("li", {}, label(it), `, node ${it.node}, fence `,
      h("code", {}, it.fence), times, " ", act) };
  }

  function update(report) {
    const gone = report.last_known ?? [];
    for (const event of lockNews(before, report, here())) news.add(words(event));
    before = report;
    if (report.recording && recorded.textContent === ASKED) put(recorded, BEGUN);
    const circle = report.waiters.find((it) => it.circle)?.circle ?? [];
    if (drawn !== circle.join()) put(deadlock, circle.length ? ring(circle) : []);
    drawn = circle.join();
    about.textContent = `${report.algorithm}, permits ${report.permits}, view ${report.view ?? "being agreed on"}`;
    const key = (it) => `${it.node} ${it.session} ${it.fence}`;
    const now = new Map(report.holders.map((it) => [key(it), known.get(key(it)) ?? newHolder(it)]));
    for (const it of report.holders) {
      const lease = it.expires_in_ms === undefined ? "" : `, lease left ${time(it.expires_in_ms)}`;
      now.get(key(it)).times.textContent = `, for ${time(it.held_ms)}${lease}`;
    }
    known = now;
    const holders = [...now.values()].map((it) => it.element);
    inOrder(inside, holders.length ? holders : [h("li", {}, gone.length ? "Nobody at the members that answer." : "Nobody.")]);
    put(past, gone.length ? [h("h2", {}, "Last known, at members that are away"), h("ul", {}, gone.map(lastHolder))] : []);
    const waiting = report.waiters.map((it) => h("li", {}, label(it),
      ` (${it.node}) for ${time(it.waited_ms)}: `, h(it.circle ? "span.bad" : "span", {}, why(it, report))));
    put(queue, waiting.length ? waiting : h("li", {}, "Nobody waits."));
    put(silent, report.silent.length ? `No answer from ${report.silent.join(", ")}.` : "");
  }
  return { panel, update, leave };
}
