//! An algorithm without its type: what the explorer needs of it.
//!
//! Places are numbers here, as [`Place::pack`] returns them. Only the functions in this file are
//! compiled for each algorithm; the explorer is compiled once.

use std::format;
use std::string::String;
use std::vec::Vec;

use super::memory::ModelMemory;
use crate::{Algorithm, Info, Place, Process, RegisterArray, Section, Withdraws};

/// An algorithm that the explorer can run.
#[derive(Clone, Copy)]
pub(super) struct Program {
    pub(super) info: &'static Info,
    pub(super) shared: &'static [RegisterArray],
    /// The most words that a process remembers.
    pub(super) words: usize,
    names: &'static [(&'static str, Section)],
    pub(super) outside: fn(Process) -> u64,
    pub(super) step: fn(u64, Process, &mut ModelMemory<'_>) -> u64,
    together: fn(&[u64]) -> bool,
    /// A place as text.
    pub(super) text: fn(u64) -> String,
    /// How a process gives up waiting, if that is to be explored.
    pub(super) withdraw: Option<fn(u64) -> u64>,
}

impl Program {
    /// An algorithm in which a process that waits goes on waiting.
    pub(super) fn of<A: Algorithm>() -> Self {
        Self {
            info: const { &A::INFO },
            shared: A::SHARED,
            words: A::At::WORDS,
            names: A::At::NAMES,
            outside: |me| A::outside(me).pack(),
            step: |at, me, memory| A::step(A::At::unpack(at), me, memory).pack(),
            together: |inside| {
                let places: Vec<A::At> = inside.iter().map(|at| A::At::unpack(*at)).collect();
                A::together(&places)
            },
            text: |at| format!("{:?}", A::At::unpack(at)),
            withdraw: None,
        }
    }

    /// An algorithm in which every process that waits may give up.
    pub(super) fn giving_up<A: Withdraws>() -> Self {
        let withdraw = |at| A::withdraw(A::At::unpack(at)).pack();
        Self { withdraw: Some(withdraw), ..Self::of::<A>() }
    }

    /// The section that a place belongs to.
    pub(super) fn section(&self, at: u64) -> Section {
        self.names[usize::from(at as u8)].1
    }

    /// Whether processes at all these places may be inside together. One process always may.
    pub(super) fn may_be_together(&self, inside: &[u64]) -> bool {
        inside.len() <= 1 || (self.together)(inside)
    }
}
