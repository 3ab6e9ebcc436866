//! `doorway lab`, and `--page` of other commands: the page is served and its address printed.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use std::{env, fs};

use serde_json::Value;

use crate::{answer, doorway, failing, file, refusal, temporary, text_of};

/// A command that serves the page.
struct LabServer {
    child: Child,
    port: u16,
    token: String,
    /// What the page shows first, if the address names it.
    place: String,
}

impl LabServer {
    fn start(line: &str) -> Self {
        let mut command = doorway(line);
        // No browser is opened where there is no screen.
        command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it runs");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let address = lines.find_map(|line| {
            let line = line.expect("the answer is text");
            line.strip_prefix("The page is at http://127.0.0.1:").map(str::to_owned)
        });
        let address = address.expect("the address is printed");
        let (port, rest) = address.split_once("/#t=").expect("the token is in the fragment");
        let (token, place) = rest.split_once('&').unwrap_or((rest, ""));
        let (token, place) = (token.to_owned(), place.to_owned());
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, port: port.parse().expect("a port"), token, place }
    }

    /// The answer to a request for a path.
    fn get(&self, path: &str) -> String {
        self.ask("GET", path, "")
    }

    fn post(&self, path: &str, body: &str) -> String {
        self.ask("POST", path, body)
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> String {
        self.ask_with(method, path, &format!("x-doorway-token: {}", self.token), body)
    }

    /// The answer to a request with this header.
    fn ask_with(&self, method: &str, path: &str, header: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the page is there");
        let (port, length) = (self.port, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n{header}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\
             connection: close\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).expect("the server reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("the server answers");
        answer
    }

    /// End the command as a person does, by Ctrl-C.
    fn stop(mut self) -> ExitStatus {
        let pid = self.child.id().to_string();
        Command::new("kill").args(["-INT", &pid]).status().expect("a signal is sent");
        self.child.wait().expect("it ends")
    }
}

/// A test that fails leaves no server behind.
impl Drop for LabServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that is free now.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it has an address").port()
}

#[test]
fn the_page_and_its_stories_are_served_until_ctrl_c() {
    let page = LabServer::start("lab --no-open");
    assert!(page.get("/").contains("<title>Doorway lab</title>"));
    assert!(page.get("/api/stories").contains("ricart-agrawala/concurrent"));
    assert!(page.get("/api/first").ends_with("{\"shelf\":true}"));
    assert!(page.stop().success());
}

