//! The log of the service: one line for each event.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::Mutex;

use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

/// The longest log file, in bytes. One that would become longer is emptied first.
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
    install(BoxMakeWriter::new(io::stderr), format, level, !journal);
}

/// Send what is logged to a file from now on. The file is made with the first line, so a service
/// that logs nothing leaves no file. Only the first call counts.
pub fn to_file(path: PathBuf, format: Format, level: Level) {
    let file = Mutex::new(LogFile { path, file: None, length: 0 });
    install(BoxMakeWriter::new(file), format, level, true);
}

fn install(writer: BoxMakeWriter, format: Format, level: Level, timed: bool) {
    // Raft reports each failed attempt to reach a member, many times a second. The service itself
    // says which members are away.
    let raft = if level >= Level::DEBUG { LevelFilter::DEBUG } else { LevelFilter::OFF };
    let targets = Targets::new().with_default(level).with_target("openraft", raft);
    let lines = fmt::layer().with_writer(writer).with_ansi(false);
    let lines = match format {
        Format::Json => lines.json().flatten_event(true).boxed(),
        Format::Text if timed => lines.with_target(false).boxed(),
        Format::Text => lines.without_time().with_target(false).boxed(),
    };
    // After a second call the log of the first one stays in place.
    let _ = tracing_subscriber::registry().with(targets).with(lines).try_init();
}

/// Whether standard error goes to the journal of systemd.
fn kept_by_systemd() -> bool {
    let set = |name| std::env::var_os(name).is_some();
    set("JOURNAL_STREAM") && set("INVOCATION_ID")
}

/// A log file that is opened when something is first written.
struct LogFile {
    path: PathBuf,
    file: Option<File>,
    /// Its length in bytes, as far as this process knows.
    length: u64,
}

impl LogFile {
    /// The file, with room for this many more bytes.
    fn with_room(&mut self, bytes: usize) -> io::Result<&mut File> {
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let mut options = File::options();
                let file = options.append(true).create(true).mode(0o600).open(&self.path)?;
                self.length = file.metadata()?.len();
                none.insert(file)
            }
        };
        if self.length + bytes as u64 > LONGEST {
            file.set_len(0)?;
            self.length = 0;
        }
        Ok(file)
    }
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.with_room(bytes.len())?.write(bytes)?;
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_file_stays_short() {
        let path = std::env::temp_dir().join(format!("doorway-log-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let log_file = || LogFile { path: path.clone(), file: None, length: 0 };
        let (mut log, line) = (log_file(), vec![b'x'; 1 << 20]);
        let mut lengths = Vec::new();
        for _ in 0..6 {
            log.write_all(&line).unwrap();
            lengths.push(std::fs::metadata(&path).unwrap().len() >> 20);
        }
        assert_eq!(lengths, [1, 2, 3, 4, 1, 2]);
        // The next process goes on with what is there.
        log_file().write_all(&line).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 3 << 20);
        std::fs::remove_file(&path).unwrap();
    }
}
