//! Locks of Terraform: the requests of its backend `http`, as it sends them.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

use data_encoding::BASE64;
use doorway_daemon::settings::Limits;
use serde_json::{Value, json};

use super::client::{Answer, ask, exchange, request};
use super::remote::{CI, RUNNER, Remote, TOKEN};
use crate::common::daemon::Daemon;
use crate::common::settings::settings;
use crate::common::until;
use crate::server::{Server, connect};

/// How many blocking tasks a runtime of tokio runs at a time.
const BLOCKING: usize = 512;

const ALICE: &str = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
const BOB: &str = "b0b00000-4e5f-6071-8293-a4b5c6d7e8f9";

/// A lock as Terraform sends it.
fn lock(id: &str, who: &str) -> Value {
    json!({
        "ID": id,
        "Operation": "OperationTypeApply",
        "Info": "",
        "Who": who,
        "Version": "1.11.4",
        "Created": "2026-11-17T15:49:57.123456789Z",
        "Path": "",
    })
}

fn alice() -> Value {
    lock(ALICE, "alice@build-7")
}

fn bob() -> Value {
    lock(BOB, "bob@laptop")
}

/// A lock as others are told of it: its path is the name of the lock.
fn told(mut lock: Value, name: &str) -> Value {
    lock["Path"] = name.into();
    lock
}

impl Server {
    fn terraform(&self, method: &str, name: &str, body: &Value) -> Answer {
        self.send(method, &format!("/v1/terraform/{name}"), Some(body))
    }
}

#[test]
fn a_state_is_locked_once_and_unlocked_by_its_id() {
    let server = Server::new();
    let locked = server.terraform("LOCK", "deploy%2Fprod", &alice()).expect(200);
    assert_eq!(locked, told(alice(), "deploy/prod"));
    let refused = server.terraform("LOCK", "deploy%2Fprod", &bob()).expect(423);
    assert_eq!(refused, told(alice(), "deploy/prod"), "it says who holds the lock");
    let report = server.get("/v1/locks/deploy%2Fprod").expect(200);
    let client = report["holders"][0]["client"].as_str().unwrap();
    assert!(client.contains(ALICE) && client.contains("alice@build-7"), "{report}");
    assert!(report["holders"][0]["expires_in_ms"].as_u64() > Some(86_000_000), "{report}");

    let refused = server.terraform("UNLOCK", "deploy%2Fprod", &bob()).expect(409);
    assert_eq!(refused, told(alice(), "deploy/prod"));
    server.terraform("UNLOCK", "deploy%2Fprod", &json!({ "ID": ALICE })).expect(200);
    assert_eq!(server.service.sessions(), 0);
    server.terraform("UNLOCK", "deploy%2Fprod", &alice()).problem(404, "gone", "is not held");
    server.terraform("LOCK", "deploy%2Fprod", &bob()).expect(200);
}

#[test]
fn a_lock_may_be_asked_for_again_with_the_same_id() {
    let server = Server::new();
    server.terraform("LOCK", "prod", &alice()).expect(200);
    let fence = server.get("/v1/locks/prod").expect(200)["holders"][0]["fence"].clone();
    for _ in 0..3 {
        server.terraform("LOCK", "prod", &alice()).expect(200);
        server.terraform("LOCK", "prod", &bob()).expect(423);
    }
    let report = server.get("/v1/locks/prod").expect(200);
    assert_eq!((&report["holders"][0]["fence"], server.service.sessions()), (&fence, 1));
    // A request that was refused leaves nothing behind: it may get the lock later.
    assert_eq!(server.service.status().waiting, 0);
    server.terraform("UNLOCK", "prod", &alice()).expect(200);
    server.terraform("LOCK", "prod", &bob()).expect(200);
}

#[test]
fn the_methods_may_be_post_and_delete() {
    let server = Server::new();
    server.terraform("POST", "prod", &alice()).expect(200);
    server.terraform("POST", "prod", &bob()).expect(423);
    server.terraform("DELETE", "prod", &bob()).expect(409);
    server.terraform("DELETE", "prod", &alice()).expect(200);
    let answer = server.terraform("PUT", "prod", &alice());
    answer.problem(405, "invalid", "method");
    assert!(answer.head.contains("allow: "), "{answer:?}");
    server.send("LOCK", "/v1/locks/prod/acquire", Some(&json!({}))).problem(405, "invalid", "");
    // Terraform sends this if its `address` is the one of the locks.
    server.get("/v1/terraform/prod").problem(405, "invalid", "method");
    server.send("DELETE", "/v1/terraform/prod", None).problem(415, "invalid", "JSON");
    assert_eq!(server.service.sessions(), 0);
}

