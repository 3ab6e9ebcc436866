//! Machines in network namespaces, joined by a bridge, and the cuts between them.

use std::path::Path;
use std::process::Command;

use crate::group::Machine;

/// How many machines there are.
pub(crate) const COUNT: usize = 5;

/// The port of the nodes.
const PORT: u16 = 7001;

/// Words for `unshare` with which this user can make network namespaces. None if that is not
/// allowed.
///
/// With a user namespace, no rights are needed outside of it, and everything that is made here is
/// gone when the last process in it has ended.
pub(crate) fn unshare() -> Option<Vec<&'static str>> {
    let root = vec!["--net", "--mount", "--fork", "--kill-child"];
    let user = [vec!["--user", "--map-root-user"], root.clone()].concat();
    [user, root].into_iter().find(|words| {
        // All that is needed is tried, because each of it may be forbidden.
        let trial = "mount -t tmpfs none /run && mkdir /run/netns && ip netns add x && \
                     ip link add type veth && nft add table inet x";
        let done = Command::new("unshare").args(words).args(["sh", "-c", trial]).output();
        done.is_ok_and(|done| done.status.success())
    })
}

/// Make the machines and their network. This process must be in namespaces of its own.
pub(crate) fn make() -> Vec<Machine> {
    // `ip netns` keeps its files there, and this user may not write to that of the system.
    run("mount -t tmpfs none /run");
    run("mkdir /run/netns");
    run("ip link add bridge type bridge");
    run("ip link set bridge up");
    Machine::NAMES
        .into_iter()
        .enumerate()
        .take(COUNT)
        .map(|(index, name)| make_one(index, name))
        .collect()
}

fn make_one(index: usize, name: &'static str) -> Machine {
    let inside = format!("nsenter --net=/run/netns/{name}");
    run(&format!("ip netns add {name}"));
    run(&format!("ip link add port-{name} type veth peer name eth0 netns {name}"));
    run(&format!("ip link set port-{name} master bridge up"));
    run(&format!("{inside} ip address add {}/24 dev eth0", ip(index)));
    run(&format!("{inside} ip link set eth0 up"));
    run(&format!("{inside} ip link set lo up"));
    run(&format!("{inside} nft add table inet cuts"));
    run(&format!("{inside} nft add chain inet cuts in {{ type filter hook input priority 0 ; }}"));
    let enter = inside.split(' ').map(str::to_owned).collect();
    Machine { name, address: format!("{}:{PORT}", ip(index)), enter }
}

fn ip(index: usize) -> String {
    format!("10.9.0.{}", index + 1)
}

/// Drop everything that `to` gets from `from`, without a word to either.
pub(crate) fn cut(from: usize, to: usize) {
    let (name, source) = (Machine::NAMES[to], ip(from));
    run(&format!(
        "nsenter --net=/run/netns/{name} nft add rule inet cuts in ip saddr {source} drop"
    ));
}

/// Repair all cuts.
pub(crate) fn heal() {
    for name in &Machine::NAMES[..COUNT] {
        run(&format!("nsenter --net=/run/netns/{name} nft flush chain inet cuts in"));
    }
}

/// Make a directory a small disk of its own.
pub(crate) fn small_disk(directory: &Path) {
    std::fs::create_dir_all(directory).expect("a directory");
    run(&format!("mount -t tmpfs -o size=16m none {}", directory.display()));
}

/// Run a command, which must succeed. It is split at spaces.
fn run(words: &str) {
    let mut words = words.split(' ');
    let mut command = Command::new(words.next().unwrap_or_default());
    let done = command.args(words).output().expect("the program is installed");
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
}
