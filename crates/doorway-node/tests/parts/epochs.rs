//! The epoch on disk grows, whatever happens between two starts.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use doorway_node::Fence;
use doorway_node::views::{DirectoryEpochStore, EpochStore, MemoryEpochStore, StoreError};
use proptest::prelude::*;

/// A directory that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("doorway-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).expect("there is room for a directory");
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn open(directory: &Path) -> Result<DirectoryEpochStore, StoreError> {
    DirectoryEpochStore::open(vec!["one".to_owned(), "two".to_owned()], directory)
}

/// Start once, and return the epoch.
fn start(directory: &Path) -> Result<u64, StoreError> {
    open(directory)?.raise(0)
}

#[test]
fn every_start_raises_the_epoch() {
    let scratch = Scratch::new("raises");
    let directory = scratch.0.join("node");
    assert_eq!([(); 3].map(|()| start(&directory).unwrap()), [1, 2, 3]);

    let store = open(&directory).unwrap();
    assert_eq!(store.members(), ["one", "two"]);
    assert_eq!(store.raise(10).unwrap(), 11);
    assert_eq!(store.raise(4).unwrap(), 12);
    assert_eq!(fs::read_to_string(directory.join("epoch")).unwrap(), "epoch 12\n");
}

#[test]
fn killed_between_any_two_steps_it_never_goes_back() {
    // What a kill can leave: the epoch, the file that was to replace it, and the lowest epoch that
    // has not been used yet.
    let left: [(Option<&str>, Option<&str>, u64); 8] = [
        (None, None, 1),
        (None, Some(""), 1),
        (None, Some("epo"), 1),
        (None, Some("epoch 1\n"), 1),
        (Some("epoch 7\n"), None, 8),
        (Some("epoch 7\n"), Some(""), 8),
        (Some("epoch 7\n"), Some("epoch"), 8),
        (Some("epoch 7\n"), Some("epoch 8\n"), 8),
    ];
    for (at, (epoch, new, expected)) in left.into_iter().enumerate() {
        let scratch = Scratch::new(&format!("killed-{at}"));
        for (file, text) in [("epoch", epoch), ("epoch.new", new), ("lock", Some(""))] {
            if let Some(text) = text {
                fs::write(scratch.0.join(file), text).unwrap();
            }
        }
        assert_eq!(start(&scratch.0).unwrap(), expected, "{epoch:?} {new:?}");
        assert!(!scratch.0.join("epoch.new").exists());
    }
}

#[test]
fn a_damaged_file_is_never_taken_for_an_epoch() {
    let scratch = Scratch::new("damaged");
    let full = format!("epoch {}\n", Fence::VIEW_LIMIT);
    for text in [
        "",
        "epoch 7",
        "epoch 7\n\n",
        "epoch 07\n",
        "epoch +7\n",
        "epoch -7\n",
        "epoch 0\n",
        "7\n",
        "epoch \n",
        "epoch 7\0",
        "epoch 99999999999999999999\n",
        &full,
    ] {
        fs::write(scratch.0.join("epoch"), text).unwrap();
        let error = start(&scratch.0).unwrap_err();
        assert!(matches!(error, StoreError::Damaged(_)), "{text:?}: {error}");
        assert!(error.to_string().contains("`epoch N`"), "{error}");
        assert_eq!(fs::read_to_string(scratch.0.join("epoch")).unwrap(), text);
    }
    fs::write(scratch.0.join("epoch"), [0xff, 0xfe]).unwrap();
    assert!(matches!(start(&scratch.0), Err(StoreError::Damaged(_))));

    // A directory in its place cannot even be read.
    fs::remove_file(scratch.0.join("epoch")).unwrap();
    fs::create_dir(scratch.0.join("epoch")).unwrap();
    let error = start(&scratch.0).unwrap_err();
    assert!(matches!(error, StoreError::Io { what: "read", .. }), "{error}");
}

#[test]
fn epochs_end_where_fences_end() {
    let scratch = Scratch::new("full-fence");
    let store = open(&scratch.0).unwrap();
    assert_eq!(store.raise(Fence::VIEW_LIMIT - 2).unwrap(), Fence::VIEW_LIMIT - 1);
    assert!(matches!(store.raise(0), Err(StoreError::Full)));
    assert!(matches!(store.raise(u64::MAX), Err(StoreError::Full)));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_and_leaves_the_epoch() {
    let scratch = Scratch::new("full-disk");
    assert_eq!(start(&scratch.0).unwrap(), 1);
    // Writes to this device fail because no space is left.
    std::os::unix::fs::symlink("/dev/full", scratch.0.join("epoch.new")).unwrap();
    let error = start(&scratch.0).unwrap_err();
    let StoreError::Io { what: "write", source, .. } = &error else { panic!("{error}") };
    assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
    assert_eq!(fs::read_to_string(scratch.0.join("epoch")).unwrap(), "epoch 1\n");

    fs::remove_file(scratch.0.join("epoch.new")).unwrap();
    assert_eq!(start(&scratch.0).unwrap(), 2);
}

#[test]
fn a_directory_whose_parent_is_missing_is_not_made() {
    let scratch = Scratch::new("parent");
    let error = start(&scratch.0.join("no/node")).unwrap_err();
    assert!(matches!(error, StoreError::Io { what: "create", .. }), "{error}");
}

#[test]
fn a_lone_node_without_a_directory_starts_at_one() {
    let store = MemoryEpochStore::new("alone".to_owned());
    assert_eq!(store.members(), ["alone"]);
    assert_eq!(
        [store.raise(0).unwrap(), store.raise(0).unwrap(), store.raise(5).unwrap()],
        [1, 2, 6]
    );
}

/// Set for the second process of the test below.
const DIRECTORY: &str = "DOORWAY_TEST_DIRECTORY";

#[test]
fn a_directory_serves_one_process_at_a_time() {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        return hold_until_told(Path::new(&directory));
    }
    let scratch = Scratch::new("processes");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "epochs::a_directory_serves_one_process_at_a_time", "--nocapture"])
        .env(DIRECTORY, &scratch.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("holding epoch 1")));

    let error = start(&scratch.0).unwrap_err();
    assert!(matches!(error, StoreError::InUse(_)), "{error}");
    assert!(
        error.to_string().contains("another node, of this or another process, uses"),
        "{error}"
    );

    // However the process ends, the directory is free again.
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(start(&scratch.0).unwrap(), 2);
}

fn hold_until_told(directory: &Path) {
    let store = open(directory).expect("nobody else uses it yet");
    println!("holding epoch {}", store.raise(0).expect("the directory is ours"));
    std::io::stdout().flush().expect("somebody reads it");
    let _ = std::io::stdin().read_line(&mut String::new());
    drop(store);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_are_an_epoch_as_it_was_written_or_damage(
        garbage in prop::collection::vec(any::<u8>(), 0..30),
        number in prop_oneof![0_u64..100, any::<u64>()],
        cut in 0_usize..30,
    ) {
        let scratch = Scratch::new("garbage");
        let written = format!("epoch {number}\n").into_bytes();
        let short = written[..cut.min(written.len())].to_vec();
        for bytes in [garbage, written, short] {
            fs::write(scratch.0.join("epoch"), &bytes).unwrap();
            match start(&scratch.0) {
                Ok(epoch) => prop_assert_eq!(bytes, format!("epoch {}\n", epoch - 1).into_bytes()),
                Err(StoreError::Damaged(_)) => {}
                Err(StoreError::Full) => prop_assert_eq!(number, Fence::VIEW_LIMIT - 1),
                Err(error) => prop_assert!(false, "{}", error),
            }
        }
    }
}
