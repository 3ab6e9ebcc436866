//! The live page in a real browser, Debian's Chromium, against real nodes.
//!
//! Tests that need the browser are ignored unless they are asked for: `cargo xtask test Chromium`.
#![cfg(target_os = "linux")]

#[path = "../../../doorway-page/tests/browser/driver.rs"]
#[expect(dead_code, reason = "the tests of the laboratory use the rest")]
mod driver;
#[path = "../run/members/group.rs"]
mod group;
mod lab;
mod live;
#[path = "../../../doorway-page/tests/browser/look.rs"]
mod look;
#[path = "../run/place.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod place;
mod remote;
#[path = "../../../doorway-daemon/tests/common/skip.rs"]
mod skip;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};

use doorway_client::blocking::{Client, Grant};
use doorway_client::{Endpoints, Options};
use driver::{Browser, Look};
use group::Group;

/// Three nodes of a group with a fixed list of members, whose locks ask all members at every entry.
fn three() -> Group {
    let mut group = Group::new();
    for node in 0..3 {
        group.fix(node);
        let path = group.place.file(&format!("{}.toml", group.name(node)));
        let text = std::fs::read_to_string(&path).expect("settings");
        let rule = "[[lock]]\nnames = \"*\"\nalgorithm = \"ricart-agrawala\"\n";
        std::fs::write(path, format!("{text}{rule}")).expect("a file");
        group.start(node);
    }
    // The first view has begun.
    group.lock(0, "first");
    group
}

/// A client of a node, with a label.
fn client(group: &Group, node: usize, label: &str) -> Client {
    let endpoints = Endpoints::parse(&group.socket(node)).expect("an address");
    Client::connect(endpoints, &Options::default().label(label)).expect("a session")
}

/// A lock that a client of a node holds.
fn hold(group: &Group, node: usize, lock: &str, label: &str) -> Grant {
    client(group, node, label).acquire(lock).enter().expect("the lock is free")
}

/// A client that waits for a lock in a thread of its own.
fn wait(client: Client, lock: &str) -> JoinHandle<bool> {
    let lock = lock.to_owned();
    thread::spawn(move || client.acquire(&lock).enter().is_ok())
}

/// `doorway top --page` at a node, and a browser in which the page is open.
struct Live {
    browser: Browser,
    command: Child,
    address: String,
}

impl Live {
    fn open(group: &Group, node: usize) -> Self {
        Self::open_with(group, node, "top --page --no-open")
    }

    /// Open it with this command line.
    fn open_with(group: &Group, node: usize, command: &str) -> Self {
        let live = Self::serve(group.command(node, command).stderr(Stdio::null()));
        live.browser.go(&live.address);
        live.until("the list is shown", "document.querySelector('.members')");
        live
    }

    /// Start the command, and a browser that has not opened its page yet.
    fn serve(command: &mut Command) -> Self {
        let (command, address) = served(command);
        Self { browser: Browser::open(Look::DESK), command, address }
    }

    /// Wait until an expression of the page is true.
    fn until(&self, what: &str, expression: &str) {
        self.browser.wait(what, &format!("return Boolean({expression})"));
    }

    /// Wait until the page has this text.
    fn shows(&self, text: &str) {
        let wanted = serde_json::to_string(text).expect("text");
        self.until(text, &format!("document.body.innerText.includes({wanted})"));
    }

    /// Open a lock of the list.
    fn choose(&self, lock: &str) {
        let wanted = serde_json::to_string(lock).expect("text");
        let find = format!(
            "[...document.querySelectorAll('button[data-lock]')]\
             .find((it) => it.dataset.lock === {wanted})"
        );
        // In one script: the list may be drawn again between two.
        self.until(lock, &format!("((it) => {{ it?.click(); return it; }})({find})"));
        let panel = "document.querySelector('[aria-label=\"The lock that was chosen\"] li')";
        self.until("its panel", panel);
    }

    /// Click the button with this text.
    fn click(&self, text: &str) {
        let wanted = serde_json::to_string(text).expect("text");
        let find = format!(
            "[...document.querySelectorAll('button')].find((it) => it.innerText === {wanted})"
        );
        self.until(text, &find);
        self.browser.run(&format!("{find}.click()"));
    }
}

/// A test that fails leaves no server behind.
impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.command.kill();
        let _ = self.command.wait();
    }
}

/// A command that serves the page, and the address that it prints.
fn served(command: &mut Command) -> (Child, String) {
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it runs");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let address = lines.find_map(|line| {
        let line = line.expect("the answer is text");
        line.strip_prefix("The page is at ").map(str::to_owned)
    });
    thread::spawn(move || lines.for_each(drop));
    (child, address.expect("the address is printed"))
}
