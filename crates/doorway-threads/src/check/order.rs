//! First come, first served: a process that has passed the doorway before another begins enters
//! before that other one.

use std::vec::Vec;

use doorway_search::{ClientEvent, Graph, Tag};

use super::verdicts::Sections;
use crate::Section;

/// Whether that holds for each two processes.
pub(super) fn fifo(graph: &Graph, sections: &Sections, n: usize) -> bool {
    let others =
        |first| (0..n).filter(move |later| *later != first).map(move |later| (first, later));
    (0..n).flat_map(others).all(|(first, later)| !is_overtaken(graph, sections, first, later))
}

/// Whether `later` can begin when `first` has passed the doorway, and enter while `first` still
/// waits.
fn is_overtaken(graph: &Graph, sections: &Sections, first: usize, later: usize) -> bool {
    let waits = |state| sections.is(state, first, Section::Waiting);
    let begins = |tag: Tag| {
        tag.actor() == later
            && matches!(tag.client_event(), ClientEvent::Asked | ClientEvent::AskedAndEntered)
    };
    // The states in which `first` has waited since before `later` began.
    let mut seen = std::vec![false; graph.states() as usize];
    let mut open: Vec<u32> = Vec::new();
    for state in (0..graph.states()).filter(|state| waits(*state)) {
        for (_, target, tag) in graph.steps(state).filter(|(.., tag)| begins(*tag)) {
            if tag.entered() {
                return true;
            }
            if !core::mem::replace(&mut seen[target as usize], true) {
                open.push(target);
            }
        }
    }
    while let Some(state) = open.pop() {
        for (_, target, tag) in graph.steps(state) {
            if tag.entered() && tag.actor() == later {
                return true;
            }
            let goes_on = waits(target) && sections.wants_in(target, later);
            if goes_on && !core::mem::replace(&mut seen[target as usize], true) {
                open.push(target);
            }
        }
    }
    false
}
