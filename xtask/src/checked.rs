//! `cargo xtask checked`: makes rows of `docs/checked.md` anew.
//!
//! A test checks the small rows of the page again. The others take minutes, so the page has a
//! fingerprint of the code of every algorithm from which its rows were made. If the code has
//! changed since, the page is out of date. It has one more fingerprint, of the code that all rows
//! depend on: if that has changed, rows of medium size are compared with those that it makes now.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::files::{self, File};
use crate::mutants::module::{Module, code_hash};
use crate::run::{cargo, output, succeed, target};
use crate::tidy::ALGORITHMS;

const PATH: &str = "docs/checked.md";

/// The heading of the table of fingerprints, which is the last one of the page.
const SOURCES: &str = "## Sources";

const HEADING: &str = "| module | fingerprint |\n|---|---|\n";

/// What the table of fingerprints calls the code that all rows depend on.
const SHARED: &str = "all rows";

/// Where that code is, besides the files of the algorithms.
const SHARED_PATHS: [&str; 6] = [
    "crates/doorway-core/src/",
    "crates/doorway-lab/src/check/",
    "crates/doorway-lab/src/erased/",
    "crates/doorway-lab/src/nodes.rs",
    "crates/doorway-lab/src/world",
    "crates/doorway-search/src/",
];

/// Rows with more worlds are not made again to see whether they have changed.
const MEDIUM: u64 = 1_000_000;

/// Make the rows of the algorithms in this module anew, and of those that use it. Without a name:
/// of all modules that have changed since their rows were made.
pub(crate) fn run(only: Option<&str>) -> anyhow::Result<()> {
    let files = files::all()?;
    let modules = Module::all(&files);
    let page = fs::read_to_string(PATH).context(PATH)?;
    let chosen = match only {
        Some(name) => {
            let found = modules.iter().find(|module| module.name == name || is_of(module, name));
            found.with_context(|| format!("no algorithm has the name or module {name}"))?;
            found.map(|module| module.with_users(&modules)).unwrap_or_default()
        }
        None => stale(&page, &modules),
    };
    build()?;
    let mut page = page;
    for name in names()? {
        let of = modules.iter().find(|module| is_of(module, &name));
        let Some(module) = of.filter(|module| chosen.contains(&module.name)) else { continue };
        println!("{name} ({})", module.name);
        page = merged(&page, &made(&name, None)?, &name, false);
        fs::write(PATH, &page)?;
    }
    fs::write(PATH, with_sources(&page, &modules, &chosen)?)?;
    Ok(())
}

/// Make single rows of an algorithm anew: those whose first cells contain this text.
pub(crate) fn rows(name: &str, text: &str) -> anyhow::Result<()> {
    let page = fs::read_to_string(PATH).context(PATH)?;
    build()?;
    let rows = made(name, Some(text))?;
    let fresh: Vec<&str> = rows.lines().filter(|line| is_row_of(line, name)).collect();
    ensure!(!fresh.is_empty(), "{name} has no row whose first cells contain '{text}'");
    for row in &fresh {
        println!("{row}");
    }
    Ok(fs::write(PATH, merged(&page, &rows, name, true))?)
}

/// Make every row of medium size again. If all are as they were, the code that all rows depend on
/// is taken to find what it found before, and its fingerprint is written.
pub(crate) fn shared() -> anyhow::Result<()> {
    let page = fs::read_to_string(PATH).context(PATH)?;
    build()?;
    let mut count = 0;
    let mut other = Vec::new();
    for name in names()? {
        for (head, old) in medium(&page, &name) {
            let rows = made(&name, Some(&head))?;
            count += 1;
            if !rows.lines().any(|row| counts(row) == counts(old)) {
                println!("not found again:\n{old}");
                other.push(format!("cargo xtask checked {name} '{head}'"));
            }
        }
    }
    ensure!(count > 0, "{PATH} has no rows of medium size");
    ensure!(
        other.is_empty(),
        "the checker finds something else than {PATH} says; if that is right, make these rows \
         anew, and all larger rows of their algorithms:\n{}",
        other.join("\n")
    );
    println!("{count} rows are as they were");
    let line = shared_line(&files::all()?);
    let kept = page.lines().filter(|line| !line.starts_with(&shared_head()));
    let kept = kept.collect::<Vec<_>>().join("\n") + "\n";
    let (rows, known) = kept.split_once(HEADING).context("the page has no fingerprints")?;
    Ok(fs::write(PATH, format!("{rows}{HEADING}{line}{known}"))?)
}

fn build() -> anyhow::Result<()> {
    succeed(&mut cargo("build --release -p doorway"))
}

