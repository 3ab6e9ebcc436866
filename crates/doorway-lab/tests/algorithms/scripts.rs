//! The scripts under `tests/scripts`: each file is run and must have the effects written in it.
//!
//! `UPDATE=1 cargo test -p doorway-lab --test algorithms scripts::` writes the actual effects into
//! the files. Commit the change only if you can say why it is right.

use std::fs;
use std::path::{Path, PathBuf};

use doorway_lab::script;

use crate::listed::listed;

/// Every file of the algorithms in the list, with its text.
fn stories() -> Vec<(PathBuf, String)> {
    let list = |path: &Path| {
        let entries = fs::read_dir(path).expect("a folder of stories");
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("a story").path()).collect();
        paths.sort();
        paths
    };
    let folders = list(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts"));
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a story is text");
        (path, text)
    };
    let name =
        |folder: &PathBuf| folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let folders = folders.iter().filter(|folder| listed(&name(folder)));
    folders.flat_map(|folder| list(folder)).map(read).collect()
}

#[test]
fn scripts_have_the_effects_written_in_them() {
    let update = std::env::var_os("UPDATE").is_some();
    let mut wrong = Vec::new();
    for (path, text) in stories() {
        match script::run(&text) {
            Err(error) => {
                wrong.push(format!("{}:{}: {}", path.display(), error.line, error.message));
            }
            Ok(outcome) if outcome.text == text => {}
            Ok(outcome) if update => fs::write(&path, outcome.text).unwrap(),
            Ok(outcome) => wrong.push(difference(&path, &text, &outcome.text)),
        }
    }
    assert!(wrong.is_empty(), "{}\n(UPDATE=1 rewrites)", wrong.join("\n\n"));
}

#[test]
fn scripts_cite_their_source_and_are_in_the_directory_of_their_algorithm() {
    for (path, text) in stories() {
        assert!(text.starts_with("# "), "{} opens with its source", path.display());
        let folder = path.parent().unwrap().file_name().unwrap().to_str().unwrap();
        let run = text.lines().find(|line| line.starts_with("run ")).unwrap();
        assert_eq!(run.split_whitespace().nth(1), Some(folder), "{}", path.display());
    }
}

/// The part in which two texts differ, from both of them.
fn difference(path: &Path, expected: &str, found: &str) -> String {
    let (old, new): (Vec<_>, Vec<_>) = (expected.lines().collect(), found.lines().collect());
    let same = |(a, b): &(&&str, &&str)| a == b;
    let head = old.iter().zip(&new).take_while(same).count();
    let room = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(room).take_while(same).count();
    let mut lines = vec![format!("{}:{}: other effects", path.display(), head + 1)];
    lines.extend(old[head.saturating_sub(3)..head].iter().map(|line| format!("  {line}")));
    lines.extend(old[head..old.len() - tail].iter().map(|line| format!("- {line}")));
    lines.extend(new[head..new.len() - tail].iter().map(|line| format!("+ {line}")));
    lines.join("\n")
}

/// A small random generator.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }
}

/// Scripts with words and lines lost, doubled, exchanged or made up. Each one runs or is refused.
#[test]
fn no_text_makes_a_script_panic() {
    let stories = stories();
    let words: Vec<&str> = "acquire release deliver drop duplicate crash detect forget stabilize \
        show count run quorum shared ---- # = 0 1 2 3 4 99 18446744073709551616 -1 n=2 n=100 é \
        channel=fifo channel=unordered permits=2 permits=4294967295 seats=2 holder=1 holder=2,2 \
        tree=star tree=balanced:4294967295 topology=ring weights=0,0 weights=4294967295,1,1 \
        quorums=grid Request Reply \u{0} \n \n\n"
        .split(' ')
        .collect();
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    let mut played = 0;
    for _ in 0..3000 {
        let (_, story) = &stories[dice.below(stories.len())];
        let mut tokens: Vec<&str> = story.split_inclusive([' ', '\n']).collect();
        for _ in 0..=dice.below(4) {
            let (at, other) = (dice.below(tokens.len()), dice.below(tokens.len()));
            match dice.below(5) {
                0 => drop(tokens.remove(at)),
                1 => tokens.insert(at, tokens[at]),
                2 => tokens.swap(at, other),
                3 => tokens.truncate(at + 1),
                _ => tokens.splice(at..at, [words[dice.below(words.len())], " "]).for_each(drop),
            }
            tokens.push("\n");
        }
        played += usize::from(script::run(&tokens.concat()).is_ok());
    }
    assert!(played > 300, "only {played} texts could be run");
}
