//! `doorway serve`: run a node.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;
use doorway_daemon::listen::Doors;
use doorway_daemon::log::{self, Format};
use doorway_daemon::serve::{self, ServeError};
use doorway_daemon::settings::{FILE, Mistakes, Overrides, Settings, Socket};
use serde::Serialize;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::Level;

use super::print_json;
use crate::failure::Usage;
use crate::service::options::seconds;

/// Run a node: of this user, of this machine, or as a member of a group
#[derive(clap::Args)]
#[command(after_help = "\
It runs in the foreground until it gets SIGTERM or SIGINT, and then gives its clients some time
to finish. SIGHUP reads the certificates again. packaging/doorway.service runs it with systemd.

Examples:
  doorway serve --config /etc/doorway/doorway.toml
  doorway serve --config doorway.toml --check      # say all that is wrong with the file
  doorway serve --local                            # what `doorway run` starts by itself")]
pub(crate) struct Args {
    /// The configuration [default: /etc/doorway/doorway.toml]
    #[arg(long, value_name = "FILE", conflicts_with = "local")]
    config: Option<PathBuf>,
    /// The node of this user alone, which needs no configuration
    #[arg(long)]
    local: bool,
    /// The Unix socket for clients, instead of the one in the file
    #[arg(long, value_name = "PATH|@NAME")]
    socket: Option<String>,
    /// The directory for what must survive a restart, instead of the one in the file
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// End after so many seconds without clients [default: never, with --local 600]
    #[arg(long, value_name = "SECS", value_parser = above_zero)]
    idle_stop: Option<Duration>,
    /// Only say whether the configuration is good
    #[arg(long)]
    check: bool,
    /// How the log on standard error looks
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log: LogFormat,
    /// What is logged: this and all that is graver
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log_level: LogLevel,
    /// Where the log goes [default: standard error, with --local the file `log` in its directory
    /// unless standard error is a terminal]
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,
    /// Print the answer of --check as JSON
    #[arg(long, requires = "check")]
    json: bool,
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
        return Err("a time above zero, such as 600, 30s or 10m".to_owned());
    }
    Ok(time)
}

/// Run it to its end.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
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
    // Many threads help many clients of a group; one user's node is best left on one.
    let mut builder = if args.local {
        tokio::runtime::Builder::new_current_thread()
    } else {
        tokio::runtime::Builder::new_multi_thread()
    };
    let runtime = builder.enable_all().build().context("cannot start a runtime")?;
    match runtime.block_on(serve(settings)) {
        // Several commands may start the node of a user at the same moment: one of them serves,
        // which is what all of them want.
        Err(served @ ServeError::Served(_)) if args.local => {
            let _ = writeln!(std::io::stderr(), "doorway: {served}");
            Ok(())
        }
        ended => Ok(ended?),
    }
}

async fn serve(settings: Settings) -> Result<(), ServeError> {
    // Without certificates there is nothing to read again, which is no reason to die of the signal.
    let _hangup = signal(SignalKind::hangup());
    let ends = [SignalKind::terminate(), SignalKind::interrupt()].map(signal);
    let doors = Doors::of(&settings)?;
    serve::run(settings, doors, told_to_stop(ends)).await
}

/// Wait for a signal that says so.
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

/// The answer of `--check` for programs.
#[derive(Serialize)]
struct Answer<'a> {
    good: bool,
    file: Option<&'a str>,
    mistakes: Vec<Wrong<'a>>,
}

#[derive(Serialize)]
struct Wrong<'a> {
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
        let mistakes = all.into_iter().flatten().map(|mistake| Wrong {
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
        let (me, group, members) = (&node.me, &node.group, node.members.len());
        writeln!(out, "good: node {me} of group {group}, {members} members, at {socket}")?;
    }
    Ok(())
}
