//! The file of a store, `members.redb`.
//!
//! It has three tables: `meta` (the seat, the group, the vote, how much of the log was purged and
//! committed), `log` (one row for each entry) and `snapshot` (one row). Each value has a checksum:
//! a vote or an entry that was changed by a failing disk must not be believed.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use redb::{
    Database, Durability, ReadableDatabase as _, ReadableTable as _, Table, TableDefinition,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::encoding::{Ballot, Line, Picture, Place};
use crate::error::OpenError;
use crate::memory::MemoryDisk;

const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");
const SNAPSHOT: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("snapshot");

/// The format of the file.
const FORMAT: u32 = 2;
/// How much of the file is kept in memory, in bytes. The store reads it only when it starts.
const CACHE: usize = 4 << 20;
const FILE: &str = "members.redb";
/// A file that is deleted when the disk is full, so that the store can go on for a while.
const RESERVE: &str = "members.reserve";
const RESERVE_BYTES: usize = 4 << 20;
/// How long after a reserve was made, given up or refused there is another look whether it is
/// there.
const RESERVE_PAUSE: Duration = Duration::from_secs(10);

/// Where a store keeps its data.
#[derive(Clone, Debug)]
pub enum DataPlace {
    /// In the file `members.redb` of this directory.
    Directory(PathBuf),
    /// In memory, for simulations.
    Memory(MemoryDisk),
}

impl DataPlace {
    fn path(&self) -> PathBuf {
        match self {
            Self::Directory(directory) => directory.join(FILE),
            Self::Memory(_) => "memory".into(),
        }
    }

    fn identity(&self) -> FileIdentity {
        let Self::Directory(_) = self else { return FileIdentity::default() };
        let Ok(file) = fs::metadata(self.path()) else { return FileIdentity::default() };
        let made = file.created().ok();
        let born = made.and_then(|made| made.duration_since(UNIX_EPOCH).ok());
        FileIdentity { born, inode: Some(file.ino()) }
    }
}

/// What tells a file from a copy of it. A file that is moved within its file system keeps both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    /// When the file was made, as the time since 1970. Not every file system tells.
    born: Option<Duration>,
    /// The number of the file in its file system. It counts only where `born` is not known: a file
    /// may get the number of one that was deleted, and some network file systems change numbers.
    inode: Option<u64>,
}

impl FileIdentity {
    fn is_copy_of(self, other: Self) -> bool {
        match (self.born.zip(other.born), self.inode.zip(other.inode)) {
            (Some((now, then)), _) => now != then,
            (None, Some((now, then))) => now != then,
            (None, None) => false,
        }
    }
}

/// A change of the file.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Vote(Ballot),
    Append(Vec<Line>),
    /// Delete the entries from this index on.
    Truncate(u64),
    /// Delete the entries up to this one.
    Purge(Place),
    Snapshot(Box<Picture>),
    Committed(Place),
    Cluster(u128),
    /// This node belongs to a group that agrees by etcd.
    EtcdCluster(u128),
    /// The newest view that this node has seen in etcd.
    EtcdView(u64),
    /// Forget everything but the seat, and begin a log with this entry, in this group. From now on
    /// the file is not a copy.
    Restart {
        cluster: u128,
        line: Box<Line>,
        file: FileIdentity,
    },
    /// The file is this one.
    File(FileIdentity),
}

/// What a file contains.
#[derive(Debug, Default)]
pub(crate) struct Content {
    pub(crate) seat: u64,
    pub(crate) cluster: Option<u128>,
    /// The group agrees by etcd, and not by the log of this file.
    pub(crate) by_etcd: bool,
    /// The newest view that this node has seen in etcd.
    pub(crate) etcd_view: u64,
    pub(crate) vote: Option<Ballot>,
    pub(crate) purged: Option<Place>,
    pub(crate) committed: Option<Place>,
    pub(crate) log: BTreeMap<u64, Line>,
    pub(crate) snapshot: Option<Picture>,
    /// Which file this was when it was made.
    pub(crate) file: FileIdentity,
}

