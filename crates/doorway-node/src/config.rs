//! How a node is configured, and everything that can be wrong about it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use doorway_protocol::{LABEL, NamePattern, is_label};

use crate::lock_clients::{Describe, OnLost};
use crate::locks::{Rule, RuleError};
use crate::patterns::Patterns;
use crate::views::{Fixed, StoreError, ViewStore, Volatile};

/// How a node is to run. [`Config::default`] is a node alone: no peers, no certificate, no port.
#[derive(Clone, Debug)]
pub struct Config {
    /// The name of the group, which every member must give alike.
    pub group: String,
    /// Which of the members this node is.
    pub me: String,
    /// All members, this one included, in the same order everywhere.
    pub members: Vec<MemberConfig>,
    /// Which algorithm serves which names: the first pattern that fits counts.
    pub rules: Vec<RuleConfig>,
    /// The algorithm of all other names.
    pub algorithm: String,
    /// How often a lock may pass between clients of this node while another node waits for it.
    pub handovers: u32,
    /// A directory for this node alone, in which its epoch is kept: it makes fences grow from one
    /// start of the node to the next. It is made if it is missing, its parent is not. It must never
    /// be copied or set back. A node with peers needs one.
    pub data: Option<PathBuf>,
    /// The epoch is never below this: for one whose directory may be lost, a number that grows
    /// from start to start makes fences grow all the same.
    pub first_epoch: u64,
    /// The certificates of a node with peers, which needs them.
    pub tls: Option<TlsConfig>,
    /// Where to write down what the locks of this node do, for `doorway diagram --recorded`; see
    /// the section on recording. Each start of the node adds to the file.
    pub record: Option<PathBuf>,
    /// What a session says of itself, to whoever asks who is inside.
    pub describe: Option<Describe>,
    /// Who is told when a session loses what it holds.
    pub on_lost: Option<OnLost>,
    /// How many acquires may wait at this node at a time, and how many messages, 1024 at least, for
    /// a member that does not take them. Beyond that only those are let in who need not wait.
    pub outstanding: usize,
    /// How many idle locks a node remembers, so that the next entry may need no message.
    pub keep_idle: usize,
    /// After how long a silent link says that it is still there.
    pub heartbeat: Duration,
    /// After how long a link of which nothing is heard is given up, and tried again. Longer than
    /// the heartbeat of every member.
    pub silence: Duration,
    /// The seed of all that is random, for simulations; otherwise the system's.
    pub seed: Option<u64>,
}

/// A member of the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberConfig {
    /// Its name, which its certificate proves.
    pub name: String,
    /// Where it listens, `host:port`: bound by itself and dialled by the others.
    pub address: String,
}

/// The algorithm of the names that fit a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleConfig {
    /// A name, or the beginning of names followed by `*`.
    pub pattern: String,
    /// The algorithm.
    pub algorithm: String,
    /// How many clients may be inside at once.
    pub permits: u32,
}

/// What proves who a node is, as PEM.
#[derive(Clone)]
pub struct TlsConfig {
    /// The certificates of the authority that the whole group trusts.
    pub ca: Vec<u8>,
    /// The certificate of this node, issued for `NODE.GROUP.doorway`.
    pub certificate: Vec<u8>,
    /// Its key.
    pub key: Vec<u8>,
}

impl fmt::Debug for TlsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsConfig(..)") // The key belongs in no log.
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            group: "local".into(),
            me: "node".into(),
            members: vec![MemberConfig { name: "node".into(), address: String::new() }],
            rules: Vec::new(),
            algorithm: "carvalho-roucairol".into(),
            handovers: 16,
            data: None,
            first_epoch: 0,
            tls: None,
            record: None,
            describe: None,
            on_lost: None,
            outstanding: 1_000_000,
            keep_idle: 65_536,
            heartbeat: Duration::from_millis(500),
            silence: Duration::from_secs(3),
            seed: None,
        }
    }
}

