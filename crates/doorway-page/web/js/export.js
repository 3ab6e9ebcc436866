// Files. They are all made in Rust; a PNG is the SVG, painted.

import { h, put } from "./dom.js";

const FORMATS = [
  ["script", "Script", "for doorway replay and doorway lab", "txt"],
  ["svg", "SVG", "space-time diagram", "svg"],
  ["png", "PNG", "the same diagram as pixels", "png"],
  ["mermaid", "Mermaid", "sequence diagram for documents", "mmd"],
  ["shiviz", "ShiViz", "log with vector clocks", "shiviz"],
  ["perfetto", "Perfetto", "trace for ui.perfetto.dev", "json"],
  ["csv", "CSV", "a row for each step", "csv"],
  ["text", "Text", "lines for a terminal", "txt"],
  ["atlas", "Atlas", "every world of this group in one HTML file", "html"],
];

/** @param {Blob} blob @param {string} name */
export function save(blob, name) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Paint an SVG. @param {Blob} svg */
export async function paint(svg) {
  const address = URL.createObjectURL(svg);
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const scale = Math.min(2, 16_000 / Math.max(image.naturalWidth, image.naturalHeight));
    const canvas = h("canvas", { width: Math.ceil(image.naturalWidth * scale), height: Math.ceil(image.naturalHeight * scale) });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve) => { canvas.toBlob(resolve, "image/png"); });
  } finally {
    URL.revokeObjectURL(address);
  }
}

/** The story as a file. @param {import("./lab.js").Lab} lab @param {string} format */
export async function fileOf(lab, format) {
  const made = format === "png" ? "svg" : format;
  const past = lab.story.place?.past;
  const drawn = past ? await lab.home.draw({ past }, made) : await lab.about((place) => lab.home.draw({ ...place, at: undefined }, made));
  return format === "png" ? paint(drawn) : drawn;
}

/** What only a story has in which something can be chosen. */
const CHOSEN = ["script", "csv", "atlas"];

/** @param {import("./lab.js").Lab} lab @returns {Node[]} the content of a dialog */
export function exports(lab) {
  const formats = FORMATS.filter(([format]) => !lab.story.frame.names || !CHOSEN.includes(format));
  const status = h("p.quiet", { role: "status" });
  const make = async (format, ending) => {
    put(status, document.createTextNode("making the file …"));
    try {
      save(await fileOf(lab, format), `${lab.story.frame.algorithm}.${ending}`);
      put(status, document.createTextNode("The file is with your downloads."));
    } catch (error) {
      put(status, document.createTextNode(error.message));
    }
  };
  return [
    h("h2", { id: "dialog-title" }, "Export"),
    h("div.formats", {}, formats.map(([format, label, what, ending]) => h("button.format", {
      type: "button", "data-format": format, onclick: () => make(format, ending),
    }, h("strong", {}, label), h("span", {}, what)))),
    status,
  ];
}