/// The command that was built.
fn doorway() -> Command {
    Command::new(target().join("release/doorway"))
}

/// The names of all algorithms.
fn names() -> anyhow::Result<Vec<String>> {
    let list = output(doorway().args(["list", "--json"]))?;
    let list: Vec<serde_json::Value> = serde_json::from_str(&list)?;
    Ok(list.iter().filter_map(|row| row["name"].as_str()).map(str::to_owned).collect())
}

/// The page with the rows of an algorithm as they are now, all or only those whose first cells
/// contain this text.
fn made(name: &str, text: Option<&str>) -> anyhow::Result<String> {
    let chosen = text.into_iter().flat_map(|text| ["--rows", text]);
    output(doorway().args(["check", "--table", name]).args(chosen))
}

/// The rows of an algorithm that take seconds but are too large for the test, each with its first
/// cells.
fn medium<'a>(page: &'a str, name: &str) -> Vec<(String, &'a str)> {
    const SMALL: u64 = 20_000;
    let rows = page.lines().filter(|line| is_row_of(line, name));
    let medium = rows.filter_map(|line| {
        let cells = cells(line);
        let asks = cells.iter().position(|cell| ["fifo", "unordered"].contains(cell))?;
        let worlds: u64 = cells.get(asks + 7)?.replace(',', "").parse().ok()?;
        let is_medium = (SMALL..MEDIUM).contains(&worlds) && cells[asks + 1] != "not exhausted";
        is_medium.then(|| (cells[..asks].join(" | "), line))
    });
    medium.collect()
}

/// A row without the columns that another run may change: seconds and memory.
fn counts(row: &str) -> Vec<&str> {
    let mut cells = cells(row);
    let times = cells.len().saturating_sub(3)..cells.len().saturating_sub(1);
    cells.drain(times);
    cells
}

/// The cells of a row.
fn cells(row: &str) -> Vec<&str> {
    row.trim_matches('|').split('|').map(str::trim).collect()
}

fn is_row_of(line: &str, name: &str) -> bool {
    line.starts_with(&format!("| `{name}` |"))
}

/// The beginning of the line about the code that all rows depend on.
fn shared_head() -> String {
    format!("| {SHARED} |")
}

/// The line about the code that all rows depend on.
fn shared_line(files: &[File]) -> String {
    let is_shared = |file: &&File| {
        let path = file.path.as_str();
        let is_part = SHARED_PATHS.iter().any(|begin| path.starts_with(begin));
        file.is_source() && is_part && !path.starts_with(ALGORITHMS) && !path.ends_with("tests.rs")
    };
    // A module of tests is the end of its file.
    let texts = files.iter().filter(is_shared).map(|file| {
        file.text.split_once("\n#[cfg(test)]\nmod tests {").map_or(&*file.text, |(code, _)| code)
    });
    format!("{} {} |\n", shared_head(), code_hash(texts))
}

/// Fail if the rows of an algorithm are older than its code.
pub(crate) fn check() -> anyhow::Result<()> {
    let files = files::all()?;
    let modules = Module::all(&files);
    let page = fs::read_to_string(PATH).context(PATH)?;
    let stale = stale(&page, &modules);
    ensure!(
        stale.is_empty(),
        "{PATH}: the rows of {} are older than their code; `cargo xtask checked` makes them anew",
        stale.join(", ")
    );
    ensure!(
        page.contains(&shared_line(&files)),
        "{PATH}: the rows are older than the code that all of them depend on; `cargo xtask \
         checked --shared` makes those of medium size again, and says whether they have changed"
    );
    Ok(())
}

/// Does the module declare an algorithm of this name?
fn is_of(module: &Module<'_>, name: &str) -> bool {
    module.says(&format!("name: \"{name}\""))
}

/// The modules that have changed since the page was written, and those that use them.
fn stale<'a>(page: &str, modules: &[Module<'a>]) -> Vec<&'a str> {
    let is_known = |module: &Module<'_>| page.contains(&line(module));
    let changed = modules.iter().filter(|module| !is_known(module));
    let mut stale: Vec<&str> = changed.flat_map(|module| module.with_users(modules)).collect();
    stale.sort_unstable();
    stale.dedup();
    stale
}

fn line(module: &Module<'_>) -> String {
    format!("| `{}` | {} |\n", module.name, module.code_fingerprint())
}

