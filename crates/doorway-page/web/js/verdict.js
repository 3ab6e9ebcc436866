// A violation in words.

/** What is wrong, for people; of a deadlock also why each node waits, as sentences. */
export function verdict({ property, text, waits = [], circle = [] }) {
  const name = property === "stuck" ? "deadlock" : property;
  const why = waits.map((it) => `${it.text[0].toUpperCase()}${it.text.slice(1)}.`);
  const round = circle.length ? [`They wait in a circle: ${[...circle, circle[0]].join(" → ")}.`] : [];
  return { head: `${name.toUpperCase()}: ${text}.`, why: [...why, ...round] };
}
