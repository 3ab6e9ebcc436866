// A story as the page keeps it: every step, and how to see the moment after any of them.

/**
 * @typedef {Object} Flight  a message and what became of it
 * @property {number} id
 * @property {number} from
 * @property {number} to
 * @property {string} text
 * @property {number} sent       the step that sent it; 0 at the beginning
 * @property {number[]} arrived  the steps at which it arrived
 * @property {number|null} lost  the step at which the network lost it
 * @property {number|null} ended the step after which it is no longer under way
 * @property {[number, number]} [pays]
 */

import { plain } from "./dom.js";

/** The first word of a message is its kind. @param {string} text */
export const kindOf = (text) => text.match(/^[A-Za-z0-9]+/)?.[0] ?? text;

const APART = 64;

export class Story {
  /** @param {any} telling  what the home told: the frame, and the first steps */
  constructor(telling) {
    /** What real nodes have recorded are the texts of strangers. @type {(text: string) => string} */
    this.tame = telling.names ? plain : String;
    this.frame = { ...telling, algorithm: this.tame(telling.algorithm), run: this.tame(telling.run), names: telling.names?.map(plain) };
    this.n = telling.group.n;
    this.key = telling.key;
    this.steps = [];
    /** @type {Map<number, Flight>} */
    this.flights = new Map();
    /** The steps of each node, in order. */
    this.acts = Array.from({ length: this.n }, () => []);
    /** What was under way after 0, 64, 128 ... steps. */
    this.kept = [];
    this.choices = new Map();
    this.notes = telling.notes ?? [];
    this.round = telling.round ?? null;
    this.ends = telling.ends ?? null;
    this.title = telling.title ?? "";
    /** Where it was opened, how many steps it has there, and if nothing can be chosen in it, what it is for the server. @type {{at: string, length: number, past: any}|null} */
    this.place = null;
    for (const { node, sends } of telling.opening) this.#send(node, sends, 0);
    this.kept.push(new Set(this.flights.keys()));
    this.extend(telling);
  }

  /** Add the steps of a telling that follows the last step. */
  extend(telling) {
    this.key = telling.key;
    for (const step of telling.steps) this.#add(step);
    this.choices.set(this.steps.length, telling.choices);
    this.stuck = telling.stuck;
  }

  /** Go on with new steps. What was known of the end of the story is no longer about its end. */
  grow(telling) {
    [this.round, this.ends] = [null, null];
    this.extend(telling);
  }

  /** A story with the first steps of this one, to go on in another way. */
  branch(at) {
    const frame = { ...this.frame, key: this.key, steps: this.steps.slice(0, at), choices: null, title: this.title };
    const branch = new Story({ ...frame, notes: [], round: null, ends: null });
    branch.choices.clear();
    if (this.choices.has(at)) branch.choices.set(at, this.choices.get(at));
    branch.stuck = null;
    return branch;
  }

