//! The settings of an etcd by which the members agree.

use std::fs;
use std::path::Path;

use doorway_members::{EtcdAccess, EtcdAddress, EtcdCertificates};

use super::document::{Section, SourceValue, shown};
use super::files::beside;

/// The keys that belong to etcd.
const KEYS: [&str; 6] =
    ["etcd", "etcd_ca", "etcd_certificate", "etcd_key", "etcd_user", "etcd_password"];

/// Read how etcd is reached, out of `[members]`. None if the members agree by Raft.
pub(super) fn access(section: &Section<'_, '_>, file: &Path, by_etcd: bool) -> Option<EtcdAccess> {
    let diagnostics = section.diagnostics;
    if !by_etcd {
        if let Some(key) = KEYS.iter().find(|key| section.has(key)) {
            let what = format!("`{key}` is for members that agree by etcd");
            diagnostics.wrong(section.line, what, "add agree = \"etcd\", or remove the key");
        }
        return None;
    }
    let mut addresses = Vec::new();
    for SourceValue { line, value } in section.texts("etcd") {
        match value.parse::<EtcdAddress>() {
            Ok(address) => addresses.push(address),
            Err(why) => {
                let what = format!("`etcd` has \"{}\": {why}", shown(&value));
                diagnostics.wrong(line, what, "write a URL, as \"https://e1.example:2379\"");
            }
        }
    }
    if section.texts("etcd").is_empty() {
        let what = "members that agree by etcd need its addresses";
        diagnostics.wrong(section.line, what, "add etcd = [\"https://e1.example:2379\"]");
    }
    let certificates =
        addresses.iter().any(EtcdAddress::is_https).then(|| certificates(section, file)).flatten();
    Some(EtcdAccess { addresses, certificates, login: login(section, file) })
}

fn certificates(section: &Section<'_, '_>, file: &Path) -> Option<EtcdCertificates> {
    let authority = read(section, file, "etcd_ca");
    let (certificate, key) =
        (read(section, file, "etcd_certificate"), read(section, file, "etcd_key"));
    both(section, "etcd_certificate", "etcd_key");
    let certificates = EtcdCertificates { authority: authority?, client: certificate.zip(key) };
    if let Err(why) = certificates.check() {
        let what = format!("the certificates for etcd cannot be used: {why}");
        let remedy = "give PEM files in `etcd_ca`, `etcd_certificate` and `etcd_key`";
        section.diagnostics.wrong(section.line, what, remedy);
    }
    Some(certificates)
}

fn login(section: &Section<'_, '_>, file: &Path) -> Option<(String, String)> {
    both(section, "etcd_user", "etcd_password");
    let user = section.text("etcd_user");
    let password = read(section, file, "etcd_password");
    let password = String::from_utf8(password?).ok()?.trim().to_owned();
    Some((user?.value, password))
}

/// Two keys that need each other.
fn both(section: &Section<'_, '_>, one: &str, other: &str) {
    let missing = match (section.has(one), section.has(other)) {
        (true, false) => other,
        (false, true) => one,
        _ => return,
    };
    let what = format!("`{one}` and `{other}` need each other");
    section.diagnostics.wrong(section.line, what, format!("add `{missing}`"));
}

/// The content of the file that a key names.
fn read(section: &Section<'_, '_>, file: &Path, key: &str) -> Option<Vec<u8>> {
    let SourceValue { line, value } = section.text(key)?;
    let path = beside(file, &value);
    match fs::read(&path) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            let remedy = "make it readable for the user who runs the service";
            let what = format!("`{key}`: cannot read {}: {error}", path.display());
            section.diagnostics.wrong(line, what, remedy);
            None
        }
    }
}
