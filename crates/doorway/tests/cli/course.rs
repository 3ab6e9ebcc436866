//! Every command of docs/course.md works, and prints what the lecture says.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const PAGE: &str = include_str!("../../../../docs/course.md");

/// A command of the page, and the lines that are shown below it.
struct CommandExample {
    line: &'static str,
    output: Vec<&'static str>,
}

/// The commands of the lecture: in blocks of a console, after a prompt.
fn lecture() -> Vec<CommandExample> {
    let mut all: Vec<CommandExample> = Vec::new();
    for block in PAGE.split("```console\n").skip(1).filter_map(|part| part.split("```").next()) {
        for line in block.lines() {
            match (line.strip_prefix("$ doorway "), all.last_mut()) {
                (Some(line), _) => all.push(CommandExample { line, output: Vec::new() }),
                (None, Some(shown)) if line != "..." => shown.output.push(line.trim()),
                _ => {}
            }
        }
    }
    all
}

/// The commands of the tables and of the text: in backquotes, outside of blocks.
fn quoted() -> BTreeSet<&'static str> {
    let text = PAGE.split("```").step_by(2).flat_map(str::lines);
    let quoted = text.flat_map(|line| line.split('`').skip(1).step_by(2));
    quoted.filter_map(|text| text.strip_prefix("doorway ")).collect()
}

/// The words of a command line, in which single quotes may stand.
fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(|word| word.replace('\'', "")).collect()
}

/// Run a command in this folder. It may find a violation, but must not be refused or be cut short.
fn run(folder: &Path, line: &str) -> Result<String, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_doorway"));
    let done = command.args(words(line)).current_dir(folder).output().expect("it runs");
    let (printed, errors) = (done.stdout, String::from_utf8_lossy(&done.stderr));
    match done.status.code() {
        Some(0 | 1) => Ok(String::from_utf8_lossy(&printed).into_owned()),
        code => Err(format!("doorway {line}: {code:?} {errors}")),
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder for the test");
    folder
}

#[test]
fn the_lecture_can_be_given_as_written() {
    let folder = folder("lecture");
    let shown = lecture();
    assert!(shown.len() >= 20, "a lecture of 90 minutes shows {} commands", shown.len());
    for CommandExample { line, output } in shown {
        let printed = run(&folder, line).unwrap_or_else(|error| panic!("{error}"));
        assert!(!output.is_empty(), "the page shows what `doorway {line}` prints");
        for expected in output {
            let found = printed.lines().any(|line| line.trim() == expected);
            assert!(found, "$ doorway {line}\ndoes not print '{expected}', but:\n{printed}");
        }
    }
}

#[test]
fn every_command_in_backquotes_works() {
    let folder = folder("course");
    let commands: Vec<_> = quoted().into_iter().collect();
    assert!(commands.len() >= 60, "{} commands", commands.len());
    let of_text = commands.iter().any(|line| line.ends_with("--format itf"));
    assert!(of_text, "commands outside of tables are run too");
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(line) = commands.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(error) = run(&folder, line) {
                        failures.lock().expect("no thread panics").push(error);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no thread panics");
    assert!(failures.is_empty(), "{failures:#?}");
}

/// A text that the page goes through: the heading of its part, what has a row, in the order of the
/// text, and the sections that the page says have none.
struct SourceText {
    heading: &'static str,
    rows: &'static [&'static str],
    without: &'static [&'static str],
}

