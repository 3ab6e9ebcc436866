//! Windows of time that are taken once each, for `doorway run --once-per`.
//!
//! The lock of a window ([`Window`]) is held by a lease that nobody renews, as a lock of Terraform
//! is. So it is in the ledger, and a group keeps it if it is longer than the lease of a node. It
//! lasts beyond the end of the window, because the clock of another member may be behind. Before a
//! window is granted, the other members are asked what their clocks show: those of more than half
//! of the members have to agree.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use doorway_protocol::{Ask, ClientInfo, Code, Fence, Locks, Mode, Name, Refusal, Wait, Window};
use doorway_sessions::clock::ms;
use doorway_sessions::principal::{Principal, Right};
use doorway_sessions::refusals::{refusal, stopping};
use doorway_sessions::{Answer, Call, LeaseAsk, LeaseKey, allowed};
use tokio::time::Instant;

use super::group::{ListOrder, Question};
use super::{ASKING, Service, secret};

/// A request for the current window.
pub(crate) struct OnceAsk {
    /// The name of the command's lock.
    pub(crate) lock: Name,
    pub(crate) period: Duration,
    /// By this the same request is known again if it is repeated.
    pub(crate) key: [u8; 16],
    /// The client, for people.
    pub(crate) who: ClientInfo,
    /// Whether the client may be on another machine.
    pub(crate) remote: bool,
}

/// A window that a client has taken.
pub(crate) struct TakenWindow {
    /// The lock of the window.
    pub(crate) lock: Name,
    pub(crate) fence: Fence,
    /// How much of the window is left.
    pub(crate) left: Duration,
}

/// By how much the clock of a member is ahead of the clock of this node, in milliseconds. The
/// answer took some time, so only bounds are known.
#[derive(Debug)]
struct ClockOffset {
    node: String,
    least: i64,
    most: i64,
}

impl ClockOffset {
    /// The clock of the member showed `theirs` at some moment between these two by our clock.
    fn new(node: String, theirs: u64, asked: u64, answered: u64) -> Self {
        let difference = |ours: u64| theirs.cast_signed().saturating_sub(ours.cast_signed());
        Self { node, least: difference(answered), most: difference(asked) }
    }

    /// Whether the two clocks may differ by no more than this many milliseconds.
    fn is_within(&self, tolerance: i64) -> bool {
        self.least <= tolerance && self.most >= -tolerance
    }
}

impl Service {
    /// Milliseconds since 1970, by the wall clock of this node.
    pub(super) fn wall_ms(&self) -> u64 {
        let since = (self.0.wall_clock)().duration_since(SystemTime::UNIX_EPOCH);
        since.map_or(0, ms)
    }

    /// Take the current window of a lock, if no client has taken it.
    pub(crate) async fn take_window(
        &self,
        principal: &Arc<Principal>,
        ask: OnceAsk,
    ) -> Result<TakenWindow, Refusal> {
        allowed(principal, Right::Acquire, &ask.lock)?;
        let invalid =
            |error: doorway_protocol::WindowError| refusal(Code::Invalid, error.to_string());
        // What is wrong with the request is told before anybody is asked.
        Window::at(self.wall_ms(), ask.period)
            .and_then(|window| window.lock(&ask.lock))
            .map_err(invalid)?;
        self.compare_clocks(ask.period).await?;
        let now = self.wall_ms();
        let window = Window::at(now, ask.period).map_err(invalid)?;
        let lock = window.lock(&ask.lock).map_err(invalid)?;
        self.check_permits(&lock, &ask.lock)?;
        let owner = u128::from_be_bytes(ask.key).to_string();
        let known = self.own_lease(principal, &lock, &owner);
        let fence = match known {
            Some(lease) => lease.fence,
            None => self.lease_window(principal, &lock, &owner, window.hold(now), &ask).await?,
        };
        if let Err(refusal) = self.sync_ledger().await {
            // After a crash of the machine the window could be taken again.
            let withdraw = Call::Withdraw(lock, owner);
            let _ = self.call(principal, withdraw).answer().await;
            return Err(refusal);
        }
        let left = Duration::from_millis(window.end_ms().saturating_sub(self.wall_ms()));
        Ok(TakenWindow { lock, fence, left })
    }

