//! The problems, and the options that describe one of them.

use doorway_core::algorithms::Entry as Lock;
use doorway_lab::AnyAlgorithm;
use doorway_lab::problems::buffer::{self, Buffer, Refuted, Variant};
use doorway_lab::problems::exchange::Faults;
use doorway_threads::ring::explore::Daemon;

use crate::failure::Usage;
use crate::names;
use crate::numbers::whole;

/// A problem, or one solution of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Problem {
    pub(crate) name: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) origin: &'static str,
    pub(super) kind: Kind,
}

/// What kind of problem it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A bounded buffer by messages.
    Buffer(Variant),
    /// A bounded buffer between threads.
    ThreadBuffer,
    /// Readers and writers between threads.
    ReadersWriters,
    /// A self-stabilizing ring.
    Ring(RingKind),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RingKind {
    K,
    Four,
    Three,
}

const RAYNAL: &str = "after Raynal 1986, section 6.2";
const DIJKSTRA: &str = "Dijkstra 1974";

/// Every problem.
pub(crate) fn all() -> Vec<Problem> {
    let by_messages = Variant::ALL.map(|(name, variant, summary)| Problem {
        name,
        summary,
        origin: RAYNAL,
        kind: Kind::Buffer(variant),
    });
    let others = [
        (
            "buffer-threads",
            "bounded buffer between threads, by four semaphores",
            "after Dijkstra 1965",
            Kind::ThreadBuffer,
        ),
        (
            "readers-writers",
            "readers and writers between threads, by a turnstile",
            "after Courtois, Heymans and Parnas 1971",
            Kind::ReadersWriters,
        ),
        ("ring-k-state", "self-stabilizing ring of K states", DIJKSTRA, Kind::Ring(RingKind::K)),
        (
            "ring-four-state",
            "self-stabilizing ring of 4 states",
            DIJKSTRA,
            Kind::Ring(RingKind::Four),
        ),
        (
            "ring-three-state",
            "self-stabilizing ring of 3 states",
            DIJKSTRA,
            Kind::Ring(RingKind::Three),
        ),
    ];
    let others =
        others.map(|(name, summary, origin, kind)| Problem { name, summary, origin, kind });
    by_messages.into_iter().chain(others).collect()
}

impl Problem {
    /// Where the solution fails, if it is kept as a refuted one.
    pub(super) fn refuted(&self) -> Option<Refuted> {
        match self.kind {
            Kind::Buffer(variant) => variant.refuted(),
            _ => None,
        }
    }
}

