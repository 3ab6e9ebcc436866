//! Where a node is found.

use std::env;
use std::fmt;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::geteuid;

/// Where a node is found.
///
/// As a text: the path of a Unix socket, `@name` for one that is no file, or `tcp://host:port` for
/// sessions with TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A Unix socket in the file system. Who may open it may use the node.
    Path(PathBuf),
    /// A Unix socket that is no file, without the `@`.
    Abstract(String),
    /// A host and a port, for TLS.
    Tcp(String, u16),
}

/// Why a text names no endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{from}{text:?} names no node: {why}; give a path, @name or tcp://host:port")]
pub struct EndpointError {
    /// Where the text comes from, if the user did not give it here.
    from: &'static str,
    /// The text.
    text: String,
    /// What is wrong with it.
    why: &'static str,
}

/// A connection to a node.
#[derive(Debug)]
pub enum Stream {
    /// Through a Unix socket.
    Unix(UnixStream),
    /// Over the network.
    Tcp(TcpStream),
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}

impl AsRawFd for Stream {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

/// How an error begins that the environment caused.
const FROM: &str = "DOORWAY_SOCKET is set: ";

impl Endpoint {
    /// The variable that says where the node is, if no option does.
    pub const VARIABLE: &str = "DOORWAY_SOCKET";

    /// The socket of the machine's node, unless its configuration names another one.
    pub const MACHINE: &str = "/run/doorway/socket";

    /// The directory that tells that this machine has a node of its own.
    pub const MACHINE_CONFIG: &str = "/etc/doorway";

    /// Where to go: what the option says, else what `DOORWAY_SOCKET` says, else the machine's node
    /// if it has one, else the node of this user.
    pub fn resolve(option: Option<&str>) -> Result<Self, EndpointError> {
        if let Some(text) = option {
            return Self::parse(text);
        }
        match env::var(Self::VARIABLE) {
            Ok(text) => Self::variable(&text),
            Err(env::VarError::NotUnicode(text)) => {
                let (text, why) = (text.to_string_lossy().into(), "it is not UTF-8");
                Err(EndpointError { from: FROM, text, why })
            }
            Err(env::VarError::NotPresent) if Path::new(Self::MACHINE_CONFIG).is_dir() => {
                let directory = Path::new(Self::MACHINE_CONFIG);
                let text = fs::read_to_string(directory.join("doorway.toml")).unwrap_or_default();
                Ok(Self::configured(&text, directory))
            }
            Err(env::VarError::NotPresent) => Ok(Self::own()),
        }
    }

    /// The socket that the configuration of a machine's node names, or [`Self::MACHINE`] if it
    /// names none. A relative path is relative to `directory`, which holds the configuration.
    ///
    /// The configuration is TOML, of which only the line `socket = "..."` before the first table is
    /// read: clients do without a parser. A socket whose name needs escapes must be given to
    /// clients.
    pub fn configured(text: &str, directory: &Path) -> Self {
        let top = text.lines().map(str::trim).take_while(|line| !line.starts_with('['));
        let named = top.filter_map(|line| {
            let value = line.strip_prefix("socket")?.trim_start().strip_prefix('=')?.trim_start();
            let quote = value.chars().next().filter(|quote| ['"', '\''].contains(quote))?;
            let (name, _) = value[1..].split_once(quote)?;
            (!name.contains('\\')).then_some(name)
        });
        match named.last().map(Self::parse) {
            Some(Ok(Self::Path(path))) => Self::Path(directory.join(path)),
            Some(Ok(Self::Abstract(name))) => Self::Abstract(name),
            _ => Self::Path(Self::MACHINE.into()),
        }
    }

    /// Read what the variable says.
    fn variable(text: &str) -> Result<Self, EndpointError> {
        Self::parse(text).map_err(|wrong| EndpointError { from: FROM, ..wrong })
    }

    /// The node of this user, which depends on the effective user alone, never on the environment.
    pub fn own() -> Self {
        Self::Abstract(format!("doorway-{}", geteuid().as_raw()))
    }

    /// Is that the node of this user, which may be started where it is missing?
    pub fn is_own(&self) -> bool {
        *self == Self::own()
    }

