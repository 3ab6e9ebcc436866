//! What leaves the page: files, the atlas, the link; and what comes in: recordings.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use doorway_core::Shape;
use doorway_lab::diagram::{self, Format};
use doorway_lab::simulate;
use doorway_lab::stories::{SCRIPTS, Script};
use doorway_lab::story::{Pick, SendView, StepView, StopCondition, Story};
use doorway_lab::trace::{Event, EventKind};
use doorway_lab::{Trace, script};
use doorway_page::server::First;
use serde_json::{Value, json};

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
    assert_eq!(Story::read(&script).unwrap().words, story.step_words());
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

/// The steps of a story with every fault.
const FAULTY: [&str; 7] = ["a1", "a2", "x1-2", "u1-3", "d1-3", "d2-1", "c3"];

/// What the space-time diagram on screen has, by class and tip; the flights of the story with the
/// steps at which they were sent, arrived and were lost; and its bills.
const DRAWN: &str = "
  const { story } = doorwayLab;
  const { fold } = await import('/js/bills.js');
  const parts = [...document.querySelectorAll('.spacetime .arrow, .spacetime .lost, \
    .spacetime .stub, .spacetime .stay')].map((it) => {
    it.dispatchEvent(new PointerEvent('pointerover', { bubbles: true }));
    const kinds = ['arrow', 'lost', 'stub', 'waiting', 'inside', 'shared'];
    const kind = kinds.find((name) => it.classList.contains(name));
    return `${kind}: ${it.querySelector('title').textContent.split(', steps')[0]}`;
  });
  const flights = [...story.flights.values()].map((it) => [it.id, it.from, it.to, it.text, it.sent,
    it.arrived, it.lost]);
  const bills = fold(story, story.steps.length).map((it) => [it.node, it.request, it.messages,
    it.others, it.state]);
  return [parts.sort(), flights.sort((a, b) => a[0] - b[0]), bills];
";

/// What an exported diagram has, in the same form. Of a stay only the node is compared: the two
/// tips have different words.
fn exported_shapes(svg: &str) -> Vec<String> {
    let shape = |line: &str| {
        let rest = line.strip_prefix("<path class=\"").or(line.strip_prefix("<rect class=\""))?;
        let kind = rest.split([' ', '"']).next()?;
        let (_, rest) = rest.split_once("<title>")?;
        let (tip, _) = rest.split_once("</title>")?;
        let tip = tip.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
        let tip = tip.trim_end_matches(", lost").trim_end_matches(", never received");
        Some(shape_name(kind, tip))
    };
    let mut shapes: Vec<String> = svg.lines().filter_map(shape).collect();
    shapes.sort();
    shapes
}

/// A shape by its class and its tip.
fn shape_name(kind: &str, tip: &str) -> String {
    match kind {
        "waiting" | "inside" | "shared" => {
            let node: Vec<&str> = tip.split(' ').take(2).collect();
            format!("{kind}: {}", node.join(" "))
        }
        _ => format!("{kind}: {tip}"),
    }
}

/// The messages of a run, as its trace tells them.
fn traced_flights(trace: &Trace) -> Vec<Value> {
    type Flight = (u32, u32, String, f64, Vec<f64>, Option<f64>);
    let mut flights: BTreeMap<u64, Flight> = BTreeMap::new();
    for Event { at, node, what } in &trace.events {
        match what {
            EventKind::Send { id, to, message } => {
                let flight = (node.0 + 1, to.0 + 1, message.clone(), *at, Vec::new(), None);
                flights.insert(*id, flight);
            }
            EventKind::Receive { id } => flights.get_mut(id).expect("it was sent").4.push(*at),
            EventKind::Lose { id } => flights.get_mut(id).expect("it was sent").5 = Some(*at),
            _ => {}
        }
    }
    flights.into_iter().map(|(id, f)| json!([id, f.0, f.1, f.2, f.3, f.4, f.5])).collect()
}

