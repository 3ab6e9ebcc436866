// What one moment between threads looks like: places, registers, store buffers, and the source.

import { h, put } from "./dom.js";
import { edges } from "./edges.js";

/** Replace everything in an element. If one of its buttons has the focus, the button in its place has it then. */
export function refill(element, ...children) {
  const place = [...element.querySelectorAll("button")].indexOf(document.activeElement);
  put(element, children);
  const buttons = element.querySelectorAll("button");
  if (place >= 0) buttons[Math.min(place, buttons.length - 1)]?.focus();
}

/** A table with a head. @param {string[]} head @param {Element[]} rows */
const table = (head, rows) => h("table", {}, h("thead", {}, h("tr", {}, head.map((it) => h("th", { scope: "col" }, it)))), h("tbody", {}, rows));

const cell = (value, changed) => h(changed ? "td.changed" : "td", {}, value);

/** Where each process is. */
export function places(moment, before) {
  return table(["process", "place", "section"], moment.places.map(([place, section], process) => h(`tr.${section}`, {},
    h("th", { scope: "row" }, `P${process}`),
    cell(place, before && before.places[process][0] !== place),
    h(!moment.right && section === "inside" ? "td.over" : "td", {}, section))));
}

/** The memory. */
export function registers(moment, before) {
  return table(["register", "value"], moment.registers.map(([name, value], index) => h("tr", {},
    h("th", { scope: "row" }, name), cell(value, before && before.registers[index][1] !== value))));
}

/** The writes of each process that have not reached the memory, the oldest first. */
export function buffers(moment, before) {
  const text = (writes) => writes.map(([name, value]) => `${name} := ${value}`).join(", ") || "empty";
  return table(["process", "writes that wait, oldest first"], moment.buffers.map((writes, process) => h("tr", {},
    h("th", { scope: "row" }, `P${process}`), cell(text(writes), before && text(before.buffers[process]) !== text(writes)))));
}

/**
 * The arms of the step function: the places that each is about, and its lines.
 * @param {string[]} lines
 */
function armsOf(lines) {
  const indent = (line) => line.search(/\S/);
  return lines.flatMap((line, from) => {
    const pattern = /^\s*(At::.*?)(?: if .*)?=>/.exec(line);
    if (!pattern) return [];
    const places = [...pattern[1].matchAll(/At::(\w+)/g)].map(([, place]) => place);
    // A body in braces ends where a line is not indented more than its pattern.
    const end = line.endsWith("{") ? lines.findIndex((it, at) => at > from && it && indent(it) <= indent(line)) : from;
    return [{ places, from, to: end < 0 ? from : end }];
  });
}

/** The source of an algorithm: what the last step ran is marked, and lightly the code at which each process is. */
export function source() {
  const list = edges(h("ol.code", { tabindex: 0, "aria-label": "Source of the algorithm" }));
  let [shown, arms] = [null, []];
  const draw = (known, moment, before) => {
    if (shown !== known) {
      const lines = known.source.split("\n").filter((line) => !line.startsWith("//!"));
      arms = armsOf(lines);
      put(list, lines.map((line) => h("li", {}, line.replace(/^( {4})+/, (spaces) => " ".repeat(spaces.length / 2)))));
      shown = known;
    }
    const name = ([place]) => /^\w+/.exec(place)?.[0];
    const here = new Set(moment.places.map(name));
    // A write that reaches the memory is no step of the code.
    const ran = before && !moment.memory ? name(before.places[moment.process]) : null;
    for (const item of list.querySelectorAll(".acted")) item.classList.remove("acted", "hit");
    for (const { places: all, from, to } of arms) {
      const hit = all.includes(ran);
      if (!hit && !all.some((place) => here.has(place))) continue;
      for (let line = from; line <= to; line += 1) {
        list.children[line].classList.add("acted");
        if (hit) list.children[line].classList.add("hit");
      }
    }
  };
  const follow = () => {
    const first = list.querySelector(".hit") ?? list.querySelector(".acted");
    if (first) list.scrollTop = first.offsetTop - list.clientHeight / 3;
  };
  return { element: list, draw, follow };
}
