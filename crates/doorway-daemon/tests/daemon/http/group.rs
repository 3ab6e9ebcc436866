//! What HTTP says about a whole group: members, locks, leases and recordings.

use std::thread;

use serde_json::{Value, json};

use super::client::{Answer, Listener, ask};
use crate::common::daemon::Daemon;
use crate::common::group::Group;
use crate::common::{PATIENCE, until};
use crate::server::{Server, connect};

/// Locks of a fixed group, with an algorithm that asks all members at every entry.
const RULES: &str = "[[lock]]\nnames = \"*\"\nalgorithm = \"ricart-agrawala\"\n";

fn send(daemon: &Daemon, method: &str, path: &str, body: Option<&Value>) -> Answer {
    let name = daemon.socket.trim_start_matches('@');
    ask(connect(name).expect("the daemon listens"), method, path, &[], body)
}

fn get(daemon: &Daemon, path: &str) -> Value {
    send(daemon, "GET", path, None).expect(200)
}

fn post(daemon: &Daemon, path: &str, body: &Value) -> Answer {
    send(daemon, "POST", path, Some(body))
}

fn acquire(daemon: &Daemon, lock: &str, label: &str) -> String {
    let body = json!({ "ttl_ms": 60_000, "wait_ms": 20_000, "label": label });
    let held = post(daemon, &format!("/v1/locks/{lock}/acquire"), &body).expect(200);
    held["fence"].as_str().expect("a fence").to_owned()
}

fn names(list: &Value) -> Vec<&str> {
    let locks = list["locks"].as_array().expect("a list");
    locks.iter().map(|lock| lock["lock"].as_str().expect("a name")).collect()
}

#[test]
fn every_member_tells_its_locks_and_one_that_is_killed_is_away() {
    let mut group = Group::start(RULES);
    let [one, two, three] = &group.nodes[..] else { panic!("three nodes") };
    acquire(one, "b", "first");
    acquire(two, "a", "second");
    acquire(three, "c", "third");
    assert_eq!(names(&get(one, "/v1/locks")), ["b"]);
    let all = get(one, "/v1/locks?group=true");
    assert_eq!(names(&all), ["a", "b", "c"]);
    assert_eq!(
        (&all["silent"], &all["away"], &all["more"]),
        (&json!([]), &json!([]), &json!(false))
    );
    let holder = &all["locks"][0]["holder"];
    assert_eq!(holder["node"], "n2");
    assert!(holder["client"].as_str().is_some_and(|it| it.starts_with("second (uid ")), "{holder}");
    let left = holder["expires_in_ms"].as_u64().expect("a lease has an end");
    assert!((30_000..=60_000).contains(&left), "{left}");
    assert_eq!(names(&get(one, "/v1/locks?group=true&prefix=c")), ["c"]);
    let members = get(two, "/v1/group");
    let nodes: Vec<&Value> =
        members["nodes"].as_array().expect("nodes").iter().map(|node| &node["node"]).collect();
    assert_eq!(nodes, [&json!("n2"), &json!("n1"), &json!("n3")]);
    assert_eq!(members["nodes"][2]["held"], 1);

    group.nodes[2].kill();
    let one = &group.nodes[0];
    until("the others notice", || {
        get(one, "/v1/group")["away"].as_array().is_some_and(|away| !away.is_empty())
    });
    let members = get(one, "/v1/group");
    assert_eq!(members["nodes"].as_array().expect("nodes").len(), 2);
    assert_eq!(members["away"][0]["node"], "n3");
    let all = get(one, "/v1/locks?group=true");
    assert_eq!((names(&all), &all["away"][0]["node"]), (vec!["a", "b"], &json!("n3")));
}

/// The quorums of one rule, the tree of another, and nothing about a rule that arranges nothing.
#[test]
fn a_fixed_group_tells_how_its_members_are_arranged() {
    let rules = "[[lock]]\nnames = \"orders/*\"\nalgorithm = \"maekawa\"\nquorums = \"grid\"\n\
                 [[lock]]\nnames = \"builds\"\nalgorithm = \"raymond-tree\"\n\
                 tree = \"n2=n1, n3=n2\"\n";
    let group = Group::start(&format!("{rules}{RULES}"));
    let told = json!([
        "locks `orders/*`: maekawa, quorums grid",
        "locks `builds`: raymond-tree, tree n2=n1, n3=n2"
    ]);
    for node in &group.nodes {
        let status = get(node, "/v1/status");
        assert_eq!((&status["arranged"], &status["members"][0]), (&told, &json!("n1")), "{status}");
        assert_eq!(get(node, "/v1/group")["arranged"], told);
    }
}

