//! A quarter of an hour with a class, as docs/page.md describes it.

use doorway_page::server::First;

use crate::Stage;
use crate::driver::Look;

/// Whether an element is shown and inside the window.
const ON_SCREEN: &str = "const on_screen = (element) => { \
    const box = element.getBoundingClientRect(); \
    return box.width > 0 && box.height > 0 && box.top >= 0 && box.bottom <= innerHeight; };";

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
    assert!(
        stage.text(".sentence").contains("DEADLOCK: nodes 1, 2 wait"),
        "{}",
        stage.text(".sentence")
    );
    let circle = "Node 2 waits for an answer from 1. They wait in a circle: 1 → 2 → 1.";
    assert!(stage.text(".why").contains(circle), "{}", stage.text(".why"));
    stage.browser.picture("lecture-1024");
    assert_eq!(stage.browser.facts("the deadlock, presented"), [""; 0]);
    // 2. The class chooses.
    stage.browser.press(&["Home"]);
    stage.until(0);
    let choices = "const all = [...document.querySelectorAll('.next .choice')]; \
                   return all.length > 0 && all.every(on_screen)";
    for step in 1..=2 {
        stage.browser.wait("the numbers", &format!("{ON_SCREEN} {choices}"));
        stage.browser.press(&["1"]);
        stage.until(step);
    }
    // 3. Can it still go wrong? The class sees the question and the answer.
    let ask = |wanted: &str| {
        stage.browser.press(&["h"]);
        let script = format!(
            "const answer = document.querySelector('.answer'); \
             return answer.innerText.startsWith('{wanted}') && on_screen(answer);"
        );
        stage.browser.wait(wanted, &format!("{ON_SCREEN} {script}"));
    };
    ask("Still possible");
    let present = "return document.body.classList.contains('present')";
    assert_eq!(stage.browser.run(present), true, "all of it in present mode");
    // The class chooses on, and asks again: the answer is about the new moment.
    let before = stage.text(".answer");
    stage.browser.press(&["1"]);
    stage.until(3);
    assert_eq!(stage.text(".answer"), "", "the answer about the last moment is gone");
    ask("Still possible");
    assert_ne!(stage.text(".answer"), before, "one step less");
    stage.browser.picture("lecture-here-1024");
    // 4. The repaired text.
    let seen = stage.browser.run(&format!(
        "{ON_SCREEN} const select = document.querySelector('select[aria-label=Algorithm]'); \
         select.value = 'maekawa-sequential'; select.dispatchEvent(new Event('change')); \
         return on_screen(select)"
    ));
    assert_eq!(seen, true, "the list of algorithms is shown");
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

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn the_class_predicts_what_a_step_does() {
    let stage = Stage::new(Look::BEAMER, First::Shelf);
    stage.visit("#/lab/ricart-agrawala+n=3/a2d2-1d2-3?at=0");
    stage.browser.press(&["q", "ArrowRight"]);
    let asked = |step: u64| {
        let script =
            format!("return doorwayLab.asked === {step} && doorwayLab.at === {}", step - 1);
        stage.browser.wait("the question", &script);
    };
    asked(1);
    assert!(stage.text(".sentence").ends_with("What happens then? Press space."));
    assert!(stage.text(".sentence").contains("node 2 asks"), "{}", stage.text(".sentence"));
    let pills = || stage.browser.run("return document.querySelectorAll('.pill').length");
    assert_eq!(pills(), 0, "the requests are not shown yet");
    let ran = || stage.browser.run("return document.querySelectorAll('.rules .ran').length");
    assert_eq!(ran(), 0, "and not the rule");
    stage.browser.picture("predict-1024");
    assert_eq!(stage.browser.wrong_in_any_theme("predict"), [""; 0]);
    stage.browser.press(&[" "]);
    stage.until(1);
    assert_eq!((pills(), ran()), (2.into(), 1.into()));
    // A choice asks too; back and another choice forget the question.
    stage.browser.press(&["1"]);
    asked(2);
    stage.browser.press(&["ArrowLeft"]);
    stage.browser.wait("no question", "return doorwayLab.asked === 0 && doorwayLab.at === 0");
    stage.browser.press(&["ArrowRight", "ArrowRight", "ArrowRight"]);
    asked(2);
    stage.browser.press(&["p"]);
    stage.browser.wait("no question", "return doorwayLab.asked === 0 && !doorwayLab.predict");
    stage.browser.press(&["ArrowRight"]);
    stage.until(2);
}
