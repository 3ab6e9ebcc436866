//! The documentation of the routes: the `OpenAPI` document, and the page with examples.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use doorway_daemon::listen::{Doors, accept_unix, bind_unix};
use doorway_daemon::settings::Socket;
use serde_json::{Value, json};

use super::remote::{Remote, TOKEN};
use crate::common::fresh;
use crate::common::settings::settings;
use crate::server::{Server, with_http};

#[test]
fn the_document_describes_every_route() {
    let server = Server::new();
    let document = server.get("/openapi.json").expect(200);
    assert_eq!(document, serde_json::from_str::<Value>(&doorway_daemon::http::document()).unwrap());
    assert!(document["openapi"].as_str().is_some_and(|version| version.starts_with("3.1")));
    let paths = document["paths"].as_object().unwrap();
    let mut routes: Vec<String> = Vec::new();
    for (path, methods) in paths {
        routes.extend(methods.as_object().unwrap().keys().map(|method| format!("{method} {path}")));
        for operation in methods.as_object().unwrap().values() {
            for status in ["200", "400", "401", "403", "404", "409", "429", "503"] {
                assert!(operation["responses"][status]["content"].is_object(), "{path} {status}");
            }
        }
    }
    routes.sort();
    assert_eq!(
        routes,
        [
            "delete /v1/terraform/{name}",
            "get /health",
            "get /metrics",
            "get /v1/events",
            "get /v1/group",
            "get /v1/locks",
            "get /v1/locks/{name}",
            "get /v1/members",
            "get /v1/status",
            "post /v1/locks/{name}/acquire",
            "post /v1/locks/{name}/break",
            "post /v1/locks/{name}/record",
            "post /v1/locks/{name}/release",
            "post /v1/locks/{name}/renew",
            "post /v1/locks/{name}/withdraw",
            "post /v1/terraform/{name}",
        ]
    );
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for name in
        ["Lease", "LockView", "LockList", "GroupReport", "NodeStatus", "Problem", "GrantEvent"]
    {
        assert!(schemas.contains_key(name), "{name}");
    }
    let mut references = Vec::new();
    collect_references(&document, &mut references);
    for reference in references {
        let path = reference.strip_prefix('#').expect("a reference into the document");
        assert!(document.pointer(path).is_some(), "{reference} is missing");
    }
    // The responses of a route count, if they differ from those of all routes.
    let unlock = &paths["/v1/terraform/{name}"]["delete"]["responses"]["409"]["content"];
    let schema = &unlock["application/json"]["schema"]["$ref"];
    assert_eq!(schema, "#/components/schemas/TerraformLock");
    assert_eq!(schemas["Lease"]["properties"]["fence"]["type"], json!("string"));
}

/// Every `$ref` in the document.
fn collect_references<'a>(value: &'a Value, references: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            references.extend(fields.get("$ref").and_then(Value::as_str));
            fields.values().for_each(|field| collect_references(field, references));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, references)),
        _ => {}
    }
}

/// `cargo xtask test` runs this one.
#[test]
#[ignore = "it needs curl"]
fn the_examples_of_the_page_work() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/http.md");
    let page = fs::read_to_string(page).unwrap();
    let mut script = String::from("set -eu\n");
    for block in page.split("```sh\n").skip(1) {
        writeln!(script, "{}", block.split("```").next().unwrap()).unwrap();
    }
    assert!(script.matches("\ndoor ").count() >= 8, "{script}");
    let server = Server::new();
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(fresh());
    let file = server.runtime.block_on(async {
        let (listener, file) = bind_unix(&Socket::File(path.clone(), 0o600)).unwrap();
        let settings = settings();
        let doors = with_http(&server.service, &settings, Doors::default());
        tokio::spawn(accept_unix(server.service.clone(), listener, doors));
        file
    });
    // The page uses the socket of a machine's node.
    let script = script.replace("/run/doorway/socket", path.to_str().unwrap());
    let run = Command::new("timeout")
        .args(["20", "sh", "-c", &script])
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .output()
        .unwrap();
    drop(file);
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{out}\n{err}");
    assert!(out.contains("\"released\":true") && out.contains("event: granted"), "{out}\n{err}");
    assert_eq!(server.service.held(), 0, "{out}\n{err}");
}

/// `cargo xtask test` installs schemathesis and asks for this one.
#[test]
#[ignore = "it needs schemathesis, whose path has to be in SCHEMATHESIS"]
fn the_document_and_the_server_agree() {
    let program = std::env::var("SCHEMATHESIS").expect("the path of schemathesis");
    let remote = Remote::start();
    let url = format!("https://{}", remote.address);
    let run = Command::new("timeout")
        .args(["90", &program, "--config-file"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/daemon/http/schemathesis.toml"))
        .args(["run", &format!("{url}/openapi.json"), "--url", &url])
        .args(["--header", &format!("Authorization: Bearer {TOKEN}")])
        .arg("--tls-verify")
        .arg(remote.place.join("ca.crt"))
        .current_dir(&remote.place)
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    println!("{out}");
    assert!(run.status.success(), "{out}\n{err}");
    // It still serves, and no session is left.
    assert!(remote.service.status().grants > 0, "nothing was ever granted: {out}");
}
