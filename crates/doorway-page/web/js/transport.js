// The player at the bottom: step, back, play, a slider over all steps, and the step as a sentence.

import { h, icon, put } from "./dom.js";
import { verdict } from "./story.js";

/** @param {import("./lab.js").Lab} lab @param {HTMLElement} element */
export function transport(lab, element) {
  const button = (name, label, onclick) => h("button", { type: "button", "aria-label": label, title: label, onclick }, icon(name));
  const play = button("play", "Play", () => lab.play());
  const slider = h("input.slider", {
    type: "range", min: 0, max: 0, value: 0, "aria-label": "Step",
    oninput: (event) => { lab.pause(); lab.show(Number(event.target.value)); },
  });
  const count = h("span.count", {});
  const pick = h("select", { "aria-label": "Who chooses the next step", onchange: (event) => { lab.pick = event.target.value; } },
    [["oldest", "oldest message"], ["fair", "longest waiting"], ["dice:7", "dice, seed 7"], ["dice:8", "dice, seed 8"]]
      .map(([value, label]) => h("option", { value }, label)));
  const speed = h("select", { "aria-label": "Steps a second", onchange: (event) => { lab.speed = Number(event.target.value); } },
    [0.5, 1, 2, 4, 8].map((value) => h("option", { value, selected: value === 2 }, `${value}/s`)));
  const sentence = h("p.sentence", { role: "status", "aria-live": "polite" });
  // Where there is no list of choices, as in present mode, this says who waits for whom.
  const why = h("p.why", {});
  const note = h("p.note", {});
  element.replaceChildren(
    h("div.controls", {},
      button("first", "First moment", () => lab.show(0)),
      button("back", "Back", () => lab.back()),
      play,
      button("step", "Step", () => lab.forward()),
      button("last", "Last moment", () => lab.show(lab.story.steps.length)),
      slider, count,
      h("button.word", { type: "button", onclick: () => lab.entry(1), title: "Go on to the next entry" }, "next entry"),
      h("label.pick", {}, "pick ", pick), speed),
    h("div.words", { tabindex: 0, role: "group", "aria-label": "What happened" }, sentence, why, note));
  return (_moved) => {
    const { story, at } = lab;
    element.hidden = !story;
    if (!story) return;
    slider.max = story.steps.length;
    slider.value = at;
    slider.setAttribute("aria-valuetext", `step ${at} of ${story.steps.length}`);
    count.textContent = `${at} of ${story.steps.length}`;
    const name = lab.playing ? "pause" : "play";
    play.replaceChildren(icon(name));
    play.setAttribute("aria-label", lab.playing ? "Pause" : "Play");
    put(why);
    if (lab.asked) {
      sentence.textContent = `Step ${lab.asked}: ${story.cause(lab.asked)}. What happens then? Press space.`;
      sentence.classList.remove("bad");
      return;
    }
    const violation = story.violation(at);
    const told = at ? `Step ${at}: ${story.sentence(at)}` : story.sentence(0);
    const ending = violation && !story.steps[at - 1]?.violation ? ` ${verdict(violation).head}` : "";
    const round = story.round && at >= story.round[1] ? ` Steps ${story.round[0] + 1} to ${story.round[1]} can be repeated for ever.` : "";
    sentence.textContent = told + ending + round;
    sentence.classList.toggle("bad", Boolean(violation));
    why.textContent = violation ? verdict(violation).why.join(" ") : "";
    const notes = story.notes.filter(([step]) => step <= at);
    const last = notes.at(-1)?.[0];
    note.textContent = notes.filter(([step]) => step === last).map(([, text]) => text).join(" ");
  };
}
