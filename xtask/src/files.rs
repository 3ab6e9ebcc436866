//! The files of the repository.

use std::fs;
use std::path::Path;

/// A text file.
pub(crate) struct File {
    /// Its path from the root of the repository, with slashes.
    pub(crate) path: String,
    /// Its content.
    pub(crate) text: String,
}

impl File {
    /// Is it Rust?
    pub(crate) fn is_source(&self) -> bool {
        Path::new(&self.path).extension().is_some_and(|extension| extension == "rs")
    }
}

/// Every text file of the repository, sorted by path, without build output and `.git`.
pub(crate) fn all() -> anyhow::Result<Vec<File>> {
    below(Path::new("."))
}

/// Every text file below `root`, sorted by path, without build output and `.git`.
pub(crate) fn below(root: &Path) -> anyhow::Result<Vec<File>> {
    let mut files = Vec::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let path = entry.path();
            if ["target", ".git"].iter().any(|name| path.ends_with(name)) {
                continue;
            }
            if entry.file_type()?.is_dir() {
                open.push(path);
            } else if let Ok(text) = fs::read_to_string(&path) {
                files.push(File { path: name(path.strip_prefix(root)?), text });
            }
        }
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

fn name(path: &Path) -> String {
    let parts = path.iter().filter(|part| *part != ".");
    parts.map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
}
