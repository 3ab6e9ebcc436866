//! Real Redis clients, as they are.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use doorway_daemon::listen::{Doors, Protocols, SocketFile, accept_unix, bind_unix};
use doorway_daemon::settings::Socket;

use crate::common::fresh;
use crate::common::settings::settings;
use crate::http::remote::{Remote, TOKEN};
use crate::server::{Server, with_http};

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

/// `cargo xtask test` fetches redlock and ioredis and runs this one.
#[test]
#[ignore = "it needs Node, and directories with redlock and ioredis in REDIS_NODE"]
fn redlock_for_node_locks() {
    let modules = std::env::var("REDIS_NODE").expect("directories with redlock and ioredis");
    let remote = Remote::serving(Protocols::Redis);
    for modules in modules.split(',') {
        let run = Command::new("timeout")
            .args(["60", "node"])
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/daemon/redis/redlock.js"))
            .args([modules, &remote.address.port().to_string()])
            .arg(remote.place.join("ca.crt"))
            .arg(TOKEN)
            .output()
            .unwrap();
        let said = text(&run);
        assert!(run.status.success() && said.contains("all is well"), "{said}");
        assert_eq!(remote.service.held(), 0, "{said}");
    }
}

/// `cargo xtask test` builds the program and runs this one.
#[test]
#[ignore = "it needs a program with the crate `redis`, whose path is in REDIS_RS"]
fn the_crate_redis_locks() {
    let program = std::env::var("REDIS_RS").expect("the path of a program");
    let (server, path) = (Server::new(), Path::new(env!("CARGO_TARGET_TMPDIR")).join(fresh()));
    let _file = socket_file(&server, &path);
    let run = Command::new("timeout").args(["60", &program]).arg(&path).output().unwrap();
    let said = text(&run);
    assert!(run.status.success() && said.contains("all is well"), "{said}");
    assert_eq!(server.service.held(), 0, "{said}");
}

/// Let a service listen on a Unix socket that is a file, too.
fn socket_file(server: &Server, path: &Path) -> SocketFile {
    server.runtime.block_on(async {
        let (listener, file) = bind_unix(&Socket::File(path.to_owned(), 0o600)).expect("a path");
        let doors = with_http(&server.service, &settings(), Doors::default());
        tokio::spawn(accept_unix(server.service.clone(), listener, doors));
        file.expect("a file")
    })
}

/// `cargo xtask test` runs this one.
#[test]
#[ignore = "it needs redis-cli and redis-py, with the path of its Python in REDIS_PYTHON"]
fn the_examples_of_the_page_work() {
    let python = std::env::var("REDIS_PYTHON").expect("the path of a Python with redis-py");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/redis.md");
    let page = fs::read_to_string(page).unwrap();
    let server = Server::new();
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(fresh());
    let file = socket_file(&server, &path);
    // The page uses the socket of a machine's node.
    let page = page.replace("/run/doorway/socket", path.to_str().unwrap());
    let blocks = |kind: &str| -> Vec<String> {
        let begin = format!("```{kind}\n");
        let parts = page.split(&begin).skip(1);
        parts.map(|part| part.split("```").next().unwrap().to_owned()).collect()
    };
    let run = |program: &str, words: &[&str]| {
        let run = Command::new("timeout").args(["20", program]).args(words).output().unwrap();
        assert!(run.status.success(), "{}", text(&run));
        text(&run)
    };
    let script = format!("set -eu\n{}", blocks("sh").concat());
    let said = run("sh", &["-c", &script]);
    let told = blocks("text").concat();
    // Times and fences differ from run to run.
    let same = |lines: &str| {
        let number = |line: &str| line.len() > 1 && line.bytes().all(|byte| byte.is_ascii_digit());
        let lines = lines.lines().map(|line| if number(line) { "a number" } else { line });
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(same(&said), same(&told), "{said}");
    let said = run(&python, &["-c", &blocks("python").concat()]);
    assert!(said.starts_with("inside, with fence "), "{said}");
    drop(file);
    assert_eq!(server.service.held(), 0);
}

/// The only block of this kind in docs/clients.md, for a service with a short limit of leases.
fn program_of_the_page(kind: &str, remote: &Remote) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/clients.md");
    let page = fs::read_to_string(page).expect("the page");
    let blocks: Vec<&str> = page.split(&format!("```{kind}\n")).skip(1).collect();
    let [block] = blocks[..] else { panic!("{} blocks of {kind}", blocks.len()) };
    let block = block.split("```").next().expect("an end");
    let port = remote.address.port().to_string();
    let block = block.replace("locks.example", "127.0.0.1").replace("6380", &port);
    let block = block.replace("\"ci\"", "\"all\"").replace("ci.token", "all.token");
    block.replace("timeout=10)", "timeout=2)").replace("10000", "2000")
}

/// `cargo xtask test` runs this one.
#[test]
#[ignore = "it needs redis-py and redlock, with their paths in REDIS_PYTHON and REDIS_NODE"]
fn the_programs_of_the_page_about_clients_work() {
    let python = std::env::var("REDIS_PYTHON").expect("the path of a Python with redis-py");
    let modules = std::env::var("REDIS_NODE").expect("directories with redlock and ioredis");
    let redlock = modules.split(',').next_back().unwrap(); // The page uses version 5.
    let remote = Remote::serving(Protocols::Redis);
    for (kind, words) in
        [("python redis-py", [python.as_str(), "-c"]), ("js redlock", ["node", "-e"])]
    {
        let block = program_of_the_page(kind, &remote);
        let mut program = Command::new("timeout");
        program.arg("30").args(words).arg(block).env("NODE_PATH", redlock);
        let run = program.current_dir(&remote.place).output().unwrap();
        let said = text(&run);
        assert!(run.status.success() && said.contains("inside, with fence "), "{said}");
    }
    assert_eq!(remote.service.held(), 0);
}
