// Home: a shelf of stories, ordered by paper, and every algorithm.

import { h } from "./dom.js";

const ENDS = { violation: "goes wrong", stuck: "deadlock", starved: "starvation" };

/** The way back to the moment that this browser showed last, at this port. */
function last() {
  const [address, what] = (localStorage.getItem("doorway.last") ?? "").split("\n");
  return address.startsWith("#/") ? h("p.last", {}, "Go on where you were: ", h("a", { href: address }, what)) : null;
}

/**
 * @param {any[]} cards @param {Map<string, any>} catalogue
 * @returns {HTMLElement}
 */
export function shelf(cards, catalogue) {
  const papers = new Map();
  for (const card of cards) {
    const { paper } = catalogue.get(card.algorithm);
    papers.set(paper, [...(papers.get(paper) ?? []), card]);
  }
  for (const algorithm of catalogue.values()) if (!papers.has(algorithm.paper)) papers.set(algorithm.paper, []);
  const year = (paper) => [...catalogue.values()].find((it) => it.paper === paper)?.year ?? 0;
  const sorted = [...papers].sort(([a], [b]) => year(a) - year(b));
  return h("div.shelf", {},
    h("h1", {}, "Stories"),
    h("p.lead", {}, "Each story is a run of the shipped algorithm. Open one, choose which message arrives next, " +
      "go back, and ask whether it can still go wrong."),
    last(),
    sorted.map(([paper, stories]) => h("section.paper", {},
      h("h2", {}, paper, " ", h("span.year", {}, year(paper) || "")),
      h("p.algorithms", {}, [...catalogue.values()].filter((it) => it.paper === paper).map((it) => [
        h(`a.name${it.refuted ? ".refuted" : ""}`, { href: `#/lab/${it.name}+n=3/?at=0`, title: it.refuted ?? it.summary }, it.name), " ",
      ])),
      h("ul.cards", {}, stories.map((card) => h(`li.card${card.ends ? ".ends" : ""}`, {},
        h("a", { href: `#/story/${encodeURIComponent(card.id)}` }, card.title),
        h("p", {}, card.about),
        h("p.foot", {}, h("code", {}, card.algorithm), card.ends ? h("strong", {}, ENDS[card.ends]) : null)))))));
}
