//! How a node goes from one view to the next, as one state machine.
//!
//! [`ViewChange::step`] takes everything that can matter for the views of a node: what peers say,
//! links that come and go, the results of what it asked for, and requests of the program. It
//! answers with a list of [`Output`]s. It knows no clock, no network, no disk and no threads: the
//! time is an argument, and the outputs are performed by a *host*. The shell of a real node is one
//! host ([`ViewChange::drive`] has the loop), a simulation or a search is another.
//!
//! # What a host must do
//!
//! - Perform the outputs of a step in order, before the outputs of a later step.
//! - After [`Output::StopShards`], stop each shard and read what it holds in one critical section.
//!   When all shards have stopped, report [`Event::ShardsStopped`] with everything they hold.
//! - After [`Output::RaiseAbove`], make the new epoch durable first, and then report
//!   [`Event::EpochRaised`]. Other events may happen in the meantime.
//! - For each peer, report [`Event::Hello`], [`Event::Up`], the messages of the connection, and
//!   [`Event::Down`] in this order, as a link does.

use std::collections::VecDeque;
use std::time::Duration;

use doorway_core::{NodeId, NodeSet};
use doorway_protocol::Fence;

use super::epochs::{LearnOutcome, StartedView, View, ViewError, Views};
use crate::link::Incarnation;
use crate::messages::{Flush, HeldLock, Message};

/// After how long a raise that failed is tried again, for example because the disk was full.
const RETRY: Duration = Duration::from_secs(1);

/// Something that has happened to a node and may matter for its views.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A handshake has begun: a process of this peer has said who it is and which epochs it knows.
    /// [`ViewChange::admits`] must have accepted the epochs.
    Hello {
        /// The peer.
        peer: NodeId,
        /// Which start of the peer it is.
        incarnation: Incarnation,
        /// The epochs that the peer knows.
        epochs: Vec<u64>,
    },
    /// The handshake is complete, and messages can be sent and received.
    Up {
        /// The peer.
        peer: NodeId,
        /// Which start of the peer it is.
        incarnation: Incarnation,
        /// The epochs that the peer knew as the handshake began.
        epochs: Vec<u64>,
    },
    /// The connection to a peer has ended.
    Down(NodeId),
    /// A peer has sent the epochs that it knows.
    Epochs(NodeId, Vec<u64>),
    /// A peer has sent a part of its snapshot.
    Flush(NodeId, Flush),
    /// All shards have stopped for the view of this number, and this is what they held.
    ShardsStopped(u64, Vec<HeldLock>),
    /// The epoch of this node has been raised to this number, durably.
    EpochRaised(u64),
    /// The epoch of this node could not be raised.
    RaiseFailed,
    /// A shard cannot go on in this view, or not for long: the clock from which it makes fences is
    /// near its limit, or it had to drop a message.
    Overdue,
    /// Former holders have reclaimed their locks, or have had the time to do so.
    Serve,
    /// The node is to end.
    End(EndReason),
}

/// What the host of a [`ViewChange`] has to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// Send a message to a peer.
    Tell(NodeId, Message),
    /// Send a message to every peer.
    TellAll(Message),
    /// Take the locks from clients that reclaimed them under a fence of this view or a later one:
    /// no such view has begun.
    Disown(u64),
    /// Stop all shards for the view of this number, and report [`Event::ShardsStopped`].
    StopShards(u64),
    /// Start a view in all shards. If one of them cannot start it, report [`Event::Overdue`].
    StartShards(StartedView),
    /// Raise the epoch of this node above its last one and above this one, and report
    /// [`Event::EpochRaised`] or [`Event::RaiseFailed`]. No other raise is asked for until then.
    RaiseAbove(u64),
    /// End all shards: their clients lose what they hold. This is the last output.
    End(EndReason),
    /// Log this.
    Log(Notice),
}

/// Something to log about the views of a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Notice {
    /// The next view has to wait for these members. The running view goes on meanwhile.
    Waits {
        /// The number of the next view.
        view: u64,
        /// The members that are unreachable or wait for former holders.
        members: NodeSet,
    },
    /// A peer has sent something that no correct member sends.
    Refused(ViewError),
    /// The epoch was raised, but the view would be beyond what a fence can hold.
    TooHigh(ViewError),
}

