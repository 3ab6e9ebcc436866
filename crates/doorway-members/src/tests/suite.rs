//! openraft's own test suite for stores.

use openraft::storage::RaftLogStorage as _;
use openraft::testing::{StoreBuilder, Suite};

use crate::disk::Disk;
use crate::ending::Ending;
use crate::log::Log;
use crate::machine::Machine;
use crate::types::{StorageError, TypeConfig};
use crate::{DataPlace, MemoryDisk, writer};

struct Build;

impl StoreBuilder<TypeConfig, Log, Machine> for Build {
    async fn build(&self) -> Result<((), Log, Machine), StorageError> {
        let place = DataPlace::Memory(MemoryDisk::default());
        let (disk, mut content) = Disk::open(place, || 1).unwrap();
        let (writer, queue) = writer::queue(Ending::new());
        tokio::spawn(queue.run(disk));
        let machine = Machine::new(&mut content, writer.clone());
        let mut log = Log::new(&mut content, writer);
        assert_eq!(log.read_vote().await?, None);
        Ok(((), log, machine))
    }
}

#[test]
fn the_store_passes_the_suite_of_openraft() {
    Suite::test_all(Build).unwrap();
}
