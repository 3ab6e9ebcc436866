//! etcd with three members, through its JSON gateway.

use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::group::Group;
use crate::http::Http;
use crate::others::{HOLDER, LockService};
use crate::place::{Process, until};

/// Its name in the results.
pub(crate) const NAME: &str = "etcd, 3 members";

/// The names `orders` and `silent`, in base64 as the gateway of etcd wants them.
const ORDERS: &str = "b3JkZXJz";
const SILENT: &str = "c2lsZW50";

/// Three members of etcd, and a client of the one that leads, with a lease.
pub(crate) struct Etcd {
    _members: Vec<Process>,
    /// The address of the leader for clients.
    address: String,
    http: Http<TcpStream>,
    lease: Value,
    /// The key of the lock, while it is held.
    key: Value,
}

impl Etcd {
    /// None if etcd is not installed.
    pub(crate) fn start(group: &Group) -> Option<Self> {
        let mut version = Command::new("etcd");
        version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        if !version.status().is_ok_and(|status| status.success()) {
            eprintln!("etcd is not installed: it is left out");
            return None;
        }
        let ports: Vec<_> =
            (0..6).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let addresses: Vec<String> =
            ports.iter().map(|port| port.local_addr().expect("its number").to_string()).collect();
        drop(ports);
        let (clients, peers) = addresses.split_at(3);
        let cluster: Vec<String> =
            peers.iter().enumerate().map(|(number, it)| format!("m{number}=http://{it}")).collect();
        let member = |number: usize| {
            let [client, peer] =
                [&clients[number], &peers[number]].map(|it| format!("http://{it}"));
            let name = format!("m{number}");
            let mut etcd = Command::new("etcd");
            etcd.args(["--name", &name, "--data-dir"])
                .arg(group.place.file(&format!("etcd-{name}")));
            etcd.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
            etcd.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
            etcd.args(["--initial-cluster", &cluster.join(",")]);
            Process::spawn(etcd.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()))
        };
        let members = (0..3).map(member).collect();
        // The one that leads answers a status that names itself as the leader.
        let mut found = None;
        until("etcd has a leader", || {
            found = clients.iter().find_map(|address| {
                let mut http = connect(address)?;
                let status = http.post("/v3/maintenance/status", &json!({}));
                let leads = status["leader"] == status["header"]["member_id"];
                leads.then_some((address.clone(), http))
            });
            found.is_some()
        });
        let (address, mut http) = found.expect("a leader");
        let lease = grant(&mut http, 60);
        Some(Self { _members: members, address, http, lease, key: Value::Null })
    }
}

fn connect(address: &str) -> Option<Http<TcpStream>> {
    let stream = TcpStream::connect(address).ok()?;
    stream.set_nodelay(true).ok()?;
    Some(Http::new(stream))
}

/// A lease of this many seconds.
fn grant(http: &mut Http<TcpStream>, seconds: u64) -> Value {
    http.post("/v3/lease/grant", &json!({ "TTL": seconds }))["ID"].take()
}

fn lock(http: &mut Http<TcpStream>, name: &str, lease: &Value) -> Value {
    http.post("/v3/lock/lock", &json!({ "name": name, "lease": lease }))["key"].take()
}

impl LockService for Etcd {
    fn name(&self) -> &'static str {
        NAME
    }

    fn acquire(&mut self) {
        self.key = lock(&mut self.http, ORDERS, &self.lease);
    }

    fn release(&mut self) {
        self.http.post("/v3/lock/unlock", &json!({ "key": self.key }));
    }

    fn next_in(&mut self) -> Duration {
        let mut holder = connect(&self.address).expect("a leader");
        let lease = grant(&mut holder, HOLDER.as_secs());
        // The lease counts from here, and is never renewed.
        let begin = Instant::now();
        lock(&mut holder, SILENT, &lease);
        let key = lock(&mut self.http, SILENT, &self.lease);
        let time = begin.elapsed();
        self.http.post("/v3/lock/unlock", &json!({ "key": key }));
        time
    }
}