/// Why a node has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum EndReason {
    /// The program stopped the node, or dropped its last clone.
    #[error("the node was stopped")]
    Stopped,
    /// The runtime in which the node was started has ended, and its connections with it.
    #[error("the runtime of the node has ended")]
    RuntimeEnded,
    /// Another process has started under the name of this node, with this higher epoch. Clients of
    /// this process have lost their locks.
    #[error("another process runs under the name of this node, with epoch {0}")]
    Superseded(u64),
    /// The store by which the members agree has ended.
    #[error("the store of the group's members has ended")]
    StoreEnded,
}

/// Why a lock cannot be reclaimed under a fence. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimError {
    /// The node serves already, or has ended.
    TooLate,
    /// The fence belongs to a view that has not begun.
    Future {
        /// The lowest number that the next view can have.
        next: u64,
    },
    /// The membership under which the lock was granted has ended, and with it the grant.
    Ended,
}

/// The state of a node between events, as far as its views are concerned.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ViewChange {
    me: NodeId,
    views: Views,
    /// By number; the place of this node is unused.
    peers: Vec<PeerState>,
    /// Does the node wait for former holders? Until it serves, it tells no peer its epoch, so the
    /// others have no view to stop for and go on in theirs.
    reclaiming: bool,
    /// The highest view of a fence under which a lock was reclaimed, until the claims are judged.
    claimed: u64,
    /// The view for which the shards are being stopped.
    stopping: Option<View>,
    /// The epoch is being raised, and has to be above this one.
    raising: Option<u64>,
    /// A raise has failed. Until this time no other is asked for because a shard is overdue.
    retry: Option<Duration>,
    /// The members for which the next view waits, as they were last logged.
    awaited: NodeSet,
    ended: bool,
}

/// What a node knows of a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct PeerState {
    up: bool,
    /// The process of the peer that was met last.
    met: Option<MetProcess>,
}

/// A process of a peer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct MetProcess {
    incarnation: Incarnation,
    /// The highest epoch that it gave itself; 0 while it waits for former holders.
    epoch: u64,
}

impl PeerState {
    fn is_reclaiming(&self) -> bool {
        self.met.as_ref().is_some_and(|met| met.epoch == 0)
    }
}

impl ViewChange {
    /// Make the machine of node `me` in a group of `size`. The node has just raised its epoch to
    /// `epoch`, durably. If it is `reclaiming`, it waits for former holders until
    /// [`Event::Serve`].
    ///
    /// # Panics
    ///
    /// If `me` is not a member, or the epoch is 0 or beyond what a fence can hold.
    pub fn new(me: NodeId, size: usize, epoch: u64, reclaiming: bool) -> Self {
        Self {
            me,
            views: Views::new(me, size, epoch),
            peers: vec![PeerState::default(); size],
            reclaiming,
            claimed: 0,
            stopping: None,
            raising: None,
            retry: None,
            awaited: NodeSet::new(),
            ended: false,
        }
    }

    /// Take the first steps, which need no event: a node without peers stops its shards for its
    /// first view at once.
    pub fn begin(&mut self, out: &mut VecDeque<Output>) {
        self.advance(out);
    }

    /// Take in an event. What follows from it is added to `out`. After [`Output::End`] nothing ever
    /// follows.
    pub fn step(&mut self, now: Duration, event: Event, out: &mut VecDeque<Output>) {
        if self.ended {
            return;
        }
        match event {
            Event::Hello { peer, incarnation, epochs } => {
                self.hello(peer, incarnation, epochs, out);
            }
            Event::Up { peer, incarnation, epochs } => self.up(peer, incarnation, &epochs, out),
            Event::Down(peer) => self.peers[peer.index()].up = false,
            Event::Epochs(from, epochs) => {
                self.note_epoch(from, &epochs);
                self.learn(&epochs, out);
            }
            Event::Flush(from, flush) => {
                self.note_epoch(from, &flush.epochs);
                let spent = self.spent(&flush.epochs);
                let learned = self.views.flush(from, flush);
                self.follow(learned.map(|learned| spent.unwrap_or(learned)), out);
            }
            Event::ShardsStopped(view, held) => self.stopped(view, held, out),
            Event::EpochRaised(epoch) => self.raised(epoch, out),
            Event::RaiseFailed => {
                self.raising = None;
                self.retry = Some(now + RETRY);
            }
            Event::Overdue => {
                // If a new view is under way, nothing is left to do.
                let may_try = self.retry.is_none_or(|retry| now >= retry);
                if self.views.running().is_some() && self.raising.is_none() && may_try {
                    self.raise_above(0, out);
                }
            }
            Event::Serve => {
                if std::mem::take(&mut self.reclaiming) {
                    self.announce(out);
                }
            }
            Event::End(reason) => self.end(reason, out),
        }
        self.advance(out);
    }

