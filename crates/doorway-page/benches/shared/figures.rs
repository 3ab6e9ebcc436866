//! The results of a benchmark, each in a line.

use std::fmt::Display;

/// Print what was measured, and its figures below those of other lines.
pub(crate) fn print(what: &str, figures: impl Display) {
    println!("{what:<52} {figures}");
}
