//! Events, metrics and health.

use serde_json::json;

use super::client::Listener;
use crate::server::Server;

#[test]
fn events_report_grants_releases_and_losses() {
    let server = Server::new();
    let mut all = Listener::new(server.connect(), "/v1/events", &[]);
    let mut some = Listener::new(server.connect(), "/v1/events?lock=deploy%2F*", &[]);
    let mut one = Listener::new(server.connect(), "/v1/events?lock=b", &[]);
    let a = server.acquire("deploy%2Fa", &json!({ "label": "job" }));
    server.release("deploy%2Fa", &a);
    let b = server.acquire("b", &json!({}));
    server.post("b", "break", &json!({ "fence": b })).expect(200);
    let (kind, news) = all.next().unwrap();
    assert_eq!((kind.as_str(), &news["lock"]), ("granted", &json!("deploy/a")));
    assert_eq!((&news["fence"], &news["client"]), (&json!(a), &json!("job")));
    assert!(news["at_ms"].as_u64().unwrap() > 1_767_225_600_000);
    let kinds = |listener: &mut Listener<_>, number: usize| -> Vec<String> {
        (0..number).map(|_| listener.next().unwrap()).map(|(kind, _)| kind).collect()
    };
    assert_eq!(kinds(&mut all, 3), ["released", "granted", "lost"]);
    assert_eq!(kinds(&mut some, 2), ["granted", "released"]);
    let (kind, news) = one.next().unwrap();
    assert_eq!((kind.as_str(), &news["lock"]), ("granted", &json!("b")));
    server.runtime.block_on(server.service.stop());
    assert_eq!(all.next(), None, "the node stopped");
}

#[test]
fn a_client_selects_the_kinds_of_events() {
    let server = Server::new();
    let mut losses = Listener::new(server.connect(), "/v1/events?kind=lost,view", &[]);
    let mut waits = Listener::new(server.connect(), "/v1/events?kind=waiting", &[]);
    let a = server.acquire("a", &json!({}));
    server.release("a", &a);
    let b = server.acquire("b", &json!({}));
    std::thread::scope(|scope| {
        let next = scope.spawn(|| server.acquire("b", &json!({ "wait_ms": 20_000 })));
        server.waiting(1);
        server.post("b", "break", &json!({ "fence": b })).expect(200);
        next.join().unwrap();
    });
    let (kind, news) = losses.next().unwrap();
    assert_eq!((kind.as_str(), &news["lock"]), ("lost", &json!("b")));
    let (kind, news) = waits.next().unwrap();
    assert_eq!((kind.as_str(), &news["lock"]), ("waiting", &json!("b")));
    let wrong = server.get("/v1/events?kind=lost,broken");
    wrong.problem(400, "invalid", "`kind` has no 'broken'");
    server.get("/v1/events?kind=").problem(400, "invalid", "`kind` has no ''");
}

#[test]
fn a_slow_reader_is_told_how_many_events_it_missed() {
    let server = Server::new();
    let mut slow = Listener::new(server.connect(), "/v1/events", &[]);
    // Far more than the socket and the service buffer.
    let label = "x".repeat(200);
    let turns = 6000;
    for _ in 0..turns {
        let fence = server.acquire("a", &json!({ "label": label }));
        server.release("a", &fence);
    }
    let (mut heard, mut missed) = (0, 0);
    while heard + missed < 2 * turns {
        let (kind, data) = slow.next().unwrap();
        match kind.as_str() {
            "missed" => missed += data["missed"].as_u64().unwrap(),
            _ => heard += 1,
        }
    }
    assert_eq!(heard + missed, 2 * turns);
    assert!(missed > 0 && heard > 0, "{heard} heard, {missed} missed");
}

/// The value of a sample. Every line of the text must be well-formed.
fn sample(text: &str, wanted: &str) -> f64 {
    let mut found = None;
    assert!(text.ends_with("# EOF\n"), "{text}");
    for line in text.lines().filter(|line| *line != "# EOF") {
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let kind = words.next().expect("a word");
            assert!(["HELP", "TYPE", "UNIT"].contains(&kind), "{line}");
            assert!(words.next().is_some_and(|name| name.starts_with("doorway_")), "{line}");
            assert!(words.next().is_some_and(|rest| !rest.is_empty()), "{line}");
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
        if name == wanted {
            assert!(found.replace(value).is_none(), "twice: {line}");
        }
    }
    found.unwrap_or_else(|| panic!("no {wanted} in {text}"))
}

#[test]
fn metrics_are_in_the_format_of_prometheus() {
    let server = Server::new();
    let released = server.acquire("a", &json!({}));
    server.release("a", &released);
    let broken = server.acquire("a", &json!({}));
    std::thread::scope(|scope| {
        let next = scope.spawn(|| server.acquire("a", &json!({ "wait_ms": 20_000 })));
        server.waiting(1);
        server.post("a", "break", &json!({ "fence": broken })).expect(200);
        next.join().unwrap();
    });
    let answer = server.get("/metrics");
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains("content-type: application/openmetrics-text"), "{answer:?}");
    let text = &answer.body;
    let view = server.service.status().view.unwrap() as f64;
    for (name, value) in [
        ("doorway_grants_total", 3.0),
        ("doorway_releases_total", 1.0),
        ("doorway_losses_total", 1.0),
        ("doorway_held", 1.0),
        ("doorway_waiting", 0.0),
        ("doorway_serving", 1.0),
        ("doorway_connections", 1.0),
        ("doorway_view", view),
        ("doorway_wait_seconds_count", 3.0),
        ("doorway_wait_seconds_bucket{le=\"+Inf\"}", 3.0),
        ("doorway_messages_sent_total{algorithm=\"readers-writers\"}", 0.0),
        ("doorway_messages_sent_total{algorithm=\"raymond-k\"}", 0.0),
    ] {
        let found = sample(text, name);
        assert!((found - value).abs() < 0.001, "{name} is {found}, not {value}");
    }
    // Two grants were immediate; the third one waited.
    assert!(sample(text, "doorway_wait_seconds_bucket{le=\"0.0001\"}") >= 2.0);
    assert!(sample(text, "doorway_wait_seconds_sum") > 0.0);
}

#[test]
fn a_stopping_node_says_so_and_refuses_waiting_clients() {
    let server = Server::new();
    let health = server.get("/health").expect(200);
    assert_eq!(health["serving"], true);
    let status = server.get("/v1/status").expect(200);
    assert_eq!((&status["scope"], &status["node"]), (&json!("user"), &json!("node")));
    server.acquire("a", &json!({}));
    let body = json!({ "wait_ms": 20_000 });
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| server.post("a", "acquire", &body));
        server.waiting(1);
        let stop = server.service.clone();
        let drain = std::time::Duration::from_secs(1);
        let stopped = server.runtime.spawn(async move { stop.drain(drain).await });
        let refused = waiter.join().unwrap();
        refused.problem(503, "unavailable", "this node was drained");
        assert!(refused.head.contains("retry-after: 1"), "{refused:?}");
        server.get("/health").problem(503, "unavailable", "this node was drained");
        server.post("b", "acquire", &json!({})).problem(
            503,
            "unavailable",
            "this node was drained",
        );
        server.runtime.block_on(stopped).unwrap();
    });
}
