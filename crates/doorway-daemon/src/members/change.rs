//! Changes of the members that an operator asks for.
//!
//! Each change first looks at everything that could be wrong, and changes nothing if something is.
//! A command to the store may stay unanswered. It is sent again then, unless the record shows that
//! it was carried out.

use std::time::Duration;

use doorway_members::{FoundError, Hello};
use doorway_node::members::{
    Answer, Command, GroupState, LONGEST_LEASE_MS, NAME_LIMIT, Record, SHORTEST_LEASE_MS, Seat,
    SeatId,
};
use doorway_protocol::{
    Code, GroupBackup, LABEL, MembersReport, MembersRequest, Refusal, is_label,
};
use doorway_sessions::principal::Principal;
use doorway_sessions::refusals::refusal;
use tokio::time::{sleep, timeout};

use super::audit::{self, Operator};
use super::former::FormerGroupTotals;
use super::{Members, voters};
use crate::service::{Service, is_owner};

/// How many times a command is sent that the group does not answer.
pub(super) const ATTEMPTS: usize = 3;

/// How long to wait before a command is sent again.
pub(super) const PAUSE: Duration = Duration::from_millis(300);

/// How long to wait until this node has learnt of a change.
pub(super) const NEWS: Duration = Duration::from_secs(2);

/// With what a group begins.
#[derive(Clone, Copy)]
enum Origin<'a> {
    /// With nothing.
    None,
    /// Where a group with a fixed list of members has ended, above this view.
    Fixed(u64),
    /// With this backup of a former group, above this view.
    Backup(&'a GroupBackup, u64),
}

impl Service {
    /// Report or change the members of the group on behalf of a client.
    pub(crate) async fn members(
        &self,
        operator: &Operator,
        request: MembersRequest,
    ) -> Result<MembersReport, Refusal> {
        let Some(members) = self.store() else {
            let text = "the members of this node's group are fixed in its settings; a group with \
                        [members] in the settings of its nodes can change them";
            return Err(refusal(Code::NotServed, text));
        };
        if let MembersRequest::Restore { backup, lease_ms, above, check: true } = &request {
            owner(&operator.principal)?;
            members.prepare(*lease_ms, Origin::Backup(backup, *above)).await?;
        } else if request != MembersRequest::Show {
            owner(&operator.principal)?;
            let (service, operator) = (self.clone(), operator.clone());
            let change = async move { service.change_members(&operator, request).await };
            audit::to_its_end(Box::pin(change)).await?;
        }
        Ok(members.report(self.node()))
    }

    /// Change the members, and note that.
    async fn change_members(
        &self,
        operator: &Operator,
        request: MembersRequest,
    ) -> Result<(), Refusal> {
        let Some(members) = self.store() else { return Ok(()) };
        let Ok(_one) = members.changing.try_lock() else {
            let text = "another change of the members is under way at this node; try again";
            return Err(refusal(Code::Busy, text));
        };
        let title = audit::title(&request);
        let changed = members.change(self, request).await;
        if changed.is_ok() {
            tracing::info!(by = operator.principal.name, "the members were changed: {title}");
        }
        members.note(operator, title, &changed).await;
        changed
    }

    /// The members of the group, if the group agrees on them.
    pub fn members_report(&self) -> Option<MembersReport> {
        self.store().map(|members| members.report(self.node()))
    }
}

impl Members {
    async fn change(&self, service: &Service, request: MembersRequest) -> Result<(), Refusal> {
        match request {
            MembersRequest::Show | MembersRequest::Log(_) | MembersRequest::Arranged => Ok(()),
            MembersRequest::Init { lease_ms, from_fixed } => {
                self.init(lease_ms, from_fixed.map_or(Origin::None, Origin::Fixed)).await
            }
            MembersRequest::Restore { backup, lease_ms, above, .. } => {
                self.init(lease_ms, Origin::Backup(&backup, above)).await
            }
            MembersRequest::Add { name, address } => self.add(&name, &address).await,
            MembersRequest::Remove { name, force } => self.remove(service, &name, force).await,
            MembersRequest::Replace { name } => self.replace(&name).await,
            MembersRequest::Lease(lease_ms) => self.lease(lease_ms).await,
            MembersRequest::Rules { rules, replaces, force } => {
                self.change_rules(service, rules, replaces, force).await
            }
        }
    }

    /// Found the group, with this node and the machines of `join`.
    async fn init(&self, lease_ms: Option<u32>, origin: Origin<'_>) -> Result<(), Refusal> {
        let state = self.prepare(lease_ms, origin).await?;
        match self.store.found_with(state).await {
            Ok(()) => Ok(()),
            Err(error @ (FoundError::NoLeader(_) | FoundError::Ended(_) | FoundError::Etcd(_))) => {
                Err(refusal(Code::Unavailable, error.to_string()))
            }
            Err(error) => Err(refusal(Code::Invalid, format!("{error}; nothing was founded"))),
        }
    }

