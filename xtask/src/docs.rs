//! The generated documents: help, tables and pictures that the `doorway` command prints.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::checked;
use crate::mutants;
use crate::programs;
use crate::run::{cargo, output, succeed, target};

/// Pictures, and the subcommands that draw them.
const PICTURES: [(&str, &str); 2] = [
    ("docs/space-time.svg", "diagram maekawa -n 7 -o"),
    ("docs/compare.svg", "compare --sweep n --serial --think 1000 --plot"),
];

/// The test that finds the flaws of published algorithms. With `UPDATE=1` it also writes the page
/// about them.
const FLAWS: &str = "test --quiet --workspace --all-features --test checks flaws::";

/// A copy of the page about the algorithms between threads. It is inside the crate whose
/// documentation includes it.
const THREADS: &str = "crates/doorway-threads/TABLE.md";

/// The marks around the table of algorithms in the README.
const TABLE_BEGIN: &str = "<!-- algorithms: written by `cargo xtask docs` -->\n";
const TABLE_END: &str = "<!-- end of algorithms -->\n";

/// Write every generated document.
pub(crate) fn write() -> anyhow::Result<()> {
    for (path, text) in documents()? {
        if fs::read_to_string(path).ok().as_ref() != Some(&text) {
            if let Some(directory) = Path::new(path).parent() {
                fs::create_dir_all(directory)?;
            }
            fs::write(path, text).with_context(|| format!("cannot write {path}"))?;
            println!("wrote {path}");
        }
    }
    succeed(cargo(FLAWS).env("UPDATE", "1"))
}

/// Fail if a generated document differs from what would be written now. The page about flaws is
/// checked by the test that writes it.
pub(crate) fn check() -> anyhow::Result<()> {
    let documents = documents()?;
    let fresh = |path: &str, text: &str| fs::read_to_string(path).is_ok_and(|old| old == text);
    let stale: Vec<&str> =
        documents.iter().filter(|(path, text)| !fresh(path, text)).map(|(path, _)| *path).collect();
    ensure!(stale.is_empty(), "out of date: {}; `cargo xtask docs` writes them", stale.join(", "));
    println!("{} documents are up to date", documents.len());
    checked::check()
}

/// Every generated document: its path and its text.
fn documents() -> anyhow::Result<Vec<(&'static str, String)>> {
    programs::build()?;
    let mut documents = vec![
        ("README.md", readme()?),
        ("docs/commands.md", commands()?),
        ("docs/assumptions.md", doorway("check --assumptions")?),
        ("docs/mutants.md", mutants::document()?),
        ("docs/problems.md", doorway("problems check --table")?),
        ("docs/settings.md", doorway("serve --settings")?),
    ];
    let threads = doorway("threads check --table")?;
    documents.push((THREADS, without_title(&threads)?.to_owned()));
    documents.push(("docs/threads.md", threads));
    for (path, command) in PICTURES {
        documents.push((path, picture(path, command)?));
    }
    Ok(documents)
}

/// What the `doorway` command prints.
fn doorway(words: &str) -> anyhow::Result<String> {
    output(Command::new(target().join("debug/doorway")).args(words.split_whitespace()))
}

/// What the `doorway` command draws, into a file of the same name below `target`.
fn picture(path: &str, command: &str) -> anyhow::Result<String> {
    let copy = Path::new("target/xtask").join(path);
    fs::create_dir_all(copy.parent().unwrap_or(Path::new(".")))?;
    doorway(&format!("{command} {}", copy.display()))?;
    Ok(fs::read_to_string(copy)?)
}

fn readme() -> anyhow::Result<String> {
    let readme = fs::read_to_string("README.md").context("README.md")?;
    let parts = readme.split_once(TABLE_BEGIN).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(TABLE_END)?;
        Some((before, after))
    });
    let (before, after) =
        parts.context("README.md: the marks around the table of algorithms are missing")?;
    let table = algorithm_table(&doorway("list --json")?)?;
    Ok(format!("{before}{TABLE_BEGIN}{table}{TABLE_END}{after}"))
}

