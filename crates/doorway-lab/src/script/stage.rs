//! Running the commands of a script on a world.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use doorway_core::{Channel, Mode, NodeId, Phase};

use super::parse::{Act, Command, Fate, Line, MessageChoice, Script};
use super::{Outcome, ScriptError, ScriptStep};
use crate::check::{History, Judge, starved_by};
use crate::trace::{EventKind, kind};
use crate::{ChannelPosition, Choice, Letter, Step, Trace, Violation, World};

/// The most messages that one `stabilize` delivers.
const MAX_DELIVERIES: usize = 10_000;

/// Run a script to its end.
pub(super) fn play(script: Script<'_>) -> Result<Outcome, ScriptError> {
    let Script { setup, lines } = script;
    let history = setup.history;
    let mut stage = Stage::new(setup.world()?, setup.title);
    stage.judge = history.map(History::judge);
    let mut text = Vec::new();
    let mut steps = Vec::new();
    let (mut group, mut notes) = (Vec::new(), Vec::new());
    // How many effects of the current block belong to commands before this one.
    let mut told = 0;
    for line in lines {
        match line {
            Line::Verbatim(line) => {
                let note = line.strip_prefix('#').map(|note| note.trim().to_owned());
                notes.extend(note.map(|note| (stage.choices.len(), note)));
                text.push(line.to_owned());
            }
            Line::Command { number, text: line, command } => {
                let wrong = |message: String| ScriptError::new(number, message);
                stage.play(&command).map_err(wrong)?;
                if matches!(command, Command::Run) {
                    group.push(line.strip_prefix("run").unwrap_or(line).trim());
                }
                text.push(line.to_owned());
                let effects = stage.effects[told..].to_vec();
                told = stage.effects.len();
                steps.push(ScriptStep { command: line.to_owned(), effects });
            }
            Line::Effects => {
                text.push("----".to_owned());
                text.append(&mut stage.effects);
                told = 0;
            }
        }
    }
    let text = text.join("\n") + "\n";
    let Stage { trace, violation, choices, repeated: round, .. } = stage;
    Ok(Outcome {
        text,
        steps,
        trace,
        violation,
        history,
        setup: group.join("\n"),
        choices,
        notes,
        round,
    })
}

/// A world, and what the commands have done to it so far.
struct Stage {
    world: World,
    trace: Trace,
    /// How many steps have been taken.
    time: u32,
    /// The effects of the commands since the last `----`, one per line.
    effects: Vec<String>,
    /// How many messages of each kind have been sent.
    sent: BTreeMap<String, u32>,
    /// Was there a violation? The state of the nodes is not reliable after it.
    over: bool,
    /// Was the world a deadlock after the last step?
    stuck: bool,
    /// The violation in the current world.
    violation: Option<Violation>,
    /// The predicate that judges the histories of the nodes, if they keep any.
    judge: Option<&'static Judge>,
    /// Every choice made so far.
    choices: Vec<Choice>,
    /// The world at the last `round`, and how many choices were made before it.
    round: Option<(World, usize)>,
    /// Which choices were found to be repeated forever.
    repeated: Option<Range<usize>>,
}

impl Stage {
    fn new(world: World, title: &str) -> Self {
        let mut stage = Self {
            trace: Trace::new(title, world.group().size()),
            world,
            time: 0,
            effects: Vec::new(),
            sent: BTreeMap::new(),
            over: false,
            stuck: false,
            violation: None,
            judge: None,
            choices: Vec::new(),
            round: None,
            repeated: None,
        };
        stage.trace.note_begin(&stage.world);
        for step in stage.world.opening().to_vec() {
            stage.record(&step);
        }
        stage
    }

