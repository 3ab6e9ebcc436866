//! `cargo xtask soak`: the simulation of the whole product, seed after seed; with `--bugs`, the
//! proof that it finds bugs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};

use crate::files;
use crate::run::{cargo, command, output, succeed};

/// The directory of the copies in which bugs are planted, and of what is built from them.
const DIRECTORY: &str = "target/bugs";

/// The bugs, each a patch to a shipped file. The first line says what is wrong.
const BUGS: &str = "crates/doorway-simulation/bugs";

/// Within this many seeds every bug must be found. The tree itself passes them.
pub(crate) const SEEDS: u64 = 4000;

/// The page with the table of bugs, and the marks around the table.
const PAGE: &str = "docs/simulation.md";
const TABLE_BEGIN: &str = "<!-- bugs: written by `cargo xtask soak --bugs` -->\n";
const TABLE_END: &str = "<!-- end of bugs -->\n";

/// The crates that a run consists of, and the explorer, which tests of the node and of the sessions
/// depend on.
const CRATES: [&str; 7] =
    ["client", "core", "node", "protocol", "search", "sessions", "simulation"];

/// Run seeds; the options are those of the program.
pub(crate) fn run(options: &[&str]) -> anyhow::Result<()> {
    let mut soak = cargo("run --quiet --release -p doorway-simulation --bin soak --");
    succeed(soak.args(options))
}

/// Plant every bug, or those whose names contain one of `only`, and look how soon the simulation
/// finds it. Each result is written into the page at once.
pub(crate) fn bugs(only: &[&str]) -> anyhow::Result<()> {
    let tree = Path::new(DIRECTORY).join("tree");
    copy(&tree)?;
    let program = build(&tree)?;
    let begin = Instant::now();
    if let Some((seed, violation)) = trial(&program)? {
        bail!("the tree without any bug fails: seed {seed}: {violation}");
    }
    println!("no bug: {SEEDS} seeds pass in {:.0} s", begin.elapsed().as_secs_f64());
    let all = patches(Path::new("."))?;
    let is_wanted =
        |path: &&PathBuf| only.is_empty() || only.iter().any(|only| stem(path).contains(only));
    let wanted: Vec<_> = all.iter().filter(is_wanted).collect();
    let mut missed = Vec::new();
    for (number, path) in wanted.iter().enumerate() {
        let name = stem(path);
        let text = fs::read_to_string(path)?;
        let what = text.lines().next().unwrap_or_default();
        patch(&tree, path, false)?;
        let found = build(&tree).and_then(|program| trial(&program));
        patch(&tree, path, true)?;
        let (seeds, violation) = match found {
            Ok(Some((seed, violation))) => ((seed + 1).to_string(), violation),
            Ok(None) => ("none".to_owned(), "NOT FOUND".to_owned()),
            Err(error) => ("none".to_owned(), format!("CANNOT BE TRIED: {error}")),
        };
        if seeds == "none" {
            missed.push(name.clone());
        }
        let (number, count, minutes) = (number + 1, wanted.len(), begin.elapsed().as_secs() / 60);
        println!("{number} of {count}, {minutes} min: {name}: {seeds} seeds: {violation}");
        write(&all, &name, &row(&name, what, &seeds, &violation))?;
    }
    ensure!(missed.is_empty(), "{SEEDS} seeds do not find {}", missed.join(", "));
    Ok(())
}

/// The name of a bug: its area and what it is.
fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn patches(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut patches = Vec::new();
    for entry in fs::read_dir(root.join(BUGS))? {
        patches.push(entry?.path());
    }
    patches.sort();
    Ok(patches)
}

/// Copy what the simulation consists of. Files that have not changed keep their times, so that
/// cargo builds only what has. An interrupted trial may have left a patch, and that is undone here.
fn copy(tree: &Path) -> anyhow::Result<()> {
    // Cargo reads the manifests of all crates in the directory, also of those of an earlier copy
    // that are not needed any more.
    for entry in fs::read_dir(tree.join("crates")).into_iter().flatten() {
        let path = entry?.path();
        if !CRATES.iter().any(|name| path.ends_with(format!("doorway-{name}"))) {
            fs::remove_dir_all(path)?;
        }
    }
    let wanted = |path: &str| {
        let of_crate = |name: &&str| path.starts_with(&format!("crates/doorway-{name}/"));
        ["Cargo.toml", "Cargo.lock"].contains(&path) || CRATES.iter().any(of_crate)
    };
    for file in files::all()?.into_iter().filter(|file| wanted(&file.path)) {
        let is_workspace = file.path == "Cargo.toml";
        let text = if is_workspace { file.text.replace(", \"xtask\"]", "]") } else { file.text };
        let to = tree.join(&file.path);
        if fs::read_to_string(&to).ok().as_ref() != Some(&text) {
            fs::create_dir_all(to.parent().unwrap_or(tree))?;
            fs::write(&to, text)?;
        }
    }
    Ok(())
}

fn patch(tree: &Path, patch: &Path, back: bool) -> anyhow::Result<()> {
    let mut apply = command("patch --quiet --strip=1 --no-backup-if-mismatch");
    apply.args(back.then_some("--reverse")).arg("--directory").arg(tree);
    apply.arg("--input").arg(fs::canonicalize(patch)?);
    output(&mut apply).map(drop)
}