    /// Read an endpoint.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        let wrong = |why| EndpointError { from: "", text: text.to_owned(), why };
        if let Some(rest) = text.strip_prefix("tcp://") {
            let (host, port) = rest.rsplit_once(':').ok_or_else(|| wrong("it has no port"))?;
            let port = port.parse().map_err(|_| wrong("its port is no number up to 65535"))?;
            let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
            if bare.is_none() && host.contains(':') {
                return Err(wrong("an address with colons stands in brackets"));
            }
            let host = bare.unwrap_or(host);
            if host.is_empty() || port == 0 {
                return Err(wrong("its host or its port is missing"));
            }
            return Ok(Self::Tcp(host.to_owned(), port));
        }
        if text.contains('\0') {
            return Err(wrong("it contains a zero byte"));
        }
        let address = match text.strip_prefix('@') {
            Some("") => return Err(wrong("a name must follow the @")),
            Some(name) => Self::Abstract(name.to_owned()),
            None if text.is_empty() => return Err(wrong("it is empty")),
            None if text.contains("://") => return Err(wrong("only tcp:// is spoken")),
            None => Self::Path(text.into()),
        };
        // A socket's name has 108 bytes, of which one is a zero.
        if text.len() > 107 { Err(wrong("it is longer than 107 bytes")) } else { Ok(address) }
    }

    /// Say who may open a socket, where the system only says that this user may not.
    fn explain(&self, error: io::Error) -> io::Error {
        let Self::Path(path) = self else { return error };
        if error.kind() != io::ErrorKind::PermissionDenied {
            return error;
        }
        let remedy = if path == Path::new(Self::MACHINE) {
            "its users have to be in the group `doorway`: as root, `usermod -aG doorway USER`, and \
             log in again"
                .to_owned()
        } else {
            format!(
                "its users have to be in the group of the socket: see `ls -l {}`",
                path.display()
            )
        };
        io::Error::new(error.kind(), format!("{error}; {remedy}"))
    }

    /// Connect to the node, and make sure that the node of this user is this user's or root's.
    ///
    /// A node that is stopped, or a network that swallows everything, is waited for so long: for
    /// every address of its host, and not for whoever knows the addresses.
    pub fn connect_within(&self, limit: Duration) -> io::Result<Stream> {
        let address = match self {
            Self::Path(path) => SocketAddrUnix::new(path)?,
            Self::Abstract(name) => SocketAddrUnix::new_abstract_name(name.as_bytes())?,
            Self::Tcp(host, port) => {
                let addresses: Vec<_> = (host.as_str(), *port).to_socket_addrs()?.collect();
                return Stream::dial(&addresses, limit);
            }
        };
        let stream = knock(&address, limit).map_err(|error| self.explain(error))?;
        if self.is_own() {
            trusted(&stream)?;
        }
        Ok(Stream::Unix(stream))
    }
}

impl Stream {
    /// Connect over the network to the first of these addresses where someone answers. All of it
    /// takes at most so long; of several addresses, each has its part of that, and whoever is
    /// reached has the last part to answer.
    pub fn dial(addresses: &[SocketAddr], limit: Duration) -> io::Result<Self> {
        let parts = if addresses.len() > 1 { addresses.len() + 1 } else { 1 };
        let each = (limit / parts as u32).clamp(LIMITS.0, LIMITS.1);
        let mut failed = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in addresses {
            match TcpStream::connect_timeout(address, each) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    return Ok(Self::Tcp(stream));
                }
                Err(why) => failed = why,
            }
        }
        Err(failed)
    }
}

/// No time at all would mean no limit, and clocks end somewhere.
const LIMITS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_hours(1));

/// Connect through a Unix socket. A node that takes no connections is waited for as long as for one
/// that takes no bytes.
fn knock(address: &SocketAddrUnix, limit: Duration) -> io::Result<UnixStream> {
    let until = Instant::now() + limit.min(LIMITS.1);
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    loop {
        let left = until.saturating_duration_since(Instant::now()).max(LIMITS.0);
        sockopt::set_socket_timeout(&socket, Timeout::Send, Some(left))?;
        match connect(&socket, address) {
            Ok(()) => break,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let why = "whoever listens there takes no connections: it may be stopped";
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            Err(why) => return Err(why.into()),
        }
    }
    sockopt::set_socket_timeout(&socket, Timeout::Send, None)?;
    Ok(UnixStream::from(socket))
}

