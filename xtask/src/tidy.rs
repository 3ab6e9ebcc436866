//! The rules of style that no other tool checks.
//!
//! A broken rule fails. The length of a file is advice: it is printed and never fails.

use std::path::Path;

use anyhow::bail;

use crate::files::{self, File};
use crate::{imitations, layers, pure};

/// Above this many lines a file is mentioned, in case it holds more than one concept.
const FILE_LINES: usize = 400;
/// The longest line of source, in columns.
const COLUMNS: usize = 100;
/// Documents that must exist.
const DOCUMENTS: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];
/// Paths that exist on one machine only. Each is in two parts, so that this file passes.
const MACHINE_PATHS: [(&str, &str); 4] =
    [("/ro", "ot/"), ("/ho", "me/"), ("/wo", "rk/"), ("/Us", "ers/")];
/// Words that do not belong in a comment, in two parts, and what to write instead.
const COMMENT_WORDS: [(&str, &str, &str); 3] = [
    ("who", "ever", "name the subject: the client, the node, the thread"),
    ("so ma", "ny", "name the number: `count` members, K permits"),
    ("FIX", "ME", "fix it before you commit"),
];
/// Verbs that stand before "no" and a noun in a riddle, in two parts: "a library is not a program".
const NO_VERBS: [(&str, &str); 2] = [("is n", "o "), ("are n", "o ")];
/// Words after which and before which "no" is right: there is none, and no longer.
const THERE: &str = "there";
const AFTER_NO: [&str; 11] = [
    "better", "earlier", "faster", "later", "less", "longer", "matter", "more", "other", "wider",
    "worse",
];
/// A doc comment that opens with this does not stand alone.
const NOT_ALONE: &str = "The same";
/// What `cargo xtask test` shows for what did not run, in two parts. A test calls `skip` of the
/// file below, which also fails in CI.
const SKIP_WORD: (&str, &str) = ("SKIP", "PED");
/// Where tests that cannot run are reported.
const SKIPS: &str = "crates/doorway-daemon/tests/common/skip.rs";
/// Names that say nothing about a type: participles, adjectives, pronouns and verbs. A type has a
/// noun as its name, and one that says which waits or words it holds.
const VAGUE_TYPES: [&str; 48] = [
    "Alone",
    "Asked",
    "Begin",
    "CarryOut",
    "Chosen",
    "Current",
    "Deed",
    "Describe",
    "Desk",
    "Done",
    "Doubt",
    "Escaped",
    "Fixed",
    "Found",
    "Hasty",
    "Held",
    "Here",
    "Identify",
    "Inner",
    "Kept",
    "Known",
    "Located",
    "Looks",
    "Lost",
    "Mind",
    "OfRoom",
    "Patient",
    "Pending",
    "Riders",
    "Said",
    "Seen",
    "Sent",
    "Shared",
    "Shown",
    "Sociable",
    "Spoiled",
    "Stale",
    "Standing",
    "Told",
    "Turn",
    "Unarranged",
    "Unsure",
    "Volatile",
    "Waits",
    "What",
    "Which",
    "Wish",
    "Words",
];
/// Where the algorithms are, one file each.
pub(crate) const ALGORITHMS: &str = "crates/doorway-core/src/algorithms/";
/// The crate with the algorithms between nodes, and one with algorithms between threads, some of
/// which have the same names. No other crate may use the module of a single algorithm.
const MAY_NAME: [&str; 2] = ["crates/doorway-core/", "crates/doorway-threads/"];
/// A part of another crate that is about single algorithms: each flaw is one of a certain text.
const FLAWS: &str = "crates/doorway-lab/src/flaws/";

/// Check every file of the repository.
pub(crate) fn run() -> anyhow::Result<()> {
    let files = files::all()?;
    for advice in long_files(&files) {
        println!("advice: {advice}");
    }
    let complaints = complaints(&files);
    for complaint in &complaints {
        println!("{complaint}");
    }
    match complaints.len() {
        0 => Ok(()),
        count => bail!("{count} untidy places"),
    }
}