/// An open file.
pub(crate) struct Disk {
    place: DataPlace,
    /// None after an error: redb has to open the file again then.
    database: Option<Database>,
    /// When there was a look at the reserve last.
    looked: Instant,
}

impl Disk {
    /// Open the file, or make one for a new seat with this number.
    pub(crate) fn open(
        place: DataPlace,
        new_seat: impl FnOnce() -> u64,
    ) -> Result<(Self, Content), OpenError> {
        let path = place.path();
        let (mut disk, content) = Self::open_any(place, new_seat)?;
        let file = disk.identity();
        if file.is_copy_of(content.file) {
            return Err(OpenError::Copy(path));
        }
        // An earlier version did not write the number of the file.
        if file.inode.is_some()
            && content.file.inode != file.inode
            && let Err(error) = disk.write(&[Change::File(file)])
        {
            tracing::warn!("{}: a copy of it may not be recognised: {error}", path.display());
        }
        Ok((disk, content))
    }

    /// Open the file even if it is a copy.
    fn open_any(
        place: DataPlace,
        new_seat: impl FnOnce() -> u64,
    ) -> Result<(Self, Content), OpenError> {
        let path = place.path();
        // redb trusts its own pages, and panics if a failing disk has changed them.
        let opened = catch_unwind(AssertUnwindSafe(|| Self::try_open(place, new_seat)));
        opened.unwrap_or_else(|_| {
            let why = "a page of the database makes no sense".to_owned();
            Err(OpenError::Damaged { path, why })
        })
    }

    fn try_open(
        place: DataPlace,
        new_seat: impl FnOnce() -> u64,
    ) -> Result<(Self, Content), OpenError> {
        let path = place.path();
        let failed = |error: redb::Error| open_error(&path, error);
        let created = match &place {
            DataPlace::Directory(directory) => {
                let io = |error| OpenError::Io { path: directory.clone(), error };
                fs::create_dir_all(directory).map_err(io)?;
                !path.exists()
            }
            DataPlace::Memory(_) => false,
        };
        let database = database(&place).map_err(failed)?;
        if created && let DataPlace::Directory(directory) = &place {
            // Otherwise a power failure could take the file, and with it the seat.
            let synced = fs::File::open(directory).and_then(|directory| directory.sync_all());
            synced.map_err(|error| OpenError::Io { path: directory.clone(), error })?;
        }
        let mut disk = Self { place, database: Some(database), looked: Instant::now() };
        if !disk.has_seat().map_err(failed)? {
            disk.begin(new_seat()).map_err(failed)?;
        }
        let content = disk.content(&path)?;
        if let Err(error) = disk.reserve() {
            tracing::warn!("{}: {error}; the disk is nearly full", path.display());
        }
        Ok((disk, content))
    }

    /// Open the file of a directory that has one, even if it is a copy.
    pub(crate) fn open_existing(directory: &Path) -> Result<Option<(Self, Content)>, OpenError> {
        let place = DataPlace::Directory(directory.to_owned());
        if !place.path().exists() {
            return Ok(None);
        }
        Self::open_any(place, || fastrand::u64(1..)).map(Some)
    }

    /// Write all changes in one transaction. They are on disk when this returns.
    pub(crate) fn write(&mut self, changes: &[Change]) -> Result<(), redb::Error> {
        let database = match self.database.take() {
            Some(database) => database,
            None => database(&self.place)?,
        };
        write(&database, changes)?;
        self.database = Some(database);
        Ok(())
    }

    /// How long a write takes in a simulation.
    pub(crate) fn delay(&self) -> Option<Duration> {
        match &self.place {
            DataPlace::Directory(_) => None,
            DataPlace::Memory(memory) => memory.delay(),
        }
    }

    /// Delete the reserve. False if there was none.
    pub(crate) fn give_up_reserve(&mut self) -> bool {
        self.looked = Instant::now();
        let DataPlace::Directory(directory) = &self.place else { return false };
        fs::remove_file(directory.join(RESERVE)).is_ok()
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.place.path()
    }

