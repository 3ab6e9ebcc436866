//! `doorway serve`: run a node.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;
use doorway_daemon::listen::Doors;
use doorway_daemon::log::{self, Format};
use doorway_daemon::serve::{self, ServeError};
use doorway_daemon::settings::{self, FILE, Mistakes, Overrides, Settings, Socket};
use serde::Serialize;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::Level;

use super::print_json;
use crate::failure::Usage;
use crate::service::options::seconds;
use crate::service::stderr::print_line;

/// Run a node: for one user, for one machine, or as a member of a group
#[derive(clap::Args)]
#[command(after_help = "\
The node runs in the foreground until it gets SIGTERM or SIGINT. A stop takes no lock from anyone:
sessions go on when the node is started again. `doorway drain` is the way to stop for good. SIGHUP
makes the node read its certificates, its clients and its limits again. packaging/doorway.service
runs a node with systemd.

Examples:
  doorway serve --config /etc/doorway/doorway.toml     # a node for all users of this machine
  doorway serve --config doorway.toml --check          # report every mistake in the file
  doorway serve --local                                # what `doorway run` starts by itself")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Args {
    /// Read this configuration [default: /etc/doorway/doorway.toml]
    #[arg(long, value_name = "FILE", conflicts_with = "local")]
    config: Option<PathBuf>,
    /// Run a node for this user only, which needs no configuration
    #[arg(long)]
    local: bool,
    /// Listen for clients at this Unix socket instead of the one in the file
    #[arg(long, value_name = "PATH|@NAME")]
    socket: Option<String>,
    /// Keep what must survive a restart in this directory instead of the one in the file
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Stop after this many seconds without clients [default: never, with --local 600]
    #[arg(long, value_name = "SECS", value_parser = above_zero)]
    idle_stop: Option<Duration>,
    /// Check the configuration and do not start
    #[arg(long)]
    check: bool,
    /// Write the log in this format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log: LogFormat,
    /// Log messages of this level and above
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log_level: LogLevel,
    /// Write the log to this file [default: standard error; with --local the file `log` in the
    /// data directory, unless standard error is a terminal]
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,
    /// Print the result of --check as JSON
    #[arg(long, requires = "check")]
    json: bool,
    /// Print the page about all settings, in Markdown, and do not start
    #[arg(long, hide = true)]
    settings: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

#[derive(Clone, Copy, ValueEnum)]
enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

fn above_zero(text: &str) -> Result<Duration, String> {
    let time = seconds(text)?;
    if time.is_zero() {
        return Err("give a time above zero, such as 600, 30s or 10m".to_owned());
    }
    Ok(time)
}

/// Run the node until it is told to stop.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    if args.settings {
        return Ok(out.write_all(settings::page().as_bytes())?);
    }
    let overrides = Overrides {
        socket: args.socket.clone(),
        data: args.data.clone(),
        idle_stop: args.idle_stop,
    };
    let settings = if args.local {
        Settings::local(&overrides)
    } else {
        Settings::load(args.config.as_deref().unwrap_or(Path::new(FILE)), &overrides)
    };
    if args.check {
        return check(args, settings.as_ref(), out);
    }
    let settings = settings.map_err(|mistakes| Usage(mistakes.to_string()))?;
    start_log(args, &settings);
    // A node of a group uses several threads for its many clients. For one user one is enough.
    let mut builder = if args.local {
        tokio::runtime::Builder::new_current_thread()
    } else {
        tokio::runtime::Builder::new_multi_thread()
    };
    let runtime = builder.enable_all().build().context("cannot start a runtime")?;
    match runtime.block_on(serve(settings)) {
        // Two `doorway run` may each start a node at the same time. The second node is not needed,
        // and that is not a failure.
        Err(error @ ServeError::Served(_)) if args.local => {
            print_line(&format!("nothing to do: {error}"));
            Ok(())
        }
        ended => Ok(ended?),
    }
}

async fn serve(settings: Settings) -> Result<(), ServeError> {
    // A node without certificates has nothing to read on SIGHUP, but must not end because of it.
    let _hangup = signal(SignalKind::hangup());
    let ends = [SignalKind::terminate(), SignalKind::interrupt()].map(signal);
    let doors = Doors::from_settings(&settings)?;
    serve::run(settings, doors, told_to_stop(ends)).await
}

/// Wait for a signal to stop.
async fn told_to_stop(ends: [std::io::Result<Signal>; 2]) {
    let [terminate, interrupt] = ends.map(|signal| async {
        match signal {
            Ok(mut signal) => signal.recv().await,
            Err(error) => {
                tracing::warn!("a signal to stop will not be heard: {error}");
                std::future::pending().await
            }
        }
    });
    tokio::select! {
        _ = terminate => {}
        _ = interrupt => {}
    }
}

fn start_log(args: &Args, settings: &Settings) {
    let format = match args.log {
        LogFormat::Text => Format::Text,
        LogFormat::Json => Format::Json,
    };
    let level = match args.log_level {
        LogLevel::Error => Level::ERROR,
        LogLevel::Warn => Level::WARN,
        LogLevel::Info => Level::INFO,
        LogLevel::Debug => Level::DEBUG,
        LogLevel::Trace => Level::TRACE,
    };
    let unseen = args.local && !std::io::IsTerminal::is_terminal(&std::io::stderr());
    let own = settings.node.data.as_ref().filter(|_| unseen).map(|data| data.join("log"));
    match args.log_file.clone().or(own) {
        Some(file) => log::to_file(file, format, level),
        None => log::to_stderr(format, level),
    }
}

/// The result of `--check` as JSON.
#[derive(Serialize)]
struct Answer<'a> {
    good: bool,
    file: Option<&'a str>,
    mistakes: Vec<MistakeRecord<'a>>,
}

#[derive(Serialize)]
struct MistakeRecord<'a> {
    line: Option<usize>,
    what: &'a str,
    remedy: &'a str,
}

fn check(
    args: &Args,
    settings: Result<&Settings, &Mistakes>,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    if args.json {
        let all = settings.err().map(|mistakes| mistakes.all.iter());
        let mistakes = all.into_iter().flatten().map(|mistake| MistakeRecord {
            line: mistake.line,
            what: &mistake.what,
            remedy: &mistake.remedy,
        });
        let file = settings.err().and_then(|mistakes| mistakes.file.as_deref());
        print_json(out, &Answer { good: settings.is_ok(), file, mistakes: mistakes.collect() })?;
        out.flush()?;
    }
    let settings = settings.map_err(|mistakes| Usage(mistakes.to_string()))?;
    if !args.json {
        let node = &settings.node;
        let socket = match &settings.socket {
            Some(Socket::Abstract(name)) => format!("@{name}"),
            Some(Socket::File(path, _)) => path.display().to_string(),
            None => "no socket".to_owned(),
        };
        let (me, group) = (&node.me, &node.group);
        let members = match node.members.len() {
            _ if settings.members.is_some() => "which agrees on its members".to_owned(),
            1 => "alone".to_owned(),
            members => format!("{members} members"),
        };
        writeln!(out, "good: node {me} of group {group}, {members}, at {socket}")?;
    }
    Ok(())
}
