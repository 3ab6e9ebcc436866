//! One moment of a story: a world, and what the accounts remember of the way to it.

use std::collections::BTreeMap;

use doorway_core::{Mode, NodeId, NodeSet, Phase};

use super::step_words;
use super::view::{ChoiceView, NodeView, OpeningView, SendView, StepView, ViolationView, shown};
use super::waits::NodeAnswers;
use crate::check::Judge;
use crate::script::describe;
use crate::source::{Source, Trigger, receives};
use crate::trace::kind;
use crate::{ChannelPosition, Choice, Step, Violation, World};

/// A world with its accounts. It is a value: a story keeps some of its moments and plays on from
/// them.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    pub(super) world: World,
    /// For each message under way, the request that pays for it and the step that sent it.
    flights: BTreeMap<u64, Flight>,
    /// How many requests each node has made.
    requests: Vec<u32>,
    /// For each node, what became of the messages of its last request.
    pub(super) asked: Vec<NodeAnswers>,
    /// The nodes whose clients have given a request up.
    given_up: NodeSet,
    /// The step since which the client of each node could do what it can do now.
    since: Vec<usize>,
    /// How many steps were taken.
    pub(super) taken: usize,
    /// A hash of everything told so far.
    pub(super) print: u32,
    /// The violation after which nothing more is told: the states are not reliable after it.
    pub(super) over: Option<Violation>,
}

#[derive(Clone, Copy, Debug)]
struct Flight {
    pays: Option<(u32, u32)>,
    sent: usize,
}

impl Moment {
    /// The first moment of a world, and what its nodes sent as they began.
    pub(super) fn new(world: World) -> (Self, Vec<OpeningView>) {
        let size = world.group().size() as usize;
        let mut moment = Self {
            world,
            flights: BTreeMap::new(),
            requests: vec![0; size],
            asked: vec![NodeAnswers::default(); size],
            given_up: NodeSet::new(),
            since: vec![0; size],
            taken: 0,
            print: BLANK,
            over: None,
        };
        let opening = moment.world.opening().to_vec();
        let told = opening.iter().zip(1..).filter(|(step, _)| !step.sends.is_empty());
        let told = told.map(|(step, node)| OpeningView { node, sends: moment.charge(step, None) });
        let told = told.collect();
        (moment, told)
    }

    /// Let one of the world's choices happen, and tell it.
    pub(super) fn take(
        &mut self,
        choice: Choice,
        source: &Source,
        judge: Option<&Judge>,
    ) -> StepView {
        let word = step_words::word(&self.world, choice);
        let before = self.world.live_in(Phase::Waiting);
        let mut step = self.world.apply(choice);
        self.taken += 1;
        let node = actor(choice);
        if step.violation.is_none() {
            step.violation = judge.and_then(|judge| judge(&self.world)).map(Violation::Claim);
        }
        match choice {
            Choice::Acquire(..) => self.requests[node.index()] += 1,
            Choice::Withdraw(_) => self.note_give_up(node),
            _ => {}
        }
        let took = step.message.as_ref().map(|letter| letter.id);
        let cause = match choice {
            Choice::Acquire(..) | Choice::Release(_) | Choice::Withdraw(_) => self.request_of(node),
            _ => took.and_then(|id| self.flights.get(&id)).and_then(|flight| flight.pays),
        };
        let sends = self.charge(&step, cause);
        self.note_answers(&step, cause, &sends);
        let lost = self.forget_lost(choice, took);
        if is_client(choice) || step.entered || before.contains(&node) != self.waits(node) {
            self.since[node.index()] = self.taken;
        }
        for line in describe(&step) {
            self.print = printed(self.print, &line);
        }
        let trigger = trigger(&step);
        let kinds: Vec<&str> = sends.iter().map(|send| kind(&send.text)).collect();
        let acted = trigger.as_ref().map(|it| source.acted(it, &kinds, step.entered));
        let (lines, hits) = acted.unwrap_or_default();
        self.over.clone_from(&step.violation);
        StepView {
            word,
            node: shown(node),
            took,
            lost,
            entered: step.entered,
            violation: step.violation.as_ref().map(ViolationView::of),
            rules: trigger
                .map(|it| source.rules_for(&it, step.entered, self.given_up.contains(node)))
                .unwrap_or_default(),
            hits,
            lines,
            sends,
            state: NodeView::of(&self.world, node),
            print: self.print,
            say: None,
        }
    }

