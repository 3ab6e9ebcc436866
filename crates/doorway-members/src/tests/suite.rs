//! openraft's own test suite for stores, on both places where a store keeps its data.

use std::sync::atomic::{AtomicU64, Ordering};

use openraft::storage::RaftLogStorage as _;
use openraft::testing::{StoreBuilder, Suite};

use super::disks::Directory;
use crate::disk::Disk;
use crate::ending::Ending;
use crate::log::Log;
use crate::state_machine::StateMachine;
use crate::types::{StorageError, TypeConfig};
use crate::{DataPlace, MemoryDisk, writer};

/// A new store in this place.
async fn build(place: DataPlace) -> Result<(Log, StateMachine), StorageError> {
    let (disk, mut content) = Disk::open(place, || 1).unwrap();
    let (writer, queue) = writer::queue(Ending::new());
    tokio::spawn(queue.run(disk));
    let machine = StateMachine::new(&mut content, writer.clone());
    let mut log = Log::new(&mut content, writer);
    assert_eq!(log.read_vote().await?, None);
    Ok((log, machine))
}

struct InMemory;

impl StoreBuilder<TypeConfig, Log, StateMachine> for InMemory {
    async fn build(&self) -> Result<((), Log, StateMachine), StorageError> {
        let (log, machine) = build(DataPlace::Memory(MemoryDisk::default())).await?;
        Ok(((), log, machine))
    }
}

/// Stores in files. Each has a directory of its own, which is deleted after its test.
#[derive(Default)]
struct InFiles {
    built: AtomicU64,
}

impl StoreBuilder<TypeConfig, Log, StateMachine, Directory> for InFiles {
    async fn build(&self) -> Result<(Directory, Log, StateMachine), StorageError> {
        let number = self.built.fetch_add(1, Ordering::Relaxed);
        let directory = Directory::new(&format!("suite-{number}"));
        let (log, machine) = build(DataPlace::Directory(directory.0.clone())).await?;
        assert!(directory.0.join("members.redb").exists());
        Ok((directory, log, machine))
    }
}

#[test]
fn a_store_in_memory_passes_the_suite_of_openraft() {
    Suite::test_all(InMemory).unwrap();
}

#[test]
fn a_store_in_files_passes_the_suite_of_openraft() {
    Suite::test_all(InFiles::default()).unwrap();
}
