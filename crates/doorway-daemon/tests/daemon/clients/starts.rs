//! How services start with the ledger of a former process, and end by themselves.

use std::fs;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::Duration;

use doorway_client::blocking::Client;
use doorway_client::{Options, State};

use crate::common::daemon::{Daemon, REFUSED, SERVED, tcp};
use crate::common::group::remote;
use crate::common::{Place, until};

/// The size of a record in the ledger.
const RECORD: usize = 512;

#[test]
fn an_unused_node_ends_and_the_next_continues_with_higher_fences() {
    let mut daemon = Daemon::alone("idle_stop = \"1s\"\n");
    let client = daemon.client();
    let fence = client.acquire("a").enter().unwrap().fence();
    drop(client);
    assert!(daemon.ended().success());
    daemon.spawn();
    daemon.ready();
    let client = daemon.client();
    assert_eq!(client.status().unwrap().reclaiming_ms, None, "it ended as it should");
    assert!(client.acquire("a").enter().unwrap().fence() > fence);
}

#[test]
fn a_socket_that_a_crash_left_is_replaced_and_no_other_file_is() {
    let place = Arc::new(Place::new());
    let path = place.file("socket");
    let text = "data = \"data\"\nsocket_mode = \"0600\"\n";
    let mut daemon = Daemon::at(&path.display().to_string(), &place, "node", text);
    daemon.spawn();
    daemon.ready();
    daemon.kill();
    assert!(path.exists(), "a process that is killed cannot remove it");
    daemon.spawn();
    daemon.ready();
    let other = Daemon::at(&path.display().to_string(), &place, "other", "data = \"other\"\n");
    let mut other = other;
    other.spawn();
    assert_eq!(other.ended().code(), Some(SERVED));
    daemon.client().acquire("a").enter().unwrap().release().unwrap();
    daemon.stop();
    assert!(!path.exists(), "one that stops as it should removes it");
    drop(UnixListener::bind(&path).unwrap());
    daemon.spawn();
    daemon.ready();
    daemon.stop();
    fs::write(&path, "precious").unwrap();
    daemon.spawn();
    assert_eq!(daemon.ended().code(), Some(REFUSED));
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}

/// Of two services that are started at once after a crash, one serves, and the other one says so.
#[test]
fn of_two_nodes_that_start_at_once_with_one_file_one_serves() {
    for _ in 0..5 {
        let place = Arc::new(Place::new());
        let path = place.file("socket");
        drop(UnixListener::bind(&path).unwrap());
        let start = |name| Daemon::at(&path.display().to_string(), &place, name, "data = \"d\"\n");
        let mut both = [start("one"), start("other")];
        both.iter_mut().for_each(Daemon::spawn);
        until("one has ended", || both.iter_mut().any(Daemon::has_ended));
        let lost = both.iter_mut().position(Daemon::has_ended).unwrap();
        assert_eq!(both[lost].ended().code(), Some(SERVED));
        both[1 - lost].ready();
        let client = both[1 - lost].client();
        client.acquire("a").enter().unwrap().release().unwrap();
        drop(client);
        both[1 - lost].stop();
    }
}

/// The part of a ledger that is damaged.
type Damage = fn(&mut Vec<u8>);

/// Whatever is left of the ledger, the node starts and reports the damage, and grants nothing
/// before former holders know that they have lost their locks.
#[test]
fn a_damaged_ledger_is_reported_and_no_client_enters_too_early() {
    let damages: [(&str, Damage); 4] = [
        ("all of it", |bytes| bytes.fill(0xa5)),
        ("its beginning", |bytes| bytes[3] ^= 1),
        ("the session", |bytes| bytes[RECORD + 20] ^= 1),
        ("its end", |bytes| bytes.truncate(RECORD + 30)),
    ];
    for (what, damage) in damages {
        let mut daemon = Daemon::alone("[limits]\nttl = \"1s\"\n");
        let client = daemon.session(Duration::from_secs(1));
        let grant = client.acquire("a").enter().unwrap();
        daemon.kill();
        let path = daemon.place.file("data/sessions");
        let mut bytes = fs::read(&path).unwrap();
        damage(&mut bytes);
        fs::write(&path, bytes).unwrap();
        daemon.spawn();
        let other = {
            daemon.ready();
            daemon.client()
        };
        let next = other.acquire("a").enter().unwrap();
        assert_eq!(grant.state(), State::Lost, "{what}: two clients believe they are inside");
        assert!(next.fence() > grant.fence(), "{what}");
        assert!(daemon.log().contains("damaged"), "{what}: {}", daemon.log());
    }
}

/// Change a ledger as if it were from before a restart of the machine.
fn reboot(bytes: &mut [u8]) {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("Linux");
    let boot = boot.trim().as_bytes();
    let at = bytes.windows(boot.len()).position(|part| part == boot);
    let at = at.expect("the marker names it");
    bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
    // The highest bit of the length says that the checksum is a CRC-32.
    let length = usize::from(u16::from_le_bytes([bytes[0], bytes[1]]) & 0x7fff);
    let checksum = crc32fast::hash(&bytes[6..6 + length]);
    bytes[2..6].copy_from_slice(&checksum.to_le_bytes());
}

#[test]
fn after_a_reboot_local_clients_are_not_awaited() {
    let mut daemon = Daemon::alone("");
    let client = daemon.client();
    let fence = client.acquire("a").enter().unwrap().keep();
    daemon.kill();
    drop(client);
    let path = daemon.place.file("data/sessions");
    let mut bytes = fs::read(&path).unwrap();
    reboot(&mut bytes);
    fs::write(&path, bytes).unwrap();
    daemon.spawn();
    daemon.ready();
    let client = daemon.client();
    assert_eq!(client.status().unwrap().reclaiming_ms, None);
    assert!(client.acquire("a").try_now().enter().unwrap().fence() > fence);
}

/// Clients of other machines survive a restart of this machine. They keep their locks, even if
/// their sessions were not on disk.
#[test]
fn after_a_reboot_remote_clients_are_believed() {
    let mut daemon = remote("[limits]\nttl = \"3s\"\n");
    let address = tcp(&daemon.tcp.as_ref().unwrap().0);
    let options = daemon.over_tcp().ttl(Duration::from_secs(3));
    let client = Client::connect(&address, &options).unwrap();
    client.on_lost(|lost| panic!("{lost}"));
    let grant = client.acquire("a").enter().unwrap();
    daemon.kill();
    let path = daemon.place.file("data/sessions");
    let mut bytes = fs::read(&path).unwrap();
    bytes.truncate(RECORD);
    reboot(&mut bytes);
    fs::write(&path, bytes).unwrap();
    daemon.spawn();
    daemon.ready();
    let other = Client::connect(daemon.endpoint(), &Options::default()).unwrap();
    assert!(other.status().unwrap().reclaiming_ms.is_some());
    until("it is held again", || other.status().unwrap().held == 1);
    until("the node serves again", || other.status().unwrap().reclaiming_ms.is_none());
    assert_eq!(grant.state(), State::Held);
    assert_eq!(other.inspect("a").unwrap().holders[0].fence, grant.fence());
    grant.release().unwrap();
    other.acquire("a").enter().unwrap().release().unwrap();
}