    /// The first state of the group, with this node and the machines of `join`, if it can be
    /// founded.
    async fn prepare(
        &self,
        lease_ms: Option<u32>,
        origin: Origin<'_>,
    ) -> Result<GroupState, Refusal> {
        if self.record().is_some() || self.store.cluster().is_some() {
            let text = format!(
                "the group {} is founded already: `doorway members` shows it, and `doorway members \
                 add NAME ADDRESS` adds a machine",
                self.group
            );
            return Err(refusal(Code::Invalid, text));
        }
        let lease_ms = lease_ms.unwrap_or(match origin {
            Origin::Backup(backup, _) => backup.lease_ms,
            Origin::None | Origin::Fixed(_) => self.settings.lease.as_millis() as u32,
        });
        check_lease(lease_ms)?;
        let restored = match origin {
            Origin::Backup(backup, above) => {
                check_lease(backup.lease_ms)?; // The command waits for that long.
                Some(self.check_backup(backup, above).await?)
            }
            Origin::None | Origin::Fixed(_) => None,
        };
        let (seats, former) = self.gather().await?;
        let cluster = u128::from_le_bytes(crate::service::secret().0);
        let mut record = Record::new(cluster, lease_ms, 0, seats);
        let mut rules = self.rules.clone();
        match origin {
            Origin::None => former.check_none(&record)?,
            Origin::Fixed(above) => {
                record.succeed_fixed(former.next_view(above)?, &former.seats);
            }
            Origin::Backup(backup, _) => {
                former.check_none(&record)?;
                record.number = restored.unwrap_or_default();
                rules.clone_from(&backup.rules);
            }
        }
        Ok(GroupState::new(record).with_rules(rules))
    }

    /// The machines that found the group, this node and those of `join`, and the group to which
    /// they belonged before.
    async fn gather(&self) -> Result<(Vec<Seat>, FormerGroupTotals), Refusal> {
        let me = self.store.seat();
        let own = Seat {
            id: me,
            name: self.name.clone(),
            address: self.settings.address.clone(),
            voter: true,
        };
        let mut seats = vec![own];
        let mut former = FormerGroupTotals::default();
        former.count(me, self.former);
        for address in self.others() {
            let hello = self.ask(address).await?;
            if let Some(known) = seats.iter().find(|seat| seat.id.0 == hello.seat) {
                // The same machine under another address.
                tracing::debug!(address, name = known.name, "listed twice in `join`");
                continue;
            }
            if hello.cluster.is_some() {
                let text = format!(
                    "`{}` at {address} belongs to a group already: at a member of that group run \
                     `doorway members add {} {}`, or start `{}` with an empty data directory",
                    hello.name, self.name, self.settings.address, hello.name
                );
                return Err(refusal(Code::Invalid, text));
            }
            if seats.iter().any(|seat| seat.name == hello.name) {
                let text = format!(
                    "two machines answer as `{}`, one of them at {address}: give each a `node` and \
                     a certificate of its own",
                    hello.name
                );
                return Err(refusal(Code::Invalid, text));
            }
            former.count(SeatId(hello.seat), hello.former);
            let Hello { name, seat, address, .. } = hello;
            seats.push(Seat { id: SeatId(seat), name, address, voter: false });
        }
        seats.sort_by(|one, other| one.name.cmp(&other.name));
        // This node votes, so it is chosen first.
        let voters = voters::choose(&seats, |_| true);
        for seat in &mut seats {
            seat.voter = self.by_etcd() || voters.contains(&seat.id);
        }
        Ok((seats, former))
    }

    async fn add(&self, name: &str, address: &str) -> Result<(), Refusal> {
        let record = self.founded()?;
        check_name(name)?;
        if record.seats.iter().any(|seat| seat.name == name) {
            let text = format!(
                "`{name}` belongs to the group already; if it has a new disk, run `doorway members \
                 replace {name}`"
            );
            return Err(refusal(Code::Invalid, text));
        }
        if let Some(seat) = record.seats.iter().find(|seat| seat.address == address) {
            let text = format!(
                "the address {address} is that of `{}` already; remove `{}` first, or give another \
                 address",
                seat.name, seat.name
            );
            return Err(refusal(Code::Invalid, text));
        }
        let hello = self.ask(address).await?;
        check_hello(&hello, name, address, &record)?;
        let seat = Seat {
            id: SeatId(hello.seat),
            name: name.to_owned(),
            address: address.to_owned(),
            voter: self.by_etcd(),
        };
        self.agree(Command::AddSeat(seat.clone()), |record| record.seat(seat.id).is_some()).await?;
        if self.by_etcd() {
            return Ok(());
        }
        self.set_voters(|id| id == seat.id || self.is_reachable(id)).await
    }

