//! What a tracing subscriber is told: waits, views and links.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use doorway_node::{AcquireError, Config, Node};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::common::{group, start};

/// Keeps every span and event of the crate as a line.
#[derive(Clone, Default)]
struct Listener(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = write!(self.0, " {field}={value:?}"); // Writing to a string cannot fail.
    }
}

impl Listener {
    fn keep(&self, metadata: &Metadata<'_>, line: Line) {
        if metadata.target().starts_with("doorway_node") {
            self.0.lock().expect("no panic before").push(line.0);
        }
    }

    fn heard(&self, words: &[&str]) -> usize {
        let lines = self.0.lock().expect("no panic before");
        lines.iter().filter(|line| words.iter().all(|word| line.contains(word))).count()
    }
}

impl Subscriber for Listener {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut line = Line(format!("span {}", span.metadata().name()));
        span.record(&mut line);
        self.keep(span.metadata(), line);
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(format!("{}", event.metadata().level()));
        event.record(&mut line);
        self.keep(event.metadata(), line);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn waits_are_told_and_entries_at_once_are_not() {
    let listener = Listener::default();
    let _listening = tracing::subscriber::set_default(listener.clone());
    let node = Node::start(Config::default()).await.expect("it starts");
    let begun = listener.heard(&[]);
    let handle = node.open("orders").expect("a name");
    for _ in 0..10 {
        drop(handle.lock().await.expect("a lock"));
        drop(handle.try_lock().expect("a name"));
    }
    assert_eq!(listener.heard(&[]), begun, "nothing on the fast path");

    let guard = handle.lock().await.expect("a lock");
    let late = handle.lock().session(node.session()).within(Duration::from_millis(20)).await;
    assert_eq!(late.expect_err("it is held"), AcquireError::TimedOut);
    assert_eq!(listener.heard(&["span acquire", "lock=orders", "mode=Exclusive", "session=1"]), 1);
    assert_eq!(listener.heard(&["withdrawn", "waited="]), 1);
    let (entered, ()) = tokio::join!(handle.lock(), async { drop(guard) });
    drop(entered.expect("a lock"));
    assert_eq!(listener.heard(&["entered", "waited="]), 1);
    assert_eq!(listener.heard(&["span acquire"]), 2);
}

#[tokio::test]
async fn links_and_views_are_told() {
    let listener = Listener::default();
    let _listening = tracing::subscriber::set_default(listener.clone());
    let (_scratch, configs) = group(2, &[]);
    let nodes = start(&configs).await;
    drop(nodes[0].lock("orders").await.expect("a lock"));
    assert!(listener.heard(&["INFO", "link up", "peer="]) >= 2);
    assert!(listener.heard(&["INFO", "leaving for the next view", "held=0"]) >= 2);
    assert!(listener.heard(&["INFO", "the view runs", "view=2"]) >= 1);
    nodes[1].stop().await;
    // When a member stops, no warning is logged, and no text of the TLS library.
    while listener.heard(&["INFO", "link down", "n2", "the peer closed the connection"]) == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(listener.heard(&["close_notify"]), 0);
}

/// A wrong address is easy to find, because the log names it.
#[tokio::test]
async fn a_member_that_was_never_reached_is_told_once() {
    let listener = Listener::default();
    let _listening = tracing::subscriber::set_default(listener.clone());
    let (_scratch, configs) = group(2, &[]);
    let node = Node::start(configs[0].clone()).await.expect("it starts");
    let tries = ["DEBUG", "no link"];
    while listener.heard(&tries) < 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let address = configs[1].members[1].address.clone();
    let told = ["WARN", "cannot reach the member", "n2", &address, "refused"];
    assert_eq!(listener.heard(&told), 1);
    // After it was connected, its absence is news.
    let other = Node::start(configs[1].clone()).await.expect("it starts");
    drop(node.lock("orders").within(Duration::from_secs(30)).await.expect("a lock"));
    other.stop().await;
    while listener.heard(&told) < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// While a group of three starts, each node logs for which members the next view waits, and logs it
/// again only when that has changed.
#[tokio::test]
async fn the_members_that_a_view_waits_for_are_logged_once_per_change() {
    let listener = Listener::default();
    let _listening = tracing::subscriber::set_default(listener.clone());
    let (_scratch, configs) = group(3, &[]);
    let nodes = start(&configs).await;
    drop(nodes[0].lock("orders").await.expect("a lock"));
    let logged = |away| listener.heard(&["the next view waits for members", away]);
    // Only one node can wait for two given members, and only two nodes for one of them.
    for away in [r#"away=["n2", "n3"]"#, r#"away=["n1", "n3"]"#, r#"away=["n1", "n2"]"#] {
        assert!(logged(away) <= 1, "{} lines with {away}", logged(away));
    }
    for away in [r#"away=["n1"]"#, r#"away=["n2"]"#, r#"away=["n3"]"#] {
        assert!(logged(away) <= 2, "{} lines with {away}", logged(away));
    }
}
