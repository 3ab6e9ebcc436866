//! `doorway lab`, and `--page` of other commands: the page is served and its address printed.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::{doorway, file, refusal};

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
        command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().expect("it runs");
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
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the page is there");
        let (port, token, length) = (self.port, &self.token, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nx-doorway-token: {token}\r\n\
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
