//! The lines of one node about one lock, as steps: what happened to the node, and how it reacted.

use doorway_core::{Holder, Mode, NodeId, Start};
use doorway_protocol::recording::{self, End, Event, LockLine};

use super::Problem;
use super::files::ParsedFile;
use super::lines::Line;
use crate::trace::Opening;

/// Something that happened to a node, and what the node did in reaction.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) node: NodeId,
    pub(super) view: u64,
    /// The time in microseconds since 1970, by the clock of the node.
    pub(super) at: u64,
    /// The number of its line in the node's file.
    pub(super) line: usize,
    pub(super) cause: Cause,
    pub(super) entered: bool,
    pub(super) sends: Vec<(NodeId, String)>,
}

/// What happened to a node.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cause {
    /// The lock begins at this node.
    Begin(Start),
    /// The recording begins at this node, while the lock is in use.
    Stand(Opening),
    Acquire(Mode),
    Release,
    Withdraw,
    Receive {
        from: NodeId,
        /// Whether it was sent before its sender was recorded.
        early: bool,
        /// Why the node refused the message, if it did.
        refused: Option<String>,
    },
    /// The lock cannot be used any more in this view.
    Break(String),
    /// The node was killed: another start follows without a stop.
    Crash,
    /// The node takes no part in what follows, for the reason given.
    Stop(&'static str),
}

/// What one node has recorded about the lock.
pub(super) struct NodeSteps {
    pub(super) file: String,
    pub(super) steps: Vec<Step>,
    /// Ranges of views, first and last, in which steps may be missing.
    gaps: Vec<(u64, u64)>,
}

impl NodeSteps {
    /// May steps of the node in this view be missing from its recording?
    pub(super) fn may_lack(&self, view: u64) -> bool {
        self.gaps.iter().any(|(from, to)| (*from..=*to).contains(&view))
    }
}

/// The steps of a node about one lock.
pub(super) fn of(node: NodeId, file: &ParsedFile<'_>, lock: &str) -> Result<NodeSteps, Problem> {
    let (steps, gaps) = (Vec::new(), Vec::new());
    let mut reader =
        Reader { node, file, began: 0, at: 0, view: 0, open: false, gap: None, steps, gaps };
    for (number, line) in &file.lines {
        match line {
            Line::Header(header) => {
                if reader.open {
                    reader.leave(*number, Cause::Crash);
                    reader.gap = reader.gap.or(Some(reader.view));
                }
                (reader.began, reader.open) = (header.began, true);
            }
            Line::End(End::Stop) => {
                reader.leave(*number, Cause::Stop("stops"));
                reader.open = false;
            }
            Line::End(End::Overflow | End::Time | End::Missing) => {
                reader.leave(*number, Cause::Stop("is recorded no further"));
                (reader.open, reader.gap) = (false, Some(reader.view));
            }
            Line::Lock(line) if line.lock == lock => reader.read(*number, line)?,
            Line::Lock(line) => reader.moment(line),
        }
    }
    // The recording has no end: the node still runs, or was killed and not started again.
    if let Some(from) = reader.gap.or(reader.open.then_some(reader.view)) {
        reader.gaps.push((from, u64::MAX));
    }
    Ok(NodeSteps { file: file.name.to_owned(), steps: reader.steps, gaps: reader.gaps })
}

struct Reader<'a> {
    node: NodeId,
    file: &'a ParsedFile<'a>,
    /// When the node started.
    began: u64,
    /// The time of the latest line.
    at: u64,
    /// The latest view of this lock.
    view: u64,
    /// Has the node started and not yet ended?
    open: bool,
    /// The view since which steps may be missing.
    gap: Option<u64>,
    steps: Vec<Step>,
    gaps: Vec<(u64, u64)>,
}

