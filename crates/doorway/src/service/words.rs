//! `NAME... -- COMMAND...`: where the names of locks end and the command begins.

use std::ffi::{OsStr, OsString};

use doorway_protocol::Name;

/// What is to be run under which locks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Words {
    /// The locks, in the order of their names, each once.
    pub(crate) locks: Vec<Name>,
    /// The command and its arguments.
    pub(crate) command: Vec<OsString>,
}

impl Words {
    /// Take the words after the options apart; `line` is what `-c` gave before them.
    ///
    /// Up to `--` they are names. Without one the first is the name and the rest the command, as
    /// with flock(1), which also takes `-c LINE` after the name.
    pub(crate) fn new(words: &[OsString], line: Option<&OsStr>) -> Result<Self, String> {
        let shell = |line: &OsString| vec!["sh".into(), "-c".into(), line.clone()];
        let (names, command) = if let Some(at) = words.iter().position(|word| word == "--") {
            (&words[..at], words[at + 1..].to_vec())
        } else if let [_, option, line] = words
            && (option == "-c" || option == "--command")
        {
            (&words[..1], shell(line))
        } else if line.is_some() {
            (words, Vec::new())
        } else {
            let (names, command) = words.split_at(words.len().min(1));
            if let Some(option) = command.first().filter(|word| is_option(word)) {
                return Err(no_option(option));
            }
            (names, command.to_vec())
        };
        let command = match line {
            Some(_) if !command.is_empty() => {
                return Err("-c takes the place of the command: give one of the two".to_owned());
            }
            Some(line) => shell(&line.into()),
            None => command,
        };
        if command.is_empty() {
            return Err("say what to run: doorway run NAME -- COMMAND...".to_owned());
        }
        let mut locks = names.iter().map(name).collect::<Result<Vec<_>, _>>()?;
        if locks.is_empty() {
            return Err("say which lock: doorway run NAME -- COMMAND...".to_owned());
        }
        locks.sort();
        locks.dedup();
        Ok(Self { locks, command })
    }
}

fn is_option(word: &OsString) -> bool {
    word.as_encoded_bytes().starts_with(b"-")
}

fn no_option(word: &OsString) -> String {
    let option = word.display();
    format!("{option} is no option of doorway run, or stands after the first NAME")
}

fn name(word: &OsString) -> Result<Name, String> {
    if is_option(word) {
        return Err(no_option(word));
    }
    let text = word.to_str().ok_or_else(|| "the name of a lock is UTF-8".to_owned())?;
    Name::new(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str, line: Option<&str>) -> Result<(String, String), String> {
        let words: Vec<OsString> = text.split_whitespace().map(Into::into).collect();
        let Words { locks, command } = Words::new(&words, line.map(OsStr::new))?;
        let locks: Vec<_> = locks.iter().map(Name::as_str).collect();
        let command: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
        Ok((locks.join(" "), command.join(" ")))
    }

    #[test]
    fn names_end_where_the_command_begins() {
        for (text, line, locks, command) in [
            ("x -- ls -l", None, "x", "ls -l"),
            ("x ls -l", None, "x", "ls -l"),
            ("x ls -c -n", None, "x", "ls -c -n"),
            ("b a b -- ls -- -l", None, "a b", "ls -- -l"),
            ("x -c ls", None, "x", "sh -c ls"),
            ("x sh -c ls", None, "x", "sh -c ls"),
            ("x", Some("ls -l"), "x", "sh -c ls -l"),
            ("y x", Some("ls"), "x y", "sh -c ls"),
            ("x -- -c ls", None, "x", "-c ls"),
        ] {
            assert_eq!(words(text, line), Ok((locks.into(), command.into())), "{text}");
        }
    }

    #[test]
    fn what_is_missing_or_too_much_is_said() {
        for (text, line, why) in [
            ("", None, "what to run"),
            ("x", None, "what to run"),
            ("x --", None, "what to run"),
            ("-- ls", None, "which lock"),
            ("", Some("ls"), "which lock"),
            ("x -- ls", Some("ls"), "one of the two"),
            ("x -n -- ls", None, "-n is no option of doorway run, or stands after"),
            ("x -n", Some("ls"), "after the first NAME"),
            ("x -n ls", None, "after the first NAME"),
            ("--non-block x -- ls", None, "--non-block is no option"),
        ] {
            let error = words(text, line).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
