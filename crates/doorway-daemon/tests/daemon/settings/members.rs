//! The doctor dials the other members.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use doorway_daemon::ca::{self, Authority, Leaf};
use doorway_daemon::doctor::{self, Finding, Verdict};
use doorway_daemon::settings::{Overrides, Settings};
use doorway_node::Node;

/// Make an authority and certificates of `a` and `b` in a directory.
fn furnish(directory: &Path) {
    ca::init(directory, "shop", 100).expect("an authority");
    let authority = Authority::open(directory).expect("the authority that was made");
    for name in ["a", "b"] {
        let leaf = Leaf { name, addresses: &[], days: 90, to: directory, renew: false };
        authority.node(&leaf).expect("a certificate");
    }
}

/// Write the configuration of one of two members, at these ports.
fn write(directory: &Path, me: &str, ports: [u16; 2]) -> std::path::PathBuf {
    let [a, b] = ports;
    let text = format!(
        "group = \"shop\"\nnode = \"{me}\"\ndata = \"data-{me}\"\nsocket = \"@no-such-doorway\"\n\
         [[member]]\nname = \"a\"\naddress = \"127.0.0.1:{a}\"\n\
         [[member]]\nname = \"b\"\naddress = \"127.0.0.1:{b}\"\n\
         [tls]\nca = \"ca.crt\"\ncertificate = \"{me}.crt\"\nkey = \"{me}.key\"\n"
    );
    let file = directory.join(format!("{me}.toml"));
    fs::write(&file, text).expect("a file of the test");
    file
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}

/// The doctor's finding about `b`, at `a`.
fn of_b(file: &Path) -> Finding {
    let findings = doctor::examine(Some(file), &Overrides::default());
    let found = findings
        .iter()
        .find(|finding| finding.area == "members" && !finding.what.contains("this node"));
    found.unwrap_or_else(|| panic!("nothing of b in {findings:#?}")).clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_tells_a_reachable_member_from_a_wrong_one() {
    let root =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("members-{}", std::process::id()));
    let (ours, theirs) = (root.join("ours"), root.join("theirs"));
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(&ours).unwrap();
    fs::create_dir_all(&theirs).unwrap();
    furnish(&ours);
    furnish(&theirs);
    let ports = [free_port(), free_port()];
    let (file, b) = (write(&ours, "a", ports), write(&ours, "b", ports));
    let node = Settings::load(&b, &Overrides::default()).unwrap().node;
    let node = Node::start(node).await.unwrap();
    let asked = file.clone();
    let found = tokio::task::spawn_blocking(move || of_b(&asked)).await.unwrap();
    assert_eq!(found.verdict, Verdict::Ok, "{found:?}");
    assert!(found.what.contains("b answers at 127.0.0.1"), "{found:?}");
    node.stop().await;
    // At the same address, with a certificate of the same name from another authority.
    let stranger = write(&theirs, "b", ports);
    let node = Settings::load(&stranger, &Overrides::default()).unwrap().node;
    let node = Node::start(node).await.unwrap();
    let asked = file.clone();
    let found = tokio::task::spawn_blocking(move || of_b(&asked)).await.unwrap();
    assert_eq!(found.verdict, Verdict::Wrong, "{found:?}");
    assert!(found.what.contains("shows a certificate for b.shop.doorway"), "{found:?}");
    node.stop().await;
    // A listener that closes the connection at once.
    let listener = TcpListener::bind(("127.0.0.1", ports[1])).unwrap();
    let closing = std::thread::spawn(move || drop(listener.accept()));
    let found = tokio::task::spawn_blocking(move || of_b(&file)).await.unwrap();
    assert!(found.what.contains("is not a node"), "{found:?}");
    closing.join().unwrap();
    fs::remove_dir_all(&root).unwrap();
}
