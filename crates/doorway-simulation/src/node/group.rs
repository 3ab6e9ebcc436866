//! The node as a member of its group: views and shards.

use std::sync::Arc;
use std::time::Duration;

use doorway_core::NodeId;
use doorway_node::link::Incarnation;
use doorway_node::locks::{Seating, Shard, ShardEffects};
use doorway_node::members::Event;
use doorway_node::messages::{AlgorithmMessage, HeldLock, Message};
use doorway_node::views::{
    AgreedEvent, ClaimError, EndReason, Event as ViewEvent, Host, Notice, StartedView, ViewChange,
};
use doorway_protocol::Fence;

use super::links::Link;
use super::locks::WokenTasks;
use super::members::AgreedNode;
use super::{Node, NodeEvent, place};
use crate::clock::MS;
use crate::context::{Context, log};
use crate::register::{node_of, seat};
use crate::settings::Settings;

/// The node as a member of its group.
#[derive(Debug)]
pub(crate) struct Group {
    pub(super) views: Views,
    pub(super) shards: Vec<Shard>,
    pub(super) seating: Arc<Seating>,
    /// By number; `None` for this node.
    pub(super) links: Vec<Option<Link>>,
    pub(super) incarnation: Incarnation,
    pub(super) woken: WokenTasks,
    /// Callers that have not said hello yet.
    pub(super) callers:
        std::collections::BTreeMap<crate::network::Wire, doorway_node::link::Decoder>,
    /// The epoch is being written.
    pub(crate) raising: bool,
    pub(super) ended: bool,
}

/// What leads the node from view to view.
#[derive(Debug)]
pub(super) enum Views {
    Fixed(ViewChange),
    Agreed(Box<AgreedNode>),
}

impl Group {
    pub(super) fn new(
        settings: &Settings,
        me: usize,
        epoch: Option<u64>,
        reclaiming: bool,
        context: &mut Context,
    ) -> Self {
        let name = |node| format!("n{node}");
        // The members of an agreed group are not known yet: there is this node, and no link.
        let (members, place, views): (Vec<String>, _, _) = if let Some(epoch) = epoch {
            let (size, me) = (settings.nodes, NodeId::at(me));
            let change = ViewChange::new(me, size, epoch, reclaiming);
            ((0..size).map(name).collect(), me, Views::Fixed(change))
        } else {
            let agreed = AgreedNode::new(me, reclaiming, context.random.next());
            (vec![name(me)], NodeId(0), Views::Agreed(Box::new(agreed)))
        };
        let rules = settings.rules_for(&members);
        let seating = Arc::new(Seating { members, me: place, rules });
        let shard = |_| Shard::new(Arc::clone(&seating), settings.keep_idle);
        let link = |node| (node != me && epoch.is_some()).then(Link::default);
        Self {
            views,
            shards: (0..settings.shards).map(shard).collect(),
            links: (0..settings.nodes).map(link).collect(),
            incarnation: Incarnation(context.random.next()),
            woken: WokenTasks::default(),
            callers: std::collections::BTreeMap::new(),
            raising: false,
            ended: false,
            seating,
        }
    }

    /// Queue a message of a lock for a member of its view.
    pub(super) fn send(&mut self, to: NodeId, message: AlgorithmMessage) {
        let to = match &self.views {
            Views::Fixed(_) => Some(to.index()),
            Views::Agreed(agreed) => agreed.seats.seat(message.view, to).map(node_of),
        };
        if let Some(link) = to.and_then(|to| self.links[to].as_mut()) {
            link.push(&Message::Algorithm(message));
        }
    }

    /// The number of a peer in a view, if it is a member.
    pub(super) fn member(&self, view: u64, peer: usize) -> Option<NodeId> {
        match &self.views {
            Views::Fixed(_) => Some(NodeId::at(peer)),
            Views::Agreed(agreed) => agreed.seats.member(view, seat(peer)),
        }
    }

    /// May a client take back a lock that it held under this fence?
    pub(super) fn claim(&mut self, fence: Fence) -> Result<(), ClaimError> {
        match &mut self.views {
            Views::Fixed(change) => change.claim(fence),
            Views::Agreed(agreed) => agreed.views.claim(fence),
        }
    }

    /// How many locks have clients here.
    pub(super) fn busy(&self) -> usize {
        self.shards.iter().map(|shard| shard.busy().count()).sum()
    }
}

/// The shards and links of a node, as its views act on them.
struct Stage<'a> {
    settings: &'a Settings,
    shards: &'a mut [Shard],
    links: &'a mut [Option<Link>],
    seating: &'a Arc<Seating>,
    now: Duration,
    effects: ShardEffects,
    notices: Vec<String>,
    ended: bool,
}

impl Stage<'_> {
    /// Send the messages of shards, in the order in which the shards have made them.
    fn send_messages(&mut self) {
        for (to, message) in self.effects.messages.drain(..) {
            if let Some(link) = &mut self.links[to.index()] {
                link.push(&Message::Algorithm(message));
            }
        }
    }
}