    /// Hold the lock of a window for this long.
    async fn lease_window(
        &self,
        principal: &Arc<Principal>,
        lock: &Name,
        owner: &str,
        length: Duration,
        ask: &OnceAsk,
    ) -> Result<Fence, Refusal> {
        let wanted =
            Ask { lock: lock.clone(), mode: Mode::Exclusive, permits: Some(1), wait: Wait::No };
        let ClientInfo { label, host, pid } = &ask.who;
        let lease = LeaseAsk {
            ask: wanted,
            key: Some(LeaseKey::Owner(owner.to_owned())),
            ttl_ms: Some(u32::try_from(length.as_millis()).unwrap_or(u32::MAX)),
            unattended: true,
            label: format!("{label} (pid {pid}) on {host}"),
            remote: ask.remote,
            secret: secret(),
        };
        let mut calling = self.call(principal, Call::Acquire(Box::new(lease)));
        match calling.answer_within(ASKING).await {
            Answer::Leased(lease) => Ok(lease.fence),
            Answer::Refused(refused) => {
                let refused = self.explained(lock, refused).await;
                if refused.code != Code::NotFree {
                    return Err(refused);
                }
                Err(self.taken_before(principal, lock).await)
            }
            _ => Err(stopping()),
        }
    }

    /// Why a window cannot be taken: a client has taken it. If no member knows of such a client,
    /// the request came to nothing for another reason, and another one may have more luck.
    async fn taken_before(&self, principal: &Principal, lock: &Name) -> Refusal {
        let shown = Window::of(lock).map(|(name, window)| {
            format!("the window {window} of `{name}` (once per {})", window.shown_period())
        });
        let shown = shown.unwrap_or_else(|| lock.to_string());
        let report = self.report(lock).await;
        let Some(holder) = report.holders.first() else {
            let text = format!("it is not known whether {shown} was taken: try again");
            return refusal(Code::Unavailable, text);
        };
        let who = if principal.rights.may(Right::Inspect, lock) {
            format!(": {} at node {}", holder.client, holder.node)
        } else {
            String::new()
        };
        refusal(Code::NotFree, format!("{shown} was taken before{who}"))
    }

    /// Refuse a window whose lock would let several clients in.
    fn check_permits(&self, lock: &Name, name: &Name) -> Result<(), Refusal> {
        let permits = self.0.core.lock().sessions.configured(lock);
        if permits == 1 {
            return Ok(());
        }
        let text = format!(
            "a `[[lock]]` of the settings gives {permits} permits to the lock of the window, \
             `{lock}`, so {permits} clients could take it. To use `{name}` once per period, put \
             this before that rule:\n[[lock]]\nnames = \"{}*\"\npermits = 1",
            Window::prefix(name)
        );
        Err(refusal(Code::NotServed, text))
    }

    /// Refuse to grant a window if the clock of this node differs from those of other members by
    /// more than the period allows, or if most members that are connected do not answer. Members
    /// that are away are not counted.
    async fn compare_clocks(&self, period: Duration) -> Result<(), Refusal> {
        if self.0.is_alone() {
            return Ok(());
        }
        let (asked, begin) = (self.wall_ms(), Instant::now());
        let (answers, silent) = self.ask::<u64>(&Question::Clock).await;
        if silent.len() > answers.len() {
            let text = format!(
                "the clock of this node cannot be compared with those of most members, because \
                 {} did not answer in time: ask again",
                silent.join(", ")
            );
            return Err(refusal(Code::Unavailable, text));
        }
        let ahead: Vec<ClockOffset> = answers
            .into_iter()
            .map(|(node, theirs, at)| {
                let answered = asked.saturating_add(ms(at.saturating_duration_since(begin)));
                ClockOffset::new(node, theirs, asked, answered)
            })
            .collect();
        agree(&ahead, Window::tolerance(period))
    }

