//! The rules of style that no other tool knows, so that no reviewer has to.

use anyhow::bail;

use crate::files::{self, File};
use crate::functions::functions;
use crate::layers;

/// Lines in a file, and in the file of an algorithm.
const FILE_LINES: usize = 400;
const ALGORITHM_LINES: usize = 200;
/// Lines in a function.
const FUNCTION_LINES: usize = 70;
/// Columns in a line of source.
const COLUMNS: usize = 100;
/// What a reader is asked to read before the code.
const DOCUMENTS: [(&str, usize); 4] = [
    ("README.md", 120),
    ("ARCHITECTURE.md", 149),
    ("CONTRIBUTING.md", 300),
    ("CHANGELOG.md", usize::MAX),
];
/// What a developer leaves behind; in two parts, so that this file passes.
const LEFTOVERS: [(&str, &str); 4] =
    [("db", "g!("), ("tod", "o!("), ("unimplement", "ed!("), ("FIX", "ME")];
/// Paths that exist on one machine only.
const MACHINE_PATHS: [(&str, &str); 4] =
    [("/ro", "ot/"), ("/ho", "me/"), ("/wo", "rk/"), ("/Us", "ers/")];
/// Where the algorithms live, one file each.
pub(crate) const ALGORITHMS: &str = "crates/doorway-core/src/algorithms/";
/// Drivers run every algorithm and know none of them by name.
const DRIVERS: [&str; 2] = ["crates/doorway-lab/src/", "crates/doorway/src/"];

/// Look at every file.
pub(crate) fn run() -> anyhow::Result<()> {
    let files = files::all()?;
    let complaints = complaints(&files);
    for complaint in &complaints {
        println!("{complaint}");
    }
    match complaints.len() {
        0 => Ok(()),
        many => bail!("{many} untidy places"),
    }
}

/// Everything that is wrong with these files, as `path:line: what`.
fn complaints(files: &[File]) -> Vec<String> {
    let modules: Vec<&str> = files.iter().filter_map(|file| algorithm(&file.path)).collect();
    let mut complaints = Vec::new();
    for file in files {
        complaints.extend(text_complaints(file));
        complaints.extend(layers::complaints(file));
        if file.is_source() {
            complaints.extend(source_complaints(file));
            complaints.extend(driver_complaints(file, &modules));
        }
    }
    complaints.extend(broken_links(files));
    for (path, limit) in DOCUMENTS {
        match files.iter().find(|file| file.path == path) {
            None => complaints.push(format!("{path}: is missing")),
            Some(file) => complaints.extend(too_long(file, limit)),
        }
    }
    complaints
}

/// The module of an algorithm's file.
fn algorithm(path: &str) -> Option<&str> {
    let module = path.strip_prefix(ALGORITHMS)?.strip_suffix(".rs")?;
    (module != "mod" && !module.contains('/')).then_some(module)
}

fn too_long(file: &File, limit: usize) -> Option<String> {
    let lines = file.text.lines().count();
    (lines > limit).then(|| format!("{}: {lines} lines, at most {limit}", file.path))
}