/// One thing that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mistake {
    /// A name of a group or node that cannot be part of a certificate.
    #[error("the {what} cannot be called `{name}`: use {LABEL}")]
    BadLabel {
        /// Whose name.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A member is listed twice.
    #[error("member `{0}` is listed twice")]
    Twice(String),
    /// This node is no member.
    #[error("`{0}` is not among the members")]
    NotAMember(String),
    /// A pattern that cannot fit any name, or fits them in ways not offered.
    #[error("pattern `{pattern}`: {reason}")]
    BadPattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A rule that cannot be.
    #[error("names `{pattern}`: {error}")]
    BadRule {
        /// The pattern of the rule.
        pattern: String,
        /// What is wrong with it.
        error: RuleError,
    },
    /// A node with peers has to prove who it is.
    #[error("a node with peers needs certificates: set `tls`")]
    NoCertificates,
    /// A node with peers has to remember its epoch.
    #[error("a node with peers needs a directory that survives restarts: set `data`")]
    NoData,
    /// A number that must not be zero is.
    #[error("`{0}` must not be zero")]
    Zero(&'static str),
    /// A link would be given up before its first heartbeat.
    #[error("`silence` must be longer than `heartbeat`")]
    Impatient,
}

/// All that is wrong with a configuration, at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(pub Vec<Mistake>);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.0.iter().enumerate() {
            write!(f, "{}{mistake}", if index == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

/// A configuration that has been found good.
pub(crate) struct ValidConfig {
    pub(crate) patterns: Patterns,
    pub(crate) rules: Vec<Rule>,
}

impl Config {
    /// All that is wrong with it, before anything is started: what [`Node::start`] would refuse.
    ///
    /// [`Node::start`]: crate::Node::start
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.check().map(drop)
    }

    /// Check everything and report every mistake at once.
    pub(crate) fn check(&self) -> Result<ValidConfig, ConfigError> {
        let mut mistakes = Vec::new();
        self.check_members(&mut mistakes);
        let patterns = self.patterns(&mut mistakes);
        let rules = self.all_rules(&mut mistakes);
        // A silence of zero is not longer than any heartbeat.
        for (name, zero) in
            [("outstanding", self.outstanding == 0), ("heartbeat", self.heartbeat.is_zero())]
        {
            mistakes.extend(zero.then_some(Mistake::Zero(name)));
        }
        if self.silence <= self.heartbeat {
            mistakes.push(Mistake::Impatient);
        }
        if mistakes.is_empty() {
            Ok(ValidConfig { patterns, rules })
        } else {
            Err(ConfigError(mistakes))
        }
    }

    /// Where a member listens.
    pub(crate) fn address_of(&self, name: &str) -> &str {
        let member = self.members.iter().find(|member| member.name == name);
        member.map_or("", |member| &member.address)
    }

    /// Where the epoch is kept, and who the members are.
    pub(crate) fn store(&self) -> Result<Box<dyn ViewStore>, StoreError> {
        let names = self.members.iter().map(|member| member.name.clone());
        Ok(match &self.data {
            Some(directory) => Box::new(Fixed::open(names.collect(), directory)?),
            None => Box::new(Volatile::new(self.me.clone())),
        })
    }

    fn check_members(&self, mistakes: &mut Vec<Mistake>) {
        let label = |what, name: &str| {
            (!is_label(name)).then(|| Mistake::BadLabel { what, name: name.to_owned() })
        };
        mistakes.extend(label("group", &self.group));
        for (index, member) in self.members.iter().enumerate() {
            mistakes.extend(label("member", &member.name));
            if self.members[..index].iter().any(|earlier| earlier.name == member.name) {
                mistakes.push(Mistake::Twice(member.name.clone()));
            }
        }
        if !self.members.iter().any(|member| member.name == self.me) {
            mistakes.push(Mistake::NotAMember(self.me.clone()));
        }
        if self.members.len() > 1 {
            mistakes.extend(self.tls.is_none().then_some(Mistake::NoCertificates));
            mistakes.extend(self.data.is_none().then_some(Mistake::NoData));
        }
    }

    fn patterns(&self, mistakes: &mut Vec<Mistake>) -> Patterns {
        let mut patterns = Vec::new();
        for RuleConfig { pattern, .. } in &self.rules {
            match NamePattern::parse(pattern) {
                Ok(pattern) => patterns.push(pattern),
                Err(error) => {
                    let (pattern, reason) = (pattern.clone(), error.to_string());
                    mistakes.push(Mistake::BadPattern { pattern, reason });
                }
            }
        }
        Patterns::new(patterns)
    }

    fn all_rules(&self, mistakes: &mut Vec<Mistake>) -> Vec<Rule> {
        let others =
            RuleConfig { pattern: "*".into(), algorithm: self.algorithm.clone(), permits: 1 };
        let mut rules = Vec::new();
        for RuleConfig { pattern, algorithm, permits } in self.rules.iter().chain([&others]) {
            match Rule::new(algorithm, self.members.len(), *permits, self.handovers) {
                Ok(rule) => rules.push(rule),
                Err(error) => {
                    mistakes.push(Mistake::BadRule { pattern: pattern.clone(), error });
                }
            }
        }
        rules
    }

    /// What all members must have configured alike, in one number. It is part of the protocol, so
    /// it is spelled out: the hash FNV-1a, over texts that each end with a byte that is in none.
    pub(crate) fn digest(&self) -> u64 {
        let rules = self.rules.iter().flat_map(|rule| {
            [rule.pattern.clone(), rule.algorithm.clone(), rule.permits.to_string()]
        });
        let members = self.members.iter().map(|member| member.name.clone());
        let texts = [self.group.clone(), self.algorithm.clone()].into_iter();
        let texts = texts.chain(members).chain(["rules".to_owned()]).chain(rules);
        let bytes = texts.flat_map(|text| text.into_bytes().into_iter().chain([0xff]));
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }
}

#[cfg(test)]
mod tests {
    use doorway_protocol::Name;

    use super::*;

    fn rule(pattern: &str, algorithm: &str, permits: u32) -> RuleConfig {
        RuleConfig { pattern: pattern.into(), algorithm: algorithm.into(), permits }
    }

    #[test]
    fn all_mistakes_are_reported_at_once() {
        let member = |name: &str| MemberConfig { name: name.into(), address: "x:1".into() };
        let config = Config {
            group: "Shop".into(),
            me: "c".into(),
            members: vec![member("a"), member("b-"), member("a")],
            rules: vec![
                rule("a*b", "lamport", 1),
                rule("", "lamport", 1),
                rule("x", "lampard", 1),
                rule("y", "le-lann", 1),
                rule("z", "lamport", 3),
                rule("k", "raymond-k", 0),
            ],
            outstanding: 0,
            silence: Duration::from_millis(1),
            ..Config::default()
        };
        let Err(ConfigError(mistakes)) = config.check() else { panic!("found good") };
        let said: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        for part in [
            "the group cannot be called `Shop`: use 1 to 63 of a-z, 0-9 and `-`",
            "the member cannot be called `b-`: use 1 to 63",
            "member `a` is listed twice",
            "`c` is not among the members",
            "set `tls`",
            "set `data`",
            "pattern `a*b`: `*` may only stand at the end",
            "pattern ``: the name of a lock must not be empty",
            "names `x`: no algorithm is called `lampard`",
            "names `y`: `le-lann` is not offered as a service; served are central, lamport",
            "names `z`: lamport has no use for permits",
            "names `k`: a group has 1 to",
            "`outstanding` must not be zero",
            "`silence` must be longer than `heartbeat`",
        ] {
            assert!(said.iter().any(|said| said.contains(part)), "{part:?} is not in {said:#?}");
        }
        assert_eq!(said.len(), 14);
    }

    #[test]
    fn the_first_pattern_that_fits_counts() {
        let rules = ["deploy/web", "deploy/*", "*"].map(|pattern| rule(pattern, "lamport", 1));
        let config = Config { rules: rules.to_vec(), ..Config::default() };
        let patterns = config.check().unwrap().patterns;
        let rule = |name| patterns.rule(&Name::new(name).unwrap());
        assert_eq!(["deploy/web", "deploy/db", "deploy/", "else"].map(rule), [0, 1, 1, 2]);
        let none = Config::default().check().unwrap().patterns;
        assert_eq!(none.rule(&Name::new("x").unwrap()), 0);
    }

    #[test]
    fn the_digest_is_of_what_must_be_alike() {
        let config = Config::default();
        assert_eq!(config.digest(), 0x2308_7005_5680_e3bc, "part of the protocol");
        let other = Config { handovers: 1, keep_idle: 1, ..config.clone() };
        assert_eq!(other.digest(), config.digest());
        let rules = vec![rule("a", "lamport", 1)];
        assert_ne!(Config { rules, ..config.clone() }.digest(), config.digest());
        assert_ne!(
            Config { algorithm: "lamport".into(), ..config.clone() }.digest(),
            config.digest()
        );
    }
}
