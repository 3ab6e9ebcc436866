//! The code that ran, in a real browser.

use doorway_page::server::First;

use crate::Stage;
use crate::driver::Look;

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn the_code_is_shown_in_whatever_files_it_is() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    // Node 1 asks; the message arrives at node 2, which is locked for it and says so.
    stage.visit("#/lab/maekawa+n=3/a1d1-2?at=2");
    let marked = |kind: &str| {
        let script = format!(
            "return [...document.querySelectorAll('.code .{kind}')].map((it) => \
             it.innerText.trim()).join('\\n')"
        );
        stage.browser.run(&script).as_str().unwrap().to_owned()
    };
    assert!(marked("acted").contains("Message::Request(clock) => self.request"), "its arm");
    assert!(marked("acted").contains("self.lock = Some(request);"), "the function it calls");
    assert!(marked("hit").contains("Message::answer(request, answer, self.clock)"), "the answer");
    let files = "return [...document.querySelectorAll('h2 button.file')].map((it) => it.innerText)";
    let files = stage.browser.run(files);
    assert_eq!(files, serde_json::json!(["maekawa.rs", "maekawa/arbiter.rs"]));
    let seen = |what: &str| {
        let script = format!(
            "const [box, it] = [document.querySelector('.code'), {what}]; \
             const [top, place] = [box.getBoundingClientRect(), it.getBoundingClientRect()]; \
             return place.top >= top.top - 1 && place.bottom <= top.bottom + 1"
        );
        stage.browser.run(&script)
    };
    assert_eq!(seen("document.querySelector('.code .hit')"), true, "what was sent is in sight");
    assert_eq!(stage.browser.wrong_in_any_theme("several files"), [""; 0]);
    stage.browser.run("document.querySelectorAll('h2 button.file')[1].click()");
    let arm = "[...document.querySelectorAll('.code .acted')].find((it) => \
               it.innerText.includes('Message::Request(clock)'))";
    assert_eq!(seen(arm), true, "a click goes to the other file");
}
