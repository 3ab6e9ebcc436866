//! Small systems whose numbers of states and shortest counterexamples are known.

use super::*;
use crate::{ClientEvent, End, Model, Scope, Successors, Tag, fingerprint, search};

/// Two processes with Peterson's lock, or with parts of it.
struct Peterson {
    /// Does a process say that it wants to enter before it gives way? It must.
    flag_first: bool,
    /// May a process stop for ever outside, and never enter again?
    stops: bool,
    /// How often each process enters.
    rounds: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    Outside,
    Second,
    Waiting,
    Inside,
}

#[derive(Clone, Debug, Hash)]
struct Lock {
    places: [Place; 2],
    wants: [bool; 2],
    turn: usize,
    left: [u8; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    Step(usize),
    Stop(usize),
}

impl Lock {
    fn step(&mut self, me: usize, flag_first: bool) {
        self.places[me] = match self.places[me] {
            Place::Outside => {
                self.prepare(me, flag_first);
                Place::Second
            }
            Place::Second => {
                self.prepare(me, !flag_first);
                Place::Waiting
            }
            Place::Waiting => Place::Inside,
            Place::Inside => {
                self.wants[me] = false;
                self.left[me] = self.left[me].saturating_sub(1);
                Place::Outside
            }
        };
    }

    fn prepare(&mut self, me: usize, flag: bool) {
        if flag {
            self.wants[me] = true;
        } else {
            self.turn = 1 - me;
        }
    }
}

const TWO_INSIDE: &str = "two processes are inside";

impl System for Peterson {
    type State = Lock;
    type Action = Move;
    type Violation = &'static str;

    fn first(&self) -> Lock {
        Lock { places: [Place::Outside; 2], wants: [false; 2], turn: 0, left: [self.rounds; 2] }
    }

    fn actions(&self, lock: &Lock) -> Vec<Move> {
        let mut moves = Vec::new();
        for me in 0..2 {
            let can = match lock.places[me] {
                Place::Outside => lock.left[me] > 0,
                Place::Waiting => !lock.wants[1 - me] || lock.turn == me,
                Place::Second | Place::Inside => true,
            };
            moves.extend(can.then_some(Move::Step(me)));
            moves.extend((self.stops && lock.left[me] > 0).then_some(Move::Stop(me)));
        }
        moves
    }

    fn apply(&self, lock: &mut Lock, action: Move) -> Result<(), &'static str> {
        match action {
            Move::Step(me) => lock.step(me, self.flag_first),
            Move::Stop(me) => lock.left[me] = 0,
        }
        Ok(())
    }

    fn check(&self, lock: &Lock) -> Result<(), &'static str> {
        if lock.places == [Place::Inside; 2] { Err(TWO_INSIDE) } else { Ok(()) }
    }

    fn is_goal(&self, lock: &Lock) -> bool {
        lock.left == [0, 0] && lock.places == [Place::Outside; 2]
    }

    fn is_expected(&self, action: &Move) -> bool {
        matches!(action, Move::Step(_))
    }
}

#[test]
fn a_correct_lock_holds() {
    let once = Peterson { flag_first: true, stops: false, rounds: 1 };
    let report = explore(&once, 1_000);
    assert_eq!(report.expect_holds(), 26);
    assert_eq!(report.depth, 8, "each process takes four steps");
    let twice = Peterson { rounds: 2, ..once };
    let report = explore(&twice, 1_000);
    assert_eq!((report.expect_holds(), report.depth), (90, 16));
}

#[test]
fn the_shortest_schedule_to_a_violation_is_found() {
    let wrong = Peterson { flag_first: false, stops: true, rounds: 3 };
    let report = explore(&wrong, 1_000);
    // Process 0 gives way and is then held up. Process 1 gives way, sees nobody and enters. Now
    // process 0 says that it wants to enter, and it is still its turn.
    let [zero, one] = [Move::Step(0), Move::Step(1)];
    let path = vec![zero, one, one, one, zero, zero];
    assert_eq!(report.outcome, Outcome::Violated(TWO_INSIDE, path));
    let text = report.to_string();
    assert!(text.starts_with("\"two processes are inside\" after 6 actions ("), "{text}");
    assert!(text.ends_with("\n   6. Step(0)"), "{text}");
}

