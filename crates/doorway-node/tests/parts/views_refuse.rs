//! Messages about views that no correct member sends, and messages in an unlucky order.

use doorway_core::{Mode, NodeId};
use doorway_node::messages::{Flush, HeldLock};
use doorway_node::views::{HELD_LIMIT, LearnOutcome, ViewError, Views};
use doorway_node::{Fence, Name};

const ME: NodeId = NodeId(0);
const PEER: NodeId = NodeId(1);

fn held(lock: &str) -> HeldLock {
    let lock = Name::new(lock).expect("tests use good names");
    HeldLock { lock, mode: Mode::Exclusive, permits: 1 }
}

fn flush(epochs: &[u64], part: u32, parts: u32, locks: &[&str]) -> Flush {
    let held = locks.iter().map(|lock| held(lock)).collect();
    Flush { epochs: epochs.to_vec(), part, parts, held }
}

/// A node of two that knows both epochs.
fn pair() -> Views {
    let mut views = Views::new(ME, 2, 1);
    assert_eq!(views.learn(&[0, 1]), Ok(LearnOutcome::News));
    views
}

/// Stop for the pending view.
fn stop(views: &mut Views, held: Vec<HeldLock>) -> Vec<Flush> {
    let view = views.pending().expect("all epochs are known");
    views.stopped(&view, held)
}

#[test]
fn a_view_begins_when_all_have_flushed() {
    let mut views = Views::new(ME, 3, 4);
    assert_eq!(views.pending(), None);
    assert_eq!(views.missing().iter().collect::<Vec<_>>(), [NodeId(1), NodeId(2)]);
    assert_eq!(views.learn(&[0, 2, 0]), Ok(LearnOutcome::News));
    assert_eq!(views.learn(&[3, 2, 0]), Ok(LearnOutcome::Nothing));
    assert_eq!(views.missing().iter().collect::<Vec<_>>(), [NodeId(2)]);
    assert_eq!(views.flush(NodeId(2), flush(&[4, 2, 5], 0, 1, &["b"])), Ok(LearnOutcome::News));

    let flushes = stop(&mut views, vec![held("z"), held("a")]);
    assert_eq!(flushes, [flush(&[4, 2, 5], 0, 1, &["a", "z"])]);
    assert_eq!(views.flushes(), flushes);
    assert_eq!(views.missing().iter().collect::<Vec<_>>(), [PEER]);
    assert_eq!(views.ready(), None);

    assert_eq!(views.flush(PEER, flush(&[4, 2, 5], 0, 1, &[])), Ok(LearnOutcome::Nothing));
    let started = views.ready().unwrap();
    assert_eq!((started.view.number(), started.view.epochs()), (11, &[4, 2, 5][..]));
    assert_eq!(started.held, [vec![held("a"), held("z")], vec![], vec![held("b")]]);
    assert_eq!((views.ready(), views.running(), views.pending()), (None, Some(11), None));
    assert!(views.missing().is_empty() && views.flushes().is_empty());
}

#[test]
fn a_node_alone_begins_at_once() {
    let mut views = Views::new(ME, 1, 1);
    assert_eq!(stop(&mut views, vec![]).len(), 1);
    assert_eq!(views.ready().unwrap().view.number(), 1);
    views.raise(2).unwrap();
    assert_eq!(views.running(), None);
    stop(&mut views, vec![held("a")]);
    assert_eq!(views.ready().unwrap().held, [vec![held("a")]]);
}

#[test]
fn a_view_that_is_no_longer_the_newest_is_left_out() {
    let mut views = pair();
    let old = views.pending().unwrap();
    assert_eq!(views.learn(&[1, 2]), Ok(LearnOutcome::News));
    assert_eq!(views.stopped(&old, vec![]), []);
    assert_eq!(stop(&mut views, vec![]), [flush(&[1, 2], 0, 1, &[])]);

    // The flush for the older view comes late. The one for this view never comes, because a newer
    // view is known.
    assert_eq!(views.flush(PEER, flush(&[1, 1], 0, 1, &[])), Ok(LearnOutcome::Nothing));
    assert_eq!(views.ready(), None);
    assert_eq!(views.flush(PEER, flush(&[1, 2], 0, 1, &[])), Ok(LearnOutcome::Nothing));
    assert_eq!(views.learn(&[1, 3]), Ok(LearnOutcome::News));
    assert_eq!(views.ready(), None);
    assert_eq!(views.pending().unwrap().epochs(), [1, 3]);
    stop(&mut views, vec![]);
    assert_eq!(views.ready(), None);
}

#[test]
fn a_higher_epoch_of_this_node_than_it_knows_itself() {
    let mut views = Views::new(ME, 2, 1);
    assert_eq!(views.learn(&[5, 3]), Ok(LearnOutcome::Overtaken(5)));
    assert_eq!(views.epochs(), [1, 3]);
    assert_eq!(views.flush(PEER, flush(&[5, 3], 0, 1, &[])), Ok(LearnOutcome::Overtaken(5)));
    views.raise(6).unwrap();
    stop(&mut views, vec![]);
    views.flush(PEER, flush(&[6, 3], 0, 1, &[])).unwrap();
    assert_eq!(views.ready().unwrap().view.number(), 9);

    // Now clients rely on this node, so a process that has raised its epoch has taken its place.
    let before = views.clone();
    assert_eq!(views.learn(&[7, 4]), Err(ViewError::Superseded(7)));
    assert_eq!(views.flush(PEER, flush(&[7, 4], 0, 1, &[])), Err(ViewError::Superseded(7)));
    assert_eq!(views, before);
}