#[test]
fn the_lock_excludes_all_other_clients() {
    let server = Server::new();
    let fence = server.acquire("prod", &json!({ "label": "nightly, a backup" }));
    let held = server.terraform("LOCK", "prod", &alice()).expect(423);
    assert_eq!((&held["ID"], &held["Who"]), (&json!(fence), &json!("nightly, a backup")));
    assert!(held["Info"].as_str().unwrap().contains("doorway who prod"), "{held}");
    assert_eq!(held.get("Created"), None, "Terraform does not read an empty time");
    server.terraform("UNLOCK", "prod", &json!({ "ID": fence })).expect(409);
    assert!(server.release("prod", &fence));
    server.terraform("LOCK", "prod", &alice()).expect(200);
    server.post("prod", "acquire", &json!({})).problem(409, "not-free", "`prod`");
    server.terraform("LOCK", "other", &bob()).expect(200);
    server.acquire("permits", &json!({ "permits": 2 }));
    server.terraform("LOCK", "permits", &bob()).problem(422, "not-served", "2 permits");
}

#[test]
fn malformed_requests_are_explained_and_change_nothing() {
    let server = Server::new();
    let send = |method: &str, headers: &[(&str, &str)], body: &str| {
        let request = request(method, "/v1/terraform/prod", headers, Some(body));
        exchange(server.connect(), &request)
    };
    for method in ["LOCK", "UNLOCK"] {
        send(method, &[], "{").problem(400, "invalid", "the body");
        send(method, &[], "garbage").problem(400, "invalid", "JSON object");
        send(method, &[], "[]").problem(400, "invalid", "JSON object");
        send(method, &[], "{}").problem(400, "invalid", "missing field `ID`");
        send(method, &[], r#"{"ID": 7}"#).problem(400, "invalid", "expected a string");
        send(method, &[], r#"{"ID": ""}"#).problem(400, "invalid", "1 to 64");
        send(method, &[], r#"{"ID": "a b"}"#).problem(400, "invalid", "spaces");
        send(method, &[("content-type", "")], "{}").problem(415, "invalid", "application/json");
        let long = format!(r#"{{"ID": "a", "Info": "{}"}}"#, "x".repeat(1 << 16));
        send(method, &[], &long).problem(413, "invalid", "65536");
    }
    send("LOCK", &[], "").problem(400, "invalid", "JSON object");
    server.terraform("LOCK", "%25k", &alice()).problem(400, "invalid", "must not begin with");
    assert_eq!(server.service.sessions(), 0);
    // Later versions may say more about a lock, and nothing but the ID is needed.
    send("LOCK", &[], r#"{"ID": "a", "Created": "today", "Why": [1]}"#).expect(200);
    let held = server.terraform("LOCK", "prod", &alice()).expect(423);
    assert_eq!((&held["ID"], held.get("Created")), (&json!("a"), None));
}

#[test]
fn texts_that_are_too_long_are_cut_and_the_id_is_not() {
    let server = Server::new();
    let id = "x".repeat(64);
    let mut long = lock(&id, &"w".repeat(300));
    long["Operation"] = "o".repeat(300).into();
    server.terraform("LOCK", "prod", &long).expect(200);
    let held = server.terraform("LOCK", "prod", &alice()).expect(423);
    assert_eq!((&held["ID"], &held["Created"]), (&json!(id), &alice()["Created"]));
    assert_eq!(held["Who"], "w".repeat(60));
    server.terraform("UNLOCK", "prod", &json!({ "ID": id })).expect(200);
}

#[test]
fn a_lock_that_is_never_unlocked_ends_after_its_time() {
    let mut settings = settings();
    settings.limits =
        Limits { terraform_ttl: Duration::from_millis(700), ..settings.limits.clone() };
    let server = Server::start(&settings);
    server.terraform("LOCK", "prod", &alice()).expect(200);
    server.until("the lock ends", |service| service.held() == 0);
    server.terraform("UNLOCK", "prod", &alice()).problem(404, "gone", "limits.terraform_ttl");
}

/// Neither a crash nor a stop ends the lock, and its holder is not forgotten. A step test of the
/// sessions shows that the limit of other leases does not end it either.
#[test]
fn a_lock_outlives_a_crash_and_a_stop_of_the_node() {
    let mut daemon = Daemon::alone("");
    let name = daemon.socket.clone();
    let send = |method: &str, body: &Value| {
        let stream = connect(name.trim_start_matches('@')).expect("somebody listens");
        ask(stream, method, "/v1/terraform/prod", &[], Some(body))
    };
    send("LOCK", &alice()).expect(200);
    assert_eq!(send("LOCK", &bob()).expect(423), told(alice(), "prod"));
    daemon.crash();
    daemon.ready();
    assert_eq!(send("LOCK", &bob()).expect(423), told(alice(), "prod"));
    send("UNLOCK", &bob()).expect(409);
    send("LOCK", &alice()).expect(200);
    daemon.stop();
    daemon.spawn();
    daemon.ready();
    assert_eq!(send("LOCK", &bob()).expect(423), told(alice(), "prod"));
    send("UNLOCK", &alice()).expect(200);
    until("the lock is free", || send("LOCK", &bob()).status == 200);
}

/// Before Terraform is told that it has the lock, the ledger is written to disk. That may take a
/// while, and the lock may be broken meanwhile.
#[test]
fn a_lock_that_is_broken_before_it_is_on_disk_is_refused() {
    let server = Server::new();
    // As many tasks as may wait for the disk do so until this is unlocked.
    let disk = Arc::new(Mutex::new(()));
    let busy = disk.lock().unwrap();
    for _ in 0..BLOCKING {
        let disk = Arc::clone(&disk);
        server.runtime.spawn_blocking(move || drop(disk.lock()));
    }
    std::thread::scope(|scope| {
        let locking = scope.spawn(|| server.terraform("LOCK", "prod", &alice()));
        server.until("the lock is held", |service| service.held() == 1);
        let fence = server.get("/v1/locks/prod").expect(200)["holders"][0]["fence"].clone();
        server.post("prod", "break", &json!({ "fence": fence })).expect(200);
        assert!(!locking.is_finished(), "the disk is busy");
        drop(busy);
        let refused = locking.join().unwrap().expect(423);
        assert_eq!((&refused["ID"], &refused["Path"]), (&json!("unknown"), &json!("prod")));
    });
    server.terraform("LOCK", "prod", &bob()).expect(200);
}

fn basic(user: &str, token: &str) -> String {
    format!("Basic {}", BASE64.encode(format!("{user}:{token}").as_bytes()))
}

impl Remote {
    fn terraform(&self, authorization: &str, method: &str, body: Option<&Value>) -> Answer {
        let headers = [("authorization", authorization), ("content-type", "application/json")];
        let headers = if body.is_some() { &headers[..1] } else { &headers[..] };
        self.ask(headers, (method, "/v1/terraform/deploy%2Fprod"), body)
    }
}

#[test]
fn the_password_of_basic_authentication_is_the_token() {
    let remote = Remote::start();
    for wrong in [
        basic("ci", TOKEN),
        basic("all", CI),
        basic("", CI),
        basic("client ci", CI),
        basic("ci", ""),
        basic("ci", &format!("{CI} ")),
        format!("Basic {CI}"),
        "Basic".to_owned(),
    ] {
        let refused = remote.terraform(&wrong, "LOCK", Some(&alice()));
        refused.problem(401, "unauthorized", "name of the client");
        // A browser that were told of Basic would ask for a password, and send it by itself later.
        assert!(refused.head.contains("www-authenticate: bearer"), "{refused:?}");
    }
    assert_eq!(remote.service.sessions(), 0);
    remote.terraform(&basic("ci", CI), "LOCK", Some(&alice())).expect(200);
    remote.terraform(&format!("Bearer {CI}"), "UNLOCK", Some(&alice())).expect(200);
    remote.ask(&[("authorization", &basic("all", TOKEN))], ("GET", "/v1/status"), None).expect(200);
}

#[test]
fn a_client_unlocks_what_it_has_locked_or_may_break() {
    let remote = Remote::start();
    let (all, ci, runner) = (basic("all", TOKEN), basic("ci", CI), basic("runner", RUNNER));
    let other = ("LOCK", "/v1/terraform/other");
    remote.ask(&[("authorization", &ci)], other, Some(&alice())).problem(403, "forbidden", "acq");
    remote.terraform(&all, "LOCK", Some(&alice())).expect(200);
    // The ID is not a secret: everyone who may inspect the lock is told.
    assert_eq!(remote.terraform(&ci, "LOCK", Some(&bob())).expect(423)["ID"], ALICE);
    assert_eq!(remote.terraform(&ci, "LOCK", Some(&alice())).expect(423)["ID"], ALICE);
    remote.terraform(&ci, "UNLOCK", Some(&alice())).problem(403, "forbidden", "may not break");
    for (method, status) in [("LOCK", 423), ("UNLOCK", 409)] {
        let hidden = remote.terraform(&runner, method, Some(&bob())).expect(status);
        assert_eq!((&hidden["ID"], &hidden["Who"]), (&json!("hidden"), &json!("")));
    }
    remote.terraform(&all, "UNLOCK", Some(&alice())).expect(200);

    // Without the right to inspect, a client still finds its own lock again.
    remote.terraform(&runner, "LOCK", Some(&bob())).expect(200);
    remote.terraform(&runner, "LOCK", Some(&bob())).expect(200);
    // This is `terraform force-unlock` of a colleague with the right to break.
    remote.terraform(&all, "UNLOCK", Some(&json!({ "ID": BOB }))).expect(200);
    remote.terraform(&runner, "UNLOCK", Some(&bob())).problem(404, "gone", "broken");

    // Some versions send no ID with `force-unlock`.
    remote.terraform(&ci, "LOCK", Some(&bob())).expect(200);
    remote.terraform(&ci, "UNLOCK", None).problem(403, "forbidden", "may not break");
    remote.terraform(&all, "UNLOCK", None).expect(200);
    remote.terraform(&all, "UNLOCK", None).problem(404, "gone", "is not held");
    assert_eq!(remote.service.sessions(), 0);
}

/// A store for a state: GET returns what was posted last. Returns its address.
fn store() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        let mut state = Vec::new();
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.expect("a connection"));
            let (mut head, mut line) = (Vec::new(), String::new());
            while stream.read_line(&mut line).is_ok_and(|read| read > 2) {
                head.push(std::mem::take(&mut line).to_ascii_lowercase());
            }
            let length = head.iter().find_map(|it| it.strip_prefix("content-length: "));
            let length = length.map_or(0, |length| length.trim().parse().expect("a length"));
            if head.first().is_some_and(|line| line.starts_with("post ")) {
                state = vec![0; length];
                stream.read_exact(&mut state).expect("a body");
            }
            let status = if state.is_empty() { "204 No Content" } else { "200 OK" };
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                state.len()
            );
            let _ = stream.get_mut().write_all(&[head.as_bytes(), &state].concat());
        }
    });
    format!("http://{address}/state")
}

