//! The rules for locks change while the group works.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::group::{Group, Machine, Pace};
use crate::place::{Process, until};

/// The rules with which the groups begin.
const FIRST: &str = "[[lock]]\nnames = \"slots\"\npermits = 3\n\
                     [[lock]]\nnames = \"files/*\"\nalgorithm = \"readers-writers\"\n";

impl Group {
    /// Three machines with these rules in their settings, in one view.
    fn with_rules(rules: &str) -> Self {
        let mut group = Self::on(Machine::local(4), 3, Pace::PATIENT);
        for (node, name) in ["a", "b", "c", "d"].into_iter().enumerate() {
            let file = group.place.file(&format!("{name}.toml"));
            let text = fs::read_to_string(&file).expect("the settings");
            fs::write(file, text + rules).expect("the settings");
            if node < 3 {
                group.start(node);
            }
        }
        group.answer(0, "members init");
        (0..3).for_each(|node| group.complete(node));
        group
    }

    /// A file with rules.
    fn rules(&self, file: &str, text: &str) {
        fs::write(self.place.file(file), text).expect("a file");
    }

    /// The hash of the rules that a node knows.
    fn digest(&self, node: usize) -> String {
        self.members(node)["rules"]["digest"].as_str().expect("a hash").to_owned()
    }

    /// Hold a lock until a file is there.
    fn hold(&self, node: usize, lock: &str, file: &str) -> Process {
        let line = format!("echo > {file}.held; until [ -e {file} ]; do sleep 0.02; done");
        let job = self.run(node, lock, &line);
        until("the lock is held", || self.place.file(&format!("{file}.held")).exists());
        job
    }

    fn release(&self, job: Process, file: &str) {
        fs::write(self.place.file(file), "").expect("a file");
        assert!(job.end().success(), "it has kept its lock");
    }
}

#[test]
fn rules_change_under_load() {
    let group = Group::with_rules(FIRST);
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        for node in 0..3 {
            let (group, ends) = (&group, &ends);
            scope.spawn(move || {
                // A client that is not alone leaves a mark.
                let line = "mkdir in || echo >> bad; sleep 0.005; rmdir in; echo >> count";
                while !ends.load(Ordering::Relaxed) {
                    let mut command = group.command(node, "run -w 60 jobs -- sh -c");
                    let done = command.arg(line).output().expect("it runs");
                    assert!(done.status.success(), "{done:?}");
                }
            });
        }
        let count = || fs::read_to_string(group.place.file("count")).unwrap_or_default().len();
        let slots = |permits| format!("[[lock]]\nnames = \"slots\"\npermits = {permits}\n");
        let algorithms = ["suzuki-kasami", "maekawa", "ricart-agrawala"];
        for (round, algorithm) in algorithms.into_iter().enumerate() {
            let before = count();
            until("clients enter", || count() > before + 3);
            let jobs = format!("[[lock]]\nnames = \"jobs\"\nalgorithm = \"{algorithm}\"\n");
            group.rules("next.toml", &(slots(2 + round) + &jobs));
            let said = group.answer(round, "members rules next.toml --yes");
            assert!(said.contains(algorithm) && said.contains(" from view "), "{said}");
            (0..3).for_each(|node| group.complete(node));
            let digests = [0, 1, 2].map(|node| group.digest(node));
            assert!(digests.iter().all(|digest| said.contains(digest)), "{digests:?} {said}");
            let report = group.get(round, "/v1/locks/jobs");
            assert!(report.contains(algorithm), "{report}");
        }
        let before = count();
        until("clients enter", || count() > before + 3);
        ends.store(true, Ordering::Relaxed);
    });
    assert!(!group.place.file("bad").exists(), "two clients were inside");
}