/// Source files that may hold more than one concept.
fn long_files(files: &[File]) -> impl Iterator<Item = String> {
    let lengths = files.iter().filter(|file| file.is_source()).map(|file| {
        let lines = file.text.lines().count();
        (file, lines)
    });
    lengths
        .filter(|(_, lines)| *lines > FILE_LINES)
        .map(|(file, lines)| format!("{}: {lines} lines; is it still one concept?", file.path))
}

/// Everything that is wrong with these files, as `path:line: what`.
fn complaints(files: &[File]) -> Vec<String> {
    let modules: Vec<&str> = files.iter().filter_map(|file| algorithm(&file.path)).collect();
    let mut complaints = Vec::new();
    for file in files {
        complaints.extend(machine_paths(file));
        complaints.extend(no_nouns(file));
        complaints.extend(layers::complaints(file));
        if file.is_source() {
            complaints.extend(source_complaints(file));
            complaints.extend(pure::complaints(file));
            complaints.extend(comment_complaints(file));
            complaints.extend(vague_types(file));
            complaints.extend(unreported_skips(file));
            complaints.extend(driver_complaints(file, &modules));
        }
    }
    complaints.extend(imitations::complaints(files));
    complaints.extend(broken_links(files));
    let missing = DOCUMENTS.iter().filter(|path| !files.iter().any(|file| file.path == **path));
    complaints.extend(missing.map(|path| format!("{path}: is missing")));
    complaints
}

/// The module of an algorithm's file.
fn algorithm(path: &str) -> Option<&str> {
    let module = path.strip_prefix(ALGORITHMS)?.strip_suffix(".rs")?;
    (module != "mod" && !module.contains('/')).then_some(module)
}

/// Links in documents that lead to no file.
fn broken_links(files: &[File]) -> Vec<String> {
    let there = |path: &str| {
        let below = format!("{path}/");
        let known = files.iter().any(|file| file.path == path || file.path.starts_with(&below));
        // A picture is not text, so it is not among the files.
        known || path.strip_suffix(".png").is_some() && Path::new(path).exists()
    };
    let documents = files.iter().filter(|file| file.path.strip_suffix(".md").is_some());
    let mut broken = Vec::new();
    for file in documents {
        let targets = file.text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|target| !target.contains(':') && !target.starts_with('#')) {
            let target = target.split('#').next().unwrap_or(target);
            if !there(&resolve(&file.path, target)) {
                broken.push(format!("{}: no such file: {target}", file.path));
            }
        }
    }
    broken
}

/// Where a link in the document at `from` leads.
fn resolve(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/').filter(|part| !["", "."].contains(part)) {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

/// Lines with a path that exists on one machine only.
fn machine_paths(file: &File) -> impl Iterator<Item = String> {
    let lines = file.text.lines().zip(1..);
    let found = lines.filter(|(line, _)| {
        MACHINE_PATHS.iter().any(|(one, other)| line.contains(&format!("{one}{other}")))
    });
    found.map(|(_, number)| format!("{}:{number}: a machine's path", file.path))
}

/// Lines that deny what something is with "no" and a noun.
fn no_nouns(file: &File) -> Vec<String> {
    let is_text = file.is_source() || file.path.strip_suffix(".md").is_some();
    let mut complaints = Vec::new();
    let mut previous = "";
    for (line, number) in file.text.lines().zip(1..).filter(|_| is_text) {
        for (one, other) in NO_VERBS {
            let verb = format!("{one}{other}");
            let wrong = line.match_indices(&verb).any(|(at, _)| {
                let before = line[..at].trim_start_matches(['/', '!', ' ']);
                let before = if before.is_empty() { previous } else { before };
                let is_word = !line[..at].ends_with(char::is_alphanumeric);
                let there = before.trim_end().to_lowercase().ends_with(THERE);
                let after = line[at + verb.len()..].split(|c: char| !c.is_alphabetic()).next();
                is_word && !there && !after.is_some_and(|word| AFTER_NO.contains(&word))
            });
            if wrong {
                let instead = "say what it is not: \"is not a\"";
                complaints.push(format!("{}:{number}: \"{verb}\": {instead}", file.path));
            }
        }
        previous = line;
    }
    complaints
}

fn source_complaints(file: &File) -> Vec<String> {
    let path = &file.path;
    let mut complaints = Vec::new();
    if !file.text.starts_with("//! ") {
        complaints.push(format!("{path}:1: does not open with `//!`"));
    }
    for (line, number) in file.text.lines().zip(1..) {
        let columns = line.chars().count();
        if columns > COLUMNS && !is_one_string(line) && !is_table(line) {
            complaints.push(format!("{path}:{number}: {columns} columns, at most {COLUMNS}"));
        }
    }
    complaints
}

/// Comments that a reader who is new to the project would stumble over.
fn comment_complaints(file: &File) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut previous = None;
    for (line, number) in file.text.lines().zip(1..) {
        let doc = line.trim_start().strip_prefix("///");
        if previous.is_none() && doc.is_some_and(|doc| doc.trim_start().starts_with(NOT_ALONE)) {
            let what = format!("a doc comment that opens with \"{NOT_ALONE}\"");
            complaints.push(format!("{}:{number}: {what}: say what the item is", file.path));
        }
        previous = doc;
        let Some((_, comment)) = line.split_once("//") else { continue };
        for (one, other, instead) in COMMENT_WORDS {
            let word = format!("{one}{other}");
            if has_word(comment, &word) {
                complaints.push(format!("{}:{number}: \"{word}\": {instead}", file.path));
            }
        }
    }
    complaints
}

