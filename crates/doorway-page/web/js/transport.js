// The player at the bottom: step, back, play, a slider over all steps, and the step as a sentence.

import { h, icon, put } from "./dom.js";
import { causes, entry, violation } from "./seek.js";
import { verdict } from "./verdict.js";

/** @param {import("./lab.js").Lab} lab @param {HTMLElement} element */
export function transport(lab, element) {
  const button = (name, label, onclick) => h("button", { type: "button", "aria-label": label, title: label, onclick }, icon(name));
  const play = button("play", "Play", () => lab.play());
  const slider = h("input.slider", {
    type: "range", min: 0, max: 0, value: 0, "aria-label": "Step",
    oninput: (event) => { lab.pause(); lab.show(Number(event.target.value)); },
  });
  const count = h("span.count", {});
  const seed = h("input.seed", { type: "number", min: 0, value: 7, "aria-label": "Seed of the dice", oninput: () => choose() });
  const pick = h("select", { "aria-label": "Who chooses the next step", onchange: () => choose() },
    [["oldest", "oldest message"], ["fair", "longest waiting"], ["dice", "dice, seed"]].map(([value, label]) => h("option", { value }, label)));
  const choose = () => {
    seed.hidden = pick.value !== "dice";
    lab.pick = seed.hidden ? pick.value : `dice:${Math.abs(Math.trunc(Number(seed.value)))}`;
  };
  choose();
  const cone = h("button.word", { type: "button", onclick: () => causes(lab), title: "Show only the causes of this step" }, "causes");
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
      button("before", "Entry before", () => entry(lab, -1)),
      button("after", "Next entry", () => entry(lab, 1)),
      h("button.word", { type: "button", onclick: () => violation(lab), title: "Go on to a violation" }, "violation"),
      cone, h("span.pick", {}, h("label", {}, "pick ", pick), " ", seed), speed),
    h("div.words", { tabindex: 0, role: "group", "aria-label": "What happened" }, sentence, why, note));
  return (_moved) => {
    const { story, at } = lab;
    element.hidden = !story;
    if (!story) return;
    // In a run that has happened nothing can be picked.
    pick.closest(".pick").hidden = Boolean(story.frame.names);
    slider.max = story.steps.length;
    slider.value = at;
    slider.setAttribute("aria-valuetext", `step ${at} of ${story.steps.length}`);
    count.textContent = `${at} of ${story.steps.length}`;
    const name = lab.playing ? "pause" : "play";
    play.replaceChildren(icon(name));
    cone.setAttribute("aria-pressed", lab.cone);
    play.setAttribute("aria-label", lab.playing ? "Pause" : "Play");
    put(why);
    if (lab.asked) {
      sentence.textContent = `Step ${lab.asked}: ${story.cause(lab.asked)}. What happens then? Press space.`;
      sentence.classList.remove("bad");
      return;
    }
    const wrong = story.violation(at);
    const told = at ? `Step ${at}: ${story.sentence(at)}` : story.sentence(0);
    const ending = wrong && !story.steps[at - 1]?.violation ? ` ${verdict(wrong).head}` : "";
    const round = story.round && at >= story.round[1] ? ` Steps ${story.round[0] + 1} to ${story.round[1]} can be repeated for ever.` : "";
    sentence.textContent = told + ending + round;
    sentence.classList.toggle("bad", Boolean(wrong));
    why.textContent = wrong ? verdict(wrong).why.join(" ") : "";
    const notes = story.notes.filter(([step]) => step <= at);
    const last = notes.at(-1)?.[0];
    note.textContent = notes.filter(([step]) => step === last).map(([, text]) => text).join(" ");
  };
}
