//! The rows of docs/checked.md that the searches of this crate make.

use std::fs;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/checked.md");

/// Check that the table with this heading has these rows. `UPDATE=1` writes them.
pub(crate) fn agree(heading: &str, rows: &str) {
    let page = fs::read_to_string(PAGE).expect("docs/checked.md is there");
    let (before, after) = page.split_once(heading).expect("the page has this table");
    let (said, after) = after.split_once("\n\n").expect("a table ends with an empty line");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(PAGE, format!("{before}{heading}{rows}\n{after}")).expect("it is written");
    } else {
        assert_eq!(format!("{said}\n"), rows, "UPDATE=1 writes the rows of docs/checked.md");
    }
}