/// Types whose names say nothing about them.
fn vague_types(file: &File) -> impl Iterator<Item = String> {
    let named =
        file.text.lines().zip(1..).filter_map(|(line, number)| Some((type_of(line)?, number)));
    let vague = named.filter(|(name, _)| VAGUE_TYPES.contains(name));
    vague.map(|(name, number)| format!("{}:{number}: the type `{name}`: use a noun", file.path))
}

/// Tests that say themselves that they did not run. Only `skip` tells that to the summary.
fn unreported_skips(file: &File) -> impl Iterator<Item = String> {
    let word = format!("{}{}", SKIP_WORD.0, SKIP_WORD.1);
    let is_test = file.path.contains("/tests/") && file.path != SKIPS;
    let lines = file.text.lines().zip(1..).filter(move |(line, _)| is_test && line.contains(&word));
    lines
        .map(|(_, number)| format!("{}:{number}: a skipped test calls `skip` ({SKIPS})", file.path))
}

/// The name of the type that is declared on this line.
fn type_of(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) => rest.split_once(' ')?.1,
        None => line,
    };
    let (kind, rest) = line.split_once(' ')?;
    let declares = ["struct", "enum", "union", "trait", "type"].contains(&kind);
    declares.then(|| rest.split(|c: char| !c.is_alphanumeric()).next())?
}

/// Does `text` have `word` in it, in either case, and not as the end of another word?
fn has_word(text: &str, word: &str) -> bool {
    let (text, word) = (text.to_lowercase(), word.to_lowercase());
    text.match_indices(&word).any(|(at, _)| !text[..at].ends_with(char::is_alphabetic))
}

/// Is the line long because of one string, such as the title of a paper? The formatter leaves such
/// a line alone too.
fn is_one_string(line: &str) -> bool {
    let (first, last) = (line.find('"'), line.rfind('"'));
    let string = first.zip(last).map_or(0, |(first, last)| line[first..last].chars().count());
    !line.trim_start().starts_with("//") && line.chars().count() - string <= COLUMNS / 2
}

/// Is the line a row of a table in a comment? Such a row cannot be broken.
fn is_table(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("//! |") || line.starts_with("/// |")
}