impl Reader<'_> {
    /// Note the time of a line. Threads read the clock before they enter the lock table, so times
    /// may be slightly out of order; the order of the lines is right.
    fn moment(&mut self, line: &LockLine) {
        self.at = self.at.max(self.began.saturating_add(line.at));
    }

    fn push(&mut self, line: usize, cause: Cause) {
        let (node, view, at) = (self.node, self.view, self.at);
        self.steps.push(Step { node, view, at, line, cause, entered: false, sends: Vec::new() });
    }

    /// The node takes no part in what follows, if it took part before.
    fn leave(&mut self, line: usize, cause: Cause) {
        if !self.steps.is_empty() {
            self.push(line, cause);
        }
    }

    fn read(&mut self, number: usize, line: &LockLine) -> Result<(), Problem> {
        let wrong = |reason: String| Problem::at(self.file.name, number, reason);
        if line.view < self.view {
            return Err(wrong(format!("view {} comes after view {}", line.view, self.view)));
        }
        let cause = match &line.event {
            Event::Begin { holders, floor, standing, waiting, .. } => {
                let holder = |holder: &recording::Holder| {
                    let node = self.find(number, &holder.node)?;
                    Ok(Holder { node, mode: mode_of(holder.mode), permits: holder.permits })
                };
                let holders = holders.iter().map(holder).collect::<Result<_, _>>()?;
                let start = Start { holders, floor: *floor };
                if *standing && self.steps.is_empty() {
                    let (held, mode) = start
                        .holder(self.node)
                        .map_or_else(Default::default, |holder| (holder.permits, holder.mode));
                    Cause::Stand(Opening { held, mode, waiting: waiting.map(mode_of) })
                } else {
                    Cause::Begin(start)
                }
            }
            Event::Acquire { mode } => Cause::Acquire(mode_of(*mode)),
            Event::Release => Cause::Release,
            Event::Withdraw => Cause::Withdraw,
            Event::Receive { from, early } => {
                Cause::Receive { from: self.find(number, from)?, early: *early, refused: None }
            }
            Event::Break { why } => Cause::Break(why.clone()),
            Event::Enter | Event::Send { .. } | Event::Refuse { .. } => {
                return self.effect(number, line);
            }
        };
        self.moment(line);
        if let Some(from) = self.gap.take() {
            self.gaps.push((from, line.view));
        }
        self.view = line.view;
        self.push(number, cause);
        Ok(())
    }

    /// Add what the node did to the step that caused it.
    fn effect(&mut self, number: usize, line: &LockLine) -> Result<(), Problem> {
        let send = match &line.event {
            Event::Send { to, message } => Some((self.find(number, to)?, message.clone())),
            _ => None,
        };
        let alone =
            || Problem::at(self.file.name, number, "this line follows no step that could cause it");
        let step = self.steps.last_mut().filter(|step| step.view == line.view);
        let step = step.ok_or_else(alone)?;
        let is_alone = matches!(
            step.cause,
            Cause::Begin(_) | Cause::Stand(_) | Cause::Break(_) | Cause::Crash | Cause::Stop(_)
        );
        match (&line.event, &mut step.cause) {
            (Event::Send { .. }, Cause::Begin(_) | Cause::Stand(_)) => step.sends.extend(send),
            _ if is_alone => return Err(alone()),
            (Event::Refuse { why }, Cause::Receive { refused, .. }) => *refused = Some(why.clone()),
            (Event::Refuse { .. }, _) => return Err(alone()),
            (Event::Enter, _) if step.entered => return Err(alone()),
            (Event::Enter, _) => step.entered = true,
            _ => step.sends.extend(send),
        }
        Ok(())
    }

    fn find(&self, line: usize, name: &str) -> Result<NodeId, Problem> {
        let members = &self.file.header.members;
        let found = members.iter().position(|member| member == name);
        found.map(NodeId::at).ok_or_else(|| {
            let reason = format!("{name} is not a member; the group has {}", members.join(", "));
            Problem::at(self.file.name, line, reason)
        })
    }
}

/// The mode of an algorithm that a recording names.
fn mode_of(mode: doorway_protocol::Mode) -> Mode {
    match mode {
        doorway_protocol::Mode::Exclusive => Mode::Exclusive,
        doorway_protocol::Mode::Shared => Mode::Shared,
    }
}
