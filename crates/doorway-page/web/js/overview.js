// An overview of a long story: how busy each part of it is, where nodes enter, and where it goes wrong.

import { s } from "./dom.js";

/** A shorter story is seen as a whole anyway. */
const LONG = 150;

const [TALL, BAR] = [22, 3];

/** @param {import("./lab.js").Lab} lab */
export function overview(lab) {
  const [busy, entries, alarm, now] = ["busy", "entries", "alarm", "now"].map((name) => s(`path.${name}`, {}));
  const element = s("svg.overview", { role: "img", height: TALL }, busy, entries, alarm, now);
  let drawn = {};

  const draw = () => {
    const { story, at } = lab;
    const { steps } = story;
    element.toggleAttribute("hidden", steps.length < LONG);
    if (steps.length < LONG) return;
    const width = element.clientWidth || 600;
    const place = (step) => (step / steps.length) * width;
    if (drawn.story !== story || drawn.length !== steps.length || drawn.width !== width) {
      drawn = { story, length: steps.length, width };
      const bars = Array(Math.ceil(width / BAR)).fill(0);
      const [inside, wrong] = [new Set(), new Set()];
      steps.forEach((step, index) => {
        const bar = Math.min(bars.length - 1, Math.floor(place(index) / BAR));
        bars[bar] += step.sends?.length ?? 0;
        if (step.entered) inside.add(bar);
        if (step.violation) wrong.add(bar);
      });
      const most = Math.max(1, ...bars);
      busy.setAttribute("d", bars.map((count, bar) => (count ? `M${bar * BAR} ${TALL - 5}v${(-(TALL - 6) * count) / most}h${BAR - 1}V${TALL - 5}z` : "")).join(""));
      entries.setAttribute("d", [...inside].map((bar) => `M${bar * BAR} ${TALL - 3}h${BAR - 1}v3h${1 - BAR}z`).join(""));
      alarm.setAttribute("d", [...wrong].map((bar) => `M${bar * BAR + 1} 0V${TALL}`).join(""));
      element.setAttribute("aria-label", `Overview of ${steps.length} steps: messages, and below them entries`);
    }
    now.setAttribute("d", `M${place(at)} 0V${TALL}`);
  };
  element.addEventListener("click", (event) => {
    const box = element.getBoundingClientRect();
    lab.pause();
    lab.show(Math.round(((event.clientX - box.left) / box.width) * lab.story.steps.length));
  });
  return { element, draw };
}
