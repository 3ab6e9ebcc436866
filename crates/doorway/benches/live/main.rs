//! What the live page costs: three real daemons on this machine, whose clients hold 10,000 locks.
//!
//! - *list*: the time for the list that the page asks for once a second, and for one lock.
//! - *daemon*, *command*, *page*: the part of a core that the asked daemon, `doorway top --page`
//!   and the page in Chromium use while nothing happens and the page is open, with the list of
//!   10,000 locks and with an almost empty one.
//! - *grant*: the time to take and release a lock, without the page and with it, in turns.
//! - *lab*: the time from the start of `doorway lab` until it prints its address.
//!
//! `--smoke` does all of this with few locks and without a browser, and measures nothing.

#[path = "../members/crowd.rs"]
#[expect(dead_code, reason = "another benchmark uses the rest")]
mod crowd;
#[path = "../../../doorway-page/tests/browser/driver.rs"]
#[expect(dead_code, reason = "tests use the rest")]
mod driver;
#[path = "../../../doorway-page/benches/shared/figures.rs"]
mod figures;
#[path = "../../tests/run/members/group.rs"]
mod group;
#[path = "../members/idle.rs"]
#[expect(dead_code, reason = "another benchmark uses the rest")]
mod idle;
#[path = "../../tests/run/place.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod place;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use driver::{Browser, Look};
use figures::print;
use group::Group;
use serde_json::json;

/// The list that the page asks for.
const LIST: &str = "/v1/locks?group=true&order=wait&prefix=";

/// The middle and the worst time of something, in milliseconds.
fn times(count: usize, mut what: impl FnMut()) -> (f64, f64) {
    let mut all: Vec<f64> = (0..count)
        .map(|_| {
            let begin = Instant::now();
            what();
            begin.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    all.sort_by(f64::total_cmp);
    (all[count / 2], all[count - 1])
}

fn print_times(what: &str, (middle, worst): (f64, f64)) {
    print(what, format_args!("{middle:>9.2} ms, worst {worst:.2} ms"));
}

/// A command that serves a page, killed at the end.
struct Page {
    command: Child,
    address: String,
}

impl Page {
    /// The live page of the first node.
    fn serve(group: &Group) -> Self {
        Self::of(&mut group.command(0, "top --page --no-open"))
    }

    /// The laboratory.
    fn lab() -> Self {
        Self::of(Command::new(place::DOORWAY).args(["lab", "--no-open"]))
    }

    fn of(command: &mut Command) -> Self {
        let mut command =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
        let mut lines = BufReader::new(command.stdout.take().expect("a pipe")).lines();
        let address = lines.find_map(|line| {
            line.expect("text").strip_prefix("The page is at ").map(str::to_owned)
        });
        Self { command, address: address.expect("the address is printed") }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.command.kill();
        let _ = self.command.wait();
    }
}

/// The seconds that the page has spent in the browser.
fn spent(browser: &Browser) -> f64 {
    let told = browser.devtools("Performance.getMetrics", &json!({}));
    let metrics = told["metrics"].as_array().expect("a list").iter();
    let task = metrics.filter(|it| it["name"] == "TaskDuration");
    task.filter_map(|it| it["value"].as_f64()).sum()
}

/// What the open page costs while nothing happens, in per cent of a core.
fn idle(group: &Group, page: &Page, browser: &Browser, what: &str, time: Duration) {
    let daemon = group.nodes[0].as_ref().expect("it runs").id();
    let before = spent(browser);
    let used = idle::used(&[daemon, page.command.id()], time);
    let drawn = (spent(browser) - before) / time.as_secs_f64() * 100.0;
    for (who, part) in [("daemon", used[0]), ("command", used[1]), ("page", drawn)] {
        print(&format!("idle page, {what}: {who}"), format_args!("{part:>9.2} % of a core"));
    }
}

/// Grants without the page and with it, in turns, so that both meet the same machine.
fn grants(page: &Page, browser: &Browser, turns: usize, grant: impl Fn() -> (f64, f64)) {
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..turns {
        browser.go("about:blank");
        sleep(Duration::from_millis(500));
        without.push(grant().0);
        browser.go(&page.address);
        browser.wait("the page", "return document.querySelector('.members')");
        sleep(Duration::from_millis(500));
        with.push(grant().0);
    }
    let mut ratios: Vec<f64> = with.iter().zip(&without).map(|(on, off)| on / off).collect();
    for all in [&mut without, &mut with, &mut ratios] {
        all.sort_by(f64::total_cmp);
    }
    let ends = |all: &[f64]| (all[turns / 2], all[turns - 1]);
    print_times("grant and release, without the page", ends(&without));
    print_times("grant and release, with the page", ends(&with));
    let (middle, least, most) = (ratios[turns / 2], ratios[0], ratios[turns - 1]);
    let ratio = format_args!("{middle:>9.3}, {least:.3} to {most:.3}");
    print("with the page / without it", ratio);
}

fn main() {
    let smoke = std::env::args().any(|word| word == "--smoke");
    let (locks, rounds) = if smoke { (30, 2) } else { (10_000, 50) };
    let time = Duration::from_secs(20);
    let group = Group::fixed();
    group.lock(0, "first");
    let daemon = group.nodes[0].as_ref().expect("it runs").id();
    let client = crowd::client(&group, 0);
    let grant = || {
        times(if smoke { 2 } else { 2_000 }, || {
            client.acquire("grant").enter().expect("a free lock").release().expect("it is held");
        })
    };
    if smoke {
        let _held = crowd::hold(&group, locks);
        assert!(group.get(0, LIST).contains("held/0/"), "the list has the locks");
        let page = Page::serve(&group);
        assert!(page.address.contains("/page#t="));
        assert!(Page::lab().address.contains("/#t="));
        grant();
        return;
    }
    print_times("doorway lab, until its address is printed", times(20, || drop(Page::lab())));
    let used = idle::used(&[daemon], time)[0];
    print("no page: daemon", format_args!("{used:>9.2} % of a core"));
    let page = Page::serve(&group);
    let browser = Browser::open(Look::DESK);
    // The time of the processor, and not the time that passes: other programs may run meanwhile.
    browser.devtools("Performance.enable", &json!({ "timeDomain": "threadTicks" }));
    grants(&page, &browser, 9, grant);
    idle(&group, &page, &browser, "no locks", time);
    let _held = crowd::hold(&group, locks);
    print_times(
        &format!("list, {locks} locks of 3 members"),
        times(rounds, || {
            assert!(group.get(0, LIST).contains("\"more\":true"), "there are more than one page");
        }),
    );
    print_times(
        "one lock",
        times(rounds, || assert!(group.get(0, "/v1/locks/held%2F0%2F1").contains("bench"))),
    );
    browser.wait("the locks", "return document.querySelectorAll('button[data-lock]').length > 100");
    idle(&group, &page, &browser, &format!("{locks} locks"), time);
    println!("the same with {locks} locks:");
    grants(&page, &browser, 9, grant);
}
