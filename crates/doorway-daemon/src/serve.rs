//! Runs the service as a process, from its start to its end.

use std::io::{self, ErrorKind};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use doorway_node::members::BoxedFuture;
use doorway_node::views::StoreError;
use doorway_node::{EndReason, StartError, TlsConfig};
use doorway_protocol::Scope;
use doorway_sessions::ledger::{Ledger, LedgerContents, LedgerError, seconds_since_2026};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sd_notify::NotifyState;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::directory::{self, take_private};
use crate::listen::{
    Doors, Protocols, ReservedSocket, accept_tcp, accept_unix, bind_unix, reserve,
};
use crate::members::Members;
use crate::service::{REJECTED, Service};
use crate::settings::{Settings, Socket};
use crate::task;
use crate::tls::ReloadError;

/// How long to wait for a process that was killed to let go of the directory. A client that started
/// this node waits five seconds for it, and is to learn the reason.
const PATIENCE: Duration = Duration::from_secs(4);

/// How many descriptors are needed besides those of sessions: for the directory, listeners, links,
/// and connections that are refused, with their processes.
const OTHER_FILES: usize = 100 + 2 * REJECTED;

/// Why the service does not run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another node serves at this address.
    #[error("another node serves at {0} already")]
    Served(String),
    /// The address cannot be used.
    #[error("cannot listen at {address}: {error}")]
    Listen {
        /// The address.
        address: String,
        /// What the system said.
        error: io::Error,
    },
    /// The directory cannot be used.
    #[error("the directory {} cannot be used: {reason}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it, and what would be right.
        reason: String,
    },
    /// The ledger cannot be opened.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The certificates cannot be used.
    #[error(transparent)]
    Certificates(#[from] ReloadError),
    /// The node did not start.
    // Not a source: its text has its own cause in it, which would be printed twice.
    #[error("{0}")]
    Start(StartError),
    /// The store by which the members of the group agree cannot be opened, or has ended.
    #[error("the members of the group cannot be kept: {0}")]
    Members(String),
    /// The node has ended by itself, as when another process has taken its place.
    #[error("the node has ended: {0}")]
    Ended(EndReason),
}

impl From<StartError> for ServeError {
    fn from(error: StartError) -> Self {
        Self::Start(error)
    }
}

/// How long the client that drained the service may take to read the answer.
const LAST_ANSWER: Duration = Duration::from_millis(100);

/// Run a service until `shutdown` is ready, or until it was idle for as long as the settings say.
pub fn run<'a>(
    settings: Settings,
    doors: Doors,
    shutdown: impl Future<Output = ()> + Send + 'a,
) -> BoxedFuture<'a, Result<(), ServeError>> {
    boxed(settings, doors, Box::pin(shutdown))
}

/// Not generic, so that the service is compiled in this crate and not in each that runs it.
fn boxed(
    settings: Settings,
    doors: Doors,
    shutdown: BoxedFuture<'_, ()>,
) -> BoxedFuture<'_, Result<(), ServeError>> {
    Box::pin(run_until(settings, doors, shutdown))
}

