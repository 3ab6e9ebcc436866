//! The group to which this node belongs.

use parking_lot::Mutex;

use crate::writer::Writer;

/// The number of the group to which this node belongs, once it does. It is on disk before this node
/// has promised anything to that group.
#[derive(Debug)]
pub(crate) struct Bond {
    cluster: Mutex<Option<u128>>,
    writer: Writer,
}

impl Bond {
    pub(crate) fn new(cluster: Option<u128>, writer: Writer) -> Self {
        Self { cluster: Mutex::new(cluster), writer }
    }

    pub(crate) fn cluster(&self) -> Option<u128> {
        *self.cluster.lock()
    }

    /// Belong to this group. The error is the group to which this node belongs already.
    pub(crate) fn join(&self, cluster: u128) -> Result<(), u128> {
        let mut known = self.cluster.lock();
        match *known {
            Some(known) if known == cluster => Ok(()),
            Some(known) => Err(known),
            None => {
                *known = Some(cluster);
                self.writer.note_cluster(Some(cluster));
                Ok(())
            }
        }
    }

    /// Belong to no group, because it was not founded after all.
    pub(crate) fn dissolve(&self) {
        *self.cluster.lock() = None;
        self.writer.note_cluster(None);
    }
}
