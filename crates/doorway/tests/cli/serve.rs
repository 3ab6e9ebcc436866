//! `doorway serve --check`, `doorway ca` and `doorway doctor`, as their users meet them.

use std::fs;
use std::path::Path;

use crate::{answer, failing, file, json, output, parsed, refusal};

/// A directory that does not exist yet.
fn directory(name: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    path.display().to_string()
}

#[test]
fn a_good_file_is_called_good() {
    let path = file("good.toml", "socket = \"@doorway-check\"\n");
    let said = answer(&format!("serve --config {path} --check"));
    assert_eq!(said, "good: node node of group local, alone, at @doorway-check\n");
    let checked = json(&format!("serve --config {path} --check"));
    assert_eq!(checked["good"], true);
    assert!(answer("serve --local --check").starts_with("good: node node of group local"));
}

#[test]
fn all_mistakes_are_told_and_nothing_is_started() {
    let path = file("bad.toml", "grup = 1\nsocket = 2\n");
    for line in [format!("serve --config {path}"), format!("serve --config {path} --check")] {
        let done = output(&line);
        assert_eq!(done.status.code(), Some(2));
        let said = String::from_utf8(done.stderr).unwrap();
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[0], "doorway: the configuration has 2 mistakes");
        assert_eq!(
            lines[1],
            format!("  {path}:1: the file has no key `grup`; did you mean `group`?")
        );
        assert_eq!(lines[2], format!("  {path}:2: `socket` is 2; it has to be a path, or @name"));
    }
    let done = output(&format!("serve --config {path} --check --json"));
    assert_eq!(done.status.code(), Some(2));
    let checked = parsed(&String::from_utf8(done.stdout).unwrap());
    assert_eq!(checked["good"], false);
    assert_eq!(checked["mistakes"][1]["line"], 2);
}

#[test]
fn misuse_of_serve_is_refused() {
    assert!(refusal("serve --local --config x").contains("--config"));
    assert!(refusal("serve --idle-stop 0").contains("a time above zero"));
    assert!(refusal("serve --log xml").contains("text, json"));
    assert!(refusal("serve --json").contains("--check"));
    let done = output("serve --config no/such.toml --check");
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&done.stderr).contains("cannot read no/such.toml"));
}

#[test]
fn certificates_are_made_shown_and_never_overwritten() {
    let ca = directory("cli-ca");
    let made = json(&format!("ca init --group shop --dir {ca}"));
    assert_eq!(made["key"], format!("{ca}/ca.key"));
    assert!(refusal(&format!("ca init --group shop --dir {ca}")).contains("exists already"));
    let said = answer(&format!("ca node a --address a.example --dir {ca}"));
    assert!(said.contains("for a.shop.doorway, a.example, valid until "), "{said}");
    assert!(said.contains("[tls]\nca = \"ca.crt\"\ncertificate = \"a.crt\""), "{said}");
    assert!(refusal(&format!("ca node a --dir {ca}")).contains("--renew"));
    let said = answer(&format!("ca client ci --dir {ca} --days 10"));
    assert!(said.contains("[[client]]\nname = \"ci\""), "{said}");
    let said = answer(&format!("ca show {ca}"));
    assert!(
        said.contains("node ") && said.contains("(soon)") && said.contains("group shop"),
        "{said}"
    );
    let shown = json(&format!("ca show {ca}"));
    assert_eq!(shown.as_array().map(Vec::len), Some(3));
    assert!(refusal(&format!("ca node A --dir {ca}")).contains("`A` cannot be the name of a node"));
    assert!(refusal(&format!("ca node b --days 0 --dir {ca}")).contains("--days"));
    assert!(refusal("ca node b --dir no/such").contains("`doorway ca init` makes one"));
    assert!(failing("ca show no/such.crt", 1).1.contains("cannot read"));
}

#[test]
fn the_doctor_says_what_to_do() {
    let data = directory("doctor-data");
    let path = file("doctor.toml", &format!("data = \"{data}\"\nsocket = \"@doorway-none\"\n"));
    let said = answer(&format!("doctor --config {path}"));
    assert!(said.contains("warning  node           no node runs at @doorway-none\n"), "{said}");
    assert!(said.contains("-> start it with `systemctl start doorway`"), "{said}");
    let path = file("doctor-bad.toml", "data = \"doctor-bad.toml/data\"\n");
    let (said, reason) = failing(&format!("doctor --config {path}"), 1);
    assert!(said.contains("wrong    permissions"), "{said}");
    assert!(reason.contains("wrong"), "{reason}");
    let path = file("doctor-worse.toml", "x = 1\n");
    let (said, _) = failing(&format!("doctor --config {path} --json"), 1);
    assert_eq!(parsed(&said)[0]["verdict"], "wrong");
}

/// Kills a process when a test ends.
struct KillOnDrop(std::process::Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

#[test]
fn a_second_local_node_says_that_one_runs() {
    let (data, socket) =
        (directory("twice-data"), format!("@doorway-twice-{}", std::process::id()));
    let mut first = std::process::Command::new(env!("CARGO_BIN_EXE_doorway"));
    first.args(["serve", "--local", "--socket", &socket, "--data", &data]);
    let _first = KillOnDrop(first.spawn().unwrap());
    let serving = || output(&format!("status --socket {socket}")).status.success();
    let begin = std::time::Instant::now();
    while !serving() {
        assert!(begin.elapsed().as_secs() < 60, "the first node does not serve");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let again = output(&format!("serve --local --socket {socket} --data {data}"));
    assert_eq!(again.status.code(), Some(0), "{again:?}");
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(said.contains(&format!("another node serves at {socket} already")), "{said}");
    let (_, said) = failing(&format!("serve --local --socket {socket} --data /proc/no/such"), 1);
    assert!(said.contains("/proc/no/such") && said.contains("cannot be used"), "{said}");
}
