//! How the state of a group is kept in etcd.
//!
//! The keys of the group `shop` begin with `/doorway/shop/`:
//!
//! - `record` has the record, which is small and changes all the time;
//! - `holds/MEMBER/FENCE/LOCK` has one hold;
//! - `audit/NUMBER` has one entry of the audit log;
//! - `rules` has the rules for locks.
//!
//! So a command writes little, however many holds there are. Every change is one transaction: it
//! compares the revision of `record`, and always writes `record` too. Therefore all other keys are
//! as they were when `record` was written last, and it is enough to compare that one key.
//!
//! This file is pure: it turns two states into the changes between them, and changes into a state.

use std::collections::BTreeMap;
use std::sync::Arc;

use doorway_node::members::{AuditEntry, GroupState, Hold, HoldId, Record, RuleTables};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::wire::Op;

/// The format of all values. A release that changes it must refuse the values of a newer one.
const FORMAT: u8 = 1;

/// The keys of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) prefix: String,
    pub(super) record: String,
    rules: String,
}

/// The state of a group as etcd has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EtcdState {
    pub(super) state: GroupState,
    /// How many times a key besides the record has changed. If it is the same in two records, the
    /// holds, the audit log and the rules are the same too.
    pub(super) beside: u64,
}

/// The value of the key `record`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredRecord {
    pub(super) beside: u64,
    pub(super) record: Record,
}

/// The value of a hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredHold {
    id: HoldId,
    hold: Hold,
}

impl Keys {
    pub(super) fn new(group: &str) -> Self {
        let prefix = format!("/doorway/{group}/");
        Self { record: format!("{prefix}record"), rules: format!("{prefix}rules"), prefix }
    }

    fn hold(&self, HoldId { name, fence, member }: &HoldId) -> String {
        // The name comes last, because it may contain any character.
        format!("{}holds/{}/{fence}/{name}", self.prefix, member.0)
    }

    /// Numbers are as long as they can be, so that the keys have their order.
    fn entry(&self, number: u64) -> String {
        format!("{}audit/{number:020}", self.prefix)
    }

    /// The state that these keys have; none if there is no record. Unknown keys are an error,
    /// because a newer release may have written them.
    pub(super) fn read(
        &self,
        pairs: impl IntoIterator<Item = (String, Vec<u8>)>,
    ) -> Result<Option<EtcdState>, String> {
        let (mut record, mut holds, mut audit) = (None, Vec::new(), BTreeMap::new());
        let mut rules = RuleTables::default();
        for (key, value) in pairs {
            if key == self.record {
                record = Some(self.read_record(&value)?);
                continue;
            }
            if key == self.rules {
                rules = open(&key, &value)?;
                continue;
            }
            match key.strip_prefix(&self.prefix).and_then(|rest| rest.split_once('/')) {
                Some(("holds", _)) => {
                    let StoredHold { id, hold } = open(&key, &value)?;
                    holds.push((id, hold));
                }
                Some(("audit", _)) => {
                    let entry: AuditEntry = open(&key, &value)?;
                    audit.insert(entry.number, entry);
                }
                _ => return Err(format!("the key {key} in etcd is unknown to this release")),
            }
        }
        let Some(StoredRecord { beside, record }) = record else { return Ok(None) };
        let state = GroupState::from_parts(record, holds, audit.into_values(), rules);
        Ok(Some(EtcdState { state, beside }))
    }

    /// The value of the key `record`.
    pub(super) fn read_record(&self, value: &[u8]) -> Result<StoredRecord, String> {
        let stored: StoredRecord = open(&self.record, value)?;
        let impossible = |why| format!("the value of {} in etcd is impossible: {why}", self.record);
        stored.record.check().map_err(impossible)?;
        Ok(stored)
    }

    /// The changes that make one state another one. If they are not empty, the last of them is the
    /// record.
    pub(super) fn changes(&self, old: Option<&EtcdState>, new: &mut EtcdState) -> Vec<Op> {
        let none = GroupState::new(Record::new(0, 0, 0, Vec::new()));
        let before = old.map_or(&none, |old| &old.state);
        let after = &new.state;
        let mut ops = Vec::new();
        if !Arc::ptr_eq(&before.holds, &after.holds) {
            for (id, _) in before.holds.iter().filter(|(id, _)| after.holds.get(id).is_none()) {
                ops.push(Op::Delete(self.hold(id)));
            }
            for (id, hold) in after.holds.iter() {
                if before.holds.get(id) != Some(hold) {
                    let stored = StoredHold { id: id.clone(), hold: *hold };
                    ops.push(Op::Put(self.hold(id), seal(&stored)));
                }
            }
        }
        if !Arc::ptr_eq(&before.audit, &after.audit) {
            let last = before.audit.after(0).last().map_or(0, |entry| entry.number);
            let first = after.audit.after(0).next().map_or(0, |entry| entry.number);
            let gone = before.audit.after(0).filter(|entry| entry.number < first);
            ops.extend(gone.map(|entry| Op::Delete(self.entry(entry.number))));
            let news = after.audit.after(last);
            ops.extend(news.map(|entry| Op::Put(self.entry(entry.number), seal(entry))));
        }
        if before.rules != after.rules {
            ops.push(Op::Put(self.rules.clone(), seal(&*after.rules)));
        }
        new.beside = old.map_or(0, |old| old.beside) + u64::from(!ops.is_empty());
        if old.is_none() || !ops.is_empty() || before.record != after.record {
            ops.push(Op::Put(self.record.clone(), new.record_value()));
        }
        ops
    }

