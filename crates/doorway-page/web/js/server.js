// The world behind the page: its home is the server. The atlas file has the same interface.

import { arrived } from "./token.js";

/** A refusal that the page shows as a sentence. */
export class Refusal extends Error {
  /** @param {string} message @param {number} status */
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

const AWAY = "The server of the page does not answer. Everything here is kept. Started with this moment, the command opens it in another tab:";
const STRANGE = "The server was started again and does not know this page. Open the address that it printed: its first screen leads to " +
  "this moment. This command opens it too:";

/** A refusal of a server that is gone. The page shows the way to its moment beside it. */
const away = (message, status) => Object.assign(new Refusal(message, status), { away: true });

/** Keep the token that the address brings, and show what else the address names. */
export async function takeToken() {
  const came = await arrived();
  if (!came) return;
  sessionStorage.setItem("doorway.token", came.token);
  const rest = came.rest ? `#${came.rest}` : sessionStorage.getItem("doorway.last") ?? "#/";
  history.replaceState(null, "", rest);
}

async function ask(path, body, signal) {
  const headers = { "x-doorway-token": sessionStorage.getItem("doorway.token") ?? "" };
  if (body !== undefined) headers["content-type"] = "application/json";
  let answer;
  try {
    answer = await fetch(`/api/${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw away(AWAY, 0);
  }
  if (answer.ok) return answer;
  if (answer.status === 401) throw away(STRANGE, 401);
  const told = await answer.json().catch(() => ({}));
  throw new Refusal(told.error ?? `The server answered ${answer.status}.`, answer.status);
}

const json = async (path, body) => (await ask(path, body)).json();

/** Read the lines of a job. Aborting the signal stops its work on the server. */
async function* lines(path, body, signal) {
  const answer = await ask(path, body, signal);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (text + value).split("\n");
    text = parts.pop();
    for (const part of parts) {
      const line = JSON.parse(part);
      if (line.error) throw new Refusal(line.error, 200);
      yield line;
    }
  }
}

/**
 * The calls of the laboratory.
 *
 * A place is {key, at}: a story that the home remembers, and the number of steps to look at.
 */
export const server = {
  name: "server",
  algorithms: () => json("algorithms"),
  algorithm: (name) => json(`algorithms/${encodeURIComponent(name)}`),
  stories: () => json("stories"),
  first: () => json("first"),
  open: (what) => json("open", what),
  play: (run, steps) => json("play", { run, steps }),
  step: (place, steps) => json("step", { ...place, steps }),
  go: (place, until, by) => json("go", { ...place, until, by }),
  choices: (place) => json("choices", place),
  check: (place, question, signal) => lines("check", { ...place, ...question }, signal),
  recorded: (number) => json(`recorded/${encodeURIComponent(number)}`),
  run: (plan) => json("run", plan),
  compare: (plan, signal) => lines("compare", plan, signal),
  threads: () => json("threads"),
  walk: (story) => json("threads/walk", story),
  threadsCheck: (story, signal) => lines("threads/check", story, signal),
  draw: async (place, format) => (await ask("draw", { ...place, format })).blob(),
};
