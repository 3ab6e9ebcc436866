//! Every screen at the sizes of a desk, a beamer and a phone, in both themes: looked at by axe, and
//! checked by facts. Pictures go to `target/page` for people.

use doorway_page::server::First;
use serde_json::Value;

use crate::Stage;
use crate::driver::Look;

/// What is wrong with the picture: text that is too small, panels that overlap or stick out.
const FACTS: &str = "
  const wrong = [];
  const wide = document.documentElement.clientWidth;
  const over = document.documentElement.scrollWidth - wide;
  if (over > 1) wrong.push(`the page is ${over} px wider than its window`);
  for (const element of document.querySelectorAll('main *, header *, footer *')) {
    const box = element.getBoundingClientRect();
    if (!box.width || !box.height) continue;
    const own = [...element.childNodes].some((it) => it.nodeType === 3 && it.data.trim());
    const size = parseFloat(getComputedStyle(element).fontSize);
    if (own && size < 12) wrong.push(`${element.tagName}.${element.className}: ${size} px`);
  }
  const panels = [...document.querySelectorAll('.panel, header, footer')]
    .filter((it) => it.offsetHeight && getComputedStyle(it).position !== 'sticky');
  const boxes = panels.map((it) => [it.className, it.getBoundingClientRect()]);
  for (const [a, one] of boxes) for (const [b, other] of boxes) {
    if (a >= b) continue;
    const w = Math.min(one.right, other.right) - Math.max(one.left, other.left);
    const h = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
    if (w > 1 && h > 1) wrong.push(`${a} and ${b} overlap by ${w} x ${h}`);
  }
  return wrong.slice(0, 5);
";

const SCREENS: [(&str, &str, &str); 8] = [
    ("shelf", "#/", ""),
    ("moment", "#/lab/ricart-agrawala+n=4/a2d2-1d2-3a3d2-4d1-2d3-2d4-2d3-2d3-1?at=10", ""),
    ("quorums", "#/story/maekawa%2Fsection-5", "doorwayLab.show(30)"),
    ("tree", "#/story/raymond-tree%2Fchain", "doorwayLab.show(6)"),
    ("matrix", "#/lab/lamport+n=20/?at=0", "await doorwayLab.go('60')"),
    ("compare", "#/compare", ""),
    (
        "threads",
        "#/threads?name=peterson&n=2&steps=p0p1p0",
        "await new Promise((done) => \
      setTimeout(done, 300))",
    ),
    (
        "present",
        "#/story/ricart-agrawala%2Fconcurrent",
        "doorwayLab.show(7); \
      document.body.classList.add('present'); doorwayLab.show(7)",
    ),
];

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn every_screen_is_in_order_at_every_size_and_in_both_themes() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    let mut wrong: Vec<String> = Vec::new();
    for (name, place, script) in SCREENS {
        stage.browser.run("document.body.classList.remove('present')");
        stage.visit(place);
        stage.browser.run(script);
        for look in [Look::DESK, Look::BEAMER, Look::PHONE] {
            for dark in [false, true] {
                stage.browser.look(Look { dark, ..look });
                stage.browser.run(
                    "doorwayLab.story && doorwayLab.show(doorwayLab.at); \
                    await new Promise((done) => setTimeout(done, 120));",
                );
                let theme = if dark { "dark" } else { "light" };
                let screen = format!("{name}-{}-{theme}", look.width);
                stage.browser.picture(&screen);
                let facts = stage.browser.run(FACTS);
                let facts = facts.as_array().cloned().unwrap_or_default();
                let found = facts.iter().filter_map(Value::as_str).map(str::to_owned);
                let found = found.chain(stage.axe(&screen));
                wrong.extend(found.map(|what| format!("{screen}: {what}")));
            }
        }
        stage.browser.look(Look::DESK);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(stage.browser.log(), [""; 0]);
}