#[test]
fn a_lock_that_keeps_a_process_out_is_stuck() {
    /// Processes enter in turns, so one that stops outside keeps the other out.
    struct InTurns(Peterson);

    impl System for InTurns {
        type State = Lock;
        type Action = Move;
        type Violation = &'static str;

        fn first(&self) -> Lock {
            self.0.first()
        }

        fn actions(&self, lock: &Lock) -> Vec<Move> {
            let mut moves = self.0.actions(lock);
            let early = |me: usize| lock.places[me] == Place::Outside && lock.turn != me;
            moves.retain(|action| !matches!(action, Move::Step(me) if early(*me)));
            moves
        }

        fn apply(&self, lock: &mut Lock, action: Move) -> Result<(), &'static str> {
            self.0.apply(lock, action)
        }

        fn is_goal(&self, lock: &Lock) -> bool {
            self.0.is_goal(lock)
        }

        fn is_expected(&self, action: &Move) -> bool {
            self.0.is_expected(action)
        }
    }

    let in_turns = |stops, rounds| InTurns(Peterson { flag_first: true, stops, rounds });
    explore(&in_turns(false, 2), 1_000).expect_holds();
    // Nothing but a second process that also stops would help, and that is not expected of it.
    assert_eq!(explore(&in_turns(true, 1), 1_000).outcome, Outcome::Stuck(vec![Move::Stop(0)]));
}

/// Two philosophers take two forks, one after another.
struct Table {
    /// Does each take the fork at the left first?
    symmetric: bool,
}

impl System for Table {
    /// How many forks each philosopher has.
    type State = [u8; 2];
    type Action = usize;
    type Violation = ();

    fn first(&self) -> [u8; 2] {
        [0, 0]
    }

    fn actions(&self, forks: &[u8; 2]) -> Vec<usize> {
        let can = |me: usize| match (forks[me], forks[1 - me]) {
            (2, _) => true,
            (_, 2) => false,
            // The second fork of one is the first of the other.
            (1, other) => other == 0,
            (_, other) => self.symmetric || other == 0,
        };
        (0..2).filter(|me| can(*me)).collect()
    }

    fn apply(&self, forks: &mut [u8; 2], me: usize) -> Result<(), ()> {
        forks[me] = (forks[me] + 1) % 3;
        Ok(())
    }

    fn is_goal(&self, forks: &[u8; 2]) -> bool {
        forks.contains(&2)
    }
}

#[test]
fn a_deadlock_is_a_state_without_a_way_to_a_goal() {
    let report = explore(&Table { symmetric: true }, 100);
    assert_eq!((report.outcome, report.states), (Outcome::Stuck(vec![0, 1]), 6));
    assert_eq!(explore(&Table { symmetric: false }, 100).expect_holds(), 5);
}

/// Numbers below `SIZE`, each leading to three others.
struct Web {
    /// Multiples of this are violations.
    wrong: Option<u32>,
    /// Multiples of this are goals.
    goal: u32,
}

const SIZE: u32 = 20_011;

impl Web {
    fn successors(state: u32) -> [u32; 3] {
        [3, 5, 7].map(|factor| (state * factor + 1) % SIZE)
    }
}

impl System for Web {
    type State = u32;
    type Action = usize;
    type Violation = u32;

    fn first(&self) -> u32 {
        1
    }

    fn actions(&self, _state: &u32) -> Vec<usize> {
        vec![0, 1, 2]
    }

    fn apply(&self, state: &mut u32, action: usize) -> Result<(), u32> {
        *state = Self::successors(*state)[action];
        Ok(())
    }

    fn check(&self, state: &u32) -> Result<(), u32> {
        if self.wrong.is_some_and(|wrong| state.is_multiple_of(wrong)) {
            Err(*state)
        } else {
            Ok(())
        }
    }

    fn is_goal(&self, state: &u32) -> bool {
        state.is_multiple_of(self.goal)
    }
}

impl Model for Web {
    fn width(&self) -> usize {
        1
    }

    fn first(&self) -> (Vec<u32>, u64) {
        (vec![1], fingerprint(&[1]))
    }

    fn expand(&self, row: &[u32], _print: u64, out: &mut Successors) {
        if System::check(self, &row[0]).is_err() {
            out.is_broken();
        }
        for next in Self::successors(row[0]) {
            out.push(&[next], fingerprint(&[next]), Tag::new(0, ClientEvent::None, 0));
        }
    }
}

#[test]
fn rows_and_values_have_the_same_states() {
    let scope = Scope { limit: u64::from(SIZE), threads: 1, record: false };
    let web = Web { wrong: None, goal: 1 };
    let (end, progress) = search(&web, scope);
    let report = explore(&web, u64::from(SIZE));
    assert_eq!((end, report.expect_holds()), (End::Exhausted, u64::from(SIZE)));
    assert_eq!((progress.states, progress.steps), (report.states, report.steps));
    assert_eq!(progress.depth as usize, report.depth);

    let web = Web { wrong: Some(997), goal: 1 };
    let report = explore(&web, u64::from(SIZE));
    let (End::Wrong(path), _) = search(&web, scope) else { panic!("{report}") };
    assert_eq!(path.len(), report.path().len());
}

#[test]
fn the_path_leads_to_the_violation() {
    for wrong in [997, 499, 83] {
        let report = explore(&Web { wrong: Some(wrong), goal: 1 }, u64::from(SIZE));
        let Outcome::Violated(violation, path) = report.outcome else { panic!("no violation") };
        let end = path.iter().fold(1, |state, action| Web::successors(state)[*action]);
        assert_eq!((violation, end % wrong), (end, 0));
    }
}

