//! The random number by which clients tell the data directory of a node from every other one.
//!
//! It is kept in a file of its own, and not in the ledger: a node whose ledger is damaged needs it
//! to tell its own sessions from those of other nodes.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use doorway_protocol::DirectoryId;

/// The name of the file.
pub const FILE: &str = "identity";

/// The number of a directory. If the directory has none, one is drawn, and is on disk when this
/// returns.
pub fn of_directory(directory: &Path) -> io::Result<DirectoryId> {
    match fs::read_to_string(directory.join(FILE)) {
        Ok(text) => {
            if let Some(known) = parse(&text) {
                return Ok(known);
            }
            let path = directory.join(FILE);
            tracing::warn!(
                path = %path.display(),
                "the file is not a random number of 32 hexadecimal digits, and gets a new one"
            );
        }
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidData) => {}
        Err(error) => return Err(error),
    }
    let drawn = draw();
    let new = directory.join("identity.new");
    let mut file =
        File::options().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    writeln!(file, "{:032x}", u128::from_be_bytes(drawn.0))?;
    file.sync_all()?;
    fs::rename(&new, directory.join(FILE))?;
    File::open(directory)?.sync_all()?;
    Ok(drawn)
}

/// A number for a node that keeps nothing.
pub fn draw() -> DirectoryId {
    DirectoryId(crate::secret::random())
}

fn parse(text: &str) -> Option<DirectoryId> {
    let digits = text.trim_end();
    let right = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u128::from_str_radix(digits, 16).ok().filter(|_| right)?;
    Some(DirectoryId(number.to_be_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_keeps_its_number_until_it_is_emptied() {
        let path = std::env::temp_dir().join(format!("doorway-identity-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        let first = of_directory(&path).unwrap();
        assert_eq!(of_directory(&path).unwrap(), first);
        let mut seen = vec![first];
        for wrong in ["", "12\n", &"g".repeat(32), &"+".repeat(32), "\u{e4}"] {
            fs::write(path.join(FILE), wrong).unwrap();
            let drawn = of_directory(&path).unwrap();
            assert!(!seen.contains(&drawn), "{wrong:?}");
            assert_eq!(of_directory(&path).unwrap(), drawn);
            seen.push(drawn);
        }
        fs::remove_dir_all(&path).unwrap();
        of_directory(&path).unwrap_err();
    }
}
