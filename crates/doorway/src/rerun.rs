//! Commands to paste: how to see a violation again, and the command as given with one more option.

use std::env;
use std::fmt::Display;

use anyhow::anyhow;

/// The error of a run with a violation, with the command that shows it again.
pub(crate) fn failure(violation: impl Display, seed: u64) -> anyhow::Error {
    anyhow!("{violation}; seed {seed} shows it again: {}", command(words(), seed))
}

/// The command as it was given, with one more option in front of its arguments.
pub(crate) fn with_option(option: &str) -> String {
    let mut words = words();
    words.insert(words.len().min(1), option.to_owned());
    format!("doorway {}", words.join(" "))
}

/// The words of the command after its name.
fn words() -> Vec<String> {
    env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy())).collect()
}

/// The command as it was given, with its seed. The seed goes before all other arguments: after `--`
/// it would not be taken for an option.
fn command(mut words: Vec<String>, seed: u64) -> String {
    if !words.iter().any(|word| word == "--seed" || word.starts_with("--seed=")) {
        words.insert(words.len().min(1), format!("--seed {seed}"));
    }
    format!("doorway {}", words.join(" "))
}

/// A word quoted for a shell, where that is needed.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:=/@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Vec<String> {
        line.split(' ').map(quoted).collect()
    }

    #[test]
    fn the_seed_is_given_once() {
        let with = |line: &str| command(split(line), 7);
        assert_eq!(with("simulate -n 3 -- le-lann"), "doorway simulate --seed 7 -n 3 -- le-lann");
        assert_eq!(with("simulate lamport --seed 7"), "doorway simulate lamport --seed 7");
        assert_eq!(with("simulate lamport --seed=7"), "doorway simulate lamport --seed=7");
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("uniform:0.5..1.5"), "uniform:0.5..1.5");
        assert_eq!(quoted("my file"), "'my file'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