#[test]
fn any_number_of_threads_gives_the_same_report() {
    let same = |web: &Web, limit| {
        let alone = explore(web, limit);
        for threads in [1, 2, 3] {
            assert_eq!(explore_on(web, limit, threads), alone);
        }
        alone.outcome
    };
    let web = Web { wrong: None, goal: 1 };
    assert_eq!(same(&web, SIZE.into()), Outcome::Holds);
    assert_eq!(same(&web, 5_000), Outcome::NotExhausted);
    assert_eq!(same(&web, 1), Outcome::NotExhausted);
    // Multiples of this number are so far away that many chunks come before them.
    let web = Web { wrong: Some(9_973), goal: 1 };
    assert!(matches!(same(&web, SIZE.into()), Outcome::Violated(..)));
    // Only 0 is a multiple of this number, and each way of the web is part of a cycle.
    let web = Web { wrong: None, goal: SIZE };
    assert_eq!(same(&web, SIZE.into()), Outcome::Holds);
}

#[test]
fn more_states_than_the_limit_are_not_exhausted() {
    let web = Web { wrong: None, goal: 1 };
    let report = explore(&web, u64::from(SIZE) - 1);
    assert_eq!((&report.outcome, report.states), (&Outcome::NotExhausted, u64::from(SIZE) - 1));
    assert!(report.to_string().starts_with("not exhausted"), "{report}");
    explore(&web, u64::from(SIZE)).expect_holds();
}

#[test]
fn an_exploration_tells_its_progress_and_can_be_stopped() {
    let web = &Web { wrong: None, goal: SIZE };
    let all = explore(web, u64::MAX);
    for threads in [1, 3] {
        let mut told = Vec::new();
        let report = explore_watched(web, u64::MAX, threads, &mut |progress| {
            told.push(*progress);
            true
        });
        assert_eq!(report, all);
        assert!(told.windows(2).all(|two| two[0].states <= two[1].states), "{told:?}");
        let last = told.last().expect("it was told");
        assert_eq!(
            (last.states, last.steps, last.depth as usize),
            (all.states, all.steps, all.depth)
        );
        assert!(last.bytes >= all.states * 12, "{last:?}");
        let mut rounds = 0;
        let stopped = explore_watched(web, u64::MAX, threads, &mut |_| {
            rounds += 1;
            rounds < 3
        });
        assert_eq!((stopped.outcome, rounds), (Outcome::NotExhausted, 3));
        assert!(stopped.states < all.states, "{}", stopped.states);
    }
}

#[test]
fn the_first_state_is_checked() {
    let report = explore(&Web { wrong: Some(1), goal: 1 }, 100);
    assert_eq!((report.outcome, report.states, report.steps), (Outcome::Violated(1, vec![]), 1, 0));
}

/// A state that leaves out of its hash what does not matter, and a step that must never be taken.
#[test]
fn only_what_is_hashed_counts_and_a_step_can_be_a_violation() {
    #[derive(Clone)]
    struct Counter {
        count: u8,
        history: Vec<u8>,
    }

    impl std::hash::Hash for Counter {
        fn hash<H: std::hash::Hasher>(&self, hasher: &mut H) {
            self.count.hash(hasher);
        }
    }

    struct Counting(u8);

    impl System for Counting {
        type State = Counter;
        type Action = u8;
        type Violation = String;

        fn first(&self) -> Counter {
            Counter { count: 0, history: Vec::new() }
        }

        fn actions(&self, _state: &Counter) -> Vec<u8> {
            vec![1, 3]
        }

        fn apply(&self, state: &mut Counter, action: u8) -> Result<(), String> {
            if state.count + action > self.0 {
                return Err(format!("{action} is too much after {:?}", state.history));
            }
            state.count = (state.count + action) % 10;
            state.history.push(action);
            Ok(())
        }
    }

    assert_eq!(explore(&Counting(13), 100).expect_holds(), 10);
    let report = explore(&Counting(11), 100);
    let wrong = "3 is too much after [3, 3, 3]".to_owned();
    assert_eq!(report.outcome, Outcome::Violated(wrong, vec![3, 3, 3, 3]));
}

#[test]
#[should_panic(expected = "a method of the system depends on something other than its arguments")]
fn a_system_that_does_not_repeat_its_steps_is_noticed() {
    struct Forgetful(std::cell::Cell<u32>);

    impl System for Forgetful {
        type State = u32;
        type Action = ();
        type Violation = ();

        fn first(&self) -> u32 {
            0
        }

        fn actions(&self, _state: &u32) -> Vec<()> {
            vec![()]
        }

        fn apply(&self, state: &mut u32, (): ()) -> Result<(), ()> {
            self.0.set(self.0.get() + 1);
            *state = self.0.get();
            if *state == 5 { Err(()) } else { Ok(()) }
        }
    }

    explore(&Forgetful(std::cell::Cell::new(0)), 100);
}
