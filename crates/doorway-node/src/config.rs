//! The configuration of a node, and everything that can be wrong with it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use doorway_protocol::fnv::fnv1a;
use doorway_protocol::{LABEL, is_label};

use crate::lock_clients::{AnswerMembers, OnLost, OnWanted, SessionDescriber};
use crate::lock_rules::{LockRules, Members, RuleConfig};
use crate::locks::{RuleBook, RuleError};
use crate::views::{DirectoryEpochStore, EpochStore, MemoryEpochStore, StoreError};

/// The configuration of a node. [`Config::default`] is a node without peers: no certificate, no
/// port.
#[derive(Clone, Debug)]
pub struct Config {
    /// The name of the group. It must be the same at every member.
    pub group: String,
    /// The name of this node, which must be one of the members.
    pub me: String,
    /// All members, this one included. The names and their order must be the same at every member.
    pub members: Vec<MemberConfig>,
    /// Which algorithm serves which lock names; the first pattern that matches counts. Must be the
    /// same at every member.
    pub rules: Vec<RuleConfig>,
    /// The algorithm of all other names. Must be the same at every member.
    pub algorithm: String,
    /// How many times each client that waits at this node may enter before a lock goes to another
    /// node that waits for it. A client enters more than once only where clients ask again at once
    /// after they have left. If it is 0, one client enters. All members should have the same
    /// number, because the shares of their clients depend on it.
    pub handovers: u32,
    /// The directory in which the node keeps its epoch, which makes fences grow from one start of
    /// the node to the next. No other node may use it, and it must never be copied or restored from
    /// a backup. The node creates the directory if it is missing, but not its parent. A node with
    /// peers needs one.
    pub data: Option<PathBuf>,
    /// The lowest epoch that the node may start with. If the directory can be lost, a number that
    /// grows from start to start keeps fences growing.
    pub first_epoch: u64,
    /// The certificates of this node. A node with peers needs them.
    pub tls: Option<TlsConfig>,
    /// The file to which the node records what its locks do, for `doorway diagram --recorded`; see
    /// the section on recording in the documentation of this crate. Each start of the node appends
    /// to the file.
    pub record: Option<PathBuf>,
    /// Describes a session, for people who ask who holds a lock.
    pub describe: Option<SessionDescriber>,
    /// Called when a session loses a lock that it holds.
    pub on_lost: Option<OnLost>,
    /// Called when somebody else wants a lock that a client keeps.
    pub on_wanted: Option<OnWanted>,
    /// Answers the questions of services at other members: see [`Node::ask_members`].
    ///
    /// [`Node::ask_members`]: crate::Node::ask_members
    pub answer: Option<AnswerMembers>,
    /// How many requests may wait at this node at a time. It also limits how many messages, but at
    /// least 1024, may wait for a member that does not acknowledge them. Beyond either limit the
    /// node grants only requests that need not wait.
    pub outstanding: usize,
    /// How many idle locks the node keeps in memory, so that the next entry may need no message.
    pub keep_idle: usize,
    /// After how long an idle link sends a heartbeat.
    pub heartbeat: Duration,
    /// After how long without a byte a link is closed and dialled again. It must be longer than the
    /// heartbeat of every member.
    pub silence: Duration,
    /// The seed of the random numbers, for simulations. Without it the seed comes from the
    /// operating system.
    pub seed: Option<u64>,
}

/// A member of the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberConfig {
    /// The name of the member, which its certificate proves.
    pub name: String,
    /// The address `host:port` at which it listens. The member itself binds it, and the others dial
    /// it.
    pub address: String,
}

/// The certificates by which a node proves its name, as PEM.
#[derive(Clone)]
pub struct TlsConfig {
    /// The certificates of the authority that the whole group trusts.
    pub ca: Vec<u8>,
    /// The certificate of this node, issued for `NODE.GROUP.doorway`.
    pub certificate: Vec<u8>,
    /// The private key of the certificate.
    pub key: Vec<u8>,
}

