//! The servers that are compared, each with all the ways to it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use doorway_daemon::ca::{self, Authority, Leaf};
use doorway_daemon::listen::Doors;
use doorway_daemon::serve;
use doorway_daemon::settings::{Overrides, Settings};

use crate::TOKEN;
use crate::common::Scratch;
use crate::shared::pin::Placement;
use crate::shared::rivals::{Server, free_address, give, installed, postgres_server};
use crate::shared::table::{Table, progress};
use crate::wire::Way;

/// A server with the ways to it.
pub(crate) struct RunningServer {
    server: Server,
    pub(crate) ways: Vec<Way>,
}

impl RunningServer {
    /// The number of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.server.pid()
    }
}

/// Our service, with the ways to each of its doors.
pub(crate) struct DoorwayServer {
    server: Server,
    pub(crate) sessions: Vec<Way>,
    pub(crate) http: Vec<Way>,
    pub(crate) redis: Vec<Way>,
    pub(crate) etcd: Vec<Way>,
}

impl DoorwayServer {
    /// The number of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.server.pid()
    }
}

/// All servers in one placement. A server is idle while another one is measured.
pub(crate) struct Servers {
    pub(crate) ours: DoorwayServer,
    pub(crate) redis: Option<RunningServer>,
    pub(crate) postgres: Option<RunningServer>,
    pub(crate) etcd: Option<RunningServer>,
    _certificates: Scratch,
}

impl Servers {
    pub(crate) fn start(placement: Placement, rivals: bool, table: &mut Table) -> Self {
        progress(&format!("servers, {placement}"));
        let certificates = Scratch::new();
        make_certificates(certificates.path());
        let ours = ours(placement, certificates.path()).unwrap();
        let mut rival =
            |name: &str, start: fn(Placement, &Path) -> Result<RunningServer, String>| {
                let started = rivals.then(|| start(placement, certificates.path()))?;
                started
                    .map_err(|why| table.note(format!("{name}, {placement}: not measured, {why}.")))
                    .ok()
            };
        let (redis, postgres) = (rival("Redis", redis), rival("PostgreSQL", postgres));
        let etcd = rival("etcd", etcd);
        Self { ours, redis, postgres, etcd, _certificates: certificates }
    }
}

/// An authority, and the certificate `a` for 127.0.0.1.
fn make_certificates(place: &Path) {
    ca::init(place, "bench", 30).unwrap();
    let addresses = ["127.0.0.1".to_owned()];
    let leaf = Leaf { name: "a", addresses: &addresses, days: 30, to: place, renew: false };
    Authority::open(place).unwrap().node(&leaf).unwrap();
}

fn ours(placement: Placement, certificates: &Path) -> Result<DoorwayServer, String> {
    let (directory, ca) = (Scratch::new(), certificates.join("ca.crt"));
    let ports = [(); 4].map(|()| free_address());
    let [sessions, http, redis, etcd] = ports;
    let (here, there) = (directory.path().display(), certificates.display());
    let text = format!(
        "group = \"bench\"\nnode = \"a\"\nsocket = \"{here}/socket\"\ndata = \"{here}/data\"\n\
         algorithm = \"readers-writers\"\n[[member]]\nname = \"a\"\n\
         [tls]\nca = \"{there}/ca.crt\"\ncertificate = \"{there}/a.crt\"\nkey = \"{there}/a.key\"\n\
         [sessions]\nlisten = \"{sessions}\"\n[http]\nlisten = \"{http}\"\n\
         [redis]\nlisten = \"{redis}\"\n[etcd]\nlisten = \"{etcd}\"\n[[client]]\nname = \"bench\"\ntoken_file = \"token\"\n\
         rights = [{{ names = \"*\", may = [\"acquire\", \"inspect\"] }}]\n"
    );
    let file = directory.path().join("doorway.toml");
    let write = |file: &Path, text: &str| fs::write(file, text).map_err(|error| error.to_string());
    write(&file, &text)?;
    write(&directory.path().join("token"), TOKEN)?;
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = placement.command(1);
    command.arg(own).arg("--serve").arg(&file);
    let unix = Way::Unix(directory.path().join("socket"));
    let ways = |address| vec![unix.clone(), Way::Tls(address, ca.clone())];
    let [sessions, http, redis, etcd] = ports.map(ways);
    let server = Server::start(&mut command, String::new(), directory)?;
    Ok(DoorwayServer { server, sessions, http, redis, etcd })
}

