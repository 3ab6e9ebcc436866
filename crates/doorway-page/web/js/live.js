// The live page of a node: members, locks by longest wait, and one lock.

import { h, inOrder, many, plain, put } from "./dom.js";
import { group, hasLab, hasToken, inspect, list, setToken, takeToken } from "./livecall.js";
import { lockPanel, short, time } from "./lock.js";
import { membersNews, newsList } from "./news.js";
import { sparkline } from "./spark.js";

/** After this long without an answer the figures are grey. */
const STALE = 3000;

const main = document.getElementById("main");
const bar = document.getElementById("bar");
/** A wait of this many milliseconds is marked. */
const LONG = 10_000;

const state = { prefix: "", chosen: null, heard: 0, signedIn: false, session: 0, group: null, long: null, stop: () => {} };
const totals = h("span", {});
let [spark, news] = [sparkline(), newsList("News of this node and its group")];
const age = h("span.quiet.age", {});
const said = h("p.bad", { role: "alert" });
const done = h("p", { role: "status" });
const members = h("div", {});
const detail = h("div", {});

/** Say that something went wrong, or nothing. */
const complain = (text) => put(said, text);
/** Say that something was done. */
const tell = (text) => put(done, text);

function signIn(text) {
  leaveLock();
  state.stop();
  Object.assign(state, { signedIn: false, session: state.session + 1, group: null, stop: () => {} });
  if (hasLab()) {
    put(main, h("p.bad", { role: "alert" }, text));
    return;
  }
  const token = h("input", { id: "token", type: "password", autocomplete: "off" });
  const enter = (event) => {
    event.preventDefault();
    setToken(token.value.trim());
    begin();
  };
  put(bar, h("h1", {}, "Doorway live"));
  put(main, h("form.wide", { onsubmit: enter }, h("p.bad", { role: "alert" }, text),
    h("p", {}, h("label", { for: "token" }, "The token of a [[client]] in the settings of the node: "), token),
    h("button", { type: "submit" }, "Sign in")));
  token.focus();
}

const rows = h("tbody", {});
const table = h("table", {}, h("thead", {}, h("tr", {}, ["Lock", "Inside", "Waiting", "Longest", "Held"].map((it) => h("th", { scope: "col" }, it)))), rows);
const none = h("p", {}, "No client holds a lock or waits for one.");
const rest = h("p.quiet", {}, "And more: type the beginning of a name.");
const facts = h("span.facts", {});
const leave = h("button", { type: "button", onclick: () => {
  setToken("");
  signIn("");
} }, "Sign out");

function screen() {
  [spark, news] = [sparkline(), newsList("News of this node and its group")];
  state.stop = news.listen({ kind: "lost,view" });
  state.long = null;
  put(bar, h("h1", {}, "Doorway live"), facts, age, hasToken() && !hasLab() && leave);
  const prefix = h("input", { id: "prefix", value: state.prefix, oninput: () => {
    state.prefix = prefix.value;
    look();
  } });
  put(main, h("section.wide", { "aria-label": "Members" }, said, done, h("h2", {}, "Members"), members, h("p.totals", {}, totals, spark.element)),
    h("section", { "aria-label": "Locks" }, h("h2", {}, "Locks, longest wait first"),
      h("p", {}, h("label", { for: "prefix" }, "Names that begin with "), prefix), table, none, rest),
    h("div", {}, detail, h("section", { "aria-label": "News" }, h("h2", {}, "News of this node and its group"), news.element)));
}

function showGroup(told) {
  const node = told.nodes[0];
  for (const { text, bad } of membersNews(state.group, told)) news.add([text], { bad });
  state.group = told;
  const [held, waiting, grants] = ["held", "waiting", "grants"].map((it) => told.nodes.reduce((sum, one) => sum + one[it], 0));
  totals.textContent = `${held.toLocaleString("en")} held, ${waiting.toLocaleString("en")} waiting, ${many(grants, "grant")}`;
  spark.add(grants, Date.now());
  put(facts, h("span", {}, `group ${node.group}`), h("span", {}, `node ${node.node}`),
    h("span", {}, `view ${node.view ?? "being agreed on"}`), h("span", {}, `up ${time(node.up_ms)}`),
    h("span", {}, `${told.nodes.length} of ${many(node.members.length, "member")}`));
  put(members, h("ul.members", {},
    told.nodes.map((it) => h("li", {}, `${it.node}: ${it.view === null ? "no view" : "serves"}, ` +
      `${it.held.toLocaleString("en")} held, ${it.waiting.toLocaleString("en")} waiting, ${it.grants.toLocaleString("en")} grants`)),
    told.away.map((it) => h("li.bad", {}, `${it.node}: away for ${time(it.for_ms)}`)),
    told.silent.map((it) => h("li.bad", {}, `${it}: no answer`))));
}

