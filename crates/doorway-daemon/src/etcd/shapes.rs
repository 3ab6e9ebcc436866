//! Which transactions of lock clients Doorway knows.
//!
//! A transaction compares one key, and then does something with this key, or with that one. All
//! lock clients use the same few shapes. Any other transaction is an error: nothing is guessed.

use super::keys::{Key, Keys};
use super::messages::{
    Compare, CompareResult, CompareTarget, RangeRequest, RequestOp, SortOrder, SortTarget,
    TxnRequest,
};
use super::status::Status;
use super::wire::EnumField;

/// What a transaction demands of its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Guard {
    /// There is no such key.
    Absent,
    /// The key was created with this revision.
    Created(i64),
    /// The key has this value.
    Value(Vec<u8>),
}

/// One operation of a transaction, on its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Op {
    /// Set the value, with a lease.
    Put(Vec<u8>, i64),
    /// Return the key.
    Own,
    /// Return the first key of the queue.
    Owner,
    Delete,
}

/// A transaction that Doorway knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Transaction {
    pub(super) bytes: Vec<u8>,
    pub(super) key: Key,
    pub(super) guard: Guard,
    pub(super) success: Vec<Op>,
    pub(super) failure: Vec<Op>,
}

/// How many operations a branch of a transaction may have. Clients use three at most.
const OPERATIONS: usize = 4;

impl Transaction {
    pub(super) fn read(request: &TxnRequest) -> Result<Self, Status> {
        let [compare] = &request.compare[..] else {
            return Err(unknown(&format!("it has {} comparisons", request.compare.len())));
        };
        if request.success.len().max(request.failure.len()) > OPERATIONS {
            return Err(unknown("it has more operations than a lock needs"));
        }
        let key = Key::read(&compare.key)?;
        let guard = guard(compare)?;
        let ops = |ops: &[RequestOp]| -> Result<Vec<Op>, Status> {
            ops.iter().map(|op| operation(op, compare, &key)).collect()
        };
        let (success, failure) = (ops(&request.success)?, ops(&request.failure)?);
        if failure.iter().any(|op| !matches!(op, Op::Own | Op::Owner)) {
            return Err(unknown("it changes something although its comparison fails"));
        }
        let mut changes = success.iter().filter(|op| matches!(op, Op::Put(..) | Op::Delete));
        let fits = match (changes.next(), changes.next(), &guard) {
            (Some(Op::Put(..)), None, _) => true,
            (Some(Op::Delete), None, guard) => *guard != Guard::Absent,
            _ => false,
        };
        if !fits {
            return Err(unknown("it does not put or delete the key that it compares"));
        }
        Ok(Self { bytes: compare.key.clone(), key, guard, success, failure })
    }

    /// The value and the lease that the transaction puts.
    pub(super) fn put(&self) -> Option<(&[u8], i64)> {
        self.success.iter().find_map(|op| match op {
            Op::Put(value, lease) => Some((value.as_slice(), *lease)),
            _ => None,
        })
    }
}

fn guard(compare: &Compare) -> Result<Guard, Status> {
    let EnumField(target) = compare.target;
    if compare.result != EnumField(CompareResult::Equal) || !compare.range_end.is_empty() {
        return Err(unknown("its comparison is not one key that equals something"));
    }
    match target {
        CompareTarget::Create if compare.create_revision.unwrap_or(0) != 0 => {
            Ok(Guard::Created(compare.create_revision.unwrap_or(0)))
        }
        CompareTarget::Create => Ok(Guard::Absent),
        CompareTarget::Version if compare.version.unwrap_or(0) == 0 => Ok(Guard::Absent),
        CompareTarget::Mod if compare.mod_revision.unwrap_or(0) == 0 => Ok(Guard::Absent),
        CompareTarget::Value => Ok(Guard::Value(compare.value.clone().unwrap_or_default())),
        _ => Err(unknown(
            "it compares neither the create revision nor the value of a key, nor whether the key \
             exists",
        )),
    }
}

fn operation(op: &RequestOp, compare: &Compare, key: &Key) -> Result<Op, Status> {
    match op {
        RequestOp {
            request_put: Some(put),
            request_range: None,
            request_delete_range: None,
            request_txn: None,
        } => {
            if put.key != compare.key {
                return Err(unknown("it puts another key than it compares"));
            }
            if put.prev_kv || put.ignore_value || put.ignore_lease {
                return Err(unknown("its put has options"));
            }
            Ok(Op::Put(put.value.clone(), put.lease))
        }
        RequestOp {
            request_range: Some(range),
            request_put: None,
            request_delete_range: None,
            request_txn: None,
        } => {
            if range.key == compare.key && range.range_end.is_empty() {
                return Ok(Op::Own);
            }
            match Keys::read(&range.key, &range.range_end)? {
                Keys::Queue(lock) if lock == *key.lock() && is_first(range) => Ok(Op::Owner),
                _ => Err(unknown("it reads something else than its key and the first of a queue")),
            }
        }
        RequestOp {
            request_delete_range: Some(delete),
            request_put: None,
            request_range: None,
            request_txn: None,
        } => {
            if delete.key != compare.key || !delete.range_end.is_empty() {
                return Err(unknown("it deletes another key than it compares"));
            }
            Ok(Op::Delete)
        }
        _ => Err(unknown("one of its operations is not a range, a put or a delete")),
    }
}

