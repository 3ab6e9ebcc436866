//! What the service tells whoever keeps its log: one line for each event.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::Mutex;

use tracing::Level;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

/// A log file that has become longer than this is begun anew.
const LONGEST: u64 = 4 << 20;

/// How the lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs: an object on each line.
    Json,
}

/// Send what is logged to standard error from now on. Only the first call counts.
///
/// Under systemd the journal notes the time of each line, so text has none.
pub fn to_stderr(format: Format, level: Level) {
    let journal = kept_by_systemd();
    begin(io::stderr, format, level, !journal, !journal && io::stderr().is_terminal());
}

/// Send what is logged to a file from now on, which is opened when the first line comes: whoever
/// has nothing to say leaves nothing behind. Only the first call counts.
pub fn to_file(path: PathBuf, format: Format, level: Level) {
    begin(Mutex::new(Late { path, file: None }), format, level, true, false);
}

fn begin<W>(writer: W, format: Format, level: Level, timed: bool, coloured: bool)
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let builder = tracing_subscriber::fmt()
        .with_writer(writer)
        .with_max_level(LevelFilter::from_level(level))
        .with_ansi(coloured);
    // A second call finds the first one's log in place, which is as good.
    let _ = match format {
        Format::Json => builder.json().flatten_event(true).try_init(),
        Format::Text if timed => builder.with_target(false).try_init(),
        Format::Text => builder.without_time().with_target(false).try_init(),
    };
}

/// Does what we write to standard error go to the journal?
fn kept_by_systemd() -> bool {
    let set = |name| std::env::var_os(name).is_some();
    set("JOURNAL_STREAM") && set("INVOCATION_ID")
}

/// A file that is opened when something is written.
struct Late {
    path: PathBuf,
    file: Option<File>,
}

impl Late {
    fn open(&mut self) -> io::Result<&mut File> {
        if self.file.is_none() {
            let mut options = File::options();
            let file = options.append(true).create(true).mode(0o600).open(&self.path)?;
            if file.metadata()?.len() > LONGEST {
                file.set_len(0)?;
            }
            self.file = Some(file);
        }
        self.file.as_mut().ok_or_else(|| io::Error::other("no log"))
    }
}

impl Write for Late {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.open()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}
