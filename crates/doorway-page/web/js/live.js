// The live page of a node: members, locks by longest wait, and one lock.

import { h, many, plain, put, say } from "./dom.js";
import { group, hasLab, hasToken, inspect, list, setToken, takeToken } from "./livecall.js";
import { lockPanel, short, time } from "./lock.js";
import { LONG, lockList } from "./locks.js";
import { membersNews, newsList } from "./news.js";
import { sparkline } from "./spark.js";

/** After this long without an answer the figures are grey. */
const STALE = 3000;
/** While nothing happens, the list of locks is asked for once in this time. */
const REST = 5000;

const main = document.getElementById("main");
const bar = document.getElementById("bar");
const state = { prefix: "", chosen: null, heard: 0, signedIn: false, session: 0, group: null, list: null, stop: () => {} };
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
  Object.assign(state, { signedIn: false, session: state.session + 1, group: null, list: null, stop: () => {} });
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

const locks = lockList((name) => choose(name),
  (name) => news.add([h("code", {}, plain(name)), ` has a client that has waited for ${time(LONG)}`], { bad: true }));
const facts = h("span.facts", {});
const leave = h("button", { type: "button", onclick: () => {
  setToken("");
  signIn("");
} }, "Sign out");

function screen() {
  [spark, news] = [sparkline(), newsList("News of this node and its group")];
  state.stop = news.listen({ kind: "lost,view" });
  locks.forget();
  put(bar, h("h1", {}, "Doorway live"), facts, age, hasToken() && !hasLab() && leave);
  const prefix = h("input", { id: "prefix", value: state.prefix, oninput: () => {
    state.prefix = prefix.value;
    look();
  } });
  put(main, h("section.wide", { "aria-label": "Members" }, said, done, h("h2", {}, "Members"), members, h("p.totals", {}, totals, spark.element)),
    h("section", { "aria-label": "Locks" }, h("h2", {}, "Locks, longest wait first"),
      h("p", {}, h("label", { for: "prefix" }, "Names that begin with "), prefix), locks.elements),
    h("div", {}, detail, h("section", { "aria-label": "News" }, h("h2", {}, "News of this node and its group"), news.element)));
}

function showGroup(told) {
  const node = told.nodes[0];
  for (const { text, bad } of membersNews(state.group, told)) news.add([text], { bad });
  state.group = told;
  const [held, waiting, grants] = ["held", "waiting", "grants"].map((it) => told.nodes.reduce((sum, one) => sum + one[it], 0));
  say(totals, `${held.toLocaleString("en")} held, ${waiting.toLocaleString("en")} waiting, ${many(grants, "grant")}`);
  spark.add(grants, Date.now());
  const texts = [`group ${node.group}`, `node ${node.node}`, `view ${node.view ?? "being agreed on"}`, `up ${short(node.up_ms)}`,
    `${told.nodes.length} of ${many(node.members.length, "member")}`];
  texts.forEach((text, index) => say(facts.children[index] ?? facts.appendChild(h("span", {})), text));
  const lines = [
    ...told.nodes.map((it) => ["", `${it.node}: ${it.view === null ? "no view" : "serves"}, ` +
      `${it.held.toLocaleString("en")} held, ${it.waiting.toLocaleString("en")} waiting, ${many(it.grants, "grant")}`]),
    ...told.away.map((it) => [".bad", `${it.node}: away for ${time(it.for_ms)}`]),
    ...told.silent.map((it) => [".bad", `${it}: no answer`])];
  if (members.dataset.shown === lines.join()) return;
  members.dataset.shown = lines.join();
  put(members, h("ul.members", {}, lines.map(([kind, text]) => h(`li${kind}`, {}, text))));
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

/** The locks. If nobody waits, and nothing was granted or released since the last list, that list is shown a little longer. */
async function listAfter(told) {
  const news = JSON.stringify([state.session, state.prefix, told.nodes.map(({ node, held, grants }) => [node, held, grants])]);
  const quiet = told.nodes.every((it) => it.waiting === 0) && state.list?.news === news && Date.now() - state.list.at < REST;
  if (!quiet) state.list = { news, at: Date.now(), page: await list(state.prefix) };
  return state.list.page;
}

let looking = false;
async function look() {
  if (looking || document.hidden) return;
  looking = true;
  try {
    const { session } = state;
    const told = await group();
    const page = await listAfter(told);
    if (session !== state.session) return;
    if (!state.signedIn) screen();
    state.signedIn = true;
    state.heard = Date.now();
    showGroup(told);
    locks.show(page, state.chosen?.name);
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
  say(age, state.heard ? `${Math.floor(old / 1000)} s old` : "");
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
try {
  state.prefix = await takeToken();
  begin();
} catch (error) {
  put(main, h("p.bad", { role: "alert" }, error.message));
}