#[test]
fn a_waiting_client_of_another_member_says_whose_answer_it_misses() {
    let group = Group::start(RULES);
    let [one, two, three] = &group.nodes[..] else { panic!("three nodes") };
    let fence = acquire(one, "a", "holder");
    thread::scope(|scope| {
        let waits = scope.spawn(|| acquire(two, "a", "waiter"));
        until("it waits", || get(two, "/v1/status")["waiting"] == 1);
        let mut seen = Value::Null;
        until("it is seen from the third", || {
            seen = get(three, "/v1/locks/a");
            seen["waiters"][0]["missing"] == json!(["n1"])
        });
        assert_eq!(seen["waiters"][0]["place"], 0);
        let left = seen["holders"][0]["expires_in_ms"].as_u64().expect("a lease");
        assert!((30_000..=60_000).contains(&left), "{seen}");
        let list = get(three, "/v1/locks?group=true&order=wait");
        let first = &list["locks"][0];
        assert_eq!((&first["inside"], &first["waiting"]), (&json!(1), &json!(1)));
        post(one, "/v1/locks/a/release", &json!({ "fence": fence })).expect(200);
        waits.join().unwrap();
    });
}

#[test]
fn a_lock_is_broken_from_any_member() {
    let mut group = Group::start(RULES);
    let [one, two, three] = &group.nodes[..] else { panic!("three nodes") };
    let holder = one.client();
    let (tell, told) = std::sync::mpsc::channel();
    holder.on_lost(move |lost| tell.send(lost.clone()).unwrap());
    let grant = holder.acquire("a").enter().unwrap();
    let fence = grant.fence().to_string();
    let held = format!("it is held with {fence}");
    let wrong = json!({ "fence": "12345" });
    post(two, "/v1/locks/a/break", &wrong).problem(404, "gone", &held);
    let body = json!({ "fence": fence });
    assert_eq!(post(two, "/v1/locks/a/break", &body).expect(200)["broken"], true);
    let lost = told.recv_timeout(PATIENCE).unwrap();
    assert!(lost.reason.starts_with("broken by uid "), "{lost}");
    assert!(lost.reason.ends_with(" at the node n2"), "{lost}");
    until("it is free", || get(three, "/v1/locks/a")["holders"] == json!([]));

    // A holder at a member that is away may still hold the lock.
    let fence = acquire(three, "b", "gone");
    group.nodes[2].kill();
    let one = &group.nodes[0];
    until("the others notice", || get(one, "/v1/status")["away"] != json!([]));
    let text = "n3 cannot be reached and may hold it";
    post(one, "/v1/locks/b/break", &json!({ "fence": fence })).problem(503, "unavailable", text);
}

#[test]
fn a_lock_without_end_that_was_broken_from_another_member_is_not_held_again() {
    let mut group = Group::start(&format!("{RULES}[limits]\nendless = true\n"));
    let [one, two, _] = &group.nodes[..] else { panic!("three nodes") };
    let held = post(one, "/v1/locks/a/acquire", &json!({ "ttl_ms": null })).expect(200);
    let body = json!({ "fence": held["fence"] });
    assert_eq!(post(two, "/v1/locks/a/break", &body).expect(200)["broken"], true);
    group.nodes[0].crash();
    group.nodes[0].ready();
    assert_eq!(get(&group.nodes[0], "/v1/locks/a")["holders"], json!([]));
    acquire(&group.nodes[1], "a", "next");
}

#[test]
fn a_recording_of_a_lock_in_use_has_lines_of_every_member() {
    let group = Group::start(RULES);
    let [one, two, three] = &group.nodes[..] else { panic!("three nodes") };
    let turns = |daemon: &Daemon| {
        for _ in 0..30 {
            let fence = acquire(daemon, "a", "turn");
            post(daemon, "/v1/locks/a/release", &json!({ "fence": fence })).expect(200);
        }
    };
    let told = thread::scope(|scope| {
        for daemon in [one, two, three] {
            scope.spawn(move || turns(daemon));
        }
        until("the lock is in use", || get(three, "/v1/status")["grants"] != 0);
        post(two, "/v1/locks/a/record", &json!({ "for_ms": 150 }))
    });
    assert_eq!(told.status, 200, "{told:?}");
    assert!(told.head.contains("content-type: application/x-ndjson"), "{}", told.head);
    let lines: Vec<Value> =
        told.body.lines().map(|line| serde_json::from_str(line).expect("a line")).collect();
    let begun = lines.iter().filter(|line| line["partial"] == true).count();
    assert_eq!(begun, 3, "each node has its part");
    let count = |what: &str| lines.iter().filter(|line| line["did"] == what).count();
    assert!(count("enter") > 0 && count("send") > 0, "{}", told.body);
    assert!(lines.iter().all(|line| line["lock"].is_null() || line["lock"] == "a"));
    // Nothing is recorded any more.
    post(one, "/v1/locks/a/record", &json!({ "for_ms": 60_001 })).problem(
        400,
        "invalid",
        "for_ms may be 60000 at most",
    );
}