    pub(crate) fn identity(&self) -> FileIdentity {
        self.place.identity()
    }

    /// Make the reserve again if it was given up, as soon as there is room for it. This does
    /// nothing most of the time, so it can be called after every write.
    pub(crate) fn keep_reserve(&mut self) {
        if self.looked.elapsed() >= RESERVE_PAUSE {
            self.looked = Instant::now();
            // If there is no room yet, the next look may find some.
            let _ = self.reserve();
        }
    }

    /// Make the reserve if there is none, and if there is room for twice as much.
    fn reserve(&self) -> io::Result<()> {
        let DataPlace::Directory(directory) = &self.place else { return Ok(()) };
        let path = directory.join(RESERVE);
        if path.exists() {
            return Ok(());
        }
        let make = || {
            let mut file = fs::File::create(&path)?;
            file.write_all(&vec![0; 2 * RESERVE_BYTES])?;
            file.set_len(RESERVE_BYTES as u64)
        };
        make().inspect_err(|_| {
            let _ = fs::remove_file(&path);
        })
    }

    fn has_seat(&self) -> Result<bool, redb::Error> {
        let Some(database) = &self.database else { return Ok(false) };
        match database.begin_read()?.open_table(META) {
            Ok(meta) => Ok(meta.get("seat")?.is_some()),
            Err(redb::TableError::TableDoesNotExist(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn begin(&mut self, seat: u64) -> Result<(), redb::Error> {
        let Some(database) = &self.database else { return Ok(()) };
        let transaction = database.begin_write()?;
        {
            let mut meta = transaction.open_table(META)?;
            meta.insert("format", seal(&FORMAT).as_slice())?;
            meta.insert("seat", seal(&seat).as_slice())?;
            note_identity(&mut meta, self.place.identity())?;
            transaction.open_table(LOG)?;
            transaction.open_table(SNAPSHOT)?;
        }
        transaction.commit()?;
        Ok(())
    }

    fn content(&self, path: &Path) -> Result<Content, OpenError> {
        let failed = |error: redb::Error| open_error(path, error);
        let Some(database) = &self.database else { return Ok(Content::default()) };
        let mut rows = Rows { path, meta: BTreeMap::new(), log: Vec::new(), snapshot: None };
        rows.read(database).map_err(failed)?;
        let format: u32 = rows.meta("format")?.unwrap_or_default();
        if format != FORMAT {
            let path = path.to_owned();
            return Err(OpenError::Format { path, found: format, known: FORMAT });
        }
        let mut content = Content {
            seat: rows.meta("seat")?.ok_or_else(|| rows.damaged("the number of the seat"))?,
            cluster: rows.meta("cluster")?,
            by_etcd: rows.meta("etcd")?.unwrap_or_default(),
            etcd_view: rows.meta("etcd view")?.unwrap_or_default(),
            vote: rows.meta("vote")?,
            purged: rows.meta("purged")?,
            committed: rows.meta("committed")?,
            file: FileIdentity {
                born: rows.meta("born")?.flatten(),
                inode: rows.meta("inode")?.flatten(),
            },
            ..Content::default()
        };
        content.snapshot = match &rows.snapshot {
            Some(bytes) => Some(open(bytes).ok_or_else(|| rows.damaged("the snapshot"))?),
            None => None,
        };
        for (index, bytes) in &rows.log {
            let line: Option<Line> = open(bytes);
            let line = line.filter(|line| line.place.index == *index);
            let expected = content.log.last_key_value().map_or(*index, |(last, _)| last + 1);
            let line = line.filter(|_| *index == expected);
            let line = line.ok_or_else(|| rows.damaged(&format!("entry {index} of the log")))?;
            content.log.insert(*index, line);
        }
        Ok(content)
    }
}

/// The rows of a file.
struct Rows<'a> {
    path: &'a Path,
    meta: BTreeMap<String, Vec<u8>>,
    log: Vec<(u64, Vec<u8>)>,
    snapshot: Option<Vec<u8>>,
}

impl Rows<'_> {
    fn read(&mut self, database: &Database) -> Result<(), redb::Error> {
        let transaction = database.begin_read()?;
        for row in transaction.open_table(META)?.iter()? {
            let (key, value) = row?;
            self.meta.insert(key.value().to_owned(), value.value().to_vec());
        }
        for row in transaction.open_table(LOG)?.iter()? {
            let (index, value) = row?;
            self.log.push((index.value(), value.value().to_vec()));
        }
        let snapshot = transaction.open_table(SNAPSHOT)?.get(0)?;
        self.snapshot = snapshot.map(|value| value.value().to_vec());
        Ok(())
    }

    fn meta<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, OpenError> {
        let Some(bytes) = self.meta.get(key) else { return Ok(None) };
        open(bytes).map(Some).ok_or_else(|| self.damaged(&format!("the value of `{key}`")))
    }

    fn damaged(&self, what: &str) -> OpenError {
        let why = format!("{what} is missing or has a wrong checksum");
        OpenError::Damaged { path: self.path.to_owned(), why }
    }
}

fn database(place: &DataPlace) -> Result<Database, redb::Error> {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE);
    let database = match place {
        DataPlace::Directory(_) => builder.create(place.path())?,
        DataPlace::Memory(memory) => builder.create_with_backend(memory.backend())?,
    };
    Ok(database)
}

fn write(database: &Database, changes: &[Change]) -> Result<(), redb::Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::Immediate)?;
    {
        let mut meta = transaction.open_table(META)?;
        let mut log = transaction.open_table(LOG)?;
        let mut snapshot = transaction.open_table(SNAPSHOT)?;
        for change in changes {
            match change {
                Change::Vote(vote) => {
                    meta.insert("vote", seal(vote).as_slice())?;
                }
                Change::Append(lines) => {
                    for line in lines {
                        log.insert(line.place.index, seal(line).as_slice())?;
                    }
                }
                Change::Truncate(from) => log.retain_in(*from.., |_, _| false)?,
                Change::Purge(upto) => {
                    log.retain_in(..=upto.index, |_, _| false)?;
                    meta.insert("purged", seal(upto).as_slice())?;
                }
                Change::Snapshot(picture) => {
                    snapshot.insert(0, seal(picture).as_slice())?;
                }
                Change::Committed(place) => {
                    meta.insert("committed", seal(place).as_slice())?;
                }
                Change::Cluster(cluster) => {
                    meta.insert("cluster", seal(cluster).as_slice())?;
                }
                Change::EtcdCluster(cluster) => {
                    meta.insert("cluster", seal(cluster).as_slice())?;
                    meta.insert("etcd", seal(&true).as_slice())?;
                }
                Change::EtcdView(view) => {
                    meta.insert("etcd view", seal(view).as_slice())?;
                }
                Change::Restart { cluster, line, file } => {
                    for key in ["vote", "purged", "committed"] {
                        meta.remove(key)?;
                    }
                    log.retain(|_, _| false)?;
                    snapshot.remove(0)?;
                    note_identity(&mut meta, *file)?;
                    meta.insert("cluster", seal(cluster).as_slice())?;
                    log.insert(line.place.index, seal(&**line).as_slice())?;
                }
                Change::File(file) => note_identity(&mut meta, *file)?,
            }
        }
    }
    transaction.commit()?;
    Ok(())
}

