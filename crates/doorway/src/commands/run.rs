//! `doorway run NAME -- COMMAND`: run a command while holding a lock.

use std::ffi::OsString;
use std::io::Write;
use std::time::Duration;

use doorway_client::machine::UNLIMITED;
use doorway_client::{Code, Endpoint, Life, Setup};
use doorway_protocol::Scope;

use crate::numbers::whole;
use crate::service::acquire::Grants;
use crate::service::command_line::CommandLine;
use crate::service::event_loop::EventLoop;
use crate::service::exit::{self, Exit};
use crate::service::guarded_command::{CommandOutcome, GuardedCommand};
use crate::service::identity;
use crate::service::link::QUICK;
use crate::service::lock_request::AcquireArgs;
use crate::service::lost_policy::{OnLost, Shutdown};
use crate::service::once::{self, Attempt, OnceRequest, TakenWindow};
use crate::service::options::{NodeArgs, seconds, ttl};
use crate::service::stderr::print_line;
use crate::service::supervisor::exit_code;

/// Run a command while holding a lock
///
/// The lock is held until the command and every process that it started have ended, even if this
/// wrapper is killed. With -o, or over TCP, the lock is held only as long as the wrapper runs: if
/// the wrapper is killed, so is the command.
///
/// If the lock is going to be lost, because the node cannot be reached or somebody broke the lock,
/// the wrapper ends the command before anyone else can be granted the lock (see --on-lost).
///
/// With --once-per, one of all hosts that start this runs the command in each period, and the
/// others do nothing. Periods are counted from 1970 in UTC, by the clock of the node. However the
/// command ends, it is not run a second time in the same period. It is not promised that it runs in
/// every period. The lock is held while the command runs, so a run that takes longer than the
/// period delays the next one; a command that cannot start before its period ends is not run.
///
/// Exit codes: that of the command, or 128 + N if signal N ended it; 126 or 127 if the command
/// cannot be run; 1 (or that of -E) if the lock was not free in time; 64 if the command line is
/// wrong; 69 if no node can be reached, or if the group cannot decide whether the lock is free
/// because nodes are missing; 77 if the node refuses this client; 123 if the lock was lost while
/// the command ran. With --once-per: 0 (or that of --skip-exit-code) if the command was run in the
/// same period before.
///
/// Signals are forwarded to the command's process group. While still waiting for the lock, a signal
/// ends the wait. Not forwarded: SIGKILL, SIGSTOP, SIGPIPE, SIGXFSZ, fault signals such as SIGSEGV,
/// and real-time signals.
#[derive(clap::Args)]
#[command(
    override_usage = "doorway run [OPTIONS] <NAME>... -- <COMMAND>...\n       \
                      doorway run [OPTIONS] <NAME> <COMMAND>...\n       \
                      doorway run [OPTIONS] <NAME> -c <LINE>",
    after_help = "\
Who shares a lock:
  Every user has locks of their own: the same name under another user, or under sudo, is another
  lock. To share locks between all users of a machine, or between machines, run a node for them
  (`doorway help serve`). `doorway status` shows whose locks you use.

Examples:
  doorway run backup -- ./backup.sh          one backup at a time
  doorway run -n backup -- ./backup.sh       do nothing if a backup is running
  doorway run -w 10 -E 75 deploy -- make     give up after 10 seconds, with exit code 75
  doorway run -s data -- ./report            together with other readers
  doorway run -k 3 download -- curl URL      at most three downloads at a time
  doorway run --once-per 1d report -- ./mail on one of all hosts, once a day

Names and the command:
  Options go before the first NAME. Every word before the first `--` is the name of a lock, so a
  command that contains `--` needs another one before it. `doorway run deploy -- git checkout --
  file` is right; without the first `--` it would take the locks deploy, git and checkout, and
  run `file`.

