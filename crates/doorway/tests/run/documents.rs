//! What docs/cron.md and docs/terraform.md show is what happens.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::members::group::Group;
use crate::place::{DOORWAY, Place, until};

/// The blocks of this kind in a page.
fn blocks(page: &str, kind: &str) -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let page = fs::read_to_string(page).expect("the page");
    let begin = format!("```{kind}\n");
    let parts = page.split(&begin).skip(1);
    parts.map(|part| part.split("```").next().expect("an end").to_owned()).collect()
}

/// A text as it is in every run: numbers become 0, and the machine that ran a command is `HOST`.
fn same(text: &str) -> String {
    let mut clean = String::new();
    for letter in text.chars() {
        if !letter.is_ascii_digit() {
            clean.push(letter);
        } else if !clean.ends_with('0') {
            clean.push('0');
        }
    }
    let clean = clean.replace(" (uid 0)", "").replace("for 0.0 s", "for 0 s");
    let lines = clean.lines().map(|line| match line.split_once("(pid 0) on ") {
        Some((who, rest)) => {
            let rest = rest.split_once(' ').map_or("", |(_, rest)| rest);
            format!("{who}(pid 0) on HOST {rest}").trim_end().to_owned()
        }
        None => line.trim_end().to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Three hosts with the programs of the page.
fn hosts(programs: &[&str]) -> Group {
    let group = Group::fixed();
    (0..3).for_each(|node| connected(&group, node));
    for program in programs {
        let path = group.place.file(program);
        fs::write(&path, format!("#!/bin/sh\necho {program} >> runs\n")).expect("a program");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a program");
    }
    group
}

/// Wait until a node is connected to the two others.
fn connected(group: &Group, node: usize) {
    let status = || group.answer(node, "status --json");
    until("the nodes are connected", || status().contains("\"away\":[]"));
}

/// Run a line of a page at one of the hosts. Returns what it prints.
fn run(group: &Group, node: usize, line: &str) -> String {
    // Windows of a month, so that none of them ends meanwhile.
    let line = line.replace("--once-per 1h", "--once-per 31d");
    let line = line.replace("--once-per 1d", "--once-per 31d");
    let line = line.replace("/usr/bin/", "").replace("/usr/local/bin/", "./");
    let bin: PathBuf = Path::new(DOORWAY).parent().expect("a directory").to_owned();
    let mut shell = Command::new("sh");
    let path = std::env::var("PATH").unwrap_or_default();
    shell.args(["-c", &line]).env("PATH", format!("{}:{path}", bin.display()));
    shell.env("DOORWAY_SOCKET", group.socket(node)).current_dir(&group.place.directory);
    let done = shell.output().expect("it runs");
    let said = [done.stdout, done.stderr].concat();
    let said = String::from_utf8(said).expect("text");
    assert!(done.status.success(), "{line}: {said}");
    said
}

fn runs(group: &Group) -> String {
    fs::read_to_string(group.place.file("runs")).unwrap_or_default()
}

/// The commands of a block for a console, each with what it prints.
fn commands(block: &str) -> Vec<(String, String)> {
    let parts = block.split("$ ").skip(1);
    let parts = parts.map(|part| part.split_once('\n').unwrap_or((part, "")));
    parts.map(|(command, said)| (command.to_owned(), said.replace("1h", "31d"))).collect()
}

#[test]
fn the_page_about_jobs_shows_what_happens() {
    let group = hosts(&["backup.sh"]);
    let consoles = blocks("cron.md", "console");
    let all: Vec<_> = consoles.iter().flat_map(|block| commands(block)).collect();
    assert_eq!(all.len(), 4);
    for (node, (command, said)) in [0, 1, 2, 1].into_iter().zip(&all) {
        assert_eq!(same(&run(&group, node, command)), same(said), "{command}");
    }
    assert_eq!(runs(&group), "backup.sh\n", "one of the hosts has run it");
    // The command that the page shows last lets the job run again.
    let shown = run(&group, 2, &all[3].0);
    let (_, again) = shown.split_once("to let it run again: ").unwrap();
    run(&group, 0, again);
    run(&group, 2, &all[0].0);
    assert_eq!(runs(&group), "backup.sh\nbackup.sh\n");
}

#[test]
fn the_crontab_and_the_units_of_the_page_run_the_job_once() {
    let group = hosts(&["backup.sh", "report.sh"]);
    let crontab = blocks("cron.md", "text").remove(0);
    let crontab: Vec<&str> = crontab.lines().map(|line| line.split_once("  ").unwrap().1).collect();
    assert_eq!(crontab.len(), 2);
    for node in 0..3 {
        for line in &crontab {
            assert_eq!(run(&group, node, line), "", "no mail");
        }
    }
    assert_eq!(runs(&group), "backup.sh\nreport.sh\n");

    let group = hosts(&["backup.sh"]);
    let [service, timer] = blocks("cron.md", "ini").try_into().unwrap();
    let start = service.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    (0..3).for_each(|node| assert_eq!(run(&group, node, start), ""));
    assert_eq!(runs(&group), "backup.sh\n");
    // Where systemd is installed, it reads both.
    for (name, unit) in [("backup.service", service), ("backup.timer", timer)] {
        let unit = unit.replace("/usr/bin/doorway", "/bin/true");
        fs::write(group.place.file(name), unit).unwrap();
    }
    let mut verify = Command::new("systemd-analyze");
    let verify = verify.args(["verify", "--man=no", "./backup.timer"]);
    if let Ok(done) = verify.current_dir(&group.place.directory).output() {
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(!said.contains("backup."), "{said}");
    }
}

#[test]
fn the_rule_of_the_page_about_jobs_is_one() {
    let rule = blocks("cron.md", "toml").remove(0);
    let group = Group::fixed_with(&rule);
    let who = group.answer(0, "who backup --json");
    assert!(who.contains("majority"), "{who}");
}

/// A request with the method `LOCK`, as Terraform sends it.
fn lock_by_terraform(place: &Place, body: &str) {
    let name = place.socket();
    let name = name.strip_prefix('@').expect("an abstract socket");
    let address = SocketAddr::from_abstract_name(name).expect("a name");
    let mut stream = UnixStream::connect_addr(&address).expect("a node that listens");
    let head = format!(
        "LOCK /v1/terraform/deploy%2Fprod HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("a request");
    let mut said = String::new();
    stream.read_to_string(&mut said).expect("a response");
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
}

#[test]
fn the_page_about_terraform_shows_settings_and_who_holds_the_lock() {
    let [console] = blocks("terraform.md", "console").try_into().unwrap();
    let [(command, said)] = commands(&console).try_into().unwrap();
    let held = said.lines().find_map(|line| line.strip_prefix("held by  terraform ")).unwrap();
    let fields: Vec<&str> = held.split(", ").collect();
    let names = ["ID", "Created", "Version", "Who", "Operation"];
    assert_eq!(fields.len(), names.len(), "{held}");
    let fields = names.iter().zip(fields).map(|(name, field)| ((*name).to_owned(), field.into()));
    let body: serde_json::Map<_, _> = fields.collect();

    let settings = blocks("terraform.md", "toml").concat();
    let place = Place::empty();
    fs::write(place.file("ci.token"), "the-token-of-the-client-called-ci").unwrap();
    let node = place.serve_with_tls(&settings.replace("0.0.0.0:7003", "127.0.0.1:0"));
    lock_by_terraform(&place, &serde_json::Value::Object(body).to_string());
    let seen = place.answer(command.strip_prefix("doorway ").unwrap());
    assert!(seen.contains(held), "{seen}");
    assert_eq!(same(&seen), same(&said));
    drop(node);
}