#[test]
fn impossible_epochs_are_refused() {
    let mut views = pair();
    let before = views.clone();
    assert_eq!(views.learn(&[1]), Err(ViewError::Length { found: 1, size: 2 }));
    assert_eq!(views.learn(&[1, 1, 1]), Err(ViewError::Length { found: 3, size: 2 }));
    assert_eq!(views.learn(&[]), Err(ViewError::Length { found: 0, size: 2 }));
    assert_eq!(views.learn(&[0, u64::MAX]), Err(ViewError::TooHigh(u64::MAX)));
    let limit = Fence::VIEW_LIMIT;
    assert_eq!(views.learn(&[0, limit - 1]), Err(ViewError::TooHigh(limit)));
    assert_eq!(views.learn(&[limit - 1, 1]), Err(ViewError::TooHigh(limit)));
    assert_eq!(views.raise(limit - 1), Err(ViewError::TooHigh(limit)));
    let far = flush(&[u64::MAX, u64::MAX], 0, 1, &[]);
    assert_eq!(views.flush(PEER, far), Err(ViewError::TooHigh(u64::MAX)));
    assert_eq!(views, before);
    assert_eq!(views.learn(&[0, limit - 2]), Ok(LearnOutcome::News));
    assert_eq!(views.pending().unwrap().number(), limit - 1);
}

#[test]
fn impossible_flushes_are_refused() {
    let refused = |before: &[Flush], last: Flush| {
        let mut views = pair();
        for flush in before {
            views.flush(PEER, flush.clone()).unwrap();
        }
        let known = views.clone();
        let error = views.flush(PEER, last).unwrap_err();
        assert_eq!(views, known);
        error
    };
    let part = |part, parts, locks: &[&str]| flush(&[1, 1], part, parts, locks);
    let wrong = |part, parts, due| ViewError::Part { part, parts, due };
    let first = [part(0, 3, &["b"])];
    assert_eq!(refused(&[], part(0, 0, &[])), wrong(0, 0, 0));
    assert_eq!(refused(&[], part(1, 1, &[])), wrong(1, 1, 0));
    assert_eq!(refused(&[], part(1, 2, &["a"])), wrong(1, 2, 0));
    assert_eq!(refused(&[], part(0, u32::MAX, &["a"])), wrong(0, u32::MAX, 0));
    assert_eq!(refused(&[], part(0, 2049, &["a"])), wrong(0, 2049, 0));
    assert_eq!(refused(&[], part(0, 2, &[])), wrong(0, 2, 0));
    assert_eq!(refused(&first, part(0, 3, &["b"])), wrong(0, 3, 1));
    assert_eq!(refused(&first, part(2, 3, &["c"])), wrong(2, 3, 1));
    assert_eq!(refused(&first, part(1, 2, &["c"])), wrong(1, 2, 1));
    let order = |lock| ViewError::Order(Name::new(lock).unwrap());
    assert_eq!(refused(&first, part(1, 3, &["b"])), order("b"));
    assert_eq!(refused(&first, part(1, 3, &["a"])), order("a"));
    assert_eq!(refused(&[], part(0, 1, &["a", "c", "b"])), order("b"));
    assert_eq!(refused(&[], part(0, 1, &["a", "a"])), order("a"));

    // A member that cannot know whether its snapshot has arrived sends it again.
    let mut views = pair();
    assert_eq!(views.flush(PEER, part(0, 1, &["a"])), Ok(LearnOutcome::Nothing));
    let known = views.clone();
    assert_eq!(views.flush(PEER, part(0, 1, &["a"])), Ok(LearnOutcome::Nothing));
    assert_eq!(views, known);

    let mut views = pair();
    for stranger in [ME, NodeId(2), NodeId(u32::MAX)] {
        assert_eq!(views.flush(stranger, part(0, 1, &[])), Err(ViewError::Stranger(stranger)));
    }
}

#[test]
fn a_snapshot_beyond_the_limit_is_refused() {
    let mut views = pair();
    let mut much = flush(&[1, 1], 0, 1, &[]);
    much.held = vec![held("a"); HELD_LIMIT + 1];
    assert_eq!(views.flush(PEER, much), Err(ViewError::TooMuch));
}

#[test]
fn a_large_snapshot_goes_in_parts_that_fit() {
    let name = |at: usize| format!("{at:0>width$}", width = Name::MAX);
    let all: Vec<HeldLock> = (0..10_000).map(|at| held(&name(at))).collect();
    let mut views = pair();
    let parts = stop(&mut views, all.iter().rev().cloned().collect());
    assert_eq!(parts.len(), 4);
    for part in &parts {
        let bytes = postcard::to_stdvec(part).unwrap().len();
        assert!(bytes < 512 * 1024 && !part.held.is_empty(), "{bytes} bytes");
    }

    let mut peer = Views::new(PEER, 2, 1);
    for (at, part) in parts.into_iter().enumerate() {
        assert_eq!(peer.ready(), None);
        peer.flush(ME, part).unwrap();
        if at == 0 {
            stop(&mut peer, vec![]);
        }
    }
    assert_eq!(peer.ready().unwrap().held, [all, vec![]]);
}