impl fmt::Debug for TlsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsConfig(..)") // Keys must not appear in logs.
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
            handovers: 6,
            data: None,
            first_epoch: 0,
            tls: None,
            record: None,
            describe: None,
            on_lost: None,
            on_wanted: None,
            answer: None,
            outstanding: 1_000_000,
            keep_idle: 65_536,
            heartbeat: Duration::from_millis(500),
            silence: Duration::from_secs(3),
            seed: None,
        }
    }
}

/// One mistake in a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mistake {
    /// The name of a group or member cannot be part of a certificate's name.
    #[error("the {what} cannot be called `{name}`: use {LABEL}")]
    BadLabel {
        /// What the name is for: `group` or `member`.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A member is listed twice.
    #[error("member `{0}` is listed twice")]
    Twice(String),
    /// The name of this node is not among the members.
    #[error("`{0}` is not among the members")]
    NotAMember(String),
    /// A pattern that cannot match any name, or that has `*` in the middle.
    #[error("the pattern `{pattern}` cannot be used: {reason}")]
    BadPattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A rule whose algorithm cannot be used as configured.
    #[error("the rule for `{pattern}` cannot be used: {error}")]
    BadRule {
        /// The pattern of the rule.
        pattern: String,
        /// What is wrong with it.
        error: RuleError,
    },
    /// A node with peers needs certificates, to prove its name.
    #[error("a node with peers needs certificates: set `tls`")]
    NoCertificates,
    /// A node with peers needs a directory, to keep its epoch.
    #[error("a node with peers needs a directory that survives restarts: set `data`")]
    NoData,
    /// A number that must not be zero is zero.
    #[error("`{0}` must not be zero")]
    Zero(&'static str),
    /// `silence` is not longer than `heartbeat`, so a link would be closed before its first
    /// heartbeat.
    #[error("`silence` must be longer than `heartbeat`")]
    Impatient,
}

/// All mistakes in a configuration.
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

impl Config {
    /// Check the configuration without starting anything. The error lists all mistakes for which
    /// [`Node::start`] would refuse it.
    ///
    /// [`Node::start`]: crate::Node::start
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.check(Members::Fixed).map(drop)
    }

    /// Check the configuration of a node whose group agrees on its members, without starting
    /// anything. The error lists all mistakes for which [`Node::start_agreed`] would refuse it.
    ///
    /// [`Node::start_agreed`]: crate::Node::start_agreed
    pub fn validate_agreed(&self) -> Result<(), ConfigError> {
        self.check_agreed().map(drop)
    }

    /// Check the configuration and report all mistakes at once. Returns the rules for its members.
    pub(crate) fn check(&self, kind: Members) -> Result<RuleBook, ConfigError> {
        let mut mistakes = Vec::new();
        self.check_members(&mut mistakes);
        let rules = self.lock_rules();
        let names = self.member_names();
        let rules = rules.try_arrange(&names, kind, self.handovers, &mut mistakes);
        // A `silence` of zero is reported as not longer than the heartbeat.
        for (name, zero) in
            [("outstanding", self.outstanding == 0), ("heartbeat", self.heartbeat.is_zero())]
        {
            mistakes.extend(zero.then_some(Mistake::Zero(name)));
        }
        if self.silence <= self.heartbeat {
            mistakes.push(Mistake::Impatient);
        }
        if mistakes.is_empty() { Ok(rules) } else { Err(ConfigError(mistakes)) }
    }

    /// Check the configuration of a node whose group agrees on its members: its rules must work for
    /// every number of members. Returns the rules for this node alone.
    pub(crate) fn check_agreed(&self) -> Result<RuleBook, ConfigError> {
        let alone = self.check(Members::Agreed)?;
        let mistakes = self.lock_rules().check_all_sizes();
        if mistakes.is_empty() { Ok(alone) } else { Err(ConfigError(mistakes)) }
    }

    /// The rules for locks.
    pub fn lock_rules(&self) -> LockRules {
        LockRules { rules: self.rules.clone(), algorithm: self.algorithm.clone() }
    }

    /// The address of a member; empty if there is no such member.
    pub(crate) fn address_of(&self, name: &str) -> &str {
        let member = self.members.iter().find(|member| member.name == name);
        member.map_or("", |member| &member.address)
    }

    /// Open the store of the epoch, which also knows the members.
    pub(crate) fn store(&self) -> Result<Box<dyn EpochStore>, StoreError> {
        Ok(match &self.data {
            Some(directory) => Box::new(DirectoryEpochStore::open(self.member_names(), directory)?),
            None => Box::new(MemoryEpochStore::new(self.me.clone())),
        })
    }

    fn member_names(&self) -> Vec<String> {
        self.members.iter().map(|member| member.name.clone()).collect()
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

    /// A hash of everything that must be the same at all members. It is part of the protocol:
    /// FNV-1a over texts, each followed by a byte that occurs in none of them.
    pub(crate) fn digest(&self) -> u64 {
        let members = self.members.iter().map(|member| member.name.clone());
        let rules = self.rules.iter().flat_map(|rule| {
            let algorithm = text_to_hash(&rule.algorithm);
            let always = [rule.pattern.clone(), algorithm, rule.permits.to_string()];
            // A key and its value are one text, which no pattern can be mistaken for.
            let keys = rule.arrangement.keys();
            let keys = keys.into_iter().map(|(key, value)| format!("\0{key}\0{value}"));
            always.into_iter().chain(keys)
        });
        let texts = [self.group.clone(), text_to_hash(&self.algorithm)].into_iter();
        hash(texts.chain(members).chain(["rules".to_owned()]).chain(rules))
    }

    /// The hash of what must be configured in the same way at all members of a group that agrees on
    /// its members: its name. The group agrees on the rules. The name of a member cannot have a
    /// space, so no fixed group has the same hash.
    pub(crate) fn agreed_digest(&self) -> u64 {
        hash([self.group.clone(), "agreed members".to_owned()].into_iter())
    }
}

/// The text by which an algorithm is part of the hash. Earlier versions of the program had node 1
/// as the coordinator of all locks, so they must not have the same hash.
fn text_to_hash(algorithm: &str) -> String {
    if algorithm == "central" { "central by name".to_owned() } else { algorithm.to_owned() }
}

fn hash(texts: impl Iterator<Item = String>) -> u64 {
    fnv1a(texts.flat_map(|text| text.into_bytes().into_iter().chain([0xff])))
}

#[cfg(test)]
mod tests {
    use doorway_protocol::Name;

    use super::*;

    fn rule(pattern: &str, algorithm: &str, permits: u32) -> RuleConfig {
        RuleConfig::new(pattern, algorithm, permits)
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
        let Err(ConfigError(mistakes)) = config.check(Members::Fixed) else {
            panic!("the configuration was accepted")
        };
        let said: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        for part in [
            "the group cannot be called `Shop`: use 1 to 63 of a-z, 0-9 and `-`",
            "the member cannot be called `b-`: use 1 to 63",
            "member `a` is listed twice",
            "`c` is not among the members",
            "set `tls`",
            "set `data`",
            "the pattern `a*b` cannot be used: `*` may only stand at the end",
            "the pattern `` cannot be used: the name of a lock must not be empty",
            "the rule for `x` cannot be used: no algorithm is called `lampard`",
            "the rule for `y` cannot be used: `le-lann` is not offered as a service, because its",
            "the rule for `z` cannot be used: lamport has no use for permits",
            "the rule for `k` cannot be used: a group has 1 to",
            "`outstanding` must not be zero",
            "`silence` must be longer than `heartbeat`",
        ] {
            assert!(said.iter().any(|said| said.contains(part)), "{part:?} is not in {said:#?}");
        }
        assert_eq!(said.len(), 14);
    }

    #[test]
    fn the_first_pattern_that_matches_counts() {
        let rules = ["deploy/web", "deploy/*", "*"].map(|pattern| rule(pattern, "lamport", 1));
        let config = Config { rules: rules.to_vec(), ..Config::default() };
        let rules = config.check(Members::Fixed).unwrap();
        let rule = |name| rules.index_of(&Name::new(name).unwrap());
        assert_eq!(["deploy/web", "deploy/db", "deploy/", "else"].map(rule), [0, 1, 1, 2]);
        let none = Config::default().check(Members::Fixed).unwrap();
        assert_eq!(none.index_of(&Name::new("x").unwrap()), 0);
    }

    #[test]
    fn the_digest_covers_exactly_what_must_be_the_same_at_all_members() {
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
