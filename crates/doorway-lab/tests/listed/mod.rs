//! Tables by name, in a tree in which not every algorithm is listed.

use doorway_core::algorithms::ALL;

/// Is the algorithm of this name to be tested? Only `cargo xtask mutants`, which sets `PARED`,
/// leaves algorithms out; anywhere else a name that is not on the list is a mistake in the table.
#[track_caller]
pub(crate) fn listed(name: &str) -> bool {
    let found = ALL.iter().any(|entry| entry.info.name == name);
    let pared = std::env::var_os("PARED").is_some();
    assert!(found || pared, "no algorithm is called {name}");
    found
}
