//! `doorway elect NAME -- COMMAND`: a leader runs a command, and standbys wait.

use std::ffi::OsString;
use std::io::Write;
use std::time::Duration;

use doorway_client::machine::UNLIMITED;
use doorway_client::{Life, Mode};
use doorway_protocol::{Fence, Name};
use serde::Serialize;

use crate::service::command_line::CommandLine;
use crate::service::event_loop::EventLoop;
use crate::service::exit::{self, Exit};
use crate::service::guarded_command::{CommandOutcome, GuardedCommand};
use crate::service::identity;
use crate::service::link::Persistence;
use crate::service::lock_request::LockRequest;
use crate::service::lost_policy::OnLost;
use crate::service::options::{NodeArgs, ttl};
use crate::service::stderr::print;
use crate::service::supervisor::exit_code;

/// Run a command on one machine at a time: the leader runs it, the standbys wait
///
/// Start this on several machines with the same NAME. One of them becomes the leader and runs the
/// command. If the leader ends, a standby takes over at once. If the machine of the leader dies or
/// is cut off, a standby takes over after its TTL, or after the lease of its node.
///
/// A leader that may lose its place ends the command before another one can become the leader, as
/// `doorway run` does, and then waits as a standby again, unless somebody asked it to end (SIGTERM
/// or SIGINT) in the last minute. Standbys wait for a node that is away for as long as it takes.
/// When the command ends by itself, this ends with its exit code, and a standby takes over.
///
/// Exit codes: that of the command, or 128 + N if signal N ended it; 126 or 127 if the command
/// cannot be run; 64 if the command line is wrong; 69 if no node can be reached at the start; 77
/// if the node refuses this client; 123 if the lead was lost at the moment when the command ended.
#[derive(clap::Args)]
#[command(
    override_usage = "doorway elect [OPTIONS] <NAME> -- <COMMAND>...",
    after_help = "\
Examples:
  doorway elect scheduler -- ./scheduler       one scheduler runs, on any of the machines
  doorway elect --json scheduler -- ./scheduler 2> events

Environment of the command:
  DOORWAY_LOCK, DOORWAY_FENCE and the others of `doorway run`. The fence grows with every leader:
  a resource that checks fences refuses what a former leader writes.

Events (--json), one in a line on standard error, since standard output belongs to the command.
Lines that do not begin with `{\"event\":` are messages for people, or come from the command.
  {\"event\":\"standby\",\"name\":\"scheduler\"}
  {\"event\":\"leader\",\"name\":\"scheduler\",\"fence\":\"50536852947468291\",\"node\":\"a\"}
  {\"event\":\"lost\",\"name\":\"scheduler\",\"fence\":\"50536852947468291\"}
  {\"event\":\"ended\",\"name\":\"scheduler\",\"fence\":\"50536852947468291\",\"code\":0}"
)]
pub(crate) struct Args {
    /// Write an event in JSON to standard error when this becomes a standby or the leader, when
    /// the lead is lost, and when the command has ended
    #[arg(long)]
    json: bool,

    /// Let a standby take over if the node has not heard from the leader for this long, in
    /// seconds [default: a leader that hangs stays the leader; over TCP 10]
    #[arg(long, value_name = "SECS", value_parser = ttl)]
    ttl: Option<Duration>,

    /// Do this to the command before the lead is lost: term, kill, signal:N or exec:COMMAND
    #[arg(long, value_name = "WHAT", default_value = "term")]
    on_lost: OnLost,

    /// Show this text to others who ask who leads [default: the command]
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,

    /// The name of the election, and the command
    #[arg(
        value_name = "NAME",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    words: Vec<OsString>,

    #[command(flatten)]
    node: NodeArgs,
}

/// Something that a supervisor may want to know.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Event<'a> {
    Standby { name: &'a Name },
    Leader { name: &'a Name, fence: Fence, node: &'a str },
    Lost { name: &'a Name, fence: Fence },
    Ended { name: &'a Name, fence: Fence, code: u8 },
}

impl Args {
    fn tell(&self, event: &Event<'_>) {
        if self.json {
            let line = serde_json::to_string(event).expect("an event can be written as JSON");
            print(&format!("{line}\n"));
        }
    }
}

/// Lead, or wait until that is possible.
pub(crate) fn run(args: &Args, _out: &mut dyn Write) -> anyhow::Result<()> {
    let usage = |reason: String| Exit::new(exit::USAGE, reason);
    let command_line = CommandLine::read("doorway elect", &args.words, None).map_err(usage)?;
    let [name] = &command_line.locks[..] else {
        let text = "an election has one name: doorway elect NAME -- COMMAND...";
        return Err(usage(text.to_owned()).into());
    };
    if args.on_lost == OnLost::Ignore {
        let text =
            "--on-lost ignore would leave two leaders: give term, kill, signal:N or exec:COMMAND";
        return Err(usage(text.to_owned()).into());
    }
    let mut event_loop = EventLoop::new()?;
    // The first attempt shows whether there is a node at all. A leader that has lost its node waits
    // for it.
    let mut persistence = Persistence::Usual;
    loop {
        args.tell(&Event::Standby { name });
        let (fence, CommandOutcome { end, kept }) =
            lead(args, &command_line, &mut event_loop, persistence)?;
        if !end.lost {
            let exit = exit_code(end.change);
            args.tell(&Event::Ended { name, fence, code: exit.code });
            if !kept {
                let text = "the lead was lost before the command had ended";
                return Err(Exit::new(exit::LOST, text).into());
            }
            return if exit.code == 0 { Ok(()) } else { Err(exit.into()) };
        }
        args.tell(&Event::Lost { name, fence });
        if let Some(signal) = end.asked_to_end {
            // Somebody wants this to end, and not only the command.
            return Err(Exit::signal(signal as i32).into());
        }
        persistence = Persistence::Deadline;
    }
}

/// Wait for the lead, and run the command. The fence is that of the leader.
fn lead(
    args: &Args,
    command_line: &CommandLine,
    event_loop: &mut EventLoop,
    persistence: Persistence,
) -> Result<(Fence, CommandOutcome), Exit> {
    let command = command_line.command.iter().map(|word| word.to_string_lossy());
    let label = args.label.clone().unwrap_or_else(|| command.collect::<Vec<_>>().join(" "));
    let life = Life::Connection { inherited: true };
    let setup = identity::setup(label, Some((args.ttl.unwrap_or(UNLIMITED), life)));
    let mut link = args.node.link(setup, false, persistence)?;
    let wanted = LockRequest {
        locks: &command_line.locks,
        mode: Mode::Exclusive,
        permits: None,
        within: None,
        conflict: exit::UNAVAILABLE,
        persists: true,
    };
    let guarded = GuardedCommand {
        wanted,
        command: &command_line.command,
        close: false,
        on_lost: &args.on_lost,
        grace: None,
        hold_at_least: None,
        verbose: false,
        window: None,
    };
    let mut leads = Fence::new(0, 0);
    let outcome = guarded.run(&mut link, event_loop, |grants, _, _| {
        for (name, fence) in &grants.locks {
            leads = *fence;
            args.tell(&Event::Leader { name, fence: *fence, node: &grants.node });
        }
    })?;
    Ok((leads, outcome))
}