Environment of the command:
  DOORWAY_LOCK     the name of the lock
  DOORWAY_FENCE    its fence, for resources that check fences (`doorway help fence-guard`)
  DOORWAY_HOLDER   the node and the session
  DOORWAY_VIEW     the number of the node's view
  DOORWAY_TTL_MS   the session's TTL in milliseconds, if it has one
  DOORWAY_WINDOW   with --once-per, the start and the end of the period, separated by a slash
  With several locks, a variable has one line for each lock."
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) acquire: AcquireArgs,

    /// Run this line with `sh -c`
    #[arg(short, long, value_name = "LINE")]
    pub(crate) command: Option<OsString>,

    /// Let only this wrapper hold the lock, not the command; if it is killed, so is the command
    #[arg(short = 'o', long)]
    pub(crate) close: bool,

    /// Do this to the command before the lock is lost: term, kill, signal:N, exec:COMMAND or
    /// ignore. After the time of --grace, what is left of the command is killed
    #[arg(long, value_name = "WHAT", default_value = "term")]
    pub(crate) on_lost: OnLost,

    /// Give the command this long to end when the lock is about to be lost, in seconds or as
    /// 500ms; at most half of --ttl [default: a quarter of --ttl, or 2.5 without one]
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub(crate) grace: Option<Duration>,

    /// Exit with this code if the lock was lost
    #[arg(
        long,
        value_name = "CODE",
        default_value_t = exit::LOST,
        value_parser = whole(0..=u8::MAX),
    )]
    pub(crate) lost_exit_code: u8,

    /// Hold the lock for at least this long, in seconds or as 10m, even if the command ends sooner
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub(crate) hold_at_least: Option<Duration>,

    /// Let the node give the lock to others if it has not heard from this wrapper for this long,
    /// in seconds or as 10m [default: the lock is held as long as the command runs; over TCP 10]
    #[arg(long, value_name = "SECS", value_parser = ttl)]
    pub(crate) ttl: Option<Duration>,

    /// Run the command once in each period of this length, such as 1h, on one of all hosts that
    /// start it; if another one runs it or has run it, do nothing (see --skip-exit-code)
    #[arg(
        long,
        value_name = "PERIOD",
        value_parser = once::period,
        conflicts_with_all = ["shared", "permits"]
    )]
    pub(crate) once_per: Option<Duration>,

    /// Exit with this code if the command was not run because of --once-per
    #[arg(
        long,
        value_name = "CODE",
        default_value_t = 0,
        requires = "once_per",
        value_parser = whole(0..=u8::MAX),
    )]
    pub(crate) skip_exit_code: u8,

    /// Show this text to others who ask who holds the lock [default: the command]
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,

    /// Say which node is used, who shares its locks, and how long it took to get the lock
    #[arg(long)]
    pub(crate) verbose: bool,

    /// The name of the lock, or several names to take all of these locks; then the command
    #[arg(
        value_name = "NAME",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub(crate) words: Vec<OsString>,

    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

/// Run the command.
pub(crate) fn run(args: &Args, _out: &mut dyn Write) -> anyhow::Result<()> {
    let command_line = CommandLine::read("doorway run", &args.words, args.command.as_deref());
    let command_line = command_line.map_err(|reason| Exit::new(exit::USAGE, reason))?;
    if let (Some(grace), Some(ttl)) = (args.grace, args.ttl)
        && grace > Shutdown::longest_grace(ttl)
    {
        let (most, ttl) = (Shutdown::longest_grace(ttl).as_secs_f64(), ttl.as_secs_f64());
        let text = format!("--grace can be at most {most} s with --ttl {ttl}: half of the TTL");
        return Err(Exit::new(exit::USAGE, text).into());
    }
    let once = once(args, &command_line)?;
    let mut event_loop = EventLoop::new()?;
    let attempt = once.as_ref().map(|once| once.take(&mut event_loop)).transpose()?;
    let window = match attempt {
        Some(Attempt::TakenBefore(text)) => return skip(args, &text),
        Some(Attempt::Taken(window)) => Some(window),
        None => None,
    };
    let outcome = run_guarded(args, &command_line, window.as_ref(), &mut event_loop);
    if let (Some(once), Some(window), Err(_)) = (&once, &window, &outcome) {
        // The command was not started.
        once.give_back(window, &mut event_loop);
    }
    let CommandOutcome { end, kept } = outcome.map_err(|exit| {
        let not_found = exit.code == exit::NOT_FOUND;
        let hint = command_line.hint("doorway run", &args.words).filter(|_| not_found);
        let text = exit.text.clone().zip(hint).map(|(text, hint)| format!("{text}; {hint}"));
        Exit { text: text.or(exit.text), ..exit }
    })?;
    if end.lost {
        return Err(Exit::quiet(args.lost_exit_code).into());
    }
    if !kept && args.on_lost != OnLost::Ignore {
        let text = "the lock was lost before the command had ended";
        return Err(Exit::new(args.lost_exit_code, text).into());
    }
    match exit_code(end.change) {
        Exit { code: 0, .. } => Ok(()),
        exit => Err(exit.into()),
    }
}

/// What --once-per asks for.
fn once<'a>(
    args: &'a Args,
    command_line: &'a CommandLine,
) -> Result<Option<OnceRequest<'a>>, Exit> {
    let Some(period) = args.once_per else { return Ok(None) };
    let [lock] = command_line.locks.as_slice() else {
        let text = "--once-per is for one NAME: its windows have a name of their own for each NAME";
        return Err(Exit::new(exit::USAGE, text));
    };
    let setup = Setup { session: None, ..setup(args, command_line) };
    let (node, persistence, verbose) = (&args.node, args.acquire.persistence(), args.verbose);
    let within = args.acquire.request(&command_line.locks).within;
    Ok(Some(OnceRequest { lock, period, node, setup, persistence, within, verbose }))
}

