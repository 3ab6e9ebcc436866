//! Where a node listens, and how to connect to it.

use std::env;
use std::fmt;
use std::fs;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use doorway_protocol::Backoff;
use rustix::io::Errno;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, send, sendmsg, socket_with,
};
use rustix::process::geteuid;

use crate::endpoints::Endpoints;

/// Where a node listens.
///
/// It is written as the path of a Unix socket, as `@name` for an abstract Unix socket, which is not
/// a file, or as `tcp://host:port` for sessions with TLS.
///
/// ```
/// use doorway_client::Endpoint;
///
/// assert_eq!(Endpoint::parse("@mine")?, Endpoint::Abstract("mine".to_owned()));
/// assert_eq!(Endpoint::parse("tcp://north:7000")?, Endpoint::Tcp("north".to_owned(), 7000));
/// # Ok::<(), doorway_client::EndpointError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// The path of a Unix socket. Users who may open the file may use the node.
    Path(PathBuf),
    /// The name of an abstract Unix socket, without the `@`.
    Abstract(String),
    /// A host and a port, for sessions with TLS.
    Tcp(String, u16),
}

/// The error for a text that is not an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{from}{text:?} is not an endpoint: {why}; give a path, @name or tcp://host:port")]
pub struct EndpointError {
    /// Where the text comes from, if not from the caller.
    from: &'static str,
    /// The text.
    text: String,
    /// What is wrong with it.
    why: &'static str,
}

/// A connection to a node.
#[derive(Debug)]
pub enum Stream {
    /// A connection through a Unix socket.
    Unix(UnixStream),
    /// A connection over the network.
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

/// What an error begins with if the text comes from the environment.
const FROM: &str = "DOORWAY_SOCKET is set: ";

impl Endpoint {
    /// The environment variable that names the endpoints, if no option does.
    pub const VARIABLE: &str = "DOORWAY_SOCKET";

    /// The socket of the machine's node, unless its configuration names another one.
    pub const MACHINE: &str = "/run/doorway/socket";

    /// The directory that exists if this machine has a node of its own.
    pub const MACHINE_CONFIG: &str = "/etc/doorway";