#[test]
fn holders_that_do_not_fit_are_safe() {
    let group = Group::with_rules(FIRST);
    let mut jobs: Vec<_> =
        (0..3).map(|node| (group.hold(node, "slots", &format!("go{node}")), node)).collect();
    let reader = group.hold(0, "--shared files/x", "read");
    let waiting = group.run(1, "-w 60 files/x", "echo > wrote");
    group.rules("next.toml", "[[lock]]\nnames = \"slots\"\npermits = 2\n");
    let said = group.output(1, "members rules next.toml --yes");
    let why = String::from_utf8_lossy(&said.stderr).into_owned();
    assert_eq!(said.status.code(), Some(1), "{why}");
    assert!(why.contains("`slots` has 3 holders, and the new rules let 2 in"), "{why}");
    assert!(why.contains("nothing was changed"), "{why}");
    assert!(group.get(0, "/v1/locks/slots").contains("\"permits\":3"));

    let said = group.answer(1, "members rules next.toml --yes --force");
    assert!(said.contains("changed  slots: permits 3 -> 2\n"), "{said}");
    assert!(said.contains("removed  files/*: algorithm readers-writers, permits 1\n"), "{said}");
    (0..3).for_each(|node| group.complete(node));
    let code = |words: &str| group.output(2, words).status.code();
    for left in [2, 1] {
        assert_eq!(code("run -n slots -- true"), Some(1), "{} hold it", left + 1);
        let (job, node) = jobs.pop().expect("a holder");
        group.release(job, &format!("go{node}"));
    }
    group.lock(2, "slots");
    // The reader is still inside, alone now. The writer enters after it.
    assert!(!group.place.file("wrote").exists());
    assert_eq!(code("run -n files/x -- true"), Some(1), "it is held");
    let said = group.mistake(2, "run --shared files/x -- true", 64);
    assert!(said.contains("carvalho-roucairol"), "it names the algorithm: {said}");
    group.release(reader, "read");
    assert!(waiting.end().success());
    let (job, node) = jobs.pop().expect("a holder");
    group.release(job, &format!("go{node}"));
    let log = group.answer(2, "members log");
    assert!(log.contains(": rules ") && log.contains(" --force: done\n"), "{log}");
}

