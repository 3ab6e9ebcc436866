//! A fixed group of version 0.1.0 becomes a group of this version that agrees on its members, while
//! clients of both versions work.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use super::HOLD;
use super::group::{Group, Machine, Pace};
use crate::place::{DOORWAY, Process, line_of, until};

/// Names the program of version 0.1.0.
const OLD: &str = "DOORWAY_0_1_0";

/// What each client does inside: it writes its fence when it enters and when it leaves.
const INSIDE: &str =
    "echo begin $DOORWAY_FENCE >> entries; sleep 0.02; echo end $DOORWAY_FENCE >> entries";

/// A client that enters again and again, at one node.
struct Client {
    program: String,
    node: usize,
    entries: AtomicUsize,
}

/// `doorway` of a version with these words, at a node.
fn command(group: &Group, program: &str, node: usize, words: &str) -> Command {
    let mut command = Command::new(program);
    command.args(words.split_whitespace()).env("DOORWAY_SOCKET", group.socket(node));
    command.current_dir(&group.place.directory).stdin(Stdio::null());
    command
}

/// Check what the clients have written: every fence is higher than all before it, and no client was
/// inside when another one entered. Returns how many entered.
fn check(entries: &str) -> usize {
    let (mut last, mut left, mut entered) = (0, BTreeSet::new(), 0);
    for line in entries.lines() {
        let (what, fence) = line.split_once(' ').expect("a word and a fence");
        let fence: u64 = fence.parse().expect("a fence");
        if what == "begin" {
            assert!(fence > last, "the fence {fence} comes after {last}");
            (last, entered) = (fence, entered + 1);
        } else {
            // A client that lost its lock was ended inside, and never leaves.
            assert_eq!(fence, last, "it was inside when {last} entered");
            assert!(left.insert(fence), "it left twice");
        }
    }
    entered
}

#[test]
fn what_the_clients_wrote_is_checked() {
    assert_eq!(check("begin 1\nend 1\nbegin 3\nbegin 5\nend 5\n"), 3);
    for wrong in ["begin 2\nend 2\nbegin 1\n", "begin 1\nbegin 2\nend 1\n", "begin 1\nbegin 1\n"] {
        assert!(std::panic::catch_unwind(|| check(wrong)).is_err(), "{wrong}");
    }
}

/// What nodes and a client of version 0.1.0 have written.
const WRITTEN: &str = include_str!("../../golden/version_0_1_0.txt");

/// The fence of the locks that are held there.
const FENCE: &str = "3298534883329";

/// The last fence of the lock `free`.
const LAST: u64 = 3_298_534_883_330;

/// The records of one of the files, each with its offset, and the size of the file.
fn written(file: &str) -> (usize, Vec<(usize, Vec<u8>)>) {
    let number = |text: &str| text.parse::<usize>().expect("a number");
    let mut lines = WRITTEN.lines();
    let head = lines.find(|line| line.split(' ').next() == Some(file)).expect("the file");
    let byte = |at: &[u8]| {
        u8::from_str_radix(std::str::from_utf8(at).expect("ASCII"), 16).expect("two digits")
    };
    let record = |line: &str| {
        let (offset, bytes) = line.trim_start().split_once(' ').expect("an offset and bytes");
        (number(offset), bytes.as_bytes().chunks(2).map(byte).collect())
    };
    let records = lines.take_while(|line| line.starts_with(' ')).map(record).collect();
    (head.split_once(' ').map_or(0, |(_, size)| number(size)), records)
}

/// Give a node the files that a node of version 0.1.0 has left.
fn leave_files(group: &Group, node: usize) {
    let name = group.name(node);
    fs::create_dir_all(group.place.file(name)).expect("a directory");
    for file in ["epoch", "sessions"].map(|file| format!("{name}/{file}")) {
        let (size, records) = written(&file);
        let mut bytes = vec![0; size];
        for (offset, record) in records {
            bytes[offset..offset + record.len()].copy_from_slice(&record);
        }
        fs::write(group.place.file(&file), bytes).expect("a file");
    }
}

/// Enter the lock `free` at a node once and leave it, with the bytes of a client of version 0.1.0.
/// Returns the fence.
fn enter_as_old_client(group: &Group, node: usize) -> u64 {
    let mut node = group.connect(node);
    let (_, sent) = written("client");
    node.write_all(&sent[0].1).expect("a hello and a request");
    let mut frame = || {
        let mut length = [0; 4];
        node.read_exact(&mut length).expect("a frame");
        let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
        node.read_exact(&mut bytes).expect("a frame");
        bytes
    };
    let welcome = frame();
    assert_eq!(welcome[..2], [0, 1], "the node speaks version 1: {welcome:?}");
    let granted = frame();
    assert_eq!(granted[..2], [0, 1], "the first request is granted: {granted:?}");
    let (varint, mut fence) = (&granted[2..], 0);
    for (place, byte) in varint.iter().enumerate() {
        fence |= u64::from(byte & 0x7f) << (7 * place);
    }
    let mut release = vec![2, 2, 4];
    release.extend(b"free");
    release.extend(varint);
    let length = (release.len() as u32).to_le_bytes();
    node.write_all(&[&length, &release[..]].concat()).expect("a release");
    let mut released = [0; 7];
    node.read_exact(&mut released).expect("an answer");
    assert_eq!(released, [3, 0, 0, 0, 2, 2, 1], "the lock was held to its end");
    fence
}

