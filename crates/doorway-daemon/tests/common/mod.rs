//! Support for tests with real clients: services in processes of their own, certificates, and
//! networks that can be cut.

#![allow(dead_code, reason = "each test uses some of it")]
#![expect(clippy::unwrap_used, reason = "where nothing can be prepared, nothing can be tested")]

pub(crate) mod daemon;
pub(crate) mod group;
pub(crate) mod network;
pub(crate) mod settings;
pub(crate) mod skip;
#[path = "../../../doorway-sessions/tests/common/wait.rs"]
pub(crate) mod wait;

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use doorway_client::{Code, Error};

pub(crate) use skip::skip;
pub(crate) use wait::{PATIENCE, until, until_async};

/// A name that no other test uses.
pub(crate) fn fresh() -> String {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    format!("doorway-real-{}-{number}", std::process::id())
}

/// A directory that is removed with this value.
#[derive(Debug)]
pub(crate) struct Place(PathBuf);

impl Place {
    pub(crate) fn new() -> Self {
        let path = std::env::temp_dir().join(fresh());
        let _ = fs::remove_dir_all(&path); // Of an earlier process with the same number.
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Free addresses. Each process uses its own part of the loopback network, and no address twice.
pub(crate) fn addresses(count: usize) -> Vec<String> {
    static GIVEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let [.., high, middle, low] = std::process::id().to_be_bytes();
    let host = format!("127.{}.{middle}.{low}", 1 + high % 250);
    let mut given = GIVEN.lock().unwrap();
    // All are kept until there are enough, so that they differ.
    let (mut listeners, mut addresses) = (Vec::new(), Vec::new());
    while addresses.len() < count {
        let listener = TcpListener::bind(format!("{host}:0")).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        listeners.push(listener);
        if given.insert(address.clone()) {
            addresses.push(address);
        }
    }
    addresses
}

/// The code of a refusal.
pub(crate) fn code(error: &Error) -> Code {
    match error {
        Error::NotFree(refusal) | Error::Refused(refusal) => refusal.code,
        other => panic!("no refusal: {other}"),
    }
}
