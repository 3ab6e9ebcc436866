// Compare: algorithms side by side. The rows arrive one by one.

import { h, put, s } from "./dom.js";
import { edges } from "./edges.js";
import { save } from "./export.js";

/** The link to the run behind one point of a curve. */
const runLink = (algorithm, x, { sweep, seed }) => `#/run?${new URLSearchParams({ algorithm, sweep, x, seed })}`;

/** What a link to a run names, as the server asks for it. @param {string} query */
export function planOf(query) {
  const asked = new URLSearchParams(query);
  return { algorithms: [asked.get("algorithm") ?? ""], sweep: asked.get("sweep") ?? "n", points: [Number(asked.get("x"))], seed: Number(asked.get("seed")) };
}

/** The points of a plot as links, to lie over its picture. */
function marks({ size: [width, height], marks: all }, plan) {
  return s("svg.marks", { viewBox: `0 0 ${width} ${height}` }, all.map(({ series, x, y, at }) => {
    const name = `Open the run of ${series} at ${short(x)}: ${short(y)} messages per entry`;
    return s("a", { href: runLink(series, x, plan), "aria-label": name }, s("title", {}, name), s("circle", { cx: at[0], cy: at[1], r: 9 }));
  }));
}

const short = (value) => (value === null || value === undefined ? "" : Number(value).toLocaleString("en", { maximumFractionDigits: 2 }));

/** @param {import("./lab.js").Lab} lab @param {any} home */
export function comparison(lab, home) {
  const names = h("select", { multiple: true, size: 10, "aria-label": "Algorithms" },
    [...lab.catalogue.values()].filter((it) => !it.refuted).map((it, index) => h("option", { value: it.name, selected: index < 3 }, it.name)));
  const sweep = h("select", { "aria-label": "What changes" }, [["n", "nodes"], ["load", "load"], ["delay", "delay"]].map(([value, label]) => h("option", { value }, label)));
  const seed = h("input", { type: "number", min: 0, value: 1, "aria-label": "Seed" });
  const points = h("input", { type: "text", placeholder: "usual", "aria-label": "Points, separated by commas" });
  const picture = h("div.plot", { tabindex: 0, role: "group", "aria-label": "Plot, scrollable" });
  const rows = h("tbody", {});
  const command = h("code", {});
  const status = h("p", { role: "status" });
  const head = ["algorithm", "x", "messages per entry", "±", "formula", "response time", "longest overtaking"];
  let running = null;

  const measure = h("button", {}, "measure");

  async function run() {
    const { signal } = running = new AbortController();
    measure.textContent = "stop";
    put(rows);
    put(picture);
    status.textContent = "";
    const plan = { algorithms: [...names.selectedOptions].map((it) => it.value), sweep: sweep.value, seed: Number(seed.value), points: points.value.split(/[\s,]+/).filter(Boolean).map(Number) };
    try {
      for await (const line of home.compare(plan, signal)) {
        signal.throwIfAborted();
        if (line.row) rows.append(row(line.row, plan));
        if (line.done) status.textContent = `${line.done} of ${line.total} points`;
        if (line.command) command.textContent = line.command;
        if (line.svg) {
          const image = h("img", { alt: "Messages per entry of each algorithm, with its formula" });
          image.src = URL.createObjectURL(new Blob([line.svg], { type: "image/svg+xml" }));
          const files = [["SVG", line.svg, "image/svg+xml", "compare.svg"], ["CSV", line.csv, "text/csv", "compare.csv"]];
          put(picture, h("div.plotted", {}, image, marks(line.places, plan)), h("p", {}, files.map(([label, text, type, name]) => [
            h("button", { type: "button", onclick: () => save(new Blob([text], { type }), name) }, `save ${label}`), " "])));
        }
      }
    } catch (error) {
      status.textContent = error.name === "AbortError" ? "Stopped: only the rows below are measured." : error.message;
    } finally {
      running = null;
      measure.textContent = "measure";
    }
  }

  const row = (it, plan) => h("tr", {}, h("th", { scope: "row" }, h("a", { href: runLink(it.algorithm, it.x, plan) }, it.algorithm)),
    [it.x, it.messages_per_entry, it.messages_ci, it.formula, it.response_time, it.overtakes_max].map((value) => h("td", {}, short(value))));

  const submit = (event) => {
    event.preventDefault();
    if (running) running.abort();
    else run();
  };
  const element = h("div.compare", {}, h("h1", {}, "Compare"),
    h("form.plan", { onsubmit: submit },
      h("label", {}, "algorithms", names),
      h("div.fields", {}, h("label", {}, "sweep ", sweep), h("label", {}, "points ", points), h("label", {}, "seed ", seed), measure, status)),
    h("div.result", {}, h("p", {}, command), picture),
    edges(h("div.tablebox", { tabindex: 0, role: "group", "aria-label": "Measurements, scrollable" }, h("table", {}, h("thead", {}, h("tr", {}, head.map((it) => h("th", { scope: "col" }, it)))), rows))));
  // The work takes one of the few places for jobs at the server.
  element.leave = () => running?.abort();
  return element;
}