    /// The windows of a lock that were taken, at all members that answer.
    pub(crate) async fn windows(
        &self,
        principal: &Principal,
        lock: &Name,
    ) -> Result<Locks, Refusal> {
        allowed(principal, Right::Inspect, lock)?;
        let (prefix, order) = (Window::prefix(lock), ListOrder::Name);
        let found = self.list_ordered(principal, &prefix, None, order, true).await;
        let of_window = |line: &doorway_protocol::LockLine| {
            let name = Name::new(&line.lock).ok();
            let window = name.as_ref().and_then(Window::of);
            window.is_some_and(|(name, _)| name == *lock) && line.inside > 0
        };
        let lines = found.locks.into_iter().map(|found| found.line).filter(of_window);
        Ok(Locks { locks: lines.collect(), more: found.more })
    }
}

/// Whether more than half of the members that have answered agree with the clock of this node,
/// which agrees with itself.
fn agree(members: &[ClockOffset], tolerance: Duration) -> Result<(), Refusal> {
    let most = i64::try_from(tolerance.as_millis()).unwrap_or(i64::MAX);
    let off: Vec<&ClockOffset> = members.iter().filter(|member| !member.is_within(most)).collect();
    if (members.len() + 1 - off.len()) * 2 > members.len() + 1 {
        return Ok(());
    }
    let by = |member: &&ClockOffset| {
        let (least, way) = if member.least > 0 {
            (member.least, "ahead")
        } else {
            (member.most.saturating_neg(), "behind")
        };
        format!(
            "that of {} is {} s {way}",
            member.node,
            Duration::from_millis(least.unsigned_abs()).as_secs_f64()
        )
    };
    let off = off.iter().map(by).collect::<Vec<_>>().join(", ");
    let text = format!(
        "the clock of this node may differ from those of the other members by {} s, a tenth of the \
         period, but {off}; set the clocks, for instance by NTP",
        tolerance.as_secs_f64()
    );
    Err(refusal(Code::Unavailable, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLERANCE: Duration = Duration::from_secs(6);

    fn clocks(differences: &[i64]) -> Vec<ClockOffset> {
        let ours = 1_800_000_000_000_u64;
        let member = |(index, by): (usize, &i64)| {
            ClockOffset::new(format!("m{index}"), ours.saturating_add_signed(*by), ours, ours + 100)
        };
        differences.iter().enumerate().map(member).collect()
    }

    #[test]
    fn a_clock_counts_if_more_than_half_of_the_members_agree() {
        for (differences, agrees) in [
            (vec![], true),
            (vec![6000], true),
            (vec![-6000], true),
            // The answer took 100 ms, and the benefit of the doubt is ours.
            (vec![6100], true),
            (vec![6101], false),
            (vec![-6001], false),
            (vec![0, 3_600_000], true),
            (vec![3_600_000, 3_600_000], false),
            (vec![0, 3_600_000, -3_600_000], false),
            (vec![0, 0, 3_600_000, -3_600_000], true),
            (vec![i64::MAX, i64::MIN], false),
        ] {
            let judged = agree(&clocks(&differences), TOLERANCE);
            assert_eq!(judged.is_ok(), agrees, "{differences:?}: {judged:?}");
        }
    }

    #[test]
    fn the_refusal_names_the_members_and_the_differences() {
        let refused = agree(&clocks(&[3_600_100, -90_000]), TOLERANCE).unwrap_err();
        assert_eq!(refused.code, Code::Unavailable);
        let (ahead, behind) = ("that of m0 is 3600 s ahead", "that of m1 is 90 s behind");
        assert!(refused.text.contains(&format!("{ahead}, {behind}")), "{refused}");
        assert!(refused.text.contains("by 6 s, a tenth of the period"), "{refused}");
    }
}
