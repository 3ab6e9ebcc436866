//! The buffer and the readers and writers: every schedule of a few processes.

use core::marker::PhantomData;

use doorway_threads::check::{Check, Report};
use doorway_threads::problems::{Delivery, Turnstile};
use doorway_threads::{Algorithm, Info, Memory, Process, RegisterArray};

/// Explore on semaphores that hand over to the process that has slept longest, as the crate's own
/// do.
fn check<A: Algorithm>(n: usize) -> Report {
    let mut check = Check::of::<A>(n);
    check.rules.queued = true;
    check.run()
}

/// All claims hold, everything is decided, and there is this number of states.
fn holds<A: Algorithm>(n: usize, states: u64) {
    let report = check::<A>(n);
    assert!(report.meets(&A::INFO.claims, n), "{} {n}: {report:?}", A::INFO.name);
    assert_eq!(
        (report.exclusion, report.deadlock_free, report.lockout_free),
        (Some(true), Some(true), Some(true))
    );
    assert_eq!(report.progress.states, states, "{} {n}", A::INFO.name);
}

#[test]
fn no_writer_is_inside_with_another_process() {
    holds::<Turnstile<0>>(3, 935);
    holds::<Turnstile<1>>(2, 54);
    holds::<Turnstile<2>>(2, 25);
    holds::<Turnstile<1>>(3, 448);
    holds::<Turnstile<2>>(3, 208);
    holds::<Turnstile<1>>(4, 3961);
    holds::<Turnstile<2>>(4, 1930);
    holds::<Turnstile<2>>(5, 20230);
}

#[test]
fn nothing_is_lost_doubled_or_overtaken() {
    holds::<Delivery<1, 1>>(2, 84);
    holds::<Delivery<2, 1>>(2, 760);
    holds::<Delivery<3, 1>>(2, 2604);
    holds::<Delivery<1, 2>>(3, 291);
    holds::<Delivery<2, 1>>(3, 3580);
    holds::<Delivery<2, 2>>(3, 3580);
    holds::<Delivery<1, 2>>(4, 1182);
    holds::<Delivery<2, 2>>(4, 16730);
    holds::<Delivery<3, 2>>(4, 86688);
}

/// On semaphores that hand over to any process that sleeps, or to any process at all, exclusion
/// holds. But two processes may keep a third one out for ever.
fn may_starve<A: Algorithm>(n: usize) {
    for barging in [false, true] {
        let mut check = Check::of::<A>(n);
        check.rules.barging = barging;
        let report = check.run();
        assert_eq!((report.exclusion, report.deadlock_free), (Some(true), Some(true)));
        assert_eq!(report.lockout_free, Some(false), "{} {n}", A::INFO.name);
    }
}

#[test]
fn the_order_of_the_semaphore_matters_for_waiting_only() {
    may_starve::<Turnstile<1>>(3);
    may_starve::<Turnstile<2>>(4);
    may_starve::<Delivery<2, 2>>(3);
    may_starve::<Delivery<2, 2>>(4);
}

/// An algorithm in which one register has another first value.
struct AlteredAlgorithm<A, const REGISTER: usize, const FIRST: usize>(PhantomData<fn() -> A>);

impl<A: Algorithm, const REGISTER: usize, const FIRST: usize> AlteredAlgorithm<A, REGISTER, FIRST> {
    const ALTERED: [RegisterArray; 16] = {
        let mut altered = [A::SHARED[0]; 16];
        let mut nth = 0;
        while nth < A::SHARED.len() {
            altered[nth] = A::SHARED[nth];
            nth += 1;
        }
        altered[REGISTER].first = FIRST;
        altered
    };
}

impl<A: Algorithm, const REGISTER: usize, const FIRST: usize> Algorithm
    for AlteredAlgorithm<A, REGISTER, FIRST>
{
    type At = A::At;

    const INFO: Info = A::INFO;
    const SHARED: &'static [RegisterArray] = Self::ALTERED.split_at(A::SHARED.len()).0;

    fn outside(me: Process) -> A::At {
        A::outside(me)
    }

    fn together(inside: &[A::At]) -> bool {
        A::together(inside)
    }

    fn step(at: A::At, me: Process, memory: &mut impl Memory) -> A::At {
        A::step(at, me, memory)
    }
}

/// With this number of units of the semaphore in the beginning, exclusion fails.
fn is_refuted<A: Algorithm, const REGISTER: usize, const FIRST: usize>(name: &str, n: usize) {
    assert_eq!(A::SHARED[REGISTER].name, name);
    let report = check::<AlteredAlgorithm<A, REGISTER, FIRST>>(n);
    assert_eq!(report.exclusion, Some(false), "{name} = {FIRST}");
    assert!(!report.schedule.is_empty());
}

#[test]
fn each_semaphore_is_needed() {
    is_refuted::<Turnstile<2>, 1, 2>("room", 2);
    is_refuted::<Turnstile<1>, 2, 2>("counting", 3);
    is_refuted::<Delivery<2, 1>, 0, 3>("free", 2);
    is_refuted::<Delivery<2, 1>, 1, 1>("full", 2);
    is_refuted::<Delivery<2, 2>, 2, 2>("sender_alone", 3);
    is_refuted::<Delivery<2, 1>, 3, 2>("receiver_alone", 3);
}

/// Two processes at the turnstile do not break exclusion, but readers may then pass a waiting
/// writer.
#[test]
fn the_turnstile_keeps_the_order() {
    let report = check::<AlteredAlgorithm<Turnstile<1>, 0, 2>>(3);
    assert_eq!((report.exclusion, report.fifo), (Some(true), Some(false)));
}
