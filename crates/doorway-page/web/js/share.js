// Links for other people and other days: the address of a moment, and the command that opens it anywhere.

import { h } from "./dom.js";
import { passing } from "./url.js";

/** The command that opens a place on any machine: the port of the page is another one there. @param {string} address */
export const command = (address) => `doorway lab '${address.slice(address.indexOf("#")).replaceAll("'", "%27")}'`;

/**
 * Copy the link to the moment on the screen. Where that is not allowed, it is only shown.
 * @param {{ address(): string | Promise<string> }} place the laboratory, or the room of the threads
 * @returns {Promise<Node[]>} the content of a dialog
 */
export async function copied(place) {
  const address = new URL(await place.address(), location.href).href;
  const head = await navigator.clipboard?.writeText(address).then(() => "The link is copied", () => null);
  return [
    h("h2", { id: "dialog-title" }, head ?? "The link to this moment"),
    h("p.address", {}, address),
    ...(passing(address)
      ? [h("p", {}, "It opens as long as this command runs.")]
      : [h("p", {}, `It opens in this ${address.startsWith("file:") ? "file" : "tab"}. This opens it on any machine, also later:`),
        h("p.address.command", {}, command(address))]),
  ];
}

/** What a reader does when the server is gone: the link to the moment, and the command that opens it. @param {{ story?: unknown, address(): string | Promise<string> }} place */
export async function rescue(place) {
  const address = place.story ? await place.address() : location.hash;
  if (!address.startsWith("#/") || address === "#/" || passing(address)) return null;
  const line = command(address);
  const copy = h("button", { type: "button", onclick: () => navigator.clipboard?.writeText(line) }, "copy");
  return h("span.rescue", {}, h("code", {}, line), " ", copy, " ", h("a", { href: address }, "link to this moment"));
}
