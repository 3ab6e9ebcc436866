// The world behind an atlas: a table of every world of one group, in the file itself. It has the
// interface of the server, as far as a file can have it.

import { Refusal } from "./server.js";

/**
 * @typedef {Object} Moment  a world with the numbers of its messages
 * @property {number} world
 * @property {number[]} ids
 * @property {([number, number]|undefined)[]} pays  for each of these messages, who pays: a node, and which of its requests
 * @property {{from: number, to: number, text: number, id: number}[]} rest  messages under way that would change nothing: a settled world leaves them out
 * @property {number[]} requests  how many requests each node has made
 * @property {number} sent   how many messages were sent so far
 * @property {boolean} over
 */

/** @param {any} atlas  what Rust wrote: see `story/atlas.rs` */
export function fileHome(atlas) {
  /** Stories by key: their moments and their steps. @type {Map<string, {moments: Moment[], steps: any[]}>} */
  const stories = new Map();
  const { frame, worlds, texts, states, causes, violations } = atlas.tables;

  function begin() {
    const ids = [];
    for (const { sends } of frame.opening) for (const { id } of sends) ids.push(id);
    const mail = worlds[0].mail.map((_, place) => ids[place] ?? place);
    // Messages that were sent at the beginning are free.
    const [pays, requests] = [mail.map(() => undefined), worlds[0].nodes.map(() => 0)];
    return { moments: [{ world: 0, ids: mail, pays, rest: [], requests, sent: Math.max(-1, ...mail, ...ids) + 1, over: false }], steps: [] };
  }

  /**
   * What can happen: a choice as the page shows it, and the edge that leads to the next world. A message that the world
   * leaves out has none: it arrives, and nothing changes. Messages of a channel are counted in the order of sending.
   */
  function possible(moment) {
    if (moment.over) return [];
    const page = worlds[moment.world];
    const mail = page.mail.map(([from, to, text], place) => ({ from, to, text, id: moment.ids[place], place }));
    const messages = [...mail, ...moment.rest].sort((a, b) => a.id - b.id).flatMap(({ from, to, text, id, place }, index, all) => {
      const older = all.slice(0, index).filter((it) => it.from === from && it.to === to).length;
      const edge = page.steps.find((it) => place !== undefined && it.mail === place);
      if ((place !== undefined && !edge) || (older && frame.group.channel === "fifo")) return [];
      const word = `d${from}-${to}${older ? `.${older + 1}` : ""}`;
      return [{ edge, choice: { kind: "message", node: to, from, id, text: texts[text], do: [word] } }];
    });
    const verbs = { a: "asks", s: "asks to share", r: "leaves", w: "gives up" };
    const clients = page.steps.filter((edge) => edge.mail === undefined)
      .map((edge) => ({ edge, choice: { kind: "client", node: edge.node, text: verbs[edge.verb] ?? edge.verb, do: [`${edge.verb}${edge.node}`] } }));
    const givesUp = ({ choice }) => Number(choice.do[0].startsWith("w"));
    return [...messages, ...clients.sort((a, b) => givesUp(a) - givesUp(b))];
  }

  /** How many requests each node has made after a step, and who pays for each message that it sends. */
  function charge(moment, { verb, node, mail, sends = [] }) {
    const asks = verb === "a" || verb === "s";
    const requests = moment.requests.map((count, place) => count + (asks && place + 1 === node ? 1 : 0));
    // A client that was inside from the beginning has made no request.
    const payer = (of) => (requests[of - 1] ? [of, requests[of - 1]] : undefined);
    const cause = mail === undefined ? payer(node) : moment.pays[mail];
    return { requests, fresh: sends.map(([, , served]) => (served ? payer(served) : cause)) };
  }

  function take(story, wanted) {
    const moment = story.moments.at(-1);
    const found = possible(moment).find((it) => it.choice.do[0] === wanted);
    if (!found) return `step ${story.steps.length + 1}: '${wanted}' cannot happen here`;
    const { edge, choice } = found;
    if (!edge) {
      const state = states[worlds[moment.world].nodes[choice.node - 1]];
      story.steps.push({ do: wanted, node: choice.node, took: choice.id, print: null, sends: [], state, rules: [], lines: [], hits: [] });
      story.moments.push({ ...moment, rest: moment.rest.filter((it) => it.id !== choice.id) });
      return null;
    }
    const gaveUp = edge.verb === "w" || story.steps.some((step) => step.node === edge.node && step.do.startsWith("w"));
    const { requests, fresh: payers } = charge(moment, edge);
    const sends = (edge.sends ?? []).map(([to, text], place) => ({ from: edge.node, to, text, id: moment.sent + place, pays: payers[place] }));
    const mail = worlds[moment.world].mail.map(([from, to, text], place) => ({ from, to, text, id: moment.ids[place], pays: moment.pays[place] }));
    const over = edge.violation !== undefined;
    const now = over ? mail : edge.from.map((origin) => (origin >= 0 ? mail[origin] : sends[-1 - origin]));
    const took = choice.kind === "message" ? choice.id : undefined;
    const ids = now.map((it) => it.id);
    const left = over ? [] : [...mail, ...sends].filter(({ id }) => id !== took && !ids.includes(id));
    story.steps.push({
      do: wanted, node: edge.node, took, entered: edge.entered, print: null,
      sends: sends.map(({ id, to, text, pays }) => ({ id, to, text: texts[text], pays })),
      violation: violations[edge.violation], state: states[edge.state], ...causes[(gaveUp ? edge.later : undefined) ?? edge.cause],
    });
    story.moments.push({
      world: edge.to, ids, pays: now.map((it) => it.pays), rest: [...moment.rest, ...left], requests, sent: moment.sent + sends.length, over,
    });
    return null;
  }

  const choices = (moment) => possible(moment).map((it) => it.choice);

  /** The deadlock that a moment is. While a message is under way, something can happen. */
  const stuckAt = ({ world, rest }) => (rest.length ? null : violations[worlds[world].stuck] ?? null);

  function tell(story, from, broken) {
    const key = story.steps.map((step) => step.do).join("") || "0";
    stories.set(key, story);
    const moment = story.moments.at(-1);
    const stuck = stuckAt(moment);
    const telling = { key, from, steps: story.steps.slice(from), choices: choices(moment), stuck, broken: broken ?? undefined };
    return from ? telling : { ...frame, ...telling };
  }

  function recall({ key, at }) {
    const story = stories.get(key);
    if (!story) throw new Refusal("This story is told again.", 410);
    const steps = Math.min(at ?? story.steps.length, story.steps.length);
    return { moments: story.moments.slice(0, steps + 1), steps: story.steps.slice(0, steps) };
  }

  function play(story, steps) {
    for (const wanted of steps.match(/[A-Za-z][^A-Za-z]*/g) ?? []) {
      const broken = take(story, wanted);
      if (broken) return broken;
    }
    return null;
  }

  /** A generator that gives the same numbers for the same seed. */
  const dice = (seed, count) => ((Math.imul(seed + 0x9e37, 0x85ebca6b) ^ Math.imul(count + 1, 0xc2b2ae35)) >>> 8);

  /** The step since which a choice can be made: the message was sent in it, or the client could do something else before. */
  const openSince = (steps, { kind, id, node }) => 1 + steps.findLastIndex(kind === "message"
    ? (step) => step.sends.some((it) => it.id === id)
    : (step) => step.node === node && (step.entered || !step.do.startsWith("d")));

  /** What a rule picks, as `pick.rs` does. No client gives up by a rule. */
  function picked({ moments, steps }, by) {
    const moment = moments.at(-1);
    const all = choices(moment).filter((it) => !it.do[0].startsWith("w"));
    if (by.startsWith("dice")) return all[dice(Number(by.slice(5)), steps.length) % all.length];
    const earliest = (list) => list.map((it) => [openSince(steps, it), it]).sort(([a], [b]) => a - b)[0]?.[1];
    const [messages, clients] = ["message", "client"].map((kind) => all.filter((it) => it.kind === kind));
    if (by === "fair") return earliest([...clients, ...messages.sort((a, b) => a.from - b.from || a.node - b.node)]);
    const asks = (it) => it.text.startsWith("asks");
    const ask = earliest(clients.filter(asks));
    const idle = worlds[moment.world].nodes.every((state) => states[state].phase === "outside");
    return (idle ? ask : undefined) ?? messages[0] ?? clients.find((it) => !asks(it)) ?? ask;
  }

  const extended = (place, from, broken, story) => ({ ...tell(story, from, broken), from });

  return {
    name: "file",
    lacks: `This file has no faults${atlas.algorithm.withdraws && !atlas.tables.withdrawing ? ", and no clients that give up" : ""}.`,
    algorithms: async () => [atlas.algorithm],
    algorithm: async () => atlas.algorithm,
    stories: async () => [],
    first: async () => tell(begin(), 0),
    open: async () => { throw new Refusal("An atlas has no shelf.", 404); },
    async play(run, steps) {
      if (run !== frame.run) throw new Refusal(`This file is about '${frame.run}' alone.`, 400);
      const story = begin();
      const broken = play(story, steps);
      return { ...frame, ...tell(story, 0, broken) };
    },
    async step(place, steps) {
      const story = recall(place);
      const from = story.steps.length;
      return extended(place, from, play(story, steps), story);
    },
    async go(place, until, by) {
      const story = recall(place);
      const from = story.steps.length;
      const most = Number(until) || 2000;
      while (story.steps.length - from < most) {
        const choice = picked(story, by);
        if (!choice || take(story, choice.do[0])) break;
        const { entered, violation } = story.steps.at(-1);
        const moment = story.moments.at(-1);
        const stuck = stuckAt(moment) !== null;
        const quiet = until === "quiet" && !worlds[moment.world].mail.length && !moment.rest.length;
        if (violation || (until === "entry" && entered) || (until === "violation" && stuck) || quiet) break;
      }
      return extended(place, from, null, story);
    },
    choices: async (place) => choices(recall(place).moments.at(-1)),
    check: null,
    draw: null,
  };
}

const data = document.getElementById("atlas");
if (data) globalThis.doorwayHome = fileHome(JSON.parse(data.textContent));
