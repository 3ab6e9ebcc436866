// A sign at the edges of what scrolls: where there is more, the content fades out.

/**
 * Let an element show at which of its edges there is more than it shows. Its left edge has no sign: the first column of
 * a table stays there.
 * @template {Element} E
 * @param {E} scroller
 */
export function edges(scroller) {
  const look = () => {
    const { scrollTop, scrollLeft, clientWidth, clientHeight, scrollWidth, scrollHeight } = scroller;
    scroller.classList.toggle("above", scrollTop > 1);
    scroller.classList.toggle("below", scrollTop + clientHeight < scrollHeight - 1);
    scroller.classList.toggle("beyond", scrollLeft + clientWidth < scrollWidth - 1);
  };
  scroller.classList.add("edges");
  scroller.addEventListener("scroll", look, { passive: true });
  const size = new ResizeObserver(look);
  const watch = () => {
    size.disconnect();
    // Of a long list, the first parts tell enough.
    for (const element of [scroller, ...[...scroller.children].slice(0, 40)]) size.observe(element);
  };
  // What it shows may be replaced.
  new MutationObserver(watch).observe(scroller, { childList: true });
  watch();
  return scroller;
}