    /// May a process of a peer connect that knows these epochs?
    pub fn admits(&self, epochs: &[u64]) -> Result<(), ViewError> {
        let (found, size) = (epochs.len(), self.peers.len());
        if found == size { Ok(()) } else { Err(ViewError::Length { found, size }) }
    }

    /// May a client take back a lock that it held under this fence? The claim is noted. If the
    /// number of the next view is not known yet, the claim is judged again as that view begins.
    pub fn claim(&mut self, fence: Fence) -> Result<(), ClaimError> {
        if !self.reclaiming || self.ended {
            return Err(ClaimError::TooLate);
        }
        let epochs = self.views.epochs();
        let known = !epochs.contains(&0);
        let next = if known { epochs.iter().sum() } else { Fence::VIEW_LIMIT };
        if fence.view() >= next {
            return Err(ClaimError::Future { next });
        }
        self.claimed = self.claimed.max(fence.view());
        Ok(())
    }

    /// The epochs as the others are told them. A node that waits for former holders keeps its own.
    pub fn announced(&self) -> Vec<u64> {
        let mut epochs = self.views.epochs().to_vec();
        if self.reclaiming {
            epochs[self.me.index()] = 0;
        }
        epochs
    }

    /// Does the node wait for former holders?
    pub fn is_reclaiming(&self) -> bool {
        self.reclaiming
    }

    /// The connected peers that wait for former holders.
    pub fn reclaiming_peers(&self) -> NodeSet {
        self.peers_that(|peer| peer.up && peer.is_reclaiming())
    }

    /// The members for which this node waits: see [`Views::missing`].
    pub fn missing(&self) -> NodeSet {
        self.views.missing()
    }

    /// The views as this node sees them.
    pub fn views(&self) -> &Views {
        &self.views
    }

    /// Has the node ended?
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    fn peers_that(&self, is: impl Fn(&PeerState) -> bool) -> NodeSet {
        let others = self.peers.iter().enumerate().filter(|(at, _)| *at != self.me.index());
        others.filter(|(_, peer)| is(peer)).map(|(at, _)| NodeId::at(at)).collect()
    }

    fn hello(
        &mut self,
        peer: NodeId,
        incarnation: Incarnation,
        mut epochs: Vec<u64>,
        out: &mut VecDeque<Output>,
    ) {
        if let (Some(own), Some(met)) =
            (epochs.get_mut(peer.index()), &self.peers[peer.index()].met)
            && met.incarnation != incarnation
            && met.epoch == *own
            && *own > 0
        {
            // The directory of the peer was lost or copied, so two of its processes have the same
            // epoch. That epoch is spent. If others tell a higher one, the new process goes above
            // it, and the old process, if it still runs, knows that it is superseded. A process
            // with a lower epoch learns of this one, and goes above it too.
            *own += 1;
        }
        self.learn(&epochs, out);
    }

    fn up(
        &mut self,
        peer: NodeId,
        incarnation: Incarnation,
        epochs: &[u64],
        out: &mut VecDeque<Output>,
    ) {
        let epoch = epochs.get(peer.index()).copied().unwrap_or(0);
        self.peers[peer.index()] =
            PeerState { up: true, met: Some(MetProcess { incarnation, epoch }) };
        // Nothing that was sent before has reached a process that is met for the first time.
        out.push_back(Output::Tell(peer, Message::Epochs(self.announced())));
        let flushes = self.views.flushes().into_iter();
        out.extend(flushes.map(|flush| Output::Tell(peer, Message::Flush(flush))));
        self.learn(epochs, out);
    }