/// Anyone may take a name that is no file, so whoever listens there must be this user or root.
pub(crate) fn trusted(stream: impl AsFd) -> io::Result<()> {
    let (peer, own) = (sockopt::socket_peercred(stream)?.uid, geteuid());
    if peer == own || peer.is_root() {
        return Ok(());
    }
    let why = format!(
        "user {} listens where the node of user {} should, so it is not trusted; \
         set {} to use another node",
        peer.as_raw(),
        own.as_raw(),
        Endpoint::VARIABLE
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

impl std::str::FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        Self::parse(text)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => fmt::Display::fmt(&path.display(), f),
            Self::Abstract(name) => write!(f, "@{name}"),
            Self::Tcp(host, port) if host.contains(':') => write!(f, "tcp://[{host}]:{port}"),
            Self::Tcp(host, port) => write!(f, "tcp://{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::linux::net::SocketAddrExt as _;

    use rustix::net::{bind, getsockname, listen};

    use super::*;

    #[test]
    fn endpoints_are_written_as_they_are_read() {
        let own = format!("@doorway-{}", geteuid().as_raw());
        for text in ["/run/doorway/socket", "@name", &own, "tcp://north:7000", "tcp://[::1]:7000"] {
            let endpoint = Endpoint::parse(text).unwrap();
            assert_eq!(endpoint.to_string(), text);
            assert_eq!(endpoint.is_own(), text == own);
        }
        assert_eq!(Endpoint::parse("@name"), Ok(Endpoint::Abstract("name".to_owned())));
        assert_eq!(Endpoint::parse("tcp://[::1]:7"), Ok(Endpoint::Tcp("::1".to_owned(), 7)));
        assert_eq!(Endpoint::resolve(Some("@name")), Endpoint::parse("@name"));
    }

    #[test]
    fn what_is_no_endpoint_is_told_with_the_remedy() {
        let long = "x".repeat(108);
        let wrong = [
            "",
            "@",
            "tcp://",
            "tcp://north",
            "tcp://north:",
            "tcp://north:0",
            "tcp://north:70000",
            "tcp://:7000",
            "tcp://::1:7000",
            "http://north:80",
            "a\0b",
            &long,
        ];
        for text in wrong {
            let error = Endpoint::parse(text).unwrap_err().to_string();
            assert!(error.ends_with("give a path, @name or tcp://host:port"), "{error}");
        }
        let error = Endpoint::variable("tcp://north").unwrap_err().to_string();
        assert!(error.starts_with("DOORWAY_SOCKET is set: \"tcp://north\""), "{error}");
        assert!(FROM.starts_with(Endpoint::VARIABLE));
    }

    #[test]
    fn a_user_who_may_not_open_the_socket_is_told_who_may() {
        let denied = || io::Error::from_raw_os_error(13);
        let told = Endpoint::Path(Endpoint::MACHINE.into()).explain(denied());
        assert_eq!(told.kind(), io::ErrorKind::PermissionDenied);
        assert!(told.to_string().contains("usermod -aG doorway"), "{told}");
        let told = Endpoint::Path("/srv/s".into()).explain(denied()).to_string();
        assert!(told.contains("Permission denied") && told.contains("ls -l /srv/s"), "{told}");
    }

    #[test]
    fn a_node_that_takes_no_connections_is_not_waited_for() {
        let limit = Duration::from_millis(50);
        let name = format!("doorway-endpoint-{}", std::process::id());
        let unix = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let unix = unix.unwrap();
        bind(&unix, &SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap()).unwrap();
        let tcp = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let tcp = tcp.unwrap();
        bind(&tcp, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let port = SocketAddr::try_from(getsockname(&tcp).unwrap()).unwrap().port();
        let places =
            [(unix, Endpoint::Abstract(name)), (tcp, Endpoint::Tcp("127.0.0.1".to_owned(), port))];
        for (listener, endpoint) in places {
            listen(&listener, 0).unwrap();
            let full = std::iter::from_fn(|| Some(endpoint.connect_within(limit)));
            let (taken, full): (Vec<_>, Vec<_>) = full.take(4).partition(Result::is_ok);
            assert!(!taken.is_empty() && !full.is_empty(), "{endpoint}: {taken:?}, {full:?}");
            for why in full {
                assert_eq!(why.unwrap_err().kind(), io::ErrorKind::TimedOut);
            }
        }
    }

    #[test]
    fn what_is_connected_may_wait_for_ever() {
        let name = format!("doorway-endpoint-wait-{}", std::process::id());
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
        let listener = std::os::unix::net::UnixListener::bind_addr(&address).unwrap();
        let stream = Endpoint::Abstract(name).connect_within(Duration::MAX).unwrap();
        let Stream::Unix(stream) = stream else { panic!("{stream:?}") };
        assert_eq!((stream.read_timeout().unwrap(), stream.write_timeout().unwrap()), (None, None));
        drop(listener);
    }

    #[test]
    fn oneself_is_trusted() {
        let (one, _two) = UnixStream::pair().unwrap();
        trusted(&one).unwrap();
    }
}