/** The rows of the list by lock. A row stays while its figures change, so that a click on it is never lost. */
let known = new Map();

function newRow(name) {
  const figures = Array.from({ length: 4 }, () => h("td", {}));
  const button = h("button", { type: "button", "data-lock": name, onclick: () => choose(name) }, plain(name));
  return { element: h("tr", {}, h("td", {}, button), figures), figures };
}

/** Tell of locks for which a client has begun to wait long. */
function tellLongWaits(told) {
  const long = told.locks.filter((it) => it.waiting > 0 && it.longest_wait_ms >= LONG).map((it) => it.lock);
  const fresh = state.long ? long.filter((it) => !state.long.has(it)) : [];
  for (const lock of fresh) news.add([h("code", {}, plain(lock)), ` has a client that has waited for ${time(LONG)}`], { bad: true });
  state.long = new Set(long);
}

function showLocks(told) {
  tellLongWaits(told);
  const now = new Map(told.locks.map((it) => [it.lock, known.get(it.lock) ?? newRow(it.lock)]));
  for (const it of told.locks) {
    const { element, figures } = now.get(it.lock);
    const texts = [it.inside, it.waiting, it.waiting ? `${short(it.longest_wait_ms)}${it.longest_wait_ms >= LONG ? " !" : ""}` : "", it.holder ? short(it.holder.held_ms) : ""];
    figures.forEach((cell, index) => { cell.textContent = texts[index]; });
    element.classList.toggle("long", it.waiting > 0 && it.longest_wait_ms >= LONG);
    if (it.lock === state.chosen?.name) element.setAttribute("aria-current", "true");
    else element.removeAttribute("aria-current");
  }
  known = now;
  inOrder(rows, [...now.values()].map((row) => row.element));
  [table.hidden, none.hidden, rest.hidden] = [!now.size, now.size > 0, !told.more];
}

function leaveLock() {
  state.chosen?.leave();
  state.chosen = null;
  put(detail);
}

function choose(name) {
  tell("");
  leaveLock();
  state.chosen = { name, ...lockPanel(name, tell, () => state.group?.nodes[0].node) };
  put(detail, state.chosen.panel);
  look();
  lookAtLock();
}

let looking = false;
async function look() {
  if (looking || document.hidden) return;
  looking = true;
  try {
    const { session } = state;
    const [told, page] = await Promise.all([group(), list(state.prefix)]);
    if (session !== state.session) return;
    if (!state.signedIn) screen();
    state.signedIn = true;
    state.heard = Date.now();
    showGroup(told);
    showLocks(page);
    complain("");
  } catch (error) {
    if (error.status === 401) signIn(hasToken() ? error.message : "");
    else if (state.signedIn) complain(error.message);
    else put(main, h("p.bad", { role: "alert" }, error.message));
  } finally {
    looking = false;
  }
  tick();
}

let asking = null;

/** Ask about the lock that was chosen. */
async function lookAtLock() {
  const { chosen } = state;
  if (!chosen || asking === chosen || document.hidden) return;
  asking = chosen;
  try {
    const report = await inspect(chosen.name);
    if (chosen === state.chosen) chosen.update(report);
  } catch (error) {
    if (error.status && error.status !== 401) complain(error.message);
  } finally {
    if (asking === chosen) asking = null;
  }
}

/** The age of the figures. */
function tick() {
  const old = Date.now() - state.heard;
  put(age, state.heard ? `${Math.floor(old / 1000)} s old` : "");
  document.body.classList.toggle("stale", state.signedIn && old > STALE);
}

let [timer, turn] = [0, 0];

/** Ask for everything once a second, and for the lock that was chosen twice. */
function begin() {
  clearInterval(timer);
  timer = setInterval(() => {
    if (document.hidden) return;
    turn += 1;
    lookAtLock();
    if (turn % 2) return;
    tick();
    if (state.signedIn || !document.getElementById("token")) look();
  }, 500);
  look();
}

document.addEventListener("visibilitychange", look);
takeToken();
begin();
