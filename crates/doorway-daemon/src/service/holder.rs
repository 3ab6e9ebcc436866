//! The socket that the processes of a session hold open, as evidence that they exist.
//!
//! The client binds an abstract Unix socket, listens and never accepts. A connection to it ends
//! when the last process that has the socket open closes it or ends: the system sees to that. So
//! the evidence survives the node, and no process can be mistaken for another.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use doorway_protocol::Secret;
use nix::sys::socket::{getsockopt, sockopt};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use tokio::time::sleep;

/// How often the node looks again for a socket that it cannot watch.
const LOOK: Duration = Duration::from_millis(500);

/// What an attempt to connect to the socket has found.
enum SocketProbe {
    /// The connection, which ends with the socket.
    Connected(OwnedFd),
    /// The socket exists, but too many connections wait at it.
    Crowded,
    /// Nobody holds the socket.
    Nobody,
}

/// Whether a process of this user holds the socket.
pub(super) fn is_held(secret: &Secret, user: Option<u32>) -> bool {
    matches!(find(secret, user), Ok(SocketProbe::Connected(_)))
}

/// Wait until no process of this user holds the socket any more. While that cannot be found out,
/// this goes on waiting.
pub(super) async fn ended(secret: &Secret, user: Option<u32>) {
    loop {
        match find(secret, user) {
            Ok(SocketProbe::Nobody) => return,
            Ok(SocketProbe::Connected(fd)) => {
                // Nobody ever writes to it, so it becomes readable only when it ends.
                let stream = tokio::net::UnixStream::from_std(fd.into());
                if let Ok(stream) = stream
                    && stream.readable().await.is_ok()
                    && matches!(find(secret, user), Ok(SocketProbe::Nobody))
                {
                    return;
                }
            }
            Ok(SocketProbe::Crowded) | Err(_) => {}
        }
        sleep(LOOK).await;
    }
}

fn find(secret: &Secret, user: Option<u32>) -> io::Result<SocketProbe> {
    let address = SocketAddrUnix::new_abstract_name(secret.holder().as_bytes())?;
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match connect(&fd, &address) {
        // Another user can take the name when it is free, but that proves nothing.
        Ok(())
            if user.is_some_and(|user| {
                let peer = getsockopt(&fd, sockopt::PeerCredentials);
                peer.is_ok_and(|peer| peer.uid() != user)
            }) =>
        {
            Ok(SocketProbe::Nobody)
        }
        Ok(()) => Ok(SocketProbe::Connected(fd)),
        Err(Errno::AGAIN) => Ok(SocketProbe::Crowded),
        Err(Errno::CONNREFUSED) => Ok(SocketProbe::Nobody),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::{SocketAddr, UnixListener};

    use tokio::io::AsyncWriteExt as _;

    use super::*;

    /// Nobody should write to these connections, but a process can.
    #[tokio::test]
    async fn a_socket_that_is_readable_without_an_end_is_looked_at_twice_a_second() {
        let mut secret = Secret(std::process::id().to_be_bytes().repeat(4).try_into().unwrap());
        secret.0[0] ^= 1;
        let name = SocketAddr::from_abstract_name(secret.holder()).unwrap();
        let listener = UnixListener::bind_addr(&name).unwrap();
        listener.set_nonblocking(true).unwrap();
        let listener = tokio::net::UnixListener::from_std(listener).unwrap();
        let mut seen = Vec::new();
        let accepting = async {
            while let Ok((mut connection, _)) = listener.accept().await {
                // A connection that was only a look is gone already.
                let _ = connection.write_all(b"!").await;
                seen.push(connection);
            }
        };
        let time = tokio::time::timeout(LOOK * 5 / 2, accepting);
        tokio::select! {
            _ = time => {}
            () = ended(&secret, None) => panic!("the socket is still held"),
        }
        // Each look needs one connection, and another one after the first was readable.
        assert!((2..=6).contains(&seen.len()), "{} connections", seen.len());
    }

    #[tokio::test]
    async fn a_socket_is_held_until_its_last_descriptor_is_closed() {
        let secret = Secret(std::process::id().to_be_bytes().repeat(4).try_into().unwrap());
        let own = rustix::process::geteuid().as_raw();
        assert!(!is_held(&secret, Some(own)));
        ended(&secret, Some(own)).await;
        let name = SocketAddr::from_abstract_name(secret.holder()).unwrap();
        let listener = UnixListener::bind_addr(&name).unwrap();
        let inherited = listener.try_clone().unwrap();
        assert!(is_held(&secret, Some(own)));
        assert!(!is_held(&secret, Some(own + 1)), "another user may not hold it for this one");
        let watch = tokio::spawn(async move { ended(&secret, Some(own)).await });
        tokio::task::yield_now().await;
        drop(listener);
        tokio::task::yield_now().await;
        assert!(!watch.is_finished() && is_held(&secret, None));
        drop(inherited);
        watch.await.unwrap();
    }
}