/// The bills of a run: node, number of the request, messages, entries of others, state.
fn bills(steps: &[StepView]) -> Vec<Value> {
    struct Bill {
        node: u32,
        request: u32,
        others: usize,
        state: &'static str,
    }
    let mut bills: Vec<Bill> = Vec::new();
    for StepView { word, node, entered, .. } in steps {
        let state = match word.chars().next() {
            Some('a' | 's') => {
                let earlier = bills.iter().filter(|bill| bill.node == *node).count() as u32;
                let (node, request) = (*node, earlier + 1);
                bills.push(Bill { node, request, others: 0, state: "waits" });
                None
            }
            Some('r') => Some("done"),
            Some('w') => Some("given up"),
            _ => None,
        };
        let state = if *entered { Some("inside") } else { state };
        let mine = bills.iter_mut().rfind(|bill| bill.node == *node);
        if let (Some(state), Some(bill)) = (state, mine) {
            bill.state = state;
        }
        for bill in bills.iter_mut().filter(|bill| *entered && bill.state == "waits") {
            bill.others += 1;
        }
    }
    let sends: Vec<&SendView> = steps.iter().flat_map(|step| &step.sends).collect();
    let told = |Bill { node, request, others, state }| {
        let paid = sends.iter().filter(|send| send.pays == Some((node, request))).count();
        json!([node, request, paid, others, state])
    };
    bills.into_iter().map(told).collect()
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn every_story_is_drawn_as_it_is_exported_and_billed_as_rust_counts() {
    // As wide as the longest story, so that all of it is drawn.
    let stage = Stage::new(Look { width: 6_000, height: 900 }, First::Shelf);
    let (mut arrows, mut lost, mut stays, mut paid) = (0, 0, 0, 0);
    let mut wrong = Vec::new();
    let shelf = SCRIPTS.iter().map(|Script { name, text, .. }| {
        let story = Story::read(text).expect("a script of the shelf").story;
        (*name, format!("#/story/{}", name.replace('/', "%2F")), story)
    });
    // A message is lost, one arrives twice, and a node crashes before another one arrives.
    let mut faulty = Story::begin("ricart-agrawala n=3").unwrap();
    for word in FAULTY {
        faulty.step(word).unwrap();
    }
    let faulty = ("faults", format!("#/lab/ricart-agrawala+n=3/{}?at=0", FAULTY.concat()), faulty);
    for (name, place, story) in shelf.chain([faulty]) {
        stage.visit(&place);
        let steps = story.len();
        stage.browser.wait(name, &format!("return doorwayLab.story?.steps.length === {steps}"));
        stage.browser.run("await new Promise((done) => requestAnimationFrame(done))");
        let told = stage.browser.run(DRAWN);
        let trace = story.trace();
        let svg = diagram::render(&trace, Format::Svg);
        let shapes = exported_shapes(&svg);
        let drawn = told[0].as_array().expect("a list").iter();
        let mut drawn: Vec<String> = drawn
            .map(|part| {
                let (kind, tip) = part.as_str().and_then(|it| it.split_once(": ")).expect("a part");
                shape_name(kind, tip)
            })
            .collect();
        drawn.sort();
        if drawn != shapes {
            let only = |one: &[String], other: &[String]| -> Vec<String> {
                let mut rest = other.to_vec();
                let lacks = |it: &&String| match rest.iter().position(|other| other == *it) {
                    Some(at) => {
                        rest.remove(at);
                        false
                    }
                    None => true,
                };
                one.iter().filter(lacks).cloned().collect()
            };
            let (page, file) = (only(&drawn, &shapes), only(&shapes, &drawn));
            wrong.push(format!("{name}: only on the page {page:?}, only in the file {file:?}"));
        }
        let flights = Value::from(traced_flights(&trace));
        if json_numbers(&told[1]) != json_numbers(&flights) {
            wrong.push(format!("{name}: the page has {}, the trace {flights}", told[1]));
        }
        let counted = Value::from(bills(&story.retell()));
        if told[2] != counted {
            wrong.push(format!("{name}: the page bills {}, Rust {counted}", told[2]));
        }
        let count = |kinds: &[&str]| {
            shapes.iter().filter(|it| kinds.iter().any(|kind| it.starts_with(kind))).count()
        };
        arrows += count(&["arrow"]);
        lost += count(&["lost"]);
        stays += count(&["waiting", "inside", "shared"]);
        paid += counted.as_array().map_or(0, Vec::len);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        arrows > 600 && lost > 1 && stays > 250 && paid > 140,
        "{arrows} {lost} {stays} {paid}"
    );
    assert_eq!(stage.browser.log(), [""; 0]);
}

/// A text in which whole numbers look alike, whether they were made from whole ones or not.
fn json_numbers(value: &Value) -> String {
    value.to_string().replace(".0,", ",").replace(".0]", "]")
}

/// How many atlases have been written, so that each has a file of its own.
static MADE: AtomicUsize = AtomicUsize::new(0);

/// Write the atlas of the story on screen to a file, and open the file in the window.
fn open_atlas(stage: &Stage) {
    let html = exported(stage, "atlas");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/page");
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let name = format!("atlas-{}-{number}.html", std::process::id());
    let path = folder.canonicalize().expect("the folder is there").join(name);
    std::fs::write(&path, &html).expect("the file can be written");
    stage.browser.go(&format!("file://{}", path.display()));
    stage.ready();
    assert_eq!(stage.browser.run("return doorwayLab.home.name"), "file");
    std::fs::remove_file(path).expect("the file is there");
}

/// Compare the story on screen with the one that Rust tells. Returns how many steps it has.
fn told_as_by_rust(stage: &Stage, group: &str) -> usize {
    let told = stage.browser.run(
        "return doorwayLab.story.steps.map(({ do: word, node, state, entered, sends, rules }) => \
         [word, node, state.phase, Boolean(entered), rules, \
          (sends ?? []).map(({ to, pays }) => [to, pays ?? null])])",
    );
    let mut story = Story::begin(group).expect("the group is known");
    for (step, number) in told.as_array().expect("a list").iter().zip(1..) {
        let word = step[0].as_str().expect("a word");
        let rust = story.step(word).unwrap_or_else(|why| panic!("{group}, {told}: {why}"));
        let sends: Vec<_> = rust.sends.iter().map(|send| (send.to, send.pays)).collect();
        let (node, phase, entered) = (rust.node, rust.state.phase, rust.entered);
        // An atlas does not know by which rule a message arrives that changes nothing.
        let nothing = step[4] == json!([]) && rust.sends.is_empty() && !entered;
        let rules = if nothing { Vec::new() } else { rust.rules };
        let same = json!([word, node, phase, entered, rules, sends]);
        assert_eq!(*step, same, "{group}, step {number}");
    }
    story.len()
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn an_atlas_opens_from_a_file_and_tells_what_the_server_tells() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    stage.visit(RUN);
    open_atlas(&stage);
    // Choose by key, go back, choose another way; then let it run.
    stage.browser.press(&["1", "1"]);
    stage.until(2);
    stage.browser.press(&["ArrowLeft"]);
    stage.until(1);
    stage.browser.press(&["2"]);
    stage.until(2);
    assert_eq!(stage.browser.run("return doorwayLab.branches.length"), 1);
    stage.browser.run("await doorwayLab.go('60')");
    assert!(told_as_by_rust(&stage, "ricart-agrawala n=3") >= 60);
    let bills = stage.text(".cost tbody");
    let done: Vec<&str> = bills.lines().filter(|row| row.ends_with("\tdone")).collect();
    let paid = |row: &&str| row.split('\t').nth(1) == Some("4");
    assert!(!done.is_empty() && done.iter().all(paid), "each costs 2(N-1) messages: {bills}");
    stage.browser.picture("atlas-1366");
    assert_eq!(stage.browser.wrong_in_any_theme("atlas"), [""; 0]);
    assert_eq!(stage.text("#alert"), "");
    assert_eq!(stage.browser.log(), [""; 0]);
    // Code that somebody has put into the document does not run.
    let title = stage.browser.run(
        "const script = document.createElement('script'); \
         script.textContent = 'document.title = \"owned\"'; document.body.append(script); \
         document.body.insertAdjacentHTML('beforeend', \
           '<img src=\"data:,\" onerror=\"document.title = `owned`\">'); \
         await new Promise((done) => setTimeout(done, 300)); return document.title",
    );
    assert_ne!(title, "owned");
    let refused = stage.browser.log();
    let refused = refused.iter().filter(|it| it.contains("Content Security Policy")).count();
    assert_eq!(refused, 2, "the script and the listener");
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn an_atlas_picks_the_steps_that_rust_picks() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    let server = stage.browser.run("return location.href").as_str().unwrap().to_owned();
    let server = server.split('#').next().unwrap();
    for group in ["ricart-agrawala n=3", "maekawa-sequential n=3", "le-lann n=3", "lamport n=2"] {
        stage.browser.go(server);
        stage.ready();
        stage.visit(&format!("#/lab/{}/?at=0", group.replace(' ', "+")));
        open_atlas(&stage);
        for (name, pick) in [("oldest", Pick::Oldest), ("fair", Pick::Fair)] {
            let told = stage.browser.run(&format!(
                "const lab = doorwayLab; lab.show(0); lab.pick = '{name}'; await lab.go('60'); \
                 return lab.story.words()"
            ));
            let mut story = Story::begin(group).unwrap();
            story.go(pick, StopCondition::Steps(60));
            assert_eq!(told, story.step_words().concat(), "{group}, {name}");
        }
    }
    assert_eq!(stage.browser.log(), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn an_atlas_has_give_ups_where_they_fit_and_no_switches_for_faults() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    let server = stage.browser.run("return location.href").as_str().unwrap().to_owned();
    let server = server.split('#').next().unwrap();
    let gives_up = "return [...document.querySelectorAll('.next .choice')].filter((it) => \
                    it.innerText.includes('gives up')).map((it) => it.dataset.do)";
    for (group, lacks) in [
        ("ricart-agrawala n=2", "This file has no faults."),
        ("ricart-agrawala n=3", "This file has no faults, and no clients that give up."),
        ("naimi-trehel n=3", "This file has no faults."),
    ] {
        stage.browser.go(server);
        stage.ready();
        stage.visit(&format!("#/lab/{}/?at=0", group.replace(' ', "+")));
        open_atlas(&stage);
        assert!(stage.text(".next").ends_with(lacks), "{group}: {}", stage.text(".next"));
        let switches = "return document.querySelectorAll('.switches').length";
        assert_eq!(stage.browser.run(switches), 0, "{group}");
        stage.browser.press(&["f"]);
        stage.browser.run("await doorwayLab.take('a1')");
        let offered = if group == "ricart-agrawala n=2" { json!(["w1"]) } else { json!([]) };
        assert_eq!(stage.browser.run(gives_up), offered, "{group}");
    }
    stage.browser.picture("atlas-lacks-1366");
    stage.browser.go(server);
    stage.ready();
    stage.visit("#/lab/ricart-agrawala+n=2/?at=0");
    open_atlas(&stage);
    // Rules about requests that are given up count after one is.
    stage.browser.run("for (const it of ['a1', 'w1', 'a2', 'a1']) await doorwayLab.take(it)");
    stage.browser.run("await doorwayLab.go('40')");
    assert!(told_as_by_rust(&stage, "ricart-agrawala n=2") >= 44);
    assert_eq!(stage.browser.wrong_in_any_theme("atlas with give-ups"), [""; 0]);
    assert_eq!(stage.browser.log(), [""; 0]);
}

/// Groups whose messages are paid for in different ways: by the node that an answer serves, by the
/// cause alone, and for a request that somebody else passes on.
const PAID: [&str; 6] = [
    "suzuki-kasami n=3",
    "lamport n=2",
    "carvalho-roucairol n=3",
    "raymond-tree n=3",
    "naimi-trehel n=3",
    "maekawa-sequential n=3",
];

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn an_atlas_charges_messages_as_the_server_does_and_its_links_open_at_both() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    let server = stage.browser.run("return location.href").as_str().unwrap().to_owned();
    let server = server.split('#').next().unwrap();
    for group in PAID {
        let place = format!("#/lab/{}/?at=0", group.replace(' ', "+"));
        stage.browser.go(server);
        stage.ready();
        stage.visit(&place);
        stage.browser.run("await doorwayLab.go('12')");
        let link = stage.browser.run("return doorwayLab.address()");
        let link = link.as_str().unwrap().to_owned();
        assert!(link.contains("&w="), "the server's link notices changed code: {link}");
        open_atlas(&stage);
        stage.visit(&link);
        stage.until(12);
        assert_eq!(stage.text("#alert"), "", "{group}: the server's link opens in the atlas");
        assert_eq!(told_as_by_rust(&stage, group), 12);
        stage.browser.run("doorwayLab.pick = 'dice:7'; await doorwayLab.go('80')");
        let steps = told_as_by_rust(&stage, group);
        assert!(steps >= 92, "{group}: {steps} steps");
        let link = stage.browser.run("return doorwayLab.address()");
        let link = link.as_str().unwrap().to_owned();
        stage.browser.go(server);
        stage.ready();
        stage.visit(&link);
        stage.until(steps as u64);
        assert_eq!(stage.text("#alert"), "", "{group}: the atlas's link opens at the server");
    }
    assert_eq!(stage.browser.log(), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn a_recording_with_hostile_names_is_shown_as_text() {
    let mut story = Story::begin("ricart-agrawala n=3").unwrap();
    story.go(Pick::Fair, StopCondition::Steps(30));
    let names = ["<img src=x onerror=alert(1)>", "b\"'&", "</script>\u{202e}gnp.exe"];
    let names = names.map(str::to_owned).to_vec();
    let title = "lock \u{202e}gnp.exe of group shop".to_owned();
    let trace = Trace { names, title, unit: "milliseconds", ..story.trace() };
    let stage = Stage::new(Look::DESK, First::Recording(Box::new(trace)));
    assert_eq!(stage.browser.run("return document.querySelectorAll('img').length"), 0);
    assert!(stage.text(".lanes").contains("<img src=x onerror=alert(1)>"));
    // A sign that turns the direction of reading is shown and turns nothing.
    assert_eq!(stage.text(".story"), "lock ⟨U+202E⟩gnp.exe of group shop");
    assert!(stage.text(".lanes").contains("</script>⟨U+202E⟩gnp.exe"));
    let steps = stage.browser.run("return doorwayLab.story.steps.length").as_u64().unwrap();
    assert!(steps >= 30, "{steps}");
    for at in 0..=steps {
        stage.browser.run(&format!("doorwayLab.show({at})"));
        let raw = stage.browser.run("return document.body.innerText.includes('\\u202e')");
        assert_eq!(raw, false, "step {at}");
    }
    stage.browser.press(&["End"]);
    stage.until(steps);
    assert!(stage.text(".next").contains("A recording"));
    stage.browser.press(&["u"]);
    stage.browser.wait("the link", "return document.querySelector('.address')");
    assert!(stage.text("dialog").contains("as long as this command runs"));
    assert!(stage.text(".address").ends_with(&format!("#/first?at={steps}")));
    stage.browser.press(&["Escape"]);
    let svg = exported(&stage, "svg");
    assert!(svg.contains("&lt;img src=x onerror=alert(1)&gt;") && !svg.contains("<img"), "{svg}");
    stage.browser.picture("recording-1366");
    assert_eq!(stage.browser.wrong_in_any_theme("recording"), [""; 0]);
    assert_eq!(stage.browser.log(), [""; 0]);
}

/// The run on screen, in which nothing can be chosen, has a link to each of its moments, and is
/// exported as diagrams.
fn has_links_and_exports(stage: &Stage, trace: &Trace) {
    stage.browser.run("doorwayLab.show(40)");
    stage.browser.wait("the address", "return location.hash.includes('&at=40&w=')");
    let link = stage.browser.run("return doorwayLab.address()");
    assert_eq!(link, stage.browser.run("return location.hash"));
    stage.visit("#/");
    stage.visit(link.as_str().expect("text"));
    stage.until(40);
    stage.browser.run("location.reload()");
    stage.ready();
    stage.until(40);
    assert_eq!(stage.text(".story"), trace.title);
    for (kind, format) in [("svg", Format::Svg), ("text", Format::Text), ("shiviz", Format::Shiviz)]
    {
        assert!(exported(stage, kind) == diagram::render(trace, format), "{kind}");
    }
    stage.browser.press(&["e"]);
    stage.browser.wait("the list", "return document.querySelectorAll('.format').length === 6");
    stage.browser.press(&["Escape"]);
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
        shown.steps.iter().take(200).map(|step| json!([step.node, step.say])).collect();
    assert_eq!(steps, json!(wanted));
    let title = stage.text(".story");
    assert!(title.starts_with(&format!("{name} n=7, seed 1")), "{title}");
    assert!(stage.text(".next").contains("A run of the simulator"));
    has_links_and_exports(&stage, &Trace { title, ..trace });
    stage.browser.picture("compare-run-1366");
    for look in [Look::PHONE, Look::BEAMER, Look::DESK] {
        stage.browser.look(look);
        let screen = format!("compare-run-{}", look.width);
        stage.browser.picture(&screen);
        assert_eq!(stage.browser.wrong_in_any_theme(&screen), [""; 0]);
    }
    assert_eq!(stage.browser.log(), [""; 0]);
}
