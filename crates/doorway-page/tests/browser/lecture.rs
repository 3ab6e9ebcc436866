//! A quarter of an hour with a class, as docs/page.md describes it.

use doorway_page::server::First;

use crate::Stage;
use crate::driver::Look;

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn the_lecture_of_the_documentation_can_be_given() {
    let stage = Stage::new(Look::BEAMER, First::Shelf);
    // 1. The story of the shelf, presented.
    let found = stage.browser.run(
        "const links = [...document.querySelectorAll('.card a')]; \
         const link = links.find((it) => it.innerText.includes('each node locks itself first') \
           || it.closest('.card').innerText.includes('each node locks itself first')); \
         link.click(); return Boolean(link);",
    );
    assert_eq!(found, true);
    stage.browser.wait("the story", "return doorwayLab.story && !doorwayLab.busy");
    stage.browser.press(&["p", "Home"]);
    stage.until(0);
    let steps = stage.browser.run("return doorwayLab.story.steps.length").as_u64().unwrap();
    for step in 1..=steps {
        stage.browser.press(&["ArrowRight"]);
        stage.until(step);
    }
    assert!(stage.text(".sentence").contains("STUCK"), "{}", stage.text(".sentence"));
    stage.browser.picture("lecture-1024");
    // 2. The class chooses.
    stage.browser.press(&["Home"]);
    stage.until(0);
    stage.browser.press(&["1"]);
    stage.until(1);
    stage.browser.press(&["1"]);
    stage.until(2);
    // 3. Can it still go wrong?
    stage.browser.press(&["p"]);
    let answer = "return document.querySelector('.answer')?.innerText";
    let ask = |wanted: &str| {
        stage.browser.press(&["h"]);
        let script = format!("{answer}.startsWith('{wanted}')");
        stage.browser.wait(wanted, &script);
    };
    ask("Still possible");
    stage.browser.picture("lecture-here-1024");
    // 4. The repaired text.
    stage.browser.run(
        "const select = document.querySelector('select[aria-label=Algorithm]'); \
         select.value = 'maekawa-sequential'; select.dispatchEvent(new Event('change'));",
    );
    let repaired = "return doorwayLab.story?.frame.algorithm === 'maekawa-sequential'";
    stage.browser.wait("the repaired text", repaired);
    stage.browser.run("document.activeElement.blur()");
    ask("Impossible from the beginning");
    // 5. The link for the exercise sheet.
    stage.browser.press(&["u"]);
    let link =
        stage.browser.wait("the link", "return document.querySelector('.address')?.innerText");
    let link = link.as_str().unwrap();
    assert!(link.contains("#/lab/maekawa-sequential+n=2/"), "{link}");
    assert!(!link.contains(stage.token.text()), "the token stays here");
}
