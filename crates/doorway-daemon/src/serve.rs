//! The service as a process runs it, from its start to its end.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use doorway_node::{StartError, TlsConfig};
use doorway_protocol::Scope;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sd_notify::NotifyState;
use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::ledger::{Former, Ledger, LedgerError, seconds_since_2026};
use crate::listen::{Doors, SocketFile, Speaks, accept_tcp, accept_unix, bind_unix};
use crate::service::{Service, TURNED};
use crate::settings::{Settings, Socket};
use crate::tls::ReloadError;

/// How long a process that dies may keep the directory.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many files are needed besides those of connections: the directory, the doors, the links, and
/// those who are turned away, with their processes.
const OTHER_FILES: usize = 100 + 2 * TURNED;

/// Why the service does not run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another process serves there already.
    #[error("another node serves at {0} already")]
    Served(String),
    /// Nobody can listen there.
    #[error("cannot listen at {address}: {error}")]
    Listen {
        /// The address.
        address: String,
        /// What the system said.
        error: io::Error,
    },
    /// The directory is not safe to use.
    #[error("the directory {} cannot be used: {reason}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it, and what would be right.
        reason: String,
    },
    /// There is no ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The certificates cannot be used.
    #[error(transparent)]
    Certificates(#[from] ReloadError),
    /// The node did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The node has ended by itself.
    #[error("the node has ended: another process with its name and directory has taken its place")]
    Ended,
}

/// Run a service until it is told to stop, or until nobody has used it for as long as the settings
/// say. What it needs to know of TCP and HTTP is in `doors`.
pub async fn run(
    mut settings: Settings,
    doors: Doors,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let abstract_first = match &settings.socket {
        // Whoever has the name serves; another one that starts at the same moment finds that out
        // before it touches anything. With a file it is the directory that decides.
        Some(socket @ Socket::Abstract(_)) => Some(listen_unix(socket)?),
        _ => None,
    };
    let _kept = match &settings.node.data {
        Some(directory) if settings.scope == Scope::User => Some(private(directory)?),
        _ => None,
    };
    if settings.scope == Scope::User && settings.node.first_epoch == 0 {
        // The directory may be lost; the time is not, so fences grow all the same.
        settings.node.first_epoch = seconds_since_2026() / 600;
    }
    let ledger = ledger(&settings).await?;
    // What this says goes to a log that may be in the directory.
    allow_files(&mut settings);
    let unix = match &settings.socket {
        Some(socket) => Some(abstract_first.map_or_else(|| listen_unix(socket), Ok)?),
        None => None,
    };
    let (unix, _file) = unix.unzip();
    let mut listeners = Vec::new();
    for (address, speaks) in [(&settings.sessions, Speaks::Native), (&settings.http, Speaks::Http)]
    {
        if let Some(address) = address {
            listeners.push((listen_tcp(address).await?, speaks));
        }
    }
    // Nobody is let in anywhere before all doors are there.
    let service = Service::start(&settings, ledger).await?;
    let http = doors.http.clone();
    let http = http.unwrap_or_else(|| crate::http::door(&service, &settings, &doors));
    let doors = Doors { http: Some(http), ..doors };
    let mut tasks = JoinSet::new();
    if let Some(listener) = unix {
        tasks.spawn(accept_unix(service.clone(), listener, doors.clone()));
    }
    for (listener, speaks) in listeners {
        tasks.spawn(accept_tcp(service.clone(), listener, doors.clone(), speaks));
    }
    if let Some(certificates) = doors.certificates {
        certificates.remind();
        let (node, shown) = (service.node().clone(), doors.tls);
        tasks.spawn(async move {
            let renewed = |tls: &TlsConfig, config| {
                if let Some(shown) = &shown {
                    shown.set(config);
                }
                node.renew(tls).map_err(|error| error.to_string())
            };
            certificates.watch(renewed).await;
        });
    }
    tell_systemd(NotifyState::Ready);
    tasks.spawn(watchdog());
    tracing::info!(node = service.node().name(), "serving");
    let ended = wait(&service, &settings, shutdown).await;
    tell_systemd(NotifyState::Stopping);
    tracing::info!("stopping");
    service.stop(patience(&settings, &ended)).await;
    tasks.shutdown().await;
    ended
}

/// Have as many connections and processes as the system allows.
fn allow_files(settings: &mut Settings) {
    let (asked, most) = (settings.limits.connections, raise_files().saturating_sub(OTHER_FILES));
    settings.limits.files = most.max(1);
    if most < asked {
        tracing::info!(asked, most, "so many connections at most: the system allows no more files");
    }
}

/// How many files so many connections may need: a session that others inherit, or that lives with a
/// process, has a descriptor of that process too.
pub(crate) fn files_for(connections: usize) -> usize {
    connections * 2 + OTHER_FILES
}

/// Open as many files as the system allows, for every connection is one; how many is that?
fn raise_files() -> usize {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // If it is refused, the limit stays as it was.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(allowed).unwrap_or(usize::MAX)
}