fn note_identity(
    meta: &mut Table<'_, &str, &[u8]>,
    FileIdentity { born, inode }: FileIdentity,
) -> Result<(), redb::Error> {
    meta.insert("born", seal(&born).as_slice())?;
    meta.insert("inode", seal(&inode).as_slice())?;
    Ok(())
}

/// Whether an error means that the disk is full. That may pass.
pub(crate) fn is_full(error: &redb::Error) -> bool {
    let redb::Error::Io(error) = error else { return false };
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn open_error(path: &Path, error: redb::Error) -> OpenError {
    let path = path.to_owned();
    match error {
        redb::Error::DatabaseAlreadyOpen => OpenError::InUse(path),
        // redb reports a file that is not its own like this.
        redb::Error::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
            OpenError::Damaged { path, why: error.to_string() }
        }
        redb::Error::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            OpenError::Damaged { path, why: "it is too short".to_owned() }
        }
        redb::Error::Io(error) => OpenError::Io { path, error },
        error => OpenError::Damaged { path, why: error.to_string() },
    }
}

/// A value with its checksum.
fn seal(value: &impl Serialize) -> Vec<u8> {
    // These types have no map with an unknown length and no custom code: they can always be
    // written.
    let bytes = postcard::to_stdvec(value).unwrap_or_default();
    let mut sealed = crc32fast::hash(&bytes).to_le_bytes().to_vec();
    sealed.extend(bytes);
    sealed
}

