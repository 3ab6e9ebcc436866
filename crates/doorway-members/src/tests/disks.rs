//! Files: damaged ones, full disks, failing disks, and two processes with one file.

use std::time::Duration;

use doorway_node::members::{Answer, MemberId, ViewStore as _};
use tokio::time::{sleep, timeout};

use super::world::{LEASE, LEASE_MS, World, join, rules};
use crate::disk::{Change, Disk};
use crate::ending::Ending;
use crate::{DataPlace, MemoryDisk, OpenError, Options, RaftStore, Threads, writer};

/// A directory that is deleted in the end.
pub(crate) struct Directory(pub(crate) std::path::PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("doorway-members-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn options(directory: &Directory) -> Options {
    let mut world = World::new(1);
    let data = DataPlace::Directory(directory.0.clone());
    Options { data, threads: Threads::Own, lease_ms: 2_000, seed: None, ..world.options("a") }
}

// This test and the next run in real time, because they have threads of their own.
#[tokio::test]
async fn a_store_with_a_file_and_threads_survives_a_restart() {
    let directory = Directory::new("restart");
    let store = RaftStore::open(options(&directory)).await.unwrap();
    let seat = store.seat();
    let seats = vec![doorway_node::members::Seat {
        id: seat,
        name: "a".to_owned(),
        address: "at-a".to_owned(),
        voter: true,
    }];
    store.found(seats, LEASE_MS, rules(), 3).await.unwrap();
    // Raft is started again with the lease of the group, so the first answers may be unsure.
    let joined = async {
        loop {
            if let Ok(answer) = store.put(join(seat, 1)).await {
                return answer;
            }
        }
    };
    let joined = timeout(Duration::from_mins(1), joined).await.unwrap();
    assert_eq!(joined, Answer::Joined(MemberId(1)));

    let second = RaftStore::open(options(&directory)).await.err().unwrap();
    assert!(matches!(second, OpenError::InUse(_)), "{second}");
    assert!(second.to_string().contains("members.redb is in use by another process"), "{second}");

    store.close().await;
    let store = RaftStore::open(options(&directory)).await.unwrap();
    assert_eq!((store.seat(), store.cluster()), (seat, Some(3)));
    let mut records = store.watch();
    let waited =
        records.wait_for(|record| record.as_ref().is_some_and(|record| record.members.len() == 1));
    timeout(Duration::from_mins(1), waited).await.unwrap().unwrap();
    drop(store);
}

#[tokio::test]
async fn a_damaged_file_is_not_believed() {
    let directory = Directory::new("damaged");
    std::fs::create_dir_all(&directory.0).unwrap();
    std::fs::write(directory.0.join("members.redb"), b"this is not a database").unwrap();
    let error = RaftStore::open(options(&directory)).await.err().unwrap();
    assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
    assert!(error.to_string().contains("Move the data directory away"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_changed_byte_is_noticed_or_does_not_matter() {
    let mut world = World::founded(&["a"]).await;
    let seat = world.seat("a", true).id;
    for nonce in 1..4 {
        world.insist("a", join(seat, nonce)).await;
    }
    world.store("a").close().await;
    world.kill("a").await;
    let disk = world.disks["a"].clone();
    let (mut noticed, mut harmless) = (0, 0);
    let size = disk.size();
    for at in (0..size).step_by(size / 300) {
        disk.damage(at);
        let mut options = world.options("a");
        options.data = DataPlace::Memory(disk.copy());
        match RaftStore::open(options).await {
            Ok(store) => {
                // Whatever is read is right.
                assert_eq!(store.seat(), seat);
                store.close().await;
                harmless += 1;
            }
            Err(OpenError::Damaged { .. }) => noticed += 1,
            Err(error) => panic!("{error:?}"),
        }
        disk.damage(at);
    }
    assert!(noticed > 0 && harmless > 0, "{noticed} noticed, {harmless} harmless");
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_is_a_slow_disk() {
    let world = World::founded(&["a"]).await;
    let seat = world.seat("a", true).id;
    world.disks["a"].set_full(true);
    assert!(world.put("a", join(seat, 1)).await.is_err());
    sleep(LEASE).await;
    assert!(world.put("a", join(seat, 2)).await.is_err());
    world.disks["a"].set_full(false);
    // Both commands have waited, and are applied now.
    world.settle(LEASE, |world| world.record("a").unwrap().members.len() == 2).await;
    assert_eq!(world.insist("a", join(seat, 3)).await, Answer::Joined(MemberId(3)));
}

#[tokio::test(start_paused = true)]
async fn a_failing_disk_ends_the_store() {
    let world = World::founded(&["a", "b", "c"]).await;
    let leader = world.wait_for_leader().await;
    let seat = world.seat("a", true).id;
    let other = world.others(&[&leader])[0].clone();
    world.disks[&leader].set_broken(true);
    let store = world.store(&leader);
    assert!(store.put(join(seat, 1)).await.is_err());
    let why = timeout(LEASE, store.ended()).await.unwrap();
    assert!(why.contains("memory: I/O error"), "{why}");
    let error = store.put(join(seat, 2)).await.unwrap_err();
    assert!(error.0.contains("the store has ended"), "{error}");
    // The others go on.
    world.insist(&other, join(seat, 3)).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_not_synced_is_lost() {
    let disk = MemoryDisk::default();
    let mut world = World::new(1);
    world.disks.insert("a".to_owned(), disk.clone());
    world.found(&["a"]).await;
    let seat = world.seat("a", true).id;
    for nonce in 1..=3 {
        world.insist("a", join(seat, nonce)).await;
        world.kill("a").await;
        world.start("a").await;
        world.settle(LEASE, |world| world.store("a").leads()).await;
        assert_eq!(world.record("a").unwrap().members.len(), nonce as usize);
    }
}

/// A reserve that was given up to a full disk is made again as soon as there is room for it.
#[tokio::test(start_paused = true)]
async fn the_reserve_comes_back_when_the_disk_has_room() {
    let directory = Directory::new("reserve");
    let (mut disk, _) = Disk::open(DataPlace::Directory(directory.0.clone()), || 1).unwrap();
    let reserve = directory.0.join("members.reserve");
    let size = || std::fs::metadata(&reserve).ok().map(|file| file.len());
    assert_eq!(size(), Some(4 << 20));
    assert!(disk.give_up_reserve(), "there was one");
    assert!(!disk.give_up_reserve(), "there is none any more");

    let (writer, queue) = writer::queue(Ending::new());
    tokio::spawn(queue.run(disk));
    writer.save(Change::Cluster(1)).await.unwrap();
    assert_eq!(size(), None, "it was given up a moment ago");
    sleep(Duration::from_secs(11)).await;
    // The file cannot be made, as on a disk without room.
    std::os::unix::fs::symlink("/nowhere/reserve", &reserve).unwrap();
    writer.save(Change::Cluster(2)).await.unwrap();
    assert_eq!(size(), None);
    sleep(Duration::from_secs(5)).await;
    writer.save(Change::Cluster(3)).await.unwrap();
    assert_eq!(size(), None, "there is not another look at once");
    sleep(Duration::from_secs(6)).await;
    writer.save(Change::Cluster(4)).await.unwrap();
    assert_eq!(size(), Some(4 << 20));

    // The times of these four writes were counted.
    assert_eq!(writer.syncs().total(), 4);
}
