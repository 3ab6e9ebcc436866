// The laboratory's one moment: which story, which step, and how to get to another.

import { Refusal } from "./server.js";
import { Story } from "./story.js";
import { playAll, tellAll, wordsOf } from "./tell.js";
import * as url from "./url.js";

/**
 * Everything that the panels draw. Panels are told by `draw(moved)` that the moment has changed;
 * `moved` is 1 for a single step forward, which may be animated.
 */
export class Lab {
  /** @param {any} home  where the world lives: the server or a file */
  constructor(home) {
    this.home = home;
    /** @type {Story|null} */
    this.story = null;
    this.at = 0;
    /** @type {Story[]} other ways that were taken */
    this.branches = [];
    [this.pick, this.cone] = ["oldest", false];
    /** Whether the effect of a step is hidden until it is asked for. */
    this.predict = false;
    /** The next step, if its effect is hidden; else 0. */
    this.asked = 0;
    [this.playing, this.speed] = [0, 2];
    /** @type {((moved: number) => void)[]} */
    this.panels = [];
    this.onerror = (_error) => {};
    /** What the list says about each algorithm. */
    this.catalogue = new Map();
    /** Everything about the algorithms of the stories so far. */
    this.known = new Map();
    [this.busy, this.queue] = [0, Promise.resolve()];
  }

  /** Everything about the algorithm of the story; null if the list does not have it. */
  get algorithm() { return this.known.get(this.story?.frame.algorithm) ?? null; }

  /** Do something that may be refused, after everything before it. A refusal becomes a sentence. */
  attempt(work) {
    this.busy += 1;
    const done = this.queue.then(async () => {
      try {
        const result = await work();
        this.onerror(null);
        return result;
      } catch (error) {
        this.pause();
        if (error.name !== "AbortError") this.onerror(error);
        return undefined;
      } finally {
        this.busy -= 1;
      }
    });
    this.queue = done;
    return done;
  }

  /** Call the home about the moment; if it has forgotten the story, tell it again first. */
  async about(call) {
    const { story, at } = this;
    try {
      return await call({ key: story.key, at: Math.min(at, story.steps.length) });
    } catch (error) {
      if (!(error instanceof Refusal) || error.status !== 410) throw error;
      const again = await playAll(this.home, story.frame.run, story.words());
      story.key = again.key;
      return call({ key: story.key, at });
    }
  }

  /** Show a story that a link names. */
  async link({ run, steps = "", at, print }) {
    const story = await playAll(this.home, run, steps);
    await this.#enter(story, at ?? story.steps.length);
    if (story.frame.broken) throw new Refusal(`The story goes no further than this: ${story.frame.broken}.`, 0);
    this.#compare(print, story);
  }

  /** Say so if the code no longer tells what it told when the link was made. */
  #compare(print, story) {
    const from = url.differs(print, story.steps);
    if (from) throw new Refusal(`The code has changed since this link was made: the story differs from about step ${from} on.`, 0);
  }

  /** Show a script or a run that has happened: with its place, if the place says all of it, and the step to show. */
  async open(telling, { place, past, at, print } = {}) {
    const story = new Story(telling);
    await tellAll(this.home, story, wordsOf(telling.words ?? ""));
    if (place) story.place = { at: place, length: story.steps.length, past };
    await this.#enter(story, at ?? (story.ends ? story.steps.length : 0));
    this.#compare(print, story);
    return story;
  }

  async #enter(story, at) {
    const { algorithm } = story.frame;
    if (!this.known.has(algorithm) && this.catalogue.has(algorithm)) {
      this.known.set(algorithm, await this.home.algorithm(algorithm));
    }
    this.pause();
    this.branches = [];
    this.asked = 0;
    this.story = story;
    this.show(at);
  }

  /** Show the moment after `at` steps. To predict, one step on first asks, and then moves. */
  show(at) {
    const next = Math.max(0, Math.min(at, this.story.steps.length));
    const moved = next - this.at;
    if (moved) this.asked = this.predict && moved === 1 && !this.asked ? next : 0;
    if (!this.asked) this.at = next;
    for (const draw of this.panels) draw(moved);
  }

  /** What can happen at this moment; null until it is known. */
  get choices() { return this.story.choices.get(this.at) ?? null; }

  /** Ask what can happen at an earlier moment. */
  async learnChoices() {
    const { story, at } = this;
    if (story.choices.get(at) || story.frame.names) return;
    story.choices.set(at, await this.about((place) => this.home.choices(place)));
    if (this.story === story && this.at === at) this.show(at);
  }

  /**
   * Let something happen. In the middle of a story another choice begins a branch.
   * @param {string|(() => string|undefined)} wanted  a step, or a function that finds it in time
   */
  take(wanted) {
    return this.attempt(async () => {
      await this.learnChoices();
      const { story, at } = this;
      const word = typeof wanted === "function" ? wanted() : wanted;
      if (!word) return undefined;
      if (story.steps[at]?.do === word) return this.show(at + 1);
      this.asked = 0;
      await this.#grow((place) => this.home.step(place, word));
      return undefined;
    });
  }

  /** Let a rule pick steps. In a run that has happened nothing can be picked. */
  go(until) {
    if (this.story.frame.names) return undefined;
    return this.attempt(() => this.#grow((place) => this.home.go(place, until, this.pick)));
  }

  async #grow(call) {
    const { at } = this;
    const told = await this.about(call);
    if (told.broken) throw new Refusal(`That cannot happen: ${told.broken}.`, 0);
    if (!told.steps.length) return;
    if (at < this.story.steps.length) {
      this.branches = [this.story, ...this.branches].slice(0, 20);
      this.story = this.story.branch(at);
    }
    this.story.grow(told);
    this.show(told.steps.length === 1 ? at + 1 : this.story.steps.length);
  }

  /** Append known steps, as those of a counterexample, without leaving the moment. */
  append(words) {
    return this.attempt(async () => {
      const { at } = this;
      await this.#grow((place) => this.home.step(place, words));
      this.show(at);
    });
  }

  /** Go to another branch, at the step where it parted from this one. */
  switchTo(branch) {
    this.branches = this.branches.map((it) => (it === branch ? this.story : it));
    const at = branch.parting(this.story);
    this.story = branch;
    this.show(Math.min(at + 1, branch.steps.length));
  }

  /** One step on: along the story, or by the rule at its end. */
  forward() {
    if (this.at < this.story.steps.length) return this.show(this.at + 1);
    return this.go("1");
  }

  back() { this.pause(); this.show(this.at - 1); }

  /** Play or pause; show the effect of a step that is hidden. */
  play() {
    if (this.asked) return this.show(this.asked);
    if (this.playing) return this.pause();
    const next = async () => {
      const { story, at } = this;
      await this.forward();
      const stopped = story === this.story && at === this.at;
      if (stopped || this.story.violation(this.at)) this.pause();
      else if (this.playing) this.playing = setTimeout(next, 1000 / this.speed);
    };
    this.playing = setTimeout(next, 0);
    return this.show(this.at);
  }

  pause() {
    if (!this.playing) return;
    clearTimeout(this.playing);
    this.playing = 0;
    this.show(this.at);
  }

  /** The link to this moment: its choices; or its place, if nothing can be chosen in it, or if its title and notes are wanted. */
  async address(placed) {
    const { story, at } = this;
    const print = url.print(story.steps);
    if (story.frame.names || placed) return url.step(story.place.at, at, url.passing(story.place.at) ? "" : print);
    return url.write({ run: story.frame.run, steps: story.words(), at, print });
  }
}
