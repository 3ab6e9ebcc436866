//! What a node reports about itself and its clients, and the renewal of its certificates.

use std::time::Duration;

use doorway_node::{Config, Name, Node, SessionDescriber, TlsConfig};

use crate::common::{Authority, group, start};

const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn sessions_say_who_they_are_also_to_other_members() {
    let (_scratch, mut configs) = group(2, &[]);
    // The first character shifts the others, of two bytes each, to odd offsets.
    configs[0].describe = Some(SessionDescriber::new(|session| {
        (session < 3).then(|| format!("{session}{}", "ä".repeat(150)))
    }));
    let nodes = start(&configs).await;
    let [one, two, three] = [(); 3].map(|()| nodes[0].session());
    let _held = nodes[0].lock("a").session(one).within(PATIENCE).await.unwrap();
    let _other = nodes[0].lock("b").session(three).within(PATIENCE).await.unwrap();
    let _nobody = nodes[0].lock("c").within(PATIENCE).await.unwrap();
    let waiting = tokio::spawn(nodes[0].lock("a").session(two).within(PATIENCE));
    while nodes[0].counters().waiting == 0 {
        tokio::task::yield_now().await;
    }
    let said = |session: u64| Some(format!("{session}{}", "ä".repeat(99)));
    let why = nodes[1].why("a").await.unwrap();
    assert_eq!(why.holders[0].client, said(1));
    assert_eq!(why.elsewhere[0].client, said(2));
    assert_eq!(nodes[0].why("a").await.unwrap().waiters[0].client, said(2));
    assert_eq!(nodes[1].why("b").await.unwrap().holders[0].client, None);
    assert_eq!(nodes[1].why("c").await.unwrap().holders[0].client, None);
    assert!(nodes[1].why("").await.is_err());
    waiting.abort();
}

#[tokio::test]
async fn locks_are_listed_in_the_order_of_their_names() {
    let node = Node::start(Config {
        describe: Some(SessionDescriber::new(|session| Some(format!("s{session}")))),
        ..Config::default()
    });
    let node = node.await.unwrap();
    assert_eq!(
        (node.name(), node.group(), node.members()),
        ("node", "local", vec!["node".to_owned()])
    );
    let session = node.session();
    let mut guards = Vec::new();
    for number in (0..200).rev() {
        let name = format!("job/{number:03}");
        guards.push(node.lock(&name).session(session).await.unwrap());
    }
    guards.push(node.lock("other").await.unwrap());
    drop(node.lock("job/free").await.unwrap());
    let waiting = tokio::spawn(node.lock("job/002").within(PATIENCE));
    while node.counters().waiting == 0 {
        tokio::task::yield_now().await;
    }
    let names = |prefix: &str, after: Option<&str>, limit| -> Vec<String> {
        let after = after.map(|after| Name::new(after).unwrap());
        let locks = node.locks(prefix, after.as_ref(), limit, |_| true);
        locks.iter().map(|clients| clients.lock.to_string()).collect()
    };
    assert_eq!(names("job/", None, 3), ["job/000", "job/001", "job/002"]);
    assert_eq!(names("job/", Some("job/002"), 2), ["job/003", "job/004"]);
    assert_eq!(names("job/", Some("job/0025"), 1), ["job/003"]);
    assert_eq!(names("", Some("job/198"), 10), ["job/199", "other"]);
    assert_eq!(names("", None, usize::MAX).len(), 201);
    assert!(names("", None, 0).is_empty() && names("x", None, 9).is_empty());
    let odd = |name: &Name| name.as_str().ends_with(['1', '3']);
    let locks = node.locks("", Some(&Name::new("job/001").unwrap()), 2, odd);
    assert_eq!(
        locks.iter().map(|clients| clients.lock.as_str()).collect::<Vec<_>>(),
        ["job/003", "job/011"]
    );
    let locks = node.locks_by_wait("job/", 3, |name| name.as_str() != "job/198");
    assert_eq!(
        locks.iter().map(|clients| clients.lock.as_str()).collect::<Vec<_>>(),
        ["job/002", "job/199", "job/197"],
        "the lock with the longest wait comes first, then the locks that were entered first"
    );
    let clients = node.clients_of(&Name::new("job/002").unwrap()).unwrap();
    assert_eq!(node.clients_of(&Name::new("job/free").unwrap()), None);
    assert_eq!(node.open("job/002").unwrap().waiting(), 1);
    let (inside, waits) = (&clients.inside, &clients.waiting);
    assert_eq!((inside.len(), waits.len(), waits[0].place), (1, 1, 0));
    assert_eq!(inside[0].client.as_deref(), Some(&*format!("s{}", session.number())));
    assert_eq!((inside[0].node.as_str(), waits[0].client.as_ref()), ("node", None));
    assert!(inside[0].fence.is_some());
    waiting.abort();
    drop(guards);
}

/// Both members change to certificates of another authority while they are connected.
#[tokio::test]
async fn certificates_are_renewed_without_a_restart() {
    let (_scratch, configs) = group(2, &[]);
    let authority = Authority::new();
    let issued = |node: &str| {
        let (certificate, key) = authority.issue(node, "test");
        let (ca, certificate) = (authority.pem().into_bytes(), certificate.into_bytes());
        TlsConfig { ca, certificate, key: key.into_bytes() }
    };
    let nodes = start(&configs).await;
    drop(nodes[0].lock("orders").within(PATIENCE).await.unwrap());
    let error = nodes[0].renew(&issued("n2")).unwrap_err();
    assert!(error.to_string().contains("not issued for `n1.test.doorway`"), "{error}");
    let mixed = TlsConfig { key: issued("n1").key, ..issued("n1") };
    assert!(nodes[0].renew(&mixed).is_err());
    nodes[0].renew(&issued("n1")).unwrap();
    let connections = |node: &Node| node.counters().links[0].1.traffic.connections;
    drop(nodes[1].lock("orders").within(PATIENCE).await.unwrap());
    assert_eq!(connections(&nodes[0]), 1, "the connection lives on");
    // A node that trusts only the new authority, with a certificate of it.
    nodes[1].stop().await;
    let again = Config { tls: Some(issued("n2")), ..configs[1].clone() };
    let again = Node::start(again).await.unwrap();
    assert!(again.lock("orders").within(PATIENCE).await.is_ok());
    assert!(Node::alone().renew(&issued("n1")).is_ok());
}