    /// The state after these changes, which a watch has told of. An error if they make no sense.
    pub(super) fn apply(&self, old: &EtcdState, ops: Vec<Op>) -> Result<Option<EtcdState>, String> {
        let only_record = ops.iter().all(|op| matches!(op, Op::Put(key, _) if *key == self.record));
        if only_record && let Some(Op::Put(_, value)) = ops.last() {
            let StoredRecord { beside, record } = self.read_record(value)?;
            return Ok(old.with_record(beside, record));
        }
        let mut pairs = self.pairs(old);
        for op in ops {
            match op {
                Op::Put(key, value) => drop(pairs.insert(key, value)),
                Op::Delete(key) => drop(pairs.remove(&key)),
            }
        }
        self.read(pairs)
    }

    /// All keys of a state with their values.
    fn pairs(&self, kept: &EtcdState) -> BTreeMap<String, Vec<u8>> {
        let ops = self.changes(None, &mut kept.clone());
        let put = |op| match op {
            Op::Put(key, value) if key != self.record => Some((key, value)),
            _ => None,
        };
        let mut pairs: BTreeMap<String, Vec<u8>> = ops.into_iter().filter_map(put).collect();
        pairs.insert(self.record.clone(), kept.record_value());
        pairs
    }
}

impl EtcdState {
    /// The first state of a group.
    pub(super) fn new(state: GroupState) -> Self {
        Self { state, beside: 0 }
    }

    fn record_value(&self) -> Vec<u8> {
        let record = Record::clone(&self.state.record);
        seal(&StoredRecord { beside: self.beside, record })
    }

    /// This state with another record, if everything else is as it was then.
    pub(super) fn with_record(&self, beside: u64, record: Record) -> Option<Self> {
        let same = beside == self.beside && record.holds == self.state.record.holds;
        same.then(|| {
            let record = Arc::new(record);
            Self { state: GroupState { record, ..self.state.clone() }, beside }
        })
    }
}

fn seal(value: &impl Serialize) -> Vec<u8> {
    // These types have no map with an unknown length and no custom code: they can always be
    // written.
    postcard::to_extend(value, vec![FORMAT]).unwrap_or_else(|_| vec![FORMAT])
}

fn open<T: DeserializeOwned>(key: &str, value: &[u8]) -> Result<T, String> {
    let Some((format, content)) = value.split_first() else {
        return Err(format!("the value of {key} in etcd is empty"));
    };
    if *format != FORMAT {
        return Err(format!(
            "the value of {key} in etcd has format {format}, but this program knows only format \
             {FORMAT}"
        ));
    }
    postcard::from_bytes(content)
        .map_err(|error| format!("the value of {key} in etcd is damaged: {error}"))
}

#[cfg(test)]
mod tests {
    use doorway_node::members::{Answer, Command, MemberId, Seat, SeatId};
    use doorway_node::{Fence, Name};

    use super::*;

    /// One rule for all locks.
    fn rules(algorithm: &str) -> RuleTables {
        RuleTables(vec![[("algorithm".to_owned(), algorithm.to_owned())].into_iter().collect()])
    }

    fn begin() -> EtcdState {
        let seat = |id: u64, name: &str| Seat {
            id: SeatId(id),
            name: name.to_owned(),
            address: format!("{name}:1"),
            voter: true,
        };
        let record = Record::new(5, 10_000, 0, vec![seat(1, "a"), seat(2, "b")]);
        EtcdState::new(GroupState::new(record).with_rules(rules("lamport")))
    }