/// Links of a document to files that are not there.
fn broken_links(files: &[File]) -> Vec<String> {
    let there = |path: &str| {
        let below = format!("{path}/");
        files.iter().any(|file| file.path == path || file.path.starts_with(&below))
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

fn text_complaints(file: &File) -> impl Iterator<Item = String> {
    let lines = file.text.lines().zip(1..);
    lines.flat_map(move |(line, number)| {
        let found = |(one, other): &(&str, &str)| line.contains(&format!("{one}{other}"));
        let at = format!("{}:{number}", file.path);
        let path = MACHINE_PATHS.iter().any(found).then(|| format!("{at}: a machine's path"));
        let left = file.is_source() && LEFTOVERS.iter().any(found);
        let leftover = left.then(|| format!("{at}: a leftover"));
        path.into_iter().chain(leftover)
    })
}

fn source_complaints(file: &File) -> Vec<String> {
    let path = &file.path;
    let mut complaints = Vec::new();
    if !file.text.starts_with("//! ") {
        complaints.push(format!("{path}:1: does not open with `//!`"));
    }
    let limit = if algorithm(path).is_some() { ALGORITHM_LINES } else { FILE_LINES };
    complaints.extend(too_long(file, limit));
    for function in functions(&file.text) {
        if function.length > FUNCTION_LINES {
            let (line, length) = (function.line, function.length);
            let what = format!("a function of {length} lines, at most {FUNCTION_LINES}");
            complaints.push(format!("{path}:{line}: {what}"));
        }
    }
    for (line, number) in file.text.lines().zip(1..) {
        let columns = line.chars().count();
        if columns > COLUMNS && !is_one_string(line) && !is_table(line) {
            complaints.push(format!("{path}:{number}: {columns} columns, at most {COLUMNS}"));
        }
    }
    complaints
}

/// A line that is long because of one string, such as the title of a paper, is left alone, as the
/// formatter does.
fn is_one_string(line: &str) -> bool {
    let (first, last) = (line.find('"'), line.rfind('"'));
    let string = first.zip(last).map_or(0, |(first, last)| line[first..last].chars().count());
    !line.trim_start().starts_with("//") && line.chars().count() - string <= COLUMNS / 2
}

/// A row of a table in a comment cannot be broken.
fn is_table(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("//! |") || line.starts_with("/// |")
}

/// Adding an algorithm must edit nothing outside core, so nothing there may name one's module.
fn driver_complaints(file: &File, modules: &[&str]) -> Vec<String> {
    if !DRIVERS.iter().any(|driver| file.path.starts_with(driver)) {
        return Vec::new();
    }
    let code = file.text.lines().zip(1..).filter(|(line, _)| !line.trim_start().starts_with("//"));
    let named = code.filter_map(|(line, number)| {
        let module = modules.iter().find(|module| line.contains(&format!("{module}::")))?;
        Some(format!("{}:{number}: a driver that knows {module}", file.path))
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: impl Into<String>) -> File {
        File { path: path.to_owned(), text: text.into() }
    }

    /// A tidy repository, and one file more.
    fn with(extra: File) -> Vec<String> {
        let mut files: Vec<File> = DOCUMENTS.iter().map(|(path, _)| file(path, "# x\n")).collect();
        files.push(file("crates/doorway-core/src/algorithms/lamport.rs", "//! Lamport.\n"));
        files.push(extra);
        complaints(&files)
    }

    #[test]
    fn a_tidy_file_passes() {
        let text = format!("//! Tidy.\n\nconst PAPER: &str = \"{}\";\n", "x".repeat(120));
        assert_eq!(with(file("a.rs", text)), [""; 0]);
    }

    #[test]
    fn every_rule_has_teeth() {
        let body = "    x();\n".repeat(FUNCTION_LINES);
        let (leftover, path) = (LEFTOVERS[0], MACHINE_PATHS[0]);
        let long = |path: &str, lines: usize| file(path, "//! x\n".repeat(lines));
        for (untidy, complaint) in [
            (file("a.rs", "fn main() {}\n"), "does not open"),
            (long("a.rs", FILE_LINES + 1), "401 lines, at most 400"),
            (long(&format!("{ALGORITHMS}a.rs"), ALGORITHM_LINES + 1), "201 lines, at most 200"),
            (file("a.rs", format!("//! x\nfn long() {{\n{body}}}\n")), "a function of 72 lines"),
            (file("a.rs", format!("//! {}\n", "x".repeat(97))), "101 columns, at most 100"),
            (file("a.rs", format!("//! x\n{}{}1)\n", leftover.0, leftover.1)), "a leftover"),
            (file("a.md", format!("see {}{}x\n", path.0, path.1)), "a machine's path"),
            (file("docs/a.md", "[x](../README.md#y) [y](b.svg)"), "no such file: b.svg"),
            (file("crates/doorway/src/a.rs", "//! x\nuse lamport::X;\n"), "knows lamport"),
        ] {
            let found = with(untidy);
            assert!(found.len() == 1 && found[0].contains(complaint), "{complaint}: {found:?}");
        }
        assert!(complaints(&[]).iter().any(|found| found == "CHANGELOG.md: is missing"));
    }
}