  #send(node, sends, sent) {
    for (const { id, to, text, pays } of sends ?? []) {
      const flight = { id, from: node, to, text: this.tame(text), pays, sent, arrived: [], lost: null, ended: null };
      this.flights.set(id, flight);
    }
  }

  #add(step) {
    this.steps.push(step);
    const now = this.steps.length;
    this.acts[step.node - 1].push(now);
    this.#send(step.node, step.sends, now);
    const flight = this.flights.get(step.took);
    if (flight && !step.lost?.includes(step.took)) {
      flight.arrived.push(now);
      if (!step.do.startsWith("u")) flight.ended = now;
    }
    for (const id of step.lost ?? []) {
      const gone = this.flights.get(id);
      if (gone) gone.ended = now;
      // Other messages are never received because their receiver has crashed, or because they would change nothing.
      if (gone && id === step.took) gone.lost = now;
    }
    if (now % APART === 0) this.kept.push(this.#underWay(now));
  }

  #underWay(at) {
    const from = Math.min(Math.floor(at / APART), this.kept.length - 1);
    const ids = new Set(this.kept[from]);
    for (let step = from * APART + 1; step <= at; step += 1) {
      const { sends, took, lost, do: word } = this.steps[step - 1];
      for (const send of sends ?? []) ids.add(send.id);
      if (took !== undefined && !word.startsWith("u")) ids.delete(took);
      for (const id of lost ?? []) ids.delete(id);
    }
    return ids;
  }

  /** The messages under way after `at` steps. @returns {Flight[]} */
  underWay(at) {
    return [...this.#underWay(at)].map((id) => this.flights.get(id)).filter(Boolean);
  }

  /** The last step of a node up to `at`; 0 if it has taken none. */
  lastAct(node, at) {
    const acts = this.acts[node - 1];
    let [low, high] = [0, acts.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (acts[middle] <= at) low = middle + 1;
      else high = middle;
    }
    return low ? acts[low - 1] : 0;
  }

  /** The state of a node after `at` steps. */
  state(node, at) {
    const act = this.lastAct(node, at);
    return act ? this.steps[act - 1].state : this.frame.base[node - 1];
  }

  /** The nodes after `at` steps. */
  states(at) {
    return Array.from({ length: this.n }, (_, node) => this.state(node + 1, at));
  }

  /** The violation after `at` steps, if there is one. */
  violation(at) {
    const step = this.steps[at - 1];
    if (step?.violation) return step.violation;
    if (at === this.steps.length) return this.stuck ?? this.ends;
    return null;
  }

  /** Steps as a link names them. */
  words(at = this.steps.length) {
    return this.steps.slice(0, at).map((step) => step.do).join("");
  }

  /** The step of the next entry, or of the one before; 0 if there is none. */
  entry(at, direction) {
    for (let step = at + direction; step > 0 && step <= this.steps.length; step += direction) {
      if (this.steps[step - 1].entered) return step;
    }
    return 0;
  }

  /** How many steps this story shares with another one. */
  parting({ steps }) {
    const own = this.steps.findIndex((step, at) => step.do !== steps[at]?.do);
    return own < 0 ? this.steps.length : own;
  }

  /** What a node is called. */
  name(node) { return this.frame.names?.[node - 1] ?? `node ${node}`; }

  /** What a step begins with, without its effects. */
  cause(at) {
    const step = this.steps[at - 1];
    const flight = this.flights.get(step.took);
    const about = flight ? `${flight.text} from ${flight.from}` : "";
    const verbs = {
      a: "asks", s: "asks to share", r: "leaves", w: "gives up", c: "crashes", f: "forgets the lock",
      d: `receives ${about}`, u: `receives ${about}, and a copy stays under way`,
      x: `never gets ${about}: it is lost`, k: `learns that ${step.do.split("-")[1]} crashed`,
    };
    return `${this.name(step.node)} ${verbs[step.do[0]]}`;
  }

  /** What happened in a step, as a sentence. */
  sentence(at) {
    const step = this.steps[at - 1];
    if (!step) return this.frame.names ? this.#standing() : "The beginning.";
    if (step.say) return this.tame(step.say);
    const parts = [this.cause(at)];
    const sends = new Map();
    for (const { to, text } of step.sends ?? []) sends.set(text, [...(sends.get(text) ?? []), to]);
    const all = (to) => (to.length > 3 && to.length === this.n - 1 ? "all others" : to.join(", "));
    for (const [text, to] of sends) parts.push(`sends ${text} to ${all(to)}`);
    if (step.entered) parts.push("enters");
    if (step.violation) parts.push(`VIOLATION: ${step.violation.text}`);
    return `${parts.join("; ")}.`;
  }

  /** How a recording begins: the lock may be in use already. */
  #standing() {
    const of = (phase) => this.states(0).flatMap((state, node) => (phase(state) ? [this.name(node + 1)] : []));
    const [inside, waiting] = [of((it) => it.held > 0), of((it) => it.phase === "waiting")];
    const parts = [inside.length && `inside: ${inside.join(", ")}`, waiting.length && `waiting: ${waiting.join(", ")}`].filter(Boolean);
    return parts.length ? `The beginning; ${parts.join("; ")}.` : "The beginning.";
  }

  /** The steps that are causes of what a node knows after step `at`. */
  cone(at) {
    const cone = new Set();
    const todo = [at];
    while (todo.length) {
      const step = todo.pop();
      if (step < 1 || cone.has(step)) continue;
      cone.add(step);
      const { node, took } = this.steps[step - 1];
      todo.push(this.lastAct(node, step - 1), this.flights.get(took)?.sent ?? 0);
    }
    return cone;
  }
}
