//! Groups with a fixed list of members, with real nodes: what is told while nodes are away.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::HOLD;
use super::group::Group;
use crate::place::{children, free_ports, line_of, signal, until};

/// With two of three nodes dead, no node can tell a free lock from one that is held elsewhere.
#[test]
fn a_group_that_cannot_decide_says_so() {
    let mut group = Group::fixed();
    group.lock(0, "held");
    let job = group.run(2, "held", HOLD);
    line_of(&group.place.file("fence"));
    let is_used = || group.answer(0, "who held").contains("held by");
    until("the others know of the holder", is_used);
    group.kill(1);
    // Two of three nodes serve.
    until("b is missed", || group.get(0, "/health").contains(r#""away":[{"node":"b","#));
    let said = group.get(0, "/health");
    assert!(said.starts_with("HTTP/1.1 200 ") && said.contains(r#""serving":true"#), "{said}");
    assert_eq!(group.count(0, "doorway_serving"), 1);
    let doctor = |group: &Group| {
        let done = group.output(0, "doctor --config a.toml");
        String::from_utf8(done.stdout).expect("text")
    };
    let found = doctor(&group);
    assert!(found.contains(" answers at ") && !found.contains("members are away"), "{found}");
    group.kill(2);

    until("c is missed", || group.get(0, "/health").starts_with("HTTP/1.1 503 "));
    let said = group.get(0, "/health");
    assert!(
        said.contains("half or more of the members are away, 2 of 3: b for ")
            && said.contains(", c for "),
        "{said}"
    );
    assert_eq!(group.count(0, "doorway_serving"), 0);
    let doctor = doctor(&group);
    assert!(doctor.contains("half or more of the members are away, 2 of 3: b for "), "{doctor}");
    for words in ["run -n fresh -- true", "run -w 1 fresh -- true"] {
        let said = group.mistake(0, words, 69);
        assert!(said.contains("the group cannot decide whether `fresh` is free"), "{said}");
        assert!(said.contains("c has been unreachable for "), "{said}");
    }
    // The fastest of a few requests: this machine may have much else to do. What the members that
    // answer say is enough, so the node does not wait for the 2 seconds that others may take.
    let asked = (0..4).map(|_| {
        let begin = Instant::now();
        let said = acquire_over_http(&group, "fresh");
        assert!(said.starts_with("HTTP/1.1 503 ") && said.contains("cannot decide"), "{said}");
        begin.elapsed()
    });
    let fastest = asked.min().expect("a request");
    assert!(fastest < Duration::from_secs(1), "it took {fastest:?}");
    let said = group.answer(0, "who held");
    assert!(
        said.contains("no member that answers holds it; one that does not answer may"),
        "{said}"
    );
    let said = group.mistake(0, "wait -w 0 held", 69);
    assert!(said.contains("cannot know whether held is free: no answer from b, c"), "{said}");

    fs::write(group.place.file("go"), "").expect("a file");
    until("the command has ended", || children(job.id()).is_empty());
    job.signal("KILL");
    job.end();
}

#[test]
fn a_peer_that_stops_or_dies_is_logged_in_words_of_this_program() {
    let mut group = Group::fixed();
    // All links are up.
    group.lock(0, "x");
    group.stop(1);
    group.kill(2);
    let log = || fs::read_to_string(group.place.file("a.log")).expect("a log");
    until("both are missed", || {
        let log = log();
        let down =
            |peer: &str| log.lines().any(|line| line.contains("link down") && line.contains(peer));
        down("peer=\"b\"") && down("peer=\"c\"")
    });
    for foreign in ["close_notify", "docs.rs", "rustls"] {
        assert!(!log().contains(foreign), "{foreign} in:\n{}", log());
    }
}

/// The holder and its node are dead. What node `a` knows of them it has heard before: from an
/// answer about `asked`, and about `quiet` from what each member told when the view began.
#[test]
fn the_last_known_holder_at_a_member_that_is_away_is_named() {
    let mut group = Group::fixed();
    let jobs = ["asked", "quiet"].map(|name| {
        let job = group.run(2, name, &HOLD.replace("fence", name));
        let fence = line_of(&group.place.file(name));
        (job, fence)
    });
    group.kill(1);
    group.start(1);
    until("the view has begun", || {
        let status: Value = serde_json::from_str(&group.answer(0, "status --json")).expect("JSON");
        status["view"].is_u64() && status["away"] == json!([])
    });
    assert!(group.answer(0, "who asked").contains("held by"));
    group.kill(2);
    let [asked, _] = jobs.map(|(job, fence)| {
        let commands = children(job.id());
        job.signal("KILL");
        job.end();
        for command in commands {
            signal(command, "KILL");
        }
        fence
    });
    until("it is away", || group.answer(0, "status").contains("away      c "));

    let said = group.answer(0, "who asked");
    assert!(said.contains("no member that answers holds it"), "{said}");
    let known = said.lines().find(|line| line.starts_with("last known holder: sh "));
    assert!(known.is_some_and(|line| line.ends_with(&format!(", fence {asked}"))), "{said}");
    assert!(said.contains("at node c, which is away; heard of "), "{said}");
    let shown = group.output(0, "break asked");
    assert!(String::from_utf8_lossy(&shown.stdout).contains("last known holder: sh "), "{shown:?}");
    let said = group.mistake(0, &format!("break asked --fence {asked}"), 69);
    assert!(said.contains("c held it with this fence when last heard of"), "{said}");

    let report: Value = serde_json::from_str(&group.answer(0, "who asked --json")).expect("JSON");
    let [known] = &report["last_known"].as_array().expect("a list")[..] else { panic!("{report}") };
    assert_eq!((&known["node"], &known["fence"]), (&json!("c"), &json!(asked)));
    let said = group.get(0, "/v1/locks/asked");
    let (_, body) = said.split_once("\r\n\r\n").expect("a body");
    let report: Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(report["last_known"][0]["fence"], json!(asked));

    let said = group.answer(0, "who quiet");
    assert!(said.contains("last known holder: a client\n"), "{said}");
    assert!(said.contains("at node c, which is away; heard of "), "{said}");
    let said = group.answer(0, "who fresh");
    assert!(!said.contains("last known holder"), "{said}");
}

/// What `status` says of a group whose members are fixed, as text and as JSON.
#[test]
fn a_fixed_group_shows_how_its_members_are_arranged() {
    let rules = "[[lock]]\nnames = \"plane\"\nalgorithm = \"maekawa\"\n\
                 quorums = \"a=a,b; b=b; c=b,c\"\n\
                 [[lock]]\nnames = \"desk\"\nalgorithm = \"central\"\ncoordinator = \"b\"\n";
    let group = Group::fixed_with(rules);
    for node in 0..3 {
        let said = group.answer(node, "status");
        for line in [
            "arranged  locks `plane`: maekawa, quorums a=a,b; b=b; c=b,c\n",
            "arranged  locks `desk`: central, coordinator b\n",
        ] {
            assert!(said.contains(line), "{line} is not in {said}");
        }
    }
    let said = group.answer(1, "status --json");
    let said: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(said["arranged"][1], "locks `desk`: central, coordinator b");
    assert_eq!(said["arranged"].as_array().map(Vec::len), Some(2), "no other rule arranges them");
    assert!(group.get(2, "/v1/locks/desk").contains("\"algorithm\":\"central, coordinator b\""));
}

/// The holder is connected to the node that stops, and its command runs on.
#[test]
fn nobody_enters_while_the_node_of_the_holder_is_stopped() {
    let mut group = Group::fixed();
    let job = group.run(1, "x", &HOLD.replace("exit 3", "echo > ended; exit 3"));
    line_of(&group.place.file("fence"));
    // A request that was queued before the stop.
    let mut queued = group.run(0, "-w 120 x", "test -e ended");
    until("the request is queued", || {
        let report: Value = serde_json::from_str(&group.answer(0, "who x --json")).expect("JSON");
        report["waiters"].as_array().is_some_and(|waiters| waiters.len() == 1)
    });
    group.stop(1);
    for words in ["run -n x -- true", "run -w 1 x -- true"] {
        let done = group.output(0, words);
        assert!(!done.status.success(), "{words}: {done:?}");
    }
    group.start(1);
    until("the holder is back", || group.answer(0, "who x").contains("held by"));
    let done = group.output(0, "run -n x -- true");
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    assert!(!queued.has_ended(), "the queued request entered while the command was running");
    fs::write(group.place.file("go"), "").expect("a file");
    assert_eq!(job.end().code(), Some(3), "the command has run to its end");
    assert_eq!(queued.end().code(), Some(0), "the queued request entered after its end");
    group.lock(0, "x");
}

/// The response of a node to a request for a lock that does not wait.
fn acquire_over_http(group: &Group, lock: &str) -> String {
    let body = r#"{"wait_ms":0}"#;
    let mut stream = group.connect(0);
    let head = format!(
        "POST /v1/locks/{lock}/acquire HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("a request");
    let mut said = String::new();
    stream.read_to_string(&mut said).expect("a response");
    said
}

/// Pass on what arrives at a port to another one, each way after this time.
fn delay(to: u16, time: Duration) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its number").port();
    spawn(move || {
        for near in listener.incoming().flatten() {
            let Ok(far) = TcpStream::connect(("127.0.0.1", to)) else { return };
            for (from, to) in [(&near, &far), (&far, &near)] {
                let (from, to) = (from.try_clone().expect("it"), to.try_clone().expect("it"));
                let (arrivals, pieces) = channel();
                spawn(move || read_all(from, &arrivals));
                spawn(move || write_later(to, &pieces, time));
            }
        }
    });
    port
}

/// Pass on what arrives, with the time of its arrival.
fn read_all(mut from: TcpStream, arrivals: &Sender<(Instant, Vec<u8>)>) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if arrivals.send((Instant::now(), bytes[..count].to_vec())).is_err() {
            return;
        }
    }
}

/// Write what has arrived, this long after its arrival.
fn write_later(mut to: TcpStream, pieces: &Receiver<(Instant, Vec<u8>)>, time: Duration) {
    for (arrived, bytes) in pieces {
        sleep((arrived + time).saturating_duration_since(Instant::now()));
        if to.write_all(&bytes).is_err() {
            return;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// A graceful stop of the holder's node gives the lock to a client of another node only when the
/// holder was told, and its command has ended.
#[test]
fn a_graceful_stop_lets_nobody_in_before_a_distant_holder_is_out() {
    let mut group = Group::fixed();
    let [port] = free_ports();
    let door = format!(
        "[sessions]\nlisten = \"127.0.0.1:{port}\"\n\
         [[client]]\nname = \"far\"\nrights = [{{ names = \"*\", may = [\"acquire\"] }}]\n"
    );
    let settings = group.place.file("c.toml");
    let text = fs::read_to_string(&settings).expect("settings").replace("ca/c.", "files/c.");
    fs::write(&settings, text + &door).expect("a file");
    group.place.ca("node c --address 127.0.0.1 --dir ca --to files");
    group.place.ca("client far --dir ca --to files");
    group.stop(2);
    group.start(2);
    group.lock(0, "x");

    let far = delay(port, Duration::from_millis(200));
    let options = format!(
        "--socket tcp://127.0.0.1:{far} --ca ca/ca.crt --certificate files/far.crt \
         --key files/far.key --ttl 3 x"
    );
    // The command notes that it is told to end, takes some time, and notes that it has ended.
    let line = "trap 'echo >> told; sleep 0.3; echo >> out; exit' TERM; echo $DOORWAY_FENCE > fence
                while :; do sleep 0.02; done";
    let holder = group.run(0, &options, line);
    line_of(&group.place.file("fence"));
    let line = "[ -e out ] && echo after > second || echo before > second";
    let mut next = group.run(0, "-w 60 x", line);
    until("it waits", || {
        let report: Value = serde_json::from_str(&group.answer(0, "who x --json")).expect("JSON");
        report["waiters"].as_array().is_some_and(|waiters| waiters.len() == 1)
    });
    group.stop(2);
    // The node is gone, and its lock is not free: the node may come back with it.
    assert!(!next.has_ended(), "the lock was given away by a graceful stop");
    holder.end();
    group.start(2);
    assert_eq!(next.end().code(), Some(0));
    assert!(group.place.file("told").exists(), "the holder was told");
    assert_eq!(line_of(&group.place.file("second")), "after");
}
