//! What leaves the page: files, the atlas, the link; and what comes in: recordings.

use std::path::Path;

use doorway_core::Shape;
use doorway_lab::diagram::{self, Format};
use doorway_lab::simulate;
use doorway_lab::story::{Pick, StopCondition, Story};
use doorway_lab::{Trace, script};
use doorway_page::server::First;

use crate::Stage;
use crate::driver::Look;

const RUN: &str = "#/lab/ricart-agrawala+n=3/a1a2d1-2d1-3d2-1d2-3d3-1d3-2?at=8";

/// The text of an export of the story on screen.
fn exported(stage: &Stage, format: &str) -> String {
    let script = format!(
        "const {{ fileOf }} = await import('/js/export.js'); \
         return (await fileOf(doorwayLab, '{format}')).text();"
    );
    stage.browser.run(&script).as_str().expect("a text").to_owned()
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn a_story_is_exported_in_every_format() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    stage.visit(RUN);
    let mut story = Story::begin("ricart-agrawala n=3").unwrap();
    for word in ["a1", "a2", "d1-2", "d1-3", "d2-1", "d2-3", "d3-1", "d3-2"] {
        story.step(word).unwrap();
    }
    let script = exported(&stage, "script");
    assert_eq!(script, script::run(&script).unwrap().text, "the script has its effects");
    assert_eq!(Story::read(&script).unwrap().words, story.words());
    for (name, format) in [
        ("svg", Format::Svg),
        ("mermaid", Format::Mermaid),
        ("shiviz", Format::Shiviz),
        ("perfetto", Format::Chrome),
        ("text", Format::Text),
    ] {
        assert_eq!(exported(&stage, name), diagram::render(&story.trace(), format), "{name}");
    }
    assert_eq!(exported(&stage, "csv").lines().count(), 9);
    let size = stage.browser.run(
        "const { fileOf } = await import('/js/export.js'); \
         const image = await createImageBitmap(await fileOf(doorwayLab, 'png')); \
         return [image.width, image.height];",
    );
    assert!(size[0].as_u64().unwrap() > 900, "{size}");
    // The page draws as many arrows as the exported picture.
    let svg = exported(&stage, "svg");
    let arrows = stage.browser.run("return document.querySelectorAll('.spacetime .arrow').length");
    let drawn = svg.matches("class=\"arrow ").count();
    assert_eq!(arrows.as_u64(), Some(drawn as u64));
    let bars = stage.browser.run("return document.querySelectorAll('.spacetime .stay').length");
    let titles = [" waiting</title>", " inside</title>"].map(|title| svg.matches(title).count());
    let stays: usize = titles.iter().sum();
    assert_eq!(bars.as_u64(), Some(stays as u64), "{svg}");
    stage.browser.press(&["e"]);
    stage.browser.wait("the list", "return document.querySelectorAll('.format').length === 9");
    stage.browser.picture("export-1366");
    assert_eq!(stage.browser.wrong_in_any_theme("export"), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn an_atlas_opens_from_a_file_and_tells_what_the_server_tells() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    stage.visit(RUN);
    let html = exported(&stage, "atlas");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/page");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.canonicalize().unwrap().join("atlas.html");
    std::fs::write(&path, &html).unwrap();
    stage.browser.go(&format!("file://{}", path.display()));
    stage.ready();
    assert_eq!(stage.browser.run("return doorwayLab.home.name"), "file");
    // Choose by key, go back, choose another way; then let it run.
    stage.browser.press(&["1", "1"]);
    stage.until(2);
    stage.browser.press(&["ArrowLeft"]);
    stage.until(1);
    stage.browser.press(&["2"]);
    stage.until(2);
    assert_eq!(stage.browser.run("return doorwayLab.branches.length"), 1);
    stage.browser.run("await doorwayLab.go('60')");
    let words = stage.browser.run("return doorwayLab.story.words()");
    let mut story = Story::begin("ricart-agrawala n=3").unwrap();
    for (number, word) in
        doorway_lab::story::words::split(words.as_str().unwrap()).unwrap().into_iter().enumerate()
    {
        let step = story.step(word).unwrap_or_else(|why| panic!("{words}: {why}"));
        let told = stage.browser.run(&format!(
            "const {{ node, state, entered, sends, rules }} = doorwayLab.story.steps[{number}]; \
             return [node, state.phase, Boolean(entered), sends.length, rules]"
        ));
        let sends = step.sends.len();
        let same =
            serde_json::json!([step.node, step.state.phase, step.entered, sends, step.rules]);
        assert_eq!(told, same, "step {number}, {word}");
    }
    assert!(story.len() >= 60, "{} steps", story.len());
    stage.browser.picture("atlas-1366");
    assert_eq!(stage.browser.wrong_in_any_theme("atlas"), [""; 0]);
    assert_eq!(stage.text("#alert"), "");
    assert_eq!(stage.browser.log(), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn a_recording_with_hostile_names_is_shown_as_text() {
    let mut story = Story::begin("ricart-agrawala n=3").unwrap();
    story.go(Pick::Fair, StopCondition::Steps(30));
    let names = ["<img src=x onerror=alert(1)>", "b\"'&", "</script>"];
    let names = names.map(str::to_owned).to_vec();
    let trace = Trace { names, unit: "milliseconds", ..story.trace() };
    let stage = Stage::new(Look::DESK, First::Recording(Box::new(trace)));
    assert_eq!(stage.browser.run("return document.querySelectorAll('img').length"), 0);
    assert!(stage.text(".lanes").contains("<img src=x onerror=alert(1)>"));
    let steps = stage.browser.run("return doorwayLab.story.steps.length").as_u64().unwrap();
    assert!(steps >= 30, "{steps}");
    stage.browser.press(&["End"]);
    stage.until(steps);
    assert!(stage.text(".next").contains("A recording"));
    stage.browser.picture("recording-1366");
    assert_eq!(stage.browser.wrong_in_any_theme("recording"), [""; 0]);
    assert_eq!(stage.browser.log(), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn algorithms_are_compared_row_by_row() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    stage.visit("#/compare");
    stage.browser.run("document.querySelector('.plan button').click()");
    stage.browser.wait("the curves", "return document.querySelector('.plot img')?.complete");
    let rows = stage.browser.run("return document.querySelectorAll('.compare tbody tr').length");
    assert_eq!(rows, 21, "three algorithms at seven sizes");
    assert!(stage.text(".compare code").starts_with("doorway compare "));
    stage.browser.picture("compare-1366");
    assert_eq!(stage.browser.wrong_in_any_theme("compare"), [""; 0]);
    for look in [Look::PHONE, Look::BEAMER, Look::DESK] {
        stage.browser.look(look);
        let screen = format!("compare-{}", look.width);
        assert_eq!(stage.browser.facts(&screen), [""; 0]);
    }
    // The links lie over the points of the picture, and open the runs that were measured.
    let links = stage.browser.run(
        "const image = document.querySelector('.plot img').getBoundingClientRect(); \
         return [...document.querySelectorAll('.marks a')].filter((it) => { \
           const box = it.getBoundingClientRect(); \
           return box.left >= image.left && box.right <= image.right && box.top >= image.top \
             && box.bottom <= image.bottom; }).length",
    );
    assert_eq!(links, 21);
    let told = stage.browser.run(
        "const row = [...document.querySelectorAll('.compare tbody tr')][1]; \
         const link = [...document.querySelectorAll('.marks a')][1]; \
         link.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true })); \
         return [row.children[0].innerText, row.children[1].innerText, \
           row.querySelector('a').getAttribute('href') === link.getAttribute('href')];",
    );
    assert_eq!((&told[1], &told[2]), (&"7".into(), &true.into()), "{told}");
    let run = "return !doorwayLab.busy && doorwayLab.story?.steps.length > 100";
    stage.browser.wait("the run", run);
    let name = told[0].as_str().unwrap();
    let same = simulate::run(name, 7, &Shape::default(), |options| {
        (options.seed, options.entries, options.trace) = (1, 1_000, 10_000);
    });
    let (_, trace) = same.unwrap();
    let shown = doorway_lab::story::recorded(&trace);
    let steps = stage
        .browser
        .run("return doorwayLab.story.steps.slice(0, 200).map((it) => [it.node, it.say ?? null])");
    let wanted: Vec<_> =
        shown.steps.iter().take(200).map(|step| serde_json::json!([step.node, step.say])).collect();
    assert_eq!(steps, serde_json::json!(wanted));
    let title = stage.text(".story");
    assert!(title.starts_with(&format!("{name} n=7, seed 1")), "{title}");
    assert!(stage.text(".next").contains("A run of the simulator"));
    stage.browser.picture("compare-run-1366");
    assert_eq!(stage.browser.log(), [""; 0]);
}
