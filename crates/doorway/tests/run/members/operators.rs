//! What operators do once in the life of a group, and what they do by mistake.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::{Duration, Instant};

use doorway_protocol::{ClientInfo, Hello, MAGIC, MembersRequest, Opening, Request, VERSIONS, put};

use super::HOLD;
use super::group::{Group, LEASE, Machine, Pace};
use crate::place::{line_of, until};

/// The view from which fences go on if not all views before are known.
const STEP: u64 = 1 << 16;

#[test]
fn a_fixed_group_is_taken_over_with_its_locks_and_fences() {
    let mut group = Group::fixed();
    let job = group.run(1, "x", HOLD);
    let held: u64 = line_of(&group.place.file("fence")).parse().unwrap();
    let before = group.fence(0, "y");
    assert!(group.mistake(0, "members init", 64).contains("fixed in its settings"));

    group.stop(0);
    group.agree(0, &[0, 1, 2]);
    group.start(0);
    let said = group.mistake(0, "members init --from-fixed", 69);
    assert!(said.contains("still runs with a fixed list of members"), "{said}");
    assert!(said.contains("nothing was changed"), "{said}");
    for node in [1, 2] {
        group.stop(node);
        group.agree(node, &[0, 1, 2]);
        group.start(node);
    }
    let said = group.mistake(0, "members init", 64);
    assert!(said.contains("a, b, c belonged to a group with a fixed list of members"), "{said}");
    assert!(said.contains("`doorway members init --from-fixed`"), "{said}");
    assert!(group.members(0)["cluster"].is_null(), "nothing was founded");

    group.answer(0, "members init --from-fixed");
    (0..3).for_each(|node| group.complete(node));
    let who = group.answer(0, "who x --json");
    assert!(who.contains(&format!("\"fence\":\"{held}\"")), "the same grant: {who}");
    assert_eq!(group.output(2, "run -n x -- true").status.code(), Some(1), "it is held");
    fs::write(group.place.file("go"), "").unwrap();
    assert_eq!(job.end().code(), Some(3), "the job has kept its lock");
    assert!(group.fence(2, "x") > held && group.fence(1, "y") > before, "fences grow");
    assert!(group.members(0)["view"].as_u64() > Some(STEP));

    // There is no way back, because epochs would begin below the views of the group.
    group.stop(2);
    group.fix(2);
    let said = group.not_started(2);
    assert!(said.contains("which agrees on its members") && said.contains("[members]"), "{said}");
}

#[test]
fn what_an_operator_did_is_noted_even_if_nobody_waits_for_the_answer() {
    let group = Group::founded();
    let socket = group.socket(0);
    let name = socket.strip_prefix('@').expect("an abstract socket");
    let address = SocketAddr::from_abstract_name(name).expect("a name");
    let mut stream = UnixStream::connect_addr(&address).expect("a node that listens");
    let (who, opening) = (ClientInfo::default(), Opening::Visit);
    let mut bytes = MAGIC.to_vec();
    put(&Hello { versions: VERSIONS, who, token: None, opening }, &mut bytes);
    stream.write_all(&bytes).expect("a hello");
    assert_ne!(stream.read(&mut [0; 1000]).expect("a welcome"), 0);
    bytes.clear();
    put(&Request::Members(1, MembersRequest::Lease(3000)), &mut bytes);
    stream.write_all(&bytes).expect("a request");
    drop(stream);
    until("it is noted", || group.answer(0, "members log").contains(": lease 3000ms: done\n"));
    assert_eq!(group.members(0)["lease_ms"], 3000);
}

/// The second machine belonged to the group before it was recovered, and comes back only with an
/// empty disk. Returns the words that add it.
fn add_with_an_empty_disk(group: &mut Group) -> String {
    group.start(1);
    let add = format!("members add b {}", group.address(1));
    let said = group.mistake(0, &add, 64);
    assert!(said.contains("belongs to another group: start it with an empty data"), "{said}");
    group.kill(1);
    group.wipe(1);
    group.start(1);
    group.answer(0, &add);
    (0..2).for_each(|node| group.complete(node));
    group.lock(1, "x");
    add
}

