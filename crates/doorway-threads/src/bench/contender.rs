//! The locks that are measured.

use std::sync::Mutex;
use std::vec::Vec;

use spin::mutex::{SpinMutex, TicketMutex};

use super::ExclusionError;
use super::lock::Lock;
use crate::algorithms::{ALL, LockTask, with_lock};
use crate::{Exclusive, Info, Room};

/// A lock of this crate, or one of others.
#[derive(Clone, Copy, Debug)]
pub enum Contender {
    /// A lock of this crate.
    Own(&'static Info),
    /// `std::sync::Mutex`.
    Std,
    /// `parking_lot::Mutex`.
    ParkingLot,
    /// `spin::mutex::SpinMutex`.
    Spin,
    /// `spin::mutex::TicketMutex`.
    SpinTicket,
}

/// A measurement that can be made with any lock.
pub(super) trait Measure {
    type Output;

    fn run<L: Lock>(self) -> Self::Output;
}

impl Contender {
    /// The locks of other crates.
    pub const OTHERS: [Self; 4] = [Self::Std, Self::ParkingLot, Self::Spin, Self::SpinTicket];

    /// Every lock of this crate, and those of others.
    pub fn all() -> Vec<Self> {
        let own = ALL.iter().filter(|entry| entry.lock).map(|entry| Self::Own(&entry.info));
        own.chain(Self::OTHERS).collect()
    }

    /// The name of the lock.
    pub fn name(self) -> &'static str {
        match self {
            Self::Own(info) => info.name,
            Self::Std => "std::sync::Mutex",
            Self::ParkingLot => "parking_lot::Mutex",
            Self::Spin => "spin::SpinMutex",
            Self::SpinTicket => "spin::TicketMutex",
        }
    }

    /// What the lock declares, if it is one of this crate.
    pub fn info(self) -> Option<&'static Info> {
        match self {
            Self::Own(info) => Some(info),
            _ => None,
        }
    }

    /// Whether this number of threads can compete for it. A single thread always can.
    pub fn serves(self, threads: usize) -> bool {
        self.info().is_none_or(|info| threads <= info.most)
    }

    pub(super) fn broken(self, threads: usize) -> ExclusionError {
        ExclusionError { lock: self.name(), threads }
    }

    pub(super) fn run<M: Measure>(self, measure: M) -> M::Output {
        match self {
            Self::Own(info) => with_lock(info.name, RoomTask(measure)).expect("a name of the list"),
            Self::Std => measure.run::<Mutex<()>>(),
            Self::ParkingLot => measure.run::<parking_lot::Mutex<()>>(),
            Self::Spin => measure.run::<SpinMutex<()>>(),
            Self::SpinTicket => measure.run::<TicketMutex<()>>(),
        }
    }
}

struct RoomTask<M>(M);

impl<M: Measure> LockTask for RoomTask<M> {
    type Output = M::Output;

    fn run<A: Exclusive>(self) -> M::Output {
        self.0.run::<Room<A, ()>>()
    }
}
