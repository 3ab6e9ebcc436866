//! Algorithms between threads in the browser.

use doorway_page::server::First;
use doorway_threads::algorithms::ALL;
use doorway_threads::check::{self, Rules, StepChoice};

use crate::Stage;
use crate::driver::{Look, Theme};

/// The steps of a link between threads, such as p0p1p0.2.
fn turns(words: &str) -> Vec<StepChoice> {
    let turn = |word: &str| {
        let (process, which) = word.split_once('.').unwrap_or((word, "0"));
        let number = |text: &str| text.parse().expect("a number");
        StepChoice { process: number(process), which: number(which) }
    };
    words.split('p').skip(1).map(turn).collect()
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn every_algorithm_between_threads_takes_ten_steps() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    for entry in ALL {
        let (name, n) = (entry.info.name, entry.info.fewest.max(2));
        stage.visit(&format!("#/threads?name={name}&n={n}"));
        let begins = "return document.querySelector('.threads .sentence')?.innerText \
                      === 'The beginning.' && document.querySelectorAll('.threads .choice').length";
        stage.browser.wait(name, begins);
        let mut words = String::new();
        for step in 1..=10 {
            // Not always the same process.
            let taken = stage.browser.run(&format!(
                "const all = document.querySelectorAll('.threads .choice'); \
                 const it = all[{step} * {step} % all.length]; it.click(); return it.dataset.do"
            ));
            words += taken.as_str().unwrap();
            let taken = format!(
                "return document.querySelector('.threads .sentence').innerText \
                 .startsWith('Step {step}: ')"
            );
            stage.browser.wait(name, &taken);
            let marked = "return document.querySelectorAll('.threads .hit').length";
            assert_ne!(stage.browser.run(marked), 0, "{name}, {words}: the code that ran");
        }
        let rules = Rules { bound: entry.info.bound, ..Rules::default() };
        let moments = check::tell(name, n, &rules, &turns(&words)).unwrap();
        let last = moments.last().unwrap();
        let line = last.line.as_ref().unwrap();
        assert_eq!(stage.text(".threads .sentence"), format!("Step 10: {line}."), "{name}");
        let shown = stage.browser.run(
            "return [...document.querySelectorAll('.threads tbody')].map((it) => \
             [...it.rows].map((row) => [...row.cells].map((cell) => cell.textContent)))",
        );
        let places: Vec<&String> = last.places.iter().map(|(place, _)| place).collect();
        let registers: Vec<_> =
            last.registers.iter().map(|(name, value)| (name, value.to_string())).collect();
        let told = stage_places(&shown[0]);
        assert_eq!(serde_json::json!(told), serde_json::json!(places), "{name}");
        assert_eq!(shown[1], serde_json::json!(registers), "{name}");
        assert_eq!(stage.text("#alert"), "", "{name}");
    }
    assert_eq!(stage.browser.log(), [""; 0]);
}

