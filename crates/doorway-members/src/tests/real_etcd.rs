//! Tests with a real etcd. `cargo xtask test etcd` installs it and runs them.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use doorway_node::members::{
    Answer, AuditEntry, Command, HOLDS_LIMIT, HoldId, MemberId, Record, ViewStore as _,
};
use doorway_node::{Fence, Name};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::etcd_server::EtcdServer;
use super::world::{CLUSTER, Group, LEASE, LEASE_MS, begin, join};
use crate::etcd::testing::{call, record_key};
use crate::{EtcdAccess, EtcdCertificates, EtcdStore, FoundError, GroupStore as _};

type EtcdWorld = Group<EtcdStore>;

fn access(server: &EtcdServer) -> EtcdAccess {
    let addresses = vec![server.url().parse().unwrap()];
    EtcdAccess { addresses, certificates: None, login: None }
}

fn world(server: &EtcdServer) -> EtcdWorld {
    let mut world = Group::new(1);
    world.etcd = Some(access(server));
    world
}

/// Make a test of each function in `any_store.rs`.
macro_rules! by_etcd {
    ($($name:ident),* $(,)?) => {
        $(
            #[tokio::test]
            #[ignore = "needs etcd; `cargo xtask test etcd` runs it"]
            async fn $name() {
                let server = EtcdServer::new();
                crate::tests::any_store::$name(world(&server)).await;
            }
        )*
    };
}

by_etcd!(
    each_node_can_change_the_record,
    a_group_is_founded_only_once,
    a_group_begins_with_the_right_machines_only,
    a_group_can_begin_above_the_view_of_a_former_one,
    nodes_come_back_with_their_disks,
    machines_are_added_removed_and_replaced,
    holds_and_the_audit_log_are_the_same_everywhere,
);

#[tokio::test]
#[ignore = "needs etcd; `cargo xtask test etcd` runs it"]
async fn of_two_that_found_the_group_one_is_told() {
    let server = EtcdServer::new();
    for _ in 0..5 {
        let mut world = world(&server);
        for name in ["a", "b"] {
            world.start(name).await;
        }
        let seats = ["a", "b"].map(|name| world.seat(name, true)).to_vec();
        let found = async |name: &str, cluster: u128| {
            let record = Record::new(cluster, LEASE_MS, 0, seats.clone());
            world.store(name).found_with(begin(record)).await
        };
        let (one, other) = tokio::join!(found("a", 1), found("b", 2));
        let winner = if one.is_ok() { 1 } else { 2 };
        let lost = if winner == 1 { other } else { one };
        // The loser may have seen the other's record, or its answer.
        let told = match lost {
            Err(FoundError::Overtaken { cluster } | FoundError::Founded { cluster }) => cluster,
            Err(FoundError::Machine { why, .. }) if why.contains("belongs to group") => winner,
            other => panic!("{other:?}"),
        };
        assert_eq!(told, winner);
        world.agree().await;
        assert_eq!(world.record("a").unwrap().cluster, winner);
        call(&access(&server), "kv/deleterange", "/doorway/shop/", None).await.unwrap();
    }
}

