//! Who chooses when nobody does: a rule that picks the next choice of a moment.

use std::str::FromStr;

use doorway_core::{NodeId, Phase};

use super::moment::{Moment, actor};
use crate::Choice;
use crate::simulate::Dice;

/// A rule that picks the next step. It makes no faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// The oldest message. If no node waits or is inside, a client asks first, in its turn; if no
    /// message is under way, a client leaves.
    Oldest,
    /// Any choice, by a generator with this seed.
    Dice(u64),
    /// The choice that has been possible for the longest time.
    Fair,
}

impl FromStr for Pick {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "oldest" => Ok(Self::Oldest),
            None if text == "fair" => Ok(Self::Fair),
            Some(("dice", seed)) => {
                seed.parse().map(Self::Dice).map_err(|_| format!("'{seed}' is not a seed"))
            }
            _ => Err(format!("cannot pick by '{text}': say oldest, fair, or dice:7")),
        }
    }
}

impl Pick {
    /// The next choice, if there is one.
    pub(super) fn next(self, moment: &Moment) -> Option<Choice> {
        let mut world = moment.world.clone();
        let limits = world.limits_mut();
        (limits.losses, limits.duplicates, limits.crashes) = (0, 0, 0);
        (limits.forgetting, limits.withdrawing) = (false, false);
        let choices = world.choices();
        if moment.over.is_some() || choices.is_empty() {
            return None;
        }
        match self {
            Self::Dice(seed) => {
                let mut dice = Dice::new(seed.wrapping_add((moment.taken as u64) << 20));
                Some(choices[dice.below(choices.len())])
            }
            Self::Fair => choices.into_iter().min_by_key(|choice| moment.open_since(*choice)),
            Self::Oldest => {
                let id = |choice: &Choice| match choice {
                    Choice::Deliver(position) => world.letter(*position).map(|letter| letter.id),
                    _ => None,
                };
                let oldest = choices.iter().filter_map(|choice| Some((id(choice)?, *choice)));
                let oldest = oldest.min_by_key(|(id, _)| *id).map(|(_, choice)| choice);
                let leaves = |choice: &&Choice| !matches!(choice, Choice::Acquire(..));
                let rest = choices.iter().find(leaves).copied();
                // Those ask first that have not asked for the longest time.
                let turn = |choice: &&Choice| {
                    let node: NodeId = actor(**choice);
                    (moment.open_since(**choice), node)
                };
                let asks = |choice: &&Choice| matches!(choice, Choice::Acquire(..));
                let ask = choices.iter().filter(asks).min_by_key(turn).copied();
                let busy = [Phase::Waiting, Phase::Inside];
                let idle = busy.iter().all(|phase| world.live_in(*phase).is_empty());
                ask.filter(|_| idle).or(oldest).or(rest).or(ask)
            }
        }
    }
}