fn terraform(place: &Path, (user, token): (&str, &str), words: &str) -> Output {
    let mut terraform = Command::new("terraform");
    terraform.args(words.split(' ')).current_dir(place).env_remove("TF_CLI_CONFIG_FILE");
    terraform.env("TF_HTTP_USERNAME", user).env("TF_HTTP_PASSWORD", token);
    // It asks nobody whether there is a newer version.
    terraform.env("CHECKPOINT_DISABLE", "1").output().expect("terraform runs")
}

/// `cargo xtask test` runs this one. The configuration needs no provider, so nothing is fetched.
#[test]
#[ignore = "it needs terraform"]
fn terraform_itself_locks_its_state_here() {
    let remote = Remote::start();
    let place = &remote.place;
    let locks = format!("https://{}/v1/terraform/deploy%2Fprod", remote.address);
    let ca = fs::read_to_string(place.join("ca.crt")).unwrap();
    let configuration = format!(
        r#"
terraform {{
  backend "http" {{
    address                   = "{}"
    lock_address              = "{locks}"
    unlock_address            = "{locks}"
    retry_max                 = 0
    client_ca_certificate_pem = <<PEM
{ca}PEM
  }}
}}
resource "terraform_data" "slow" {{
  provisioner "local-exec" {{
    command = "touch began; while ! test -e go; do sleep 0.1; done"
  }}
}}
"#,
        store()
    );
    fs::write(place.join("main.tf"), configuration).unwrap();
    let succeeds = |words: &str| {
        let output = terraform(place, ("ci", CI), words);
        assert!(output.status.success(), "{output:?}");
    };
    succeeds("init -no-color -input=false");
    std::thread::scope(|scope| {
        let apply = scope.spawn(|| succeeds("apply -no-color -auto-approve -lock-timeout=5s"));
        until("terraform is inside", || place.join("began").exists());
        let refused = terraform(place, ("ci", CI), "plan -no-color -input=false");
        let held = remote.terraform(&basic("ci", CI), "LOCK", Some(&alice())).expect(423);
        let told = String::from_utf8_lossy(&refused.stderr);
        let id = held["ID"].as_str().unwrap();
        assert!(!refused.status.success() && told.contains(id), "{told}\n{held}");
        assert_eq!(held["Operation"], "OperationTypeApply", "{held}");
        // This one waits for the other, and asks again and again with the same ID.
        let next = scope.spawn(|| succeeds("plan -no-color -input=false -lock-timeout=60s"));
        sleep(Duration::from_millis(500));
        fs::write(place.join("go"), "").unwrap();
        apply.join().unwrap();
        next.join().unwrap();
    });
    assert_eq!(remote.service.sessions(), 0);
    // A run that was killed leaves its lock behind.
    remote.terraform(&basic("ci", CI), "LOCK", Some(&alice())).expect(200);
    let force = format!("force-unlock -force {ALICE}");
    terraform(place, ("all", TOKEN), &force);
    assert_eq!(remote.service.sessions(), 0);
    let wrong = terraform(place, ("ci", TOKEN), "plan -no-color -input=false");
    let told = String::from_utf8_lossy(&wrong.stderr);
    assert!(told.contains("requires auth"), "{told}");
}
