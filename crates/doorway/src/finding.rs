//! The result of a check, printed for a reader and as JSON.

use std::io::{self, Write};

use doorway_core::{Fault, Formula, Info};
use doorway_lab::check::{Case, Property, SearchTargets, Verdict, WaitBounds, unconfirmed};
use doorway_lab::numbers::{grouped, short};
use doorway_lab::refutations::{self, Refutation};
use doorway_lab::script::{self, Outcome};
use doorway_lab::{FOREVER, Violation, itf};
use indicatif::HumanBytes;
use serde::Serialize;
use serde_json::{Value, json};

use crate::checking::{CheckOutcome, Stop, rate};
use crate::commands::list::channel;
use crate::failure::NotExhausted;
use crate::group_args::Arrangement;
use crate::table::Table;
use crate::wrap;

/// A check and its result.
pub(crate) struct Finding {
    pub(crate) info: &'static Info,
    pub(crate) case: Case,
    /// What was chosen for the group.
    arrangement: Arrangement,
    /// How often each requesting node asks.
    pub(crate) acquires: u32,
    pub(crate) checked: CheckOutcome,
    /// The steps that lead to the violation, if there is one.
    pub(crate) story: Option<Counterexample>,
}

/// A counterexample as a script, and what happens when the script is played.
pub(crate) struct Counterexample {
    pub(crate) trace: Vec<String>,
    pub(crate) cycle: Vec<String>,
    pub(crate) played: Outcome,
}

/// The JSON output; its names are a promise to scripts.
#[derive(Serialize)]
pub(crate) struct Record<'a> {
    algorithm: &'static str,
    n: u32,
    /// What was chosen for the group, such as its quorums, and how its token begins.
    arrangement: &'a Arrangement,
    acquires: Value,
    channel: &'static str,
    withdraw: bool,
    faults: Vec<&'static str>,
    verdict: &'static str,
    property: Option<String>,
    worlds: u64,
    transitions: u64,
    depth: u32,
    seconds: f64,
    memory_bytes: u64,
    overtaking: Value,
    messages: Value,
    mix_up: f64,
    /// The command that finds a violation, if the algorithm is refuted but holds here.
    refuted_by: Option<String>,
    trace: &'a [String],
    cycle: &'a [String],
}

impl Finding {
    /// The result of a check.
    pub(crate) fn new(
        info: &'static Info,
        case: Case,
        acquires: u32,
        checked: CheckOutcome,
        arrangement: Arrangement,
    ) -> anyhow::Result<Self> {
        if let Verdict::Unconfirmed { steps } = checked.report.verdict {
            return Err(NotExhausted(unconfirmed(steps)).into());
        }
        let mut finding = Self { info, case, arrangement, acquires, checked, story: None };
        finding.story = finding.counterexample()?;
        Ok(finding)
    }

    /// The counterexample, if there is one.
    fn counterexample(&self) -> anyhow::Result<Option<Counterexample>> {
        let Verdict::Violated { trace, cycle, violation } = &self.checked.report.verdict else {
            return Ok(None);
        };
        let name = self.info.name;
        let (trace, cycle) = self.case.tell(trace, cycle);
        let (size, channel) = (self.case.group.size(), channel(self.case.channel));
        let history = self.case.history.map(|history| format!(" history={}", history.name()));
        let history = history.unwrap_or_default();
        let options = self.arrangement.script_options();
        let setup = format!("{name} n={size} channel={channel}{options}{history}");
        let comment = format!("violated: {}.", self.violated().unwrap_or_default());
        let played = script::run(&script::compose(&comment, &setup, &trace, &cycle))?;
        let same = played.violation.as_ref() == Some(violation);
        anyhow::ensure!(same, "the script of '{violation}' shows {:?}", played.violation);
        Ok(Some(Counterexample { trace, cycle, played }))
    }