/// Build the copy, and return its program.
fn build(tree: &Path) -> anyhow::Result<PathBuf> {
    let target = std::env::current_dir()?.join(DIRECTORY).join("build");
    let mut build = cargo("build --quiet --offline -p doorway-simulation --bin soak");
    build.current_dir(tree).env("CARGO_TARGET_DIR", &target).env("RUSTFLAGS", "-Awarnings");
    // A patch changes a few lines, so most of the work of the build before it can be used again.
    build.env("CARGO_INCREMENTAL", "1");
    output(&mut build)?;
    Ok(target.join("debug/soak"))
}

/// Run the seeds. Returns the first one that fails, and why.
fn trial(program: &Path) -> anyhow::Result<Option<(u64, String)>> {
    let mut soak = Command::new(program);
    let done = soak.arg("--seeds").arg(SEEDS.to_string()).output()?;
    let said = String::from_utf8_lossy(&done.stdout);
    let failed = said.lines().find_map(|line| line.strip_prefix("FAILED: seed "));
    if let Some((seed, violation)) = failed.and_then(|line| line.split_once(": ")) {
        return Ok(Some((seed.parse()?, violation.to_owned())));
    }
    let errors = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "the program failed: {errors}");
    Ok(None)
}

/// The line of a bug in the table.
fn row(name: &str, what: &str, seeds: &str, violation: &str) -> String {
    format!("{} {what} | {seeds} | {} |", row_begin(name), shorten(violation).replace('|', "/"))
}

fn row_begin(name: &str) -> String {
    let (area, name) = name.split_once('-').unwrap_or((name, ""));
    format!("| {area} | `{name}` |")
}

/// As many whole words of a text as fit into a table.
fn shorten(text: &str) -> String {
    const MOST: usize = 120;
    let mut short = String::new();
    for word in text.split(' ') {
        if short.len() + word.len() > MOST {
            return short.trim_end_matches([' ', ',']).to_owned() + " ...";
        }
        short = if short.is_empty() { word.to_owned() } else { format!("{short} {word}") };
    }
    short
}

/// Write the line of a bug into the page. Lines of patches that do not exist any more go.
fn write(all: &[PathBuf], name: &str, row: &str) -> anyhow::Result<()> {
    let page = fs::read_to_string(PAGE).with_context(|| format!("cannot read {PAGE}"))?;
    let (before, rest) = page.split_once(TABLE_BEGIN).context("the page has no place for bugs")?;
    let (table, after) = rest.split_once(TABLE_END).context("the place for bugs has no end")?;
    let mut rows = Vec::new();
    for path in all {
        let begin = row_begin(&stem(path));
        if stem(path) == name {
            rows.push(row);
        } else {
            rows.extend(table.lines().find(|line| line.starts_with(&begin)));
        }
    }
    let found = rows.iter().filter(|row| !row.contains("| none |")).count();
    let head = format!(
        "{found} of {} bugs are found within {SEEDS} seeds. The tree without a patch passes these \
         {SEEDS} seeds.\n\n\
         | area | bug | what is wrong | seeds | what is found |\n|---|---|---|--:|---|\n",
        all.len()
    );
    let table = rows.join("\n") + "\n";
    fs::write(PAGE, format!("{before}{TABLE_BEGIN}{head}{table}{TABLE_END}{after}"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_bug_can_be_planted_and_every_area_has_some() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut areas: BTreeMap<String, usize> = BTreeMap::new();
        for path in patches(&root).unwrap() {
            let text = fs::read_to_string(&path).unwrap();
            for line in text.lines().filter_map(|line| line.strip_prefix("+++ b/")) {
                assert!(!line.contains("simulation"), "{path:?} changes what is not shipped");
                assert!(line.contains("/src/"), "{path:?} changes what is not shipped");
            }
            let mut apply = Command::new("git");
            apply.args(["apply", "--check"]).arg(&path).current_dir(&root);
            let done = apply.output().unwrap();
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "{} does not fit the tree: {said}", path.display());
            let area = stem(&path).split('-').next().unwrap_or_default().to_owned();
            *areas.entry(area).or_default() += 1;
        }
        for area in ["client", "ledger", "links", "members", "sessions", "views"] {
            assert!(areas.get(area).is_some_and(|count| *count >= 5), "{area}: {areas:?}");
        }
        assert!(areas.values().sum::<usize>() >= 30, "{areas:?}");
    }

    #[test]
    fn every_bug_has_a_row_and_is_found() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let page = fs::read_to_string(root.join(PAGE)).unwrap();
        let (_, rest) = page.split_once(TABLE_BEGIN).unwrap();
        let (table, _) = rest.split_once(TABLE_END).unwrap();
        let rows: Vec<&str> = table.lines().filter(|line| line.contains(" | `")).collect();
        let bugs: Vec<String> =
            patches(&root).unwrap().iter().map(|path| row_begin(&stem(path))).collect();
        for bug in &bugs {
            let row = rows.iter().filter(|row| row.starts_with(bug)).count();
            assert_eq!(row, 1, "rows of {bug}; `cargo xtask soak --bugs NAME` writes one");
        }
        assert_eq!(rows.len(), bugs.len(), "rows without a patch");
        for row in &rows {
            assert!(!row.contains("| none |"), "not found: {row}");
        }
        let head = format!("{0} of {0} bugs are found within {SEEDS} seeds.", bugs.len());
        assert!(table.starts_with(&head), "the table does not begin with: {head}");
    }

    #[test]
    fn a_long_text_is_cut_between_words() {
        let text = "word, ".repeat(40);
        let short = shorten(&text);
        assert!(short.len() < 130 && short.ends_with("word ..."), "{short}");
        assert_eq!(shorten("two words"), "two words");
    }
}
