//! The atlas: every world of a small group as tables, so that a page without a server can let its
//! reader choose any next event.
//!
//! Worlds are settled, so nodes that ask for ever lead to finitely many of them. A message is known
//! by its place in the list of its world; each step says which message of the next world it is.

use std::collections::BTreeMap;

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;
use serde::Serialize;

use super::Story;
use super::moment::{Moment, actor};
use super::view::{FrameView, NodeView, ViolationView, shown};
use super::waits::deadlock;
use crate::source::{Place, Source, Span};
use crate::{Choice, World};

/// The most worlds in one file.
pub const MAX_WORLDS: usize = 12_000;

/// Every world of a group, and every step between them. Numbers are places in the tables.
#[derive(Debug, Serialize)]
pub struct Atlas {
    /// The group.
    pub frame: FrameView,
    /// The texts of messages.
    texts: Vec<String>,
    /// The states of nodes.
    states: Vec<NodeView>,
    /// Which rules and lines ran.
    causes: Vec<Cause>,
    /// The violations.
    violations: Vec<ViolationView>,
    /// The worlds; the first one is the beginning.
    worlds: Vec<Page>,
    /// Whether clients that wait may give up.
    withdrawing: bool,
}

impl Atlas {
    /// Whether clients that wait may give up.
    pub fn withdrawing(&self) -> bool {
        self.withdrawing
    }

    /// How many worlds there are, and how many steps between them.
    pub fn size(&self) -> (usize, usize) {
        (self.worlds.len(), self.worlds.iter().map(|page| page.steps.len()).sum())
    }
}

/// The rules and lines of a step.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
struct Cause {
    rules: Vec<usize>,
    lines: Vec<Span>,
    hits: Vec<Place>,
}

/// A world.
#[derive(Debug, Serialize)]
struct Page {
    /// The state of each node.
    nodes: Vec<usize>,
    /// The messages under way: sender, receiver, text.
    mail: Vec<(u32, u32, usize)>,
    /// What can happen.
    steps: Vec<Edge>,
    /// The violation that this world is: a deadlock.
    #[serde(skip_serializing_if = "Option::is_none")]
    stuck: Option<usize>,
}

/// A step to another world.
#[derive(Debug, Serialize)]
struct Edge {
    /// The letter of the word, and the acting node.
    verb: char,
    node: u32,
    /// The place of the message that arrives.
    #[serde(skip_serializing_if = "Option::is_none")]
    mail: Option<usize>,
    /// The world after the step.
    to: usize,
    /// The state of the acting node right after the step, before the world is settled.
    state: usize,
    /// The messages sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sends: Vec<SentMessage>,
    /// For each message of the next world, which message of this one it is; those sent by the step
    /// are counted from -1 down.
    from: Vec<i64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    entered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    violation: Option<usize>,
    cause: usize,
    /// The cause if the client of the node has given a request up before, where that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    later: Option<usize>,
}

/// A message that is sent: its receiver, its text, and the node whose request pays for it. Without
/// such a node, the request that caused the message pays.
#[derive(Debug, Serialize)]
struct SentMessage(u32, usize, #[serde(skip_serializing_if = "Option::is_none")] Option<u32>);

/// A table in which each value is kept once.
#[derive(Debug)]
struct Table<T>(Vec<T>, BTreeMap<String, usize>);

impl<T: Serialize> Table<T> {
    fn new() -> Self {
        Self(Vec::new(), BTreeMap::new())
    }

    fn put(&mut self, value: T) -> usize {
        let key = serde_json::to_string(&value).unwrap_or_default();
        let next = self.0.len();
        let place = *self.1.entry(key).or_insert(next);
        if place == next {
            self.0.push(value);
        }
        place
    }
}

/// The atlas while it is made.
struct Draft<'a> {
    source: &'a Source,
    withdrawing: bool,
    worlds: &'a Worlds,
    texts: Table<String>,
    states: Table<NodeView>,
    causes: Table<Cause>,
    violations: Table<ViolationView>,
}

