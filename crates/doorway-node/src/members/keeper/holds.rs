//! How a keeper asks the group to keep locks for longer than the lease of its node, and how it
//! counts the time of holds whose members are gone.

use std::collections::{BTreeMap, BTreeSet};

use doorway_protocol::{Fence, Name};

use super::{ClockTimes, Keeper, Kind, Orphan, Output, Stage, WantedHold};
use crate::members::command::{Command, RecordError};
use crate::members::holds::{HoldId, longer};
use crate::members::record::MemberId;

impl Keeper {
    /// A client is to have a hold. Before the process is a member, the hold waits.
    pub(super) fn hold(
        &mut self,
        name: Name,
        fence: Fence,
        length_ms: Option<u64>,
        out: &mut Vec<Output>,
    ) {
        // What was granted under a membership that is over is lost.
        let over = self.generation > 0 && self.stage == Stage::Joining;
        if over || matches!(self.stage, Stage::Gone | Stage::Leaving { .. }) {
            let refused = Some(RecordError::GivenUp);
            return out.push(Output::Held { name, fence, refused });
        }
        let grant = (name, fence);
        self.given_up.remove(&grant);
        let known = self.wanted.get(&grant);
        let earlier = known.is_some_and(|known| known.held || known.earlier);
        let length_ms = known.map_or(length_ms, |known| longer(known.length_ms, length_ms));
        self.wanted.insert(grant, WantedHold { length_ms, held: false, earlier });
    }

    /// The membership is over: clients have lost what they hold. Holds that the group keeps become
    /// orphans, because a client may not know yet that it has lost its lock.
    pub(super) fn end_holds(&mut self, id: MemberId, out: &mut Vec<Output>) {
        let known = &self.holds;
        self.former.retain(|(name, fence), member| {
            let hold = HoldId { name: name.clone(), fence: *fence, member: *member };
            known.get(&hold).is_some()
        });
        for ((name, fence), wanted) in std::mem::take(&mut self.wanted) {
            // Also if there was no answer: the group may have agreed, or may still agree.
            self.former.insert((name.clone(), fence), id);
            if !wanted.held {
                let refused = Some(RecordError::NotAMember(id));
                out.push(Output::Held { name, fence, refused });
            }
        }
        self.given_up.values_mut().for_each(|member| *member = member.or(Some(id)));
    }

    /// Note which holds are orphans. Before all holds are known that precede the record, a length
    /// may not be the last one.
    pub(super) fn look_at_orphans(&mut self, now: ClockTimes, out: &mut Vec<Output>) {
        if self.holds.added() < self.record.holds {
            return;
        }
        let orphans = self.holds.orphans(&self.record).map(|(id, _)| id);
        let since = |id: &HoldId| self.orphans.get(id).copied().unwrap_or(now);
        let orphans: BTreeMap<HoldId, ClockTimes> =
            orphans.map(|id| (id.clone(), since(id))).collect();
        if orphans == self.orphans {
            return;
        }
        self.orphans = orphans;
        let orphan = |(id, since): (&HoldId, &ClockTimes)| {
            let hold = *self.holds.get(id)?;
            Some(Orphan { id: id.clone(), hold, since: *since })
        };
        out.push(Output::Orphans(self.orphans.iter().filter_map(orphan).collect()));
    }

    /// Ask for the holds that clients of this process are to have, and drop all others that this
    /// member has: a command without an answer may have been applied late.
    pub(super) fn keep_holds(&mut self, now: ClockTimes, id: MemberId, out: &mut Vec<Output>) {
        let missing = self.wanted.iter().filter(|(_, wanted)| !wanted.held);
        let missing: Vec<_> =
            missing.map(|(grant, wanted)| (grant.clone(), wanted.length_ms)).collect();
        for (grant, length_ms) in missing {
            let (name, fence) = grant.clone();
            let command = Command::Hold { id: HoldId { name, fence, member: id }, length_ms };
            self.put(now, Kind::Hold(grant, length_ms), command, out);
        }
        let own = self.holds.iter().map(|(hold, _)| hold).filter(|hold| hold.member == id);
        let left = own.filter(|it| !self.wanted.contains_key(&(it.name.clone(), it.fence)));
        for hold in left.cloned().collect::<Vec<_>>() {
            self.put(now, Kind::Drop(hold.clone()), Command::Drop(hold), out);
        }
    }

    /// Drop the holds that clients have given up.
    pub(super) fn drop_given_up(&mut self, now: ClockTimes, out: &mut Vec<Output>) {
        let id = self.id();
        let mut drops = BTreeSet::new();
        for ((name, fence), member) in &self.given_up {
            let member = member.or(id);
            drops.extend(member.map(|member| HoldId { name: name.clone(), fence: *fence, member }));
            // An earlier process of this machine may have made the promise.
            drops.extend(self.own_holds(name, *fence).cloned());
        }
        for hold in drops {
            self.put(now, Kind::Drop(hold.clone()), Command::Drop(hold), out);
        }
    }

    /// The holds of a grant that processes of this machine have made.
    pub(super) fn own_holds(&self, name: &Name, fence: Fence) -> impl Iterator<Item = &HoldId> {
        let own = self.holds.iter().filter(|(_, hold)| hold.seat == self.seat);
        own.map(|(id, _)| id).filter(move |id| (&id.name, id.fence) == (name, fence))
    }

    /// Propose to drop the orphans whose time has passed.
    pub(super) fn drop_orphans(&mut self, now: ClockTimes, out: &mut Vec<Output>) {
        let over = |(id, since): (&HoldId, &ClockTimes)| {
            let length = self.holds.get(id)?.length()?;
            now.left(*since, length).is_zero().then(|| id.clone())
        };
        let over: Vec<HoldId> = self.orphans.iter().filter_map(over).collect();
        for id in over {
            self.put(now, Kind::Drop(id.clone()), Command::Drop(id), out);
        }
    }
}