#[test]
#[expect(clippy::too_many_lines, reason = "one story")]
fn the_rules_of_the_group_count_and_settings_that_differ_are_named() {
    let mut group = Group::with_rules(FIRST);
    let first = group.digest(0);
    for part in ["names = \"slots\"", "permits = 3", "algorithm = \"readers-writers\""] {
        assert!(group.answer(0, "members rules").contains(part));
    }
    // Bad files change nothing.
    for (text, part) in [
        ("[[lock]]\nnames = \"x\"\nalgorithm = \"lampord\"\n", "bad.toml:3: "),
        ("[[lock]]\nnames = \"x\"\nalgorithm = \"lampord\"\n", "did you mean `lamport`?"),
        ("[[lock]]\nnames = \"a*b\"\n", "write a whole name, or a prefix followed by `*`"),
        ("[[lock]]\nnames = \"x\"\npermit = 3\n", "did you mean `permits`?"),
        ("[[lock]]\nalgorithm = \"lamport\"\n", "names"),
        ("[lock\n", "this is not TOML"),
        (
            "[[lock]]\nnames = \"x\"\nalgorithm = \"maekawa\"\nquorums = \"a=a; b=b\"\n",
            "bad.toml:4: the rule for `x` cannot be used: the quorums of `a` and `b` have no member in common",
        ),
        (
            "[[lock]]\nnames = \"x\"\nalgorithm = \"maekawa\"\nquorums = \"grid\"\ntree = \"chain\"\n",
            "bad.toml:5: the rule for `x` cannot be used: maekawa has no use for a tree",
        ),
        (
            "[[lock]]\nnames = \"x\"\nalgorithm = \"raymond-tree\"\ntree = \"a=b, b=a\"\n",
            "bad.toml:4: the rule for `x` cannot be used: the tree has a cycle through `b`",
        ),
        (
            "[[lock]]\nnames = \"x\"\nalgorithm = \"weighted-majority\"\nweights = \"a=0\"\n",
            "bad.toml:4: the rule for `x` cannot be used: all weights are zero",
        ),
        (
            "[[lock]]\nnames = \"x\"\npermits = 2\npermits_per_node = 3\n",
            "bad.toml:4: the rule for `x` cannot be used: permits_per_node is 3",
        ),
    ] {
        group.rules("bad.toml", text);
        let done = group.output(0, "members rules bad.toml --yes");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(64), "{said}");
        assert!(said.contains(part), "{text}: {said}");
    }
    let done = group.output(0, "members rules --yes");
    assert!(String::from_utf8_lossy(&done.stderr).contains("FILE"), "{done:?}");
    let done = group.output(0, "members rules nowhere.toml");
    assert!(String::from_utf8_lossy(&done.stderr).contains("cannot read nowhere.toml"));
    let many: Vec<_> = (0..2000).map(|at| format!("[[lock]]\nnames = \"n{at}\"\n")).collect();
    group.rules("bad.toml", &many.concat());
    let done = group.output(0, "members rules bad.toml --yes");
    assert!(String::from_utf8_lossy(&done.stderr).contains("are allowed"), "{done:?}");
    // The difference alone.
    group.rules("next.toml", "algorithm = \"lamport\"\n[[lock]]\nnames = \"slots\"\npermits = 2\n");
    let said = group.answer(0, "members rules next.toml --dry-run");
    assert!(said.contains("changed  slots: permits 3 -> 2\n"), "{said}");
    assert!(said.contains("all other locks: algorithm carvalho-roucairol -> lamport\n"), "{said}");
    let json: serde_json::Value =
        serde_json::from_str(&group.answer(0, "members rules next.toml --dry-run --json"))
            .expect("JSON");
    assert_eq!((&json["done"], &json["before"]), (&false.into(), &first.clone().into()));
    assert_eq!(json["changes"].as_array().map(Vec::len), Some(3));
    let said = group.output(0, "members rules next.toml");
    assert_eq!(said.status.code(), Some(64), "there is no terminal to ask at");
    assert!(group.answer(0, "members rules a.toml --yes").contains("has these rules already"));
    assert_eq!(group.digest(2), first, "nothing was changed");

    // A member that was away gets the rules of the group when it comes back, and so does a new one.
    group.stop(2);
    group.seated(0, 2);
    group.answer(0, "members rules next.toml --yes");
    group.start(2);
    group.start(3);
    let add = format!("members add d {}", group.address(3));
    group.answer(0, &add);
    (0..4).for_each(|node| group.complete(node));
    for node in 0..4 {
        assert!(group.get(node, "/v1/locks/slots").contains("\"permits\":2"), "of {node}");
        assert!(group.get(node, "/v1/locks/x").contains("\"algorithm\":\"lamport\""));
        group.lock(node, "x");
    }
    let part = "settings differ from the rules of the group";
    for words in ["status", "members", "doctor --config c.toml"] {
        let said = group.output(2, words);
        assert!(String::from_utf8_lossy(&said.stdout).contains(part), "{words}: {said:?}");
    }
    let log = fs::read_to_string(group.place.file("c.log")).expect("a log");
    assert!(log.contains(part), "{log}");
    // The remedy.
    let rules = group.answer(2, "members rules");
    group.agree(2, &[0, 1]);
    let file = group.place.file("c.toml");
    let text = fs::read_to_string(&file).expect("the settings");
    fs::write(&file, rules + &text).expect("a file");
    let settings = fs::read_to_string(&file).expect("the settings");
    // Tables come after all keys of the file.
    let (keys, tables) = settings.split_once("\n[[lock]]").expect("a rule");
    let (lock, rest) = tables.split_once("group = ").expect("the settings");
    fs::write(&file, format!("{keys}\ngroup = {rest}\n[[lock]]{lock}")).expect("the settings");
    group.stop(2);
    group.start(2);
    group.complete(2);
    assert!(!group.answer(2, "status").contains(part));
    assert!(group.members(2)["rules"]["differs"].is_null());

    // All of them are killed: the rules are on their disks.
    (0..4).for_each(|node| group.kill(node));
    (0..4).for_each(|node| group.start(node));
    (0..4).for_each(|node| group.complete(node));
    assert!(group.get(1, "/v1/locks/slots").contains("\"permits\":2"));
    assert!(group.answer(1, "members").contains(&format!("rules {}", group.digest(0))));
}