impl Host for Stage<'_> {
    fn tell(&mut self, to: NodeId, message: &Message) {
        if let Some(link) = &mut self.links[to.index()] {
            link.push(message);
        }
    }

    fn tell_all(&mut self, message: &Message) {
        self.links.iter_mut().flatten().for_each(|link| link.push(message));
    }

    fn stop_shards(&mut self, view: u64) -> Vec<HeldLock> {
        self.notices.push(format!("stops for view {view}"));
        self.shards.iter_mut().flat_map(|shard| shard.stop(view)).collect()
    }

    fn start_shards(&mut self, started: StartedView) -> bool {
        let number = started.view.number();
        self.notices.push(format!("starts view {number} with {:?}", started.held));
        let mut parts: Vec<Vec<(NodeId, HeldLock)>> = vec![Vec::new(); self.shards.len()];
        for (node, held) in started.held.into_iter().enumerate() {
            for held in held {
                let shard = place(self.settings, &held.lock);
                parts[shard].push((NodeId::at(node), held));
            }
        }
        for (index, part) in parts.into_iter().enumerate() {
            self.shards[index].start(number, self.seating, part, self.now, &mut self.effects);
            self.send_messages();
        }
        std::mem::take(&mut self.effects.overdue)
    }

    fn disown(&mut self, view: u64) {
        self.notices.push(format!("disowns what was claimed of view {view} and later"));
        for shard in &mut *self.shards {
            shard.disown(&(0..view), &mut self.effects);
        }
        self.send_messages();
    }

    fn end(&mut self, reason: EndReason) {
        self.notices.push(format!("ends: {reason}"));
        for shard in &mut *self.shards {
            shard.end(self.now, &mut self.effects);
        }
        self.send_messages();
        self.ended = true;
    }

    fn log(&mut self, notice: Notice) {
        self.notices.push(format!("{notice:?}"));
    }
}

impl Node {
    /// Take the first steps towards a view.
    pub(super) fn begin(&mut self, context: &mut Context) {
        self.drive(context, |change, now, stage| change.drive_begin(now, stage));
        if let Some((version, state)) = self.seen.clone() {
            self.shown(context, version, state);
        }
        context.show_state(self.id);
    }

    /// A shard cannot go on in its view, or not for long.
    pub(super) fn overdue(&mut self, context: &mut Context) {
        self.views(context, ViewEvent::Overdue);
        self.agreed_views(context, AgreedEvent::Overdue);
    }

    /// Former holders have reclaimed their locks, or have had the time to do so.
    pub(super) fn serve(&mut self, context: &mut Context) {
        self.views(context, ViewEvent::Serve);
        self.agreed_views(context, AgreedEvent::Serve);
        self.tell_keeper(context, Event::Reclaimed);
    }

    /// The node is to end.
    pub(super) fn end_views(&mut self, context: &mut Context) {
        self.views(context, ViewEvent::End(EndReason::Stopped));
        self.agreed_views(context, AgreedEvent::End(EndReason::Stopped));
    }

    /// The link to a peer is down.
    pub(super) fn unlinked(&mut self, context: &mut Context, peer: usize) {
        self.views(context, ViewEvent::Down(NodeId::at(peer)));
        self.agreed_views(context, AgreedEvent::Down(seat(peer)));
        self.tell_keeper(context, Event::Down(seat(peer)));
    }

    /// Something has happened that may matter for the views of a fixed group.
    pub(super) fn views(&mut self, context: &mut Context, event: ViewEvent) {
        self.drive(context, |change, now, stage| change.drive(now, event, stage));
    }

    fn drive(
        &mut self,
        context: &mut Context,
        act: impl FnOnce(&mut ViewChange, Duration, &mut Stage<'_>) -> Option<u64>,
    ) {
        let now = self.uptime(context);
        let settings = std::rc::Rc::clone(&context.settings);
        let Some(process) = &mut self.process else { return };
        let group = &mut process.group;
        let Views::Fixed(change) = &mut group.views else { return };
        let mut stage = Stage {
            settings: &settings,
            shards: &mut group.shards,
            links: &mut group.links,
            seating: &group.seating,
            now,
            effects: ShardEffects::default(),
            notices: Vec::new(),
            ended: false,
        };
        let raise = act(change, now, &mut stage);
        let Stage { mut effects, notices, ended, .. } = stage;
        group.ended |= ended;
        for notice in notices {
            if notice.starts_with("Refused") {
                context.violate(format!("n{}: {notice}", self.id));
            }
            log!(context, "n{} {notice}", self.id);
        }
        if let Some(above) = raise {
            group.raising = true;
            let time = 2 * MS + self.disk.borrow().stall;
            self.later(context, time, NodeEvent::Raised(above));
        }
        self.effects(context, &mut effects);
    }

    /// The epoch is on disk, unless the disk is full.
    pub(super) fn raised(&mut self, context: &mut Context, above: u64) {
        let Some(process) = &mut self.process else { return };
        process.group.raising = false;
        let event = self.raise_epoch(above).map_or(ViewEvent::RaiseFailed, ViewEvent::EpochRaised);
        log!(context, "n{} {event:?}", self.id);
        self.views(context, event);
    }

    /// Whether the node has ended by itself.
    pub(crate) fn has_ended(&self) -> bool {
        self.process.as_ref().is_some_and(|process| process.group.ended)
    }
}