    fn play(&mut self, command: &Command) -> Result<(), String> {
        match command {
            Command::Run => {} // The opening is recorded already.
            Command::Show(None) => self.show_network(),
            Command::Show(Some(node)) => self.show_node(*node),
            Command::Count => self.count(),
            _ if self.over => {
                return Err("the script continues after the violation above; end it there".into());
            }
            Command::Stabilize { quietly: false } => _ = self.stabilize()?,
            Command::Stabilize { quietly: true } => self.stabilize_quietly()?,
            Command::Act(act) => {
                let choice = self.choice(act)?;
                self.step(choice);
            }
            Command::Round => {
                self.round = Some((self.world.clone(), self.choices.len()));
            }
            Command::Again => self.again()?,
        }
        Ok(())
    }

    /// The choice that an act names, if it is possible in this world.
    fn choice(&self, act: &Act) -> Result<Choice, String> {
        let choice = match *act {
            Act::Acquire(node, mode) => {
                self.may_acquire(node, mode)?;
                Choice::Acquire(node, mode)
            }
            Act::Release(node) => {
                self.must_live(node)?;
                if !self.world.nodes().member(node).may_release() {
                    return Err(format!("node {node} is not inside, so it cannot leave"));
                }
                Choice::Release(node)
            }
            Act::Withdraw(node) => {
                self.may_withdraw(node)?;
                Choice::Withdraw(node)
            }
            Act::Message { fate, from, to, ref which } => {
                let position = self.position(from, to, which)?;
                match fate {
                    Fate::Deliver => Choice::Deliver(position),
                    Fate::Drop => Choice::Drop(position),
                    Fate::Duplicate => Choice::Duplicate(position),
                }
            }
            Act::Crash(node) => {
                self.must_live(node)?;
                Choice::Crash(node)
            }
            Act::Detect { node, failed } => {
                let choice = Choice::Detect { node, failed };
                if !self.world.choices().contains(&choice) {
                    return Err(format!(
                        "there is no crash of node {failed} that node {node} has yet to detect"
                    ));
                }
                choice
            }
            Act::Forget(node) => {
                if !self.world.choices().contains(&Choice::Forget(node)) {
                    return Err(format!(
                        "node {node} cannot forget now: the lock is in use, or there is nothing to forget"
                    ));
                }
                Choice::Forget(node)
            }
        };
        Ok(choice)
    }

    fn must_live(&self, node: NodeId) -> Result<(), String> {
        let phase = self.world.nodes().member(node).phase();
        let lives = self.world.live_in(phase).contains(&node);
        if lives { Ok(()) } else { Err(format!("node {node} has crashed")) }
    }

    fn may_withdraw(&self, node: NodeId) -> Result<(), String> {
        self.must_live(node)?;
        let member = self.world.nodes().member(node);
        if member.may_withdraw() {
            return Ok(());
        }
        Err(if member.phase() == Phase::Waiting {
            format!("{} cannot withdraw a request", member.info().name)
        } else {
            format!("node {node} does not wait, so it cannot give up")
        })
    }

    fn may_acquire(&self, node: NodeId, mode: Mode) -> Result<(), String> {
        self.must_live(node)?;
        let member = self.world.nodes().member(node);
        if member.may_acquire(self.world.group(), mode) {
            return Ok(());
        }
        Err(match member.phase() {
            Phase::Waiting => {
                format!("node {node} is waiting already; a node makes one request at a time")
            }
            _ if mode == Mode::Shared && !member.info().shared => {
                format!("{} has no shared mode; write 'acquire {node}'", member.info().name)
            }
            _ => format!("node {node} is inside already; write 'release {node}' first"),
        })
    }

    /// The messages under way from one node to another, in the order of sending.
    fn between(&self, from: NodeId, to: NodeId) -> Vec<(ChannelPosition, &Letter)> {
        let mut messages: Vec<_> = self.world.under_way().collect();
        messages.retain(|(position, _)| (position.from, position.to) == (from, to));
        messages.sort_by_key(|(_, letter)| letter.id);
        messages
    }