    /// Decide which nodes to use: those that `option` names, else those that `DOORWAY_SOCKET`
    /// names, else the machine's node if there is one, else the node of this user.
    pub fn resolve(option: Option<&str>) -> Result<Endpoints, EndpointError> {
        if let Some(text) = option {
            return Endpoints::parse(text);
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
                Ok(Self::configured(&text, directory).into())
            }
            Err(env::VarError::NotPresent) => Ok(Self::own().into()),
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

    /// Parse the value of the environment variable.
    fn variable(text: &str) -> Result<Endpoints, EndpointError> {
        Endpoints::parse(text).map_err(|wrong| EndpointError { from: FROM, ..wrong })
    }

    /// The node of this user. It depends on the effective user ID alone, never on the environment.
    pub fn own() -> Self {
        Self::Abstract(format!("doorway-{}", geteuid().as_raw()))
    }

    /// Is this the node of this user? That one may be started if it does not run.
    pub fn is_own(&self) -> bool {
        *self == Self::own()
    }

    /// Parse an endpoint.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        let wrong = |why| EndpointError { from: "", text: text.to_owned(), why };
        if let Some(rest) = text.strip_prefix("tcp://") {
            let (host, port) = rest.rsplit_once(':').ok_or_else(|| wrong("it has no port"))?;
            let port = port.parse().map_err(|_| wrong("its port is not a number up to 65535"))?;
            let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
            if bare.is_none() && host.contains(':') {
                return Err(wrong("an IPv6 address must be in brackets"));
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
            None if text.contains("://") => return Err(wrong("the only scheme is tcp://")),
            None => Self::Path(text.into()),
        };
        // The system has room for 108 bytes, of which one is a zero.
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

    /// Connect to the node.
    ///
    /// If this is the node of this user, connecting fails unless the process that listens runs as
    /// this user or as root.
    ///
    /// `limit` is how long to wait for a node that is stopped, or for a network that loses every
    /// packet. It is divided among the addresses of a host, but looking up these addresses does not
    /// count.
    pub fn connect_within(&self, limit: Duration) -> io::Result<Stream> {
        let address = match self {
            Self::Path(path) => SocketAddrUnix::new(path)?,
            Self::Abstract(name) => SocketAddrUnix::new_abstract_name(name.as_bytes())?,
            Self::Tcp(host, port) => {
                let addresses: Vec<_> = (host.as_str(), *port).to_socket_addrs()?.collect();
                return Stream::dial(&addresses, limit);
            }
        };
        let stream = connect_unix(&address, limit).map_err(|error| self.explain(error))?;
        if self.is_own() {
            check_peer(&stream)?;
        }
        Ok(Stream::Unix(stream))
    }
}

impl Stream {
    /// Send some of the bytes without waiting. On a Unix socket a descriptor may go with them.
    pub(crate) fn send(&self, bytes: &[u8], pass: Option<BorrowedFd<'_>>) -> Result<usize, Errno> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let Some(pass) = pass else { return send(self.as_fd(), bytes, flags) };
        let pass = [pass];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fits = control.push(SendAncillaryMessage::ScmRights(&pass));
        debug_assert!(fits, "there is space for one descriptor");
        sendmsg(self.as_fd(), &[IoSlice::new(bytes)], &mut control, flags)
    }

    /// Connect over the network to the first of these addresses that answers.
    ///
    /// All attempts together take at most `limit`. If there are several addresses, each gets an
    /// equal part of it, and one part is left for the node to answer.
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

/// The shortest and the longest time limit. A limit of zero would mean no limit, and the system
/// does not accept every long one.
const LIMITS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_hours(1));

/// Connect through a Unix socket. If the backlog of the node is full, this waits for at most
/// `limit`.
fn connect_unix(address: &SocketAddrUnix, limit: Duration) -> io::Result<UnixStream> {
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
                let why =
                    "the process that listens there accepts no connections; it may be stopped";
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            Err(why) => return Err(why.into()),
        }
    }
    sockopt::set_socket_timeout(&socket, Timeout::Send, None)?;
    Ok(UnixStream::from(socket))
}

/// How long to wait between attempts to connect again: 5 ms at first, and at most half a second.
pub(crate) fn reconnect() -> Backoff {
    Backoff::new(Duration::from_millis(5), Duration::from_millis(500))
}

/// Check that the process at the other end runs as this user or as root. Any user could listen on
/// an abstract socket with the name of this user's node.
fn check_peer(stream: impl AsFd) -> io::Result<()> {
    let (peer, own) = (sockopt::socket_peercred(stream)?.uid, geteuid());
    if peer == own || peer.is_root() {
        return Ok(());
    }
    let why = format!(
        "user {} listens where the node of user {} should listen, so it is not trusted; \
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
    fn endpoints_are_written_as_they_are_parsed() {
        let own = format!("@doorway-{}", geteuid().as_raw());
        for text in ["/run/doorway/socket", "@name", &own, "tcp://north:7000", "tcp://[::1]:7000"] {
            let endpoint = Endpoint::parse(text).unwrap();
            assert_eq!(endpoint.to_string(), text);
            assert_eq!(endpoint.is_own(), text == own);
        }
        assert_eq!(Endpoint::parse("@name"), Ok(Endpoint::Abstract("name".to_owned())));
        assert_eq!(Endpoint::parse("tcp://[::1]:7"), Ok(Endpoint::Tcp("::1".to_owned(), 7)));
        assert_eq!(Endpoint::resolve(Some("@name")), Endpoints::parse("@name"));
    }

    #[test]
    fn the_error_for_a_wrong_endpoint_says_what_to_give() {
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
    fn connecting_to_a_node_with_a_full_backlog_times_out() {
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
    fn the_time_limit_of_connecting_does_not_stay_on_the_socket() {
        let name = format!("doorway-endpoint-wait-{}", std::process::id());
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
        let listener = std::os::unix::net::UnixListener::bind_addr(&address).unwrap();
        let stream = Endpoint::Abstract(name).connect_within(Duration::MAX).unwrap();
        let Stream::Unix(stream) = stream else { panic!("{stream:?}") };
        assert_eq!((stream.read_timeout().unwrap(), stream.write_timeout().unwrap()), (None, None));
        drop(listener);
    }

    #[test]
    fn a_process_of_the_same_user_is_trusted() {
        let (one, _two) = UnixStream::pair().unwrap();
        check_peer(&one).unwrap();
    }
}