    /// Note that the client of a node has given a request up.
    pub(super) fn note_give_up(&mut self, node: NodeId) {
        self.given_up.insert(node);
    }

    /// The request that pays for what a client of the node does. A client that was inside from the
    /// beginning has made none.
    fn request_of(&self, node: NodeId) -> Option<(u32, u32)> {
        let request = self.requests[node.index()];
        (request > 0).then(|| (shown(node), request))
    }

    /// Charge the messages of a step, as [`crate::watch::charge`] does: to the node that they
    /// serve, else to the request that caused them.
    fn charge(&mut self, step: &Step, cause: Option<(u32, u32)>) -> Vec<SendView> {
        let node = actor(step.choice);
        let mut views = Vec::new();
        for (to, letter) in &step.sends {
            let member = self.world.nodes().member(node);
            let customer = member.serves(&letter.body, node, *to);
            let pays = customer.map_or(cause, |customer| self.request_of(customer));
            self.flights.insert(letter.id, Flight { pays, sent: self.taken });
            let text = format!("{:?}", letter.body);
            let serves = customer.map(shown);
            views.push(SendView { id: letter.id, to: shown(*to), text, pays, serves });
        }
        views
    }

    /// Note what the request of the acting node has sent, and which answer to it has arrived.
    fn note_answers(&mut self, step: &Step, cause: Option<(u32, u32)>, sends: &[SendView]) {
        let node = actor(step.choice);
        let mine = self.request_of(node);
        let asked = &mut self.asked[node.index()];
        if let Choice::Acquire(..) = step.choice {
            asked.clear();
        }
        if let (Choice::Deliver(position) | Choice::Duplicate(position), Some(letter)) =
            (step.choice, &step.message)
            && mine.is_some()
            && cause == mine
        {
            asked
                .insert(shown(position.from), Some(kind(&format!("{:?}", letter.body)).to_owned()));
        }
        for send in sends.iter().filter(|send| mine.is_some() && send.pays == mine) {
            asked.insert(send.to, None);
        }
    }

    /// Drop what is no longer under way from the accounts. Returns the numbers of the messages that
    /// vanished without arriving.
    fn forget_lost(&mut self, choice: Choice, took: Option<u64>) -> Vec<u64> {
        let still: std::collections::BTreeSet<u64> =
            self.world.under_way().map(|(_, letter)| letter.id).collect();
        let gone: Vec<u64> =
            self.flights.keys().copied().filter(|id| !still.contains(id)).collect();
        for id in &gone {
            self.flights.remove(id);
        }
        let arrived = took.filter(|_| matches!(choice, Choice::Deliver(_) | Choice::Duplicate(_)));
        gone.into_iter().filter(|id| Some(*id) != arrived).collect()
    }

    fn waits(&self, node: NodeId) -> bool {
        self.world.nodes().member(node).phase() == Phase::Waiting
    }

