//! Tables by name, in a workspace in which some algorithms may have been left out.

use doorway_core::algorithms::ALL;

/// Is the algorithm of this name to be tested? Only `cargo xtask mutants`, which sets `PARED`,
/// leaves algorithms out. In all other cases an unknown name is a mistake in the table.
#[track_caller]
pub(crate) fn listed(name: &str) -> bool {
    let found = ALL.iter().any(|entry| entry.info.name == name);
    let pared = std::env::var_os("PARED").is_some();
    assert!(found || pared, "no algorithm is called {name}: renamed or removed?");
    found
}
