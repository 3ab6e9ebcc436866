//! HTTP over TCP: tokens, certificates, rights, and the `host` header.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use doorway_daemon::ca::{self, Authority, Leaf};
use doorway_daemon::certificate::certificates;
use doorway_daemon::listen::{Doors, Protocols, accept_tcp};
use doorway_daemon::service::Service;
use doorway_daemon::settings::{Overrides, Settings};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::client::{Answer, Listener, ask};
use crate::common::{PATIENCE, fresh};
use crate::server::{runtime, with_http};

pub(crate) const TOKEN: &str = "a-token-of-the-client-called-all";

const FILE: &str = "
data = \"data\"
socket = \"@doorway-no-such-socket\"
algorithm = \"readers-writers\"
[tls]
ca = \"ca.crt\"
certificate = \"node.crt\"
key = \"node.key\"
[http]
listen = \"127.0.0.1:0\"
hosts = [\"Locks.Example\"]
[[client]]
name = \"all\"
token_file = \"all.token\"
rights = [{ names = \"*\", may = [\"acquire\", \"inspect\", \"break\"] }]
[[client]]
name = \"ci\"
token_file = \"ci.token\"
rights = [{ names = \"deploy/*\", may = [\"acquire\", \"inspect\"] }]
[[client]]
name = \"runner\"
token_file = \"runner.token\"
rights = [{ names = \"deploy/*\", may = [\"acquire\"] }]
[limits]
ttl = \"2s\"
";

pub(crate) type Stream = StreamOwned<ClientConnection, TcpStream>;

/// A service over TCP, with an authority in a directory of its own.
pub(crate) struct Remote {
    pub(crate) place: PathBuf,
    pub(crate) address: SocketAddr,
    pub(crate) service: Service,
    _runtime: Runtime,
}

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.place);
    }
}

impl Remote {
    pub(crate) fn start() -> Self {
        Self::start_with(FILE, Protocols::Http)
    }

    /// A service that listens for clients of this protocol.
    pub(crate) fn serving(speaks: Protocols) -> Self {
        Self::start_with(FILE, speaks)
    }

    fn start_with(text: &str, speaks: Protocols) -> Self {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(fresh());
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(&place).expect("a directory can be made");
        furnish(&place);
        let settings = Settings::parse(text, &place.join("doorway.toml"), &Overrides::default());
        let settings = settings.unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let runtime = runtime();
        let (service, address) = runtime.block_on(async {
            let service = Service::start(&settings, None).await.expect("a service");
            let doors = Doors::from_settings(&settings).expect("certificates");
            let doors = with_http(&service, &settings, doors);
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = listener.local_addr().expect("an address");
            tokio::spawn(accept_tcp(service.clone(), listener, doors, speaks));
            (service, address)
        });
        Self { place, address, service, _runtime: runtime }
    }

    /// Open a connection that shows this certificate.
    pub(crate) fn connect(&self, certificate: Option<&str>) -> Stream {
        let read = |name: String| fs::read(self.place.join(name)).expect("a file");
        let chain = |name: &str| certificates(&read(format!("{name}.crt"))).expect("certificates");
        let mut roots = RootCertStore::empty();
        for root in chain("ca") {
            roots.add(root).expect("a root");
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots);
        let config = match certificate {
            None => config.with_no_client_auth(),
            Some(name) => {
                let key = PrivateKeyDer::from_pem_slice(&read(format!("{name}.key")));
                config.with_client_auth_cert(chain(name), key.expect("a key")).expect("a client")
            }
        };
        let name = ServerName::try_from("127.0.0.1").expect("an address");
        let connection = ClientConnection::new(Arc::new(config), name).expect("a connection");
        let stream = TcpStream::connect(self.address).expect("somebody listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time can be set");
        StreamOwned::new(connection, stream)
    }

    pub(crate) fn ask(
        &self,
        headers: &[(&str, &str)],
        what: (&str, &str),
        body: Option<&Value>,
    ) -> Answer {
        let host = self.address.to_string();
        let mut all = headers.to_vec();
        if !headers.iter().any(|(name, _)| *name == "host") {
            all.push(("host", &host));
        }
        ask(self.connect(None), what.0, what.1, &all, body)
    }

    fn acquire(&self, token: &str, lock: &str, body: &Value) -> Answer {
        let path = format!("/v1/locks/{lock}/acquire");
        self.ask(&[("authorization", &format!("Bearer {token}"))], ("POST", &path), Some(body))
    }
}

fn furnish(place: &Path) {
    ca::init(place, "local", 30).expect("an authority");
    let authority = Authority::open(place).expect("an authority");
    let addresses = ["127.0.0.1".to_owned()];
    let leaf = |name, addresses| Leaf { name, addresses, days: 7, to: place, renew: false };
    authority.node(&leaf("node", &addresses)).expect("a certificate");
    for client in ["ci", "stranger"] {
        authority.client(&leaf(client, &[])).expect("a certificate");
    }
    fs::write(place.join("all.token"), TOKEN).expect("a file");
    fs::write(place.join("ci.token"), CI).expect("a file");
    fs::write(place.join("runner.token"), RUNNER).expect("a file");
}

pub(crate) const CI: &str = "another-token-of-the-client-called-ci";
pub(crate) const RUNNER: &str = "the-token-of-the-client-called-runner";
const STATUS: (&str, &str) = ("GET", "/v1/status");

#[test]
fn clients_without_a_token_or_a_certificate_are_refused() {
    let remote = Remote::start();
    for path in ["/v1/status", "/metrics", "/openapi.json", "/v1/events", "/nothing"] {
        let refused = remote.ask(&[], ("GET", path), None);
        refused.problem(401, "unauthorized", "token");
        assert!(refused.head.contains("www-authenticate: bearer"), "{refused:?}");
        assert!(refused.head.contains("connection: close"), "it keeps nobody out: {refused:?}");
    }
    for wrong in ["Bearer nobody", "Bearer ", "Basic eDp5", "Bearer", TOKEN] {
        remote.ask(&[("authorization", wrong)], STATUS, None).problem(401, "unauthorized", "");
    }
    let token = format!("Bearer {TOKEN}");
    remote.ask(&[("authorization", &token)], STATUS, None).expect(200);
    let host = remote.address.to_string();
    let shown = |name: &str, headers: &[(&str, &str)]| {
        let headers = [headers, &[("host", host.as_str())]].concat();
        ask(remote.connect(Some(name)), "GET", "/v1/status", &headers, None)
    };
    shown("ci", &[]).expect(200);
    shown("stranger", &[]).problem(401, "unauthorized", "certificate");
    // If a token is shown, it has to be right.
    shown("ci", &[("authorization", "Bearer nobody")]).problem(401, "unauthorized", "");
}

/// A load balancer has no token. It learns whether the node serves, and nothing else.
#[test]
fn health_needs_no_identity_and_reveals_nothing_else() {
    let remote = Remote::start();
    let health = ("GET", "/health");
    let answered = remote.ask(&[], health, None);
    assert_eq!(answered.expect(200), json!({ "serving": true }));
    assert!(answered.head.contains("connection: close"), "it occupies no connection: {answered:?}");
    let token = format!("Bearer {TOKEN}");
    let known = remote.ask(&[("authorization", &token)], health, None).expect(200);
    assert!(known["view"].is_u64() && known["away"] == json!([]), "{known}");
    remote.ask(&[("authorization", "Bearer x")], health, None).problem(401, "unauthorized", "");
    remote.ask(&[("host", "evil.example")], health, None).problem(403, "forbidden", "evil");
    remote.ask(&[], ("GET", "/health/x"), None).problem(401, "unauthorized", "");
    remote.ask(&[], ("POST", "/health"), None).problem(405, "invalid", "method");
}

#[test]
fn only_its_own_names_and_addresses_are_answered() {
    let remote = Remote::start();
    let token = format!("Bearer {TOKEN}");
    let port = remote.address.port();
    let asked = |host: &str| remote.ask(&[("authorization", &token), ("host", host)], STATUS, None);
    for host in ["locks.example", "LOCKS.example.:443", "localhost", "[::1]:1", "10.1.2.3"] {
        asked(host).expect(200);
    }
    asked(&format!("node.local.doorway:{port}")).expect(200);
    for host in ["evil.example", "locks.example.evil", "127.0.0.1.evil.example", "locks"] {
        asked(host).problem(403, "forbidden", host);
    }
    asked("").problem(400, "invalid", "host");
}

#[test]
fn clients_can_do_only_what_they_are_allowed_to() {
    let remote = Remote::start();
    remote.acquire(CI, "other", &json!({})).problem(403, "forbidden", "client ci may not acquire");
    let lease = remote.acquire(CI, "deploy%2Fa", &json!({})).expect(200);
    let theirs = remote.acquire(TOKEN, "secret", &json!({})).expect(200);
    let bearer = format!("Bearer {CI}");
    let ci = |what: (&str, &str), body: Option<&Value>| {
        remote.ask(&[("authorization", &bearer)], what, body)
    };
    ci(("GET", "/v1/locks/secret"), None).problem(403, "forbidden", "inspect");
    ci(("GET", "/v1/locks/deploy%2Fa"), None).expect(200);
    let locks = ci(("GET", "/v1/locks"), None).expect(200);
    assert_eq!(locks["locks"].as_array().map(Vec::len), Some(1), "{locks}");
    let fence = json!({ "fence": lease["fence"] });
    ci(("POST", "/v1/locks/deploy%2Fa/break"), Some(&fence)).problem(403, "forbidden", "break");
    // A client can neither renew nor release what another client holds.
    let fence = json!({ "fence": theirs["fence"] });
    let released = ci(("POST", "/v1/locks/secret/release"), Some(&fence)).expect(200);
    assert_eq!(released, json!({ "released": false }));
    ci(("POST", "/v1/locks/secret/renew"), Some(&fence)).problem(403, "forbidden", "acquire");
    let host = remote.address.to_string();
    let headers = [("authorization", bearer.as_str()), ("host", &host)];
    let mut heard = Listener::new(remote.connect(None), "/v1/events", &headers);
    remote.acquire(TOKEN, "hidden", &json!({})).expect(200);
    remote.acquire(TOKEN, "deploy%2Fb", &json!({})).expect(200);
    assert_eq!(heard.next().unwrap().1["lock"], "deploy/b");
}

#[test]
fn the_same_request_id_of_two_clients_is_two_requests() {
    let remote = Remote::start();
    let body = json!({ "request_id": "r" });
    let one = remote.acquire(CI, "deploy%2Fa", &body).expect(200);
    remote.acquire(TOKEN, "deploy%2Fa", &body).problem(409, "not-free", "deploy/a");
    let again = remote.acquire(CI, "deploy%2Fa", &body).expect(200);
    assert_eq!(one["fence"], again["fence"]);
    assert_eq!(remote.service.sessions(), 1);
}

#[test]
fn the_expiry_of_certificates_is_among_the_metrics() {
    let remote = Remote::start();
    let token = format!("Bearer {TOKEN}");
    let text = remote.ask(&[("authorization", &token)], ("GET", "/metrics"), None).body;
    for which in ["node", "authority"] {
        let name =
            format!("doorway_certificate_expiry_timestamp_seconds{{certificate=\"{which}\"}} ");
        let value = text.lines().find_map(|line| line.strip_prefix(&name));
        let value: u64 = value.unwrap_or_else(|| panic!("{name} in {text}")).parse().unwrap();
        assert!(value > 1_790_000_000, "{value}");
    }
}

#[test]
fn exactly_the_files_of_the_page_need_no_token() {
    let remote =
        Remote::start_with(&FILE.replace("[http]\n", "[http]\npage = true\n"), Protocols::Http);
    for path in ["/page", "/page/live.css", "/page/js/live.js", "/page/js/dom.js"] {
        let file = remote.ask(&[], ("GET", path), None);
        assert_eq!(file.status, 200, "{path}: {file:?}");
        assert!(file.head.contains("content-security-policy: default-src 'none'"), "{file:?}");
        assert!(file.head.contains("x-content-type-options: nosniff"), "{file:?}");
    }
    let others =
        ["/page/", "/page/js/lab.js", "/page/../v1/status", "/pages", "/v1/group", "/v1/locks"];
    for path in others {
        remote.ask(&[], ("GET", path), None).problem(401, "unauthorized", "token");
    }
    remote.ask(&[], ("POST", "/page"), None).problem(401, "unauthorized", "token");
    let strange = [("host", "evil.example")];
    remote.ask(&strange, ("GET", "/page"), None).problem(403, "forbidden", "not called");
    let wrong = [("authorization", "Bearer wrong")];
    remote.ask(&wrong, ("GET", "/page"), None).problem(401, "unauthorized", "token");
    let right = format!("Bearer {TOKEN}");
    let known = [("authorization", right.as_str())];
    remote.ask(&known, ("GET", "/page/js/lab.js"), None).problem(404, "not-found", "no such file");
}

#[test]
fn without_the_setting_there_is_no_page() {
    let remote = Remote::start();
    remote.ask(&[], ("GET", "/page"), None).problem(401, "unauthorized", "token");
    let right = format!("Bearer {TOKEN}");
    let known = [("authorization", right.as_str())];
    remote.ask(&known, ("GET", "/page"), None).problem(404, "not-found", "nothing at this path");
}

#[test]
fn a_client_sees_its_own_locks_alone_in_the_list_of_the_group_and_records_no_others() {
    let remote = Remote::start();
    remote.acquire(TOKEN, "secret", &json!({})).expect(200);
    remote.acquire(CI, "deploy%2Fa", &json!({})).expect(200);
    let ci = format!("Bearer {CI}");
    let ci = [("authorization", ci.as_str())];
    for path in ["/v1/locks?group=true", "/v1/locks?group=true&order=wait"] {
        let list = remote.ask(&ci, ("GET", path), None).expect(200);
        assert_eq!(list["locks"].as_array().map(Vec::len), Some(1), "{list}");
        assert_eq!(list["locks"][0]["lock"], "deploy/a");
    }
    let body = json!({ "for_ms": 1 });
    let record = ("POST", "/v1/locks/secret/record");
    remote.ask(&ci, record, Some(&body)).problem(403, "forbidden", "");
}