#[test]
fn one_survivor_goes_on_alone() {
    let mut group = Group::founded();
    let fence = group.fence(0, "x");
    let recover = "members recover --alone --config a.toml";
    assert!(group.mistake(0, recover, 64).contains("in use by another process"));
    (0..2).for_each(|node| group.kill(node));
    let said = group.mistake(0, recover, 64);
    assert!(said.contains(&format!("c answers at {}", group.address(2))), "{said}");
    assert!(!said.contains("b answers") && said.contains("--force"), "{said}");
    let forced = group.output(0, &format!("{recover} --force"));
    assert!(String::from_utf8_lossy(&forced.stderr).contains("add --yes"), "it asks all the same");
    group.kill(2);
    let said = group.output(0, recover);
    let costs = String::from_utf8(said.stdout).unwrap();
    assert_eq!(said.status.code(), Some(64), "{costs}");
    assert!(String::from_utf8_lossy(&said.stderr).contains("add --yes"));
    for part in [
        "Stop b, c for good",
        "are lost",
        "that the group agreed on without node a are open at once",
        "It takes 2 s, the longest lease of a node that is known here",
        "made longer without node a, stop here, and add --lease with that time",
        "Views, and with them fences, jump from",
    ] {
        assert!(costs.contains(part), "{costs}");
    }
    group.start(0);
    assert_eq!(group.members(0)["seats"].as_array().map(Vec::len), Some(3), "nothing was changed");
    group.kill(0);

    let jump = costs.split("jump from ").nth(1).and_then(|rest| rest.split(' ').next());
    let view: u64 = jump.and_then(|view| view.parse().ok()).expect("a view");
    let at_least = |view: u64| format!("{recover} --view-at-least {view}");
    let said = group.mistake(0, &at_least(view - 1), 64);
    assert!(said.contains(&format!("reached more than view {}", view - 1)), "{said}");
    let said = group.mistake(0, &at_least(1 << 23), 64);
    assert!(said.contains("cannot be raised by 65536"), "{said}");
    assert!(group.mistake(0, &format!("{recover} --view-at-least x"), 64).contains("invalid"));
    for lease in ["1s", "6m"] {
        let said = group.mistake(0, &format!("{recover} --lease {lease}"), 64);
        assert!(said.contains("2 seconds to 5 minutes"), "{said}");
    }
    // Other machines have seen a higher view, and had a longer lease.
    let begin = Instant::now();
    let said = group.answer(0, &format!("{} --lease 3s --yes", at_least(view + 100)));
    assert!(said.contains("It takes 3 s, ") && said.contains("waiting for 3.3 s\n"), "{said}");
    assert!(begin.elapsed() > Duration::from_secs(3), "{:?}", begin.elapsed());
    let next = view + 100 + STEP;
    assert!(said.contains(&format!("fences, jump from {view} to {next}.")), "{said}");
    assert!(said.contains(&format!("with a alone, at view {next}")), "{said}");
    group.start(0);
    group.complete(0);
    assert!(group.answer(0, "members").ends_with("1 of 1 vote; one more loss stops all locks\n"));
    assert!(group.fence(0, "x") > fence && group.members(0)["view"].as_u64() > Some(STEP));

    let add = add_with_an_empty_disk(&mut group);
    let log = group.answer(1, "members log");
    assert!(
        log.contains(": init: done\n")
            && log.contains(&format!(
                ": recover --alone --view-at-least {} --lease 3000ms: done\n",
                view + 100
            )),
        "{log}"
    );
    assert!(
        log.contains(&format!(": {}: done\n", &add[8..])),
        "what was refused is there too: {log}"
    );
    fs::create_dir(group.place.file("d")).unwrap();
    let said = group.mistake(0, "members recover --alone --config d.toml", 64);
    assert!(said.contains("does not have the data of a group"), "{said}");
}

