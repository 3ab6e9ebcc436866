//! Settling groups of any algorithm: see [`Algorithm::settle`].

use std::any::Any;

use doorway_core::{Algorithm, Group, Mail, Member, Snapshot};

use super::{AnyMember, AnyMessage};

/// A group at one moment, of any algorithm: see [`Snapshot`]. A [`Catalogue`] says what its numbers
/// stand for.
pub(crate) struct AnySnapshot<'a> {
    /// The live nodes, in order.
    pub(crate) nodes: &'a [u32],
    /// The messages under way.
    pub(crate) mail: &'a [Mail<u32>],
    /// How many nodes may still crash.
    pub(crate) crashes: u32,
    /// Whether waiting clients may give up.
    pub(crate) withdrawals: bool,
}

/// Nodes and messages by numbers. A number always stands for the same value.
pub(crate) trait Catalogue {
    fn member(&self, number: u32) -> &AnyMember;
    fn message(&self, number: u32) -> &AnyMessage;

    /// The number of the form that a node gets when it is settled.
    fn settled_member(&mut self, number: u32, settled: AnyMember) -> Result<u32, UnlistedPart>;

    /// The number of the form that a message gets when it is settled.
    fn settled_message(&mut self, number: u32, settled: AnyMessage) -> Result<u32, UnlistedPart>;
}

/// A node or a message has no number.
#[derive(Debug)]
pub(crate) struct UnlistedPart;

/// A settled group.
pub(crate) struct SettledGroup {
    pub(crate) nodes: Vec<u32>,
    /// The messages that are left, if any was dropped or changed.
    pub(crate) mail: Option<Vec<Mail<u32>>>,
}

/// Settles groups of one algorithm, one after the other, with numbers of one [`Catalogue`].
///
/// A checker settles millions of groups that consist of a few thousand different nodes and
/// messages. So the settler keeps a copy of each, and remembers which forms it gets.
pub(crate) trait Settler: Send {
    /// Settle a group. `None` if it is settled already.
    fn settle(
        &mut self,
        group: &Group,
        snapshot: &AnySnapshot<'_>,
        catalogue: &mut dyn Catalogue,
    ) -> Result<Option<SettledGroup>, UnlistedPart>;
}

/// The settler of algorithm `A`.
pub(super) struct TypedSettler<A: Algorithm> {
    nodes: CopyTable<A>,
    messages: CopyTable<A::Message>,
    /// The group that is being settled.
    snapshot: Snapshot<A>,
}

impl<A: Algorithm> TypedSettler<A> {
    pub(super) fn new() -> Self {
        let snapshot =
            Snapshot { nodes: Vec::new(), mail: Vec::new(), crashes: 0, withdrawals: false };
        Self { nodes: CopyTable(Vec::new()), messages: CopyTable(Vec::new()), snapshot }
    }

    /// Copy a group into the snapshot.
    fn load(&mut self, from: &AnySnapshot<'_>, catalogue: &dyn Catalogue) {
        let Self { nodes, messages, snapshot } = self;
        snapshot.nodes.clear();
        snapshot.nodes.extend(from.nodes.iter().map(|number| {
            let node = nodes.get(*number, || catalogue.member(*number).algorithm::<A>().clone());
            node.spare.take().unwrap_or_else(|| node.value.clone())
        }));
        snapshot.mail.clear();
        snapshot.mail.extend(from.mail.iter().map(|mail| {
            let message = || catalogue.message(mail.message).get::<A::Message>().clone();
            mail.clone().map(|number| messages.get(number, message).value.clone())
        }));
        (snapshot.crashes, snapshot.withdrawals) = (from.crashes, from.withdrawals);
    }

    /// The nodes as they are now, if any of them has changed.
    fn settled_nodes(
        &mut self,
        before: &[u32],
        catalogue: &mut dyn Catalogue,
    ) -> Result<Option<Vec<u32>>, UnlistedPart> {
        let mut settled = None;
        for (at, state) in self.snapshot.nodes.drain(..).enumerate() {
            let number = before[at];
            let node = self.nodes.entry(number);
            if node.value == state {
                node.spare = Some(state);
                continue;
            }
            let found = node.number_of(state, |state| {
                let old: &dyn Any = catalogue.member(number).state();
                let old: &Member<A> = old.downcast_ref().expect("nodes of one algorithm");
                let new = AnyMember::new(old.with_algorithm(state.clone()));
                catalogue.settled_member(number, new)
            });
            settled.get_or_insert_with(|| before.to_vec())[at] = found?;
        }
        Ok(settled)
    }

