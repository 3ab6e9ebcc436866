// What each request has cost, beside what the paper claims.

import { h, many, put } from "./dom.js";
import { edges } from "./edges.js";

/** The newest requests that are shown. */
const MOST = 6;

const HEAD = [["node", null], ["messages", null], ["others entered", "entries of other nodes while this request waited"], ["state", null]];

const number = (value) => (Number.isInteger(value) ? String(value) : value.toFixed(2));

/** @param {import("./lab.js").Lab} lab */
export function bills(lab) {
  const body = h("div", {});
  const scroller = edges(h("div.tablebox", { tabindex: 0, role: "group", "aria-label": "Bills, scrollable" }, body));
  const element = h("section.panel.cost", { "aria-label": "Bills" }, h("h2", {}, "Bills"), scroller);
  const draw = () => {
    const { story, at } = lab;
    element.hidden = !story || Boolean(story.frame.names);
    if (element.hidden) return;
    const { claim } = story.frame.group;
    const requests = fold(story, at);
    const most = claim.most === null ? "no bound" : number(claim.most);
    const value = claim.most === claim.least ? most : `${number(claim.least)} to ${most}`;
    // Where the paper claims a mean, one request may cost more than the others.
    const mean = claim.per === "run";
    const bound = mean ? Infinity : claim.most ?? Infinity;
    put(body,
      h("p", {}, "paper: ", h("strong", {}, `${claim.text} = ${value}`), ` messages per entry${sizes(story.frame.group)}${mean ? ", on average over a run" : ""}`),
      h("table", {}, h("thead", {}, h("tr", {}, HEAD.map(([text, title]) => h("th", { scope: "col", title }, text)))),
        h("tbody", {}, requests.slice(-MOST).reverse().map((it) => h("tr", {},
          h("th", { scope: "row" }, `${it.node}, no. ${it.request}`),
          h(it.messages > bound ? "td.over" : "td", {}, it.messages),
          h("td", {}, it.others),
          h("td", {}, it.state))))),
      requests.length ? null : h("p.quiet", {}, "Nobody has asked yet."),
      requests.length > MOST ? h("p.quiet", {}, `and ${many(requests.length - MOST, "older request")}`) : null);
  };
  return { element, draw };
}

/** What K is in the formula of an algorithm with quorums. */
function sizes({ claim, quorums }) {
  if (!quorums.length || !/K/.test(claim.text)) return "";
  // With the node itself, since it sends itself nothing.
  const all = quorums.map((quorum, place) => 1 + quorum.filter((member) => member !== place + 1).length);
  const [least, most] = [Math.min(...all), Math.max(...all)];
  return ` with quorums of K = ${least === most ? "" : `${least} to `}${many(most, "node")}`;
}

/** The requests up to a step: their messages, and the entries of others while they waited. */
export function fold(story, at) {
  const requests = new Map();
  const open = new Map();
  const counts = Array(story.n + 1).fill(0);
  for (let step = 1; step <= at; step += 1) {
    const { node, do: word, entered, sends } = story.steps[step - 1];
    if (word.startsWith("a") || word.startsWith("s")) {
      counts[node] += 1;
      const made = { node, request: counts[node], messages: 0, others: 0, state: "waits" };
      requests.set(`${node}.${counts[node]}`, made);
      open.set(node, made);
    }
    if (entered) {
      const mine = open.get(node);
      if (mine) mine.state = "inside";
      open.delete(node);
      for (const other of open.values()) other.others += 1;
    }
    if (word.startsWith("r") || word.startsWith("w")) {
      const mine = requests.get(`${node}.${counts[node]}`);
      if (mine) mine.state = word.startsWith("r") ? "done" : "given up";
      open.delete(node);
    }
    for (const { pays } of sends ?? []) {
      const payer = pays && requests.get(pays.join("."));
      if (payer) payer.messages += 1;
    }
  }
  return [...requests.values()];
}
