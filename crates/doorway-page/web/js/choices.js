// What can happen next: every choice is one key or one click away. Faults are switches.

import { h, put, s } from "./dom.js";
import { light } from "./pills.js";
import { kindOf } from "./story.js";
import { verdict } from "./verdict.js";

/** At most this many choices are shown, unless the reader wants all. */
const MOST = 40;

const HEADS = {
  message: "Messages", client: "Clients", learn: "News of crashes", crash: "Crashes",
};

/** @param {import("./lab.js").Lab} lab */
export function choices(lab) {
  const find = h("input.find", {
    type: "search", placeholder: "find a choice", "aria-label": "Find a choice", hidden: true,
    oninput: () => draw(),
  });
  const list = h("div.list", {});
  const faults = { lose: false, double: false, crash: false };
  const toggle = (name, label) => h("label.switch", {},
    h("input", { type: "checkbox", onchange: (event) => { faults[name] = event.target.checked; draw(); } }), label);
  const switches = h("fieldset.switches", {}, h("legend", {}, "Faults"),
    toggle("lose", "lose"), toggle("double", "double"), toggle("crash", "crash"));
  const element = h("section.panel.next", { "aria-label": "What happens next" },
    h("h2", {}, "What happens next"), find, list, lab.home.lacks ? h("p.quiet", {}, lab.home.lacks) : switches);
  /** The words behind the keys 1 to 9. */
  let keys = [];
  /** The story of which all choices are shown. */
  let whole = null;

  function draw() {
    const { story, at } = lab;
    if (!story) return;
    keys = [];
    const over = story.violation(at);
    const all = lab.choices;
    if (story.frame.names) {
      switches.hidden = true;
      put(list, over ? told(over) : null, h("p.quiet", {}, story.frame.past));
      return;
    }
    switches.hidden = false;
    if (!all) {
      put(list, h("p.quiet", {}, "…"));
      clearTimeout(draw.timer);
      draw.timer = setTimeout(() => lab.learnChoices().catch(lab.onerror), 60);
      return;
    }
    const sought = find.value.trim().toLowerCase();
    find.hidden = all.length <= 12 && !sought;
    const fits = (choice) => (choice.kind !== "crash" || faults.crash)
      && (!sought || words(choice).toLowerCase().includes(sought));
    const possible = all.filter(fits);
    const groups = new Map();
    const most = whole === story ? possible.length : MOST;
    for (const choice of possible.slice(0, most)) {
      groups.set(choice.kind, [...(groups.get(choice.kind) ?? []), button(choice)]);
    }
    const showAll = () => { whole = story; draw(); };
    put(list,
      over ? told(over) : null,
      [...groups].map(([kind, buttons]) => [h("h3", {}, HEADS[kind]), buttons]),
      possible.length > most ? h("button.all", { type: "button", onclick: showAll }, `show all ${possible.length}`) : null,
      possible.length || over ? null : h("p.quiet", {}, sought ? "No choice has this in it." : "Nothing can happen."));
  }

  const told = (over) => {
    const { head, why } = verdict(over);
    return h("div.verdict", {}, h("p.violated", {}, head), why.map((sentence) => h("p", {}, sentence)));
  };

  const words = (choice) => (choice.kind === "message"
    ? `${choice.text} ${choice.from} → ${choice.node}` : `node ${choice.node} ${choice.text}`);

  /** A dot in the colour of the message, as the network has it. */
  const mark = ({ text }) => s("svg.mark", { viewBox: "0 0 10 10", "aria-hidden": "true" },
    s(`circle.f${(lab.story.frame.colours[kindOf(text)] ?? 6) % 7}`, { cx: 5, cy: 5, r: 5 }));

  function button(choice) {
    const [word, lose, double] = choice.do;
    keys.push(word);
    const key = keys.length <= 9 ? h("kbd", {}, keys.length) : null;
    const taken = lab.story.steps[lab.at]?.do === word;
    const main = h(`button.choice${taken ? ".taken" : ""}`, {
      type: "button", onclick: () => lab.take(word), "data-do": word,
      onpointerenter: () => light(choice.id, true), onpointerleave: () => light(choice.id, false),
      onfocus: () => light(choice.id, true), onblur: () => light(choice.id, false),
      title: taken ? "the story goes on with this" : null,
    }, key, choice.kind === "message" ? mark(choice) : null, words(choice));
    const fault = (on, name, what) => (on && what
      ? h("button.fault", { type: "button", onclick: () => lab.take(what), "aria-label": `${name}: ${words(choice)}` }, name)
      : null);
    return h("div.row", {}, main, fault(faults.lose, "lose", lose), fault(faults.double, "double", double));
  }

  return {
    element,
    draw,
    /** Take the choice behind a key. */
    press: (number) => lab.take(() => keys[number - 1]),
    find: () => { find.hidden = false; find.focus(); },
    faults: () => switches.querySelector("input").focus(),
  };
}
