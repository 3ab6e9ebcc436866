//! Every screen at the sizes of a desk, a beamer and a phone, in both themes, and with forced
//! colours: looked at by axe, and checked by facts. Pictures go to `target/page` for people.

use doorway_page::server::First;

use crate::Stage;
use crate::driver::{Look, Theme};

const SCREENS: [(&str, &str, &str); 16] = [
    ("shelf", "#/", ""),
    ("moment", "#/lab/ricart-agrawala+n=4/a2d2-1d2-3a3d2-4d1-2d3-2d4-2d3-2d3-1?at=10", ""),
    ("quorums", "#/story/maekawa%2Fsection-5", "doorwayLab.show(30)"),
    ("grid", "#/lab/maekawa+n=9+quorums=grid/?at=0", "await doorwayLab.go('12')"),
    ("triangle", "#/lab/maekawa+n=10+quorums=triangle/?at=0", "await doorwayLab.go('12')"),
    ("plane", "#/lab/maekawa+n=7/?at=0", "await doorwayLab.go('12')"),
    ("ring", "#/lab/le-lann+n=6/a3?at=1", "await doorwayLab.go('3')"),
    ("tree", "#/story/raymond-tree%2Fchain", "doorwayLab.show(6)"),
    ("matrix", "#/lab/lamport+n=20/?at=0", "await doorwayLab.go('60')"),
    ("matrix-plane", "#/lab/maekawa+n=13/?at=0", "await doorwayLab.go('40')"),
    ("matrix-60", "#/lab/ricart-agrawala+n=60/a1a30?at=2", ""),
    ("deadlock", "#/story/maekawa-fano", "await new Promise((done) => setTimeout(done, 300))"),
    ("compare", "#/compare", ""),
    (
        "threads",
        "#/threads?name=peterson&n=2&steps=p0p1p0",
        "await new Promise((done) => \
      setTimeout(done, 300))",
    ),
    (
        "bakery",
        "#/threads?name=bakery&n=2&steps=p0p1p0p1p0p0p1",
        "await new Promise((done) => setTimeout(done, 300))",
    ),
    (
        "present",
        "#/story/ricart-agrawala%2Fconcurrent",
        "doorwayLab.show(7); \
      document.body.classList.add('present'); doorwayLab.show(7)",
    ),
];

/// Two tests share the screens, so that they run side by side.
#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn every_screen_is_in_order_at_every_size_and_in_both_themes() {
    look_at(&SCREENS[..SCREENS.len() / 2]);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn every_other_screen_is_in_order_too() {
    look_at(&SCREENS[SCREENS.len() / 2..]);
}

