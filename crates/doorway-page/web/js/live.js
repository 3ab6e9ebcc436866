// The live page of a node: members, locks by longest wait, and one lock.

import { h, many, put } from "./dom.js";
import { group, hasToken, inspect, list, setToken, takeToken } from "./livecall.js";
import { lockPanel, short, time } from "./lock.js";

/** After this long without an answer the figures are grey. */
const STALE = 3000;

const main = document.getElementById("main");
const bar = document.getElementById("bar");
const state = { prefix: "", chosen: null, heard: 0, signedIn: false };
const age = h("span.quiet", {});
const said = h("p.bad", { role: "alert" });
const members = h("div", {});
const locks = h("div", {});
const detail = h("div", {});

function tell(text) {
  put(said, text);
}

function signIn(text) {
  state.signedIn = false;
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

function screen() {
  const prefix = h("input", { id: "prefix", value: state.prefix, oninput: () => {
    state.prefix = prefix.value;
    look();
  } });
  put(main, h("section.wide", { "aria-label": "Members" }, said, h("h2", {}, "Members"), members),
    h("section", { "aria-label": "Locks" }, h("h2", {}, "Locks, longest wait first"),
      h("p", {}, h("label", { for: "prefix" }, "Names that begin with "), prefix), locks), detail);
}

function showGroup(told) {
  const node = told.nodes[0];
  put(bar, h("h1", {}, "Doorway live"), h("span", {}, `group ${node.group}`), h("span", {}, `node ${node.node}`),
    h("span", {}, `view ${node.view ?? "being agreed on"}`), h("span", {}, `up ${time(node.up_ms)}`),
    h("span", {}, `${told.nodes.length} of ${many(node.members.length, "member")}`), age,
    hasToken() && h("button", { type: "button", onclick: () => {
      setToken("");
      signIn("");
    } }, "Sign out"));
  put(members, h("ul.members", {},
    told.nodes.map((it) => h("li", {}, `${it.node}: ${it.view === null ? "no view" : "serves"}, ` +
      `${it.held.toLocaleString("en")} held, ${it.waiting.toLocaleString("en")} waiting, ${it.grants.toLocaleString("en")} grants`)),
    told.away.map((it) => h("li.bad", {}, `${it.node}: away for ${time(it.for_ms)}`)),
    told.silent.map((it) => h("li.bad", {}, `${it}: no answer`))));
}

function showLocks(told) {
  const row = (it) => h("tr", { "aria-current": it.lock === state.chosen?.name ? "true" : null },
    h("td", {}, h("button", { type: "button", "data-lock": it.lock, onclick: () => choose(it.lock) }, it.lock)),
    h("td", {}, it.inside), h("td", {}, it.waiting),
    h("td", {}, it.waiting ? short(it.longest_wait_ms) : ""), h("td", {}, it.holder ? short(it.holder.held_ms) : ""));
  const focused = document.activeElement?.dataset?.lock;
  put(locks, told.locks.length
    ? h("table", {}, h("thead", {}, h("tr", {}, ["Lock", "Inside", "Waiting", "Longest", "Held"].map((it) => h("th", { scope: "col" }, it)))),
      h("tbody", {}, told.locks.map(row)))
    : h("p", {}, "No client holds a lock or waits for one."),
  told.more && h("p.quiet", {}, "And more: type the beginning of a name."));
  if (focused !== undefined) [...locks.querySelectorAll("button")].find((it) => it.dataset.lock === focused)?.focus();
}

function choose(name) {
  state.chosen = { name, ...lockPanel(name, tell) };
  put(detail, state.chosen.panel);
  look();
}

let looking = false;
async function look() {
  if (looking || document.hidden) return;
  looking = true;
  try {
    const chosen = state.chosen;
    const [told, page, report] = await Promise.all([group(), list(state.prefix), chosen && inspect(chosen.name)]);
    if (!state.signedIn) screen();
    state.signedIn = true;
    state.heard = Date.now();
    showGroup(told);
    showLocks(page);
    if (report && chosen === state.chosen) chosen.update(report);
    if (said.dataset.trouble) tell("");
    delete said.dataset.trouble;
  } catch (error) {
    if (error.status === 401) signIn(hasToken() ? error.message : "");
    else if (state.signedIn) {
      tell(error.message);
      said.dataset.trouble = "yes";
    } else put(main, h("p.bad", { role: "alert" }, error.message));
  } finally {
    looking = false;
  }
  tick();
}

/** The age of the figures. */
function tick() {
  const old = Date.now() - state.heard;
  put(age, state.heard ? `${Math.floor(old / 1000)} s old` : "");
  document.body.classList.toggle("stale", state.signedIn && old > STALE);
}

let timer;
function begin() {
  clearInterval(timer);
  timer = setInterval(() => {
    if (document.hidden) return;
    tick();
    if (state.signedIn || !document.getElementById("token")) look();
  }, 1000);
  look();
}

document.addEventListener("visibilitychange", look);
takeToken();
begin();
