// The calls of the live page: the documented HTTP of a node, with the token of the operator.

import { arrived, decoded } from "./token.js";

const KEY = "doorway.live.token";
const LAB = "doorway.live.lab";

/**
 * Keep the token of the address with which `doorway top --page` opens the page. Such an address also says that the same server
 * has a laboratory.
 * @returns {Promise<string>}  what the names of the locks begin with that the command was asked for
 */
export async function takeToken() {
  const came = await arrived();
  const found = came?.rest.match(/^lab(?:&prefix=(.*))?$/);
  if (!found) return "";
  setToken(came.token);
  sessionStorage.setItem(LAB, "yes");
  return decoded(found[1] ?? "");
}

/** Whether the server of this page also has a laboratory. */
export const hasLab = () => sessionStorage.getItem(LAB) !== null;

/** @param {string} token  an empty one signs out */
export function setToken(token) {
  if (token) sessionStorage.setItem(KEY, token);
  else sessionStorage.removeItem(KEY);
}

export const hasToken = () => sessionStorage.getItem(KEY) !== null;

/** An answer that the page shows as a sentence. */
export class Refusal extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function ask(path, body, signal) {
  const headers = {};
  const token = sessionStorage.getItem(KEY);
  if (token) headers.authorization = `Bearer ${token}`;
  if (body) headers["content-type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, {
      method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), cache: "no-store", signal,
    });
  } catch {
    throw new Refusal("The node does not answer. The page asks again every second.", 0);
  }
  if (answer.ok) return answer;
  const told = await answer.json().catch(() => ({}));
  throw new Refusal(told.text ?? told.error ?? `The node answered ${answer.status}.`, answer.status);
}

const lock = (name) => `/v1/locks/${encodeURIComponent(name)}`;

export const group = async () => (await ask("/v1/group")).json();
export const list = async (prefix) =>
  (await ask(`/v1/locks?group=true&order=wait&prefix=${encodeURIComponent(prefix)}`)).json();
export const inspect = async (name) => (await ask(lock(name))).json();
export const breakLock = async (name, fence) => (await ask(`${lock(name)}/break`, { fence })).json();

/** What the members send each other about a lock in this time, and which members are missing. */
export async function record(name, ms) {
  const answer = await ask(`${lock(name)}/record`, { for_ms: ms });
  return { text: await answer.text(), missing: answer.headers.get("doorway-missing") ?? "" };
}

/** What happens at the node, as it happens: server-sent events, after one that says that the stream is open. @param {Object<string, string>} query @param {AbortSignal} signal */
export async function* events(query, signal) {
  const answer = await ask(`/v1/events?${new URLSearchParams(query)}`, undefined, signal);
  yield { kind: "open" };
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (text + value).split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const line = (name) => part.match(new RegExp(`^${name}: ?(.*)$`, "m"))?.[1];
      if (line("event")) yield { kind: line("event"), ...JSON.parse(line("data")) };
    }
  }
}

/** Hand a recording over to the laboratory. @returns {Promise<string>} its place there */
export async function handOver(name, text) {
  const { number } = await (await ask("/api/read", { lock: name, text })).json();
  return `&/recorded/${number}`;
}

/**
 * The address of a place in the laboratory, for another tab. It has a ticket, which is worth nothing once it is used: the
 * browser may keep the address of a tab.
 * @param {string} place
 */
export async function labAddress(place) {
  try {
    const { ticket } = await (await ask("/api/ticket", {})).json();
    return `/#k=${ticket}${place}`;
  } catch {
    return `/#t=${sessionStorage.getItem(KEY)}${place}`;
  }
}
