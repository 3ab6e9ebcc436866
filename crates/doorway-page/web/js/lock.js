// One lock of the live page: who is inside, who waits and why, breaking and recording.

import { h, put } from "./dom.js";
import { breakLock, record } from "./livecall.js";

/** A time for people, as `doorway top` writes it. @param {number} ms */
export function time(ms) {
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds / 60) % 60} min`;
}

/** A time for a narrow column. @param {number} ms */
export const short = (ms) => time(ms).split(" ").slice(0, 2).join(" ");

/** Why a client waits, in words. */
function why(waiter, report) {
  if (waiter.circle) return `deadlock: ${waiter.circle.join(" waits for ")} waits for ${waiter.circle[0]}`;
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
  if (holder) return `held at ${holder.node}, session ${holder.session ?? "unknown"}`;
  const away = report.away.map((it) => it.node);
  return away.length ? `${away.join(", ")} cannot be reached` : "its turn comes next";
}

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
    h("p", {}, "The client ", h("code", {}, holder.client || "without a label"), " at ", holder.node,
      " loses ", h("code", {}, name), ". If it still works, two clients may be inside. Only the ",
      "fence protects what they change."),
    h("p", {}, h("label", { for: "fence" }, "Type its fence, ", h("code", {}, holder.fence), ": "), fence),
    said,
    h("button", { type: "submit" }, "Break"), " ",
    h("button", { type: "button", onclick: () => dialog.close() }, "Cancel")));
  dialog.showModal();
}

/** Record for ten seconds, and offer the file. */
async function recordNow(name, button, place) {
  button.disabled = true;
  put(place, "Recording for 10 s …");
  try {
    const blob = await record(name, 10_000);
    const file = `${name.replace(/[^A-Za-z0-9._-]/g, "_")}.recording`;
    put(place, h("a", { href: URL.createObjectURL(blob), download: file }, `Save ${file}`),
      h("span.quiet", {}, ` and open it: doorway diagram --recorded ${file} --page`));
  } catch (error) {
    put(place, error.message);
  }
  button.disabled = false;
}

/** What stays of a lock while its figures change. @param {string} name @param {Function} tell */
export function lockPanel(name, tell) {
  const body = h("div", {});
  const recorded = h("p", { role: "status" });
  const button = h("button", { type: "button", onclick: () => recordNow(name, button, recorded) }, "Record 10 s");
  const panel = h("section", { "aria-label": "The lock that was chosen" },
    h("h2", {}, "Lock"), h("p", {}, h("code", {}, name)), body, h("p", {}, button), recorded);
  const update = (report) => {
    const inside = report.holders.map((it) => h("li", {},
      h("code", {}, it.client || "without a label"), `, node ${it.node}, fence `, h("code", {}, it.fence),
      `, for ${time(it.held_ms)}`, it.expires_in_ms === undefined ? "" : `, lease ${time(it.expires_in_ms)}`, " ",
      h("button", { type: "button", onclick: () => askFence(name, it, tell) }, "Break …")));
    const queue = report.waiters.map((it) => h("li", {}, h("code", {}, it.client || "without a label"),
      ` (${it.node}) for ${time(it.waited_ms)}: `, h(it.circle ? "span.bad" : "span", {}, why(it, report))));
    put(body,
      h("p.quiet", {}, `${report.algorithm}, permits ${report.permits}, view ${report.view ?? "being agreed on"}`),
      h("h2", {}, "Inside"), inside.length ? h("ul", {}, inside) : h("p", {}, "Nobody."),
      h("h2", {}, "Queue, and why each one waits"), queue.length ? h("ul", {}, queue) : h("p", {}, "Nobody waits."),
      report.silent.length ? h("p.bad", {}, `No answer from ${report.silent.join(", ")}.`) : null);
  };
  // A button with the focus must not vanish under the finger of the operator.
  return { panel, update: (report) => body.contains(document.activeElement) || update(report) };
}