/// Nodes go on with the files of version 0.1.0: what was held is held, and fences grow. They serve
/// a client of that version, as a fixed group and after the move.
#[test]
fn files_and_clients_of_version_0_1_0_are_served() {
    let mut group = Group::on(Machine::local(4), 3, Pace::PATIENT);
    let start = |group: &mut Group| {
        group.add_settings("[limits]\nttl = \"1d\"\n");
        (0..3).for_each(|node| group.start(node));
    };
    let check_held = |group: &Group| {
        for (lock, holder) in [("held/a", "a"), ("held/b", "b")] {
            let who = group.answer(2, &format!("who {lock} --json"));
            let who: serde_json::Value = serde_json::from_str(&who).expect("JSON");
            let [held] = who["holders"].as_array().expect("holders").as_slice() else {
                panic!("one client holds {lock}: {who}");
            };
            assert_eq!((&held["node"], &held["fence"]), (&holder.into(), &FENCE.into()), "{who}");
        }
    };
    for node in 0..3 {
        group.fix(node);
        leave_files(&group, node);
    }
    start(&mut group);
    let mut fences = vec![LAST];
    fences.extend([0, 1, 2].map(|node| enter_as_old_client(&group, node)));
    check_held(&group);

    for node in 0..3 {
        group.stop(node);
        group.agree(node, &[0, 1, 2]);
    }
    start(&mut group);
    group.answer(0, "members init --from-fixed");
    (0..3).for_each(|node| group.complete(node));
    check_held(&group);
    fences.extend([0, 1, 2].map(|node| enter_as_old_client(&group, node)));
    assert!(fences.is_sorted_by(|one, next| one < next), "{fences:?}");
}

#[test]
#[ignore = "needs the program of version 0.1.0, which DOORWAY_0_1_0 names"]
#[expect(clippy::too_many_lines, reason = "one story")]
fn a_fixed_group_of_version_0_1_0_is_upgraded_under_load() {
    let old = std::env::var(OLD).expect("DOORWAY_0_1_0 names the program of version 0.1.0");
    let knows = Command::new(&old).args(["members", "--help"]).output().expect("it runs");
    assert!(!knows.status.success(), "{old} is newer than 0.1.0");
    let mut group = Group::on(Machine::local(4), 3, Pace::PATIENT);
    for node in 0..3 {
        group.fix(node);
        group.start_program(node, &old);
    }
    // A command of an old client goes on while its node is killed and upgraded.
    let mut job = command(&group, &old, 0, "run held -- sh -c");
    let job = Process::spawn(job.arg(HOLD));
    let held = line_of(&group.place.file("fence"));

    let over = AtomicBool::new(false);
    let clients: Vec<Client> = [old.as_str(), DOORWAY]
        .into_iter()
        .flat_map(|program| (0..3).map(move |node| (program.to_owned(), node)))
        .map(|(program, node)| Client { program, node, entries: AtomicUsize::new(0) })
        .collect();
    // All clients have entered some times since they were counted.
    let advance = |before: Vec<usize>| {
        until("every client enters", || {
            let now = clients.iter().map(|client| client.entries.load(Ordering::Relaxed));
            now.zip(&before).all(|(now, before)| now >= before + 2)
        });
    };
    let count = || -> Vec<usize> {
        clients.iter().map(|client| client.entries.load(Ordering::Relaxed)).collect()
    };
    let commands: Vec<Command> = clients
        .iter()
        .map(|client| command(&group, &client.program, client.node, "run -w 60 x -- sh -c"))
        .collect();
    scope(|scope| {
        for (client, known) in clients.iter().zip(&commands) {
            let over = &over;
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let mut enter = Command::new(known.get_program());
                    enter.args(known.get_args()).arg(INSIDE).stdin(Stdio::null());
                    enter.stderr(Stdio::null());
                    enter.envs(known.get_envs().filter_map(|(key, value)| Some((key, value?))));
                    let directory = known.get_current_dir().expect("that of the test");
                    // While its node is down, it fails.
                    if enter.current_dir(directory).status().is_ok_and(|it| it.success()) {
                        client.entries.fetch_add(1, Ordering::Relaxed);
                    } else {
                        sleep(Duration::from_millis(50));
                    }
                }
            });
        }
        // So that a failure of this thread ends the others.
        let ends = Ends(&over);
        advance(count());
        for node in 0..3 {
            // A graceful stop of 0.1.0 takes locks from clients that are inside. A crash does not.
            group.kill(node);
            group.start(node);
            advance(count());
        }
        let who = group.answer(1, "who held --json");
        assert!(who.contains(&format!("\"fence\":\"{held}\"")), "the same grant: {who}");

        for node in 0..3 {
            group.stop(node);
            group.agree(node, &[0, 1, 2]);
            group.start(node);
        }
        group.answer(0, "members init --from-fixed");
        (0..3).for_each(|node| group.complete(node));
        let who = group.answer(2, "who held --json");
        assert!(who.contains(&format!("\"fence\":\"{held}\"")), "the same grant: {who}");
        advance(count());
        drop(ends);
    });
    fs::write(group.place.file("go"), "").expect("a file");
    assert_eq!(job.end().code(), Some(3), "the job has kept its lock");
    let entries = fs::read_to_string(group.place.file("entries")).expect("a file");
    println!("{} entries, and no two at a time", check(&entries));
}

/// Tells the clients to stop when it is dropped.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