/// Run the service with the settings in this file, on one thread that no other has to wake.
pub(crate) fn serve(file: &str) {
    let settings = Settings::load(Path::new(file), &Overrides::default()).unwrap();
    let doors = Doors::from_settings(&settings).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // A server that is started in the background may ignore this signal unless it waits for it.
    let stop = async { drop(tokio::signal::ctrl_c().await) };
    runtime.block_on(serve::run(settings, doors, stop)).unwrap();
}

fn redis(placement: Placement, certificates: &Path) -> Result<RunningServer, String> {
    installed("redis-server")?;
    let (directory, plain, tls) = (Scratch::new(), free_address(), free_address());
    let socket = directory.path().join("socket");
    let mut command = placement.command(1);
    command.args(["redis-server", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
    command.args(["--port", &plain.port().to_string(), "--tls-port", &tls.port().to_string()]);
    command.arg("--unixsocket").arg(&socket).args(["--tls-auth-clients", "no"]);
    command.arg("--tls-cert-file").arg(certificates.join("a.crt"));
    command.arg("--tls-key-file").arg(certificates.join("a.key"));
    let ca = certificates.join("ca.crt");
    command.arg("--tls-ca-cert-file").arg(&ca);
    let ways = vec![Way::Unix(socket), Way::Tcp(plain), Way::Tls(tls, ca)];
    let server = Server::start(&mut command, String::new(), directory)?;
    Ok(RunningServer { server, ways })
}

/// One member with its data on the disk, as it has to be for etcd.
fn etcd(placement: Placement, certificates: &Path) -> Result<RunningServer, String> {
    installed("etcd")?;
    let (directory, ca) = (Scratch::new(), certificates.join("ca.crt"));
    let [plain, tls, peers] = [(); 3].map(|()| free_address());
    let clients = format!("http://{plain},https://{tls}");
    let peer = format!("http://{peers}");
    let mut command = placement.command(1);
    command.args(["etcd", "--name", "default", "--data-dir"]).arg(directory.path().join("data"));
    command.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
    command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
    command.args(["--initial-cluster", &format!("default={peer}")]);
    command.arg("--cert-file").arg(certificates.join("a.crt"));
    command.arg("--key-file").arg(certificates.join("a.key"));
    let ways = vec![Way::Tcp(plain), Way::Tls(tls, ca)];
    let server = Server::start(&mut command, String::new(), directory)?;
    Ok(RunningServer { server, ways })
}

fn postgres(placement: Placement, certificates: &Path) -> Result<RunningServer, String> {
    let (directory, address) = (Scratch::new(), free_address());
    let mut command = postgres_server(placement, &directory)?;
    // The server accepts only a key that is its own and that nobody else can read.
    for (file, mode) in [("a.crt", 0o644), ("a.key", 0o600)] {
        let copy = directory.path().join(file);
        fs::copy(certificates.join(file), &copy).map_err(|error| error.to_string())?;
        fs::set_permissions(&copy, fs::Permissions::from_mode(mode))
            .map_err(|error| error.to_string())?;
        give(&copy)?;
    }
    let here = directory.path().display();
    let port = address.port();
    command.args(["-p", &port.to_string()]);
    for setting in [
        "listen_addresses=127.0.0.1".to_owned(),
        format!("unix_socket_directories={here}"),
        "ssl=on".to_owned(),
        format!("ssl_cert_file={here}/a.crt"),
        format!("ssl_key_file={here}/a.key"),
    ] {
        command.args(["-c", &setting]);
    }
    let ca = certificates.join("ca.crt");
    let unix = directory.path().join(format!(".s.PGSQL.{port}"));
    let ways = vec![Way::Unix(unix), Way::Tcp(address), Way::Tls(address, ca)];
    let server = Server::start(&mut command, String::new(), directory)?;
    Ok(RunningServer { server, ways })
}