    fn position(
        &self,
        from: NodeId,
        to: NodeId,
        which: &MessageChoice,
    ) -> Result<ChannelPosition, String> {
        let messages = self.between(from, to);
        let texts: Vec<_> = messages.iter().map(|(_, letter)| plain(&letter.body)).collect();
        let at = which.find(&texts);
        let Some((position, _)) = at.and_then(|at| messages.get(at)).copied() else {
            let there = if texts.is_empty() { "nothing".into() } else { texts.join(", ") };
            return Err(format!("no such message from {from} to {to}; under way: {there}"));
        };
        if self.world.channel() == Channel::Fifo && at != Some(0) {
            return Err(format!("channels are FIFO here, so {} has to be first", texts[0]));
        }
        Ok(position)
    }

    /// Deliver the oldest message of all channels until there is none. Stop earlier if the world is
    /// equal to an earlier one, because its messages would then circulate forever.
    fn stabilize(&mut self) -> Result<usize, String> {
        let mut seen = BTreeSet::from([fingerprint(&self.world)]);
        for delivered in 0..MAX_DELIVERIES {
            let oldest = self.world.under_way().min_by_key(|(_, letter)| letter.id);
            let Some((position, _)) = oldest else { return Ok(delivered) };
            self.step(Choice::Deliver(position));
            if self.over {
                return Ok(delivered + 1);
            }
            if !seen.insert(fingerprint(&self.world)) {
                self.effects.push("and so on for ever".into());
                return Ok(delivered + 1);
            }
        }
        Err(format!(
            "messages are still under way after {MAX_DELIVERIES} deliveries; use 'deliver' instead"
        ))
    }

    /// Deliver as [`Self::stabilize`] does, but leave out the lines of single messages.
    fn stabilize_quietly(&mut self) -> Result<(), String> {
        let before = self.effects.len();
        let delivered = self.stabilize()?;
        let mut told = self.effects.split_off(before);
        told.retain(|line| !line.contains(" -> ") && !line.contains(" <- "));
        self.effects.append(&mut told);
        let arrived = if delivered == 1 { "message has arrived" } else { "messages have arrived" };
        self.effects.push(format!("{delivered} {arrived}"));
        Ok(())
    }

    fn step(&mut self, choice: Choice) {
        self.time += 1;
        self.choices.push(choice);
        let step = self.world.apply(choice);
        self.record(&step);
        self.violation = step.violation;
        let stuck = self.world.stuck();
        if let Some(Violation::Stuck(waiting)) = stuck.as_ref().filter(|_| !self.stuck) {
            let violation = Violation::Stuck(waiting.clone());
            self.effects.push(format!("stuck: {violation}"));
            self.trace.push(f64::from(self.time), waiting[0], EventKind::Violate(violation));
        }
        self.stuck = stuck.is_some();
        let claim =
            self.judge.filter(|_| self.violation.is_none()).and_then(|judge| judge(&self.world));
        if let Some(claim) = claim {
            let violation = Violation::Claim(claim);
            self.effects.push(format!("violation: {violation}"));
            let node = self.trace.events.last().map_or(NodeId(0), |event| event.node);
            self.trace.push(f64::from(self.time), node, EventKind::Violate(violation.clone()));
            self.violation = Some(violation);
            self.over = true;
        }
        self.violation = self.violation.take().or(stuck);
    }

    /// Repeat the choices since `round` forever, and print which nodes then never enter.
    fn again(&mut self) -> Result<(), String> {
        let (world, begin) = self.round.take().ok_or("'again' without 'round' above it")?;
        let choices = &self.choices[begin..];
        if choices.is_empty() {
            return Err("nothing happens between 'round' and 'again'".into());
        }
        let starved = starved_by(&world, choices).ok_or(
            "the world is not equal to the world at 'round', so the round cannot be repeated",
        )?;
        self.repeated = Some(begin..self.choices.len());
        self.effects.push("and so on for ever".into());
        for node in &starved {
            let violation = Violation::Starved(*node);
            self.effects.push(format!("starved: {violation}"));
            self.trace.push(f64::from(self.time), *node, EventKind::Violate(violation));
        }
        // The script is about starvation, so it is reported even if the world is also a deadlock.
        if let Some(node) = starved.first() {
            self.violation = Some(Violation::Starved(*node));
        }
        Ok(())
    }