/// Places outside the core that name the module of an algorithm. Adding an algorithm must not need
/// an edit there.
fn driver_complaints(file: &File, modules: &[&str]) -> Vec<String> {
    let source = file.path.starts_with("crates/") && file.path.contains("/src/");
    let may =
        MAY_NAME.iter().chain([&FLAWS]).any(|crate_or_part| file.path.starts_with(crate_or_part));
    if !source || may {
        return Vec::new();
    }
    let tests = file.text.find("#[cfg(test)]\nmod tests {").unwrap_or(file.text.len());
    let code = file.text[..tests]
        .lines()
        .zip(1..)
        .filter(|(line, _)| !line.trim_start().starts_with("//"));
    let named = code.filter_map(|(line, number)| {
        let module = modules.iter().find(|module| line.contains(&format!("{module}::")))?;
        Some(format!("{}:{number}: only the core and the threads may name {module}", file.path))
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: impl Into<String>) -> File {
        File { path: path.to_owned(), text: text.into() }
    }

    /// The complaints about a tidy repository with one more file.
    fn with(extra: File) -> Vec<String> {
        let mut files: Vec<File> = DOCUMENTS.iter().map(|path| file(path, "# x\n")).collect();
        files.push(file("crates/doorway-core/src/algorithms/lamport.rs", "//! Lamport.\n"));
        files.push(extra);
        complaints(&files)
    }

    #[test]
    fn a_tidy_file_passes() {
        let text = format!("//! Tidy.\n\nconst PAPER: &str = \"{}\";\n", "x".repeat(120));
        assert_eq!(with(file("a.rs", text)), [""; 0]);
        assert_eq!(with(file("a.rs", "//! Also many.\n/// It is\n/// The same.\n")), [""; 0]);
        assert_eq!(
            with(file("a.rs", "//! x\nstruct KeptLock;\nenum E {\n    Kept,\n}\n")),
            [""; 0]
        );
    }

    #[test]
    fn no_is_right_after_there_and_before_a_comparative() {
        let [(one, other), _] = NO_VERBS;
        let text = format!(
            "//! There {one}{other}lock, and there\n//! {one}{other}key. It {one}{other}longer free.\n"
        );
        assert_eq!(with(file("a.rs", text)), [""; 0]);
    }

    #[test]
    fn a_long_file_is_advice_only() {
        let long = || file("a.rs", "//! x\n".repeat(FILE_LINES + 1));
        assert_eq!(long_files(&[long()]).count(), 1);
        assert_eq!(with(long()), [""; 0]);
    }

    #[test]
    fn every_rule_has_teeth() {
        let path = MACHINE_PATHS[0];
        let (who, many) = (COMMENT_WORDS[0], COMMENT_WORDS[1]);
        for (untidy, complaint) in [
            (file("a.rs", "fn main() {}\n"), "does not open"),
            (file("a.rs", format!("//! {}\n", "x".repeat(97))), "101 columns, at most 100"),
            (file("a.rs", format!("//! x\n    /// {NOT_ALONE} as x.\n")), "opens with"),
            (file("a.rs", format!("//! x\n/// {}{} is\n", who.0, who.1)), "name the subject"),
            (file("a.rs", format!("//! x\nx(); // {}{}\n", many.0, many.1)), "name the number"),
            (file("a.rs", "//! x\nstruct Inner {\n"), "the type `Inner`"),
            (file("a.md", format!("It {}{}lock.", NO_VERBS[0].0, NO_VERBS[0].1)), "is not a"),
            (file("a.rs", "//! x\n    pub(crate) enum Kept<T> {\n"), "the type `Kept`"),
            (file("a.rs", "//! x\npub type Found = u8;\n"), "the type `Found`"),
            (file("a.md", format!("see {}{}x\n", path.0, path.1)), "a machine's path"),
            (
                file("a/tests/a.rs", format!("//! x\n\"{}{}\"\n", SKIP_WORD.0, SKIP_WORD.1)),
                "calls `skip`",
            ),
            (file("docs/a.md", "[x](../README.md#y) [y](b.svg)"), "no such file: b.svg"),
            (file("crates/doorway/src/a.rs", "//! x\nuse lamport::X;\n"), "may name lamport"),
        ] {
            let found = with(untidy);
            assert!(found.len() == 1 && found[0].contains(complaint), "{complaint}: {found:?}");
        }
        assert!(complaints(&[]).iter().any(|found| found == "CHANGELOG.md: is missing"));
        let flaw = file("crates/doorway-lab/src/flaws/a.rs", "//! x\nuse lamport::X;\n");
        assert_eq!(with(flaw), [""; 0], "a flaw is one of a certain algorithm");
    }
}
