// Keys. Single letters can be switched off, for people whose speech becomes keys.

import { h } from "./dom.js";

const HELP = [
  ["→ ←", "one step on, one step back"], ["space", "play, pause"], ["1 … 9", "choose what happens"],
  ["/", "find a choice"], ["Home End", "first moment, last moment"], ["[ ]", "entry before, entry after"],
  ["v", "go on to a violation"], ["c", "show only causes of this step"], ["h", "can this still go wrong?"],
  ["b", "branches"], ["f", "faults"], ["p", "present"], ["q", "present, and hide what a step does until space"], ["t", "light or dark"], ["u", "copy the link"],
  ["e", "export"], ["?", "this list"],
];

const off = () => localStorage.getItem("doorway.letters") === "off";

/**
 * @param {Object<string, () => any>} actions  what each key does
 * @param {(number: number) => any} choose
 */
export function keys(actions, choose) {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const target = /** @type {HTMLElement} */ (event.target);
    if (document.querySelector("dialog[open]")) return;
    const types = target.matches("input:not([type=range]):not([type=checkbox]), select, textarea");
    if (types) {
      if (event.key === "Escape") target.blur();
      return;
    }
    const pressed = target.matches("button, summary, a, input, label");
    if (pressed && (event.key === " " || event.key === "Enter")) return;
    if (target.matches("input[type=range]") && event.key.startsWith("Arrow")) return;
    const single = event.key.length === 1 && event.key !== " ";
    if (single && off() && event.key !== "?") return;
    const action = /^[1-9]$/.test(event.key) ? () => choose(Number(event.key)) : actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}

/** The list of keys, as the content of a dialog. */
export function help() {
  const letters = h("input", {
    type: "checkbox", checked: !off(),
    onchange: (event) => localStorage.setItem("doorway.letters", event.target.checked ? "on" : "off"),
  });
  return [
    h("h2", { id: "dialog-title" }, "Keys"),
    h("dl.keys", {}, HELP.map(([key, what]) => h("div", {}, h("dt", {}, key.split(" ").map((it) => (it === "…" ? " … " : h("kbd", {}, it)))), h("dd", {}, what)))),
    h("p", {}, h("label", {}, letters, " single letters are commands")),
  ];
}