    async fn remove(&self, service: &Service, name: &str, force: bool) -> Result<(), Refusal> {
        let record = self.founded()?;
        let seat = seat_by_name(&record, name)?.clone();
        if record.seats.len() == 1 {
            let text = format!(
                "`{name}` is the last machine of the group; to end the group, stop its node"
            );
            return Err(refusal(Code::Invalid, text));
        }
        if !self.by_etcd() {
            self.give_up_vote(service, &record, &seat, force).await?;
        }
        self.agree(Command::DropSeat(seat.id), |record| record.seat(seat.id).is_none()).await
    }

    /// Let the other machines vote without this one, if they are able to.
    async fn give_up_vote(
        &self,
        service: &Service,
        record: &Record,
        seat: &Seat,
        force: bool,
    ) -> Result<(), Refusal> {
        let name = &seat.name;
        let left: Vec<Seat> = record.seats.iter().filter(|it| it.id != seat.id).cloned().collect();
        let linked = service.node().membership().map(|it| it.linked).unwrap_or_default();
        let is_reachable =
            |id: SeatId| id == self.store.seat() || linked.contains(&id) || self.is_reachable(id);
        let voting: Vec<&Seat> = left.iter().filter(|it| it.voter).collect();
        if seat.voter
            && !force
            && !voting.is_empty()
            && !voters::have_majority(&voting, is_reachable)
        {
            let away = voting.iter().filter(|it| !is_reachable(it.id));
            let away: Vec<&str> = away.map(|it| it.name.as_str()).collect();
            let text = format!(
                "without `{name}` no majority of the voters would be left, because {} cannot be \
                 reached: start or remove {} first; --force removes `{name}` all the same",
                away.join(" and "),
                if away.len() == 1 { "it" } else { "them" }
            );
            return Err(refusal(Code::Unavailable, text));
        }
        // The others vote before the machine goes: it may be the only one that votes.
        let chosen = voters::choose(&left, is_reachable);
        self.vote(chosen).await
    }

    async fn replace(&self, name: &str) -> Result<(), Refusal> {
        let record = self.founded()?;
        let old = seat_by_name(&record, name)?.clone();
        if old.id == self.store.seat() {
            let text = format!(
                "`{name}` is this node, and it has its old disk; run `doorway members replace` at \
                 another node, for a machine with a new disk"
            );
            return Err(refusal(Code::Invalid, text));
        }
        let hello = self.ask(&old.address).await?;
        if hello.seat == old.id.0 {
            let text = format!(
                "`{name}` at {} still has its old data directory, so there is nothing to replace",
                old.address
            );
            return Err(refusal(Code::Invalid, text));
        }
        check_hello(&hello, name, &old.address, &record)?;
        let others = record.seats.iter().any(|seat| seat.voter && seat.id != old.id);
        if !others && !self.by_etcd() {
            let text = format!(
                "`{name}` is the only machine that votes, so what the group had agreed on is lost \
                 with its disk"
            );
            return Err(refusal(Code::Invalid, text));
        }
        let new = Seat { id: SeatId(hello.seat), ..old.clone() };
        self.agree(Command::DropSeat(old.id), |record| record.seat(old.id).is_none()).await?;
        let added = self.agree(Command::AddSeat(new.clone()), |it| it.seat(new.id).is_some()).await;
        added.map_err(|Refusal { code, text }| {
            let address = &old.address;
            let text = format!(
                "{text}; the old `{name}` was removed: run `doorway members add {name} {address}`"
            );
            refusal(code, text)
        })
    }

    async fn lease(&self, lease_ms: u32) -> Result<(), Refusal> {
        self.founded()?;
        check_lease(lease_ms)?;
        self.agree(Command::Lease(lease_ms), |record| record.lease_ms == lease_ms).await
    }

    /// Let the right number of machines vote.
    async fn set_voters(&self, is_reachable: impl Fn(SeatId) -> bool) -> Result<(), Refusal> {
        let record = self.founded()?;
        self.vote(voters::choose(&record.seats, is_reachable)).await
    }

    /// Let these machines vote, and no others.
    async fn vote(&self, chosen: Vec<SeatId>) -> Result<(), Refusal> {
        let votes = |record: &Record| {
            record.seats.iter().all(|seat| seat.voter == chosen.contains(&seat.id))
        };
        if self.record().is_some_and(|record| votes(&record)) {
            return Ok(());
        }
        self.agree(Command::Voters(chosen.clone()), votes).await
    }

