// News of the live page: what the node tells as it happens, and what the page sees change in the group.

import { h, plain, put } from "./dom.js";
import { events } from "./livecall.js";

/** The newest lines that are kept. */
const MOST = 40;

/** The list is drawn at most this often, in milliseconds: a busy lock has thousands of events a second. */
const PACE = 250;

/** The wait before a stream that has ended is opened again, in milliseconds. */
const AGAIN = 2000;

/** A list of news, the newest first. @param {string} label */
export function newsList(label) {
  const list = h("ol.news", { "aria-label": label, tabindex: 0, "aria-busy": "true" });
  const none = h("p.quiet", {}, "Nothing has happened since this was opened.");
  let [lines, timer] = [[], 0];
  const draw = () => {
    timer = 0;
    none.hidden = lines.length > 0;
    list.hidden = !none.hidden;
    put(list, lines.map(({ at, words, bad }) => h(bad ? "li.bad" : "li", {},
      h("time", { datetime: at.toISOString() }, at.toLocaleTimeString("en-GB")), " ", words)));
  };
  draw();
  /** @param {Array} words  texts and elements @param {{at?: number, bad?: boolean}} [how] */
  const add = (words, { at = Date.now(), bad = false } = {}) => {
    lines = [{ at: new Date(at), words, bad }, ...lines].slice(0, MOST);
    timer ||= setTimeout(draw, PACE);
  };
  /** Follow the events of the node that the query selects. @returns {() => void} ends it */
  const listen = (query) => follow(query, (event) => {
    if (event.kind === "open" || event.kind === "closed") list.setAttribute("aria-busy", event.kind === "closed");
    else add(words(event), { at: event.at_ms, bad: event.kind === "lost" });
  });
  return { element: h("div.newsbox", {}, none, list), add, listen };
}

const code = (text) => h("code", {}, plain(text));
const who = (client) => code(client || "a client without a label");

/** An event of a node in words. @param {any} event */
export function words(event) {
  const { kind, lock, client, fence, view, missed } = event;
  const grant = fence ? [", fence ", code(fence)] : [];
  switch (kind) {
    case "waiting": return [who(client), " waits for ", code(lock)];
    case "gave-up": return [who(client), " no longer waits for ", code(lock)];
    case "granted": return [code(lock), " granted to ", who(client), grant];
    case "released": return [code(lock), " released by ", who(client), grant];
    case "lost": return [code(lock), " taken from ", who(client), grant];
    case "view": return [view === null ? "the view has ended; the members agree on the next one" : `view ${view} begins`];
    default: return [`${missed} events were too fast to be shown`];
  }
}

/**
 * Follow the events of the node while the page is seen. A stream that ends is opened again.
 * @param {Object<string, string>} query @param {(event: any) => void} hear
 * @returns {() => void} ends it
 */
function follow(query, hear) {
  let [stream, ended] = [null, false];
  async function read() {
    if (stream || ended || document.hidden) return;
    const mine = new AbortController();
    stream = mine;
    try {
      for await (const event of events(query, mine.signal)) hear(event);
    } catch {
      // The page asks for its figures anyway, and says there if the node does not answer.
    }
    hear({ kind: "closed" });
    if (stream !== mine) return;
    stream = null;
    setTimeout(read, AGAIN);
  }
  const seen = () => {
    if (!document.hidden) return read();
    stream?.abort();
    stream = null;
    return undefined;
  };
  document.addEventListener("visibilitychange", seen);
  read();
  return () => {
    ended = true;
    stream?.abort();
    document.removeEventListener("visibilitychange", seen);
  };
}

/** What has changed at the members since they were asked before. @returns {{text: string, bad: boolean}[]} */
export function membersNews(before, now) {
  if (!before) return [];
  const names = (list) => new Set(list.map((it) => it.node ?? it));
  const [left, back] = [[...names(now.away)].filter((it) => !names(before.away).has(it)), [...names(before.away)].filter((it) => !names(now.away).has(it))];
  const restarted = now.nodes.filter((it) => before.nodes.some((old) => old.node === it.node && old.pid !== it.pid));
  return [
    ...left.map((it) => ({ text: `${it} cannot be reached`, bad: true })),
    ...back.map((it) => ({ text: `${it} is back`, bad: false })),
    ...restarted.map((it) => ({ text: `${it.node} was started again`, bad: false })),
  ];
}

/**
 * What has changed at a lock since it was asked before, at members other than `here`: their own events do not come.
 * @returns {any[]} events
 */
export function lockNews(before, now, here) {
  if (!before) return [];
  const others = (list, key) => new Map(list.filter((it) => it.node !== here).map((it) => [key(it), it]));
  const holder = (it) => `${it.node} ${it.session} ${it.fence}`;
  const waiter = (it) => `${it.node} ${it.session}`;
  const fresh = (one, other) => [...one].filter(([key]) => !other.has(key)).map(([, it]) => it);
  const [held, holds] = [others(before.holders, holder), others(now.holders, holder)];
  const [waited, waits] = [others(before.waiters, waiter), others(now.waiters, waiter)];
  const inside = new Set([...holds.values()].map(waiter));
  // Of a member that does not answer nothing is known: its clients may still hold the lock and wait.
  const answers = (it) => !now.silent.includes(it.node) && !now.away.some(({ node }) => node === it.node);
  const told = (kind) => (it) => ({ kind, lock: now.lock, client: it.client, fence: it.fence });
  return [
    ...fresh(held, holds).filter(answers).map(told("released")), ...fresh(waits, waited).map(told("waiting")),
    ...fresh(waited, waits).filter((it) => answers(it) && !inside.has(waiter(it))).map(told("gave-up")), ...fresh(holds, held).map(told("granted")),
  ];
}
