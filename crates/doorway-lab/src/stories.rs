//! The stories that can be told by name: scripts that follow a paper or show what was added to it,
//! and the counterexamples of [`crate::flaws`].

use crate::flaws::{self, Flaw};
use crate::nearest::hint;

/// A story.
#[derive(Clone, Debug)]
pub enum Story {
    /// A script that follows a paper, or shows what was added to it.
    Script(Script),
    /// The shortest counterexample that shows a flaw.
    Flaw(Flaw),
}

/// A script that follows a paper, or shows what was added to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Script {
    /// The name: the algorithm and what the script shows, as in `lamport/queue`.
    pub name: &'static str,
    /// The algorithm that it runs.
    pub algorithm: &'static str,
    /// Its commands and their effects.
    pub text: &'static str,
}

/// Scripts from `algorithm: [names]`.
macro_rules! scripts {
    ($($algorithm:literal: [$($name:literal),+ $(,)?]),+ $(,)?) => {
        &[$($(Script {
            name: concat!($algorithm, "/", $name),
            algorithm: $algorithm,
            text: include_str!(concat!("../tests/scripts/", $algorithm, "/", $name, ".txt")),
        }),+),+]
    };
}

/// Every script. A new one is a file in `tests/scripts/ALGORITHM/` and its name here.
pub const SCRIPTS: &[Script] = scripts![
    "carvalho-roucairol": [
        "forget",
        "longest-wait-from-rest",
        "re-entry",
        "re-request",
        "withdraw",
    ],
    "central": ["queue", "request-overtakes-release"],
    "lamport": ["ack-overtakes-request", "lost-request", "queue"],
    "le-lann": ["circulating"],
    "maekawa": ["light", "section-5", "section-5-continued", "stale-inquire"],
    "maekawa-cyclic": ["round-trip"],
    "maekawa-eager": ["give-way", "inquire-overtakes-locked"],
    "maekawa-heir": ["take-over"],
    "maekawa-printed": ["displaced-3", "displaced-4"],
    "maekawa-sequential": ["one-by-one"],
    "maekawa-sequential-self-first": ["circle"],
    "maekawa-slides-printed": ["two-inquiries"],
    "maekawa-textbook": ["queued-older"],
    "maekawa-unordered": ["inquire-overtakes-locked"],
    "majority": ["give-back", "inquire-overtakes-yes", "silent-minority"],
    "naimi-trehel": ["path-reversal"],
    "raymond-echo": ["extinction", "one-wave"],
    "raymond-k": ["full", "long-stay", "seats"],
    "raymond-k-scanned": ["counts-lower-nodes", "waits-for-ever"],
    "raymond-tree": ["chain", "lift", "star"],
    "readers-writers": ["overlap"],
    "ricart-agrawala": ["concurrent", "duplicated-reply", "longest-wait-from-rest", "withdraw"],
    "ricart-agrawala-ring": ["concurrent", "tie", "withdraw"],
    "ricart-agrawala-token": ["circular-scan", "late-request", "longest-wait-from-rest"],
    "suzuki-kasami": ["mesh", "ring", "tree"],
    "weighted-majority": ["heavy-node"],
];

impl Script {
    /// The opening comment: what the script shows, and its source.
    pub fn about(&self) -> String {
        let comment = self.text.lines().map_while(|line| line.strip_prefix('#'));
        comment.map(str::trim).collect::<Vec<_>>().join(" ")
    }

    /// Whether the script follows a paper. Its opening comment says so if it does not.
    pub fn follows_paper(&self) -> bool {
        !self.about().starts_with("Not in the paper: ")
    }
}

impl Story {
    /// The name on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Script(script) => script.name,
            Self::Flaw(flaw) => flaw.name,
        }
    }

    /// The algorithm that it is about.
    pub fn algorithm(&self) -> &'static str {
        match self {
            Self::Script(script) => script.algorithm,
            Self::Flaw(flaw) => flaw.algorithm,
        }
    }

    /// What the story shows, in a sentence or two.
    pub fn about(&self) -> String {
        match self {
            Self::Script(script) => script.about(),
            Self::Flaw(flaw) => {
                let Flaw { what, breaks, steps, .. } = flaw;
                format!("{what}: {breaks}, {steps} steps")
            }
        }
    }
}

/// Every story: the scripts, then the flaws.
pub fn all() -> Vec<Story> {
    let scripts = SCRIPTS.iter().copied().map(Story::Script);
    scripts.chain(flaws::all().into_iter().map(Story::Flaw)).collect()
}

/// The story of this name. The part of a script's name after the slash is enough if no other
/// script has it.
pub fn named(name: &str) -> Result<Story, String> {
    let all = all();
    if let Some(story) = all.iter().find(|story| story.name() == name) {
        return Ok(story.clone());
    }
    let ends = |story: &&Story| story.name().split_once('/').is_some_and(|(_, end)| end == name);
    let found: Vec<&Story> = all.iter().filter(ends).collect();
    match found.as_slice() {
        [story] => Ok((*story).clone()),
        [] => {
            let near = hint(name, all.iter().map(Story::name));
            Err(format!("no story is called '{name}'{near}"))
        }
        several => {
            let names: Vec<_> = several.iter().map(|story| story.name()).collect();
            Err(format!("several stories are called '{name}'; say {}", names.join(" or ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    /// A script that follows a paper names it by its year, or is about the slides.
    #[test]
    fn scripts_that_follow_no_paper_say_so() {
        for script in SCRIPTS {
            let about = script.about();
            let mut words = about.split(|c: char| !c.is_ascii_alphanumeric());
            let is_year = |word: &str| word.parse().is_ok_and(|it| (1965..2010).contains(&it));
            let names_source = words.any(|word| is_year(word) || word == "slides");
            assert!(names_source || !script.follows_paper(), "{}: {about}", script.name);
            if script.name.ends_with("/withdraw") {
                assert!(!script.follows_paper(), "{}: {about}", script.name);
            }
        }
    }

    #[test]
    fn every_script_is_in_the_list() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
        let mut found = BTreeSet::new();
        for algorithm in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            for file in fs::read_dir(&algorithm).unwrap().map(|entry| entry.unwrap().path()) {
                let name = file.strip_prefix(&folder).unwrap().with_extension("");
                found.insert(name.to_str().unwrap().to_owned());
            }
        }
        let listed: BTreeSet<String> =
            SCRIPTS.iter().map(|script| script.name.to_owned()).collect();
        assert_eq!(listed, found);
    }

    #[test]
    fn a_story_is_found_by_its_name() {
        let names: Vec<_> = all().iter().map(Story::name).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "names differ");
        for name in names {
            assert_eq!(named(name).unwrap().name(), name);
        }
        assert_eq!(named("section-5").unwrap().name(), "maekawa/section-5");
        let several = named("withdraw").unwrap_err();
        assert!(several.contains("carvalho-roucairol/withdraw or ricart-agrawala/withdraw or "));
        assert!(named("lamport-nonfif").unwrap_err().contains("'lamport-nonfifo'"));
    }

    #[test]
    fn every_story_says_what_it_shows() {
        for story in all() {
            assert!(story.about().len() > 20, "{}: {}", story.name(), story.about());
        }
    }
}