    /// Commands of all kinds that change something beside the record, and many that do not.
    fn commands() -> Vec<Command> {
        let (one, two) = (MemberId(1), MemberId(2));
        let hold = |name: &str, member, length_ms| {
            let (name, fence) = (Name::new(name).unwrap(), Fence::new(1, 5));
            Command::Hold { id: HoldId { name, fence, member }, length_ms }
        };
        let note = |what: &str| {
            Command::Note(AuditEntry { what: what.to_owned(), ..AuditEntry::default() })
        };
        let enter = |id, number, replaces| Command::Enter { id, number, replaces, inherits: true };
        let digest = rules("lamport").digest();
        let join = |nonce| Command::Join { seat: SeatId(1), nonce, rules: digest };
        let id = HoldId { name: Name::new("x/y z").unwrap(), fence: Fence::new(1, 5), member: two };
        let mut all = vec![
            join(1),
            Command::Renew { id: one, cut: Vec::new() },
            hold("early", one, None),
            enter(one, 0, Vec::new()),
            hold("x/y z", one, Some(60_000)),
            hold("x/y z", one, None),
            hold("audit/holds", one, Some(5)),
            note("init"),
            note("init"),
            join(2),
            hold("x/y z", two, Some(1)),
            enter(two, 1, vec![(one, 1)]),
            Command::Drop(id.clone()),
            Command::Drop(id),
            Command::Leave { id: two },
            Command::Rules { number: 3, rules: rules("maekawa") },
        ];
        all.extend((0..1_005).map(|number| note(&number.to_string())));
        all
    }

    #[test]
    fn the_changes_of_each_command_lead_to_its_state() {
        let keys = Keys::new("shop");
        let mut kept = begin();
        let mut pairs = BTreeMap::new();
        let mut changed = keys.changes(None, &mut kept);
        assert_eq!(changed.len(), 2, "the rules and the record");
        let mut known = kept.clone();
        for (step, command) in
            std::iter::once(None).chain(commands().into_iter().map(Some)).enumerate()
        {
            if let Some(command) = command {
                let old = kept.clone();
                let answer = kept.state.apply(&command);
                changed = keys.changes(Some(&old), &mut kept);
                assert!(changed.len() <= 4, "{command:?}: {changed:?}");
                if matches!(answer, Answer::Refused(_)) {
                    assert!(changed.is_empty(), "{command:?} was refused: {changed:?}");
                }
                let record = Op::Put(keys.record.clone(), kept.record_value());
                assert!(changed.is_empty() || changed.last() == Some(&record));
                if step > 30 && step % 100 != 0 {
                    known = kept.clone(); // Many of these would take long.
                } else if !changed.is_empty() {
                    known = match keys.apply(&known, changed.clone()).unwrap() {
                        Some(known) => known,
                        None => panic!("{command:?}: only the record, but something beside it"),
                    };
                }
                assert_eq!(known, kept, "as a watch tells it, step {step}");
            }
            for op in changed.drain(..) {
                match op {
                    Op::Put(key, value) => drop(pairs.insert(key, value)),
                    Op::Delete(key) => assert!(pairs.remove(&key).is_some(), "{key}"),
                }
            }
            if step < 20 || step % 100 == 0 {
                assert_eq!(keys.read(pairs.clone()).unwrap().as_ref(), Some(&kept), "step {step}");
            }
        }
        assert_eq!(kept.state.audit.after(0).count(), 1_000);
        assert_eq!(pairs.keys().filter(|key| key.contains("/audit/0")).count(), 1_000);
        assert_eq!(pairs.keys().filter(|key| key.starts_with("/doorway/shop/holds/")).count(), 1);
    }

    #[test]
    fn a_record_alone_is_enough_only_if_nothing_else_has_changed() {
        let kept = begin();
        let mut record = Record::clone(&kept.state.record);
        record.revision = 9;
        assert_eq!(kept.with_record(0, record.clone()).unwrap().state.record.revision, 9);
        assert_eq!(kept.with_record(1, record.clone()), None);
        record.holds = 1;
        assert_eq!(kept.with_record(0, record), None);
    }

    #[test]
    fn values_that_make_no_sense_are_errors_with_words() {
        let keys = Keys::new("shop");
        let mut kept = begin();
        let mut pairs = keys.pairs(&kept);
        assert_eq!(keys.read(BTreeMap::new()), Ok(None));
        kept.state.record = Arc::new(Record { lease_ms: 1, ..Record::clone(&kept.state.record) });
        for (value, part) in [
            (Vec::new(), "is empty"),
            (vec![9, 1, 2], "has format 9"),
            (vec![FORMAT, 255], "is damaged"),
            (kept.record_value(), "is impossible"),
        ] {
            pairs.insert(keys.record.clone(), value);
            let why = keys.read(pairs.clone()).unwrap_err();
            assert!(why.contains("/doorway/shop/record") && why.contains(part), "{why}");
        }
        let stranger = BTreeMap::from([("/doorway/shop/new".to_owned(), vec![1])]);
        assert!(keys.read(stranger).unwrap_err().contains("unknown to this release"));
    }
}