/// The page with the fingerprints of these modules as they are now, and the others as they were.
fn with_sources(page: &str, modules: &[Module<'_>], fresh: &[&str]) -> anyhow::Result<String> {
    let (rows, sources) =
        page.split_once(SOURCES).with_context(|| format!("{PATH} has no heading \"{SOURCES}\""))?;
    let (text, known) =
        sources.split_once(HEADING).with_context(|| format!("{PATH} has no fingerprints"))?;
    let mut lines: Vec<String> = Vec::new();
    for module in modules {
        let head = format!("| `{}` |", module.name);
        let old = known.lines().find(|line| line.starts_with(&head));
        match old {
            Some(old) if !fresh.contains(&module.name) => lines.push(format!("{old}\n")),
            _ if fresh.contains(&module.name) => lines.push(line(module)),
            _ => {}
        }
    }
    lines.sort_unstable();
    let shared = known.lines().find(|line| line.starts_with(&shared_head()));
    lines.splice(0..0, shared.map(|line| format!("{line}\n")));
    Ok(format!("{}\n\n{SOURCES}{text}{HEADING}{}", rows.trim_end(), lines.concat()))
}

/// The page with these rows of an algorithm, each table by its heading, instead of those it has. If
/// they are `single` rows, the algorithm keeps all others.
fn merged(page: &str, rows: &str, name: &str, single: bool) -> String {
    let is_row = |line: &&str| is_row_of(line, name);
    let sections = |text: &str| -> Vec<String> {
        text.split("\n## ").map(|section| format!("{section}\n")).collect()
    };
    let title = |section: &str| section.lines().next().unwrap_or_default().to_owned();
    let made = sections(rows);
    let merge = |section: String| {
        let Some(made) = made.iter().find(|made| title(made) == title(&section)) else {
            return section;
        };
        let mut fresh: Vec<&str> = made.lines().filter(is_row).collect();
        if single {
            let heading = section.lines().find(|line| line.starts_with("| algorithm |"));
            let columns = cells(heading.unwrap_or_default());
            fresh = put_in(section.lines().filter(is_row).collect(), &fresh, &columns);
        }
        let mut lines: Vec<&str> = Vec::new();
        let mut placed = fresh.is_empty();
        for line in section.lines() {
            if is_row(&line) {
                lines.extend(if placed { &[][..] } else { &fresh });
                placed = true;
            } else {
                lines.push(line);
            }
        }
        if !placed {
            let end = lines.iter().rposition(|line| line.starts_with('|')).map_or(0, |at| at + 1);
            lines.splice(end..end, fresh);
        }
        lines.join("\n") + "\n"
    };
    let merged: Vec<String> = sections(page).into_iter().map(merge).collect();
    let page = merged.iter().map(|section| section.strip_suffix('\n').unwrap_or(section));
    page.collect::<Vec<_>>().join("\n## ")
}

/// The rows of an algorithm with the fresh ones among them. A fresh row replaces the one of its
/// group, or follows the rows of groups that are not larger.
fn put_in<'a>(mut rows: Vec<&'a str>, fresh: &[&'a str], columns: &[&str]) -> Vec<&'a str> {
    const GROUP: [&str; 5] = ["algorithm", "arrangement", "nodes", "each asks", "channel"];
    let group = |row: &'a str| {
        let named = columns.iter().zip(cells(row)).filter(|(column, _)| GROUP.contains(column));
        named.map(|(_, cell)| cell).collect::<Vec<_>>()
    };
    let nodes = |row: &str| {
        let at = columns.iter().position(|column| *column == "nodes")?;
        cells(row).get(at)?.parse::<usize>().ok()
    };
    for row in fresh {
        match rows.iter().position(|old| group(old) == group(row)) {
            Some(at) => rows[at] = row,
            None => rows.insert(rows.partition_point(|old| nodes(old) <= nodes(row)), row),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::File;
    use crate::tidy::ALGORITHMS;

    const PAGE: &str = "# T\n\n| a |\n|---|\n| `x` | 1 |\n| `y` | 2 |\n\n## More\n\n| a |\n|---|\n\n## Sources\n\n| module | fingerprint |\n|---|---|\n";

    #[test]
    fn rows_are_replaced_where_they_are() {
        let rows = "# T\n\n| a |\n|---|\n| `x` | 3 |\n| `x` | 4 |\n\n## More\n\n| a |\n|---|\n| `x` | 5 |\n";
        let page = merged(PAGE, rows, "x", false);
        assert_eq!(
            page,
            "# T\n\n| a |\n|---|\n| `x` | 3 |\n| `x` | 4 |\n| `y` | 2 |\n\n## More\n\n| a |\n|---|\n| `x` | 5 |\n\n## Sources\n\n| module | fingerprint |\n|---|---|\n"
        );
        assert_eq!(merged(&page, rows, "x", false), page);
    }

    #[test]
    fn single_rows_are_put_among_the_others() {
        let head = "# T\n\n| algorithm | nodes | each asks | worlds |\n|---|---|---|---|\n";
        let row = |nodes: u32, asks: &str, worlds: u32| {
            format!("| `x` | {nodes} | {asks} | {worlds} |\n")
        };
        let page = [head, &row(2, "a", 1), &row(4, "a", 2), &row(4, "b", 3), "\n## Sources\n"];
        let fresh = [head, &row(4, "a", 8), &row(5, "a", 9)].concat();
        let expected = [
            head,
            &row(2, "a", 1),
            &row(4, "a", 8),
            &row(4, "b", 3),
            &row(5, "a", 9),
            "\n## Sources\n",
        ];
        assert_eq!(merged(&page.concat(), &fresh, "x", true), expected.concat());
        let smaller = [head, &row(3, "a", 8)].concat();
        let expected = [
            head,
            &row(2, "a", 1),
            &row(3, "a", 8),
            &row(4, "a", 2),
            &row(4, "b", 3),
            "\n## Sources\n",
        ];
        assert_eq!(merged(&page.concat(), &smaller, "x", true), expected.concat());
    }

    #[test]
    fn rows_of_medium_size_are_compared_without_their_times() {
        let row = |worlds: &str, time: &str| {
            format!(
                "| `x` | 4 | once | fifo | holds | holds | holds | holds | 3 | 6 | {worlds} | 7 | 8 | {time} |  |"
            )
        };
        let page =
            [row("9", "1 | 1"), row("30,000", "1 | 1"), row("2,000,000", "1 | 1")].join("\n");
        let found = medium(&page, "x");
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, "`x` | 4 | once");
        assert_eq!(counts(found[0].1), counts(&row("30,000", "2.5 | 6.1")));
        assert_ne!(counts(found[0].1), counts(&row("30,001", "1 | 1")));
    }

    /// A comment or a test of the shared code makes no row old.
    #[test]
    fn the_shared_code_has_one_fingerprint() {
        let shared = |path: &str, text: &str| {
            shared_line(&[File { path: path.to_owned(), text: text.to_owned() }])
        };
        let settle = "crates/doorway-core/src/settle.rs";
        let one = shared(settle, "// a\nb\n\n#[cfg(test)]\nmod tests {\n    c\n}\n");
        assert_eq!(one, shared(settle, "// d\nb\n"));
        assert_ne!(one, shared(settle, "e\n"));
        assert!(one.starts_with("| all rows | "), "{one}");
        let none = shared("README.md", "e\n");
        for path in ["crates/doorway-lab/src/check/tests.rs", "crates/doorway/src/main.rs"] {
            assert_eq!(shared(path, "e\n"), none, "{path}");
        }
        assert_eq!(shared(&format!("{ALGORITHMS}central.rs"), "e\n"), none);
        let page = format!("{PAGE}{one}");
        assert_eq!(with_sources(&page, &[], &[]).unwrap(), page);
    }

    #[test]
    fn a_page_whose_rows_are_all_fresh_is_written_as_it_is() {
        let page = fs::read_to_string(format!("{}/../{PATH}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let root = format!("{}/../", env!("CARGO_MANIFEST_DIR"));
        let lines = page.split_once(HEADING).unwrap().1.lines();
        let sources = lines.filter_map(|line| line.split('`').nth(1)).map(|name| {
            let path = format!("{ALGORITHMS}{name}.rs");
            let text = fs::read_to_string(format!("{root}{path}")).unwrap_or_default();
            File { path, text }
        });
        let files: Vec<File> = sources.collect();
        assert_eq!(with_sources(&page, &Module::all(&files), &[]).unwrap(), page);
    }

    #[test]
    fn a_change_of_code_is_noticed_and_one_of_comments_is_not() {
        let file = |text: &str| File { path: format!("{ALGORITHMS}one.rs"), text: text.to_owned() };
        let user = File { path: format!("{ALGORITHMS}two.rs"), text: "use one::X;".to_owned() };
        let files = [file("// a\nb"), user];
        let modules = Module::all(&files);
        assert_eq!(stale(PAGE, &modules), ["one", "two"]);
        let page = with_sources(PAGE, &modules, &["one", "two"]).unwrap();
        assert_eq!(stale(&page, &modules), [""; 0]);
        let other = [file("// c\nb")];
        assert_eq!(stale(&page, &Module::all(&other)), [""; 0]);
        let changed = [file("// a\nc")];
        assert_eq!(stale(&page, &Module::all(&changed)), ["one"]);
    }
}
