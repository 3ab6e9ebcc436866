//! What every store has to do, whatever its group agrees by.
//!
//! Each function is a test. It runs in virtual time with stores that agree by Raft, and with a real
//! etcd in `real_etcd.rs`.

use doorway_node::members::{
    Answer, AuditEntry, Command, HoldId, MemberId, Record, RecordError, Seat, SeatId,
};
use doorway_node::{Fence, Name};

use super::world::{CLUSTER, Group, LEASE, LEASE_MS, TestStore, World, begin, join};
use crate::FoundError;

/// Make a test of each function, for stores that agree by Raft.
macro_rules! by_raft {
    ($($name:ident),* $(,)?) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $name() {
                super::$name(World::new(1)).await;
            }
        )*
    };
}

mod by_raft {
    use super::World;

    by_raft!(
        each_node_can_change_the_record,
        a_group_is_founded_only_once,
        a_group_begins_with_the_right_machines_only,
        a_group_can_begin_above_the_view_of_a_former_one,
        nodes_come_back_with_their_disks,
        machines_are_added_removed_and_replaced,
        holds_and_the_audit_log_are_the_same_everywhere,
    );
}

pub(super) async fn each_node_can_change_the_record<S: TestStore>(mut world: Group<S>) {
    world.found(&["a", "b", "c"]).await;
    for (name, number) in [("a", 1), ("b", 2), ("c", 3)] {
        let command = join(world.seat(name, true).id, number);
        let answer = world.insist(name, command).await;
        assert_eq!(answer, Answer::Joined(MemberId(number as u64)));
    }
    world.agree().await;
    let record = world.record("b").unwrap();
    assert_eq!((record.cluster, record.members.len(), record.revision), (CLUSTER, 3, 3));
    assert_eq!(world.store("c").cluster(), Some(CLUSTER));
    let leads: Vec<bool> = ["a", "b", "c"].map(|name| world.store(name).leads()).to_vec();
    assert_eq!(leads.iter().filter(|leads| **leads).count(), 1);
}

pub(super) async fn a_group_is_founded_only_once<S: TestStore>(mut world: Group<S>) {
    world.found(&["a", "b"]).await;
    let seats = vec![world.seat("a", true), world.seat("b", true)];
    for name in ["a", "b"] {
        let record = Record::new(2, LEASE_MS, 0, seats.clone());
        let again = world.store(name).found_with(begin(record)).await;
        assert_eq!(again, Err(FoundError::Founded { cluster: CLUSTER }));
    }
}

pub(super) async fn a_group_begins_with_the_right_machines_only<S: TestStore>(mut world: Group<S>) {
    world.start("x").await;
    world.start("a").await;
    let (a, x) = (world.seat("a", true), world.seat("x", true));
    let found = async |seats: Vec<Seat>, lease_ms| {
        let record = Record::new(2, lease_ms, 0, seats);
        world.store("a").found_with(begin(record)).await.unwrap_err().to_string()
    };
    let why = found(vec![x.clone()], LEASE_MS).await;
    assert!(why.contains("does not name this one, `a`"), "{why}");
    let why = found(vec![a.clone(), Seat { id: SeatId(9), ..x.clone() }], LEASE_MS).await;
    assert!(why.contains("not seat 9"), "{why}");
    let nobody = Seat { id: SeatId(9), name: "z".into(), address: "at-z".into(), voter: true };
    let why = found(vec![a.clone(), nobody], LEASE_MS).await;
    assert!(why.starts_with("z at at-z: "), "{why}");
    let why = found(vec![a.clone(), Seat { name: "b".into(), ..a.clone() }], LEASE_MS).await;
    assert!(why.contains("another one"), "{why}");
    let why = found(vec![a.clone()], 5).await;
    assert!(why.contains("not 5 ms"), "{why}");
    // After all these mistakes, the node can still found a group.
    let record = Record::new(2, LEASE_MS, 0, vec![a.clone()]);
    world.store("a").found_with(begin(record)).await.unwrap();
    // A machine that belongs to a group cannot found another one.
    let record = Record::new(3, LEASE_MS, 0, vec![x, a]);
    let why = world.store("x").found_with(begin(record)).await.unwrap_err().to_string();
    assert!(why.contains("00000000000000000000000000000002"), "{why}");
}

