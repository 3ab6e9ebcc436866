//! `doorway run NAME -- COMMAND`: run a command under a lock.

use std::ffi::OsString;
use std::io::Write;
use std::time::Duration;

use doorway_client::{Endpoint, Event, Life, Moment, Setup};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::service::acquire::{Granted, acquire};
use crate::service::child::{Child, Plan};
use crate::service::exit::{self, Exit};
use crate::service::hold::{Holding, exit_code};
use crate::service::link::Link;
use crate::service::lost::{Ending, OnLost};
use crate::service::options::{NodeArgs, seconds, ttl};
use crate::service::release::release;
use crate::service::say::say;
use crate::service::signals;
use crate::service::terminal::Terminal;
use crate::service::turn::Turns;
use crate::service::wanted::AcquireArgs;
use crate::service::who;
use crate::service::words::Words;

/// Run a command while holding a lock
///
/// The exit code is the command's own, 128 + N if signal N ended it, 126 or 127 if it cannot be
/// run; 1 (or that of -E) if the lock was not free in time; 64 if the command line is wrong, 69
/// if there is no node, 77 if the node refuses, and 123 if the lock was lost while the command
/// ran. A signal is passed on to the command and its process group; while waiting, it gives up.
/// Not passed on are KILL, STOP, PIPE, XFSZ, those that a fault sends and those of real time.
///
/// The command and all that it starts keep the session open: the lock is held until the last of
/// them is gone, even if this wrapper is killed, unless -o is given. Over TCP it is as with -o:
/// the command is killed with this wrapper, and what it leaves behind holds nothing.
#[derive(clap::Args)]
#[command(
    override_usage = "doorway run [OPTIONS] <NAME>... -- <COMMAND>...\n       \
                      doorway run [OPTIONS] <NAME> <COMMAND>...\n       \
                      doorway run [OPTIONS] <NAME> -c <LINE>",
    after_help = "Examples:\n  \
        doorway run backup -- ./backup.sh          one backup at a time\n  \
        doorway run -n backup -- ./backup.sh       not at all if one runs already\n  \
        doorway run -w 10 -E 75 deploy -- make     give up after 10 seconds, with exit code 75\n  \
        doorway run -s data -- ./report            together with others that read\n  \
        doorway run -k 3 download -- curl URL      at most three at a time\n\n\
        In the environment of the command: DOORWAY_LOCK, DOORWAY_FENCE (give it to what the\n\
        command changes: `doorway help fence-guard`), DOORWAY_HOLDER, DOORWAY_VIEW and\n\
        DOORWAY_TTL_MS. With several locks the values of each stand on a line of their own.\n\n\
        Options stand before the first NAME. Up to the first `--` all words are names: a command\n\
        with a `--` of its own needs one before it, as in `doorway run x -- git log -- file`."
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) acquire: AcquireArgs,

    /// Run this line with `sh -c`
    #[arg(short, long, value_name = "LINE")]
    pub(crate) command: Option<OsString>,

    /// The command does not keep the session open: it is killed if this wrapper is
    #[arg(short = 'o', long)]
    pub(crate) close: bool,

    /// What to do to the command before the lock can be lost: term, kill, signal:N,
    /// exec:COMMAND or ignore. What is left of it after its time of grace is killed
    #[arg(long, value_name = "WHAT", default_value = "term")]
    pub(crate) on_lost: OnLost,

    /// How long the command has to end when its lock is being lost: at most half of --ttl
    /// [default: a quarter of it]
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub(crate) grace: Option<Duration>,

    /// The exit code if the lock was lost
    #[arg(long, value_name = "CODE", default_value_t = exit::LOST)]
    pub(crate) lost_exit_code: u8,

    /// Hold the lock for so long even if the command ends sooner
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub(crate) hold_at_least: Option<Duration>,

    /// How long the node waits for a sign of life before it gives the lock to others
    #[arg(long, value_name = "SECS", default_value = "10", value_parser = ttl)]
    pub(crate) ttl: Duration,

    /// What others see who ask who holds the lock [default: the command]
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,

    /// Say which node is used, for whom its locks are, and how long it took
    #[arg(long)]
    pub(crate) verbose: bool,

    #[command(flatten)]
    pub(crate) node: NodeArgs,

    /// The locks, and what to run
    #[arg(
        value_name = "NAME",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub(crate) words: Vec<OsString>,
}