/// Whether a request asks for the key that was created first.
pub(super) fn is_first(range: &RangeRequest) -> bool {
    range.limit == 1
        && range.sort_target == EnumField(SortTarget::Create)
        && range.sort_order != EnumField(SortOrder::Descend)
        && range.max_create_revision == 0
}

fn unknown(why: &str) -> Status {
    Status::invalid(format!(
        "this is not a transaction of a lock client: {why}. Doorway serves the locks of etcd and \
         no other data; docs/etcd.md lists the transactions that it knows"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::messages::{DeleteRangeRequest, PutRequest};
    use super::*;
    use crate::etcd::ids::Home;

    fn compare(key: &[u8], target: CompareTarget) -> Compare {
        Compare { target: EnumField(target), key: key.to_vec(), ..Compare::default() }
    }

    fn put(key: &[u8], lease: i64) -> RequestOp {
        let put =
            PutRequest { key: key.to_vec(), value: b"v".to_vec(), lease, ..PutRequest::default() };
        RequestOp { request_put: Some(put), ..RequestOp::default() }
    }

    fn range(key: &[u8], range_end: &[u8]) -> RequestOp {
        let range = RangeRequest {
            key: key.to_vec(),
            range_end: range_end.to_vec(),
            limit: 1,
            sort_target: EnumField(SortTarget::Create),
            ..RangeRequest::default()
        };
        RequestOp { request_range: Some(range), ..RequestOp::default() }
    }

    fn delete(key: &[u8]) -> RequestOp {
        let delete = DeleteRangeRequest { key: key.to_vec(), ..DeleteRangeRequest::default() };
        RequestOp { request_delete_range: Some(delete), ..RequestOp::default() }
    }

    #[test]
    fn the_transactions_of_lock_clients_are_known() {
        let lease = Home::of("a").id(5);
        let key = format!("l/{lease:x}").into_bytes();
        let queue = TxnRequest {
            compare: vec![compare(&key, CompareTarget::Create)],
            success: vec![put(&key, lease), range(b"l/", b"l0")],
            failure: vec![range(&key, b""), range(b"l/", b"l0")],
        };
        let read = Transaction::read(&queue).unwrap();
        assert_eq!(read.key, Key::Queued(doorway_protocol::Name::new("l").unwrap(), lease));
        assert_eq!((read.guard.clone(), read.put()), (Guard::Absent, Some((&b"v"[..], lease))));
        assert_eq!(read.success, [Op::Put(b"v".to_vec(), lease), Op::Owner]);
        assert_eq!(read.failure, [Op::Own, Op::Owner]);
        let mut created = compare(&key, CompareTarget::Create);
        created.create_revision = Some(9);
        let resign = TxnRequest {
            compare: vec![created],
            success: vec![delete(&key)],
            ..TxnRequest::default()
        };
        assert_eq!(Transaction::read(&resign).unwrap().guard, Guard::Created(9));
        let mut value = compare(b"k", CompareTarget::Value);
        value.value = Some(b"mine".to_vec());
        let release = TxnRequest {
            compare: vec![value],
            success: vec![delete(b"k")],
            failure: vec![range(b"k", b"")],
        };
        assert_eq!(Transaction::read(&release).unwrap().guard, Guard::Value(b"mine".to_vec()));
    }

    #[test]
    fn other_transactions_are_refused() {
        let absent = || vec![compare(b"k", CompareTarget::Version)];
        let of = |compare: Vec<Compare>, success: Vec<RequestOp>, failure: Vec<RequestOp>| {
            let refused = Transaction::read(&TxnRequest { compare, success, failure });
            let text = refused.unwrap_err().text;
            assert!(text.contains("not a transaction of a lock client"), "{text}");
        };
        of(Vec::new(), vec![put(b"k", 1)], Vec::new());
        of([absent(), absent()].concat(), vec![put(b"k", 1)], Vec::new());
        of(absent(), Vec::new(), Vec::new());
        of(absent(), vec![put(b"other", 1)], Vec::new());
        of(absent(), vec![put(b"k", 1), put(b"k", 1)], Vec::new());
        of(absent(), vec![put(b"k", 1)], vec![delete(b"k")]);
        of(absent(), vec![delete(b"k")], Vec::new());
        of(absent(), vec![put(b"k", 1), range(b"m/", b"m0")], Vec::new());
        of(absent(), vec![RequestOp::default()], Vec::new());
        let nested = RequestOp { request_txn: Some(Vec::new()), ..RequestOp::default() };
        of(absent(), vec![nested], Vec::new());
        let mut other = compare(b"k", CompareTarget::Lease);
        of(vec![other.clone()], vec![put(b"k", 1)], Vec::new());
        other = compare(b"k", CompareTarget::Create);
        other.result = EnumField(CompareResult::Greater);
        of(vec![other], vec![put(b"k", 1)], Vec::new());
    }
}
