//! The page of `doorway top --page`, at one of three nodes.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::Duration;

use doorway_client::blocking::Client;
use doorway_client::{Endpoints, Options};

use crate::driver::{Browser, Look, Theme};
use crate::place::line_of;
use crate::{Live, client, hold, three, wait};

/// A name and a label that would be an attack if the page wrote them as markup.
const NAME: &str = "<img src=x onerror=document.title='owned'>/../?#&\"'";
const LABEL: &str = "</code><script>document.title='owned'</script>\u{202e}gnp.exe";

/// Whether the page follows the events of its node and of the lock that is open.
const FOLLOWS: &str = "document.querySelectorAll('.news[aria-busy=false]').length === 2";

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn a_killed_member_is_away_and_its_word_is_missing() {
    let mut group = three();
    let held = hold(&group, 0, "deploy/web", "CI job 4711");
    let waiting = wait(client(&group, 1, "CI job 4712"), "deploy/web");
    let live = Live::open(&group, 0);
    live.shows("3 of 3 members");
    live.shows("c: serves");
    live.choose("deploy/web");
    live.shows("CI job 4711");
    live.shows("needs the word of a, whose client is inside");

    group.kill(2);
    live.shows("c: away for");
    live.shows("2 of 3 members");
    let stuck = wait(client(&group, 1, "nightly"), "backup");
    live.choose("backup");
    live.shows("needs the word of c, which cannot be reached for");
    live.browser.picture("live-away-1366");
    let first = "return document.querySelector('button[data-lock]').dataset.lock";
    assert_eq!(live.browser.run(first), "deploy/web", "the longest wait comes first");

    // The member comes back, and the client gets its lock.
    group.start(2);
    assert!(stuck.join().expect("no panic"));
    live.shows("3 of 3 members");
    held.release().expect("it was held");
    assert!(waiting.join().expect("no panic"));
    live.choose("deploy/web");
    live.shows("Nobody waits.");
    assert_eq!(live.browser.log(), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn the_lease_of_a_holder_and_who_held_a_lock_at_a_member_that_is_away() {
    let mut group = three();
    // A session with a TTL has a lease.
    let options = Options::default().label("CI job 4711").ttl(Duration::from_mins(1));
    let endpoints = Endpoints::parse(&group.socket(2)).expect("an address");
    let session = Client::connect(endpoints, &options).expect("a session");
    let held = session.acquire("deploy/web").enter().expect("the lock is free");
    let live = Live::open(&group, 0);
    live.choose("deploy/web");
    let panel = "document.querySelector('[aria-label=\"The lock that was chosen\"]').innerText";
    live.until("lease left", &format!("/, lease left [0-9]+ (s|min)/.test({panel})"));
    assert_eq!(live.browser.run(&format!("return {panel}.includes('heard of')")), false);
    // Somebody asks about the lock, so the node hears who holds it; then that member dies.
    let fence = held.fence().to_string();
    assert!(group.answer(0, "who deploy/web").contains(&fence));
    group.kill(2);
    live.shows("c: away for");
    live.shows("Nobody at the members that answer.");
    live.until(
        "who held it",
        &format!("/CI job 4711.*, node c, fence {fence}, heard of [0-9].* ago/.test({panel}) "),
    );
    for look in [Look::PHONE, Look::BEAMER, Look::DESK] {
        live.browser.look(look);
        live.browser.picture(&format!("live-last-known-{}", look.width));
        let screen = format!("live-last-known, {} px", look.width);
        assert_eq!(live.browser.wrong_in_any_theme(&screen), [""; 0]);
    }
    // Nothing is known of what it does now: it may hold the lock still.
    assert_eq!(live.browser.run(&format!("return {panel}.includes('released')")), false);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn a_ticket_opens_the_page_once() {
    let group = three();
    let opened = group.place.file("opened");
    let starter = group.place.file("xdg-open");
    let script = format!("#!/bin/sh\necho \"$@\" > {}\n", opened.display());
    std::fs::write(&starter, script).expect("a file");
    let program = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&starter, program).expect("a program");
    let folder = starter.parent().expect("a directory").display();
    let path = format!("{folder}:{}", std::env::var("PATH").expect("a path"));
    let mut top = group.command(0, "top first --page");
    top.env("DISPLAY", ":77").env("PATH", path).stderr(Stdio::null());
    let live = Live::serve(&mut top);
    let address = line_of(&opened);
    live.browser.go(&address);
    live.until("the list is shown", "document.querySelector('.members')");
    let left = live.browser.run("return [location.hash, document.getElementById('prefix').value]");
    assert_eq!(left, serde_json::json!(["", "first"]), "the ticket has left the address bar");
    live.browser.run("location.reload()");
    live.until("the list is shown", "document.querySelector('.members')");
    // Another window that opens it says why it shows nothing.
    let other = Browser::open(Look::DESK);
    other.go(&address);
    let told = "return document.querySelector('[role=alert]')?.innerText || null";
    let told = other.wait("a sentence", told);
    assert!(told.as_str().is_some_and(|told| told.contains("it was used before")), "{told}");
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn a_node_that_goes_away_leaves_grey_figures_and_comes_back() {
    let mut group = three();
    let _held = hold(&group, 1, "deploy/web", "CI job 4711");
    let live = Live::open(&group, 0);
    live.shows("b: serves, 1 held, 0 waiting, 1 grant\n");
    live.choose("deploy/web");
    group.kill(0);
    live.shows("The node cannot be asked");
    live.until("the figures are grey", "document.body.classList.contains('stale')");
    live.shows("deploy/web");
    live.browser.picture("live-stale-1366");
    assert_eq!(live.browser.wrong_in_any_theme("live-stale"), [""; 0]);
    group.start(0);
    live.until("they are fresh again", "!document.body.classList.contains('stale')");
    live.until("all is well", "!document.querySelector('[role=alert]').innerText");
}

/// A script that looks at the page for three seconds, and returns the elements in which something
/// was replaced by the same text. Each of these costs a frame.
const DRAWN_AGAIN: &str = "
  const again = [];
  const text = (nodes) => [...nodes].map((it) => it.textContent).join();
  const look = ({ target, addedNodes, removedNodes }) => {
    if (text(addedNodes) === text(removedNodes)) again.push(target.outerHTML);
  };
  const all = { childList: true, characterData: true, subtree: true };
  new MutationObserver((changes) => changes.forEach(look)).observe(document.body, all);
  await new Promise((done) => setTimeout(done, 3000));
  return again;
";

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn what_has_not_changed_is_not_drawn_again() {
    let group = three();
    let _held = hold(&group, 1, "deploy/web", "CI job 4711");
    let live = Live::open(&group, 0);
    live.shows("deploy/web");
    assert_eq!(live.browser.run(DRAWN_AGAIN), serde_json::json!([]));
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn clients_that_wait_for_each_other_are_shown_as_a_circle() {
    let group = three();
    let (one, other) = (client(&group, 0, "first"), client(&group, 1, "second"));
    let _left = one.acquire("left").enter().expect("the lock is free");
    let _right = other.acquire("right").enter().expect("the lock is free");
    drop((wait(one.clone(), "right"), wait(other.clone(), "left")));
    let live = Live::open(&group, 2);
    live.choose("left");
    live.shows("deadlock: second");
    let why = live.browser.run("return document.querySelector('li .bad').innerText");
    let why = why.as_str().expect("a text");
    let sessions: Vec<&str> = why["deadlock: ".len()..].split(" waits for ").collect();
    assert_eq!(sessions.len(), 3, "{why}");
    assert!(sessions[0].contains("[b/") && sessions[1].contains("[a/"), "{why}");
    assert!(sessions[1].starts_with("first"), "{why}");
    assert_eq!(sessions[0], sessions[2], "{why}");
    // The circle is drawn as a ring of two sessions.
    let ring = "return document.querySelectorAll('svg.ring circle, svg.ring .waits').length";
    assert_eq!(live.browser.run(ring), 4);
    assert_eq!(live.browser.wrong_in_any_theme("live-circle"), [""; 0]);
    live.browser.picture("live-circle-1366");
    live.choose("right");
    live.shows("deadlock: first");
    live.shows("left has a client that has waited for 10 s");
    assert_eq!(live.browser.run("return document.querySelectorAll('tr.long').length"), 2);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn the_news_tell_what_happens_here_and_at_the_other_members() {
    let mut group = three();
    let live = Live::open(&group, 0);
    let news = |label: &str| {
        let find = format!("document.querySelector('.news[aria-label=\"{label}\"]').innerText");
        live.browser.run(&format!("return {find}")).as_str().expect("text").to_owned()
    };
    let (all, one) = ("News of this node and its group", "News of the lock");
    // A label has the process and the machine of its client behind it.
    let told = |label: &str, client: &str, text: &str| {
        let find = format!("[...document.querySelectorAll('.news[aria-label=\"{label}\"] li')]");
        let fits =
            format!("it.textContent.includes({client:?}) && it.textContent.includes({text:?})");
        live.until(text, &format!("{find}.some((it) => {fits})"));
    };
    // At this node: waiting, granted, released and lost, as the node tells them.
    let held = hold(&group, 0, "deploy/web", "CI job 4711");
    live.choose("deploy/web");
    live.until("it follows the events", FOLLOWS);
    let waiting = wait(client(&group, 0, "CI job 4712"), "deploy/web");
    told(one, "CI job 4712", " waits for deploy/web");
    held.release().expect("it was held");
    assert!(waiting.join().expect("no panic"));
    told(one, "deploy/web released by CI job 4711", ", fence ");
    told(one, "deploy/web granted to CI job 4712", ", fence ");
    assert_eq!(news(all), "", "the list of the group has no single grants and short waits");
    // At another member: the page sees it in its next look.
    let there = hold(&group, 1, "deploy/web", "CI job 4713");
    told(one, "deploy/web granted to CI job 4713", ", fence ");
    live.choose("deploy/web");
    there.release().expect("it was held");
    told(one, "deploy/web released by CI job 4713", ", fence ");
    // A lock is broken.
    let broken = hold(&group, 0, "backup", "nightly");
    let fence = broken.fence().to_string();
    live.choose("backup");
    live.click("Break …");
    live.browser.type_text(&fence);
    live.browser.press(&["Enter"]);
    told(all, "backup taken from nightly", &format!(", fence {fence}"));
    live.browser.picture("live-news-1366");
    // A member goes and comes back.
    group.kill(2);
    told(all, "", "c cannot be reached");
    group.start(2);
    told(all, "", "c is back");
    let grants = live.browser.run(
        "return document.querySelector('.spark path:last-child') \
        .getAttribute('d').length > 5",
    );
    assert_eq!(grants, true, "the grants are drawn");
    live.shows(" grants/s, most ");
    assert_eq!(live.browser.log(), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn breaking_a_lock_asks_for_its_fence_to_be_typed() {
    let group = three();
    let here = hold(&group, 0, "here", "at this node");
    let there = hold(&group, 1, "there", "at another node");
    let live = Live::open(&group, 0);
    for (lock, grant) in [("here", &here), ("there", &there)] {
        live.choose(lock);
        live.click("Break …");
        live.until("the question", "document.querySelector('dialog[open] #fence')");
        assert_eq!(live.browser.run("return document.activeElement.id"), "fence");
        live.browser.type_text("12345");
        live.browser.press(&["Enter"]);
        live.shows("This is not the fence of the holder. Nothing was done.");
        assert!(!grant.is_lost(), "{lock}");
        live.browser.run("document.getElementById('fence').select()");
        live.browser.type_text(&grant.fence().to_string());
        live.browser.picture(&format!("live-break-{lock}-1366"));
        live.browser.press(&["Enter"]);
        live.shows("The lock was taken from its holder.");
        live.shows("Nobody.");
        crate::place::until("the holder learns of it", || grant.is_lost());
    }
    // A dialog that is open while somebody else takes the lock: the node has the last word.
    let held = hold(&group, 1, "there", "again");
    live.choose("there");
    live.shows("again");
    live.click("Break …");
    let fence = held.fence().to_string();
    held.release().expect("it was held");
    live.browser.type_text(&fence);
    live.browser.press(&["Enter"]);
    live.shows("is not held with fence");
    live.browser.press(&["Escape"]);
    live.until("it is closed", "!document.querySelector('dialog[open]')");
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn hostile_names_and_labels_stay_texts() {
    let group = three();
    let long = "w".repeat(200);
    let _held = [hold(&group, 0, NAME, LABEL), hold(&group, 1, &long, &"label ".repeat(40))];
    let _waits = [wait(client(&group, 2, LABEL), NAME), wait(client(&group, 2, LABEL), &long)];
    let live = Live::open(&group, 0);
    let mut wrong = Vec::new();
    for (number, lock) in [NAME, &long].into_iter().enumerate() {
        live.choose(lock);
        live.shows("needs the word of");
        for look in [Look::DESK, Look::PHONE] {
            live.browser.look(look);
            let screen = format!("live-hostile-{number}-{}", look.width);
            live.browser.picture(&screen);
            wrong.extend(live.browser.wrong_in_any_theme(&screen));
        }
        live.browser.look(Look::DESK);
        live.click("Break …");
        live.until("the question", "document.querySelector('dialog[open] #fence')");
        live.browser.press(&["Escape"]);
    }
    // A sign that turns the direction of reading is shown and turns nothing.
    live.shows("</script>⟨U+202E⟩gnp.exe");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(live.browser.run("return document.querySelectorAll('img, main script').length"), 0);
    assert_eq!(live.browser.run("return document.title"), "Doorway live");
    let typed = "const box = document.getElementById('prefix'); box.value = '<img'; \
                 box.dispatchEvent(new Event('input'))";
    live.browser.run(typed);
    live.until("one lock is left", "document.querySelectorAll('button[data-lock]').length === 1");
    assert_eq!(live.browser.log(), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn the_beginning_of_the_names_is_the_one_of_the_command() {
    let group = three();
    let _held = [hold(&group, 0, "deploy/a b", "first"), hold(&group, 0, "backup", "second")];
    let live = Live::open_with(&group, 0, "top deploy/a% --page --no-open");
    let typed = "return document.getElementById('prefix').value";
    assert_eq!(live.browser.run(typed), "deploy/a%", "escaped in the address, and read again");
    drop(live);
    let live = Live::open_with(&group, 0, "top deploy/ --page --no-open");
    live.shows("deploy/a b");
    let names = "return [...document.querySelectorAll('button[data-lock]')] \
                 .map((it) => it.dataset.lock)";
    assert_eq!(live.browser.run(names), serde_json::json!(["deploy/a b"]));
    assert_eq!(live.browser.log(), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn a_recording_of_a_lock_opens_in_the_laboratory() {
    let group = three();
    let live = Live::open(&group, 0);
    let busy = hold(&group, 0, "orders", "first");
    live.choose("orders");
    live.click("Record 10 s");
    live.shows("Recording for 10 s");
    busy.release().expect("it was held");
    for node in [1, 2, 0] {
        group.lock(node, "orders");
    }
    live.click("Open in the laboratory");
    live.browser.follow();
    live.until("the laboratory", "globalThis.doorwayLab?.story?.steps.length > 5");
    let told = live.browser.run(
        "const { story } = doorwayLab; return [story.frame.names, \
         story.steps.filter((it) => it.entered).length, document.title]",
    );
    assert_eq!(told[0], serde_json::json!(["a", "b", "c"]), "{told}");
    assert!(told[1].as_u64().is_some_and(|entries| entries >= 3), "{told}");
    live.browser.press(&["End"]);
    live.until("its end", "doorwayLab.at === doorwayLab.story.steps.length");
    live.browser.picture("live-recorded-1366");
    assert_eq!(live.browser.wrong_in_any_theme("a recording of a lock"), [""; 0]);
    let address = live.browser.run("return location.href");
    let token = live.address.split("#t=").nth(1).expect("a token").trim_end_matches("&lab");
    assert!(!address.as_str().expect("text").contains(token), "the token stays here: {address}");
    // A reload finds it again.
    live.browser.run("location.reload()");
    live.until("it is there", "globalThis.doorwayLab?.story?.steps.length > 5");
    assert_eq!(live.browser.log(), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn every_screen_is_in_order_at_every_size_and_in_both_themes() {
    let mut group = three();
    let _held = [
        hold(&group, 0, "deploy/web", "CI job 4711"),
        hold(&group, 1, "backup", "nightly backup"),
        hold(&group, 1, "reports/monthly", "reports"),
    ];
    let _waits = [
        wait(client(&group, 1, "CI job 4712"), "deploy/web"),
        wait(client(&group, 0, "CI job 4713"), "deploy/web"),
    ];
    let live = Live::open(&group, 0);
    live.choose("deploy/web");
    live.shows("CI job 4713");
    // Something happens: grants, a request that waits, a lock that is broken.
    live.until("it follows the events", FOLLOWS);
    let shop = client(&group, 0, "web shop");
    for _ in 0..300 {
        shop.acquire("orders").enter().expect("a free lock").release().expect("it was held");
    }
    let _late = wait(client(&group, 0, "CI job 4714"), "deploy/web");
    let lost = hold(&group, 0, "export", "nightly export");
    group.output(0, &format!("break export --fence {}", lost.fence()));
    live.shows("export taken from nightly export");
    live.shows("CI job 4714");
    let mut wrong = Vec::new();
    for screen in ["live", "live-away"] {
        for look in [Look::DESK, Look::BEAMER, Look::PHONE] {
            live.browser.look(look);
            for theme in Theme::ALL {
                if theme == Theme::Forced && look != Look::DESK {
                    continue;
                }
                live.browser.theme(theme);
                let screen = format!("{screen}-{}-{}", look.width, theme.name());
                live.browser.picture(&screen);
                wrong.extend(live.browser.wrong_with(&screen));
            }
        }
        if screen == "live" {
            group.kill(2);
            live.shows("c: away for");
            // The dialog is a screen too.
            live.click("Break …");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
