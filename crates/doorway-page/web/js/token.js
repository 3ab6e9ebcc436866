// The token of the command, which the address of the page brings. Where other users of the machine can read the address, as in the
// arguments of a browser, it has a ticket, which is exchanged for the token once.

/** What a part of an address stands for. @param {string} text */
export function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error(`This address is damaged: a % in '${text.slice(0, 40)}' does not begin a sign. Copy the whole address.`);
  }
}

/**
 * Take the token out of the address, and out of the address bar. What else the address names comes without it.
 * @returns {Promise<{token: string, rest: string}|null>}
 */
export async function arrived() {
  const found = location.hash.match(/^#([tk])=([0-9a-f]{32})(?:&(.*))?$/);
  if (!found) return null;
  const [, kind, word, rest = ""] = found;
  history.replaceState(null, "", location.pathname);
  return { token: kind === "t" ? word : await exchange(word), rest };
}

async function exchange(ticket) {
  const answer = await fetch("/api/token", { method: "POST", headers: { "x-doorway-ticket": ticket } });
  const told = await answer.json();
  if (!answer.ok) throw new Error(`The page may not show anything, because ${told.error}.`);
  return told.token;
}