fn look_at(screens: &[(&str, &str, &str)]) {
    let stage = Stage::new(Look::DESK, First::Shelf);
    let mut wrong: Vec<String> = Vec::new();
    for (name, place, script) in screens {
        stage.browser.run("document.body.classList.remove('present')");
        stage.visit(place);
        stage.browser.run(script);
        for look in [Look::DESK, Look::BEAMER, Look::PHONE] {
            stage.browser.look(look);
            for theme in Theme::ALL {
                if theme == Theme::Forced && look != Look::DESK {
                    continue;
                }
                stage.browser.theme(theme);
                stage.browser.run(
                    "doorwayLab.story && doorwayLab.show(doorwayLab.at); \
                    await new Promise((done) => setTimeout(done, 120));",
                );
                let screen = format!("{name}-{}-{}", look.width, theme.name());
                stage.browser.picture(&screen);
                wrong.extend(stage.browser.wrong_with(&screen));
            }
        }
        stage.browser.look(Look::DESK);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(stage.browser.log(), [""; 0]);
}

/// Groups with many messages under way.
const CROWDS: [&str; 12] = [
    "ricart-agrawala+n=3",
    "lamport+n=3",
    "maekawa+n=3",
    "suzuki-kasami+n=5",
    "ricart-agrawala+n=5",
    "lamport+n=5",
    "maekawa+n=7",
    "maekawa+n=7+quorums=majority",
    "ricart-agrawala+n=7",
    "lamport+n=7",
    "raymond-tree+n=7",
    "lamport+n=12",
];

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn messages_cover_neither_each_other_nor_nodes() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    let mut wrong: Vec<String> = Vec::new();
    for crowd in CROWDS {
        // All nodes ask, and the messages arrive in an order that a seed decides.
        let n: usize =
            crowd.split_once("n=").unwrap().1.split('+').next().unwrap().parse().unwrap();
        let asks = (1..=n).map(|node| format!("a{node}")).collect::<Vec<_>>().concat();
        stage.visit(&format!("#/lab/{crowd}/{asks}"));
        stage.browser.run("doorwayLab.pick = 'dice:7'; await doorwayLab.go('40')");
        let mut most = 0;
        for at in [1, n / 2, n, n + 3, n + 9, n + 15, n + 24, n + 33] {
            stage.browser.run(&format!("doorwayLab.show({at})"));
            for look in [Look::DESK, Look::BEAMER, Look::PHONE] {
                stage.browser.look(look);
                let screen = format!("{crowd}, step {at}, {} px", look.width);
                wrong.extend(stage.browser.facts(&screen));
                let shown = stage.browser.run("return document.querySelectorAll('.pill').length");
                let under_way = "return doorwayLab.story.underWay(doorwayLab.at).length";
                let told = stage.browser.run(
                    "return [...document.querySelectorAll('.pill')].map((it) => \
                     it.dataset.ids.split(' ').length).reduce((a, b) => a + b, 0)",
                );
                assert_eq!(told, stage.browser.run(under_way), "{screen}: every message is there");
                most = most.max(shown.as_u64().unwrap());
            }
            if at == n {
                stage.browser.look(Look::DESK);
                stage.browser.run("await new Promise((done) => setTimeout(done, 120))");
                stage.browser.picture(&format!("crowd-{}", crowd.replace(['+', '='], "-")));
            }
        }
        assert!(most >= 2, "{crowd}: several messages are shown at once");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // A label that has no room appears at the dot while its choice has the focus.
    stage.browser.look(Look::DESK);
    stage.visit("#/lab/lamport+n=12/a1a2a3a4?at=4");
    let labels = "return [...document.querySelectorAll('.pill.dot .label')].filter((it) => \
                  getComputedStyle(it).display !== 'none').length";
    assert_eq!(stage.browser.run(labels), 0);
    stage.browser.wait("choices", "return Boolean(document.querySelector('.next .choice'))");
    stage.browser.run("document.querySelector('.next .choice').focus()");
    assert_eq!(stage.browser.run(labels), 1);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn quorums_stand_as_they_were_constructed() {
    let stage = Stage::new(Look::DESK, First::Shelf);
    let places = |place: &str| -> Vec<(i64, i64)> {
        stage.visit(place);
        let found = stage.browser.run(
            "return [...document.querySelectorAll('.node')].map((it) => \
             it.getAttribute('transform').match(/[\\d.]+/g).map((it) => Math.round(Number(it))))",
        );
        let found = found.as_array().unwrap().iter();
        found.map(|it| (it[0].as_i64().unwrap(), it[1].as_i64().unwrap())).collect()
    };
    let grid = places("#/lab/maekawa+n=8+quorums=grid/?at=0");
    for node in 0..8 {
        assert_eq!(grid[node].1, grid[node / 3 * 3].1, "rows of three");
        assert_eq!(grid[node].0, grid[node % 3].0, "in columns");
    }
    let triangle = places("#/lab/maekawa+n=6+quorums=triangle/?at=0");
    assert!(triangle[1].1 == triangle[2].1 && triangle[3].1 == triangle[5].1);
    assert!(triangle[0].1 < triangle[1].1 && triangle[2].1 < triangle[3].1);
    // Hovering over a node lights its quorum; in the plane, it lies on one line or circle.
    let plane = places("#/lab/maekawa+n=7/?at=0");
    let lit = stage.browser.run(
        "document.getElementById('node-1').dispatchEvent(new PointerEvent('pointerenter')); \
         return [...document.querySelectorAll('.node.quorum')].map((it) => Number(it.id.slice(5)))",
    );
    assert_eq!(lit.as_array().unwrap().len(), 3, "{lit}");
    // So does the focus, which stays when the network is drawn again.
    stage.browser.run(
        "document.getElementById('node-1').dispatchEvent(new PointerEvent('pointerleave')); \
         document.getElementById('node-2').focus(); doorwayLab.show(0)",
    );
    let lit = stage.browser.run(
        "return [document.activeElement.id, document.activeElement.getAttribute('aria-label'), \
         document.querySelectorAll('.node.quorum').length]",
    );
    assert_eq!(lit[0], "node-2", "{lit}");
    assert!(lit[1].as_str().unwrap().starts_with("node 2, outside, quorum: "), "{lit}");
    assert_eq!(lit[2], 3, "{lit}");
    let count = || stage.browser.run("return document.querySelectorAll('.network .link').length");
    assert_eq!((plane.len(), count()), (7, 7.into()), "seven points on seven lines");
    for ring in ["suzuki-kasami+n=5+topology=ring", "le-lann+n=5", "ricart-agrawala-ring+n=5"] {
        let nodes = places(&format!("#/lab/{ring}/?at=0"));
        assert_eq!((nodes.len(), count()), (5, 5.into()), "{ring}: each is linked with the next");
    }
    // A larger plane is a matrix in which the quorum of each node is tinted.
    assert_eq!(places("#/lab/maekawa+n=13/?at=0").len(), 0);
    let tinted = stage.browser.run("return document.querySelectorAll('.network .may').length");
    assert_eq!(tinted, 13 * 4, "thirteen quorums of four");
    stage.browser.press(&["1"]);
    stage.until(1);
    let cells = "return document.querySelectorAll('.network .cell').length";
    assert_eq!(stage.browser.run(cells), 3, "node 1 asks the other members of its quorum");
    stage.browser.run(
        "document.querySelector('.network .cell') \
        .dispatchEvent(new MouseEvent('click', { bubbles: true }))",
    );
    stage.until(2);
}
