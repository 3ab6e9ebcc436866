//! One node of a group of three on this machine, which acquires a lock again and again.
//!
//! Make certificates in a directory as the documentation of the crate shows, then run
//! `cargo run -p doorway-node --example group -- NAME DIRECTORY` for each of `a`, `b` and `c`, in a
//! terminal of its own. Stop one of them, start it again, and see what the others do meanwhile.

use std::fs::read;
use std::path::PathBuf;
use std::time::Duration;

use doorway_node::{Config, MemberConfig, Node, TlsConfig};

type Error = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let me = arguments.next().ok_or("which one is this: a, b or c?")?;
    let directory = PathBuf::from(arguments.next().ok_or("where are the certificates?")?);
    let file = |name: String| read(directory.join(name));
    let members = [("a", 7401), ("b", 7402), ("c", 7403)].map(|(name, port)| MemberConfig {
        name: name.to_owned(),
        address: format!("127.0.0.1:{port}"),
    });
    let node = Node::start(Config {
        group: "shop".to_owned(),
        members: members.to_vec(),
        data: Some(directory.join(format!("{me}.data"))),
        tls: Some(TlsConfig {
            ca: file("ca.pem".to_owned())?,
            certificate: file(format!("{me}.pem"))?,
            key: file(format!("{me}.key"))?,
        }),
        me,
        ..Config::default()
    })
    .await?;
    let orders = node.open("orders")?;
    loop {
        match orders.lock().within(Duration::from_secs(5)).await {
            Ok(guard) => {
                println!("inside, with fence {:?}", guard.fence());
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            Err(error) => println!("{error}; away are {:?}", node.away()),
        }
    }
}
