// The fields above the threads: which algorithm, how many processes, and how memory behaves.

import { h, put } from "./dom.js";

/**
 * The fields. They are made once, so that they keep the focus.
 * @param {{all: any[], name: string, n: number, buffers: boolean, dropped: string}} state
 * @param {() => any} known  what is known of the algorithm
 * @param {(change: object) => void} begin
 */
export function plan(state, known, begin) {
  const toggle = (label, onchange) => h("label.switch", {}, h("input", { type: "checkbox", onchange }), label);
  const name = h("select", { onchange: (event) => begin({ name: event.target.value }) });
  const n = h("input", { type: "number", onchange: (event) => begin({ n: Number(event.target.value) }) });
  const store = toggle("store buffers, as on x86", (event) => begin({ buffers: event.target.checked }));
  const fences = h("span.fences", {});
  const leave = (letter, kept) => begin({ dropped: kept ? state.dropped.replace(letter, "") : state.dropped + letter });
  const draw = () => {
    const it = known();
    if (!name.options.length) put(name, state.all.map((one) => h("option", { value: one.name }, `${one.name}${one.lock ? "" : " (refuted)"}`)));
    [name.value, n.min, n.max, n.value] = [state.name, it.fewest, it.most, state.n];
    store.firstChild.checked = state.buffers;
    if (fences.dataset.of !== it.name) {
      put(fences, [...it.fences].map((letter) => toggle(`fence ${letter}`, (event) => leave(letter, event.target.checked))));
      fences.dataset.of = it.name;
    }
    [...it.fences].forEach((letter, index) => { fences.children[index].firstChild.checked = !state.dropped.includes(letter); });
  };
  const element = h("form.plan", { onsubmit: (event) => event.preventDefault() },
    h("label", {}, "algorithm", name), h("label", {}, "processes", n), store, fences);
  return { element, draw };
}
