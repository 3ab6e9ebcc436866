//! The rules for locks of a group that agrees on its members.

use std::sync::Arc;

use doorway_node::members::{AgreedRules, Command, Record, RuleTables};
use doorway_node::{LockRules, Mode, Name, Node, RuleConfig};
use doorway_protocol::{Code, NamePattern, Refusal, RuleChange, RuleTable, RulesReport};
use doorway_sessions::refusals::refusal;
use tokio::time::timeout;

use super::Members;
use super::change::{ATTEMPTS, NEWS};
use crate::service::Service;

/// How many locks are looked at before the rules are changed. The others begin safely in any case.
const LOOKED_AT: usize = 50;

impl Members {
    /// Change the rules for locks, unless the group has other rules than `replaces` by now.
    pub(super) async fn change_rules(
        &self,
        service: &Service,
        rules: RuleTables,
        replaces: u64,
        force: bool,
    ) -> Result<(), Refusal> {
        let record = self.founded()?;
        let new = AgreedRules::read(&rules).map_err(|why| {
            refusal(Code::Invalid, format!("the rules cannot be used: {why}; nothing was changed"))
        })?;
        if record.rules == new.digest {
            let text = "the group has these rules already; nothing was changed";
            return Err(refusal(Code::Invalid, text));
        }
        if !force && let Some(text) = crowded(service.node(), &new.rules).await {
            return Err(refusal(Code::NotFree, text));
        }
        let mut record = record;
        for _ in 0..ATTEMPTS {
            if record.rules == new.digest {
                return Ok(()); // An earlier attempt was carried out after all.
            }
            if record.rules != replaces {
                let text = "the rules were changed in the meantime: look at the difference again, \
                            and try again; nothing was changed";
                return Err(refusal(Code::Busy, text));
            }
            let number = record.number;
            let command = Command::Rules { number, rules: rules.clone() };
            match self.agree(command, |record| record.rules == new.digest).await {
                // A view that began at this moment has changed the number.
                Err(refused) if refused.code == Code::Invalid => {
                    record = self.newer_than(&record).await;
                    if record.number == number {
                        return Err(refused);
                    }
                }
                done => return done,
            }
        }
        let text = "the members of the group change all the time at the moment; try again; nothing \
                    was changed";
        Err(refusal(Code::Busy, text))
    }

    /// The next record after one that the store has refused to change, or the same one after a
    /// moment.
    async fn newer_than(&self, known: &Record) -> Arc<Record> {
        let mut records = self.records();
        let is_newer = |record: &Option<Arc<Record>>| {
            record.as_ref().is_some_and(|record| record.number != known.number)
        };
        let waited = timeout(NEWS, records.wait_for(is_newer)).await;
        let newer = waited.ok().and_then(Result::ok).and_then(|record| record.clone());
        newer.unwrap_or_else(|| Arc::new(known.clone()))
    }

    /// The rules of the group, and how the settings of this node differ from them.
    pub(super) fn rules_report(&self) -> Option<RulesReport> {
        let record = self.record()?;
        let tables = Arc::clone(&self.store.rules().borrow());
        Some(RulesReport {
            digest: format!("{:016x}", record.rules),
            tables: tables.0.clone(),
            differs: self.differs(&tables),
        })
    }

    /// How the settings of this node differ from the rules of the group, and what to do.
    fn differs(&self, tables: &RuleTables) -> Option<String> {
        let changes = tables.changes_to(&self.rules);
        let first = changes.first()?;
        let more = match changes.len() - 1 {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let line = one_line(first);
        Some(format!(
            "the [[lock]] tables of this node's settings differ from the rules of the group, which \
             count (from the group to the settings: {line}{more}): write the rules that `doorway \
             members rules` prints into the settings, or change the group with `doorway members \
             rules FILE`"
        ))
    }

    /// Log how the settings of this node differ from the rules of the group, now and whenever the
    /// rules have changed.
    pub(crate) async fn watch_rules(&self) {
        let mut rules = self.store.rules();
        let mut records = self.records();
        if records.wait_for(Option::is_some).await.is_err() {
            return;
        }
        loop {
            let tables = Arc::clone(&rules.borrow_and_update());
            if let Some(differs) = self.differs(&tables) {
                tracing::warn!("{differs}");
            }
            if rules.changed().await.is_err() {
                return;
            }
            let digest = format!("{:016x}", rules.borrow().digest());
            tracing::info!(digest, "the group has agreed on other rules for locks");
        }
    }
}

/// A change in a sentence.
fn one_line(change: &RuleChange) -> String {
    change.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Which rules serve their locks otherwise than they say if the group has these members, each in
/// one line. Rules that this version does not know are left out.
pub fn deviations(rules: &[RuleTable], members: &[String]) -> Vec<String> {
    let rules = LockRules::read(&RuleTables(rules.to_vec()));
    rules.map(|rules| rules.deviations(members)).unwrap_or_default()
}

/// The patterns of rules, each with the number of permits of its locks.
pub(crate) fn permits(rules: &[RuleConfig]) -> Vec<(NamePattern, u32)> {
    rules.iter().map(|rule| (NamePattern::new(&rule.pattern), rule.permits)).collect()
}

/// A lock that more clients hold than these rules let in, as far as this node knows.
async fn crowded(node: &Node, rules: &LockRules) -> Option<String> {
    let book = rules.arrange(&[node.name().to_owned()], 0, None);
    let locks = node.locks("", None, usize::MAX, |_| true);
    let held = locks.iter().filter(|clients| !clients.inside.is_empty());
    for lock in held.map(|clients| clients.lock.clone()).take(LOOKED_AT).collect::<Vec<Name>>() {
        let why = node.why(lock.as_str()).await.ok()?;
        let rule = book.rule_of(&lock);
        let permits = rule.group.permits() as usize;
        let shared = rule.info.shared && why.holders.iter().all(|it| it.mode == Mode::Shared);
        let holders = why.holders.len();
        if !shared && holders > permits {
            return Some(format!(
                "`{lock}` has {holders} holders, and the new rules let {permits} in: wait until \
                 some of them have left, or add --force, and nobody enters until enough of them \
                 have left; nothing was changed"
            ));
        }
    }
    None
}
