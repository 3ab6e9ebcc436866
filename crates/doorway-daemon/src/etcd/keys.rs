//! Which lock a key means.
//!
//! Clients of etcd make locks of keys in two ways. In a *queue*, every client puts a key of its
//! own, `NAME/LEASE`, and the lock is called `NAME`. A *bare* key is the lock itself: the client
//! that creates it has the lock.

use doorway_protocol::{Fence, Name};

use super::ids;
use super::status::Status;

/// What the last part of a key begins with that a waiting client is shown as its predecessor.
const WAITS: &str = "waits-";

/// What the last part of a key begins with that stands for a holder without a key. A fence follows.
const HELD: &str = "doorway-";

/// Fences are higher than this. So a lock may be called `hosts/doorway-1`.
const LOWEST_FENCE: i64 = 1 << 40;

/// A key, and the lock that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// The key of a lease in the queue of a lock.
    Queued(Name, i64),
    /// The key that the request with this revision is shown as its predecessor.
    Predecessor(Name, i64),
    /// The key that stands for the holder with this fence, whose client has no key.
    Holder(Name, i64),
    /// A key that is a lock itself.
    Bare(Name),
}

impl Key {
    pub(super) fn read(key: &[u8]) -> Result<Self, Status> {
        let text = text(key)?;
        if let Some((lock, last)) = text.rsplit_once('/') {
            if let Some(lease) = lease(last) {
                return Ok(Self::Queued(name(lock)?, lease));
            }
            let hex = last.strip_prefix(WAITS).and_then(|hex| i64::from_str_radix(hex, 16).ok());
            if let Some(revision) = hex.filter(|revision| ids::parts(*revision).is_some()) {
                return Ok(Self::Predecessor(name(lock)?, revision));
            }
            let fence = last.strip_prefix(HELD).and_then(|fence| fence.parse().ok());
            if let Some(fence) = fence.filter(|fence| *fence >= LOWEST_FENCE) {
                return Ok(Self::Holder(name(lock)?, fence));
            }
        }
        Ok(Self::Bare(name(text)?))
    }

    pub(super) fn lock(&self) -> &Name {
        let (Self::Queued(lock, _)
        | Self::Predecessor(lock, _)
        | Self::Holder(lock, _)
        | Self::Bare(lock)) = self;
        lock
    }
}

/// The lease that the last part of a key names: in hexadecimal, or in decimal, as some clients do.
fn lease(last: &str) -> Option<i64> {
    let digits = last.bytes().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase());
    let lease = match last.len() {
        16 if digits => i64::from_str_radix(last, 16).ok(),
        19 if digits => last.parse().ok(),
        _ => None,
    };
    lease.filter(|lease| ids::parts(*lease).is_some())
}

/// The key of a lease in the queue of a lock.
pub(super) fn queued(lock: &Name, lease: i64) -> Vec<u8> {
    format!("{lock}/{lease:x}").into_bytes()
}

/// The key that a waiting request is shown as its predecessor.
pub(super) fn predecessor(lock: &Name, revision: i64) -> Vec<u8> {
    format!("{lock}/{WAITS}{revision:x}").into_bytes()
}

/// The key that stands for the holder of a lock with this fence, if its client has no key.
pub(super) fn holder(lock: &Name, fence: Fence) -> Vec<u8> {
    format!("{lock}/{HELD}{fence}").into_bytes()
}

/// The keys that a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    One(Vec<u8>),
    /// All keys in the queue of a lock.
    Queue(Name),
    /// All keys that begin with this text, which is not the queue of a lock.
    Prefix(String),
}

impl Keys {
    pub(super) fn read(key: &[u8], range_end: &[u8]) -> Result<Self, Status> {
        if range_end.is_empty() {
            return Ok(Self::One(key.to_vec()));
        }
        if matches!(key, [] | [0]) && range_end == [0] {
            return Ok(Self::Prefix(String::new()));
        }
        // Some clients begin after the prefix itself.
        let prefix = key.strip_suffix(&[0]).unwrap_or(key);
        if range_end != end_of(prefix) {
            let text = "the range of keys is not a prefix: Doorway serves single keys, and the \
                        keys that begin with NAME/";
            return Err(Status::invalid(text));
        }
        let text = text(prefix)?;
        match text.strip_suffix('/').map(name) {
            Some(lock) => lock.map(Self::Queue),
            None => Ok(Self::Prefix(text.to_owned())),
        }
    }
}

/// The first key after all those that begin with a prefix.
fn end_of(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    vec![0]
}

fn text(key: &[u8]) -> Result<&str, Status> {
    let wrong = |_| Status::invalid("a key is not UTF-8, and cannot be the name of a lock");
    std::str::from_utf8(key).map_err(wrong)
}

fn name(text: &str) -> Result<Name, Status> {
    Name::new(text).map_err(|why| Status::invalid(format!("the key {text:?} is not a lock: {why}")))
}

/// The lock with this name, as the lock and election services of etcd are given it.
pub(super) fn lock(bytes: &[u8]) -> Result<Name, Status> {
    name(text(bytes)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::etcd::ids::Home;

    fn lock(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    #[test]
    fn a_key_is_read_as_it_was_made() {
        let (name, id) = (lock("/a/b"), Home::of("n1").id(77));
        let read = |key: &[u8]| Key::read(key).unwrap();
        assert_eq!(read(&queued(&name, id)), Key::Queued(name.clone(), id));
        assert_eq!(read(format!("/a/b/{id}").as_bytes()), Key::Queued(name.clone(), id));
        assert_eq!(read(&predecessor(&name, id)), Key::Predecessor(name.clone(), id));
        let fence = Fence::new(1, 1);
        let holder = Key::Holder(name.clone(), fence.get().cast_signed());
        assert_eq!(read(&super::holder(&name, fence)), holder);
        assert_eq!(read(b"/a/b"), Key::Bare(name));
        // No node makes such leases.
        for other in
            ["a/694d7a1b2c3d4e5f0", "a/0094d7a1b2c3d4e5", "a/7", "a/waits-7", "a/doorway-7"]
        {
            assert_eq!(read(other.as_bytes()), Key::Bare(lock(other)));
        }
        for wrong in [&b""[..], b"\xff", b"a\nb", format!("/{id:x}").as_bytes()] {
            assert!(Key::read(wrong).is_err());
        }
    }

    #[test]
    fn a_range_is_one_key_or_a_prefix() {
        let read = |key: &[u8], end: &[u8]| Keys::read(key, end).unwrap();
        assert_eq!(read(b"a/", b"a0"), Keys::Queue(lock("a")));
        assert_eq!(read(b"a/\0", b"a0"), Keys::Queue(lock("a")));
        assert_eq!(read(b"a/", b""), Keys::One(b"a/".to_vec()));
        assert_eq!(read(b"a", b"b"), Keys::Prefix("a".to_owned()));
        assert_eq!(read(b"\0", b"\0"), Keys::Prefix(String::new()));
        assert!(Keys::read(b"a", b"z").is_err());
        assert_eq!(end_of(b"a\xff\xff"), b"b");
        assert_eq!(end_of(b"\xff"), b"\0");
    }

    proptest! {
        #[test]
        fn random_keys_are_no_trouble(
            key in prop::collection::vec(any::<u8>(), 0..40),
            end in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let _ = (Key::read(&key), Keys::read(&key, &end), Keys::read(&key, &end_of(&key)));
        }
    }
}
