//! `cargo xtask checked`: makes rows of `docs/checked.md` anew.
//!
//! A test checks the small rows of the page again. The others take minutes, so the page has a
//! fingerprint of the code of every algorithm from which its rows were made. If the code has
//! changed since, the page is out of date.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::files;
use crate::mutants::module::Module;
use crate::run::{cargo, output, succeed, target};

const PATH: &str = "docs/checked.md";

/// The heading of the table of fingerprints, which is the last one of the page.
const SOURCES: &str = "## Sources";

const HEADING: &str = "| module | fingerprint |\n|---|---|\n";

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
    succeed(&mut cargo("build --release -p doorway"))?;
    let list = output(Command::new(target().join("release/doorway")).args(["list", "--json"]))?;
    let list: Vec<serde_json::Value> = serde_json::from_str(&list)?;
    let names = list.iter().filter_map(|row| row["name"].as_str());
    let mut page = page;
    for name in names {
        let of = modules.iter().find(|module| is_of(module, name));
        let Some(module) = of.filter(|module| chosen.contains(&module.name)) else { continue };
        println!("{name} ({})", module.name);
        let command = target().join("release/doorway");
        let rows = output(Command::new(command).args(["check", "--table", name]))?;
        page = merged(&page, &rows, name);
        fs::write(PATH, &page)?;
    }
    fs::write(PATH, with_sources(&page, &modules, &chosen)?)?;
    Ok(())
}

/// Fail if the rows of an algorithm are older than its code.
pub(crate) fn check() -> anyhow::Result<()> {
    let files = files::all()?;
    let modules = Module::all(&files);
    let stale = stale(&fs::read_to_string(PATH).context(PATH)?, &modules);
    ensure!(
        stale.is_empty(),
        "{PATH}: the rows of {} are older than their code; `cargo xtask checked` makes them anew",
        stale.join(", ")
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
    Ok(format!("{}\n\n{SOURCES}{text}{HEADING}{}", rows.trim_end(), lines.concat()))
}

/// The page with these rows of an algorithm, each table by its heading, instead of those it has.
fn merged(page: &str, rows: &str, name: &str) -> String {
    let head = format!("| `{name}` |");
    let is_row = |line: &&str| line.starts_with(&head);
    let sections = |text: &str| -> Vec<String> {
        text.split("\n## ").map(|section| format!("{section}\n")).collect()
    };
    let title = |section: &str| section.lines().next().unwrap_or_default().to_owned();
    let made = sections(rows);
    let merge = |section: String| {
        let Some(made) = made.iter().find(|made| title(made) == title(&section)) else {
            return section;
        };
        let fresh: Vec<&str> = made.lines().filter(is_row).collect();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::File;
    use crate::tidy::ALGORITHMS;

    const PAGE: &str = "# T\n\n| a |\n|---|\n| `x` | 1 |\n| `y` | 2 |\n\n## More\n\n| a |\n|---|\n\n## Sources\n\n| module | fingerprint |\n|---|---|\n";

    #[test]
    fn rows_are_replaced_where_they_are() {
        let rows = "# T\n\n| a |\n|---|\n| `x` | 3 |\n| `x` | 4 |\n\n## More\n\n| a |\n|---|\n| `x` | 5 |\n";
        let page = merged(PAGE, rows, "x");
        assert_eq!(
            page,
            "# T\n\n| a |\n|---|\n| `x` | 3 |\n| `x` | 4 |\n| `y` | 2 |\n\n## More\n\n| a |\n|---|\n| `x` | 5 |\n\n## Sources\n\n| module | fingerprint |\n|---|---|\n"
        );
        assert_eq!(merged(&page, rows, "x"), page);
    }

    #[test]
    fn a_page_whose_rows_are_all_fresh_is_written_as_it_is() {
        let page = fs::read_to_string(format!("{}/../{PATH}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let root = format!("{}/../", env!("CARGO_MANIFEST_DIR"));
        let sources = page.split_once(HEADING).unwrap().1.lines().map(|line| {
            let name = line.split('`').nth(1).unwrap();
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