async fn run_until(
    mut settings: Settings,
    doors: Doors,
    shutdown: BoxedFuture<'_, ()>,
) -> Result<(), ServeError> {
    let reserved = match &settings.socket {
        // The process that has the name serves. Another one that starts at the same moment finds
        // that out before it changes anything. With a file, the directory decides.
        Some(Socket::Abstract(name)) => Some(reserve_name(name, &settings)?),
        _ => None,
    };
    let _kept = match &settings.node.data {
        Some(path) if settings.scope == Scope::User => {
            let wrong = |reason| ServeError::Directory { path: path.clone(), reason };
            Some(take_private(path).map_err(wrong)?)
        }
        _ => None,
    };
    if settings.scope == Scope::User && settings.node.first_epoch == 0 {
        // If the directory was lost, fences grow all the same, because they begin with the time.
        settings.node.first_epoch = seconds_since_2026() / 600;
    }
    check_kind(&settings)?;
    let ledger = ledger(&settings).await?;
    // The log of this may be in the directory, so the directory comes first.
    allow_files(&mut settings);
    // From here on clients can connect. Before, a client is refused and tries again, so that it
    // never takes a process that cannot start for a node.
    let (unix, _file) = match (&settings.socket, reserved) {
        (Some(socket), Some(name)) => (Some(name.listen().map_err(not_listening(socket))?), None),
        (Some(socket), None) => {
            let (listener, file) = bind_unix(socket).map_err(not_listening(socket))?;
            (Some(listener), file)
        }
        (None, _) => (None, None),
    };
    let mut listeners = Vec::new();
    for (address, speaks) in [
        (&settings.sessions, Protocols::Native),
        (&settings.http, Protocols::Http),
        (&settings.redis, Protocols::Redis),
        (&settings.etcd, Protocols::Etcd),
    ] {
        if let Some(address) = address {
            listeners.push((listen_tcp(address).await?, speaks));
        }
    }
    // No connection is accepted before all listeners are there.
    let members = Members::open(&settings, ledger.as_ref().map(|(_, former)| former)).await?;
    let service = start(&settings, ledger, members).await?;
    let http = doors.http.clone();
    let http = http.unwrap_or_else(|| crate::http::door(&service, &settings, &doors));
    let redis = settings.redis.as_ref();
    let redis = redis.map(|_| crate::redis::door(&service, &doors, settings.redlock));
    let etcd = settings.etcd.as_ref().map(|_| crate::etcd::door(&service, &doors));
    let doors = Doors { http: Some(http), redis, etcd, ..doors };
    let mut tasks = JoinSet::new();
    // First: a client that is answered may send a signal at once.
    watch_files(&mut tasks, &service, &settings, doors.clone());
    if let Some(listener) = unix {
        tasks.spawn(accept_unix(service.clone(), listener, doors.clone()));
    }
    for (listener, speaks) in listeners {
        tasks.spawn(accept_tcp(service.clone(), listener, doors.clone(), speaks));
    }
    if service.store().is_some() {
        tasks.spawn(task::boxed(look_for_group(service.clone())));
        tasks.spawn(task::boxed(watch_rules(service.clone())));
    }
    tell_systemd(NotifyState::Ready);
    tasks.spawn(task::boxed(watchdog()));
    tracing::info!(node = service.node().name(), "serving");
    let ended = wait(&service, &settings, shutdown).await;
    tell_systemd(NotifyState::Stopping);
    tracing::info!("stopping");
    service.stop().await;
    tasks.shutdown().await;
    ended
}

/// Read certificates and settings again when they change.
fn watch_files(tasks: &mut JoinSet<()>, service: &Service, settings: &Settings, doors: Doors) {
    if let Some(certificates) = doors.certificates {
        certificates.remind();
        let (node, shown) = (service.node().clone(), doors.tls);
        tasks.spawn(task::boxed(async move {
            let renewed = |tls: &TlsConfig, config| {
                if let Some(shown) = &shown {
                    shown.set(config);
                }
                node.renew(tls).map_err(|error| error.to_string())
            };
            certificates.watch(renewed).await;
        }));
    }
    if let Some(current) = doors.settings {
        // The limit of files is known only now.
        current.write().limits.files = settings.limits.files;
        tasks.spawn(task::boxed(crate::reload::watch(service.clone(), current)));
    }
}

/// Raise the limit of open files, and limit connections and processes to what the system allows.
fn allow_files(settings: &mut Settings) {
    let (asked, most) = (settings.limits.connections, raise_files().saturating_sub(OTHER_FILES));
    settings.limits.files = most.max(1);
    if most < asked {
        tracing::warn!(
            asked,
            most,
            "the system allows fewer open files than `connections` under [limits] may need"
        );
    }
}

/// How many files this number of connections may need: a session that other processes inherit, or
/// that lives with a process, has a descriptor of that process too.
pub(crate) fn files_for(connections: usize) -> usize {
    connections.saturating_mul(2).saturating_add(OTHER_FILES)
}

/// How many connections this number of files is surely enough for.
pub(crate) fn connections_for(files: usize) -> usize {
    files.saturating_sub(OTHER_FILES) / 2
}

/// Raise the limit of open files as far as the system allows, and return it.
fn raise_files() -> usize {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // If it is refused, the limit stays as it was.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(allowed).unwrap_or(usize::MAX)
}

/// Wait until there is a reason to stop.
async fn wait(
    service: &Service,
    settings: &Settings,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let mut shutdown = pin!(shutdown);
    tokio::select! {
        () = &mut shutdown => Ok(()),
        reason = service.ended() => Err(ServeError::Ended(reason)),
        reason = store_ended(service) => Err(ServeError::Members(reason)),
        () = service.left() => {
            tracing::info!("the node ends because it was drained");
            // So that the client reads the answer.
            sleep(LAST_ANSWER).await;
            Ok(())
        }
        () = idle(service, settings.idle_stop) => {
            tracing::info!("the node stops because it was idle");
            Ok(())
        }
    }
}