pub(super) async fn a_group_can_begin_above_the_view_of_a_former_one<S: TestStore>(
    mut world: Group<S>,
) {
    world.start("a").await;
    let mut record = Record::new(5, LEASE_MS, 0, vec![world.seat("a", true)]);
    record.number = 4_096;
    world.store("a").found_with(begin(record)).await.unwrap();
    assert_eq!(world.record("a").unwrap().number, 4_096);
}

pub(super) async fn nodes_come_back_with_their_disks<S: TestStore>(mut world: Group<S>) {
    let names = ["a", "b", "c"];
    world.found(&names).await;
    let seat = world.seat("a", true).id;
    for nonce in 1..=3 {
        world.insist("b", join(seat, nonce)).await;
    }
    for name in names {
        world.kill(name).await;
    }
    for name in names {
        world.start(name).await;
    }
    assert_eq!(world.seat("a", true).id, seat);
    world.settle(LEASE * 3, |world| names.iter().all(|it| world.record(it).is_some())).await;
    assert_eq!(world.insist("c", join(seat, 1)).await, Answer::Joined(MemberId(1)));
    world.agree().await;
    assert_eq!(world.record("a").unwrap().members.len(), 3);
}

pub(super) async fn machines_are_added_removed_and_replaced<S: TestStore>(mut world: Group<S>) {
    world.found(&["a", "b", "c"]).await;
    world.start("d").await;
    let new = world.seat("d", false);
    assert_eq!(world.record("d"), None, "it does not belong to the group yet");
    assert_eq!(world.insist("b", Command::AddSeat(new.clone())).await, Answer::Done(0));
    world.agree().await;
    assert_eq!(world.store("d").cluster(), Some(CLUSTER));
    assert_eq!(world.insist("d", join(new.id, 1)).await, Answer::Joined(MemberId(1)));
    world.insist("a", Command::DropSeat(new.id)).await;
    let answer = world.insist("a", join(new.id, 2)).await;
    assert_eq!(answer, Answer::Refused(RecordError::UnknownSeat));

    // A new disk is a new seat.
    let old = world.seat("c", true);
    world.kill("c").await;
    world.disks.remove("c");
    world.start("c").await;
    let new = world.seat("c", true);
    assert_ne!(old.id, new.id);
    world.insist("a", Command::DropSeat(old.id)).await;
    world.insist("b", Command::AddSeat(new.clone())).await;
    world.settle(LEASE * 3, |world| world.record("c").is_some()).await;
    let answer = world.insist("c", join(new.id, 3)).await;
    assert_eq!(answer, Answer::Joined(MemberId(2)));
}

pub(super) async fn holds_and_the_audit_log_are_the_same_everywhere<S: TestStore>(
    mut world: Group<S>,
) {
    world.found(&["a", "b", "c"]).await;
    let seat = world.seat("a", true).id;
    let Answer::Joined(member) = world.insist("a", join(seat, 1)).await else { panic!() };
    let enter = Command::Enter { id: member, number: 0, replaces: Vec::new(), inherits: true };
    assert_eq!(world.insist("a", enter).await, Answer::Done(1));
    let id = |number: u64| HoldId {
        name: Name::new(&format!("lock {number}/ä")).unwrap(),
        fence: Fence::new(1, number),
        member,
    };
    for number in 1..=20 {
        let command = Command::Hold { id: id(number), length_ms: Some(60_000) };
        assert_eq!(world.insist("a", command).await, Answer::Done(1));
    }
    for number in 1..=5 {
        assert_eq!(world.insist("b", Command::Drop(id(number))).await, Answer::Done(1));
    }
    let entry = AuditEntry { what: "init".to_owned(), ..AuditEntry::default() };
    assert_eq!(world.insist("c", Command::Note(entry)).await, Answer::Done(1));
    // A hold is refused once its member is gone.
    world.insist("b", Command::Leave { id: member }).await;
    let late = world.insist("a", Command::Hold { id: id(30), length_ms: None }).await;
    assert_eq!(late, Answer::Refused(RecordError::NotAMember(member)));
    world.kill("c").await;
    world.start("c").await;
    world.agree().await;
    for name in ["a", "b", "c"] {
        world
            .settle(LEASE, |world| {
                let holds = world.store(name).holds().borrow().clone();
                let kept: Vec<u64> = (1..=20).filter(|it| holds.get(&id(*it)).is_some()).collect();
                let audit = world.store(name).audit().after(0).count();
                (holds.added(), kept, audit) == (20, (6..=20).collect(), 1)
            })
            .await;
    }
}
