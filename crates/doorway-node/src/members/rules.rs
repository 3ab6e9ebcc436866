//! The rules for locks on which a group has agreed.
//!
//! They are beside the [`Record`](super::Record), not in it, so that the record stays small. The
//! record has their hash. [`Command::Rules`](super::Command::Rules) changes both, and begins a new
//! view. So the number of a view determines its rules. A node stops for a view only when it knows
//! the rules of that view: until then it goes on in the view before, with the rules of that one.
//!
//! The store keeps rules as tables of texts, whatever keys a rule may have in later versions. A
//! node that cannot run the rules of its group is not a member: it would only hold up the others.

use doorway_protocol::RuleTables;

use crate::config::ConfigError;
use crate::lock_rules::LockRules;

/// Rules on which a group has agreed, and which this version of the program can run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AgreedRules {
    /// The hash of the rules.
    pub digest: u64,
    /// The rules.
    pub rules: LockRules,
}

impl AgreedRules {
    /// Read rules, and check that they work for every number of members. The error says why they
    /// cannot be run.
    pub fn read(tables: &RuleTables) -> Result<Self, String> {
        let rules = LockRules::read(tables)?;
        let mistakes = rules.check_all_sizes();
        if mistakes.is_empty() {
            Ok(Self { digest: tables.digest(), rules })
        } else {
            Err(ConfigError(mistakes).to_string())
        }
    }
}
