//! What is wrong with a screen: what axe finds, and facts about the picture.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::driver::{Browser, Theme};
use crate::skip::skip;

/// What is wrong with the picture: text that is too small, panels that overlap or stick out, text
/// in a drawing with the colour of the shape behind it, and marks that look like all the rest.
const FACTS: &str = "
  // What watches the sizes of its panels acts in the next frame.
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const wrong = [];
  const wide = document.documentElement.clientWidth;
  const over = document.documentElement.scrollWidth - wide;
  if (over > 1) wrong.push(`the page is ${over} px wider than its window`);
  // A class reads from far away.
  const least = document.body.matches('.present') ? 16 : 12;
  for (const element of document.querySelectorAll('main *, header *, footer *')) {
    const box = element.getBoundingClientRect();
    if (!box.width || !box.height) continue;
    const own = [...element.childNodes].some((it) => it.nodeType === 3 && it.data.trim());
    const size = parseFloat(getComputedStyle(element).fontSize);
    const small = own && size < least - 0.1;
    if (small) wrong.push(`${element.tagName}.${element.className}: ${size} px`);
  }
  const panels = [...document.querySelectorAll('.panel, #main > section, header, footer')]
    .filter((it) => it.offsetHeight && getComputedStyle(it).position !== 'sticky');
  panels.forEach((one, at) => panels.slice(at + 1).forEach((other) => {
    if (one.contains(other)) return;
    const [a, b] = [one, other].map((it) => it.getBoundingClientRect());
    const w = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const h = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    const [name, beside] = [one, other].map((it) => it.getAttribute('aria-label') ?? it.className);
    if (w > 1 && h > 1) wrong.push(`${name} and ${beside} overlap by ${w} x ${h}`);
  }));
  const pen = document.createElement('canvas').getContext('2d');
  for (const list of document.querySelectorAll('select:not([multiple])')) {
    const style = getComputedStyle(list);
    pen.font = style.font;
    // Beside the text are its padding, the border, and an arrow that is about as wide as a letter.
    const around = ['paddingLeft', 'paddingRight', 'borderLeftWidth', 'borderRightWidth'];
    const edge = around.reduce((sum, name) => sum + parseFloat(style[name]), 14);
    const name = list.selectedOptions[0]?.textContent ?? '';
    const out = pen.measureText(name).width + edge - list.getBoundingClientRect().width;
    if (list.offsetWidth && out > 1) wrong.push(`'${name}' is cut off by ${out.toFixed(1)} px`);
  }
  const apart = (name, boxes) => boxes.forEach((one, at) => boxes.slice(at + 1).forEach((other) => {
    const w = Math.min(one.right, other.right) - Math.max(one.left, other.left);
    const h = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
    if (w > 1 && h > 1) wrong.push(`${name} overlap by ${w.toFixed(1)} x ${h.toFixed(1)}`);
  }));
  const boxes_of = (root, selector) => [...root.querySelectorAll(selector)]
    .map((it) => it.getBoundingClientRect()).filter((it) => it.width);
  for (const picture of document.querySelectorAll('svg.network, svg.ring')) {
    const nodes = boxes_of(picture, '.body');
    nodes.forEach((one, at) => nodes.slice(at + 1).forEach((other) => {
      const x = one.left + one.right - other.left - other.right;
      const y = one.top + one.bottom - other.top - other.bottom;
      const over = (one.width + other.width - Math.hypot(x, y)) / 2;
      if (over > 1) wrong.push(`two nodes overlap by ${over.toFixed(1)}`);
    }));
    apart('two messages', boxes_of(picture, '.pill'));
    for (const node of nodes) for (const pill of boxes_of(picture, '.pill')) {
      apart('a message and a node', [node, pill]);
    }
    apart('two numbers', boxes_of(picture, '.label'));
    const frame = picture.getBoundingClientRect();
    for (const part of picture.querySelectorAll('text, .body, .cell, .row')) {
      const box = part.getBoundingClientRect();
      const out = Math.max(frame.left - box.left, box.right - frame.right,
        frame.top - box.top, box.bottom - frame.bottom);
      if (box.width && out > 1.5) wrong.push(`${part.textContent} sticks out by ${out.toFixed(1)}`);
    }
  }
  for (const hit of document.querySelectorAll('.code .hit, .rules .ran')) {
    const scroller = hit.closest('ol');
    // Of several lines that are far from each other, the first one is shown.
    if (!scroller.offsetHeight || hit !== scroller.querySelector('.hit, .ran')) continue;
    const [line, frame] = [hit, scroller].map((it) => it.getBoundingClientRect());
    const end = Math.min(line.bottom, line.top + frame.height);
    const out = Math.max(frame.top - line.top, end - frame.bottom);
    if (out > 1) wrong.push(`${hit.textContent.trim()} is cut off by ${out.toFixed(1)}`);
  }
  for (const arrow of document.querySelectorAll('svg.network .waits')) {
    const matrix = arrow.getScreenCTM();
    const long = arrow.getTotalLength();
    const points = Array.from({ length: 50 }, (_, point) =>
      arrow.getPointAtLength((long * point) / 49).matrixTransform(matrix));
    for (const node of document.querySelectorAll('svg.network .node')) {
      if (arrow.dataset.ends.split(' ').includes(node.id.slice(5))) continue;
      const box = node.querySelector('.body').getBoundingClientRect();
      const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
      const near = Math.min(...points.map((it) => Math.hypot(it.x - x, it.y - y)));
      if (near < box.width / 2 + 2) wrong.push(`an arrow passes behind ${node.id}`);
    }
  }
  const veil = document.querySelector('.spacetime .future');
  for (const stub of document.querySelectorAll('.spacetime .stub')) {
    const [begin, now] = [stub, veil].map((it) => it.getBoundingClientRect().left);
    const below = stub.compareDocumentPosition(veil) & Node.DOCUMENT_POSITION_FOLLOWING;
    if (begin < now && below) wrong.push('a message under way lies under the veil of the future');
  }
  apart('two names of lanes', boxes_of(document, '.lanes span'));
  for (const table of document.querySelectorAll('.panel table')) {
    if (table.closest('.tablebox')) continue;
    const [right, edge] = [table, table.closest('.panel')]
      .map((it) => it.getBoundingClientRect().right);
    const out = right - edge;
    if (out > 1) wrong.push(`a table sticks out of its panel by ${out.toFixed(1)}`);
  }
  for (const image of document.querySelectorAll('main img')) {
    const { width, naturalWidth: whole } = image;
    if (width < whole - 1) wrong.push(`a picture with text has ${width} of its ${whole} px`);
  }
  const light = (colour) => {
    const parts = colour.match(/[\\d.]+/g).map(Number).slice(0, 3).map((it) => it / 255);
    const line = (it) => (it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = parts.map(line);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [least, most] = [light(one), light(other)].sort((a, b) => a - b);
    return (most + 0.05) / (least + 0.05);
  };
  const page = getComputedStyle(document.body).backgroundColor;
  for (const text of document.querySelectorAll('main svg text')) {
    const box = text.getBoundingClientRect();
    if (!box.width || !text.textContent.trim()) continue;
    const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
    const style = getComputedStyle(text);
    const shapes = [...text.parentNode.children].filter((it) => it.matches('rect, circle'));
    const shape = shapes.filter((it) => getComputedStyle(it).fill !== 'none').findLast((it) => {
      const { left, right, top, bottom } = it.getBoundingClientRect();
      return left <= x && x <= right && top <= y && y <= bottom;
    });
    // A text with an outline stands on the outline.
    const behind = shape ? getComputedStyle(shape).fill : page;
    const sharp = contrast(style.fill, style.stroke !== 'none' ? style.stroke : behind);
    if (sharp < 4.5) wrong.push(`'${text.textContent}' has a contrast of ${sharp.toFixed(1)}`);
  }
  const marks = {
    '.rules .ran': '.rules li:not(.ran)',
    '.schedule .ran': '.schedule li:not(.ran)',
    '.schedule .again:not(.ran)': '.schedule li:not(.again, .ran)',
    '.code .acted': '.code li:not(.acted)',
    '.code .hit': '.code .acted:not(.hit)',
    'td.changed': '.knows td:not(.changed)',
    'tr[aria-current]': 'tbody tr:not([aria-current])',
    '.choice.taken': '.choice:not(.taken)',
    '[aria-pressed=true]': 'header button:not([aria-pressed=true])',
    '.node.holds .body': '.node:not(.holds) .body',
    '.node.waiting .body': '.node:not(.waiting, .holds) .body',
  };
  // Forced colours give a transparent background and a coloured one the colour of the page.
  const own = (it) => getComputedStyle(it).backgroundColor;
  const clear = (it) => /^rgba.*, 0\\)$/.test(own(it));
  const ground = (it) => (!it ? 'none' : clear(it) ? ground(it.parentElement) : own(it));
  const shows = ['fontWeight', 'borderStyle', 'outlineStyle', 'fill', 'strokeDasharray'];
  const seen = (it) => [ground(it), ...shows.map((name) => getComputedStyle(it)[name])].join();
  for (const [marked, other] of Object.entries(marks)) {
    const [one, two] = [marked, other].map((it) => document.querySelector(it));
    if (one && two && seen(one) === seen(two)) wrong.push(`${marked} looks like ${other}`);
  }
  return wrong.slice(0, 5);