#[test]
fn a_lost_group_begins_anew_from_a_backup() {
    let mut group = Group::founded();
    // A member counts on a longer lease from its next renewal on, and then for as long as it runs.
    until("a member counts on it", || {
        group.answer(0, "members lease 4s");
        group.answer(0, "members lease 3s");
        group.members(1)["longest_lease_ms"] == 4000
    });
    let fence = group.fence(0, "x");
    until("the other node knows it", || group.members(1)["lease_ms"] == 3000);
    let backup = group.answer(1, "members backup");
    let file = group.place.file("backup.json");
    fs::write(&file, &backup).unwrap();
    let restore = format!("members init --from {}", file.display());
    assert!(group.mistake(0, &restore, 64).contains("founded already"));

    // One machine has its disk, so the group is not lost.
    (0..3).for_each(|node| group.kill(node));
    (0..2).for_each(|node| group.wipe(node));
    (0..3).for_each(|node| group.start(node));
    let said = group.mistake(0, &restore, 64);
    assert!(said.contains("`c` answers at ") && said.contains("recover --alone"), "{said}");
    group.kill(2);
    group.wipe(2);
    group.start(2);

    let known: serde_json::Value = serde_json::from_str(&backup).unwrap();
    let view = known["view"].as_u64().unwrap();
    let wrong = |text: &str, words: &str, part: &str| {
        let file = group.place.file("wrong.json");
        fs::write(&file, text).unwrap();
        let said = group.mistake(0, &format!("members init --from {}{words}", file.display()), 64);
        assert!(said.contains(part), "{said}");
    };
    wrong("{}", "", "is not what `doorway members backup` has printed");
    wrong("hello", "", "is not what `doorway members backup` has printed");
    let other = backup.replace("\"shop\"", "\"bakery\"");
    wrong(&other, "", "one of the group `bakery`, and this node belongs to the group `shop`");
    wrong(&backup, &format!(" --above {}", view - 1), "leave out --above");
    wrong(&backup, " --above 8388608", "cannot tell more than");
    wrong(&backup, " --lease 1s", "2 seconds to 5 minutes");
    wrong(&backup, " --from-fixed", "cannot be used with");
    let said = group.mistake(0, "members init --from nothing.json", 64);
    assert!(said.contains("cannot read nothing.json"), "{said}");
    assert_eq!(group.output(0, "members init --yes").status.code(), Some(64));
    assert_eq!(group.output(0, "members init --above 3").status.code(), Some(64));

    let asked = group.output(0, &restore);
    let costs = String::from_utf8(asked.stdout).unwrap();
    assert!(String::from_utf8_lossy(&asked.stderr).contains("add --yes"));
    for part in
        ["Stop the machines of the old group for good: a, b, c", "It takes 4 s, the longest lease"]
    {
        assert!(costs.contains(part), "{costs}");
    }
    assert!(group.answer(0, "members").contains("not founded yet"), "nothing was changed");
    let said = group.answer(0, &format!("{restore} --yes"));
    assert!(said.contains("waiting for 4.3 s\nfounded the group shop:\n"), "{said}");
    (0..3).for_each(|node| group.complete(node));
    let now = group.members(0);
    assert_eq!(now["lease_ms"], 3000);
    assert_ne!(now["cluster"], known["cluster"]);
    assert!(now["view"].as_u64() > Some(view + STEP));
    assert!(group.fence(1, "x") > fence);
    let log = group.answer(1, "members log");
    assert!(log.contains(": init --from a backup of group "), "{log}");
}