/// Run it.
pub(crate) fn run(args: &Args, _out: &mut dyn Write) -> anyhow::Result<()> {
    let words = Words::new(&args.words, args.command.as_deref());
    let words = words.map_err(|reason| Exit::new(exit::USAGE, reason))?;
    let longest = Ending::longest_grace(args.ttl);
    if args.grace.is_some_and(|grace| grace > longest) {
        let (most, ttl) = (longest.as_secs_f64(), args.ttl.as_secs_f64());
        let text = format!("--grace is at most {most} s with --ttl {ttl}: half of it");
        return Err(Exit::new(exit::USAGE, text).into());
    }
    let mut turns = Turns::new()?;
    let mut link = args.node.link(setup(args, &words))?;
    let wanted = args.acquire.wanted(&words.locks);
    let begin = Moment::now();
    let granted = acquire(&wanted, &mut link, &mut turns)?;
    let inside = Moment::now();
    if args.verbose {
        tell(&granted, link.endpoint(), inside.since(begin));
    }
    let terminal = Terminal::ours();
    let child = Child::spawn(Plan {
        words: &words.command,
        variables: granted.variables(),
        before: turns.signals.before(),
        terminal: terminal.as_ref().filter(|terminal| terminal.is_talked_to()),
        session: link.session().filter(|_| !args.close),
    });
    let end = child.map(|child| {
        let ending = Ending::new(granted.ttl, args.grace);
        let (on_lost, verbose) = (&args.on_lost, args.verbose);
        let (granted, link, turns) = (&granted, &mut link, &mut turns);
        let hung_up = false;
        Holding { granted, link, turns, child, terminal, on_lost, ending, hung_up, verbose }.run()
    });
    let mut lost = end.as_ref().is_ok_and(|end| end.lost);
    if let Some(least) = args.hold_at_least.filter(|_| !lost) {
        lost = linger(inside.after(least), &mut link, &mut turns);
    }
    // What is lost needs no release, and what others hold gets none.
    let done = lost || end.as_ref().is_ok_and(|end| end.others);
    let kept = done || release(&granted, &mut link, &mut turns);
    let end = end?;
    if let Some(key) = end.key {
        interrupt(key);
    }
    if end.lost {
        return Err(Exit::quiet(args.lost_exit_code).into());
    }
    if !kept && args.on_lost != OnLost::Ignore {
        let text = "the lock was lost before the command ended";
        return Err(Exit::new(args.lost_exit_code, text).into());
    }
    match exit_code(end.change) {
        Exit { code: 0, .. } => Ok(()),
        exit => Err(exit.into()),
    }
}

fn setup(args: &Args, words: &Words) -> Setup {
    let command = words.command.iter().map(|word| word.to_string_lossy());
    let label = args.label.clone();
    let label = label.unwrap_or_else(|| command.collect::<Vec<_>>().join(" "));
    let life = Life::Connection { inherited: !args.close };
    who::setup(label, Some((args.ttl, life)))
}

/// Say which node it is and whom its locks are for.
fn tell(granted: &Granted, endpoint: &Endpoint, waited: Duration) {
    let locks = granted.locks.iter().map(|(lock, fence)| format!("{lock} (fence {fence})"));
    let locks = locks.collect::<Vec<_>>().join(", ");
    let (node, seconds) = (&granted.node, waited.as_secs_f64());
    let scope = granted.scope.map_or("unknown", who::scope);
    let text = format!("{locks} after {seconds:.3} s; node {node} at {endpoint}, scope: {scope}");
    say(&format!("holding {text}"));
}

/// Hold the lock for a while longer, unless a signal ends that. Is it lost? Then there is nothing
/// to hold, and the command had it all the time.
fn linger(until: Moment, link: &mut Link, turns: &mut Turns) -> bool {
    while Moment::now() < until {
        match turns.turn(link, until) {
            Some(signal) if signals::react(signal) => return false,
            _ => {}
        }
        while let Some(event) = link.event() {
            if matches!(event, Event::Lost { .. }) {
                return true;
            }
        }
    }
    false
}

/// The key that ended the command was meant for all of the job that we are part of. The shell of a
/// script ends only if it sees us end by the signal.
fn interrupt(key: Signal) {
    let _ = kill(Pid::from_raw(0), key);
    signals::take(key);
}