    /// The verdict in a word.
    pub(crate) fn verdict(&self) -> &'static str {
        match self.checked.report.verdict {
            Verdict::Holds => "holds",
            Verdict::Violated { .. } => "violated",
            Verdict::NotExhausted => "not exhausted",
            Verdict::Unconfirmed { .. } => "unconfirmed",
        }
    }

    /// The violation, if there is one.
    pub(crate) fn violation(&self) -> Option<&Violation> {
        match &self.checked.report.verdict {
            Verdict::Violated { violation, .. } => Some(violation),
            _ => None,
        }
    }

    /// The name of the violated property.
    fn property(&self) -> Option<String> {
        Some(Property::violated_by(self.violation()?).name_with(self.case.history))
    }

    /// The violated property, and how it is violated.
    pub(crate) fn violated(&self) -> Option<String> {
        Some(format!("{}: {}", self.property()?, self.violation()?))
    }

    /// Why the check was not exhausted, if it was not.
    pub(crate) fn stop(&self) -> Option<String> {
        let limit = self.case.limit;
        Some(match self.checked.stop? {
            Stop::Person => "stopped by Ctrl-C".to_owned(),
            Stop::Time => "the check takes more time than it may".to_owned(),
            Stop::Memory => "the worlds take more memory than --memory allows".to_owned(),
            Stop::Worlds if self.checked.report.progress.states > limit => {
                format!("there are more than {} worlds, the --limit", grouped(limit))
            }
            Stop::Worlds => "there are more transitions than can be counted".to_owned(),
        })
    }

    /// What is known although the check was not exhausted.
    fn known(&self) -> Option<String> {
        self.checked.stop?;
        // The worlds at the last distance have not all been looked at.
        let steps = self.checked.report.progress.depth.saturating_sub(1);
        Some(format!("no violation within {steps} steps; nothing is shown about longer runs"))
    }

    /// The largest number of entries of other nodes while one node waits.
    pub(crate) fn overtaking(&self) -> Option<String> {
        let overtaken = self.checked.report.waiting?.overtaken;
        Some(overtaken.map_or_else(|| "any number".to_owned(), |most| most.to_string()))
    }

    /// Where a refuted algorithm fails, if the check found that it holds here.
    pub(crate) fn refuted_elsewhere(&self) -> Option<&'static Refutation> {
        let holds = self.checked.report.verdict == Verdict::Holds;
        refutations::of(self.info.name).filter(|_| holds)
    }

    /// The counterexample in the Informal Trace Format, if there is one.
    pub(crate) fn itf(&self) -> Option<Value> {
        match &self.checked.report.verdict {
            Verdict::Violated { trace, cycle, violation } => {
                Some(itf::trace(&self.case.world(), trace, cycle, violation))
            }
            Verdict::Holds | Verdict::NotExhausted | Verdict::Unconfirmed { .. } => None,
        }
    }

    /// The result as JSON.
    pub(crate) fn record(&self) -> Record<'_> {
        let CheckOutcome { report, seconds, .. } = &self.checked;
        let name = |fault: &Fault| Fault::ALL.iter().find(|(_, known)| known == fault);
        let waiting = report.waiting;
        let messages = waiting.and_then(|waiting| waiting.messages);
        let (trace, cycle) = match &self.story {
            Some(Counterexample { trace, cycle, .. }) => (trace.as_slice(), cycle.as_slice()),
            None => (&[][..], &[][..]),
        };
        let forever = self.acquires == FOREVER;
        Record {
            algorithm: self.info.name,
            n: self.case.group.size(),
            arrangement: &self.arrangement,
            acquires: if forever { json!("forever") } else { json!(self.acquires) },
            channel: channel(self.case.channel),
            withdraw: self.case.withdrawing,
            faults: self.case.faults.iter().filter_map(name).map(|(name, _)| *name).collect(),
            verdict: self.verdict(),
            property: self.property(),
            worlds: report.progress.states,
            transitions: report.progress.steps,
            depth: report.progress.depth,
            seconds: *seconds,
            memory_bytes: report.progress.bytes,
            overtaking: waiting.map_or(Value::Null, |waiting| {
                waiting.overtaken.map_or(json!("unbounded"), |most| json!(most))
            }),
            messages: messages
                .map_or(Value::Null, |(least, most)| json!({ "least": least, "most": most })),
            mix_up: report.mix_up(),
            refuted_by: self.refuted_elsewhere().map(Refutation::command),
            trace,
            cycle,
        }
    }

    /// Print the verdict and the figures.
    pub(crate) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let CheckOutcome { report, known_before, seconds, .. } = &self.checked;
        let verdict = match self.refuted_elsewhere() {
            None => self.verdict().to_owned(),
            Some(Refutation { fails, .. }) => refuted_but_holds(fails),
        };
        wrap::print_lines(out, 0, &format!("{verdict}: {}", self.subject()))?;
        let progress = report.progress;
        let (states, steps) = (grouped(progress.states), grouped(progress.steps));
        let rate = grouped(rate(&progress, *known_before, *seconds) as u64);
        let memory = HumanBytes(progress.bytes);
        let mut rows = vec![
            ("checked", self.properties()),
            ("worlds", format!("{states}, {steps} transitions, depth {}", progress.depth)),
            ("took", format!("{seconds:.2} s, {rate} worlds a second, {memory}")),
        ];
        if let Some(waiting) = report.waiting {
            let entries = match waiting.overtaken {
                None => "any number of entries".to_owned(),
                Some(1) => "at most 1 entry".to_owned(),
                Some(most) => format!("at most {most} entries"),
            };
            rows.push(("overtaking", format!("{entries} of others while one waits")));
            rows.push(("messages", self.messages(waiting)));
        }
        if report.verdict == Verdict::Holds {
            let chance = above(report.mix_up());
            let how = "worlds are told apart by 64-bit fingerprints";
            let text = format!("{how}; the probability of a mix-up is below {chance}");
            rows.push(("certainty", text));
        }
        let elsewhere = self.refuted_elsewhere();
        rows.extend(elsewhere.map(|refutation| ("it fails", refutation.command())));
        rows.extend(self.stop().map(|stop| ("no answer", stop)));
        rows.extend(self.known().map(|known| ("known", known)));
        rows.extend(self.violated().map(|what| ("violated", what)));
        let mut table = Table::new([]);
        for (what, text) in rows {
            table.row([what.to_owned(), text]);
        }
        table.print_body(out, 2)
    }

    /// What was checked: the algorithm, the nodes, the channels and the faults.
    fn subject(&self) -> String {
        let size = self.case.group.size();
        let asks = match self.acquires {
            FOREVER => "asks forever".to_owned(),
            1 => "asks once".to_owned(),
            2 => "asks twice".to_owned(),
            times => format!("asks {times} times"),
        };
        let askers: Vec<_> = self.case.group.nodes().zip(&self.case.acquires).collect();
        let who = if askers.iter().all(|(_, (times, _))| *times > 0) {
            "each".to_owned()
        } else {
            let some = askers.iter().filter(|(_, (times, _))| *times > 0);
            let some: Vec<_> = some.map(|(node, _)| node.to_string()).collect();
            format!("each of {}", some.join(", "))
        };
        let channel = channel(self.case.channel);
        let nodes = if size == 1 { "node" } else { "nodes" };
        let (name, chosen) = (self.info.name, self.arrangement.clauses());
        format!(
            "{name}, {size} {nodes}{chosen}, {who} {asks}, {channel} channels, {}",
            self.troubles()
        )
    }

    /// The faults that may happen.
    fn troubles(&self) -> String {
        let may = |fault| self.case.faults.contains(&fault);
        let crash = match (may(Fault::CrashOutside), may(Fault::CrashInside)) {
            (true, true) => Some("a crash of any node"),
            (true, false) => Some("a crash outside"),
            (false, true) => Some("a crash inside"),
            (false, false) => None,
        };
        let loss = may(Fault::Loss).then_some("a loss");
        let double = may(Fault::Duplication).then_some("a duplication");
        let withdrawal = self.case.withdrawing.then_some("requests that are given up");
        let troubles = [loss, double, crash, withdrawal].into_iter().flatten();
        let troubles: Vec<_> = troubles.collect();
        match troubles.as_slice() {
            [] => "nothing fails".to_owned(),
            some => format!("with {}", some.join(" and ")),
        }
    }

    /// The properties that were checked.
    fn properties(&self) -> String {
        if let Some(targets) = self.targets() {
            return format!("{targets} alone");
        }
        match self.case.history {
            None => "exclusion, refusal, stuck, starvation".to_owned(),
            Some(history) => format!("exclusion, refusal, stuck, {}", history.name()),
        }
    }

    /// The only property that was searched for, if there is just one.
    fn targets(&self) -> Option<String> {
        let SearchTargets { together, refusals, stuck } = self.case.targets;
        match (together, refusals, stuck) {
            (true, true, true) => None,
            (true, ..) => Some("exclusion".to_owned()),
            (_, true, _) => Some("refusal".to_owned()),
            _ => Some("stuck".to_owned()),
        }
    }

    /// The numbers of messages, beside those that are claimed.
    fn messages(&self, waiting: WaitBounds) -> String {
        let Some((least, most)) = waiting.messages else {
            return "runs do not end, so their messages are not counted".to_owned();
        };
        let range = |least: f64, most: f64| {
            let (least, most) = (short(least), short(most));
            if least == most { least } else { format!("{least} to {most}") }
        };
        let run = range(least as f64, most as f64);
        let entries: u64 = self.case.acquires.iter().map(|(times, _)| u64::from(*times)).sum();
        if entries == 0 || !self.case.faults.is_empty() || self.case.withdrawing {
            return format!("{run} a run");
        }
        let share = |messages: u64| messages as f64 / entries as f64;
        let claimed = if self.arrangement.is_one_pass() {
            self.claim_with_one_pass(entries)
        } else {
            self.claim()
        };
        format!("{run} a run, {} an entry; claimed: {claimed}", range(share(least), share(most)))
    }

    /// The messages of an entry that are claimed.
    fn claim(&self) -> String {
        let claim = &self.info.messages;
        let group = &self.case.group;
        let value = |formula: &Formula| short((formula.of)(group));
        if claim.least.text == claim.most.text {
            return format!("{} = {}", claim.least.text, value(&claim.least));
        }
        let (least, most) = (value(&claim.least), value(&claim.most));
        format!("{} .. {} = {least} to {most}", claim.least.text, claim.most.text)
    }

    /// The messages of a run that are claimed if one pass makes the token.
    ///
    /// In the pass, a node asks once at most, which costs 2(N-1) messages. The node that makes the
    /// token enters with it. All other entries cost what they cost in the token algorithm.
    fn claim_with_one_pass(&self, entries: u64) -> String {
        let group = &self.case.group;
        let askers = self.case.acquires.iter().filter(|(times, _)| *times > 0).count();
        let pass = 2.0 * f64::from(group.size() - 1);
        let others = (entries - 1) as f64;
        let claim = &self.info.messages;
        let least = pass + others * (claim.least.of)(group);
        let most = pass * askers as f64 + others * (claim.most.of)(group);
        format!(
            "{} to {} a run, for a node's request in the pass costs up to 2(N-1) = {}, and an \
             entry with the token {}",
            short(least),
            short(most),
            short(pass),
            self.claim()
        )
    }
}

/// The verdict on a refuted algorithm that holds at the size asked for, and fails elsewhere.
pub(crate) fn refuted_but_holds(fails: &str) -> String {
    format!("holds here, but it is refuted: it fails for {fails}")
}

/// A small number as text, rounded up to one digit.
pub(crate) fn above(chance: f64) -> String {
    let size = 10f64.powf(chance.log10().floor());
    format!("{:.0e}", (chance / size).ceil() * size)
}