#[test]
fn mistakes_change_nothing() {
    let mut group = Group::founded();
    let before = group.members(0)["seats"].clone();
    // A group of its own.
    group.agree(3, &[]);
    group.start(3);
    group.answer(3, "members init");
    let add = format!("members add d {}", group.address(3));
    let said = group.mistake(0, &add, 64);
    assert!(said.contains("`d` at ") && said.contains("belongs to another group"), "{said}");
    // A group of machines that belong to one.
    group.kill(3);
    group.wipe(3);
    group.agree(3, &[0, 1]);
    group.start(3);
    let said = group.mistake(3, "members init", 64);
    assert!(said.contains("belongs to a group already: at a member"), "{said}");
    // A machine that belonged to a group with a fixed list of members.
    group.kill(3);
    fs::write(group.place.file("d/epoch"), "epoch 7\n").unwrap();
    group.start(3);
    let said = group.mistake(0, &add, 64);
    assert!(said.contains("has the data directory of another group"), "{said}");
    group.kill(3);
    fs::write(group.place.file("d/epoch"), "epoch 07\n").unwrap();
    assert!(group.not_started(3).contains("epoch is damaged"));
    // A machine that is known with another disk.
    group.kill(2);
    fs::rename(group.place.file("c"), group.place.file("old")).unwrap();
    group.start(2);
    let said = group.mistake(0, &format!("members add c {}", group.address(2)), 64);
    assert!(said.contains("run `doorway members replace c`"), "{said}");
    group.kill(2);
    // A copy of a data directory has forgotten votes.
    group.wipe(2);
    let copied = std::process::Command::new("cp")
        .args(["-r", "old", "c"])
        .current_dir(&group.place.directory)
        .status();
    assert!(copied.unwrap().success());
    let said = group.not_started(2);
    assert!(said.contains("members.redb is a copy") && said.contains("replace"), "{said}");
    group.wipe(2);
    fs::rename(group.place.file("old"), group.place.file("c")).unwrap();
    group.start(2);
    (0..3).for_each(|node| group.complete(node));
    assert_eq!(group.members(0)["cluster"], group.members(2)["cluster"]);
    for (after, before) in [group.members(0)["seats"].clone()].iter().zip([before]) {
        let names = |seats: &serde_json::Value| -> Vec<String> {
            let seats = seats.as_array().unwrap().iter();
            seats
                .map(|seat| format!("{}{}{}", seat["name"], seat["seat"], seat["address"]))
                .collect()
        };
        assert_eq!(names(after), names(&before));
    }
    // Both kinds of group in one file.
    let address = group.address(0).to_owned();
    group.configure(
        3,
        &format!(
            "record = \"r\"\n[members]\naddress = \"{address}\"\njoin = []\n\
             [[member]]\nname = \"d\"\naddress = \"{address}\"\n"
        ),
    );
    let said = group.not_started(3);
    assert!(said.contains("a file has [members] or [[member]], not both"), "{said}");
    assert!(said.contains("cannot be recorded"), "{said}");
}

#[test]
fn two_machines_of_one_name_found_no_group() {
    let mut group = Group::new();
    let file = group.place.file("c.toml");
    let settings = fs::read_to_string(&file).unwrap();
    let settings = settings.replace("node = \"c\"", "node = \"b\"").replace("ca/c.", "ca/b.");
    fs::write(&file, settings).unwrap();
    (0..3).for_each(|node| group.start(node));
    let said = group.mistake(0, "members init", 64);
    assert!(said.contains("two machines answer as `b`"), "{said}");
    assert!(said.contains(group.address(2)) && said.contains("a `node` and a certi"), "{said}");
    assert!(group.members(0)["cluster"].is_null(), "nothing was founded");
}

#[test]
fn the_last_machine_stays_and_so_does_the_only_voter() {
    let mut group = Group::on(Machine::local(2), 1, Pace::QUICK);
    group.found(1);
    let said = group.mistake(0, "members remove a", 64);
    assert!(said.contains("`a` is the last machine of the group"), "{said}");
    let said = group.mistake(0, "members remove a --force", 64);
    assert!(said.contains("to end the group, stop its node"), "{said}");

    group.start(1);
    group.answer(0, &format!("members add b {}", group.address(1)));
    (0..2).for_each(|node| group.complete(node));
    let said = group.mistake(0, "members replace a", 64);
    assert!(said.contains("`a` is this node, and it has its old disk"), "{said}");
    assert_eq!(group.members(1)["seats"][1]["role"], "learner", "of two machines, one votes");
    let before = group.members(1)["seats"].clone();
    group.kill(0);
    group.wipe(0);
    group.start(0);
    let said = group.mistake(1, "members replace a", 64);
    assert!(said.contains("`a` is the only machine that votes"), "{said}");
    let names = |seats: &serde_json::Value| [0, 1].map(|at| seats[at]["seat"].clone());
    assert_eq!(names(&group.members(1)["seats"]), names(&before), "nothing was changed");
}

