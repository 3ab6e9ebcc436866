// Ways to the moments that matter: entries, violations, and what caused a step.

/** The next entry, or the last one before this moment. @param {import("./lab.js").Lab} lab @param {1|-1} direction */
export function entry(lab, direction) {
  const at = lab.story.entry(lab.at, direction);
  if (at) return lab.show(at);
  return direction > 0 ? lab.show(lab.story.steps.length) || lab.go("entry") : lab.show(0);
}

/** The next violation of the story; if it has none, go on until there is one. @param {import("./lab.js").Lab} lab */
export function violation(lab) {
  const { story, at } = lab;
  const next = story.steps.findIndex((step, index) => index >= at && step.violation) + 1;
  if (next) return lab.show(next);
  const last = story.steps.length;
  return story.violation(last) && at < last ? lab.show(last) : lab.go("violation");
}

/** Show only the causes of the step on screen, or all steps. @param {import("./lab.js").Lab} lab */
export function causes(lab) {
  lab.cone = !lab.cone;
  lab.show(lab.at);
}