/// Until there is a reason to stop.
async fn wait(
    service: &Service,
    settings: &Settings,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let mut shutdown = pin!(shutdown);
    tokio::select! {
        () = &mut shutdown => Ok(()),
        () = service.ended() => Err(ServeError::Ended),
        () = idle(service, settings.idle_stop) => {
            tracing::info!("nobody has used this node for a while");
            Ok(())
        }
    }
}

/// How long those inside may take to leave. Where the node has ended by itself, nobody is inside.
fn patience(settings: &Settings, ended: &Result<(), ServeError>) -> Duration {
    if ended.is_ok() { settings.drain } else { Duration::ZERO }
}

/// Wait until nobody has had a session or a connection for so long.
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

fn listen_unix(socket: &Socket) -> Result<(UnixListener, Option<SocketFile>), ServeError> {
    let address = match socket {
        Socket::Abstract(name) => format!("@{name}"),
        Socket::File(path, _) => path.display().to_string(),
    };
    bind_unix(socket).map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => ServeError::Served(address),
        _ => ServeError::Listen { address, error },
    })
}

async fn listen_tcp(address: &str) -> Result<TcpListener, ServeError> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|error| ServeError::Listen { address: address.to_owned(), error })
}

/// The ledger of the directory. A process that was killed may take a moment to let go of it.
async fn ledger(settings: &Settings) -> Result<Option<(Ledger, Former)>, ServeError> {
    let Some(directory) = &settings.node.data else { return Ok(None) };
    let tcp = settings.sessions.is_some() || settings.http.is_some();
    let mut waited = Duration::ZERO;
    loop {
        match Ledger::open(directory, tcp, settings.limits.ttl) {
            // Two were started at once, and the other one has come further.
            Err(LedgerError::InUse(_)) if answers(settings.socket.as_ref()) => {
                return Err(ServeError::Served(directory.display().to_string()));
            }
            Err(LedgerError::InUse(_)) if waited < PATIENCE => {
                let pause = Duration::from_millis(20);
                sleep(pause).await;
                waited += pause;
            }
            Err(LedgerError::Io { what, path, source }) => {
                let remedy = match source.kind() {
                    ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "make room".to_owned(),
                    _ => {
                        let (user, place) = (rustix::process::geteuid().as_raw(), directory);
                        format!("let `install -d -m 700 -o {user} {}` make it", place.display())
                    }
                };
                let reason = format!(
                    "cannot {what} {}: {source}; {remedy}, or name another with `data` in the file \
                     or `--data`",
                    path.display()
                );
                return Err(ServeError::Directory { path: directory.clone(), reason });
            }
            other => return Ok(Some(other?)),
        }
    }
}

/// Does somebody serve at a file?
fn answers(socket: Option<&Socket>) -> bool {
    match socket {
        Some(Socket::File(path, _)) => UnixStream::connect(path).is_ok(),
        _ => false,
    }
}

/// The directory of one user, in a place where others may write too: it must be that user's own.
/// While what is returned lives, those who clean up such places leave it alone.
fn private(directory: &Path) -> Result<fs::File, ServeError> {
    let wrong = |reason: String| ServeError::Directory { path: directory.to_owned(), reason };
    let failed = |error: io::Error| wrong(error.to_string());
    match fs::DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    // Not followed if it is a link: what is looked at is what is used.
    let flags =
        rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::CLOEXEC;
    let opened = rustix::fs::open(directory, flags, rustix::fs::Mode::empty());
    let opened = fs::File::from(opened.map_err(|error| failed(error.into()))?);
    let about = opened.metadata().map_err(failed)?;
    let own = rustix::process::geteuid().as_raw();
    if about.uid() != own {
        return Err(wrong(format!("it belongs to uid {}, not to uid {own}", about.uid())));
    }
    if about.mode() & 0o077 != 0 {
        opened.set_permissions(fs::Permissions::from_mode(0o700)).map_err(failed)?;
    }
    flock(&opened, FlockOperation::NonBlockingLockShared).map_err(|error| failed(error.into()))?;
    Ok(opened)
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
    use super::*;
    use crate::settings::Overrides;

    /// Nothing is served without a place for what must survive.
    #[tokio::test]
    async fn a_directory_that_cannot_be_made_is_said_with_what_to_do() {
        let file = Path::new("/nowhere/doorway.toml");
        let text = "data = \"/proc/no/such/place\"\nsocket = \"@doorway-never-served\"";
        let settings = Settings::parse(text, file, &Overrides::default()).unwrap();
        let error = run(settings, Doors::default(), std::future::pending()).await.unwrap_err();
        let said = error.to_string();
        assert!(matches!(error, ServeError::Directory { .. }), "{said}");
        for word in ["/proc/no/such/place", "cannot create", "install -d", "--data"] {
            assert!(said.contains(word), "{said}");
        }
    }
}
