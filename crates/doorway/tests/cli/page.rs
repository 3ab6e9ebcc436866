//! Every command of docs/page.md works: it prints what is shown, or serves the page.

#![expect(clippy::unwrap_used, reason = "a test that cannot run its command fails")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::readme::{Node, directory, is_shown};

const PAGE: &str = include_str!("../../../../docs/page.md");

/// The commands, each with the lines that are shown below it.
fn commands() -> Vec<(&'static str, Vec<&'static str>)> {
    let blocks = PAGE.split("```console\n").skip(1).filter_map(|part| part.split("```").next());
    let parts = blocks.flat_map(|block| block.split("$ doorway ").skip(1));
    let command = |part: &'static str| {
        let mut lines = part.lines();
        (lines.next().unwrap_or_default(), lines.collect())
    };
    parts.map(command).collect()
}

/// A command that serves the page, killed at the end.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the command prints up to the address of the page, which is asked for.
fn serve(command: &mut Command) -> Vec<String> {
    // No browser is opened where there is no screen.
    command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
    let mut server = Server(child);
    let mut printed = Vec::new();
    for line in BufReader::new(server.0.stdout.take().expect("a pipe")).lines() {
        let line = line.expect("text");
        printed.push(line.clone());
        let Some(address) = line.strip_prefix("The page is at http://") else { continue };
        let (host, path) = address.split_once('/').expect("a path");
        let path = path.split('#').next().unwrap_or_default();
        let mut stream = TcpStream::connect(host).expect("the page is served");
        let request = format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("<title>"), "{answer}");
        return printed;
    }
    panic!("no address: {printed:#?}");
}

/// A line without what differs from run to run: the port and the token, and times.
fn constant_part(line: &str) -> &str {
    line.split("127.0.0.1:").next().unwrap_or(line)
}

#[test]
fn every_command_of_the_page_works_and_prints_what_is_shown() {
    let directory = directory("page");
    let node = Node::start("page");
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    for (kept, name) in [("n1", "a"), ("n2", "b"), ("n3", "c")] {
        let to = directory.join(format!("{name}.jsonl"));
        fs::copy(recordings.join(format!("{kept}.jsonl")), to).unwrap();
    }
    let doorway = |line: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_doorway"));
        // As a shell reads it: quotes keep `#` from being the begin of a comment.
        let words = line.split_whitespace().map(|word| word.trim_matches('\''));
        node.tell(&mut command).args(words).current_dir(&directory);
        command
    };
    // What a student hands in is a way to the violation.
    let solve = "check maekawa-slides-printed -n 4 --save handed-in.txt";
    assert_eq!(doorway(solve).output().unwrap().status.code(), Some(1));
    let all = commands();
    assert!(all.len() >= 13, "five people, threads and the live page: {}", all.len());
    for (line, shown) in all {
        let serves = line.starts_with("lab") || line.ends_with("--page");
        let printed = if serves {
            serve(&mut doorway(line))
        } else {
            let done = doorway(line).output().unwrap();
            let errors = String::from_utf8_lossy(&done.stderr);
            assert!(matches!(done.status.code(), Some(0 | 1)), "doorway {line}: {errors}");
            String::from_utf8(done.stdout).unwrap().lines().map(str::to_owned).collect()
        };
        let shown: Vec<_> = shown.into_iter().filter(|line| !line.starts_with("Press ")).collect();
        let [shown, told] = [shown, printed.iter().map(String::as_str).collect()]
            .map(|lines| lines.into_iter().map(constant_part).collect::<Vec<_>>());
        assert!(!shown.is_empty(), "the page shows what `doorway {line}` prints");
        assert!(is_shown(&shown, &told), "$ doorway {line}\n{shown:#?}\nprinted {told:#?}");
    }
}

#[test]
fn each_person_has_a_command_and_a_picture() {
    let (_, part) = PAGE.split_once("## Five people").expect("the people");
    let part = part.split("\n## ").next().unwrap_or(part);
    let people: Vec<_> = part.split("\n\n**").skip(1).collect();
    assert_eq!(people.len(), 5);
    for person in people {
        assert!(person.contains("$ doorway "), "{person}");
        assert!(person.contains("picture") || person.contains("!["), "{person}");
    }
    for picture in PAGE.split("](").skip(1).filter_map(|part| part.split(')').next()) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(picture);
        assert!(picture.starts_with('#') || path.exists(), "{picture}");
    }
}