/// Every section of every text, and every title of the slides.
const TEXTS: [SourceText; 5] = [
    SourceText {
        heading: "Mühl",
        rows: &[
            "Mutual exclusion",
            "Requirements",
            "Solutions for centralized systems",
            "Centralized solution",
            "Broadcast algorithm",
            "Improvement by Ricart and Agrawala",
            "Optimization of Roucairol and Carvalho",
            "Better algorithms?",
            "Quorum-based algorithms",
            "Mesh algorithm",
            "Basic idea of deadlock avoidance",
            "Triangular arrangement",
            "Solution for load balancing",
            "Minimal arrangement",
            "Exemplary minimal arrangements",
            "Majority-based approaches",
            "Simple token ring",
            "Token-based solution",
            "Solution with a ring",
            "Solution with complete mesh",
            "Lift algorithm",
            "Message complexity per access",
            "Exam question 1",
            "Exam question 2",
            "Exam questions 3 and 4",
            "Exam question 5",
            "Exam question 6",
            "Exam question 7",
            "Exam question 8",
        ],
        without: &[],
    },
    SourceText {
        heading: "Carvalho and Roucairol 1983",
        rows: &["the algorithm", "response:", "response: Table I", "note 4", "appendix:"],
        without: &[],
    },
    SourceText {
        heading: "Maekawa 1985",
        rows: &[
            "2,",
            "3,",
            "3, figure 1",
            "4,",
            "5, the example and figure 2",
            "6.1,",
            "6.2,",
            "6.3,",
            "7,",
            "7, Method 1",
            "7, Method 2",
            "8.1, light demand, Table I",
            "8.1, Table II",
            "8.2,",
            "9,",
            "9, Table III",
            "10,",
        ],
        without: &["1", "11"],
    },
    SourceText {
        heading: "Raymond 1989",
        rows: &["2,", "3,", "4,", "5.1,", "5.2,", "5.3,", "5.4,", "6.1,", "6.2 and 6.3,", "7,"],
        without: &["1", "8"],
    },
    SourceText {
        heading: "Raynal 1986",
        rows: &[
            "1.2.1 ", "1.2.2 ", "1.2.3 ", "1.2.4 ", "2.2 ", "2.3 ", "2.4 ", "2.5 ", "2.6 ", "2.7 ",
            "2.8 ", "2.9 ", "2.10 ", "3.1 ", "3.2.1 ", "3.2.2 ", "3.2.3 ", "3.2.4 ", "3.2.5 ",
            "3.3.1 ", "3.3.2 ", "4.2 ", "4.3 ", "4.4 ", "4.5 ", "4.6 ", "5.2 ", "5.3 ", "5.4 ",
            "5.5 ", "5.6 ", "5.7 ", "6.2 ", "6.3 ",
        ],
        without: &["1.1", "1.3", "2.1", "4.1", "5.1", "6.1"],
    },
];

/// The part of the page with this heading.
fn part(heading: &str) -> &'static str {
    let (_, part) = PAGE.split_once(&format!("\n## {heading}")).expect("a part about the text");
    part.split("\n## ").next().unwrap_or(part)
}

#[test]
fn every_section_and_every_slide_of_every_text_has_its_row() {
    for SourceText { heading, rows, without } in TEXTS {
        let part = part(heading);
        let mut lines = part.lines();
        for row in rows {
            let opening = format!("| {row}");
            assert!(lines.any(|line| line.starts_with(&opening)), "{heading}: {row}");
        }
        let (opening, _) = part.split_once("\n| ").expect("a table");
        for section in without {
            let words = opening.split(|c: char| !c.is_ascii_digit() && c != '.');
            let named = words.into_iter().any(|word| word.trim_end_matches('.') == *section);
            assert!(named, "{heading}: section {section}");
        }
        // Each row has a command, or belongs to the row above that has one.
        let table = part.lines().filter(|line| line.starts_with("| ")).skip(1);
        for line in table.filter(|line| !line.starts_with("| size |")) {
            assert!(line.contains("| `doorway "), "{heading}: {line}");
        }
    }
    for family in ["by messages", "between threads"] {
        let rows = part("Raynal 1986").lines().filter(|line| line.starts_with("| 6."));
        assert_eq!(rows.filter(|line| line.contains(family)).count(), 2, "{family}");
    }
}

#[test]
fn the_page_names_what_newer_commands_show() {
    for what in ["ricart-agrawala-ring", "--begin one-pass", "threads check lock"] {
        assert!(quoted().iter().any(|command| command.contains(what)), "{what}");
    }
}