/// The value of a row, if its checksum is right.
fn open<T: DeserializeOwned>(sealed: &[u8]) -> Option<T> {
    let (checksum, bytes) = sealed.split_first_chunk::<4>()?;
    if crc32fast::hash(bytes).to_le_bytes() != *checksum {
        return None;
    }
    postcard::from_bytes(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::disks::Directory;

    fn reopen(directory: &Directory) -> Result<(Disk, Content), OpenError> {
        Disk::open(DataPlace::Directory(directory.0.clone()), || 7)
    }

    /// Make the file one of a file system that does not tell when it was made.
    fn forget_birth(directory: &Directory, inode: Option<u64>) {
        let (mut disk, _) = reopen(directory).unwrap();
        disk.write(&[Change::File(FileIdentity { born: None, inode })]).unwrap();
    }

    /// Put a copy in the place of the file, as when a backup is copied back.
    fn copy_back(directory: &Directory) {
        let [file, copy] = [FILE, "copy"].map(|name| directory.0.join(name));
        fs::copy(&file, &copy).unwrap();
        fs::rename(&copy, &file).unwrap();
    }

    #[test]
    fn a_copy_is_recognised_also_where_no_time_of_birth_is_known() {
        let directory = Directory::new("copy-inode");
        reopen(&directory).unwrap();
        let inode = reopen(&directory).unwrap().1.file.inode;
        forget_birth(&directory, inode);
        let (_, content) = reopen(&directory).unwrap();
        assert_eq!((content.seat, content.file.born), (7, None), "the file itself is accepted");
        copy_back(&directory);
        let error = reopen(&directory).err().unwrap();
        assert!(matches!(error, OpenError::Copy(_)), "{error}");
    }

    #[test]
    fn a_file_without_its_number_is_read_and_gets_it() {
        let directory = Directory::new("copy-old");
        reopen(&directory).unwrap();
        forget_birth(&directory, None);
        // Nothing tells this copy from the file.
        copy_back(&directory);
        let (disk, content) = reopen(&directory).unwrap();
        assert_eq!((content.seat, content.file), (7, FileIdentity::default()));
        drop(disk);
        copy_back(&directory);
        assert!(matches!(reopen(&directory), Err(OpenError::Copy(_))));
    }

    #[test]
    fn the_number_counts_only_if_no_time_of_birth_is_known() {
        let file =
            |born: Option<u64>, inode| FileIdentity { born: born.map(Duration::from_secs), inode };
        for (now, then, copy) in [
            (file(Some(1), Some(1)), file(Some(1), Some(2)), false),
            (file(Some(1), Some(1)), file(Some(2), Some(1)), true),
            (file(None, Some(1)), file(Some(1), Some(2)), true),
            (file(Some(1), Some(1)), file(None, Some(1)), false),
            (file(Some(1), None), file(None, Some(1)), false),
        ] {
            assert_eq!(now.is_copy_of(then), copy, "{now:?} and {then:?}");
        }
    }
}