    /// Remember the epoch that a peer gives itself.
    fn note_epoch(&mut self, from: NodeId, epochs: &[u64]) {
        if let (Some(peer), Some(own)) =
            (self.peers.get_mut(from.index()), epochs.get(from.index()))
            && let Some(met) = &mut peer.met
        {
            met.epoch = met.epoch.max(*own);
        }
    }

    fn learn(&mut self, epochs: &[u64], out: &mut VecDeque<Output>) {
        let spent = self.spent(epochs);
        let learned = self.views.learn(epochs);
        self.follow(learned.map(|learned| spent.unwrap_or(learned)), out);
    }

    /// Has another process used the epoch of this node? No peer has been told the epoch of a node
    /// that waits for former holders. So if peers know it, the directory of the node was copied, or
    /// restored from a backup.
    fn spent(&self, epochs: &[u64]) -> Option<LearnOutcome> {
        let own = self.views.epochs()[self.me.index()];
        let told = epochs.get(self.me.index()).filter(|told| **told == own);
        told.filter(|_| self.reclaiming).map(|told| LearnOutcome::Overtaken(*told))
    }

    /// Act on what a peer has said. News go on to all peers.
    fn follow(&mut self, learned: Result<LearnOutcome, ViewError>, out: &mut VecDeque<Output>) {
        match learned {
            Ok(LearnOutcome::Nothing) => {}
            Ok(LearnOutcome::News) => self.announce(out),
            Ok(LearnOutcome::Overtaken(epoch)) => self.raise_above(epoch, out),
            Err(ViewError::Superseded(epoch)) => self.end(EndReason::Superseded(epoch), out),
            Err(error) => out.push_back(Output::Log(Notice::Refused(error))),
        }
    }

    fn announce(&self, out: &mut VecDeque<Output>) {
        out.push_back(Output::TellAll(Message::Epochs(self.announced())));
    }

    /// Ask for a higher epoch. If a raise is under way already, it may turn out too low; that is
    /// seen when it is done.
    fn raise_above(&mut self, epoch: u64, out: &mut VecDeque<Output>) {
        if let Some(above) = &mut self.raising {
            *above = epoch.max(*above);
        } else {
            self.raising = Some(epoch);
            out.push_back(Output::RaiseAbove(epoch));
        }
    }

    fn raised(&mut self, epoch: u64, out: &mut VecDeque<Output>) {
        self.retry = None;
        let above = self.raising.take().unwrap_or(0);
        match self.views.raise(epoch) {
            Ok(()) => self.announce(out),
            Err(error) => out.push_back(Output::Log(Notice::TooHigh(error))),
        }
        if above >= epoch {
            self.raise_above(above, out);
        }
    }

    fn stopped(&mut self, number: u64, held: Vec<HeldLock>, out: &mut VecDeque<Output>) {
        let stopping = self.stopping.take_if(|view| view.number() == number);
        let Some(view) = stopping else { return };
        // If a newer view is known by now, nothing is sent, and the shards stop again for that one.
        let flushes = self.views.stopped(&view, held).into_iter();
        out.extend(flushes.map(|flush| Output::TellAll(Message::Flush(flush))));
    }

    fn end(&mut self, reason: EndReason, out: &mut VecDeque<Output>) {
        self.ended = true;
        out.push_back(Output::End(reason));
    }

    /// Take the next step towards the newest view, if it can be taken now.
    fn advance(&mut self, out: &mut VecDeque<Output>) {
        if self.ended || self.reclaiming || self.stopping.is_some() {
            return;
        }
        if let Some(view) = self.views.pending() {
            // A view that cannot start would keep all clients waiting. So while a member is away,
            // the node goes on in the old view and serves what does not need that member.
            let away = self.peers_that(|peer| !peer.up || peer.is_reclaiming());
            if away != self.awaited && !away.is_empty() {
                let (view, members) = (view.number(), away.clone());
                out.push_back(Output::Log(Notice::Waits { view, members }));
            }
            self.awaited = away;
            if !self.awaited.is_empty() {
                return;
            }
            // From here on no lock can be reclaimed, so claims are judged once.
            if std::mem::take(&mut self.claimed) >= view.number() {
                out.push_back(Output::Disown(view.number()));
            }
            out.push_back(Output::StopShards(view.number()));
            self.stopping = Some(view);
        } else if let Some(started) = self.views.ready() {
            out.push_back(Output::StartShards(started));
        }
    }
}
