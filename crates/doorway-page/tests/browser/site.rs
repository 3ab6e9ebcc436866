//! Who is let in, without a browser: plain requests over a socket.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use doorway_page::guard::Token;
use doorway_page::server::First;

use crate::skip::skip;
use crate::{serve, serve_with_ticket};

/// The status and the text of an answer.
fn ask(port: u16, head: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
    let length = body.len();
    let request = format!("{head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).expect("the server reads");
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    let status = answer.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or(0);
    (status, answer)
}

#[test]
fn wrong_token_host_site_and_type_are_refused() {
    let token = Token::random().unwrap();
    let (address, _runtime) = serve(0, &token, First::Shelf);
    let port: u16 = address.split([':', '/']).nth(4).unwrap().parse().unwrap();
    let host = format!("host: 127.0.0.1:{port}");
    let right = format!("x-doorway-token: {}", token.text());
    let get = |lines: &str| ask(port, &format!("GET /api/stories HTTP/1.1\r\n{lines}"), "").0;
    assert_eq!(get(&format!("{host}\r\n{right}")), 200);
    assert_eq!(get(&host), 401, "no token");
    assert_eq!(get(&format!("{host}\r\nx-doorway-token: 0123")), 401);
    assert_eq!(get(&format!("host: evil.example:{port}\r\n{right}")), 421);
    assert_eq!(get(&format!("host: 127.0.0.1\r\n{right}")), 421, "without the port");
    assert_eq!(get(&format!("host: localhost:{port}\r\n{right}")), 200);
    for site in ["cross-site", "same-site", "nonsense"] {
        assert_eq!(get(&format!("{host}\r\n{right}\r\nsec-fetch-site: {site}")), 403);
    }
    assert_eq!(get(&format!("{host}\r\n{right}\r\nsec-fetch-site: same-origin")), 200);
    let send = |kind: &str, body: &str| {
        let head = format!("POST /api/play HTTP/1.1\r\n{host}\r\n{right}\r\ncontent-type: {kind}");
        ask(port, &head, body)
    };
    let play = r#"{"run":"ricart-agrawala n=3","steps":"a1"}"#;
    let (status, told) = send("application/json", play);
    assert_eq!(status, 200, "{told}");
    for header in ["content-security-policy: default-src 'none'", "nosniff", "no-referrer"] {
        assert!(told.contains(header), "{header}");
    }
    assert_eq!(send("text/plain", play).0, 415);
    assert_eq!(send("application/json", "{").0, 400);
    assert_eq!(send("application/json", "{}").0, 422);
    assert_eq!(send("application/json", &format!("\"{}\"", "x".repeat(2 << 20))).0, 413);
    let many = format!(r#"{{"run":"ricart-agrawala n=3","steps":"{}"}}"#, "a1".repeat(3000));
    let (status, told) = send("application/json", &many);
    assert_eq!(status, 400);
    assert!(told.contains("at most 2000 steps"), "{told}");
    let page = |path: &str| ask(port, &format!("GET {path} HTTP/1.1\r\n{host}"), "");
    assert_eq!(page("/").0, 200, "the files need no token");
    assert_eq!(page("/picture.css").0, 200);
    assert_eq!(page("/js/nothing.js").0, 404);
    assert_eq!(page("/..%2fCargo.toml").0, 404);
    assert_eq!(page("/api/nothing").0, 401);
}

#[test]
fn a_ticket_is_exchanged_for_the_token_once() {
    let token = Token::random().unwrap();
    let ([printed, opened], _runtime) = serve_with_ticket(0, &token, First::Shelf);
    let port: u16 = printed.split([':', '/']).nth(4).unwrap().parse().unwrap();
    assert!(printed.ends_with(&format!("/#t={}", token.text())), "{printed}");
    let (_, ticket) = opened.split_once("/#k=").expect("a ticket");
    assert!(!opened.contains(token.text()), "{opened}");
    let host = format!("host: 127.0.0.1:{port}");
    let exchange = |method: &str, lines: &str| {
        ask(port, &format!("{method} /api/token HTTP/1.1\r\n{host}\r\n{lines}"), "")
    };
    let ticket = format!("x-doorway-ticket: {ticket}");
    assert_eq!(exchange("POST", "x-doorway-ticket: 0123").0, 401, "another word");
    assert_eq!(exchange("POST", &format!("x-doorway-token: {}", token.text())).0, 401);
    assert_eq!(exchange("GET", &ticket).0, 405, "an address alone exchanges nothing");
    assert_eq!(exchange("POST", &format!("{ticket}\r\nsec-fetch-site: cross-site")).0, 403);
    // The ticket is not the token.
    let head = format!("GET /api/stories HTTP/1.1\r\n{host}\r\n");
    let as_token = ticket.replace("x-doorway-ticket", "x-doorway-token");
    assert_eq!(ask(port, &format!("{head}{as_token}"), "").0, 401);
    let (status, told) = exchange("POST", &ticket);
    assert_eq!(status, 200, "{told}");
    assert!(told.ends_with(&format!("{{\"token\":\"{}\"}}", token.text())), "{told}");
    let (status, told) = exchange("POST", &ticket);
    assert!(status == 401 && told.contains("it was used before"), "{told}");
}

#[test]
fn a_page_with_the_token_gets_a_new_ticket() {
    let token = Token::random().unwrap();
    let (address, _runtime) = serve(0, &token, First::Shelf);
    let port: u16 = address.split([':', '/']).nth(4).unwrap().parse().unwrap();
    let call = |method: &str, path: &str, line: &str| {
        let json = "content-type: application/json";
        let head = format!("{method} /api/{path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n{json}");
        ask(port, &format!("{head}\r\n{line}"), "{}")
    };
    let known = format!("x-doorway-token: {}", token.text());
    assert_eq!(call("POST", "ticket", "x-doorway-token: 0123").0, 401);
    assert_eq!(call("GET", "ticket", &known).0, 405);
    let ticket = || {
        let (status, told) = call("POST", "ticket", &known);
        assert_eq!(status, 200, "{told}");
        told.split("\"ticket\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
    };
    let tickets: Vec<String> = (0..5).map(|_| ticket()).collect();
    let exchange = |ticket: &str| call("POST", "token", &format!("x-doorway-ticket: {ticket}")).0;
    assert_eq!(exchange(&tickets[0]), 401, "the oldest is forgotten");
    assert_eq!(exchange(&tickets[4]), 200);
    assert_eq!(exchange(&tickets[4]), 401, "each is good for once");
    assert_eq!(exchange(&tickets[1]), 200);
}

/// Another user of the machine, who has no token, takes all the places.
#[test]
fn connections_that_ask_for_nothing_leave_their_places() {
    let token = Token::random().unwrap();
    let (address, _runtime) = serve(0, &token, First::Shelf);
    let port: u16 = address.split([':', '/']).nth(4).unwrap().parse().unwrap();
    let connect = || TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
    let host = format!("host: 127.0.0.1:{port}");
    let silent: Vec<TcpStream> = (0..60).map(|_| connect()).collect();
    // Some ask for a file, and for what they may not have, and keep their connection.
    let asking = ["/", "/api/stories", "/api/token", "/api/first"].map(|path| {
        let mut stream = connect();
        write!(stream, "GET {path} HTTP/1.1\r\n{host}\r\n\r\n").expect("the server reads");
        stream
    });
    let mut page = connect();
    // Half of the time for which a page may keep an idle connection.
    page.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let right = format!("x-doorway-token: {}", token.text());
    write!(page, "GET /api/stories HTTP/1.1\r\n{host}\r\n{right}\r\n\r\n").unwrap();
    let mut answer = [0; 12];
    page.read_exact(&mut answer).expect("the page gets a place");
    assert_eq!(&answer, b"HTTP/1.1 200");
    drop((silent, asking));
}

/// A process of another user who has read the arguments of the browser, where this test may start
/// one.
#[test]
fn a_ticket_is_worth_nothing_to_another_user() {
    let token = Token::random().unwrap();
    let ([_, opened], _runtime) = serve_with_ticket(0, &token, First::Shelf);
    let (origin, ticket) = opened.split_once("/#k=").expect("a ticket");
    let (host, port) = origin["http://".len()..].split_once(':').unwrap();
    let lines = [
        "POST /api/token HTTP/1.1".to_owned(),
        format!("host: {host}:{port}"),
        format!("x-doorway-ticket: {ticket}"),
        "content-length: 0".to_owned(),
        "connection: close".to_owned(),
    ];
    let request = lines.join("\\r\\n");
    let script =
        format!("exec 3<>/dev/tcp/{host}/{port}; printf '{request}\\r\\n\\r\\n' >&3; cat <&3");
    let told = |command: &mut Command| {
        let output = command.args(["bash", "-c", &script]).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let stranger = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    match told(Command::new("setpriv").args(stranger)) {
        Ok(answer) if !answer.is_empty() => {
            assert!(answer.contains("does not run as the user of the command"), "{answer}");
        }
        _ => skip("another user: this needs root and setpriv"),
    }
    // The browser of the user of the command still gets in.
    let answer = told(&mut Command::new("env")).unwrap();
    assert!(answer.contains(token.text()), "{answer}");
}

#[test]
fn a_forgotten_story_and_a_third_job_are_told_so() {
    let token = Token::random().unwrap();
    let (address, _runtime) = serve(0, &token, First::Shelf);
    let port: u16 = address.split([':', '/']).nth(4).unwrap().parse().unwrap();
    let head = |call: &str| {
        format!(
            "POST /api/{call} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nx-doorway-token: {}\r\n\
             content-type: application/json",
            token.text()
        )
    };
    let (status, told) = ask(port, &head("step"), r#"{"key":"0000","steps":"a1"}"#);
    assert_eq!(status, 410, "{told}");
    let (_, told) = ask(port, &head("play"), r#"{"run":"lamport n=5"}"#);
    let key = told.split("\"key\":\"").nth(1).unwrap().split('"').next().unwrap();
    // Two checks that take long; closing them stops their work.
    let check = format!(r#"{{"key":"{key}","limit":20000000}}"#);
    let begin = || {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let length = check.len();
        let text = format!("{}\r\ncontent-length: {length}\r\n\r\n{check}", head("check"));
        stream.write_all(text.as_bytes()).unwrap();
        let mut first = [0; 200];
        let read = stream.read(&mut first).unwrap();
        assert!(String::from_utf8_lossy(&first[..read]).contains("200 OK"));
        stream
    };
    let running = (begin(), begin());
    let (status, told) = ask(port, &head("check"), &check);
    assert_eq!(status, 429, "{told}");
    // All other work that takes a while needs a place too, for which it waits a little.
    let others = [
        ("open", r#"{"story":"central-drop"}"#.to_owned()),
        ("run", r#"{"algorithms":["lamport"],"sweep":"n","points":[3]}"#.to_owned()),
        ("draw", format!(r#"{{"key":"{key}","format":"atlas"}}"#)),
        ("draw", r#"{"past":{"flaw":"central-drop"},"format":"svg"}"#.to_owned()),
        ("read", r#"{"lock":"a","text":""}"#.to_owned()),
    ];
    std::thread::scope(|scope| {
        let head = &head;
        for (call, body) in &others {
            scope.spawn(move || {
                let (status, told) = ask(port, &head(call), body);
                assert_eq!(status, 429, "{call}: {told}");
            });
        }
    });
    let (status, _) = ask(port, &head("draw"), &format!(r#"{{"key":"{key}","format":"svg"}}"#));
    assert_eq!(status, 200, "a picture of a story takes no place");
    drop(running);
    let started = std::time::Instant::now();
    loop {
        let small = format!(r#"{{"key":"{key}","limit":100}}"#);
        let (status, told) = ask(port, &head("check"), &small);
        if status == 200 {
            assert!(told.contains("not-exhausted"), "{told}");
            break;
        }
        assert!(started.elapsed().as_secs() < 20, "a closed job goes on");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn recordings_and_runs_that_cannot_be_are_told_so() {
    let token = Token::random().unwrap();
    let (address, _runtime) = serve(0, &token, First::Shelf);
    let port: u16 = address.split([':', '/']).nth(4).unwrap().parse().unwrap();
    let call = |method: &str, path: &str, body: &str| {
        let head = format!(
            "{method} /api/{path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nx-doorway-token: {}\r\n\
             content-type: application/json",
            token.text()
        );
        ask(port, &head, body)
    };
    let refused = |(status, told): (u16, String), wanted: u16, why: &str| {
        assert_eq!(status, wanted, "{told}");
        assert!(told.contains("{\"error\":") && told.contains(why), "{told}");
    };
    refused(call("POST", "read", r#"{"lock":"a","text":"nonsense"}"#), 400, "the recording");
    refused(call("POST", "read", r#"{"lock":"a","text":""}"#), 400, "");
    refused(call("POST", "read", "{}"), 400, "the recording is not what it should be");
    let long = format!(r#"{{"lock":"a","text":"{}"}}"#, "x".repeat(5 << 20));
    refused(call("POST", "read", &long), 413, "too long to be handed over");
    refused(call("GET", "recorded/1", ""), 404, "record the lock again");
    refused(call("GET", "recorded/x", ""), 404, "record the lock again");
    let run = |x: &str, name: &str| {
        let body = format!(r#"{{"algorithms":[{name}],"sweep":"n","points":[{x}],"seed":1}}"#);
        call("POST", "run", &body)
    };
    assert_eq!(run("7", "\"lamport\"").0, 200);
    refused(run("7", "\"nobody\""), 400, "no algorithm 'nobody'");
    refused(run("7", ""), 400, "choose 1 to 12 algorithms");
    refused(run("1e9", "\"lamport\""), 400, "1 to 100 nodes");
    refused(run("0.5", "\"lamport\""), 400, "1 to 100 nodes");
}
