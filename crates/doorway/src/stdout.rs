//! Standard output, which may have been closed before the program started.
#![expect(unsafe_code, reason = "a function that the linker has run before the standard library")]

use std::io::{self, ErrorKind, StdoutLock, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::libc;

/// True if standard output was closed when the program started, as with `doorway list >&-`.
static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Remembers whether standard output was closed.
///
/// The standard library opens `/dev/null` in the place of a closed standard descriptor before
/// `main` begins. From then on writes succeed and go nowhere, so this has to look earlier.
extern "C" fn look() {
    // SAFETY: a system call with two numbers, which reads the flags of a descriptor if it is open.
    let closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1;
    WAS_CLOSED.store(closed, Ordering::Relaxed);
}

// SAFETY: the C library calls the functions of this section once, before `main`, on the only
// thread. This one makes a system call and stores a value; it uses nothing of the standard library
// that has to be set up first.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// Standard output. Writing fails if it was closed when the program started.
pub(crate) struct Stdout(StdoutLock<'static>);

impl Stdout {
    /// Lock standard output until the program ends.
    pub(crate) fn new() -> Self {
        Self(io::stdout().lock())
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if WAS_CLOSED.load(Ordering::Relaxed) {
            let why = "cannot print the result: standard output is closed";
            return Err(io::Error::new(ErrorKind::NotConnected, why));
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