impl Draft<'_> {
    /// A world with all its steps.
    fn page(&mut self, number: usize, world: &World) -> Page {
        let steps = world.choices().into_iter().map(|choice| self.edge(number, world, choice));
        let steps = steps.collect();
        let nodes = world.group().nodes().map(|node| self.states.put(NodeView::of(world, node)));
        let nodes = nodes.collect();
        let mail = world.under_way().map(|(position, letter)| {
            let text = self.texts.put(format!("{:?}", letter.body));
            (shown(position.from), shown(position.to), text)
        });
        let mail = mail.collect();
        let stuck = deadlock(world).map(|view| self.violations.put(view));
        Page { nodes, mail, steps, stuck }
    }

    /// A step from the world with this number.
    fn edge(&mut self, number: usize, world: &World, choice: Choice) -> Edge {
        let (mut moment, _) = Moment::new(world.clone());
        // Some rules count only at a node whose client has given a request up.
        let later = self.withdrawing.then(|| {
            let mut later = moment.clone();
            later.note_give_up(actor(choice));
            later.take(choice, self.source, None).rules
        });
        let told = moment.take(choice, self.source, None);
        let settled = moment.world.settled();
        let before: Vec<u64> = world.under_way().map(|(_, letter)| letter.id).collect();
        let sent: Vec<u64> = told.sends.iter().map(|send| send.id).collect();
        // A message keeps its number when its world is settled.
        let origin = |id: u64| {
            let at = |list: &[u64]| {
                let at = list.iter().position(|other| *other == id)?;
                i64::try_from(at).ok()
            };
            at(&sent).map(|at| -1 - at).or_else(|| at(&before)).unwrap_or_default()
        };
        let from = settled.under_way().map(|(_, letter)| origin(letter.id)).collect();
        let violation = told.violation.map(|violation| self.violations.put(violation));
        // The world behind a violation is not kept.
        let to = self.worlds.get_index_of(&settled).unwrap_or(number);
        let (lines, hits) = (told.lines, told.hits);
        let mut cause = |rules| {
            let (lines, hits) = (lines.clone(), hits.clone());
            self.causes.put(Cause { rules, lines, hits })
        };
        let later = later.filter(|rules| *rules != told.rules).map(&mut cause);
        let cause = cause(told.rules);
        let sends = told.sends.into_iter();
        let sends = sends.map(|it| SentMessage(it.to, self.texts.put(it.text), it.serves));
        Edge {
            verb: told.word.chars().next().unwrap_or_default(),
            node: shown(actor(choice)),
            mail: match choice {
                Choice::Deliver(position) => {
                    world.under_way().position(|(other, _)| other == position)
                }
                _ => None,
            },
            to,
            sends: sends.collect(),
            state: self.states.put(told.state),
            from,
            entered: told.entered,
            violation,
            cause,
            later,
        }
    }
}

impl Story {
    /// Every world that this story's group can reach from its beginning, if they are not too many.
    /// Clients give up in it if the algorithm allows that and there is room for these worlds too.
    pub fn atlas(&self) -> Result<Atlas, String> {
        let first = self.at(0);
        let frame = first.view(Vec::new()).frame.ok_or("a story has a frame")?;
        let reached = |withdrawing: bool| {
            let mut beginning = first.now.world.clone();
            let limits = beginning.limits_mut();
            (limits.losses, limits.duplicates, limits.crashes) = (0, 0, 0);
            limits.withdrawing = withdrawing;
            explore(&beginning)
        };
        let with_give_ups = if first.now.world.info().withdraws { reached(true) } else { None };
        let withdrawing = with_give_ups.is_some();
        let worlds = with_give_ups.or_else(|| reached(false)).ok_or_else(|| {
            format!("more than {MAX_WORLDS} worlds do not fit into one file; choose fewer nodes")
        })?;
        let mut draft = Draft {
            source: self.frame.source,
            withdrawing,
            worlds: &worlds,
            texts: Table::new(),
            states: Table::new(),
            causes: Table::new(),
            violations: Table::new(),
        };
        let pages = worlds.iter().enumerate();
        let worlds = pages.map(|(number, world)| draft.page(number, world)).collect();
        let Draft { texts, states, causes, violations, .. } = draft;
        let (texts, states, causes) = (texts.0, states.0, causes.0);
        Ok(Atlas { frame, texts, states, causes, violations: violations.0, worlds, withdrawing })
    }
}

type Worlds = IndexSet<World, FxBuildHasher>;

/// Every world that can be reached from this one, if they are not too many. Nothing comes after a
/// violation, so the world behind it is not among them.
fn explore(beginning: &World) -> Option<Worlds> {
    let mut worlds = Worlds::from_iter([beginning.settled()]);
    let mut explored = 0;
    while let Some(world) = worlds.get_index(explored).cloned() {
        for choice in world.choices() {
            let mut next = world.clone();
            if next.apply(choice).violation.is_none() {
                worlds.insert(next.settled());
            }
        }
        explored += 1;
        if worlds.len() > MAX_WORLDS {
            return None;
        }
    }
    Some(worlds)
}