#[test]
fn a_request_waits_until_its_node_is_a_member() {
    let mut group = Group::new();
    (0..3).for_each(|node| group.start(node));
    let said = group.mistake(0, "run -n x -- true", 69);
    assert!(said.contains("not a member of its group at the moment"), "{said}");
    let begin = Instant::now();
    let said = group.mistake(0, "run -w 1 x -- true", 69);
    assert!(said.contains("not a member of its group"), "{said}");
    assert!(begin.elapsed() >= LEASE / 2, "it has waited: {:?}", begin.elapsed());
    let job = group.run(0, "-w 60 --verbose x", "echo > held");
    group.answer(0, "members --socket @nowhere init --socket @nowhere --help");
    let socket = group.socket(0);
    group.answer(1, &format!("members --socket {socket} init"));
    until("the lock is held", || group.place.file("held").exists());
    assert!(job.end().success());
    assert!(group.mistake(0, "members --wait 1 lease 3s", 64).contains("--wait"));
}

/// Every metric that the alert rules and the dashboard use is served.
#[test]
fn the_alert_rules_and_the_dashboard_use_metrics_that_exist() {
    let group = Group::founded();
    let metrics = group.get(0, "/metrics");
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    for file in ["prometheus/doorway.rules.yml", "grafana/doorway.json"] {
        let path = format!("{}/../../packaging/{file}", env!("CARGO_MANIFEST_DIR"));
        let text = fs::read_to_string(&path).expect(file);
        let names: Vec<&str> =
            text.split(|letter| !is_word(letter)).filter(|it| it.starts_with("doorway_")).collect();
        assert!(names.len() > 8, "{file}: {names:?}");
        // Only a group that agrees by etcd has this one; its own tests look for it.
        for name in names.into_iter().filter(|name| *name != "doorway_members_etcd_reachable") {
            let line = metrics.lines().find(|line| {
                line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']))
            });
            assert!(line.is_some(), "{file} uses {name}, which is not in\n{metrics}");
        }
        if file.ends_with("json") {
            serde_json::from_str::<serde_json::Value>(&text).expect("JSON");
        }
    }
}

#[test]
fn what_operators_do_is_noted_at_all_members() {
    let mut group = Group::founded_at(Pace::PATIENT);
    group.answer(1, "members lease 40s");
    group.mistake(1, "members remove z", 64);
    let job = group.run(2, "x", "echo $DOORWAY_FENCE > fence; exec sleep 1000");
    let fence = line_of(&group.place.file("fence"));
    group.answer(2, &format!("break x --fence {fence}"));
    assert_eq!(job.end().code(), Some(123), "the lock was taken from it");
    let whats = |node: usize| -> Vec<serde_json::Value> {
        let lines = group.answer(node, "members log --json");
        lines.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    };
    until("all members have the log", || (0..3).all(|node| whats(node).len() == 4));
    let log = whats(0);
    assert!(log == whats(1) && log == whats(2), "{log:?}");
    let said: Vec<_> = log.iter().map(|entry| (&entry["node"], &entry["what"])).collect();
    let broken = format!("break x --fence {fence}");
    let expected = [("a", "init"), ("b", "lease 40000ms"), ("b", "remove z"), ("c", &broken)];
    for (said, expected) in said.iter().zip(expected) {
        assert_eq!((said.0.as_str(), said.1.as_str()), (Some(expected.0), Some(expected.1)));
    }
    assert!(log[2]["result"].as_str().unwrap().contains("does not belong to the group"));
    assert_eq!(log[0]["from"], "unix socket");
    assert!(log[0]["who"].as_str().unwrap().starts_with("uid "), "{log:?}");
    // A restart keeps it.
    group.kill(0);
    group.start(0);
    group.complete(0);
    let after = group.answer(0, "members log --json");
    assert_eq!(after.lines().count(), 4, "{after}");
}
