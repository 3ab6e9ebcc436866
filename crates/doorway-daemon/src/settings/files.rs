//! Reads and checks the files that a configuration names.

use std::fs;
use std::path::{Path, PathBuf};

use doorway_node::TlsConfig;
use ring::digest::{SHA256, digest};

use super::TlsFiles;
use super::document::{Diagnostics, Section, SourceValue};
use crate::certificate::node_name;
use crate::tls::{self, TlsFile};

/// The fewest characters of a token; a shorter one could be guessed.
const TOKEN_MIN: usize = 16;

/// The path of a file that another file names, relative to the directory of the latter.
pub(super) fn beside(file: &Path, named: &str) -> PathBuf {
    file.parent().unwrap_or(Path::new("")).join(named)
}

/// The certificates, and the lines that name their files.
pub(super) struct Tls {
    pub(super) files: TlsFiles,
    pub(super) config: TlsConfig,
    lines: [Option<usize>; 3],
}

/// Read the files that `[tls]` names.
pub(super) fn tls(file: &Path, section: &Section<'_, '_>) -> Option<Tls> {
    let named = |key: &str| {
        let SourceValue { line, value } = section.text(key)?;
        Some((line, beside(file, &value)))
    };
    let (ca, certificate, key) = (named("ca"), named("certificate"), named("key"));
    // All three are read, so that all mistakes are found at once.
    let read = |named: Option<(Option<usize>, PathBuf)>| {
        let (line, path) = named?;
        match fs::read(&path) {
            Ok(bytes) => Some((line, path, bytes)),
            Err(error) => {
                let remedy = "make it readable for the user who runs the service";
                let what = format!("cannot read {}: {error}", path.display());
                section.diagnostics.wrong(line, what, remedy);
                None
            }
        }
    };
    let (ca, certificate, key) = (read(ca), read(certificate), read(key));
    let (ca, certificate, key) = (ca?, certificate?, key?);
    let lines = [ca.0, certificate.0, key.0];
    let config = TlsConfig { ca: ca.2, certificate: certificate.2, key: key.2 };
    let files = TlsFiles { ca: ca.1, certificate: certificate.1, key: key.1 };
    Some(Tls { files, config, lines })
}

/// Check that the certificates are those that this node needs.
pub(super) fn check_tls(diagnostics: &Diagnostics, tls: &Tls, node: &str, group: &str) {
    for trouble in tls::check(&tls.config, &node_name(node, group)) {
        let line = match trouble.which {
            TlsFile::Ca => tls.lines[0],
            TlsFile::Certificate => tls.lines[1],
            TlsFile::Key => tls.lines[2],
        };
        let path = tls.files.path(trouble.which).display();
        diagnostics.wrong(line, format!("{path}: {}", trouble.what), trouble.remedy);
    }
}

/// The hash of the token in a file.
pub(super) fn token(
    diagnostics: &Diagnostics,
    line: Option<usize>,
    path: &Path,
) -> Option<[u8; 32]> {
    let remedy = "write a long random token into it, as `openssl rand -hex 32` prints";
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            diagnostics.wrong(line, format!("cannot read {}: {error}", path.display()), remedy);
            return None;
        }
    };
    let token = text.trim();
    if token.chars().count() < TOKEN_MIN || token.contains(char::is_whitespace) {
        let what =
            format!("{} does not hold a token of {TOKEN_MIN} characters or more", path.display());
        diagnostics.wrong(line, what, remedy);
        return None;
    }
    digest(&SHA256, token.as_bytes()).as_ref().try_into().ok()
}