    /// Everything that can happen next, grouped by message, the oldest message first.
    pub(super) fn choices(&self) -> Vec<ChoiceView> {
        if self.over.is_some() {
            return Vec::new();
        }
        let mut world = self.world.clone();
        let limits = world.limits_mut();
        (limits.losses, limits.duplicates, limits.forgetting) = (0, 0, false);
        let texts: BTreeMap<ChannelPosition, (u64, String)> = world
            .under_way()
            .map(|(position, letter)| (position, (letter.id, format!("{:?}", letter.body))))
            .collect();
        let mut views: Vec<ChoiceView> = Vec::new();
        for choice in world.choices() {
            let named = step_words::word(&world, choice);
            let node = shown(actor(choice));
            let mut view = |kind, from, id, text: &str, words| {
                let text = text.to_owned();
                views.push(ChoiceView { kind, node, from, id, text, words });
            };
            match choice {
                Choice::Start(_) | Choice::Drop(_) | Choice::Duplicate(_) | Choice::Forget(_) => {}
                Choice::Deliver(position) => {
                    let (id, text) = &texts[&position];
                    let words = ["d", "x", "u"].map(|letter| format!("{letter}{}", &named[1..]));
                    view("message", Some(shown(position.from)), Some(*id), text, words.to_vec());
                }
                Choice::Acquire(node, _) => {
                    view("client", None, None, "asks", vec![named]);
                    let member = world.nodes().member(node);
                    if member.info().shared && member.may_acquire(world.group(), Mode::Shared) {
                        view("client", None, None, "asks to share", vec![format!("s{node}")]);
                    }
                }
                Choice::Release(_) => view("client", None, None, "leaves", vec![named]),
                Choice::Withdraw(_) => view("client", None, None, "gives up", vec![named]),
                Choice::Crash(_) => view("crash", None, None, "crashes", vec![named]),
                Choice::Detect { failed, .. } => {
                    let text = format!("learns that {failed} crashed");
                    view("learn", Some(shown(failed)), None, &text, vec![named]);
                }
            }
        }
        let order = |view: &ChoiceView| match view.kind {
            "message" => (0, view.id.unwrap_or_default()),
            "client" => (1, u64::from(view.text == "gives up")),
            "learn" => (2, 0),
            _ => (3, 0),
        };
        views.sort_by_key(order);
        views
    }

    /// The step since which a choice could be made.
    pub(super) fn open_since(&self, choice: Choice) -> usize {
        match choice {
            Choice::Deliver(position) => {
                let letter = self.world.letter(position);
                let flight = letter.and_then(|letter| self.flights.get(&letter.id));
                flight.map_or(0, |flight| flight.sent)
            }
            _ => self.since[actor(choice).index()],
        }
    }
}

fn is_client(choice: Choice) -> bool {
    matches!(choice, Choice::Acquire(..) | Choice::Release(_) | Choice::Withdraw(_))
}

/// The print of a story of which nothing has been told.
pub(super) const BLANK: u32 = 0x811c_9dc5;

/// The print of a story after one more line.
pub(super) fn printed(print: u32, line: &str) -> u32 {
    let mix = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    line.bytes().chain([b'\n']).fold(print, mix)
}

/// The node that acts when a choice is made.
pub(super) fn actor(choice: Choice) -> NodeId {
    match choice {
        Choice::Start(node)
        | Choice::Acquire(node, _)
        | Choice::Release(node)
        | Choice::Withdraw(node)
        | Choice::Crash(node)
        | Choice::Detect { node, .. }
        | Choice::Forget(node) => node,
        Choice::Deliver(position) | Choice::Drop(position) | Choice::Duplicate(position) => {
            position.to
        }
    }
}

/// What made the node act; `None` if it did not act by a rule.
fn trigger(step: &Step) -> Option<Trigger> {
    Some(match step.choice {
        Choice::Start(_) | Choice::Forget(_) => Trigger::Start,
        Choice::Acquire(..) => Trigger::Ask,
        Choice::Release(_) => Trigger::Leave,
        Choice::Withdraw(_) => Trigger::GiveUp,
        Choice::Detect { .. } => Trigger::Learn,
        Choice::Deliver(_) | Choice::Duplicate(_) => {
            let letter = step.message.as_ref()?;
            receives(kind(&format!("{:?}", letter.body)))
        }
        Choice::Drop(_) | Choice::Crash(_) => return None,
    })
}
