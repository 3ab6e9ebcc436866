//! A check that goes on where an earlier one has stopped.

use std::path::Path;

use doorway_core::algorithms::ALL;
use doorway_search::{KeptSearch, fingerprint};

use super::Case;

/// The file of this case. Its title tells the case from all others, and the algorithm's code of
/// today from that of yesterday.
pub(super) fn kept<'a>(path: &'a Path, case: &Case) -> KeptSearch<'a> {
    let name = case.algorithm.info().name;
    // Algorithms share code.
    let source: Vec<&str> = ALL.iter().map(|entry| entry.source).collect();
    let Case { group, channel, withdrawing, targets, waiting, history, .. } = case;
    let details = format!(
        "{source:?} {group:?} {channel:?} {withdrawing} {targets:?} {waiting} {history:?} {:?} {}",
        case.world(),
        env!("CARGO_PKG_VERSION")
    );
    let words: Vec<u32> = details.bytes().map(u32::from).collect();
    let (nodes, print) = (group.size(), fingerprint(&words));
    KeptSearch::new(path, format!("{name}, {nodes} nodes, case {print:016x}"))
}
