//! From the steps of a search back to choices of a world.

use doorway_core::Algorithm;

use super::machine::Machine;
use super::model::{Model, Successors};
use super::pack::Packed;
use crate::{Choice, Violation, World};

impl<A: Algorithm> Machine<'_, A> {
    /// The choices that lead from a world, taken as the search knows it, along steps given by
    /// their ordinals; where they end; and what went wrong at the last of them.
    pub(super) fn trail(
        &self,
        packed: &Packed<'_>,
        from: &World<A>,
        steps: &[u32],
    ) -> (World<A>, Vec<Choice>, Option<Violation>) {
        let mut world = from.clone();
        let mut choices = Vec::new();
        let mut violation = None;
        let mut row = self.pack(&mut packed.tables_mut(), &self.as_searched(from));
        let mut print = packed.print(&packed.tables(), &row);
        let mut successors = Successors::default();
        for ordinal in steps {
            successors.clear();
            packed.expand(&row, print, &mut successors);
            let mut all = successors.iter(packed.width());
            let (there, _, found) = all.nth(*ordinal as usize).expect("steps are as they were");
            let target = (!found.is_empty()).then(|| self.unpack(&packed.tables(), found));
            violation = self.walk(&mut world, *ordinal, target.as_ref(), &mut choices);
            (row, print) = (found.to_vec(), there);
        }
        (world, choices, violation)
    }

    /// Take the step of the real world that the search took in the settled one: towards `target`
    /// or, without one, to something wrong. Mail that no longer counts may have to arrive before.
    fn walk(
        &self,
        world: &mut World<A>,
        ordinal: u32,
        target: Option<&World<A>>,
        choices: &mut Vec<Choice>,
    ) -> Option<Violation> {
        if !self.settling {
            let choice = world.choices()[ordinal as usize];
            choices.push(choice);
            return world.apply(choice).violation;
        }
        loop {
            let here = world.settled();
            let mut idle = None;
            for choice in world.choices() {
                let mut next = world.clone();
                let violation = next.apply(choice).violation;
                let arrived = match (target, &violation) {
                    (Some(target), _) => next.settled() == *target,
                    (None, violation) => {
                        violation.as_ref().is_some_and(|what| self.sought.is(what))
                    }
                };
                if arrived {
                    choices.push(choice);
                    *world = next;
                    return violation;
                }
                if next.settled() == here {
                    idle = idle.or(Some(choice));
                }
            }
            let choice = idle.expect("a settled world behaves like the one it was made from");
            choices.push(choice);
            world.apply(choice);
        }
    }
}
