//! The answers about waiting, from the graph of all steps.

use std::vec::Vec;

use doorway_search::{Graph, Lasso, NOWHERE, Search, WaitAnalysis, fair_round};

use super::Report;
use super::model::{ProcessModel, unpack};
use super::order::fifo;
use super::schedule::schedule;
use crate::{Bypass, Section, Since};

/// For each state, the section that each process is in.
pub(super) struct Sections(Vec<u32>);

const BITS: usize = 3;

impl Sections {
    fn of(model: &ProcessModel<'_>, search: &Search<'_>) -> Self {
        let mut sections = std::vec![0; search.graph().states() as usize];
        search.revisit(&mut |state, words| {
            let row = unpack(words);
            let of_all = (0..model.n()).map(|i| (model.section(&row, i) as u32) << (BITS * i));
            sections[state as usize] = of_all.sum();
        });
        Self(sections)
    }

    pub(super) fn is(&self, state: u32, i: usize, section: Section) -> bool {
        self.0[state as usize] >> (BITS * i) & 7 == section as u32
    }

    pub(super) fn wants_in(&self, state: u32, i: usize) -> bool {
        self.is(state, i, Section::Doorway) || self.is(state, i, Section::Waiting)
    }

    /// Whether the process is on its way in or out.
    fn is_busy(&self, state: u32, i: usize) -> bool {
        self.wants_in(state, i) || self.is(state, i, Section::Leaving)
    }
}

/// Decide deadlock, lockout, overtaking and order, and report them.
pub(super) fn look_into_waiting(
    model: &ProcessModel<'_>,
    search: &Search<'_>,
    report: &mut Report,
) {
    let (graph, n, claims) = (search.graph(), model.n(), model.info().claims);
    let sections = Sections::of(model, search);

    let everyone: Vec<usize> = (0..n).collect();
    let nobody_inside = |state| (0..n).all(|i| !sections.is(state, i, Section::Inside));
    let somebody_busy = |state| (0..n).any(|i| sections.is_busy(state, i));
    let no_entry =
        WaitAnalysis::of(graph, |state| nobody_inside(state) && somebody_busy(state), |_| false);
    let deadlock = endless(model, search, &sections, &everyone, no_entry.rounds);
    report.deadlock_free = Some(deadlock.is_none());

    let mut lockout = None;
    let mut bypass = Bypass::AtMost { all: 0, one: 0 };
    for i in 0..n {
        let waits = |state| match claims.since {
            Since::FirstStep => sections.wants_in(state, i),
            Since::Doorway => sections.is(state, i, Section::Waiting),
        };
        let by_all = WaitAnalysis::of(graph, waits, |tag| tag.entered() && tag.actor() != i);
        let by_one = (0..n).filter(|j| *j != i).map(|j| {
            WaitAnalysis::of(graph, waits, |tag| tag.entered() && tag.actor() == j).overtaken
        });
        bypass = worse(bypass, by_all.overtaken, by_one);
        if lockout.is_none() {
            let busy = WaitAnalysis::of(graph, |state| sections.is_busy(state, i), |_| false);
            lockout = endless(model, search, &sections, &[i], busy.rounds);
        }
    }
    report.lockout_free = Some(lockout.is_none());
    report.bypass = Some(bypass);
    report.fifo = Some(fifo(graph, &sections, n));
    if let Some(lasso) = deadlock.or(lockout.filter(|_| (claims.lockout_free)(n))) {
        let (stem, row) = schedule(model, &model.first_row(), &search.way(lasso.state));
        report.schedule = stem;
        report.cycle = schedule(model, &row, &lasso.round).0;
    }
}

/// Find a run in which one of these processes is on its way in or out for ever although all
/// processes keep taking steps: in one of the cycles, or in a state in which only processes
/// that are outside can take a step.
fn endless(
    model: &ProcessModel<'_>,
    search: &Search<'_>,
    sections: &Sections,
    whose: &[usize],
    rounds: Vec<Vec<u32>>,
) -> Option<Lasso> {
    let graph = search.graph();
    let stuck = |state: &u32| {
        whose.iter().any(|i| sections.is_busy(*state, *i)) && is_still(graph, sections, *state)
    };
    let node = whose[0];
    if let Some(state) = (0..graph.states()).find(stuck) {
        return Some(Lasso { node, state, round: Vec::new() });
    }
    let duties = |words: &[u32]| model.duties(&unpack(words));
    fair_round(search, &duties, rounds.into_iter().map(|round| (node, round)).collect())
}

/// Whether only processes that are outside can take a step, which they need not.
fn is_still(graph: &Graph, sections: &Sections, state: u32) -> bool {
    (0..graph.degree(state)).all(|ordinal| {
        let (target, tag) = graph.step(state, ordinal);
        target != NOWHERE && sections.is(state, tag.actor(), Section::Outside)
    })
}

fn worse(
    bypass: Bypass,
    by_all: Option<u32>,
    mut by_one: impl Iterator<Item = Option<u32>>,
) -> Bypass {
    let Bypass::AtMost { all, one } = bypass else { return bypass };
    let Some(by_all) = by_all else { return Bypass::Unbounded };
    match by_one.try_fold(one, |most, by_one| by_one.map(|by_one| most.max(by_one))) {
        None => Bypass::Unbounded,
        Some(one) => Bypass::AtMost { all: all.max(by_all), one },
    }
}