/// Other users can read the arguments of programs, so the token is not among them.
#[test]
fn the_browser_is_started_with_a_ticket_instead_of_the_token() {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("opener");
    fs::create_dir_all(&place).expect("a directory");
    let (starter, opened) = (place.join("xdg-open"), place.join("opened"));
    let _ = fs::remove_file(&opened);
    let script = format!("#!/bin/sh\necho \"$@\" > {0}.new\nmv {0}.new {0}\n", opened.display());
    fs::write(&starter, script).expect("a file");
    fs::set_permissions(&starter, fs::Permissions::from_mode(0o755)).expect("a program");
    let path = format!("{}:{}", place.display(), env::var("PATH").expect("a path"));
    let mut command = doorway("lab");
    command.env("DISPLAY", ":77").env("PATH", path);
    let page = LabServer::spawn(command);
    let address = loop {
        match fs::read_to_string(&opened) {
            Ok(address) => break address,
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    assert!(!address.contains(&page.token), "{address}");
    let (origin, ticket) = address.trim_end().split_once("/#k=").expect("a ticket");
    assert_eq!(origin, format!("http://127.0.0.1:{}", page.port));
    let exchanged = page.ask_with("POST", "/api/token", &format!("x-doorway-ticket: {ticket}"), "");
    assert!(exchanged.contains(&page.token), "{exchanged}");
    let again = page.ask_with("POST", "/api/token", &format!("x-doorway-ticket: {ticket}"), "");
    assert!(again.starts_with("HTTP/1.1 401 "), "{again}");
}

/// The rows of the page, and those of the command line that the page shows beside them.
#[test]
fn the_page_compares_as_the_command_line_that_it_shows() {
    let page = LabServer::start("lab --no-open");
    let asked = r#"{"algorithms":["central","maekawa"],"sweep":"n","points":[3,7],"seed":5}"#;
    let told = page.post("/api/compare", asked);
    let (_, body) = told.split_once("\r\n\r\n").expect("a body");
    let lines: Vec<Value> = body
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect();
    let command = lines[0]["command"].as_str().expect("a command line");
    let rows: Vec<&Value> =
        lines.iter().map(|line| &line["row"]).filter(|it| it.is_object()).collect();
    assert_eq!(rows.len(), 4, "two algorithms at two sizes");
    let file = temporary("page-compare.csv");
    let line = command.strip_prefix("doorway ").expect("a command of Doorway");
    answer(&format!("{line} --csv {file}"));
    let csv = text_of(&file);
    let mut table = csv.lines().map(|row| row.split(',').collect::<Vec<_>>());
    let head = table.next().expect("a head");
    let rows_of_csv: Vec<_> = table.collect();
    assert_eq!(rows_of_csv.len(), rows.len(), "{csv}");
    let mut compared = 0;
    for (row, fields) in rows.iter().zip(&rows_of_csv) {
        for (name, field) in head.iter().zip(fields) {
            let Some(value) = row.get(*name).filter(|value| !value.is_null()) else { continue };
            match (value.as_f64(), field.parse::<f64>()) {
                // The reader of JSON may be wrong in the last digit.
                (Some(value), Ok(field)) => {
                    let apart = (value - field).abs();
                    assert!(apart <= 1e-12 * field.abs(), "{name} of {row}: {field}");
                }
                _ => assert_eq!(value.as_str(), Some(*field), "{name} of {row}"),
            }
            compared += 1;
        }
    }
    assert!(compared >= 4 * 5, "{compared} figures: {csv}");
    let page_csv = lines.iter().find_map(|line| line["csv"].as_str()).expect("a table");
    assert_eq!(page_csv, csv, "the file that the page saves");
}

#[test]
fn a_script_and_a_counterexample_are_opened() {
    let script = file("lab-story.txt", "run le-lann n=2\n\nacquire 2\ndeliver 1 2\n");
    let page = LabServer::start(&format!("lab {script} --no-open"));
    assert!(page.get("/api/first").contains("\"words\":\"a2d1-2\""));
    assert!(page.stop().success());
    let port = free_port();
    let page = LabServer::start(&format!(
        "check maekawa-sequential-self-first -n 2 --page --no-open --port {port}"
    ));
    assert_eq!(page.port, port, "as it was asked for");
    let told = page.get("/api/first");
    assert!(told.contains("counterexample of maekawa-sequential-self-first"), "{told}");
    assert!(told.contains("nothing can happen any more"), "{told}");
    assert_eq!(page.stop().code(), Some(1), "the violation is still a failure");
}

#[test]
fn a_link_of_the_page_is_opened_by_any_server() {
    let place = "/lab/ricart-agrawala+n=3/a2d2-3?at=2&w=9c0f12aa";
    for link in [
        format!("#{place}"),
        format!("http://127.0.0.1:41207/#{place}"),
        format!("http://127.0.0.1:41207/#t=0123456789abcdef&{place}"),
    ] {
        let mut command = doorway("lab --no-open");
        command.arg(&link);
        let page = LabServer::spawn(command);
        assert_eq!(page.place, place, "{link}");
        assert!(page.get("/api/first").ends_with("{\"shelf\":true}"));
    }
    // What cannot stand in an address is escaped: a browser is started with it.
    let mut command = doorway("lab --no-open");
    command.arg("#/lab/lamport+n=3/a1\u{202e} \"&x?at=1");
    assert_eq!(LabServer::spawn(command).place, "/lab/lamport+n=3/a1%E2%80%AE%20%22&x?at=1");
    for (line, why) in [
        ("lab #/nonsense", "not a link to a moment"),
        ("lab http://127.0.0.1:7093/", "not a link to a moment"),
        ("lab #/recorded/1?at=3", "only the command that made it has"),
    ] {
        assert!(refusal(line).contains(why), "{line}");
    }
}

/// Without `--port`, two commands at once have two ports, and one of them may be the usual one.
#[test]
fn a_port_that_is_taken_is_no_obstacle_unless_it_was_asked_for() {
    let [one, other] = [(); 2].map(|()| LabServer::start("lab --no-open"));
    assert_ne!(one.port, other.port);
    let (_, why) = failing(&format!("lab --no-open --port {}", one.port), 1);
    assert!(why.contains("cannot listen on port"), "{why}");
}

#[test]
fn a_counterexample_between_threads_is_opened_at_its_violation() {
    let port = free_port();
    let page = LabServer::start(&format!(
        "threads check peterson --drop-fence b --page --no-open --port {port}"
    ));
    assert_eq!(page.port, port, "as it was asked for");
    assert!(page.place.starts_with("/threads?name=peterson&n=2&buffers=1&drop=b&steps=p"));
    let steps = page.place.split("steps=").nth(1).expect("steps");
    let walk =
        format!(r#"{{"name":"peterson","n":2,"buffers":true,"dropped":"b","steps":"{steps}"}}"#);
    let told = page.post("/api/threads/walk", &walk);
    let last = told.rsplit("\"right\":").next().expect("a last moment");
    assert!(last.starts_with("false"), "two are inside at the end: {told}");
    assert_eq!(page.stop().code(), Some(1), "the violation is still a failure");
    let page = LabServer::start("threads check increment-undo --page --no-open");
    assert!(page.place.contains("&round="), "the loop is marked: {}", page.place);
    drop(page);
    let holds = doorway("threads check peterson --page").output().expect("it runs");
    assert!(holds.status.success());
    let text = String::from_utf8(holds.stdout).expect("text");
    assert!(text.ends_with("Nothing is violated, so there is no schedule to open.\n"), "{text}");
    assert!(refusal("threads check peterson --page --json").contains("--page"));
}

#[test]
fn a_recording_of_real_nodes_is_opened() {
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings");
    let files = ["n1", "n2", "n3"].map(|node| format!("{kept}/{node}.jsonl")).join(" ");
    let port = free_port();
    let page = LabServer::start(&format!(
        "diagram --recorded {files} --lock orders --page --no-open --port {port}"
    ));
    assert_eq!(page.port, port, "as it was asked for");
    assert_eq!(page.place, "/first");
    let told = page.get("/api/first");
    assert!(told.contains("\"names\":[\"n1\",\"n2\",\"n3\"]"), "{told}");
    assert!(told.contains("lock orders of group test"), "{told}");
    assert!(page.stop().success());
}

#[test]
fn what_cannot_be_opened_is_refused_in_one_line() {
    let script = file("lab-wrong.txt", "run le-lann n=2\n\nacquire 7\n");
    assert!(refusal(&format!("lab {script}")).contains("there is no node 7"));
    assert!(refusal("lab --port 70000").contains("--port"));
    assert!(refusal("check --all --page").contains("--page"));
    assert!(refusal("check lamport --page --json").contains("--page"));
    assert!(refusal("diagram lamport --page").contains("--page"));
    for line in ["check lamport", "threads check peterson", "diagram --recorded x"] {
        let answer = refusal(&format!("{line} --no-open"));
        assert!(answer.contains("--page"), "{line}: {answer}");
    }
    assert!(refusal("diagram lamport --no-open").contains("--no-open"));
}