/// From three machines to four to two: what changes for arranged locks is said beforehand, and all
/// of them are served all the while.
#[test]
fn members_are_arranged_anew_when_they_change() {
    let arranged = "[[lock]]\nnames = \"plane\"\nalgorithm = \"maekawa\"\nquorums = \"projective-plane\"\n\
                    [[lock]]\nnames = \"desk\"\nalgorithm = \"central\"\ncoordinator = \"a\"\n\
                    [[lock]]\nnames = \"sets\"\nalgorithm = \"maekawa\"\n\
                    quorums = \"a=a,b; b=b; c=b,c; d=b,d\"\n\
                    [[lock]]\nnames = \"tree\"\nalgorithm = \"raymond-tree\"\ntree = \"b=a, c=b\"\n";
    let locks = ["plane", "desk", "sets", "tree"];
    let mut group = Group::with_rules(arranged);
    let served = |group: &Group, node: usize, lock: &str| {
        let said = group.answer(node, &format!("who {lock} --json"));
        let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
        said["algorithm"].as_str().expect("a text").to_owned()
    };
    for lock in locks {
        for node in 0..3 {
            group.lock(node, lock);
        }
    }
    assert_eq!(served(&group, 1, "plane"), "maekawa, quorums projective-plane");
    assert_eq!(served(&group, 2, "desk"), "central, coordinator a");
    assert!(group.answer(0, "who tree").contains("served by raymond-tree, tree b=a, c=b\n"));
    let http = group.get(1, "/v1/locks/desk");
    assert!(http.contains("\"algorithm\":\"central, coordinator a\""), "{http}");
    let status = group.answer(0, "status");
    for part in [
        "arranged  locks `plane`: maekawa, quorums projective-plane\n",
        "arranged  without a, locks `desk`: the coordinator `a` is not there",
        "arranged  without b, locks `sets`: majority, because the quorums of `a` and `c`",
    ] {
        assert!(status.contains(part), "{part} is not in {status}");
    }
    let job = group.hold(1, "plane", "go");

    let add = format!("members add d {}", group.address(3));
    let said = group.answer(0, &format!("{add} --dry-run"));
    let part = "with the members a b c d, locks `plane`: majority, because";
    assert!(said.starts_with(part) && said.lines().count() == 1, "{said}");
    assert_eq!(group.members(0)["seats"].as_array().map(Vec::len), Some(3), "nothing was changed");
    group.start(3);
    until("it has found the group", || group.answer(3, "status").contains("members add d"));
    let said = group.answer(0, &add);
    assert!(said.starts_with(part) && said.contains("\nadded d to the group"), "{said}");
    (0..4).for_each(|node| group.complete(node));
    assert!(served(&group, 3, "plane").starts_with("majority, because"));
    assert!(group.answer(0, "status").contains("arranged  in this view, locks `plane`: majority"));
    assert!(!group.output(3, "run -n plane -- true").status.success(), "it is held");
    group.release(job, "go");
    for lock in locks {
        for node in 0..4 {
            group.lock(node, lock);
        }
    }

    let said = group.answer(2, "members remove b");
    assert!(said.contains("with the members a c d, locks `sets`: majority, because"), "{said}");
    let said = group.answer(2, "members remove a --dry-run --json");
    assert!(said.contains("the coordinator `a` is not there"), "{said}");
    let said = group.answer(2, "members remove a");
    assert!(said.contains("with the members c d, locks `desk`: the coordinator `a`"), "{said}");
    group.seated(2, 2);
    for lock in locks {
        for node in 2..4 {
            group.lock(node, lock);
        }
        assert_eq!(served(&group, 2, lock), served(&group, 3, lock));
    }
    assert!(served(&group, 2, "sets").starts_with("majority, because"));
    assert_eq!(served(&group, 2, "tree"), "raymond-tree, tree b=a, c=b");
}