    /// The messages that are left, if any was dropped or changed.
    fn settled_mail(
        &mut self,
        before: &[Mail<u32>],
        catalogue: &mut dyn Catalogue,
    ) -> Result<Option<Vec<Mail<u32>>>, UnlistedPart> {
        let Self { messages, snapshot, .. } = self;
        let mut is_same = |(old, new): (&Mail<u32>, &Mail<A::Message>)| {
            messages.entry(old.message).value == new.message
        };
        if snapshot.mail.len() == before.len()
            && before.iter().zip(&snapshot.mail).all(&mut is_same)
        {
            return Ok(None);
        }
        let mut before = before.iter();
        let left = snapshot.mail.drain(..).map(|mail| {
            let is_it =
                |old: &&Mail<u32>| (old.id, old.from, old.to) == (mail.id, mail.from, mail.to);
            let old = before
                .find(is_it)
                .expect("`Algorithm::settle` adds no message, and keeps the order");
            let message = messages.entry(old.message);
            if message.value == mail.message {
                return Ok(old.clone());
            }
            let number = message.number_of(mail.message, |new| {
                catalogue.settled_message(old.message, AnyMessage::new(new.clone()))
            });
            Ok(Mail { message: number?, ..*old })
        });
        left.collect::<Result<_, _>>().map(Some)
    }
}

impl<A: Algorithm> Settler for TypedSettler<A> {
    fn settle(
        &mut self,
        group: &Group,
        snapshot: &AnySnapshot<'_>,
        catalogue: &mut dyn Catalogue,
    ) -> Result<Option<SettledGroup>, UnlistedPart> {
        self.load(snapshot, catalogue);
        A::settle(group, &mut self.snapshot);
        let nodes = self.settled_nodes(snapshot.nodes, catalogue)?;
        let mail = self.settled_mail(snapshot.mail, catalogue)?;
        if nodes.is_none() && mail.is_none() {
            return Ok(None);
        }
        Ok(Some(SettledGroup { nodes: nodes.unwrap_or_else(|| snapshot.nodes.to_vec()), mail }))
    }
}

/// The nodes or messages of a catalogue that a settler has met, by their numbers.
struct CopyTable<T>(Vec<Option<Entry<T>>>);

/// A node or a message that a settler has met.
struct Entry<T> {
    value: T,
    /// A copy of the value that a snapshot may take. Only nodes have one: messages are small.
    spare: Option<T>,
    /// What it became when it was settled, with the number of each.
    forms: Vec<(T, u32)>,
}

impl<T: Eq> CopyTable<T> {
    /// The entry with this number, with a value from `make` if it is new.
    fn get(&mut self, number: u32, make: impl FnOnce() -> T) -> &mut Entry<T> {
        let number = number as usize;
        if number >= self.0.len() {
            self.0.resize_with(number + 1, || None);
        }
        self.0[number].get_or_insert_with(|| Entry {
            value: make(),
            spare: None,
            forms: Vec::new(),
        })
    }

    /// The entry with this number, which was met before.
    fn entry(&mut self, number: u32) -> &mut Entry<T> {
        self.0[number as usize].as_mut().expect("loaded before")
    }
}

impl<T: Eq> Entry<T> {
    /// The number of a settled form. `find` looks it up if it is new.
    fn number_of(
        &mut self,
        form: T,
        find: impl FnOnce(&T) -> Result<u32, UnlistedPart>,
    ) -> Result<u32, UnlistedPart> {
        if let Some((_, number)) = self.forms.iter().find(|(known, _)| *known == form) {
            return Ok(*number);
        }
        let number = find(&form)?;
        self.forms.push((form, number));
        Ok(number)
    }
}