/// End because the command was run in this window before, or runs.
fn skip(args: &Args, text: &str) -> anyhow::Result<()> {
    if args.verbose {
        print_line(&format!("not run: {text}"));
    }
    match args.skip_exit_code {
        0 => Ok(()),
        code => Err(Exit::quiet(code).into()),
    }
}

/// Run the command while the locks are held.
fn run_guarded(
    args: &Args,
    command_line: &CommandLine,
    window: Option<&TakenWindow>,
    event_loop: &mut EventLoop,
) -> Result<CommandOutcome, Exit> {
    let setup = setup(args, command_line);
    let mut link = args.node.link(setup, args.verbose, args.acquire.persistence())?;
    let mut wanted = args.acquire.request(&command_line.locks);
    let conflict = wanted.conflict;
    let left = window.map_or(Duration::MAX, TakenWindow::left);
    if window.is_some() {
        // Otherwise runs that take longer than their period would pile up.
        wanted.within = Some(wanted.within.unwrap_or(Duration::MAX).min(left));
    }
    let guarded = GuardedCommand {
        wanted,
        command: &command_line.command,
        close: args.close,
        on_lost: &args.on_lost,
        grace: args.grace,
        hold_at_least: args.hold_at_least,
        verbose: args.verbose,
        window: window.map(|taken| taken.window),
    };
    let outcome = guarded.run(&mut link, event_loop, |grants, link, waited| {
        if let Some(asked) = args.ttl.filter(|asked| grants.ttl < *asked) {
            warn_of_ttl(asked, grants.ttl);
        }
        if args.verbose {
            tell(grants, link.endpoint(), args.ttl, waited);
        }
    });
    outcome.map_err(|exit| match (window, exit.refused) {
        (Some(TakenWindow { window, .. }), Some(Code::NotFree)) => {
            let text = exit.text.unwrap_or_default();
            Exit { text: Some(format!("{text}; not run in the window {window}")), ..exit }
        }
        // In such a short time, a node that is busy cannot be told from one that is away.
        (Some(taken), Some(Code::Unavailable)) if left < QUICK && taken.left().is_zero() => {
            let window = taken.window;
            Exit::new(conflict, format!("the window {window} ended before the lock was granted"))
        }
        _ => exit,
    })
}

fn setup(args: &Args, command_line: &CommandLine) -> Setup {
    let command = command_line.command.iter().map(|word| word.to_string_lossy());
    let label = args.label.clone();
    let label = label.unwrap_or_else(|| command.collect::<Vec<_>>().join(" "));
    let life = Life::Connection { inherited: !args.close };
    identity::setup(label, Some((args.ttl.unwrap_or(UNLIMITED), life)))
}

/// Warn that the node sets a shorter TTL than the command line.
fn warn_of_ttl(asked: Duration, ttl: Duration) {
    let (asked, ttl) = (asked.as_secs_f64(), ttl.as_secs_f64());
    print_line(&format!(
        "warning: --ttl {asked} is more than `limits.ttl` of the node allows, so it is {ttl} s: \
         the lock is lost if the node hears nothing from this wrapper for that time"
    ));
}

/// Report the locks, the node, who shares its locks, and what would lose them. `asked` is the TTL
/// of the command line.
fn tell(grants: &Grants, endpoint: &Endpoint, asked: Option<Duration>, waited: Duration) {
    let locks = grants.locks.iter().map(|(lock, fence)| format!("{lock} (fence {fence})"));
    let locks = locks.collect::<Vec<_>>().join(", ");
    let (node, seconds) = (&grants.node, waited.as_secs_f64());
    let scope = grants.scope.map_or("unknown", identity::scope);
    let silence = format!("lost if the node hears nothing for {} s", grants.ttl.as_secs_f64());
    let held = match endpoint {
        _ if grants.ttl == UNLIMITED => "held as long as the command runs".to_owned(),
        Endpoint::Path(_) | Endpoint::Abstract(_) if asked.is_none() => {
            let unseen = "the node cannot see this process: do they run in different pid \
                          namespaces, as in a container?";
            // Only a group of machines can agree on its members.
            if grants.scope == Some(Scope::Cluster) {
                format!("{silence}, because the group agrees on its members, or because {unseen}")
            } else {
                format!("{silence}, because {unseen}")
            }
        }
        _ => silence,
    };
    let text =
        format!("{locks} after {seconds:.3} s; node {node} at {endpoint}, scope: {scope}; {held}");
    print_line(&format!("holding {text}"));
}
