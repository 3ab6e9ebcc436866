// The bar on top: which algorithm, which group; and what can be done with the moment.

import { h, put } from "./dom.js";

/**
 * @param {import("./lab.js").Lab} lab
 * @param {{start: (run: string, story?: {steps: string, at: number}, lost?: string) => any}} to
 * @param {HTMLElement[]} buttons
 */
export function setup(lab, to, buttons) {
  const algorithm = h("select", { "aria-label": "Algorithm", onchange: () => start({ fresh: true }) });
  const nodes = h("input.nodes", { type: "number", min: 1, max: 100, value: 3, "aria-label": "Nodes", onchange: () => start() });
  const channel = h("select", { "aria-label": "Channels", onchange: () => start({ story: true }) },
    ["fifo", "unordered"].map((value) => h("option", { value }, value)));
  const more = h("input.more", { type: "text", "aria-label": "Other options of the group", placeholder: "options", onchange: () => start() });
  const title = h("span.story", {});
  const named = (label, control) => h("label", {}, h("span.label", {}, label), control);
  const group = h("form.group", { onsubmit: (event) => { event.preventDefault(); start(); } },
    named("algorithm ", algorithm), named("nodes ", nodes), named("channels ", channel), more);
  const bar = h("div.inner", {},
    h("a.brand", { href: "#/" }, h("strong", {}, "Doorway"), " lab"), group, title, h("div.buttons", {}, buttons));

  /**
   * Go to the group that the bar describes. Another algorithm begins without the options of this one. Where the story can be
   * told in the new group, as over other channels, its steps are kept.
   */
  function start({ fresh = false, story = false } = {}) {
    const { run, group: { n } } = lab.story.frame;
    const [name, size, options] = [algorithm.value, Number(nodes.value) || 3, fresh ? "" : more.value.trim()];
    const words = [name, `n=${size}`];
    if (!fresh && channel.value !== lab.catalogue.get(name).channel) words.push(`channel=${channel.value}`);
    if (options) words.push(options);
    // The quorums of the group, if they are listed one by one.
    const lines = run.split("\n").slice(1);
    const keeps = !fresh && size === n && !options.includes("quorums=");
    const lost = !fresh && size !== n && lines.length
      ? `The quorums of the story were listed for ${n} nodes. This group has those that the algorithm makes by itself.` : "";
    const steps = story ? { steps: lab.story.words(), at: lab.at } : undefined;
    to.start([words.join(" "), ...(keeps ? lines : [])].join("\n"), steps, lost);
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
