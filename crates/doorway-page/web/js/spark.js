// A small curve: how many grants a second the group has made in the last ten minutes.

import { h, s } from "./dom.js";

/** Bars, and the seconds that each of them stands for. */
const [BARS, SECONDS] = [60, 10];
const [WIDTH, HEIGHT] = [180, 26];

const rate = (value) => value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 });

export function sparkline() {
  const curve = s("path", {});
  const picture = s("svg.spark", { role: "img", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT }, s("path.floor", { d: `M0 ${HEIGHT - 0.5}H${WIDTH}` }), curve);
  const text = h("span", {});
  const element = h("span.sparkbox", {}, picture, " ", text);
  /** Grants by the number of the bar. */
  const bars = new Map();
  let last = null;

  /** @param {number} grants  all grants so far @param {number} now  milliseconds */
  function add(grants, now) {
    const bar = Math.floor(now / 1000 / SECONDS);
    // A member that was started again counts from 0.
    const more = last === null ? 0 : Math.max(0, grants - last);
    last = grants;
    bars.set(bar, (bars.get(bar) ?? 0) + more);
    for (const old of bars.keys()) if (old <= bar - BARS) bars.delete(old);
    const most = Math.max(...bars.values());
    const wide = WIDTH / BARS;
    const path = [...bars].map(([at, count]) => {
      const tall = most ? (HEIGHT - 2) * (count / most) : 0;
      return tall ? `M${(at - bar + BARS - 1) * wide} ${HEIGHT}v${-Math.max(1, tall).toFixed(1)}h${wide - 0.5}V${HEIGHT}z` : "";
    }).join("");
    if (curve.getAttribute("d") !== path) curve.setAttribute("d", path);
    const before = (bars.get(bar - 1) ?? 0) / SECONDS;
    const words = `${rate(before)} grants/s, most ${rate(most / SECONDS)}`;
    if (text.textContent !== words) {
      text.textContent = words;
      picture.setAttribute("aria-label", `Grants per second in the last ten minutes, as far as this page has seen them: ${words}`);
    }
  }
  return { element, add };
}