";

impl Browser {
    /// What axe and the facts say against the screen in each theme. The window keeps the light one.
    pub(crate) fn wrong_in_any_theme(&self, screen: &str) -> Vec<String> {
        let look = |theme: Theme| {
            self.theme(theme);
            self.wrong_with(&format!("{screen}, {}", theme.name()))
        };
        Theme::ALL.into_iter().flat_map(look).collect()
    }

    /// What axe and the facts say against the screen, each with its name.
    pub(crate) fn wrong_with(&self, screen: &str) -> Vec<String> {
        let found = self.axe(screen).into_iter().map(|what| format!("{screen}: {what}"));
        self.facts(screen).into_iter().chain(found).collect()
    }

    /// What the facts say against the screen, each with its name.
    pub(crate) fn facts(&self, screen: &str) -> Vec<String> {
        texts(&self.run(FACTS)).into_iter().map(|what| format!("{screen}: {what}")).collect()
    }

    /// What axe finds wrong with the screen. Without axe this finds nothing, and says so.
    pub(crate) fn axe(&self, screen: &str) -> Vec<String> {
        let Some(path) = std::env::var_os("AXE").map(PathBuf::from) else {
            skip(&format!("{screen}: AXE does not name the file of axe"));
            return Vec::new();
        };
        if self.run("return Boolean(globalThis.axe)") == false {
            let axe = std::fs::read_to_string(path).expect("the file is there");
            // Put into the page by the tools of the browser: its policy allows no other script.
            self.devtools("Runtime.evaluate", &json!({ "expression": axe }));
        }
        texts(&self.run(
            "const found = await axe.run(); \
             return found.violations.map((it) => it.id + ': ' + it.nodes.map((node) => \
             node.target.join(' ') + ' ' + node.failureSummary).slice(0, 3).join(' | '));",
        ))
    }
}

fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().expect("a list").iter();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}
