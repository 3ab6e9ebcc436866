//! Real Redis clients, as they are.

use std::path::Path;
use std::process::{Command, Output};

use doorway_daemon::listen::Protocols;

use crate::http::remote::{Remote, TOKEN};

fn text(run: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    format!("{out}{err}")
}

/// `cargo xtask test` runs this one.
#[test]
#[ignore = "it needs redis-cli"]
fn redis_cli_acquires_and_releases() {
    let remote = Remote::serving(Protocols::Redis);
    let port = remote.address.port().to_string();
    let cli = |words: &[&str]| {
        let mut cli = Command::new("timeout");
        cli.args(["10", "redis-cli", "-h", "127.0.0.1", "-p", &port, "--tls", "--cacert"]);
        cli.arg(remote.place.join("ca.crt"));
        cli.args(["--user", "all", "-a", TOKEN, "--no-auth-warning"]);
        text(&cli.args(words).output().unwrap()).trim().to_owned()
    };
    assert_eq!(cli(&["PING"]), "PONG");
    assert_eq!(cli(&["-3", "SET", "k", "mine", "NX", "PX", "2000"]), "OK");
    assert_eq!(cli(&["SET", "k", "yours", "NX", "PX", "2000"]), "");
    assert_eq!(cli(&["GET", "k"]), "mine");
    let script = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) \
                  else return 0 end";
    assert_eq!(cli(&["EVAL", script, "1", "k", "yours"]), "0");
    assert!(cli(&["DOORWAY.FENCE", "k"]).parse::<u64>().is_ok());
    assert_eq!(cli(&["EVAL", script, "1", "k", "mine"]), "1");
    assert_eq!(cli(&["-n", "3", "SET", "k", "mine", "NX", "EX", "2"]), "OK");
    assert_eq!(cli(&["EXISTS", "k", "db3/k"]), "1");
    assert!(cli(&["LPUSH", "k", "v"]).contains("locks and no other data"));
}

/// `cargo xtask test` installs redis-py and runs this one.
#[test]
#[ignore = "it needs redis-py, with the path of its Python in REDIS_PYTHON"]
fn redis_py_locks() {
    let python = std::env::var("REDIS_PYTHON").expect("the path of a Python with redis-py");
    let remote = Remote::serving(Protocols::Redis);
    let run = Command::new("timeout")
        .args(["60", &python, "-B", "-W", "error::ResourceWarning"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/daemon/redis/redis_py.py"))
        .arg(remote.address.port().to_string())
        .arg(remote.place.join("ca.crt"))
        .arg(TOKEN)
        .output()
        .unwrap();
    let said = text(&run);
    assert!(run.status.success() && said.contains("all is well"), "{said}");
    assert_eq!(remote.service.held(), 0, "{said}");
}
