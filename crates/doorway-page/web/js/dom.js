// Small helpers to make elements. Text is always set as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

/**
 * Make an HTML element.
 * @param {string} tag  the name, with classes behind dots: "div.panel.wide"
 * @param {Object<string, any>} [props]  attributes; functions are listeners: {onclick: f}
 * @param {...(Node|string|number|null|undefined|Array)} children
 * @returns {HTMLElement}
 */
export function h(tag, props, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(" ");
  return fill(element, props, children);
}

/**
 * Make an SVG element, as `h` makes one of HTML.
 * @param {string} tag
 * @param {Object<string, any>} [props]
 * @param {...any} children
 * @returns {SVGElement}
 */
export function s(tag, props, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElementNS(SVG, name);
  if (classes.length) element.setAttribute("class", classes.join(" "));
  return fill(element, props, children);
}

function fill(element, props, children) {
  for (const [key, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(key.slice(2), value);
    else if (key === "value") element.value = value;
    else if (key === "checked") element.checked = value;
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...children.flat(3).filter((it) => it !== null && it !== undefined && it !== false)
    .map((it) => (it instanceof Node ? it : String(it))));
  return element;
}

/**
 * Replace everything in an element.
 * @param {Element} element
 * @param {...any} children
 */
export function put(element, ...children) {
  element.replaceChildren(...children.flat(3).filter(Boolean));
  return element;
}

/** Set a text, if it is another one: what has not changed is not drawn again. @param {Element} element */
export function say(element, text) {
  if (element.textContent !== String(text)) element.textContent = text;
}

/**
 * Let an element have these children, and touch it only if they are others or in another order. What has the focus
 * keeps it.
 * @param {Element} element
 * @param {Element[]} children
 */
export function inOrder(element, children) {
  const focused = document.activeElement;
  const wanted = new Set(children);
  for (const child of [...element.children]) if (!wanted.has(child)) child.remove();
  children.forEach((child, index) => {
    if (element.children[index] !== child) element.insertBefore(child, element.children[index] ?? null);
  });
  if (focused instanceof HTMLElement && focused !== document.activeElement && element.contains(focused)) focused.focus();
}

/**
 * A text of a stranger: signs that turn the direction of reading are shown by their numbers, so that no name looks like
 * another one, and nothing beside it is turned.
 * @param {string} text
 */
export const plain = (text) => text.replace(/[\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/g,
  (sign) => `⟨U+${sign.codePointAt(0).toString(16).toUpperCase()}⟩`);

/** An icon: fonts do not have the signs of players everywhere, so they are drawn. */
export function icon(name) {
  const shapes = {
    first: "M4 3v10M13 3 6 8l7 5z",
    before: "M8 3 2 8l6 5zM11 4h3v8h-3z",
    back: "M11 3 4 8l7 5z",
    step: "M5 3l7 5-7 5z",
    after: "M2 4h3v8H2zM8 3l6 5-6 5z",
    last: "M12 3v10M3 3l7 5-7 5z",
    play: "M4 2l10 6-10 6z",
    pause: "M4 3h3v10H4zM9 3h3v10H9z",
  };
  return s("svg.icon", { viewBox: "0 0 16 16", "aria-hidden": "true" }, s("path", { d: shapes[name] }));
}

/** @param {number} count @param {string} noun @param {string} [plural] */
export function many(count, noun, plural) {
  return `${count.toLocaleString("en")} ${count === 1 ? noun : plural ?? noun + "s"}`;
}

/** Whether motion is unwanted. */
export const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
