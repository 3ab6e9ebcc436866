//! Leases that the group has to keep, beside the locks of etcd: three members each, on the same
//! disk, through their JSON interfaces. Each is written to the disks of a majority before it is
//! answered.

use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::group::Group;
use crate::http::Http;
use crate::place::{Process, until};

/// The name `orders`, in base64 as the gateway of etcd wants it.
const NAME: &str = "b3JkZXJz";

/// The times to acquire a lease of a minute at the leader of a group, and to acquire and release
/// it, in turns with etcd if it is installed.
pub(crate) fn holds(group: &Group, times: usize) -> Vec<(&'static str, Vec<f64>)> {
    let mut doorway = Http::new(group.connect(group.leader()));
    let mut etcd = Etcd::start(group);
    let (mut ours, mut theirs) = ([vec![], vec![]], [vec![], vec![]]);
    for number in 0..times {
        let begin = Instant::now();
        let request = json!({ "request_id": number.to_string(), "ttl_ms": 60_000 });
        let fence = doorway.post("/v1/locks/orders/acquire", &request)["fence"].take();
        let held = begin.elapsed();
        doorway.post("/v1/locks/orders/release", &json!({ "fence": fence }));
        note(&mut ours, held, begin.elapsed());
        if let Some(etcd) = &mut etcd {
            let begin = Instant::now();
            let key = etcd.lock();
            let held = begin.elapsed();
            etcd.http.post("/v3/lock/unlock", &json!({ "key": key }));
            note(&mut theirs, held, begin.elapsed());
        }
    }
    let ([held, pair], [their_held, their_pair]) = (ours, theirs);
    let mut rows = vec![("long lease, acquire", held), ("long lease, acquire + release", pair)];
    if etcd.is_some() {
        rows.push(("etcd, 3 members, lock", their_held));
        rows.push(("etcd, 3 members, lock + unlock", their_pair));
    }
    rows
}

fn note([held, pairs]: &mut [Vec<f64>; 2], first: Duration, both: Duration) {
    held.push(first.as_secs_f64() * 1000.0);
    pairs.push(both.as_secs_f64() * 1000.0);
}

/// Three members of etcd, and a client of the one that leads, with a lease.
struct Etcd {
    _members: Vec<Process>,
    http: Http<TcpStream>,
    lease: Value,
}

impl Etcd {
    /// None if etcd is not installed.
    fn start(group: &Group) -> Option<Self> {
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
                let stream = TcpStream::connect(address).ok()?;
                stream.set_nodelay(true).ok()?;
                let mut http = Http::new(stream);
                let status = http.post("/v3/maintenance/status", &json!({}));
                let leads = status["leader"] == status["header"]["member_id"];
                leads.then_some(http)
            });
            found.is_some()
        });
        let mut http = found.expect("a leader");
        let lease = http.post("/v3/lease/grant", &json!({ "TTL": 60 }))["ID"].take();
        Some(Self { _members: members, http, lease })
    }

    fn lock(&mut self) -> Value {
        let request = json!({ "name": NAME, "lease": self.lease });
        self.http.post("/v3/lock/lock", &request)["key"].take()
    }
}