/// Wait until the store of the members has ended by itself, and learn why.
async fn store_ended(service: &Service) -> String {
    match service.store() {
        Some(members) => members.ended().await,
        None => std::future::pending().await,
    }
}

/// Until this node belongs to a group, log what an operator has to do.
async fn look_for_group(service: Service) {
    if let Some(members) = service.store() {
        members.look_for_group().await;
    }
}

/// Log how the settings differ from the rules on which the group has agreed.
async fn watch_rules(service: Service) {
    if let Some(members) = service.store() {
        members.watch_rules().await;
    }
}

/// Wait until there was no session and no connection for this time.
async fn idle(service: &Service, time: Option<Duration>) {
    let Some(time) = time else { return std::future::pending().await };
    loop {
        let changed = service.changed();
        let used = service.sessions() > 0 || service.connections() > 0;
        tokio::select! {
            () = changed => {}
            () = sleep(time), if !used => return,
        }
    }
}

/// Take the name of an abstract socket. If another node has it, arguments that could not work are
/// an error all the same.
fn reserve_name(name: &str, settings: &Settings) -> Result<ReservedSocket, ServeError> {
    let reserved = reserve(name);
    if reserved.as_ref().is_err_and(|error| error.kind() == ErrorKind::AddrInUse)
        && let Some(path) = &settings.node.data
        && let Err(error) = directory::examine(path, settings.scope == Scope::User)
    {
        return Err(ServeError::Directory { path: path.clone(), reason: error.to_string() });
    }
    reserved.map_err(not_listening(&Socket::Abstract(name.to_owned())))
}

/// Why nobody can listen at a socket.
fn not_listening(socket: &Socket) -> impl FnOnce(io::Error) -> ServeError {
    let address = socket.to_string();
    |error| match error.kind() {
        ErrorKind::AddrInUse => ServeError::Served(address),
        _ => ServeError::Listen { address, error },
    }
}

async fn listen_tcp(address: &str) -> Result<TcpListener, ServeError> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|error| ServeError::Listen { address: address.to_owned(), error })
}

/// Refuse to run with a fixed list of members in the directory of a node whose group agrees on its
/// members: its epochs would begin below the views of that group, and fences would go back.
fn check_kind(settings: &Settings) -> Result<(), ServeError> {
    let Some(path) = settings.node.data.as_ref().filter(|_| settings.members.is_none()) else {
        return Ok(());
    };
    let found = doorway_members::group_of(path);
    match found.map_err(|error| ServeError::Members(error.to_string()))? {
        None => Ok(()),
        Some(cluster) => {
            let reason = format!(
                "it belongs to group {cluster:032x}, which agrees on its members, but the settings \
                 have no [members]: restore [members], or name an empty directory with `data`"
            );
            Err(ServeError::Directory { path: path.clone(), reason })
        }
    }
}

/// Open the ledger of the directory. A process that was killed may take a moment to let go of it.
async fn ledger(settings: &Settings) -> Result<Option<(Ledger, LedgerContents)>, ServeError> {
    let Some(directory) = &settings.node.data else { return Ok(None) };
    let doors = [&settings.sessions, &settings.http, &settings.redis, &settings.etcd];
    let tcp = doors.iter().any(|door| door.is_some());
    let mut waited = Duration::ZERO;
    loop {
        match Ledger::open(directory, tcp, settings.limits.ttl) {
            // Two nodes were started at once, and the other one was faster.
            Err(LedgerError::InUse(_)) if answers(settings.socket.as_ref()) => {
                return Err(ServeError::Served(directory.display().to_string()));
            }
            Err(LedgerError::InUse(_)) if waited < PATIENCE => {
                let pause = Duration::from_millis(20);
                sleep(pause).await;
                waited += pause;
            }
            Err(LedgerError::InUse(path)) => {
                let reason = match &settings.socket {
                    // We have the name, so the other node cannot be there.
                    Some(socket @ Socket::Abstract(_)) => format!(
                        "another node uses it, but does not serve at {socket} here: it runs in \
                         another network namespace, as a container has, or at another socket; stop \
                         it, or give this node a directory of its own with `--data`"
                    ),
                    _ => "another node uses it; stop that node, or name another directory with \
                          `data` in the file or `--data`"
                        .to_owned(),
                };
                return Err(ServeError::Directory { path, reason });
            }
            Err(LedgerError::Io { what, path, source }) => {
                let reason = format!("cannot {what} {}: {source}", path.display());
                return Err(unusable(directory, &source, &reason));
            }
            other => return Ok(Some(other?)),
        }
    }
}