#[test]
fn a_recording_begins_with_who_is_inside_and_who_waits() {
    let group = Group::start(RULES);
    let [one, two, three] = &group.nodes[..] else { panic!("three nodes") };
    let fence = acquire(one, "a", "holder");
    let told = thread::scope(|scope| {
        scope.spawn(|| acquire(two, "a", "waiter"));
        until("the request waits", || get(two, "/v1/status")["waiting"] == 1);
        assert_eq!(get(three, "/v1/locks/a")["recording"], false);
        let told = post(three, "/v1/locks/a/record", &json!({ "for_ms": 10 }));
        post(one, "/v1/locks/a/release", &json!({ "fence": fence })).expect(200);
        told
    });
    let lines = told.body.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line"));
    let begun: Vec<Value> = lines.filter(|line| line["did"] == "begin").collect();
    let inside = begun.iter().filter(|line| line["holders"][0]["node"] == "n1").count();
    let waiting = begun.iter().filter(|line| line["waiting"] == "Exclusive").count();
    assert_eq!((inside, waiting), (1, 1), "{}", told.body);
}

#[test]
fn everything_after_a_recording_is_said_to_have_begun_is_in_it() {
    let group = Group::start(RULES);
    let [one, two, three] = &group.nodes[..] else { panic!("three nodes") };
    // A member records only if it can be reached. This lock needs the answers of both others.
    acquire(three, "b", "first");
    let told = thread::scope(|scope| {
        let told = scope.spawn(|| post(three, "/v1/locks/a/record", &json!({ "for_ms": 5_000 })));
        until("it has begun", || get(three, "/v1/locks/a")["recording"] == true);
        for node in [one, two, three] {
            let fence = acquire(node, "a", "client");
            post(node, "/v1/locks/a/release", &json!({ "fence": fence })).expect(200);
        }
        assert_eq!(get(three, "/v1/locks/b")["recording"], false, "another lock is not recorded");
        told.join().expect("no panic")
    });
    let entries = told.body.matches("\"did\":\"enter\"").count();
    assert_eq!(entries, 3, "{}", told.body);
    assert_eq!(get(three, "/v1/locks/a")["recording"], false, "it has ended");
}

#[test]
fn a_recording_says_which_members_are_missing() {
    let mut group = Group::start(RULES);
    acquire(&group.nodes[0], "a", "holder");
    group.nodes[2].kill();
    let one = &group.nodes[0];
    until("the others notice", || get(one, "/v1/status")["away"] != json!([]));
    let told = post(one, "/v1/locks/a/record", &json!({ "for_ms": 10 }));
    assert_eq!(told.status, 200);
    assert!(told.head.contains("doorway-missing: n3"), "{}", told.head);
    assert!(told.body.contains("{\"end\":\"missing\"}"), "{}", told.body);
}

#[test]
fn requests_that_wait_and_give_up_are_events() {
    let server = Server::new();
    let mut all = Listener::new(server.connect(), "/v1/events", &[]);
    server.acquire("a", &json!({}));
    let body = json!({ "wait_ms": 50, "label": "hasty" });
    server.post("a", "acquire", &body).problem(409, "not-free", "");
    let mut next = || all.next().unwrap();
    assert_eq!(next().0, "granted");
    let (kind, news) = next();
    assert_eq!(
        (kind.as_str(), &news["client"], &news["lock"]),
        ("waiting", &json!("hasty"), &json!("a"))
    );
    assert!(news["fence"].is_null());
    assert_eq!(next().0, "gave-up");
}

#[test]
fn a_view_that_ends_and_begins_is_an_event() {
    let mut group = Group::start(RULES);
    let name = group.nodes[0].socket.trim_start_matches('@').to_owned();
    let mut all = Listener::new(connect(&name).expect("it listens"), "/v1/events", &[]);
    until("a view runs", || get(&group.nodes[0], "/v1/status")["view"].is_u64());
    let before = get(&group.nodes[0], "/v1/status")["view"].as_u64().expect("a view runs");
    group.nodes[2].kill();
    group.nodes[2].spawn();
    group.nodes[2].ready();
    // The first views may be told late, so the news may begin with the view that runs already.
    loop {
        let (kind, news) = all.next().unwrap();
        assert_eq!(kind, "view");
        if news["view"].as_u64().is_some_and(|view| view > before) {
            break;
        }
    }
}

#[test]
fn a_query_of_the_list_that_cannot_be_is_refused() {
    let server = Server::new();
    server.get("/v1/locks?group=perhaps").problem(400, "invalid", "`group` is `true` or `false`");
    server.get("/v1/locks?order=size").problem(400, "invalid", "expected `name` or `wait`");
    server.get("/v1/locks?order=wait&after=a").problem(
        400,
        "invalid",
        "`after` needs `order=name`",
    );
}