#[tokio::test]
#[ignore = "needs etcd; `cargo xtask test etcd` runs it"]
async fn commands_of_several_nodes_at_once_are_all_applied_once() {
    let server = EtcdServer::new();
    let mut world = world(&server);
    let names = ["a", "b", "c"];
    world.found(&names).await;
    let id = MemberId(1);
    world.insist("a", join(world.seat("a", true).id, 1)).await;
    let mut tasks = JoinSet::new();
    for name in names {
        for _ in 0..5 {
            let store = world.store(name);
            tasks.spawn(async move {
                for _ in 0..20 {
                    let answer = store.put(Command::Renew { id, cut: Vec::new() }).await;
                    assert!(matches!(answer, Ok(Answer::Renewed { .. })), "{answer:?}");
                }
            });
        }
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    world.agree().await;
    assert_eq!(world.record("b").unwrap().member(id).unwrap().beat, 300);
}

#[tokio::test]
#[ignore = "needs etcd; `cargo xtask test etcd` runs it"]
async fn etcd_goes_away_and_comes_back() {
    let mut server = EtcdServer::new();
    let mut world = world(&server);
    world.found(&["a", "b"]).await;
    let seat = world.seat("a", true).id;
    world.insist("a", join(seat, 1)).await;
    for how in ["kill", "stop"] {
        if how == "kill" {
            server.kill();
        } else {
            server.signal("STOP");
        }
        let begin = Instant::now();
        let why = world.put("a", join(seat, 2)).await.unwrap_err();
        assert!(begin.elapsed() < LEASE / 2, "{:?}", begin.elapsed());
        assert!(why.contains("127.0.0.1") || why.contains("etcd"), "{why}");
        world
            .settle(LEASE * 2, |world| {
                world.store("b").health().service.unwrap().unreachable.is_some()
            })
            .await;
        let health = world.store("a").health();
        let (_, why) = health.service.unwrap().unreachable.unwrap();
        assert!(why.starts_with(&server.url()), "{why}");
        assert!(health.without_quorum.is_some());
        if how == "kill" {
            server.start();
        } else {
            server.signal("CONT");
        }
        // What was unsure may have been applied when etcd went on.
        world.insist("b", join(seat, 3)).await;
        world.agree().await;
        world
            .settle(LEASE, |world| world.store("a").health().service.unwrap().unreachable.is_none())
            .await;
    }
}

/// As many holds as a group may have, with the longest names, and the longest audit log.
#[tokio::test]
#[ignore = "needs etcd; `cargo xtask test etcd` runs it"]
async fn the_largest_state_is_read_and_changed() {
    let server = EtcdServer::new();
    let mut world = world(&server);
    world.found(&["a"]).await;
    let Answer::Joined(member) = world.insist("a", join(world.seat("a", true).id, 1)).await else {
        panic!()
    };
    let enter = Command::Enter { id: member, number: 0, replaces: Vec::new(), inherits: true };
    assert_eq!(world.insist("a", enter).await, Answer::Done(1));
    let text = "ä".repeat(80);
    let mut tasks = JoinSet::new();
    for task in 0..40 {
        let (store, text) = (world.store("a"), text.clone());
        tasks.spawn(async move {
            let put = async |command: Command| {
                let begin = Instant::now();
                while let Err(why) = store.put(command.clone()).await {
                    assert!(begin.elapsed() < Duration::from_mins(1), "{why}");
                }
            };
            for number in (task * HOLDS_LIMIT / 40)..((task + 1) * HOLDS_LIMIT / 40) {
                let name = format!("{number:0>width$}", width = Name::MAX);
                let fence = Fence::new(Fence::VIEW_LIMIT - 1, Fence::CLOCK_LIMIT);
                let id = HoldId { name: Name::new(&name).unwrap(), fence, member };
                put(Command::Hold { id, length_ms: Some(u64::MAX) }).await;
                let [at, node, who, from, result] = [0; 5].map(|_| text.clone());
                let what = format!("{number} {text}");
                put(Command::Note(AuditEntry { number: 0, at, node, who, from, what, result }))
                    .await;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let before = world.store("a").holds().borrow().clone();
    assert_eq!(before.iter().count(), HOLDS_LIMIT);
    let begin = Instant::now();
    world.kill("a").await;
    world.start("a").await;
    world.settle(LEASE, |world| world.record("a").is_some()).await;
    println!("the largest state was read in {:?}", begin.elapsed());
    assert_eq!(*world.store("a").holds().borrow(), before);
    assert_eq!(world.store("a").audit().after(0).count(), 1_000);
    let renewed = world.insist("a", Command::Renew { id: member, cut: Vec::new() }).await;
    assert!(matches!(renewed, Answer::Renewed { .. }));
}

#[tokio::test]
#[ignore = "needs etcd; `cargo xtask test etcd` runs it"]
async fn a_record_that_goes_back_or_makes_no_sense_is_not_believed() {
    let server = EtcdServer::new();
    let mut world = world(&server);
    world.found(&["a"]).await;
    let access = access(&server);
    let key = record_key("shop");
    let old = call(&access, "kv/range", &key, None).await.unwrap();
    world.insist("a", join(world.seat("a", true).id, 1)).await;
    let store = world.store("a");
    // A value that nobody can read: the node keeps what it knows, and says so.
    call(&access, "kv/put", &key, Some(b"\x09garbage")).await.unwrap();
    world
        .settle(LEASE * 2, |world| {
            let health = world.store("a").health().service.unwrap();
            health.unreachable.is_some_and(|(_, why)| why.contains("has format 9"))
        })
        .await;
    assert!(world.put("a", join(world.seat("a", true).id, 2)).await.is_err());
    assert_eq!(world.record("a").unwrap().members.len(), 1);
    // An older record, as after the restore of a backup: fences could come again.
    call(&access, "kv/put", &key, Some(&old)).await.unwrap();
    let why = tokio::time::timeout(LEASE, store.ended()).await.unwrap();
    assert!(why.contains("older record of the group `shop`"), "{why}");
    // The record is deleted.
    world.kill("a").await;
    call(&access, "kv/deleterange", &key, None).await.unwrap();
    world.start("a").await;
    world
        .settle(LEASE * 2, |world| {
            let health = world.store("a").health().service.unwrap();
            health
                .unreachable
                .is_some_and(|(_, why)| why.contains("has no key /doorway/shop/record"))
        })
        .await;
    // Another group took the name.
    world.disks.insert("b".to_owned(), crate::MemoryDisk::default());
    world.start("b").await;
    let record = Record::new(77, LEASE_MS, 0, vec![world.seat("b", true)]);
    world.store("b").found_with(begin(record)).await.unwrap();
    let ended = world.store("a");
    let why = tokio::time::timeout(LEASE, ended.ended()).await.unwrap();
    assert!(why.contains(&format!("but this node belongs to group {CLUSTER:032x}")), "{why}");
}

#[tokio::test]
#[ignore = "needs etcd; `cargo xtask test etcd` runs it"]
async fn the_first_address_may_be_dead() {
    let server = EtcdServer::new();
    let mut world = world(&server);
    let dead = EtcdServer::stopped();
    let addresses = [dead.url(), server.url()].map(|url| url.parse().unwrap()).to_vec();
    world.etcd = Some(EtcdAccess { addresses, certificates: None, login: None });
    world.found(&["a", "b"]).await;
    world.insist("b", join(world.seat("a", true).id, 1)).await;
    world.agree().await;
    assert_eq!(world.store("a").health().service.unwrap().unreachable, None);
}

#[tokio::test]
#[ignore = "needs etcd; `cargo xtask test etcd` runs it"]
async fn a_user_of_etcd_needs_a_password() {
    let server = EtcdServer::new();
    let plain = access(&server);
    let auth = async |path: &str, body: &str| {
        crate::etcd::testing::post(&plain, path, body).await.unwrap();
    };
    auth("auth/user/add", r#"{"name":"root","password":"r"}"#).await;
    auth("auth/role/add", r#"{"name":"root"}"#).await;
    auth("auth/user/grant", r#"{"user":"root","role":"root"}"#).await;
    auth("auth/user/add", r#"{"name":"doorway","password":"secret"}"#).await;
    auth("auth/role/add", r#"{"name":"doorway"}"#).await;
    // `/doorway/` up to `/doorway0`.
    auth(
        "auth/role/grant",
        r#"{"name":"doorway","perm":{"permType":"READWRITE","key":"L2Rvb3J3YXkv","range_end":"L2Rvb3J3YXkw"}}"#,
    )
    .await;
    auth("auth/user/grant", r#"{"user":"doorway","role":"doorway"}"#).await;
    auth("auth/enable", "{}").await;

    let login = |password: &str| Some(("doorway".to_owned(), password.to_owned()));
    let mut world = world(&server);
    world.etcd = Some(EtcdAccess { login: login("secret"), ..plain.clone() });
    world.found(&["a", "b"]).await;
    world.insist("b", join(world.seat("a", true).id, 1)).await;
    world.agree().await;

    for (login, part) in [(None, "user name is empty"), (login("wrong"), "authentication failed")] {
        let mut options = world.options("z");
        options.lease_ms = 2_000;
        let store = EtcdStore::open(options, EtcdAccess { login, ..plain.clone() }).await.unwrap();
        let begin = Instant::now();
        let why = loop {
            if let Some((_, why)) = store.health().service.unwrap().unreachable {
                break why;
            }
            assert!(begin.elapsed() < LEASE);
            sleep(Duration::from_millis(20)).await;
        };
        assert!(why.contains(part), "{why}");
        store.close().await;
    }
}

#[tokio::test]
#[ignore = "needs etcd; `cargo xtask test etcd` runs it"]
async fn etcd_is_reached_over_tls_with_certificates() {
    let mut server = EtcdServer::stopped();
    let authority = || {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        (certificate.pem(), Issuer::new(params, key))
    };
    let (ca, issuer) = authority();
    let (other, _) = authority();
    let issue = |name: &str| {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &issuer).unwrap().pem(), key.serialize_pem())
    };
    let (certificate, key) = issue("127.0.0.1");
    let (shown, shown_key) = issue("doorway");
    let file = |name: &str, text: &str| {
        fs::write(server.file(name), text).unwrap();
        server.file(name).display().to_string()
    };
    let options = [
        ("--cert-file", file("server.crt", &certificate)),
        ("--key-file", file("server.key", &key)),
        ("--trusted-ca-file", file("ca.crt", &ca)),
    ];
    let mut options: Vec<String> =
        options.into_iter().flat_map(|(option, file)| [option.to_owned(), file]).collect();
    options.push("--client-cert-auth".to_owned());
    server = server.with_tls(&options);
    server.start();

    let with = |authority: &str, client: Option<(&str, &str)>| {
        let client = client.map(|(chain, key)| (chain.into(), key.into()));
        let certificates = Some(EtcdCertificates { authority: authority.into(), client });
        EtcdAccess { certificates, ..access(&server) }
    };
    let mut world = world(&server);
    world.etcd = Some(with(&ca, Some((&shown, &shown_key))));
    world.found(&["a", "b"]).await;
    world.insist("b", join(world.seat("a", true).id, 1)).await;
    world.agree().await;

    for (access, part) in [
        (with(&other, Some((&shown, &shown_key))), "invalid peer certificate"),
        (with(&ca, None), ""),
    ] {
        let mut options = world.options("z");
        options.lease_ms = 2_000;
        let store: Arc<EtcdStore> = EtcdStore::open(options, access).await.unwrap();
        let begin = Instant::now();
        let why = loop {
            if let Some((_, why)) = store.health().service.unwrap().unreachable {
                break why;
            }
            assert!(begin.elapsed() < LEASE);
            sleep(Duration::from_millis(20)).await;
        };
        assert!(why.starts_with("https://127.0.0.1:") && why.contains(part), "{why}");
        store.close().await;
    }
}
