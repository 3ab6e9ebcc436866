// Long stories are told in several calls.

import { Refusal } from "./server.js";
import { Story } from "./story.js";

/** The most steps in one call. */
const CHUNK = 2000;

/** The steps of a link, one by one. @param {string} text @returns {string[]} */
export const wordsOf = (text) => text.match(/[A-Za-z][^A-Za-z]*/g) ?? [];

/** Play a story from its beginning. @param {any} home @param {string} run @param {string} steps */
export async function playAll(home, run, steps) {
  const words = wordsOf(steps);
  if (words.join("") !== steps) throw new Refusal(`'${steps.slice(0, 20)}' is not a list of steps.`, 0);
  const story = new Story(await home.play(run, words.slice(0, CHUNK).join("")));
  await tellAll(home, story, words);
  return story;
}

/** Tell the rest of a story. @param {any} home @param {Story} story @param {string[]} words */
export async function tellAll(home, story, words) {
  while (story.steps.length < words.length && !story.frame.broken) {
    const next = words.slice(story.steps.length, story.steps.length + CHUNK).join("");
    const told = await home.step({ key: story.key }, next);
    story.extend(told);
    if (told.broken) story.frame.broken = told.broken;
  }
}