/// The options that describe a problem. An option that a problem has no use for is refused.
#[derive(clap::Args, Default)]
pub(super) struct ProblemArgs {
    /// Set the number of producers, of processes or of machines [default: 2; rings: 4]
    #[arg(short = 'n', value_name = "N", value_parser = whole(1..=MOST))]
    n: Option<usize>,
    /// Set the number of places of a buffer [default: 2]
    #[arg(long, value_name = "C", value_parser = whole(1..=MOST))]
    capacity: Option<usize>,
    /// Set the number of items of each producer, for buffer-locked and buffer-naive [default: 2]
    #[arg(long, value_name = "I", value_parser = whole(1..=MOST))]
    items: Option<usize>,
    /// Set the number of processes that send (buffer-threads) or write (readers-writers)
    /// [default: 1]
    #[arg(long, value_name = "W", value_parser = whole(1..=MOST))]
    writers: Option<usize>,
    /// Let channels do this to messages: overtaking, loss, duplication, or none; crash lets both
    /// processes of buffer-pair start again [default: overtaking,loss,duplication where producers
    /// send again, else overtaking]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    faults: Option<Vec<FaultName>>,
    /// Do not send again what may have been lost
    #[arg(long)]
    send_once: bool,
    /// Choose the lock of buffer-locked [default: ricart-agrawala]
    #[arg(long, value_name = "ALGORITHM", value_parser = names::algorithms())]
    #[arg(hide_possible_values = true)]
    lock: Option<&'static Lock>,
    /// Set the number of states of a machine of ring-k-state [default: N]
    #[arg(long, value_name = "K", value_parser = whole(1..=MOST))]
    states: Option<usize>,
    /// Choose how machines of a ring move: one at a time, any number at once, or with separate
    /// reads and writes [default: central]
    #[arg(long, value_name = "DAEMON")]
    daemon: Option<DaemonName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum FaultName {
    Overtaking,
    Loss,
    Duplication,
    Crash,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum DaemonName {
    Central,
    Distributed,
    ReadWrite,
}

impl DaemonName {
    pub(super) fn daemon(self) -> Daemon {
        match self {
            Self::Central => Daemon::Central,
            Self::Distributed => Daemon::Distributed,
            Self::ReadWrite => Daemon::ReadWrite,
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Central => "one at a time",
            Self::Distributed => "any number at once",
            Self::ReadWrite => "reads and writes apart",
        }
    }
}

/// The most producers, processes, machines, places or items of an option.
const MOST: usize = 1000;

/// A problem with all of its numbers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Question {
    Buffer(Buffer),
    ThreadBuffer { slots: usize, senders: usize, n: usize },
    ReadersWriters { writers: usize, n: usize },
    Ring { kind: RingKind, n: usize, states: usize, daemon: DaemonName },
}

impl ProblemArgs {
    /// The question that the options ask.
    pub(super) fn question(&self, problem: &Problem) -> Result<Question, Usage> {
        self.refuse_useless(problem)?;
        Ok(match problem.kind {
            Kind::Buffer(variant) => Question::Buffer(self.buffer(variant)?),
            Kind::ThreadBuffer => {
                let (slots, senders) = (self.capacity.unwrap_or(2), self.writers.unwrap_or(1));
                let n = self.n.unwrap_or(senders + 1);
                few("--capacity", slots, 3)?;
                few("--writers", senders, 3)?;
                if n <= senders {
                    let text =
                        format!("{n} processes with {senders} that send leave none to receive");
                    return Err(Usage(text));
                }
                Question::ThreadBuffer { slots, senders, n }
            }
            Kind::ReadersWriters => {
                let (n, writers) = (self.n.unwrap_or(2), self.writers.unwrap_or(1));
                few("--writers", writers, 3)?;
                if n < writers {
                    return Err(Usage(format!("{writers} writers are more than {n} processes")));
                }
                Question::ReadersWriters { writers, n }
            }
            Kind::Ring(kind) => {
                let n = self.n.unwrap_or(4);
                if n < 2 || (kind != RingKind::K && n < 3) {
                    let least = if kind == RingKind::K { 2 } else { 3 };
                    return Err(Usage(format!("this ring has at least {least} machines, not {n}")));
                }
                let states = match kind {
                    RingKind::K => self.states.unwrap_or(n),
                    RingKind::Four => 4,
                    RingKind::Three => 3,
                };
                Question::Ring {
                    kind,
                    n,
                    states,
                    daemon: self.daemon.unwrap_or(DaemonName::Central),
                }
            }
        })
    }

    fn buffer(&self, variant: Variant) -> Result<Buffer, Usage> {
        let usual = Buffer::new(variant);
        let mut faults = usual.faults;
        if let Some(named) = &self.faults {
            let has = |name| named.contains(&name);
            if has(FaultName::None) && named.len() > 1 {
                return Err(Usage("--faults none goes with no other fault".into()));
            }
            let lose = has(FaultName::Loss);
            faults = Faults {
                overtake: has(FaultName::Overtaking),
                lose,
                double: has(FaultName::Duplication),
                again: lose && variant != Variant::Naive,
                crash: has(FaultName::Crash),
            };
        }
        faults.again &= !self.send_once;
        if faults.again && !faults.overtake {
            let reason = "a message that is sent again overtakes others; add overtaking to \
                          --faults, or say --send-once";
            return Err(Usage(reason.into()));
        }
        Ok(Buffer {
            capacity: self.capacity.map_or(usual.capacity, |capacity| capacity as u64),
            producers: self.n.unwrap_or(usual.producers),
            items: self.items.map(|items| items as u64),
            faults,
            lock: self.lock.map_or(usual.lock, AnyAlgorithm::from),
            ..usual
        })
    }