    fn record(&mut self, step: &Step) {
        self.trace.record(f64::from(self.time), step);
        self.trace.note_state(&self.world);
        self.effects.extend(describe(step));
        self.over |= step.violation.is_some();
        for (_, letter) in &step.sends {
            let text = plain(&letter.body);
            *self.sent.entry(kind(&text).to_owned()).or_default() += 1;
        }
    }

    fn show_network(&mut self) {
        let mut messages: Vec<_> = self.world.under_way().collect();
        messages.sort_by_key(|(_, letter)| letter.id);
        let line = |(position, letter): &(ChannelPosition, &Letter)| {
            format!("{} -> {} {}", position.from, position.to, plain(&letter.body))
        };
        let mut lines: Vec<_> = messages.iter().map(line).collect();
        if lines.is_empty() {
            lines.push("nothing is under way".into());
        }
        self.effects.append(&mut lines);
    }

    fn show_node(&mut self, node: NodeId) {
        let member = self.world.nodes().member(node);
        let phase = match member.phase() {
            Phase::Outside => "outside",
            Phase::Waiting => "waiting",
            Phase::Inside => "inside",
        };
        self.effects.push(format!("{node} is {phase}: {}", member.algorithm_text()));
    }

    fn count(&mut self) {
        let total: u32 = self.sent.values().sum();
        let kinds = self.sent.iter().map(|(kind, count)| format!("{count} {kind}"));
        let kinds = kinds.collect::<Vec<_>>().join(", ");
        let colon = if kinds.is_empty() { "" } else { ": " };
        self.effects.push(format!("{total} messages{colon}{kinds}"));
    }
}

/// The effects of a step, one per line, with the acting node first.
pub(crate) fn describe(step: &Step) -> Vec<String> {
    let message = step.message.as_ref().map_or_else(String::new, |letter| plain(&letter.body));
    let mut lines = Vec::new();
    let node = match step.choice {
        Choice::Start(node) => node,
        Choice::Acquire(node, mode) => {
            if !step.entered {
                let how = if mode == Mode::Shared { " to share" } else { "" };
                lines.push(format!("{node} waits{how}"));
            }
            node
        }
        Choice::Release(node) => {
            lines.push(format!("{node} leaves"));
            node
        }
        Choice::Withdraw(node) => {
            lines.push(format!("{node} gives up"));
            node
        }
        Choice::Deliver(ChannelPosition { from, to, .. })
        | Choice::Duplicate(ChannelPosition { from, to, .. }) => {
            lines.push(format!("{to} <- {from} {message}"));
            to
        }
        Choice::Drop(ChannelPosition { from, to, .. }) => {
            lines.push(format!("lost: {from} -> {to} {message}"));
            to
        }
        Choice::Crash(node) => {
            lines.push(format!("{node} crashes"));
            node
        }
        Choice::Detect { node, failed } => {
            lines.push(format!("{node} learns that {failed} crashed"));
            node
        }
        Choice::Forget(node) => {
            lines.push(format!("{node} forgets"));
            node
        }
    };
    lines.extend(step.entered.then(|| format!("{node} enters")));
    let sends = step.sends.iter();
    lines.extend(sends.map(|(to, letter)| format!("{node} -> {to} {}", plain(&letter.body))));
    lines.extend(step.violation.iter().map(|violation| format!("violation: {violation}")));
    lines
}

/// A hash that tells a world from the others of the same run. A world of many nodes is too large to
/// be kept ten thousand times.
fn fingerprint(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}

/// A value as one line.
pub(super) fn plain(value: &impl Debug) -> String {
    format!("{value:?}")
}