/// The places in the table of the processes: the second column.
fn stage_places(rows: &serde_json::Value) -> Vec<&serde_json::Value> {
    rows.as_array().expect("rows").iter().map(|row| &row[1]).collect()
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn a_way_that_was_left_is_kept_and_the_player_goes_along_it() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    stage.visit("#/threads?name=peterson&n=2&buffers=1&drop=ab");
    let wait = |what: &str, script: &str| stage.browser.wait(what, &format!("return {script}"));
    let step = |at: u32, of: u32| {
        let count = format!("{at} of {of}");
        let shown = "document.querySelector('.threads .count').innerText";
        wait(&count, &format!("{shown} === '{count}'"));
    };
    step(0, 0);
    // Three presses that follow each other quickly are three steps.
    stage.browser.press(&["1", "1", "1"]);
    step(3, 3);
    let first = stage.text(".schedule");
    assert_eq!(stage.text(".threads .ways .choice"), "", "no other way yet");
    stage.browser.press(&["Home"]);
    step(0, 3);
    stage.browser.press(&["ArrowRight"]);
    step(1, 3);
    // Only another step than the one that was taken before begins a branch.
    stage.browser.press(&["1"]);
    step(2, 3);
    stage.browser.press(&["ArrowLeft"]);
    step(1, 3);
    stage.browser.press(&["2"]);
    step(2, 2);
    assert!(stage.text(".schedule").contains("P0 flag[0] := 1 reaches memory"));
    assert!(stage.text(".threads .ways").contains("after step 1: P0 turn := 1"));
    // Memory acted: no code ran, and the places of both processes are marked lightly.
    let marked = "return ['.hit', '.acted'].map((it) => document.querySelectorAll(it).length > 0)";
    assert_eq!(stage.browser.run(marked), serde_json::json!([false, true]));
    stage.browser.run("document.querySelector('.threads .ways button').click()");
    step(2, 3);
    assert_eq!(stage.text(".schedule"), first, "the first way is back");
    let buffers = "return [...document.querySelectorAll('.threads tbody')].at(-1).innerText";
    assert_eq!(stage.browser.run(buffers), "P0\tflag[0] := 1, turn := 1\nP1\tempty");
    // The code that ran is marked strongly, and the place of the other process lightly.
    let strong = stage
        .browser
        .run("return [...document.querySelectorAll('.hit')].map((it) => it.innerText).join(' ')");
    assert!(strong.as_str().is_some_and(|it| it.contains("At::GiveTurn => {")), "{strong}");
    let light = "return [...document.querySelectorAll('.acted:not(.hit)')][0].innerText";
    let light = stage.browser.run(light);
    assert!(light.as_str().is_some_and(|it| it.contains("At::Outside => {")), "{light}");
    stage.browser.picture("threads-branch-1366");
    assert_eq!(stage.browser.wrong_with("threads with a branch"), [""; 0]);
    // The space bar plays to the end, and from the beginning once more.
    stage.browser.press(&["End", " "]);
    step(1, 3);
    step(3, 3);
    let playing = "document.querySelector('[aria-label=Pause]')";
    wait("it has stopped", &format!("!{playing}"));
    stage.browser.press(&["u"]);
    wait("the link", "document.querySelector('dialog .address')");
    let link = stage.text(".address");
    stage.browser.press(&["Escape"]);
    stage.visit("#/");
    stage.visit(&link[link.find('#').expect("a fragment")..]);
    step(3, 3);
    assert_eq!(stage.text(".schedule"), first, "the link opens the same moment");
    assert_eq!(stage.browser.log(), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn steps_that_can_be_repeated_for_ever_are_shown_as_a_loop() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    stage.visit("#/threads?name=increment-undo&n=2");
    let wait = |what: &str, script: &str| stage.browser.wait(what, &format!("return {script}"));
    wait("the choices", "document.querySelectorAll('.threads .choice').length === 2");
    stage.browser.run("document.querySelector('.threads .ask').click()");
    let text = "document.querySelector('.threads').innerText";
    wait("the answer", &format!("{text}.includes('It can deadlock')"));
    wait("the loop", &format!("/ends with [0-9]+ steps that can be repeated/.test({text})"));
    stage.browser.run(
        "[...document.querySelectorAll('.threads button')] \
         .find((it) => it.innerText === 'show the schedule').click()",
    );
    let marked = "document.querySelectorAll('.schedule .again').length";
    wait("the marks", &format!("{marked} > 0"));
    let loops = || {
        stage.browser.run(
            "const all = [...document.querySelectorAll('.schedule li')]; \
             return [all.length, all.findIndex((it) => it.matches('.again')), \
               all.filter((it) => it.matches('.again')).length]",
        )
    };
    let before = loops();
    let [steps, first, count] = [0, 1, 2].map(|at| before[at].as_u64().unwrap());
    assert_eq!(first + count, steps, "the loop is the end of the schedule: {before}");
    let told = format!("Steps {} to {steps} can be repeated for ever.", first + 1);
    assert!(stage.text(".threads .sentence").ends_with(&told), "{told}");
    // Playing the loop once more leads to the same places and registers.
    let same = stage.browser.run(&format!(
        "const tables = () => [...document.querySelectorAll('.threads tbody')] \
           .map((it) => it.innerText).join(); \
         const go = (at) => document.querySelectorAll('.schedule button')[at - 1].click(); \
         go({first}); const one = tables(); go({steps}); return one === tables()"
    ));
    assert_eq!(same, true);
    for look in [Look::PHONE, Look::BEAMER, Look::DESK] {
        stage.browser.look(look);
        stage.browser.picture(&format!("threads-loop-{}", look.width));
        assert_eq!(stage.browser.facts(&format!("loop, {} px", look.width)), [""; 0]);
    }
    assert_eq!(stage.browser.wrong_in_any_theme("loop between threads"), [""; 0]);
    wait("the address", "location.hash.includes('round=')");
    stage.browser.run("globalThis.before = true; location.reload()");
    wait("the marks", &format!("!globalThis.before && {marked} > 0"));
    assert_eq!(loops(), before, "the link has the loop");
    // An algorithm that does not claim to be free of lockout has no schedule to show.
    stage.visit("#/threads?name=tas&n=2");
    wait("the choices", "document.querySelectorAll('.threads .choice').length === 2");
    stage.browser.run("document.querySelector('.threads .ask').click()");
    wait("the answer", &format!("{text}.includes('A process can be locked out')"));
    stage.visit("#/threads?name=increment-undo&n=2&steps=p0p1p0p1&round=2");
    wait("two steps", &format!("{marked} === 2"));
    // Another step does not belong to the loop.
    stage.browser.run("document.querySelector('.threads .choice').click()");
    wait("no marks", &format!("{marked} === 0"));
    assert_eq!(stage.browser.log(), [""; 0]);
}

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
    for look in [Look::PHONE, Look::BEAMER, Look::DESK] {
        stage.browser.look(look);
        stage.browser.picture(&format!("threads-violation-{}", look.width));
        let screen = format!("threads with a violation, {} px", look.width);
        assert_eq!(stage.browser.wrong_in_any_theme(&screen), [""; 0]);
    }
    wait("the address", "location.hash.includes('at=9')");
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
    wait("a form that can be used", "document.querySelector('.schedule') !== null");
}
