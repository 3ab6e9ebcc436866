//! Groups that are founded, grow, shrink, and lose members.

use std::time::Duration;

use doorway_node::members::{
    Answer, Command, HOLDS_LIMIT, HoldId, MemberId, RecordError, Seat, SeatId, ViewStore as _,
};
use doorway_node::{Fence, Name};
use tokio::time::sleep;

use super::world::{CLUSTER, LEASE, LEASE_MS, World, join, rules};
use crate::AskError;

#[tokio::test(start_paused = true)]
async fn one_node_is_a_group() {
    let mut world = World::founded(&["a"]).await;
    let answer = world.put("a", join(world.seat("a", true).id, 1)).await.unwrap();
    assert_eq!(answer, Answer::Joined(MemberId(1)));
    let before = world.record("a");
    world.kill("a").await;
    world.start("a").await;
    world.settle(LEASE, |world| world.store("a").leads()).await;
    assert_eq!(world.record("a"), before);
    assert_eq!(world.store("a").health().reachable.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_dies_is_followed_by_another_and_comes_back_with_its_disk() {
    let mut world = World::founded(&["a", "b", "c"]).await;
    let seat = world.seat("a", true).id;
    let leader = world.wait_for_leader().await;
    let others = world.others(&[&leader]);
    assert_eq!(world.insist(&others[0], join(seat, 1)).await, Answer::Joined(MemberId(1)));
    world.kill(&leader).await;
    let begin = tokio::time::Instant::now();
    assert_eq!(world.insist(&others[1], join(seat, 2)).await, Answer::Joined(MemberId(2)));
    assert!(begin.elapsed() < LEASE * 6 / 10, "{:?}", begin.elapsed());
    world.start(&leader).await;
    world.agree().await;
    assert_eq!(world.record(&leader).unwrap().members.len(), 2);
    assert_eq!(world.put(&leader, join(seat, 3)).await, Ok(Answer::Joined(MemberId(3))));
}

#[tokio::test(start_paused = true)]
async fn all_nodes_lose_power_at_once() {
    let mut world = World::founded(&["a", "b", "c"]).await;
    let seat = world.seat("a", true).id;
    for nonce in 1..=3 {
        world.insist("b", join(seat, nonce)).await;
    }
    for name in ["a", "b", "c"] {
        world.kill(name).await;
    }
    for name in ["a", "b", "c"] {
        world.start(name).await;
    }
    assert_eq!(world.insist("c", join(seat, 1)).await, Answer::Joined(MemberId(1)));
    world.agree().await;
    assert_eq!(world.record("a").unwrap().members.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_minority_agrees_on_nothing_and_catches_up_when_the_network_heals() {
    let world = World::founded(&["a", "b", "c"]).await;
    let leader = world.wait_for_leader().await;
    let others = world.others(&[&leader]);
    let seat = world.seat("a", true).id;
    world.isolate(&leader);
    assert!(world.put(&leader, join(seat, 1)).await.is_err());
    world.insist(&others[0], join(seat, 2)).await;
    sleep(LEASE).await;
    assert!(world.put(&leader, join(seat, 3)).await.is_err());
    assert!(!world.store(&leader).leads());
    let health = world.store(&leader).health();
    assert_eq!((health.voters, health.reachable.len()), (3, 1));
    assert!(health.without_quorum.unwrap() > LEASE / 2, "{health:?}");
    assert_eq!(world.record(&leader).unwrap().members.len(), 0);
    world.heal();
    world.agree().await;
    assert_eq!(world.put(&leader, join(seat, 2)).await, Ok(Answer::Joined(MemberId(1))));
    sleep(LEASE).await;
    let health = world.store(&leader).health();
    assert_eq!((health.reachable.len(), health.without_quorum), (3, None));
}

#[tokio::test(start_paused = true)]
async fn a_late_member_gets_a_snapshot() {
    let mut world = World::founded(&["a", "b", "c"]).await;
    let leader = world.wait_for_leader().await;
    let late = world.others(&[&leader])[0].clone();
    world.kill(&late).await;
    let seat = world.seat(&leader, true).id;
    world.insist(&leader, join(seat, 1)).await;
    let renew = Command::Renew { id: MemberId(1), cut: Vec::new() };
    for _ in 0..2_300 {
        world.insist(&leader, renew.clone()).await;
    }
    let purged = world.store(&leader).core().engine().raft.metrics().borrow().purged;
    assert!(purged.is_some_and(|purged| purged.index > 1_000), "{purged:?}");
    world.start(&late).await;
    world.agree().await;
    assert!(world.store(&late).core().engine().raft.metrics().borrow().snapshot.is_some());
    // The snapshot is on the disk, too.
    world.kill(&late).await;
    world.start(&late).await;
    assert!(world.record(&late).unwrap().revision > 1_000);
    world.agree().await;
}

/// The voters of Raft, by name.
fn voters(world: &World, at: &str) -> Vec<String> {
    let metrics = world.store(at).core().engine().raft.metrics();
    let metrics = metrics.borrow();
    let membership = metrics.membership_config.membership();
    assert!(membership.get_joint_config().len() == 1 || membership.nodes().count() > 1);
    let name = |id: u64| membership.get_node(&id).map(|peer| peer.name.clone());
    let mut names: Vec<String> = membership.voter_ids().filter_map(name).collect();
    names.sort();
    names
}

#[tokio::test(start_paused = true)]
async fn seats_are_added_and_dropped() {
    let mut world = World::founded(&["a", "b", "c"]).await;
    world.start("d").await;
    let new = world.seat("d", false);
    assert_eq!(world.insist("b", Command::AddSeat(new.clone())).await, Answer::Done(0));
    world.agree().await;
    assert_eq!(world.store("d").cluster(), Some(CLUSTER));
    assert_eq!(voters(&world, "a"), ["a", "b", "c"]);

    // The new seat votes in place of the leader.
    let leader = world.wait_for_leader().await;
    let stay: Vec<String> = world.others(&[&leader]);
    let ids: Vec<SeatId> = stay.iter().map(|name| world.seat(name, true).id).collect();
    world.insist("d", Command::Voters(ids)).await;
    world.settle(LEASE * 3, |world| voters(world, "d") == stay).await;
    let gone = world.seat(&leader, true);
    world.insist("d", Command::DropSeat(gone.id)).await;
    world
        .settle(LEASE * 3, |world| {
            let metrics = world.store("d").core().engine().raft.metrics();
            let metrics = metrics.borrow();
            metrics.membership_config.membership().get_node(&gone.id.0).is_none()
        })
        .await;
    let answer = world.insist(&stay[0], join(gone.id, 1)).await;
    assert_eq!(answer, Answer::Refused(RecordError::UnknownSeat));
    // The group goes on without the one that was dropped.
    world.kill(&leader).await;
    world.insist("d", join(new.id, 1)).await;
    world.agree().await;
}

#[tokio::test(start_paused = true)]
async fn a_change_of_voters_survives_the_death_of_the_leader() {
    for pause in [1, 3, 5, 8, 13, 250, 255, 260] {
        let mut world = World::founded(&["a", "b", "c"]).await;
        let leader = world.wait_for_leader().await;
        world.start("d").await;
        let new = world.seat("d", true);
        world.insist(&leader, Command::AddSeat(new)).await;
        sleep(Duration::from_millis(pause)).await;
        world.kill(&leader).await;
        let all = ["a", "b", "c", "d"];
        let other = world.others(&[&leader, "d"])[0].clone();
        world.settle(LEASE * 6, |world| voters(world, &other) == all).await;
        world
            .settle(LEASE, |world| {
                let metrics = world.store(&other).core().engine().raft.metrics();
                let joint =
                    metrics.borrow().membership_config.membership().get_joint_config().len();
                joint == 1
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_wiped_disk_is_a_new_seat() {
    let mut world = World::founded(&["a", "b", "c"]).await;
    let leader = world.wait_for_leader().await;
    let wiped = world.others(&[&leader])[0].clone();
    let old = world.seat(&wiped, true);
    world.kill(&wiped).await;
    world.disks.remove(&wiped);
    world.start(&wiped).await;
    let new = world.seat(&wiped, true);
    assert_ne!(old.id, new.id);
    sleep(LEASE).await;
    // The leader goes on asking for the old seat, and is refused.
    assert_eq!(world.store(&wiped).cluster(), None);
    assert_eq!(world.record(&wiped), None);
    assert!(world.put(&wiped, join(new.id, 1)).await.is_err());
    // The operator replaces the old one.
    world.insist(&leader, Command::DropSeat(old.id)).await;
    world.insist(&leader, Command::AddSeat(new.clone())).await;
    world.settle(LEASE * 3, |world| voters(world, &leader) == ["a", "b", "c"]).await;
    assert_eq!(world.insist(&wiped, join(new.id, 1)).await, Answer::Joined(MemberId(1)));
}

#[tokio::test(start_paused = true)]
async fn a_foreign_group_is_refused() {
    let mut world = World::founded(&["a", "b", "c"]).await;
    world.start("x").await;
    let x = world.seat("x", true);
    world.store("x").found(vec![x.clone()], LEASE_MS, rules(), 2).await.unwrap();
    // An operator adds the machine of the other group by mistake.
    world.insist("a", Command::AddSeat(Seat { voter: false, ..x.clone() })).await;
    sleep(LEASE).await;
    assert_eq!(world.record("x").unwrap().cluster, 2);
    let record = world.record("a").unwrap();
    assert_eq!(record.seats.len(), 4);
    let leader = world.store("a").core().clone();
    let ask = crate::rpc::frame::Ask::Ping;
    let peer = crate::types::Peer::of(&x);
    let told = leader.peers.ask(x.id.0, &peer, ask.clone(), LEASE).await;
    let Err(AskError::Refused(why)) = told else { panic!("{told:?}") };
    assert!(why.contains("`x` belongs to group 00000000000000000000000000000002"), "{why}");
    let told = leader.peers.ask(99, &peer, ask, LEASE).await;
    let Err(AskError::Refused(why)) = told else { panic!("{told:?}") };
    assert!(why.contains("the question is for seat 63, but `x` has seat"), "{why}");
    let hello = world.store("a").ask("at-x").await.unwrap();
    assert_eq!((hello.name.as_str(), hello.cluster), ("x", Some(2)));
}

#[tokio::test(start_paused = true)]
async fn a_node_cannot_speak_for_the_seat_of_another() {
    use crate::rpc::frame::{Ask, Frames, Head, Question, Reply, ReplyBody, encode};
    use tokio::io::AsyncWriteExt as _;
    let world = World::founded(&["a", "b"]).await;
    let (ours, theirs) = tokio::io::duplex(1 << 12);
    let caller = doorway_node::members::Caller { name: "b".to_owned() };
    tokio::spawn(world.store("a").serve(Box::new(theirs), caller));
    let (read, mut write) = tokio::io::split(ours);
    let mut frames = Frames::new(read);
    let (a, b) = (world.seat("a", true).id.0, world.seat("b", true).id.0);
    let mut ask = async |from, number| {
        let head = Head { cluster: Some(CLUSTER), from, to: Some(a) };
        write
            .write_all(&encode(&Question { number, head, body: Ask::Ping }).unwrap())
            .await
            .unwrap();
        let reply: Reply = frames.next().await.unwrap().unwrap();
        assert_eq!(reply.number, number);
        reply.body
    };
    assert_eq!(ask(b, 1).await, ReplyBody::Here);
    let ReplyBody::Refused(why) = ask(a, 2).await else { panic!() };
    assert!(why.contains("belongs to `a`, not to `b`"), "{why}");
}

/// A node that does not lead may not know a machine that was added while it was away. It must not
/// tell that machine that it does not belong to the group.
#[tokio::test(start_paused = true)]
async fn a_follower_refuses_nobody() {
    use crate::rpc::frame::{Ask, ReplyBody};
    let mut world = World::founded(&["a", "b", "c"]).await;
    let leader = world.wait_for_leader().await;
    let others = world.others(&[&leader]);
    world.start("d").await;
    let new = world.seat("d", false);
    let answer = world.insist(&others[0], Command::AddSeat(new.clone())).await;
    assert_eq!(answer, Answer::Done(0));
    world.agree().await;
    world.insist(&leader, Command::DropSeat(new.id)).await;
    let from = world.store("d").core().clone();
    for (name, refused) in [(&leader, true), (&others[0], false), (&others[1], false)] {
        let peer = crate::types::Peer::of(&world.seat(name, true));
        let seat = world.store(name).seat().0;
        let bump = Ask::Put(Command::Bump { number: 0 });
        let told = from.peers.ask(seat, &peer, bump, LEASE).await.unwrap();
        let expected = Answer::Refused(RecordError::UnknownSeat);
        let expected = if refused { ReplyBody::Answer(expected) } else { ReplyBody::NotLeader };
        assert_eq!(told, expected, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_times_of_raft_follow_the_lease_of_the_group() {
    let mut world = World::new(1);
    for name in ["a", "b", "c"] {
        world.start(name).await;
    }
    let seats = ["a", "b", "c"].map(|name| world.seat(name, true)).to_vec();
    world.store("a").found(seats, 2_000, rules(), CLUSTER).await.unwrap();
    let heartbeats = |world: &World, millis: u64| {
        let engines = ["a", "b", "c"].map(|name| world.store(name).core().engine());
        engines.iter().all(|engine| engine.raft.config().heartbeat_interval == millis)
    };
    world.settle(LEASE, |world| heartbeats(world, 50)).await;
    let leader = world.wait_for_leader().await;
    let seat = world.seat("a", true).id;
    assert_eq!(world.insist("a", join(seat, 1)).await, Answer::Joined(MemberId(1)));
    world.insist(&leader, Command::Lease(20_000)).await;
    world.settle(LEASE, |world| heartbeats(world, 500)).await;
    assert_eq!(world.insist("b", join(seat, 2)).await, Answer::Joined(MemberId(2)));
    world.agree().await;
}

/// As many holds as a group may have, with the longest names, reach a member in a snapshot.
#[tokio::test(start_paused = true)]
async fn holds_are_kept_and_fit_into_a_snapshot() {
    let mut world = World::founded(&["a", "b", "c"]).await;
    let seat = world.seat("a", true).id;
    let Answer::Joined(member) = world.insist("a", join(seat, 1)).await else { panic!() };
    let enter = Command::Enter { id: member, number: 0, replaces: Vec::new(), inherits: true };
    assert_eq!(world.insist("a", enter).await, Answer::Done(1));
    world.kill("c").await;
    let name = |number: usize| {
        Name::new(&format!("{number:0>width$}", width = Name::MAX)).expect("a long name")
    };
    for number in 0..HOLDS_LIMIT {
        let fence = Fence::new(Fence::VIEW_LIMIT - 1, Fence::CLOCK_LIMIT);
        let id = HoldId { name: name(number), fence, member };
        let answer = world.insist("a", Command::Hold { id, length_ms: Some(u64::MAX) }).await;
        assert!(matches!(answer, Answer::Done(_)), "{answer:?}");
    }
    world.start("c").await;
    world.agree().await;
    let kept = |world: &World, name: &str| {
        let holds = world.store(name).holds().borrow().clone();
        (holds.added(), holds.iter().count())
    };
    for name in ["a", "b", "c"] {
        assert_eq!(kept(&world, name), (HOLDS_LIMIT as u64, HOLDS_LIMIT), "{name}");
    }
    world.kill("b").await;
    world.start("b").await;
    world.agree().await;
    assert_eq!(kept(&world, "b"), (HOLDS_LIMIT as u64, HOLDS_LIMIT), "after a restart");
}

/// A client of a removed machine may still release a lock that the group keeps for it. The machine
/// may drop the holds of its own processes, and nothing else.
#[tokio::test(start_paused = true)]
async fn a_removed_machine_drops_its_own_holds_and_no_others() {
    // The machine follows or leads when it is removed, or is cut off and does not hear of it.
    for (leads, cut) in [(false, false), (true, false), (false, true)] {
        let world = World::founded(&["a", "b", "c"]).await;
        let leader = world.wait_for_leader().await;
        let stays = world.others(&[&leader])[0].clone();
        let removed = if leads { leader } else { world.others(&[&leader, &stays])[0].clone() };
        let mut members = Vec::new();
        for (number, name) in [&removed, &stays].into_iter().enumerate() {
            let answer = world.insist(name, join(world.seat(name, true).id, 1)).await;
            let Answer::Joined(id) = answer else { panic!("{answer:?}") };
            let number = number as u64;
            let enter = Command::Enter { id, number, replaces: Vec::new(), inherits: true };
            assert_eq!(world.insist(name, enter).await, Answer::Done(number + 1));
            members.push(id);
        }
        let hold = |name: &str, member| HoldId {
            name: Name::new(name).unwrap(),
            fence: Fence::new(1, 1),
            member,
        };
        let (early, late) = (hold("early", members[0]), hold("late", members[0]));
        let other = hold("other", members[1]);
        for id in [early.clone(), late.clone(), other.clone()] {
            let command = Command::Hold { id, length_ms: None };
            assert_eq!(world.insist(&stays, command).await, Answer::Done(2));
        }
        let seat = world.seat(&removed, true).id;
        let voters = world.others(&[&removed]).iter().map(|it| world.seat(it, true).id).collect();
        if cut {
            world.isolate(&removed);
        }
        world.insist(&stays, Command::Voters(voters)).await;
        world.insist(&stays, Command::DropSeat(seat)).await;
        sleep(LEASE).await;
        world.heal();

        let refused = Answer::Refused(RecordError::UnknownSeat);
        let kept = |world: &World| world.store(&stays).holds().borrow().iter().count();
        assert_eq!(world.insist(&removed, Command::Drop(other.clone())).await, refused);
        assert_eq!(world.insist(&removed, Command::Bump { number: 2 }).await, refused);
        assert_eq!(world.insist(&removed, Command::Drop(early)).await, Answer::Done(2));
        world.settle(LEASE, |world| kept(world) == 2).await;
        // Its membership is over, so its holds are orphans.
        let leave = Command::Leave { id: members[0] };
        assert_eq!(world.insist(&removed, leave).await, Answer::Done(3));
        for _ in 0..2 {
            let dropped = world.insist(&removed, Command::Drop(late.clone())).await;
            assert_eq!(dropped, Answer::Done(3), "also if the first answer was lost");
        }
        assert_eq!(world.insist(&removed, Command::Drop(other)).await, refused);
        world.settle(LEASE, |world| kept(world) == 1).await;
    }
}
