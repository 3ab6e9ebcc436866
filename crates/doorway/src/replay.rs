//! A violation, told so that anyone can see it again.

use std::env;
use std::fmt::Display;

use anyhow::anyhow;

/// The failure of a run in which something happened that must never happen.
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

/// The command as it was given, with its seed. That goes before all other arguments, since behind
/// `--` it would be taken for something else.
fn command(mut words: Vec<String>, seed: u64) -> String {
    if !words.iter().any(|word| word == "--seed" || word.starts_with("--seed=")) {
        words.insert(words.len().min(1), format!("--seed {seed}"));
    }
    format!("doorway {}", words.join(" "))
}

/// A word as a shell would take it back.
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
    fn the_seed_is_said_once() {
        let with = |line: &str| command(split(line), 7);
        assert_eq!(with("simulate -n 3 -- le-lann"), "doorway simulate --seed 7 -n 3 -- le-lann");
        assert_eq!(with("simulate lamport --seed 7"), "doorway simulate lamport --seed 7");
        assert_eq!(with("simulate lamport --seed=7"), "doorway simulate lamport --seed=7");
    }

    #[test]
    fn a_shell_takes_every_word_back() {
        assert_eq!(quoted("uniform:0.5..1.5"), "uniform:0.5..1.5");
        assert_eq!(quoted("my file"), "'my file'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
