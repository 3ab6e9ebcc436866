//! Algorithms between threads in the browser.

use doorway_page::server::First;

use crate::Stage;
use crate::driver::{Look, Theme};

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn a_check_can_be_stopped_and_never_answers_about_another_algorithm() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    // Far more states than can be looked at before the button is pressed.
    stage.visit("#/threads?name=bakery&n=4");
    let wait = |what: &str, script: &str| stage.browser.wait(what, &format!("return {script}"));
    wait("the choices", "document.querySelectorAll('.threads .choice').length === 4");
    let click = "document.querySelector('.threads .ask').click()";
    let asks = "document.querySelector('.threads .ask').innerText";
    let looks = "/looking at every schedule: [0-9,]+ states/.test( \
                 document.querySelector('.threads').innerText)";
    stage.browser.run(click);
    wait("it looks", looks);
    assert_eq!(stage.browser.run(&format!("return {asks}")), "stop");
    stage.browser.run(click);
    wait("it stops", "document.querySelector('.threads').innerText.includes('Stopped: nothing')");
    stage.browser.run(click);
    wait("it looks again", looks);
    stage.browser.run(
        "const it = document.querySelector('.threads select'); it.value = 'peterson'; \
         it.dispatchEvent(new Event('change'))",
    );
    wait("another algorithm", "document.querySelectorAll('.threads .choice').length === 2");
    assert_eq!(stage.browser.run(&format!("return {asks}")), "Look at every schedule");
    // Both places for jobs are free again, and the answer is about this algorithm.
    stage.browser.run(click);
    wait("it holds", "document.querySelector('.threads').innerText.includes('No two are ever')");
    assert_eq!(stage.browser.log(), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn a_fence_that_is_left_out_lets_two_in() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    stage.visit("#/threads?name=peterson&n=2");
    let wait = |what: &str, script: &str| stage.browser.wait(what, &format!("return {script}"));
    wait("the choices", "document.querySelectorAll('.threads .choice').length === 2");
    stage.browser.press(&["1"]);
    wait("a step", "document.querySelector('.threads .sentence').innerText.includes('Step 1: P0')");
    assert!(stage.text(".threads td.changed").contains("GiveTurn"));
    stage.browser.press(&["ArrowLeft"]);
    wait("the beginning", "document.querySelector('.sentence').innerText === 'The beginning.'");
    let look = "document.querySelector('.threads .ask').click()";
    stage.browser.run(look);
    wait("it holds", "document.querySelector('.threads').innerText.includes('No two are ever')");
    stage.visit("#/threads?name=peterson&n=2&buffers=1&drop=b");
    wait("the other memory", "document.querySelectorAll('.threads .choice').length === 2");
    stage.browser.run(look);
    wait("it fails", "document.querySelector('.threads').innerText.includes('Two can be inside')");
    stage.browser.run(
        "[...document.querySelectorAll('.threads button')] \
         .find((it) => it.innerText === 'show the schedule').click()",
    );
    wait("the violation", "document.querySelector('.threads .violated')");
    stage.browser.picture("threads-1366");
    assert_eq!(stage.browser.wrong_in_any_theme("threads"), [""; 0]);
    stage.browser.run("history.replaceState(null, '', location.href); location.reload()");
    stage.ready();
    wait("the link opens it again", "document.querySelector('.threads .violated')");
    // Where the reader's system chooses the colours, the step on screen is still marked.
    stage.browser.theme(Theme::Forced);
    wait("marked", "document.querySelectorAll('.schedule li').length > 1");
    let kept = stage.browser.run(
        "const style = getComputedStyle(document.querySelector('.schedule .ran')); \
         return [style.forcedColorAdjust, style.backgroundColor]",
    );
    // Colours that the page keeps for itself are those of the system.
    let system = "const mark = document.createElement('p'); document.body.append(mark); \
                  mark.style = 'forced-color-adjust: none; background: Highlight'; \
                  return getComputedStyle(mark).backgroundColor";
    assert_eq!(kept[0], "none", "{kept}");
    assert_eq!(kept[1], stage.browser.run(system));
    stage.browser.look(Look::DESK);
    stage.visit("#/threads?name=nobody");
    wait("a sentence", "document.getElementById('alert').innerText.includes('no algorithm')");
    assert_eq!(stage.browser.log().len(), 1, "the refusal alone is in the log");
}
