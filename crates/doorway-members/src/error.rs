//! What can go wrong with a store.

use std::io;
use std::path::PathBuf;

/// A store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the file open.
    #[error(
        "{} is in use by another process; stop it, or choose another data directory",
        .0.display()
    )]
    InUse(PathBuf),
    /// The file cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The file is damaged.
    #[error(
        "{} is damaged: {why}. Move the data directory away and start with an empty one; then \
         replace this machine in the group",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The file is a copy, as of a backup.
    #[error(
        "{} is a copy. What its node has promised to the group since it was made is not in it, so \
         it must not be used. Start the node with an empty data directory, and run `doorway \
         members replace` at another node; if there is no other, `doorway members recover --alone`",
        .0.display()
    )]
    Copy(PathBuf),
    /// A newer release of Doorway has written the file.
    #[error("{} has format {found}, but this program knows only format {known}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format that this program knows.
        known: u32,
    },
    /// The directory belongs to a group that agrees in another way.
    #[error(
        "{} belongs to a group that agrees by {found}, but the settings have `agree = \"{wanted}\"`: \
         restore `agree`, or name an empty directory with `data`",
        path.display()
    )]
    OtherAgreement {
        /// The file.
        path: PathBuf,
        /// How its group agrees.
        found: &'static str,
        /// How the settings say that the group agrees.
        wanted: &'static str,
    },
    /// The certificates for etcd cannot be used.
    #[error("the certificates for etcd: {0}")]
    Certificates(String),
    /// A thread could not be started, or has ended before the store was open.
    #[error("the store of the group's record cannot be started: {0}")]
    Start(String),
}

/// A group cannot be founded.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FoundError {
    /// This node belongs to a group.
    #[error("this node belongs to group {cluster:032x} already; a group is founded only once")]
    Founded {
        /// The number of that group.
        cluster: u128,
    },
    /// The list of seats does not contain this node as a voter.
    #[error("the list of machines does not name this one, `{0}`, as a voter")]
    NotAVoter(String),
    /// The record is not acceptable.
    #[error("the group cannot begin like this: {0}")]
    BadRecord(String),
    /// A machine of the group does not answer, or is another one than expected.
    #[error("{name} at {address}: {why}")]
    Machine {
        /// The name of its node.
        name: String,
        /// Its address.
        address: String,
        /// What is wrong.
        why: String,
    },
    /// The group was founded, but does not work yet.
    #[error(
        "the group was founded, but its machines have not elected a leader within {0} s; it begins \
         to work when a majority of them can reach each other"
    )]
    NoLeader(u64),
    /// Another node has founded the group, and etcd has its record.
    #[error(
        "etcd has the record of this group already (number {cluster:032x}): another node has \
         founded it; a group is founded only once"
    )]
    Overtaken {
        /// The number of that group.
        cluster: u128,
    },
    /// etcd cannot be used.
    #[error("etcd cannot be used: {0}")]
    Etcd(String),
    /// The store has ended.
    #[error("the store has ended: {0}")]
    Ended(String),
}

/// Another store cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// There is no connection, or it was lost before the answer.
    #[error("{0}")]
    Unreachable(String),
    /// There was no answer in time.
    #[error("no answer within {0} ms")]
    Timeout(u128),
    /// The other store refuses to answer.
    #[error("{0}")]
    Refused(String),
    /// The question does not fit into one message.
    #[error("a message of {0} bytes is too long")]
    TooLong(usize),
}
