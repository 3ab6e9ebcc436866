//! "From here": an exhaustive check of the very moment that a page shows.

use doorway_core::Mode;
use serde::Serialize;

use super::view::ViolationView;
use super::{Story, step_words};
use crate::check::{Check, History, Judge, MAX_NODES, Progress, Verdict, unconfirmed};
use crate::{Choice, FOREVER, Limits, Victims, World};

/// What may still happen after the moment.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// How many more requests each node makes; `None` if it never stops asking.
    pub acquires: Option<u32>,
    /// How many messages may be lost.
    pub losses: u32,
    /// How many messages may arrive twice.
    pub duplicates: u32,
    /// How many nodes may crash.
    pub crashes: u32,
    /// Whether clients that wait may give up.
    pub withdrawing: bool,
    /// Look at this number of worlds at most.
    pub limit: u64,
}

/// The most faults of one kind that a question allows.
const MAX_FAULTS: u32 = 9;

/// The answer to a question.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Answer {
    /// A violation can still be reached, and this is a shortest way to it.
    Possible {
        /// The steps to it; none if the moment itself is a violation.
        steps: Vec<String>,
        /// The steps that are then repeated forever, if a node starves.
        cycle: Vec<String>,
        /// The violation.
        violation: ViolationView,
        /// How many worlds were looked at.
        worlds: u64,
    },
    /// No violation can be reached.
    Impossible {
        /// The step since which that is so; 0 if it is so from the beginning.
        since: usize,
        /// Whether it is known that a violation was possible before that step. Otherwise the check
        /// of an earlier moment was stopped or reached its limit.
        exact: bool,
        /// How many worlds can be reached from the moment asked about.
        worlds: u64,
        /// The most entries of other nodes while one node waits, if there is a bound.
        overtaken: Option<u32>,
    },
    /// The check was stopped or reached its limit, so nothing is known.
    NotExhausted {
        /// How many worlds were looked at.
        worlds: u64,
    },
}

impl Story {
    /// Ask what can still go wrong after the last step. `watch` gets the progress, beside the step
    /// from which the check looks, and stops it by returning `false`.
    pub fn from_here(
        &self,
        question: &Question,
        watch: &mut dyn FnMut(usize, &Progress) -> bool,
    ) -> Result<Answer, String> {
        question.ensure_possible(&self.now.world)?;
        let over = self.now.over.as_ref().map(ViolationView::of);
        if let Some(violation) = over.or_else(|| self.now.stuck()) {
            let (steps, cycle) = (Vec::new(), Vec::new());
            return Ok(Answer::Possible { steps, cycle, violation, worlds: 1 });
        }
        let mut look = |steps: usize| {
            let mut go_on = |progress: &Progress| watch(steps, progress);
            self.look(question, steps, &mut go_on)
        };
        let here = look(self.len());
        let worlds = here.progress.states;
        match here.verdict {
            Verdict::NotExhausted => Ok(Answer::NotExhausted { worlds }),
            Verdict::Unconfirmed { steps } => Err(unconfirmed(steps)),
            Verdict::Violated { trace, cycle, violation } => {
                let (steps, cycle) = way(&self.now.world, &trace, &cycle);
                let violation = ViolationView::of(&violation);
                Ok(Answer::Possible { steps, cycle, violation, worlds })
            }
            Verdict::Holds => {
                // What can be reached from a moment can be reached from every moment before it,
                // because the steps between them may happen there too. So the moments from which
                // nothing can go wrong are the last ones.
                let first = self.first_to_look_from(question);
                let (mut low, mut safe, mut exact) = (first, self.len(), true);
                while low < safe {
                    let middle = usize::midpoint(low, safe);
                    match look(middle).verdict {
                        Verdict::Holds => safe = middle,
                        Verdict::Violated { .. } => low = middle + 1,
                        Verdict::NotExhausted | Verdict::Unconfirmed { .. } => {
                            exact = false;
                            break;
                        }
                    }
                }
                exact &= safe > first || first == 0;
                let overtaken = here.waiting.and_then(|waiting| waiting.overtaken);
                Ok(Answer::Impossible { since: safe, exact, worlds, overtaken })
            }
        }
    }

    /// The first moment from which a check can look. If nodes never stop asking, that is the one
    /// after the last loss and the last doubled message: with faults like these the check would not
    /// end.
    fn first_to_look_from(&self, question: &Question) -> usize {
        let fault = |choice: &Choice| matches!(choice, Choice::Drop(_) | Choice::Duplicate(_));
        let last = self.choices.iter().rposition(fault).filter(|_| question.never_ends());
        last.map_or(0, |step| step + 1)
    }

    /// Check the moment after some steps. The requests, the faults and the give-ups between that
    /// moment and the last step may happen there too.
    fn look(
        &self,
        question: &Question,
        steps: usize,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> crate::check::Report {
        let mut world = self.at(steps).now.world;
        let size = world.group().size() as usize;
        let mut limits = Limits {
            acquires: vec![(question.acquires.unwrap_or(FOREVER), Mode::Exclusive); size],
            losses: question.losses,
            duplicates: question.duplicates,
            crashes: question.crashes,
            victims: Victims::Anyone,
            detection: true,
            forgetting: false,
            withdrawing: question.withdrawing,
        };
        for choice in &self.choices[steps..] {
            match choice {
                Choice::Acquire(node, mode) => {
                    let (times, asked) = &mut limits.acquires[node.index()];
                    *times = times.saturating_add(1);
                    *asked = *mode;
                }
                Choice::Drop(_) => limits.losses += 1,
                Choice::Duplicate(_) => limits.duplicates += 1,
                Choice::Crash(_) => limits.crashes += 1,
                Choice::Withdraw(_) => limits.withdrawing = true,
                Choice::Forget(_) => limits.forgetting = true,
                _ => {}
            }
        }
        *world.limits_mut() = limits;
        let judge: Option<&Judge> = self.frame.history.map(History::judge);
        let check = Check { judge, waiting: judge.is_none(), ..Check::new(&world, question.limit) };
        check.run_watched(watch)
    }
}

impl Question {
    /// Whether nodes never stop asking.
    fn never_ends(&self) -> bool {
        self.acquires.is_none_or(|times| times == FOREVER)
    }

    fn ensure_possible(&self, world: &World) -> Result<(), String> {
        let size = world.group().size() as usize;
        if size > MAX_NODES {
            return Err(format!("a check has at most {MAX_NODES} nodes, and here are {size}"));
        }
        if self.losses.max(self.duplicates).max(self.crashes) > MAX_FAULTS {
            return Err(format!("a check allows at most {MAX_FAULTS} faults of a kind"));
        }
        if self.never_ends() && self.losses + self.duplicates > 0 {
            return Err("with losses or doubled messages, nodes must stop asking: say how many \
                        more requests each of them makes"
                .to_owned());
        }
        Ok(())
    }
}

/// The way to a violation as words, and the steps that are then repeated forever.
pub(super) fn way(world: &World, trace: &[Choice], cycle: &[Choice]) -> (Vec<String>, Vec<String>) {
    let (steps, there) = describe(world, trace);
    (steps, describe(&there, cycle).0)
}

/// Choices as words, and the world in which they end.
fn describe(world: &World, choices: &[Choice]) -> (Vec<String>, World) {
    let mut world = world.clone();
    let mut described = Vec::new();
    for choice in choices {
        described.push(step_words::word(&world, *choice));
        world.apply(*choice);
    }
    (described, world)
}