/// The algorithms as a Markdown table, from the output of `doorway list --json`.
fn algorithm_table(json: &str) -> anyhow::Result<String> {
    let rows: Vec<Value> = serde_json::from_str(json)?;
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().replace('|', "\\|");
    let heading = "| name | what it does | year | kind | channel | messages per entry |\n\
                   |---|---|---|---|---|---|\n";
    let line = |row: &Value| {
        let (least, most) = (text(row, "messages_min"), text(row, "messages_max"));
        let messages = if least == most { least } else { format!("{least} .. {most}") };
        let refuted = if row["refuted"] == true { "**refuted**: " } else { "" };
        format!(
            "| `{}` | {refuted}{} | {} | {} | {} | {messages} |\n",
            text(row, "name"),
            text(row, "summary"),
            row["year"],
            text(row, "kind"),
            text(row, "channel"),
        )
    };
    Ok(heading.to_owned() + &rows.iter().map(line).collect::<String>())
}

/// The page without its title, which is the first line, and the empty line after it.
fn without_title(page: &str) -> anyhow::Result<&str> {
    let parts = page.split_once("\n\n").filter(|(title, _)| title.starts_with("# "));
    Ok(parts.context("the page has no title")?.1)
}

/// The help of every subcommand on one page.
fn commands() -> anyhow::Result<String> {
    let title = "# The command line\n\nWritten by `cargo xtask docs`.\n";
    Ok(title.to_owned() + &sections("", &doorway("help")?)?)
}

/// A section with the help of a command, followed by the sections of its subcommands.
fn sections(command: &str, help: &str) -> anyhow::Result<String> {
    let mut text = format!("\n## doorway{command}\n\n```text\n{}\n```\n", help.trim_end());
    for name in below(help) {
        let command = format!("{command} {name}");
        text += &sections(&command, &doorway(&format!("help{command}"))?)?;
    }
    Ok(text)
}

/// The subcommands that a help text lists.
fn below(help: &str) -> impl Iterator<Item = &str> {
    // They are in the sections "Commands:" or "Lock commands:" and the like.
    let sections = help.split("\n\n").filter(|section| {
        section.lines().next().is_some_and(|heading| heading.ends_with("ommands:"))
    });
    let listed = sections.flat_map(|section| section.lines().skip(1));
    // The line of a subcommand is indented by two spaces, the continuation of a long one by more.
    let names = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !["", "help"].contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_made_from_the_list() {
        let json = r#"[{"name": "a", "summary": "b | c", "year": 1981, "kind": "token",
            "channel": "fifo", "refuted": true, "messages_min": "0", "messages_max": "N"}]"#;
        let table = algorithm_table(json).unwrap();
        let row = "| `a` | **refuted**: b \\| c | 1981 | token | fifo | 0 .. N |";
        assert_eq!(table.lines().last(), Some(row));
    }

    #[test]
    fn commands_are_found_in_a_help() {
        let help = "X\n\nCommands:\n  list   List\n  check  Check this\n         and that\n  \
                    help   Print this\n\nOptions:\n  -h  Print help\n";
        assert_eq!(below(help).collect::<Vec<_>>(), ["list", "check"]);
        let help = "X\n\nLock commands:\n  run  Run\n\nOther commands:\n  man  Print\n\nOptions:\n";
        assert_eq!(below(help).collect::<Vec<_>>(), ["run", "man"]);
        assert_eq!(below("Options:\n  -h  Print help\n").count(), 0);
    }

    #[test]
    fn a_page_loses_its_title() {
        assert_eq!(without_title("# X\n\nText\n\n| a |\n").unwrap(), "Text\n\n| a |\n");
        assert!(without_title("Text\n\nmore").is_err());
    }
}
