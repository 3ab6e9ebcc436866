//! What `doorway doctor` says about nodes that run, and about the node of a user.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, chown};

use crate::members::group::{Group, Machine, Pace};
use crate::user::{User, text};

#[test]
fn the_doctor_does_not_take_the_port_of_a_running_node_for_taken() {
    let mut group = Group::on(Machine::local(4), 3, Pace::PATIENT);
    (0..3).for_each(|node| group.fix(node));
    group.start(0);
    let examine = |words: &str| {
        let done = group.output(0, &format!("doctor --config a.toml{words}"));
        assert_eq!(done.status.code(), Some(1), "b and c are wrong: {done:?}");
        (text(&done.stdout), text(&done.stderr))
    };
    let (said, count) = examine("");
    assert!(said.contains("node           node a of group shop "), "{said}");
    assert!(!said.contains("cannot listen") && !said.contains("in use"), "{said}");
    assert_eq!(count, "doorway: 2 things are wrong\n", "{said}");

    // Its socket was deleted, but it still listens for the other members.
    let (said, count) = examine(" --socket @no-such-doorway");
    assert!(said.contains("warning  members        a (this node) runs and listens at"), "{said}");
    assert!(!said.contains("cannot listen"), "{said}");
    assert_eq!(count, "doorway: 2 things are wrong\n", "{said}");

    // Another program has its port.
    group.kill(0);
    let taken = TcpListener::bind(group.address(0)).expect("the port is free again");
    let done = group.output(0, "doctor --config a.toml");
    let said = text(&done.stdout);
    assert!(said.contains("wrong    members        a (this node) cannot listen at"), "{said}");
    assert_eq!(text(&done.stderr), "doorway: 3 things are wrong\n", "{said}");
    drop(taken);
}

/// What the doctor prints for this user, and its exit code. The shell that runs it has a low limit
/// of open files, which a node raises for itself.
fn examine(user: &User, words: &str) -> (Option<i32>, String) {
    let line = format!("ulimit -S -n 256; exec ./doorway doctor {words}");
    let done = user.command(&["sh", "-c", &line]).output().expect("it runs");
    (done.status.code(), text(&done.stdout) + &text(&done.stderr))
}

#[test]
fn the_doctor_gives_advice_that_fits_the_node_of_a_user() {
    let Some(user) = User::new() else { return };
    let (code, said) = examine(&user, "");
    assert_eq!(code, Some(0), "{said}");
    let none = format!(
        "ok       node           no node runs at @doorway-{}; `doorway run` starts one when it is \
         needed\n",
        user.id
    );
    assert!(said.contains(&none), "{said}");
    assert!(!said.contains("warning  limits") && !said.contains("wrong "), "{said}");
    assert!(!said.contains("systemctl") && !said.contains("`doorway serve"), "{said}");
    assert_eq!(user.node(), None, "looking does not start a node");

    // The node raises its own limit, so the one of this shell does not matter.
    let line = "ulimit -S -n 256; exec ./doorway run x -- true";
    let done = user.command(&["sh", "-c", line]).output().expect("it runs");
    assert!(done.status.success(), "{done:?}");
    let pid = user.node().expect("it runs");
    let (code, said) = examine(&user, "");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(&format!("files may be open by process {pid}: enough")), "{said}");
    assert!(!said.contains("warning  limits") && !said.contains(" 256 files"), "{said}");
}

#[test]
fn the_doctor_reports_a_directory_that_belongs_to_another_user() {
    let Some(user) = User::new() else { return };
    let directory = format!("/var/tmp/doorway-{}", user.id);
    fs::create_dir(&directory).unwrap();
    let open = fs::Permissions::from_mode(0o777);
    fs::set_permissions(&directory, open).unwrap();
    let (code, said) = examine(&user, "");
    assert_eq!(code, Some(1), "{said}");
    let line = said.lines().find(|line| line.starts_with("wrong ")).unwrap_or_default();
    assert!(line.contains("permissions") && line.contains(&directory), "{said}");
    assert!(line.contains(&format!("belongs to uid 0, not to uid {}", user.id)), "{said}");
    assert!(!said.contains("chown") && !said.contains("install -d"), "{said}");
    // `doorway run` says the same.
    let refused = user.run("run x -- true");
    assert_eq!(refused.status.code(), Some(69), "{refused:?}");
    assert!(text(&refused.stderr).contains("belongs to uid 0"), "{refused:?}");

    chown(&directory, Some(user.id), Some(user.id)).unwrap();
    let (code, said) = examine(&user, "");
    assert_eq!(code, Some(0), "{said}");
}

/// The directory of a machine's node belongs to the user of that node.
#[test]
fn the_doctor_does_not_advise_a_user_to_take_the_directory_of_a_machine() {
    let Some(user) = User::new() else { return };
    let data = user.directory.join("data");
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).unwrap();
    let settings = format!("data = \"{}\"\nsocket = \"@no-such-doorway\"\n", data.display());
    fs::write(user.directory.join("machine.toml"), settings).unwrap();
    let (code, said) = examine(&user, "--config machine.toml");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("warning  permissions    the directory for `data`"), "{said}");
    assert!(said.contains("-> examine it as root: `sudo doorway doctor`"), "{said}");
    assert!(!said.contains("chown") && !said.contains("install -d"), "{said}");
}
