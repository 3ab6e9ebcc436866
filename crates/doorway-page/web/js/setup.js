// The bar on top: which algorithm, which group; and what can be done with the moment.

import { h, put } from "./dom.js";

/**
 * @param {import("./lab.js").Lab} lab
 * @param {{start: (run: string) => any, home: () => any}} to
 * @param {HTMLElement[]} buttons
 */
export function setup(lab, to, buttons) {
  const algorithm = h("select", { "aria-label": "Algorithm", onchange: () => start(true) });
  const nodes = h("input.nodes", { type: "number", min: 1, max: 100, value: 3, "aria-label": "Nodes", onchange: () => start() });
  const channel = h("select", { "aria-label": "Channels", onchange: () => start() },
    ["fifo", "unordered"].map((value) => h("option", { value }, value)));
  const more = h("input.more", { type: "text", "aria-label": "Other options of the group", placeholder: "options", onchange: () => start() });
  const title = h("span.story", {});
  const named = (label, control) => h("label", {}, h("span.label", {}, label), control);
  const group = h("form.group", { onsubmit: (event) => { event.preventDefault(); start(); } },
    named("algorithm ", algorithm), named("nodes ", nodes), named("channels ", channel), more);
  const bar = h("div.inner", {},
    h("a.brand", { href: "#/" }, h("strong", {}, "Doorway"), " lab"), group, title, h("div.buttons", {}, buttons));

  function start(fresh = false) {
    const name = algorithm.value;
    const words = [name, `n=${nodes.value || 3}`];
    if (!fresh && channel.value !== lab.catalogue.get(name).channel) words.push(`channel=${channel.value}`);
    if (!fresh && more.value.trim()) words.push(more.value.trim());
    to.start(words.join(" "));
  }

  const draw = () => {
    const { story } = lab;
    group.hidden = !story || Boolean(story.frame.names);
    if (!algorithm.options.length && lab.catalogue.size) {
      const papers = new Map();
      for (const it of lab.catalogue.values()) {
        const label = it.refuted ? "Wrong as printed" : `${it.family}`;
        papers.set(label, [...(papers.get(label) ?? []), it.name]);
      }
      put(algorithm, [...papers].map(([label, names]) => h("optgroup", { label }, names.map((name) => h("option", { value: name }, name)))));
    }
    title.textContent = story ? (story.frame.names ? story.frame.run : story.title.replace("script", "")) : "";
    if (!story || story.frame.names) return;
    const { group: g, run, algorithm: name } = story.frame;
    algorithm.value = name;
    nodes.value = g.n;
    channel.value = g.channel;
    const rest = run.split("\n")[0].split(" ").slice(1).filter((word) => !/^(n|channel)=/.test(word));
    more.value = rest.join(" ");
    const known = lab.algorithm?.options ?? [];
    more.title = known.map(([key, example]) => `${key}=${example}`).join("\n");
    algorithm.title = lab.algorithm?.refuted ? `refuted: ${lab.algorithm.refuted}` : lab.algorithm?.summary ?? "";
  };
  return { element: bar, draw };
}
