//! Which crates of this repository may depend on which.

use crate::files::File;

/// A crate, and the crates of this repository that it may depend on; its tests may use others.
///
/// A program that uses the client compiles none of the algorithms, because the client depends on
/// the protocol and the protocol on nothing here.
const LAYERS: [(&str, &[&str]); 12] = [
    ("doorway-client", &["doorway-protocol"]),
    ("doorway-core", &[]),
    (
        "doorway-daemon",
        &[
            "doorway-members",
            "doorway-node",
            "doorway-page",
            "doorway-protocol",
            "doorway-sessions",
        ],
    ),
    ("doorway-lab", &["doorway-core", "doorway-protocol", "doorway-search"]),
    ("doorway-members", &["doorway-node", "doorway-protocol"]),
    ("doorway-node", &["doorway-core", "doorway-protocol"]),
    ("doorway-page", &["doorway-core", "doorway-lab", "doorway-threads"]),
    ("doorway-protocol", &[]),
    ("doorway-search", &[]),
    ("doorway-sessions", &["doorway-protocol"]),
    (
        "doorway-simulation",
        &["doorway-client", "doorway-core", "doorway-node", "doorway-protocol", "doorway-sessions"],
    ),
    ("doorway-threads", &["doorway-search"]),
];

/// The dependencies that a crate may not have, as `path:line: what`.
pub(crate) fn complaints(file: &File) -> Vec<String> {
    let layer = LAYERS.iter().find(|(name, _)| file.path == format!("crates/{name}/Cargo.toml"));
    let Some((name, allowed)) = layer else { return Vec::new() };
    let mut table = "";
    let mut complaints = Vec::new();
    for (line, number) in file.text.lines().zip(1..) {
        if line.starts_with('[') {
            table = line;
        }
        let dependency = line.split(['.', ' ', '=']).next().unwrap_or_default();
        let shipped = table.ends_with("dependencies]") && !table.contains("dev-dependencies");
        let ours = shipped && dependency.starts_with("doorway-");
        if ours && !allowed.contains(&dependency) {
            complaints.push(format!("{}:{number}: {name} depends on {dependency}", file.path));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(text: &str) -> Vec<String> {
        let path = "crates/doorway-client/Cargo.toml".to_owned();
        complaints(&File { path, text: text.to_owned() })
    }

    #[test]
    fn a_dependency_outside_the_layers_is_found() {
        let allowed = "[dependencies]\ndoorway-protocol.workspace = true\nrustix = \"1\"\n";
        let tests = "[dev-dependencies]\ndoorway-core.workspace = true\n";
        assert_eq!(client(&format!("{allowed}{tests}")), [""; 0]);
        let found = client("[dependencies]\ndoorway-core = { workspace = true }\n");
        let complaint =
            "crates/doorway-client/Cargo.toml:2: doorway-client depends on doorway-core";
        assert_eq!(found, [complaint]);
    }
}
