//! Which nodes are refused, and how often that is logged.

use std::time::Duration;

use doorway_node::link::Versions;
use doorway_node::net::{Identity, IdentityError};

use super::support::{Authority, GROUP, Log, Node, Recorder, identity, listen, stop, until};

/// Start three nodes, of which the first is wrong in some way. Checks that the others and the first
/// log lines with these words.
async fn refused(
    first: impl FnOnce(&Authority) -> (Identity, Recorder),
    at_others: &[&str],
    at_first: &[&str],
) {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let authority = Authority::new();
    let ((l1, a1), (l2, a2), (l3, a3)) = (listen().await, listen().await, listen().await);
    let addresses = [a1, a2, a3];
    let good = |me: u32, name: &str, listener| {
        let handler = Recorder::new(name, 100 + u64::from(me));
        Node::start(me, authority.identity(name), handler, listener, &addresses)
    };
    let (identity, handler) = first(&authority);
    let nodes = vec![
        Node::start(0, identity, handler, l1, &addresses),
        good(1, "n2", l2),
        good(2, "n3", l3),
    ];
    until("both sides have said so", || log.count(at_others) >= 2 && log.count(at_first) >= 2)
        .await;
    nodes[1].send(1, 1);
    until("the others are up", || nodes[1].handler.ups() == 1 && nodes[2].handler.ups() == 1).await;
    nodes[1].send(1, 7);
    until("they talk", || nodes[2].handler.from(1).last() == Some(&7)).await;
    // Many more attempts follow, and nothing more is logged.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let lines = log.lines();
    assert_eq!((log.count(at_others), log.count(at_first)), (2, 2), "{lines:#?}");
    assert_eq!(nodes[0].handler.ups(), 0, "{lines:#?}");
    assert_eq!((nodes[1].handler.ups(), nodes[2].handler.ups()), (1, 1), "{lines:#?}");
    stop(nodes).await;
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_refused() {
    let first = |authority: &Authority| {
        let (chain, key) = Authority::new().sign("n1", GROUP);
        (identity(&authority.pem, &chain, &key), Recorder::new("n1", 1))
    };
    refused(first, &["from=", "invalid peer certificate"], &["node=", "alert"]).await;
}

#[tokio::test]
async fn a_node_that_trusts_another_authority_refuses() {
    let first = |authority: &Authority| {
        let (chain, key) = authority.sign("n1", GROUP);
        (identity(&Authority::new().pem, &chain, &key), Recorder::new("n1", 1))
    };
    refused(first, &["from=", "alert"], &["node=", "invalid peer certificate"]).await;
}

#[tokio::test]
async fn a_wrong_name_is_refused() {
    let first = |authority: &Authority| (authority.identity("n3"), Recorder::new("n1", 1));
    refused(first, &["node=\"n1\"", "wrong name"], &["node=", "refuses this node", "wrong name"])
        .await;
}

#[tokio::test]
async fn a_name_that_is_not_a_member_is_refused() {
    let first = |authority: &Authority| (authority.identity("n9"), Recorder::new("n9", 1));
    refused(
        first,
        &["node=\"n9\"", "unknown caller"],
        &["node=", "refuses this node", "unknown caller"],
    )
    .await;
}

#[tokio::test]
async fn another_group_is_refused() {
    let first = |authority: &Authority| {
        let mut handler = Recorder::new("n1", 1);
        handler.hello.group = "bank".to_owned();
        let (chain, key) = authority.sign("n1", "bank");
        (identity(&authority.pem, &chain, &key), handler)
    };
    refused(first, &["from=", "alert"], &["node=", "not valid for name"]).await;
}

#[tokio::test]
async fn versions_with_nothing_in_common_are_refused() {
    let first = |authority: &Authority| {
        let mut handler = Recorder::new("n1", 1);
        handler.hello.versions = Versions { min: 3, max: 4 };
        (authority.identity("n1"), handler)
    };
    refused(
        first,
        &["node=\"n1\"", "no common protocol version", "3 to 4"],
        &["refuses this node", "no common protocol version"],
    )
    .await;
}

/// A node that supports more versions, as in the middle of an upgrade, uses the highest common one.
#[tokio::test]
async fn versions_that_overlap_agree() {
    let authority = Authority::new();
    let ((l1, a1), (l2, a2)) = (listen().await, listen().await);
    let addresses = [a1, a2];
    let node = |me: u32, name: &str, max: u16, listener| {
        let mut handler = Recorder::new(name, 100 + u64::from(me));
        handler.hello.versions = Versions { min: 1, max };
        Node::start(me, authority.identity(name), handler, listener, &addresses)
    };
    let nodes = vec![node(0, "n1", 3, l1), node(1, "n2", 1, l2)];
    until("both are up", || nodes.iter().all(|node| node.handler.ups() == 1)).await;
    nodes[0].send(0, 1);
    nodes[1].send(0, 2);
    until("they talk", || nodes[1].handler.from(0) == [1] && nodes[0].handler.from(1) == [2]).await;
    stop(nodes).await;
}

#[tokio::test]
async fn another_configuration_is_refused() {
    let first = |authority: &Authority| {
        let mut handler = Recorder::new("n1", 1);
        handler.hello.config = 6;
        (authority.identity("n1"), handler)
    };
    refused(
        first,
        &["node=\"n1\"", "wrong configuration"],
        &["refuses this node", "wrong configuration"],
    )
    .await;
}

#[tokio::test]
async fn a_peer_that_the_node_does_not_admit_is_refused() {
    let first = |authority: &Authority| {
        let mut handler = Recorder::new("n1", 1);
        handler.hello.epochs = vec![666];
        (authority.identity("n1"), handler)
    };
    refused(first, &["node=\"n1\"", "overtaken"], &["refuses this node", "overtaken"]).await;
}

#[test]
fn an_error_names_the_text_that_is_not_valid() {
    let authority = Authority::new();
    let (chain, key) = authority.sign("n1", GROUP);
    let with = |authority: &str, chain: &str, key: &str| {
        let made = Identity::from_pem(authority.as_bytes(), chain.as_bytes(), key.as_bytes());
        match made {
            Err(IdentityError::Pem { what, .. }) => what,
            Err(IdentityError::Unusable(_)) => "unusable",
            Err(_) => "something else",
            Ok(_) => "fine",
        }
    };
    let (_, other) = authority.sign("n1", GROUP);
    assert_eq!(with(&authority.pem, &chain, &key), "fine");
    assert_eq!(with("", &chain, &key), "authority");
    assert_eq!(with(&authority.pem, "x", &key), "certificate");
    assert_eq!(with(&authority.pem, &chain, "x"), "key");
    assert_eq!(with(&authority.pem, &chain, &other), "unusable");
    let own = identity(&authority.pem, &chain, &key);
    let (chain, key) = authority.sign("n1", GROUP);
    let ca = authority.pem.as_bytes();
    assert!(own.renew(ca, chain.as_bytes(), key.as_bytes()).is_ok());
    assert!(own.renew(ca, chain.as_bytes(), other.as_bytes()).is_err());
}
