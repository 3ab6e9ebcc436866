//! Algorithms between threads in the browser.

use doorway_page::server::First;

use crate::Stage;
use crate::driver::Look;

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
    assert_eq!(stage.axe("threads"), [""; 0]);
    stage.browser.run("history.replaceState(null, '', location.href); location.reload()");
    stage.ready();
    wait("the link opens it again", "document.querySelector('.threads .violated')");
    stage.visit("#/threads?name=nobody");
    wait("a sentence", "document.getElementById('alert').innerText.includes('no algorithm')");
    assert_eq!(stage.browser.log().len(), 1, "the refusal alone is in the log");
}
