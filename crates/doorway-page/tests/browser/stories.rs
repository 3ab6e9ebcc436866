//! Stories in the browser: every algorithm, every script, back and forth, branches, links.

use doorway_lab::flaws;
use doorway_lab::stories::{SCRIPTS, Script};
use doorway_lab::story::{Pick, StopCondition, Story};
use doorway_page::server::First;
use serde_json::Value;

use crate::driver::{Look, SENT};
use crate::{Stage, serve};

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn every_algorithm_takes_twenty_steps() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    for entry in doorway_core::algorithms::ALL {
        let name = entry.info.name;
        stage.visit(&format!("#/lab/{name}+n=4/?at=0"));
        stage.browser.run("await doorwayLab.go('20');");
        stage.browser.wait(name, "return doorwayLab.story.steps.length >= 20");
        let steps = stage.browser.run("return doorwayLab.story.words()");
        let mut story = Story::begin(&format!("{name} n=4")).unwrap();
        for word in doorway_lab::story::step_words::split(steps.as_str().unwrap()).unwrap() {
            story.step(word).unwrap();
        }
        let print = stage.browser.run("return doorwayLab.story.steps.at(-1).print");
        assert_eq!(print.as_u64(), Some(u64::from(story.print())), "{name}");
        assert!(!stage.text(".rules .ran").is_empty(), "{name}: a rule ran");
        assert!(stage.text(".sentence").starts_with("Step 20: node "), "{name}");
    }
    assert_eq!(stage.browser.log(), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn every_story_reaches_its_end_and_its_link_opens_the_same_moment() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    let cards = stage.browser.run("return document.querySelectorAll('.card').length");
    assert_eq!(cards.as_u64(), Some((SCRIPTS.len() + flaws::all().len()) as u64));
    for Script { name: id, text, .. } in SCRIPTS {
        let told = Story::read(text).unwrap();
        stage.visit(&format!("#/story/{}", id.replace('/', "%2F")));
        let name = format!("{id} is open");
        let steps = told.words.len();
        stage.browser.wait(&name, &format!("return doorwayLab.story?.steps.length === {steps}"));
        stage.browser.press(&["End"]);
        stage.until(steps as u64);
        if let Some(violation) = &told.violation {
            assert!(stage.text(".next").contains(&violation.text), "{id}");
        }
        let link = stage.browser.run("return doorwayLab.address()");
        stage.visit("#/");
        stage.visit(link.as_str().unwrap());
        stage.until(steps as u64);
        if steps > 0 {
            let print = stage.browser.run("return doorwayLab.story.steps.at(-1).print");
            assert_eq!(print.as_u64(), Some(u64::from(told.story.print())), "{id}");
        }
        assert_eq!(stage.text("#alert"), "", "{id}");
    }
    assert_eq!(stage.browser.log(), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn every_flaw_reaches_its_end_and_its_address_opens_it_again() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    let mut chosen = 0;
    for flaw in flaws::all() {
        let name = flaw.name;
        // The link of the shelf.
        stage.visit("#/");
        let link = format!("a[href='#/story/{name}']");
        stage.browser.wait(name, &format!("return Boolean(document.querySelector({link:?}))"));
        stage.browser.run(&format!("document.querySelector({link:?}).click()"));
        let open = "return doorwayLab.story && !doorwayLab.busy && doorwayLab.story.steps.length";
        let steps = stage.browser.wait(name, open).as_u64().unwrap();
        assert_eq!(stage.at(), steps, "{name} opens at its end");
        let told = stage.browser.run(
            "const { story, at } = doorwayLab; return [story.violation(at)?.text, \
             story.steps.filter((it) => it.violation || it.do).length, Boolean(story.frame.names)]",
        );
        assert!(told[0].as_str().is_some_and(|text| !text.is_empty()), "{name}: {told}");
        assert!(stage.text(".next").contains(told[0].as_str().unwrap()), "{name}");
        assert!(stage.text(".note").len() > 40, "{name} is explained");
        if told[2] == true {
            stage.browser.run("doorwayLab.show(1)");
            stage.browser.wait(name, "return location.hash.includes('?at=1&w=')");
            let link = stage.browser.run("return doorwayLab.address()");
            let link = link.as_str().unwrap();
            assert!(link.starts_with(&format!("#/story/{name}?at=1&w=")), "{link}");
            stage.visit("#/");
            stage.visit(link);
            stage.until(1);
        } else {
            chosen += 1;
            assert!(steps >= flaw.steps as u64, "{name}");
            let link = stage.browser.run("return doorwayLab.address()");
            let print = "return doorwayLab.story.steps.at(-1).print";
            let before = stage.browser.run(print);
            stage.visit("#/");
            stage.visit(link.as_str().unwrap());
            stage.until(steps);
            assert_eq!(stage.browser.run(print), before, "{name}");
        }
        assert_eq!(stage.text("#alert"), "", "{name}");
    }
    assert!(chosen >= 15, "{chosen} flaws are in texts and networks, and can be stepped");
    assert_eq!(stage.browser.log(), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn faults_are_switches() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    stage.visit("#/lab/ricart-agrawala+n=3/a1?at=1");
    let words = || stage.browser.run("return doorwayLab.story.words()");
    let faults = "return document.querySelectorAll('.next .fault').length";
    assert_eq!(stage.browser.run(faults), 0, "faults are off");
    stage.browser.press(&["f", " "]);
    stage.browser.wait("lose", "return document.querySelectorAll('.next .fault').length === 2");
    let click = |label: &str| {
        let find = format!(
            "[...document.querySelectorAll('.next button')]\
            .find((it) => (it.getAttribute('aria-label') ?? it.innerText).startsWith({label:?}))"
        );
        stage.browser.wait(label, &format!("return Boolean({find})"));
        stage.browser.run(&format!("{find}.click()"));
    };
    click("lose: Request(1) 1 → 2");
    stage.until(2);
    assert_eq!(words(), "a1x1-2");
    assert!(stage.text(".sentence").contains("it is lost"), "{}", stage.text(".sentence"));
    stage.browser.run(
        "for (const it of document.querySelectorAll('.switches input')) \
        if (!it.checked) it.click()",
    );
    click("double: Request(1) 1 → 3");
    stage.until(3);
    stage.browser.run("[...document.querySelectorAll('[data-do=c2]')][0].click()");
    stage.until(4);
    assert_eq!(words(), "a1x1-2u1-3c2");
    assert_eq!(stage.browser.wrong_in_any_theme("faults"), [""; 0]);
    let crashed = "return document.querySelectorAll('.node.crashed .cross').length";
    assert_eq!(stage.browser.run(crashed), 1);
    // FIFO off: the same group over other channels.
    stage.visit("#/lab/lamport+n=2/?at=0");
    stage.browser.run(
        "const it = document.querySelector('select[aria-label=Channels]'); \
        it.value = 'unordered'; it.dispatchEvent(new Event('change'))",
    );
    let run = "return doorwayLab.story?.frame.run === 'lamport n=2 channel=unordered'";
    stage.browser.wait("unordered channels", run);
    stage.browser.run("document.activeElement.blur()");
    stage.browser.press(&["h"]);
    let answer = "return document.querySelector('.possible')?.innerText";
    let answer = stage.browser.wait("without FIFO it breaks", answer);
    assert!(answer.as_str().unwrap().starts_with("Still possible: 4 steps"), "{answer}");
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn other_channels_keep_the_quorums_and_the_steps_of_a_story() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    let change = |label: &str, value: &str| {
        stage.browser.run(&format!(
            "const it = document.querySelector('[aria-label={label}]'); it.value = {value:?}; \
             it.dispatchEvent(new Event('change')); document.activeElement.blur()"
        ));
        stage.browser.wait(label, "return !doorwayLab.busy");
    };
    let story = || {
        let now = "const { story, at } = doorwayLab; const [first, ...lines] = \
                   story.frame.run.split('\\n'); return [first, lines.length, story.words(), at]";
        stage.browser.run(now)
    };
    let told = &SCRIPTS.iter().find(|script| script.name == "maekawa/section-5").unwrap().text;
    let words = Story::read(told).unwrap().words.concat();
    stage.visit("#/story/maekawa%2Fsection-5");
    stage.browser.run("doorwayLab.show(30)");
    change("Channels", "unordered");
    let unordered = serde_json::json!(["maekawa n=13 channel=unordered", 13, words, 30]);
    assert_eq!(story(), unordered);
    assert_eq!(stage.text("#alert"), "");
    change("Channels", "fifo");
    assert_eq!(story(), serde_json::json!(["maekawa n=13", 13, words, 30]));
    // With another number of nodes the listed quorums do not fit, and the page says so.
    change("Nodes", "12");
    assert_eq!(story(), serde_json::json!(["maekawa n=12", 0, "", 0]));
    let alert = stage.text("#alert");
    assert!(alert.contains("were listed for 13 nodes"), "{alert}");
    // A message that was overtaken arrives first in FIFO channels, so the story ends before that.
    stage.visit("#/lab/lamport+n=2+channel=unordered/a1a2d2-1d1-2.2?at=4");
    stage.until(4);
    change("Channels", "fifo");
    assert_eq!(story(), serde_json::json!(["lamport n=2", 0, "a1a2d2-1", 3]));
    let alert = stage.text("#alert");
    assert!(alert.contains("The story goes no further than this: step 4"), "{alert}");
    assert_eq!(stage.browser.wrong_in_any_theme("alert"), [""; 0]);
    assert_eq!(stage.browser.log(), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn messages_move_unless_the_reader_wants_no_motion() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    // A message arrives and another one leaves. What is told: the copy of the message on its way to
    // its receiver, the delays of the motions, and where the messages stand in the end.
    let step = "await doorwayLab.take('d1-2'); \
                const { length } = document.querySelectorAll('.network .ghost'); \
                const motions = document.getAnimations().map((it) => it.effect.getTiming()); \
                return [length, motions.map((it) => [it.delay, it.duration])]";
    let places = "return document.getAnimations().length || document.querySelector('.ghost') \
                  ? null : [...document.querySelectorAll('.network .pill')].map((it) => \
                    [it.textContent, Math.round(it.getBoundingClientRect().x), \
                     Math.round(it.getBoundingClientRect().y)])";
    let begin = || {
        stage.visit("#/");
        stage.visit("#/lab/ricart-agrawala+n=3/a1?at=1");
        stage.until(1);
    };
    begin();
    assert_eq!(stage.browser.run(step), serde_json::json!([0, []]), "no motion");
    let still = stage.browser.wait("the end", places);
    assert_eq!(still.as_array().map(Vec::len), Some(2), "a REQUEST and a REPLY: {still}");
    stage.browser.moving();
    begin();
    let moved = stage.browser.run(step);
    // In the network and in the space-time diagram: what arrives, then what leaves.
    let pace = [[0, 250], [250, 250], [0, 250], [250, 250]];
    assert_eq!(moved, serde_json::json!([1, pace]), "first one, then the other");
    assert_eq!(stage.browser.wait("the end", places), still, "the places are the same");
    // One step back does not move anything, and steps that follow quickly leave no copies behind.
    stage.browser.run("doorwayLab.back(); doorwayLab.forward(); doorwayLab.back()");
    let copies = "return !document.querySelector('.ghost') && !document.getAnimations().length";
    stage.browser.wait("no copies", copies);
    assert_eq!(stage.browser.log(), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn a_bill_above_the_claim_is_red_unless_the_claim_is_a_mean() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    let red = "return document.querySelectorAll('.cost .over').length";
    // A doubled REQUEST is answered twice, so the request costs 5 messages instead of 4.
    stage.visit("#/lab/ricart-agrawala+n=3/a1u1-2d1-2d1-3?at=4");
    stage.until(4);
    assert_eq!(stage.browser.run(red), 1, "{}", stage.text(".cost"));
    assert!(!stage.text(".cost").contains("on average"));
    // A single request may cost more than the mean that Raymond claims.
    stage.visit("#/lab/raymond-tree+n=4/?at=0");
    let found = stage.browser.run(
        "const lab = doorwayLab; lab.pick = 'dice:7'; await lab.go('400'); \
         const { fold } = await import('/js/bills.js'); \
         const { most } = lab.story.frame.group.claim; \
         const dear = (at) => fold(lab.story, at).slice(-6).some((it) => it.messages > most); \
         const steps = lab.story.steps.keys(); \
         const at = [...steps].find(dear); if (at) lab.show(at); return at ?? null;",
    );
    assert!(found.is_u64(), "a request costs more than the mean: {found}");
    assert_eq!(stage.browser.run(red), 0, "{}", stage.text(".cost"));
    let told = "2 x diameter = 0 to";
    let cost = stage.text(".cost");
    assert!(cost.contains(told) && cost.contains("on average over a run"), "{cost}");
    assert_eq!(stage.browser.wrong_in_any_theme("bills of a mean"), [""; 0]);
    assert_eq!(stage.browser.log(), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn with_a_loss_from_here_asks_about_nodes_that_stop_asking() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    stage.visit("#/lab/ricart-agrawala+n=2/a1?at=1");
    stage.browser.run(
        "const losses = document.querySelectorAll('.here select')[1]; losses.value = '1'; \
         losses.dispatchEvent(new Event('change', { bubbles: true }))",
    );
    let asks = "const asks = document.querySelector('.here select'); \
                return [asks.selectedOptions[0].textContent, asks.options[0].disabled]";
    assert_eq!(stage.browser.run(asks), serde_json::json!(["once more", true]));
    stage.browser.press(&["h"]);
    let answer = "return document.querySelector('.possible')?.innerText";
    let answer = stage.browser.wait("an answer, not a refusal", answer);
    assert!(answer.as_str().unwrap().starts_with("Still possible: 1 step"), "{answer}");
    stage.browser.run(
        "const losses = document.querySelectorAll('.here select')[1]; losses.value = '0'; \
         losses.dispatchEvent(new Event('change', { bubbles: true }))",
    );
    assert_eq!(stage.browser.run(asks), serde_json::json!(["once more", false]));
    assert_eq!(stage.browser.log(), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn play_violation_and_the_causes_of_a_step() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    stage.visit("#/lab/raymond-k-scanned+n=3+permits=2+seats=1/a1?at=0");
    stage.browser.run(
        "document.querySelector('select[aria-label=\"Steps a second\"]').value = 8; \
        document.querySelector('select[aria-label=\"Steps a second\"]') \
          .dispatchEvent(new Event('change')); document.activeElement.blur()",
    );
    stage.browser.press(&[" "]);
    stage.browser.wait("it plays", "return doorwayLab.at >= 3");
    stage.browser.press(&[" "]);
    stage.browser.wait("it pauses", "return !doorwayLab.playing");
    stage.visit("#/story/maekawa-sequential-self-first%2Fcircle");
    stage.browser.press(&["Home", "v"]);
    stage.browser.wait("a violation", "return doorwayLab.story.violation(doorwayLab.at)?.circle");
    let waits = "return document.querySelectorAll('.network .waits').length";
    assert_eq!(stage.browser.run(waits), 2, "who waits for whom is drawn");
    // The causes of the last step, and nothing else.
    stage.visit("#/lab/ricart-agrawala+n=4/a1a2d1-3d2-4d3-1?at=5");
    stage.browser.press(&["c"]);
    let dim = "return document.querySelectorAll('.spacetime .dim').length";
    stage.browser.wait("others are dim", &format!("{dim} > 0"));
    assert_eq!(stage.browser.run("return [...doorwayLab.coneSet].sort().join()"), "1,3,5");
    stage.browser.press(&["c"]);
    stage.browser.wait("all are bright", &format!("{dim} === 0"));
    assert_eq!(stage.browser.log(), [""; 0]);
}

/// The request of node 2 is lost, and the token goes to and fro between the others.
const TO_AND_FRO: &str = "run suzuki-kasami n=3\nacquire 2\ndrop 2 1\ndrop 2 3\nacquire 3\nround\n\
    deliver 3 2\ndeliver 3 1\ndeliver 1 3\nacquire 1\ndeliver 1 2\ndeliver 1 3\nrelease 3\n\
    deliver 3 1\nacquire 3\nrelease 1\nagain\n";

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn a_node_that_starves_is_shown_as_a_loop() {
    let (name, text) = ("starvation".to_owned(), TO_AND_FRO.to_owned());
    let stage = Stage::new(Look::DESK, First::Script { name, text });
    stage.until(14);
    assert_eq!(stage.browser.run("return document.querySelectorAll('path.loop').length"), 1);
    assert!(stage.text(".sentence").contains("Steps 5 to 14 can be repeated for ever"));
    assert!(stage.text(".next").contains("node 2 waits for ever"), "{}", stage.text(".next"));
    assert_eq!(stage.browser.wrong_in_any_theme("starvation"), [""; 0]);
    assert_eq!(stage.browser.log(), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn steps_after_a_loop_or_an_ending_say_nothing_of_it() {
    let (name, text) = ("starvation".to_owned(), TO_AND_FRO.to_owned());
    let stage = Stage::new(Look::DESK, First::Script { name, text });
    stage.until(14);
    assert!(stage.text(".sentence").contains("STARVATION"), "{}", stage.text(".sentence"));
    // The story goes on: another step is not a starvation, and play does not stop there.
    stage.browser.run("await doorwayLab.go('1')");
    stage.until(15);
    for place in [".sentence", ".next"] {
        let told = stage.text(place);
        assert!(!told.contains("STARVATION") && !told.contains("for ever"), "{told}");
    }
    assert_eq!(stage.browser.run("return document.querySelectorAll('path.loop').length"), 0);
    stage.browser.run("doorwayLab.speed = 8; doorwayLab.play()");
    stage.browser.wait("it plays on", "return doorwayLab.at >= 18");
    stage.browser.run("doorwayLab.pause()");
    assert_eq!(stage.browser.log(), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn a_starvation_that_from_here_finds_is_shown_as_a_loop() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    let told = Story::read(TO_AND_FRO).unwrap();
    let (begin, end) = told.round.unwrap();
    let [way, cycle] = [&told.words[..begin], &told.words[begin..end]];
    stage.visit(&format!("#/lab/suzuki-kasami+n=3/{}?at={begin}", way.concat()));
    stage.until(begin as u64);
    // Where clients may stop asking, a deadlock is always nearer than a starvation. So the server
    // does not give this answer in a short test; the steps are played by it.
    stage.browser.run(&format!(
        "doorwayLab.home.check = async function* () {{ yield {{ verdict: 'possible', steps: [], \
           cycle: {cycle:?}, worlds: 100, violation: {{ property: 'starvation', nodes: [2], \
           text: 'node 2 waits for ever' }} }} }}"
    ));
    stage.browser.press(&["h"]);
    let possible = "return document.querySelector('.possible')?.innerText";
    let answer = stage.browser.wait("an answer", possible);
    let answer = answer.as_str().unwrap();
    assert!(answer.contains("that are repeated for ever. STARVATION: node 2"), "{answer}");
    stage.browser.run("document.querySelectorAll('.answer button')[1].click()");
    stage.browser.wait("the way", "return doorwayLab.story.round && !doorwayLab.busy");
    stage.browser.press(&["End"]);
    let told = stage.browser.run(
        "const { story } = doorwayLab; \
         return [story.round, document.querySelectorAll('path.loop').length]",
    );
    assert_eq!(told, serde_json::json!([[begin, end], 1]));
    stage.until(end as u64);
    assert!(stage.text(".sentence").contains("can be repeated for ever"));
    assert!(stage.text(".next").contains("STARVATION"), "{}", stage.text(".next"));
    for look in [Look::PHONE, Look::BEAMER, Look::DESK] {
        stage.browser.look(look);
        stage.browser.picture(&format!("starves-{}", look.width));
    }
    assert_eq!(stage.browser.wrong_in_any_theme("starvation from here"), [""; 0]);
    assert_eq!(stage.browser.log(), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn clients_that_give_up_are_a_switch_of_from_here() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    let worlds = || {
        stage.browser.press(&["h"]);
        let answer = "return document.querySelector('.answer strong')?.innerText === 'Impossible' \
                      && Number(document.querySelector('.answer').innerText \
                        .match(/([0-9,]+) worlds/)[1].replaceAll(',', ''))";
        stage.browser.wait("an answer", answer).as_u64().unwrap()
    };
    let switch = "[...document.querySelectorAll('.here label')] \
                  .find((it) => it.innerText.includes('give up'))";
    stage.visit("#/lab/ricart-agrawala+n=2/?at=0");
    stage.browser.run("document.querySelector('.here details').open = true");
    let before = worlds();
    stage
        .browser
        .run(&format!("{switch}.querySelector('input').click(); document.activeElement.blur()"));
    assert_eq!(stage.browser.wrong_in_any_theme("give-ups"), [""; 0]);
    assert!(worlds() > before, "clients give up in more worlds than {before}");
    stage.visit("#/lab/naimi-trehel+n=2/?at=0");
    assert_eq!(stage.browser.run(&format!("return {switch}.hidden")), true, "it cannot withdraw");
    assert_eq!(stage.browser.log(), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn entries_violations_causes_and_all_choices_have_buttons() {
    let stage = Stage::new(Look::PHONE, First::Shelf);
    let click = |name: &str| {
        stage.browser.run(&format!(
            "[...document.querySelectorAll('.controls button')].find((it) => it.offsetWidth \
             && (it.getAttribute('aria-label') ?? it.innerText) === {name:?}).click()"
        ));
        stage.browser.wait(name, "return !doorwayLab.busy");
    };
    stage.visit("#/lab/ricart-agrawala+n=2/?at=0");
    click("Next entry");
    let first = stage.at();
    click("Next entry");
    assert!(stage.at() > first && first > 0, "{first}, {}", stage.at());
    click("Entry before");
    assert_eq!(stage.at(), first);
    click("causes");
    let pressed = "return document.querySelector('.controls [aria-pressed=true]')?.innerText";
    assert_eq!(stage.browser.run(pressed), "causes");
    assert_eq!(stage.browser.wrong_in_any_theme("causes on a phone"), [""; 0]);
    click("causes");
    assert_eq!(stage.browser.run(pressed), Value::Null);
    stage.visit("#/story/maekawa-sequential-self-first%2Fcircle?at=0");
    click("violation");
    assert!(stage.text(".sentence").contains("DEADLOCK"), "{}", stage.text(".sentence"));
    stage.browser.picture("buttons-390");
    stage.browser.look(Look::DESK);
    // Dice with the seed of the reader are those of Rust.
    stage.visit("#/lab/lamport+n=3/?at=0");
    stage.browser.run(
        "const set = (label, value, kind) => { \
           const it = document.querySelector(`[aria-label='${label}']`); it.value = value; \
           it.dispatchEvent(new Event(kind)); return it.offsetWidth > 0 }; \
         set('Who chooses the next step', 'dice', 'change'); \
         if (!set('Seed of the dice', '123', 'input')) throw new Error('no seed'); \
         await doorwayLab.go('30')",
    );
    let mut story = Story::begin("lamport n=3").unwrap();
    story.go(Pick::Dice(123), StopCondition::Steps(30));
    assert_eq!(stage.browser.run("return doorwayLab.story.words()"), story.step_words().concat());
    assert_eq!(stage.browser.facts("a seed"), [""; 0]);
    stage.browser.picture("seed-1366");
    // More choices than are shown at first.
    stage.visit("#/lab/ricart-agrawala+n=30/a1a2?at=2");
    let count = "return document.querySelectorAll('.next .choice').length";
    stage.browser.wait("forty choices", &format!("{count} === 40"));
    let all =
        stage.browser.run("return doorwayLab.choices.filter((it) => it.kind !== 'crash').length");
    assert_eq!(stage.text(".all"), format!("show all {all}"));
    assert_eq!(stage.browser.wrong_in_any_theme("forty choices"), [""; 0]);
    stage.browser.run("document.querySelector('.all').click()");
    assert_eq!(stage.browser.run(count), all);
    assert_eq!(stage.browser.log(), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn a_story_is_opened_and_told_with_the_keyboard_alone() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    // From link to link of the shelf.
    let card = "return Boolean(document.activeElement.closest('.card'))";
    let mut tabs = 0;
    while stage.browser.run(card) != true {
        stage.browser.press(&["Tab"]);
        tabs += 1;
        assert!(tabs < 60, "no card can be reached");
    }
    stage.browser.press(&["Enter"]);
    stage.browser.wait("the story", "return doorwayLab.story && !doorwayLab.busy");
    stage.browser.press(&["Home", "ArrowRight", "ArrowRight"]);
    stage.until(2);
    // The other way to choose: along the list of choices.
    stage.browser.wait("choices", "return Boolean(document.querySelector('.next .choice'))");
    stage.browser.press(&["/"]);
    stage.browser.wait("find", "return document.activeElement.matches('.find')");
    stage.browser.type_text("asks");
    assert_eq!(stage.browser.wrong_in_any_theme("find"), [""; 0]);
    stage.browser.press(&["Tab", "Enter"]);
    stage.until(3);
    let word = stage.browser.run("return doorwayLab.story.steps[2].do");
    assert!(word.as_str().unwrap().starts_with('a'), "{word}");
    stage.browser.press(&["Escape", "t"]);
    stage.browser.wait("dark", "return document.documentElement.dataset.theme === 'dark'");
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn back_branch_and_return_by_keyboard_alone() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    stage.visit("#/lab/ricart-agrawala+n=3/?at=0");
    let words = || stage.browser.run("return doorwayLab.story.words()");
    stage.browser.press(&["2"]);
    stage.until(1);
    assert_eq!(words(), "a2");
    stage.browser.press(&["1"]);
    stage.until(2);
    assert_eq!(words(), "a2d2-1");
    stage.browser.press(&["ArrowLeft"]);
    stage.until(1);
    stage.browser.press(&["2"]);
    stage.until(2);
    assert_eq!(words(), "a2d2-3", "another choice");
    assert_eq!(stage.browser.run("return doorwayLab.branches.length"), 1);
    assert_eq!(stage.browser.wrong_in_any_theme("branches"), [""; 0]);
    stage.browser.press(&["u"]);
    let open = "return document.querySelector('dialog').open";
    stage.browser.wait("the link", open);
    assert!(stage.text("dialog .address").contains("#/lab/ricart-agrawala"));
    let command = stage.text("dialog .command");
    let link = stage.browser.run("return doorwayLab.address()");
    assert_eq!(command, format!("doorway lab '{}'", link.as_str().unwrap()));
    assert_eq!(stage.browser.wrong_in_any_theme("link"), [""; 0]);
    stage.browser.press(&["Escape"]);
    stage.browser.press(&["b", "Enter"]);
    stage.browser.wait("the first way again", "return doorwayLab.story.words() === 'a2d2-1'");
    stage.browser.press(&["Home"]);
    stage.until(0);
    stage.browser.press(&["]"]);
    let script = "const {story, at} = doorwayLab; return story.steps[at - 1]?.entered";
    stage.browser.wait("somebody enters", script);
    stage.browser.press(&["["]);
    stage.until(0);
    stage.browser.press(&["End", "ArrowRight"]);
    stage.browser.press(&["?"]);
    stage.browser.wait("the list of keys", "return document.querySelector('dialog').open");
    assert_eq!(stage.browser.wrong_in_any_theme("help"), [""; 0]);
    stage.browser.press(&["Escape"]);
    stage.browser.press(&["p"]);
    stage.browser.wait("present", "return document.body.classList.contains('present')");
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn scrubbing_asks_the_server_for_nothing_but_the_choices_of_a_rest() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    stage.visit("#/lab/lamport+n=5/?at=0");
    stage.browser.run("await doorwayLab.go('300');");
    let asked = stage.browser.run(
        "const lab = doorwayLab; const real = window.fetch; const asked = []; \
         window.fetch = (...all) => { asked.push(all[0]); return real(...all); }; \
         const slider = document.querySelector('.slider'); \
         for (let at = 300; at > 0; at -= 7) { slider.value = at; \
           slider.dispatchEvent(new Event('input')); } \
         const during = asked.length; \
         await new Promise((done) => setTimeout(done, 200)); \
         lab.show(20); lab.show(6); await new Promise((done) => setTimeout(done, 200)); \
         window.fetch = real; return [during, asked, lab.at];",
    );
    // At the moment where the slider rests, the page asks once what else can happen there.
    assert_eq!(asked, serde_json::json!([0, ["/api/choices"], 6]));
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn ten_thousand_steps_stay_small() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    stage.visit("#/lab/ricart-agrawala+n=30/?at=0");
    stage.browser.run("for (let i = 0; i < 5; i += 1) await doorwayLab.go('2000');");
    let count = || stage.browser.run("return document.querySelectorAll('*').length").as_u64();
    assert_eq!(stage.browser.run("return doorwayLab.story.steps.length"), 10_000);
    for at in [10_000, 5_000, 0, 9_000] {
        stage.browser.run(&format!("doorwayLab.show({at})"));
        let elements = count().unwrap();
        assert!(elements < 2_500, "{elements} elements at step {at}");
    }
    // Scrolling draws other parts, and a click on the overview goes there.
    for share in [0.2, 0.8] {
        stage.browser.run(&format!(
            "const box = document.querySelector('.scroller'); box.scrollLeft = {share} * \
             box.scrollWidth; await new Promise((done) => requestAnimationFrame(() => \
             requestAnimationFrame(done)));"
        ));
        let arrows = stage.browser.run("return document.querySelectorAll('.arrow').length");
        assert!(arrows.as_u64().unwrap() > 20, "{arrows} arrows at {share}");
        let elements = count().unwrap();
        assert!(elements < 2_500, "{elements} elements at {share}");
    }
    stage.browser.run(
        "const box = document.querySelector('.overview').getBoundingClientRect(); \
         document.querySelector('.overview').dispatchEvent(new MouseEvent('click', \
         { clientX: box.left + box.width / 4, clientY: box.top + 5, bubbles: true }))",
    );
    assert!(stage.at().abs_diff(2_500) < 20, "step {}", stage.at());
    let link = stage.browser.run("return doorwayLab.address()");
    let link = link.as_str().unwrap();
    assert!(link.len() < 40_000, "{} characters", link.len());
    stage.visit("#/");
    stage.visit(link);
    stage.browser.wait("the long story", "return doorwayLab.story?.steps.length === 10000");
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn a_counterexample_opens_at_its_violation() {
    let is_it = |script: &&Script| script.name.starts_with("maekawa-slides");
    let text = SCRIPTS.iter().find(is_it).unwrap().text;
    let (name, text) = ("counterexample".to_owned(), (*text).to_owned());
    let stage = Stage::new(Look::DESK, First::Script { name, text });
    let steps = stage.browser.run("return doorwayLab.story.steps.length");
    assert_eq!(stage.at(), steps.as_u64().unwrap());
    assert!(stage.text(".sentence").contains("inside together"));
    let red = stage.browser.run("return document.querySelectorAll('.node.bad').length");
    assert_eq!(red, 2, "both nodes are red");
    let rules = stage.text(".rules");
    assert!(rules.contains("To give up: as in maekawa."), "{rules}");
    assert_eq!(stage.text(".rules code"), "maekawa");
    let bill = "3(K-1) to 6(K-1) = 0 to 12 messages per entry with quorums of K = 1 to 3 nodes";
    assert!(stage.text(".cost").contains(bill), "{}", stage.text(".cost"));
    stage.browser.picture("violation-1366");
    assert_eq!(stage.browser.wrong_in_any_theme("violation"), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn from_here_is_answered_and_shows_the_way() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    stage.visit("#/lab/maekawa-sequential-self-first+n=3/?at=0");
    stage.browser.press(&["h"]);
    let possible = "return document.querySelector('.possible')?.innerText";
    let answer = stage.browser.wait("an answer", possible);
    assert!(answer.as_str().unwrap().contains("Still possible: 6 steps"), "{answer}");
    assert_eq!(stage.browser.wrong_in_any_theme("still possible"), [""; 0]);
    stage.browser.run("document.querySelectorAll('.answer button')[1].click()");
    stage.browser.wait("the way", "return doorwayLab.story.steps.length === 6");
    stage.browser.press(&["End"]);
    assert!(stage.text(".sentence").contains("DEADLOCK"), "{}", stage.text(".sentence"));
    // The repaired text: the same question, another answer.
    stage.visit("#/lab/maekawa-sequential+n=3/?at=0");
    stage.browser.press(&["h"]);
    let impossible = "return document.querySelector('.answer')?.innerText.startsWith('Impossible')";
    stage.browser.wait("the other answer", impossible);
    assert_eq!(stage.browser.wrong_in_any_theme("impossible"), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn from_here_can_be_stopped_and_says_since_when_nothing_can_go_wrong() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    // Far more worlds than can be looked at before the button is pressed.
    stage.visit("#/lab/lamport+n=6/?at=0");
    stage.browser.press(&["h"]);
    stage.browser.wait("stop", "return document.querySelector('.ask').innerText === 'stop'");
    stage.browser.run("document.querySelector('.ask').click()");
    let stopped = "return document.querySelector('.answer').innerText.startsWith('Stopped')";
    stage.browser.wait("it stops", stopped);
    assert_eq!(stage.text(".ask"), "Can this still go wrong?");
    // The answer would be about another moment than the one on the screen, so the check stops.
    stage.browser.press(&["h"]);
    stage.browser.wait("stop", "return document.querySelector('.ask').innerText === 'stop'");
    stage.browser.press(&["1"]);
    let moved = "return document.querySelector('.answer').innerText.includes('another moment')";
    stage.browser.wait("it stops", moved);
    assert_eq!((stage.at(), stage.text(".ask").as_str()), (1, "Can this still go wrong?"));
    // Another screen stops it too, so both places for jobs are free again. The server notices that
    // a reader has gone when it next looks for it, and a new job waits for that.
    for _ in 0..4 {
        stage.visit("#/lab/lamport+n=6/?at=0");
        stage.browser.press(&["h"]);
        let looks = "return document.querySelector('.answer').innerText.startsWith('looking from')";
        stage.browser.wait("a job", looks);
        stage.visit("#/");
    }
    // One message may be lost. After the last reply no loss matters any more.
    stage.visit("#/lab/ricart-agrawala+n=3/a1d1-2d2-1d1-3d3-1?at=5");
    stage.browser.run(
        "const [asks, losses] = document.querySelectorAll('.here select'); \
         asks.value = '0'; losses.value = '1'",
    );
    stage.browser.press(&["h"]);
    let since = "return document.querySelector('.answer').innerText \
                 .startsWith('Impossible since step 5:')";
    stage.browser.wait("since when", since);
    assert_eq!(stage.browser.log(), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn a_link_of_another_server_opens_its_moment() {
    let place = "/lab/ricart-agrawala+n=3/a2d2-3d2-1?at=2".to_owned();
    let stage = Stage::new(Look::DESK, First::Link(place));
    stage.until(2);
    assert_eq!(stage.browser.run("return doorwayLab.story.words()"), "a2d2-3d2-1");
    // A tab without the token, as one in which the link of an exercise sheet was opened.
    let link = stage.browser.run("return location.href");
    stage.browser.new_tab();
    stage.browser.go(link.as_str().unwrap());
    stage.ready();
    let way = "return document.querySelector('#alert code')?.innerText";
    let way = stage.browser.wait("the command that opens it", way);
    assert!(way.as_str().unwrap().contains("#/lab/ricart-agrawala+n=3/a2d2-3d2-1?at=2"), "{way}");
    assert_eq!(stage.browser.wrong_in_any_theme("a link without the token"), [""; 0]);
}

/// A free port outside the range from which the system hands out ports, so that it is still free
/// when the server starts again.
fn port_for_a_restart() -> u16 {
    (61_000..u16::MAX)
        .find(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a port above the system's range is free")
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn a_restart_of_the_server_loses_nothing() {
    let port = port_for_a_restart();
    let mut stage = Stage::at_port(port, Look::DESK, First::Shelf);
    stage.visit("#/lab/ricart-agrawala+n=3/?at=0");
    stage.browser.press(&["1", "1", "1"]);
    stage.until(3);
    stage.stop();
    stage.browser.press(&["1"]);
    stage.browser.wait("the page says so", "return document.getElementById('alert').innerText");
    assert!(stage.text("#alert").contains("does not answer"), "{}", stage.text("#alert"));
    assert_eq!(stage.at(), 3, "the moment is kept");
    let way = "return document.querySelector('#alert code')?.innerText";
    let way = stage.browser.wait("the way to it", way);
    assert!(
        way.as_str().unwrap().starts_with("doorway lab '#/lab/ricart-agrawala+n=3/a1"),
        "{way}"
    );
    stage.browser.press(&["ArrowLeft", "ArrowRight"]);
    let token = stage.token.clone();
    let (_, runtime) = serve(port, &token, First::Shelf);
    stage.runtime = Some(runtime);
    stage.browser.press(&["1"]);
    stage.until(4);
    let well = "return document.getElementById('alert').innerText === ''";
    stage.browser.wait("all is well again", well);
    // A server with another token knows nobody; its own address opens the story again.
    stage.stop();
    let other = doorway_page::guard::Token::random().unwrap();
    let (address, runtime) = serve(port, &other, First::Shelf);
    stage.runtime = Some(runtime);
    stage.browser.press(&["1"]);
    stage.browser.wait("the page says so", "return document.getElementById('alert').innerText");
    let kept = "return sessionStorage.getItem('doorway.last') === await doorwayLab.address()";
    stage.browser.wait("the moment is remembered", kept);
    stage.browser.go(&address);
    stage.browser.run("location.reload()");
    stage.ready();
    stage.until(4);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn a_story_of_the_shelf_keeps_its_title_and_notes_when_it_is_loaded_again() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    stage.visit("#/story/ricart-agrawala%2Fconcurrent");
    stage.browser.press(&["Home", "ArrowRight", "ArrowRight", "ArrowRight"]);
    stage.until(3);
    let told = || (stage.text(".story"), stage.text(".note"));
    let before = told();
    assert!(!before.0.is_empty() && !before.1.is_empty(), "{before:?}");
    stage.browser.wait("the address", "return location.hash.includes('?at=3&w=')");
    stage.browser.run("location.reload()");
    stage.ready();
    stage.until(3);
    assert_eq!(told(), before);
    // Another choice makes it another story, which has a link of its own.
    let other = "const {story, at} = doorwayLab; await doorwayLab.take(doorwayLab.choices \
                 .find((it) => it.do[0] !== story.steps[at].do).do[0])";
    stage.browser.wait("choices", "return Boolean(doorwayLab.choices)");
    stage.browser.run(other);
    stage.until(4);
    stage.browser.wait("the address", "return location.hash.startsWith('#/lab/')");
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn a_deadlock_beside_clients_that_can_ask_says_so() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    stage.visit("#/lab/suzuki-kasami+n=3/a2x2-1x2-3?at=3");
    let text = "node 2 waits, and nothing but new requests can happen";
    assert!(stage.text(".next").contains(text), "{}", stage.text(".next"));
    assert!(stage.text(".next").contains("node 1 asks"), "{}", stage.text(".next"));
    stage.browser.press(&["h"]);
    let answer = "return document.querySelector('.answer').innerText.startsWith('This is wrong')";
    stage.browser.wait("an answer", answer);
    assert!(stage.text(".answer").contains(text), "{}", stage.text(".answer"));
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn the_first_screen_is_small_and_is_not_sent_twice() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    let sent = || stage.browser.run(SENT).as_u64().unwrap();
    for place in ["#/", "#/lab/ricart-agrawala+n=3/a1a2?at=2"] {
        stage.visit(place);
        stage.browser.devtools("Network.clearBrowserCache", &serde_json::json!({}));
        stage.browser.run("location.reload()");
        stage.ready();
        let first = sent();
        assert!((50_000..150_000).contains(&first), "{place}: {first} bytes");
        stage.browser.run("location.reload()");
        stage.ready();
        let second = sent();
        assert!(second < first / 3, "{place}: {second} bytes after {first}");
    }
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn links_name_quorums_and_lines_of_quorums() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    let list = "return doorwayLab.story.frame.group.quorums.join(' ')";
    // As a person types the group, and as links have it that were made before.
    let typed = "#/lab/maekawa+n=3+quorums=1,2;2,3;1,3/?at=0";
    let lines = "#/lab/maekawa+n=3;quorum+1+=+1+2;quorum+2+=+2+3;quorum+3+=+1+3/a1?at=1";
    for place in [typed, lines] {
        stage.visit(place);
        assert_eq!(stage.text("#alert"), "", "{place}");
        assert_eq!(stage.browser.run(list), "1,2 2,3 1,3", "{place}");
        let link = stage.browser.run("return doorwayLab.address()");
        stage.visit("#/");
        stage.visit(link.as_str().unwrap());
        assert_eq!(stage.text("#alert"), "", "{link}");
        assert_eq!(stage.browser.run(list), "1,2 2,3 1,3", "{link}");
    }
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn links_that_do_not_fit_are_answered_with_a_sentence() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    let told = |place: &str| {
        stage.visit(place);
        let script = "return document.getElementById('alert').innerText || null";
        stage.browser.wait(place, script).as_str().unwrap().to_owned()
    };
    assert!(told("#/lab/ricart-agrawla+n=3/").contains("no algorithm 'ricart-agrawla'"));
    assert!(told("#/lab/ricart-agrawala+n=3/a1d2-3").contains("step 2"));
    assert_eq!(stage.browser.run("return doorwayLab.story.steps.length"), 1, "as far as it goes");
    assert!(told("#/lab/ricart-agrawala+n=3/a1?at=1&w=deadbeef").contains("differs from"));
    // Of a longer story the link has a sign for some of its steps, which say where it differs.
    for (steps, changed, since) in
        [(5, 2, 2), (5, 5, 5), (200, 1, 1), (200, 60, 57), (200, 200, 197)]
    {
        stage.visit("#/lab/ricart-agrawala+n=3/?at=0");
        stage.browser.run(&format!("await doorwayLab.go('{steps}')"));
        let link = stage.browser.run("return doorwayLab.address()");
        let link = link.as_str().unwrap().to_owned();
        stage.visit("#/");
        stage.visit(&link);
        stage.until(steps);
        assert_eq!(stage.text("#alert"), "", "the code is the same: {link}");
        // The link as it would be if the code told another story from this step on.
        let other = stage.browser.run(&format!(
            "const url = await import('/js/url.js'); const {{ story }} = doorwayLab; \
             const steps = story.steps.map(({{ print }}, at) => \
               ({{ print: at + 1 < {changed} ? print : (print ^ 0x5a5a5a5f) >>> 0 }})); \
             return url.write({{ run: story.frame.run, steps: story.words(), at: 0, \
               print: url.print(steps) }})"
        ));
        let place = other.as_str().unwrap();
        let said = told(place);
        let wanted = format!("differs from about step {since} on");
        assert!(said.contains(&wanted), "{steps} steps, changed at {changed}: {said}");
    }
    assert!(told("#/lab/ricart-agrawala+n=3000/").contains("1 to 100"));
    assert!(told("#/story/no%2Fsuch").contains("no story"));
    assert!(told("#/lab/%3Cimg%20src%3Dx%3E+n=3/").contains("<img"), "markup is text");
    assert!(told("#/lab/ricart-agrawala+n=3/~@@@").len() > 5);
    for place in ["#/story/%", "#/lab/%+n=3/", "#/lab/lamport%ff/"] {
        assert!(told(place).contains("This address is damaged"), "{place}");
    }
    let long = stage.browser.run(
        "const url = await import('/js/url.js'); \
         return `#/lab/ricart-agrawala+n=3/${await url.packSteps('a1'.repeat(600_000))}`",
    );
    let long = long.as_str().unwrap();
    assert!(long.len() < 5_000, "{} characters", long.len());
    assert!(told(long).contains("longer than those of any story"));
    // The address of a story in which nothing can be chosen notices it too.
    assert!(told("#/story/central-drop?at=1&w=deadbeefAAAA").contains("differs from"));
    assert_eq!(stage.at(), 1, "it is shown all the same");
    let images = stage.browser.run("return document.querySelectorAll('img').length");
    assert_eq!(images, 0);
    assert_ne!(stage.browser.run("return typeof doorwayLab"), Value::Null);
}