    fn refuse_useless(&self, problem: &Problem) -> Result<(), Usage> {
        let kind = problem.kind;
        let messages = matches!(kind, Kind::Buffer(_));
        let counted = matches!(kind, Kind::Buffer(Variant::Locked | Variant::Naive));
        let threads = matches!(kind, Kind::ThreadBuffer | Kind::ReadersWriters);
        let ring = matches!(kind, Kind::Ring(_));
        let useless = [
            (self.capacity.is_some() && !messages && kind != Kind::ThreadBuffer, "--capacity"),
            (self.items.is_some() && !counted, "--items"),
            (self.writers.is_some() && !threads, "--writers"),
            (self.faults.is_some() && !messages, "--faults"),
            (self.send_once && !messages, "--send-once"),
            (self.lock.is_some() && kind != Kind::Buffer(Variant::Locked), "--lock"),
            (self.states.is_some() && kind != Kind::Ring(RingKind::K), "--states"),
            (self.daemon.is_some() && !ring, "--daemon"),
        ];
        match useless.iter().find(|(useless, _)| *useless) {
            None => Ok(()),
            Some((_, option)) => Err(Usage(format!("{} has no use for {option}", problem.name))),
        }
    }
}

/// A number that is fixed when the program is compiled.
fn few(option: &str, number: usize, most: usize) -> Result<(), Usage> {
    if number > most {
        return Err(Usage(format!("{option} is 1 to {most} for this problem, not {number}")));
    }
    Ok(())
}

impl Question {
    /// The question of a problem without any options.
    pub(super) fn usual(problem: &Problem) -> Self {
        let usual = ProblemArgs::default().question(problem);
        usual.unwrap_or_else(|Usage(why)| unreachable!("{}: {why}", problem.name))
    }

    /// The question in words.
    pub(super) fn words(&self) -> String {
        let s = |count: usize| if count == 1 { "" } else { "s" };
        match self {
            Self::Buffer(buffer) => {
                let Buffer { producers, capacity, faults, variant, items, .. } = *buffer;
                let mut words = vec![
                    format!("{producers} producer{}", s(producers)),
                    format!("{capacity} place{}", s(capacity as usize)),
                ];
                if matches!(variant, Variant::Locked | Variant::Naive) {
                    let items = items.unwrap_or(buffer::ITEMS);
                    words.push(format!("{items} item{} each", s(items as usize)));
                }
                if variant == Variant::Locked {
                    words.push(format!("lock {}", buffer.lock.info().name));
                }
                let faults = [
                    (faults.overtake, "overtaken"),
                    (faults.lose, "lost"),
                    (faults.double, "doubled"),
                    (faults.again, "sent again"),
                ];
                let some: Vec<_> =
                    faults.iter().filter(|(on, _)| *on).map(|(_, text)| *text).collect();
                words.push(match some.as_slice() {
                    [] => "messages arrive once and in order".to_owned(),
                    some => format!("messages may be {}", some.join(", ")),
                });
                if buffer.faults.crash {
                    words.push("processes crash and start again".to_owned());
                }
                words.join(", ")
            }
            Self::ThreadBuffer { slots, senders, n } => {
                let receivers = n - senders;
                format!(
                    "{slots} place{}, {senders} sender{}, {receivers} receiver{}",
                    s(*slots),
                    s(*senders),
                    s(receivers)
                )
            }
            Self::ReadersWriters { writers, n } => {
                let readers = n - writers;
                format!("{readers} reader{}, {writers} writer{}", s(readers), s(*writers))
            }
            Self::Ring { n, states, daemon, .. } => {
                format!("{n} machines of {states} states, moves {}", daemon.words())
            }
        }
    }
}