    /// Agree on a command. It is done when the record satisfies `is_done`.
    pub(super) async fn agree(
        &self,
        command: Command,
        is_done: impl Fn(&Record) -> bool,
    ) -> Result<(), Refusal> {
        let mut records = self.records();
        let mut why = String::new();
        for _ in 0..ATTEMPTS {
            match self.store.put(command.clone()).await {
                Ok(Answer::Refused(error)) => {
                    // An earlier attempt may have been carried out after all.
                    if !why.is_empty() && self.record().is_some_and(|record| is_done(&record)) {
                        return Ok(());
                    }
                    return Err(refusal(Code::Invalid, error.to_string()));
                }
                Ok(_) => {
                    let known = |record: &Option<_>| record.as_deref().is_some_and(&is_done);
                    // The change is made, also if this node learns of it later.
                    let _ = timeout(NEWS, records.wait_for(known)).await;
                    return Ok(());
                }
                Err(unsure) => why = unsure.to_string(),
            }
            if self.record().is_some_and(|record| is_done(&record)) {
                return Ok(());
            }
            sleep(PAUSE).await;
        }
        let text = format!(
            "{why}; it is unknown whether the change was made: look with `doorway members`, and \
             try again"
        );
        Err(refusal(Code::Unavailable, text))
    }

    /// Ask the node at an address who it is.
    async fn ask(&self, address: &str) -> Result<Hello, Refusal> {
        self.store.ask(address).await.map_err(|error| {
            let text = format!(
                "no node of the group {} answers at {address}: {error}; start it, or correct the \
                 address; nothing was changed",
                self.group
            );
            refusal(Code::Unavailable, text)
        })
    }

    /// The record of the group, if it is founded.
    pub(super) fn founded(&self) -> Result<std::sync::Arc<Record>, Refusal> {
        self.record().ok_or_else(|| {
            let outside = self.outside.lock().clone();
            refusal(Code::Unavailable, outside.text(&self.name, &self.settings.address))
        })
    }

    /// Whether the members agree by etcd. Then nobody votes, and all seats are alike.
    fn by_etcd(&self) -> bool {
        self.settings.etcd.is_some()
    }

    /// Whether a machine that votes can be reached.
    fn is_reachable(&self, seat: SeatId) -> bool {
        self.store.health().reachable.contains(&seat)
    }
}

/// Refuse a client that may not change the group.
pub(super) fn owner(principal: &Principal) -> Result<(), Refusal> {
    if is_owner(principal) {
        return Ok(());
    }
    let text = "only root and the user of the node may do this to its group, at its Unix socket";
    Err(refusal(Code::Forbidden, text))
}

fn seat_by_name<'a>(record: &'a Record, name: &str) -> Result<&'a Seat, Refusal> {
    record.seats.iter().find(|seat| seat.name == name).ok_or_else(|| {
        let names: Vec<&str> = record.seats.iter().map(|seat| seat.name.as_str()).collect();
        let text = format!("`{name}` does not belong to the group: it has {}", names.join(", "));
        refusal(Code::Invalid, text)
    })
}

/// Check that the machine which answered is the one that is meant, and may come into the group.
fn check_hello(hello: &Hello, name: &str, address: &str, record: &Record) -> Result<(), Refusal> {
    let wrong = |text: String| Err(refusal(Code::Invalid, text));
    if hello.name != name {
        return wrong(format!(
            "the node at {address} is `{}`, not `{name}`: correct the name or the address",
            hello.name
        ));
    }
    if let Some(seat) = record.seat(SeatId(hello.seat)) {
        return wrong(format!(
            "the node at {address} belongs to the group already, as `{}`",
            seat.name
        ));
    }
    if hello.former.is_some() {
        return wrong(format!(
            "`{name}` at {address} has the data directory of another group, whose locks and fences \
             this group does not know: start it with an empty data directory, then try again"
        ));
    }
    match hello.cluster {
        Some(cluster) if cluster == record.cluster => wrong(format!(
            "`{name}` belonged to the group before and was removed: start it with an empty data \
             directory, then try again"
        )),
        Some(_) => wrong(format!(
            "`{name}` at {address} belongs to another group: start it with an empty data \
             directory, then try again"
        )),
        None => Ok(()),
    }
}

fn check_name(name: &str) -> Result<(), Refusal> {
    if is_label(name) && name.len() <= NAME_LIMIT {
        return Ok(());
    }
    let text = format!("`{name}` cannot be the name of a node: use {LABEL}");
    Err(refusal(Code::Invalid, text))
}

fn check_lease(lease_ms: u32) -> Result<(), Refusal> {
    if (SHORTEST_LEASE_MS..=LONGEST_LEASE_MS).contains(&lease_ms) {
        return Ok(());
    }
    let text = format!(
        "a lease of {lease_ms} ms is not possible: give a time from {} s to {} s",
        SHORTEST_LEASE_MS / 1000,
        LONGEST_LEASE_MS / 1000
    );
    Err(refusal(Code::Invalid, text))
}
