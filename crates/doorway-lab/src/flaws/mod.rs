//! Flaws of published texts, misreadings of them, and broken assumptions: for each, a search that
//! finds a shortest counterexample, and one that finds nothing wrong with the version without the
//! flaw.
//!
//! `docs/flaws.md` and its pictures are written from this table, and `doorway story` plays the
//! counterexamples.

pub mod any_reply;
mod drowsy;
mod permissions;
mod quorums;
pub mod served;
pub mod sets;
mod tokens;
mod worlds;

use std::fmt::Write as _;

use doorway_core::{Channel, Needs, Phase};

use crate::check::{Property, Report, Verdict};
use crate::{Trace, Violation, World, script};

/// A flaw, and the searches that refute it.
#[derive(Clone, Debug)]
pub struct Flaw {
    /// The name on the page and on the command line.
    pub name: &'static str,
    /// The algorithm that has the flaw, or into which it is built.
    pub algorithm: &'static str,
    /// What is wrong.
    pub what: &'static str,
    /// What happens in the counterexample, for readers.
    pub story: &'static str,
    /// The version without the flaw.
    pub cure: &'static str,
    /// The property that it violates.
    pub breaks: Property,
    /// The number of steps of a shortest counterexample.
    pub steps: usize,
    /// Searches the wrong version for the violation.
    pub wrong: fn() -> Finding,
    /// Searches the right version for any violation.
    pub right: fn() -> Finding,
}

/// The answer of the checker about a world.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The result of the search.
    pub report: Report,
    /// The world in words.
    pub setting: String,
    /// The counterexample; only the opening if there is no violation.
    pub trace: Trace,
    /// The world in which the search began.
    pub world: World,
}

impl Finding {
    /// The violation, if one was found.
    pub fn violation(&self) -> Option<&Violation> {
        match &self.report.verdict {
            Verdict::Violated { violation, .. } => Some(violation),
            Verdict::Holds | Verdict::NotExhausted | Verdict::Unconfirmed { .. } => None,
        }
    }

    /// The counterexample as a script. `None` if no listed algorithm behaves so: the mistake was
    /// built into a copy of one.
    pub fn script(&self, comment: &str) -> Option<String> {
        let Verdict::Violated { trace, cycle, violation } = &self.report.verdict else {
            return None;
        };
        let (commands, there) = script::tell(&self.world, trace);
        let (round, _) = script::tell(&there, cycle);
        let text = script::compose(comment, &setup(&self.world), &commands, &round);
        let played = script::run(&text).ok()?;
        let same = played.violation.is_some_and(|found| found == *violation);
        same.then_some(played.text)
    }
}

/// A world as a script describes it.
fn setup(world: &World) -> String {
    let (group, info) = (world.group(), world.info());
    let channel = if world.channel() == Channel::Fifo { "fifo" } else { "unordered" };
    let mut text = format!("{} n={} channel={channel}", info.name, group.size());
    if group.permits() > 1 {
        let _ = write!(text, " permits={} seats={}", group.permits(), group.seats());
    }
    let inside: Vec<String> =
        world.live_in(Phase::Inside).iter().map(ToString::to_string).collect();
    if !inside.is_empty() {
        let _ = write!(text, " holder={}", inside.join(","));
    }
    if info.needs == Needs::Quorums {
        for node in group.nodes() {
            let members = group.quorum(node, 0).iter().map(ToString::to_string);
            let members = members.collect::<Vec<_>>().join(" ");
            let _ = write!(text, "\nquorum {node} = {members}");
        }
    }
    text
}

/// All flaws, in the order of the page.
pub fn all() -> Vec<Flaw> {
    [quorums::flaws(), permissions::flaws(), tokens::flaws()].concat()
}