/// Start the service around its node.
async fn start(
    settings: &Settings,
    ledger: Option<(Ledger, LedgerContents)>,
    members: Option<Members>,
) -> Result<Service, ServeError> {
    let started = Service::start_with(settings, ledger, members).await;
    started.map_err(|error| match (&error, &settings.node.data) {
        (StartError::Store(StoreError::Io { source, .. }), Some(directory)) => {
            unusable(directory, source, &error.to_string())
        }
        _ => ServeError::Start(error),
    })
}

/// The error of a directory that cannot be used for this reason, with what to do about it.
fn unusable(directory: &Path, error: &io::Error, reason: &str) -> ServeError {
    let remedy = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "make room".to_owned(),
        _ => {
            let (user, place) = (rustix::process::geteuid().as_raw(), directory.display());
            format!("let `install -d -m 700 -o {user} {place}` make it")
        }
    };
    let reason = format!("{reason}; {remedy}, or name another with `data` in the file or `--data`");
    ServeError::Directory { path: directory.to_owned(), reason }
}

/// Whether a node serves at a socket that is a file.
fn answers(socket: Option<&Socket>) -> bool {
    match socket {
        Some(Socket::File(path, _)) => UnixStream::connect(path).is_ok(),
        _ => false,
    }
}

/// Tell systemd about a change, if systemd started this process.
fn tell_systemd(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::warn!("cannot notify systemd: {error}");
    }
}

/// Send systemd a heartbeat three times in each interval of its watchdog, if it has one.
async fn watchdog() {
    let Some(interval) = sd_notify::watchdog_enabled() else { return };
    loop {
        tell_systemd(NotifyState::Watchdog);
        sleep(interval / 3).await;
    }
}

#[cfg(test)]
mod tests {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::{SocketAddr, UnixListener as StdListener};

    use super::*;
    use crate::settings::Overrides;

    fn settings(data: &str, socket: &str) -> Settings {
        let file = Path::new("/nowhere/doorway.toml");
        let text = format!("data = \"{data}\"\nsocket = \"@{socket}\"");
        Settings::parse(&text, file, &Overrides::default()).unwrap()
    }

    /// A node that cannot start; the reason.
    async fn reason(settings: Settings) -> String {
        let error = run(settings, Doors::default(), std::future::pending()).await.unwrap_err();
        assert!(matches!(error, ServeError::Directory { .. }), "{error:?}");
        error.to_string()
    }

    #[tokio::test]
    async fn a_directory_that_cannot_be_made_is_an_error_with_its_remedy() {
        let said = reason(settings("/proc/no/such/place", "doorway-never-served")).await;
        for part in ["/proc/no/such/place", "cannot create", "install -d", "--data"] {
            assert!(said.contains(part), "{said}");
        }
    }

    /// As in another network namespace, where the same name is another socket.
    #[tokio::test(start_paused = true)]
    async fn a_directory_of_a_node_elsewhere_is_an_error_with_its_cause() {
        let data = std::env::temp_dir().join(format!("doorway-elsewhere-{}", std::process::id()));
        let (_ledger, _) = Ledger::open(&data, false, PATIENCE).unwrap();
        let name = format!("doorway-elsewhere-{}", std::process::id());
        let ended = tokio::spawn(reason(settings(&data.display().to_string(), &name)));
        sleep(PATIENCE / 2).await;
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let connected = UnixStream::connect_addr(&address);
        assert_eq!(connected.unwrap_err().kind(), ErrorKind::ConnectionRefused, "it may not serve");
        let said = ended.await.unwrap();
        for part in [&data.display().to_string(), "another network namespace", "--data"] {
            assert!(said.contains(part), "{said}");
        }
        std::fs::remove_dir_all(data).unwrap();
    }

    #[tokio::test]
    async fn where_a_node_serves_already_impossible_arguments_are_still_errors() {
        let name = format!("doorway-served-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let _listener = StdListener::bind_addr(&address).unwrap();
        let said = reason(settings("/proc/no/such/place", &name)).await;
        assert!(said.contains("/proc/no/such is not a directory"), "{said}");
        let data = std::env::temp_dir().join("doorway-never-made").display().to_string();
        let served = run(settings(&data, &name), Doors::default(), std::future::pending()).await;
        assert!(matches!(served, Err(ServeError::Served(_))), "{served:?}");
        assert!(!Path::new(&data).exists());
    }
}
