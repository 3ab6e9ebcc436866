//! What real nodes have recorded, told like a story. Nothing can be chosen in it.

use std::collections::BTreeMap;

use doorway_core::{Mode, NodeId};

use super::moment::{BLANK, printed};
use super::view::{
    ClaimView, FrameView, GroupView, NodeView, SendView, StepView, StoryView, ViolationView, shown,
};
use crate::Trace;
use crate::diagram::kind_colours;
use crate::source::sends_round;
use crate::trace::{Event, EventKind, Opening, kind};

/// A recording as a page shows it. Events of a node at one time are one step.
pub fn recorded(trace: &Trace) -> StoryView {
    let opening: Vec<RecordedState> = (0..trace.size)
        .map(|node| trace.opening.get(&NodeId(node)).copied().map(RecordedState::of))
        .map(Option::unwrap_or_default)
        .collect();
    let mut phases = opening.clone();
    let mut steps: Vec<StepView> = Vec::new();
    let mut last: Option<(NodeId, f64)> = None;
    let mut texts: BTreeMap<u64, String> = BTreeMap::new();
    for event in &trace.events {
        if let EventKind::Send { id, message, .. } = &event.what {
            texts.insert(*id, format!("{message} from {}", trace.name(event.node)));
        }
        let here = Some((event.node, event.at));
        let begins = matches!(
            event.what,
            EventKind::Acquire(_)
                | EventKind::Release
                | EventKind::Withdraw
                | EventKind::Receive { .. }
                | EventKind::Crash
        );
        if begins || last != here {
            steps.push(empty(trace, event));
        }
        last = here;
        let standing = &mut phases[event.node.index()];
        standing.after(&event.what);
        if let Some(step) = steps.last_mut() {
            add(trace, step, event, &texts);
            step.state = standing.view();
        }
    }
    set_prints(&mut steps);
    let kinds = trace.events.iter().filter_map(|event| match &event.what {
        EventKind::Send { message, .. } => Some(kind(message)),
        _ => None,
    });
    let size = trace.size;
    let algorithm = trace.title.split([' ', ',']).next().unwrap_or_default().to_owned();
    let ring = sends_round(&algorithm);
    let around = (1..=size).map(|node| (node, node % size + 1));
    StoryView {
        frame: Some(FrameView {
            run: trace.title.clone(),
            algorithm,
            group: GroupView {
                n: size,
                permits: 1,
                channel: "fifo",
                layout: if ring { "ring" } else { "mesh" },
                rows: Vec::new(),
                edges: around.filter(|_| ring).collect(),
                parents: Vec::new(),
                quorums: Vec::new(),
                claim: ClaimView { text: String::new(), least: 0.0, most: None, per: "entry" },
            },
            fields: Vec::new(),
            base: opening.into_iter().map(RecordedState::view).collect(),
            opening: Vec::new(),
            colours: kind_colours(kinds),
            names: (0..size).map(|node| trace.name(NodeId(node))).collect(),
        }),
        from: 0,
        steps,
        choices: Vec::new(),
        stuck: None,
    }
}

/// Give every step the print of what is told up to it.
fn set_prints(steps: &mut [StepView]) {
    let mut print = BLANK;
    for step in steps {
        print = printed(print, step.say.as_deref().unwrap_or_default());
        step.print = print;
    }
}

#[derive(Clone, Copy, Default)]
struct RecordedState {
    held: u32,
    waits: bool,
    shared: bool,
    gone: bool,
}

impl RecordedState {
    fn of(Opening { held, mode, waiting }: Opening) -> Self {
        let shared = waiting.unwrap_or(mode) == Mode::Shared;
        Self { held, waits: waiting.is_some(), shared, gone: false }
    }

    fn after(&mut self, what: &EventKind) {
        match what {
            EventKind::Acquire(mode) => (self.waits, self.shared) = (true, *mode == Mode::Shared),
            EventKind::Enter => (self.waits, self.held) = (false, self.held + 1),
            EventKind::Release => self.held = self.held.saturating_sub(1),
            EventKind::Withdraw => self.waits = false,
            EventKind::Crash => *self = Self { gone: true, ..Self::default() },
            EventKind::View { held, mode, .. } => {
                *self = Self { held: *held, shared: *mode == Mode::Shared, ..Self::default() };
            }
            EventKind::Stop(_) => *self = Self::default(),
            _ => {}
        }
    }

    fn view(self) -> NodeView {
        let phase = match self {
            Self { gone: true, .. } => "crashed",
            Self { waits: true, .. } => "waiting",
            Self { held: 1.., .. } => "inside",
            _ => "outside",
        };
        NodeView { phase, held: self.held, shared: self.shared, fields: Vec::new() }
    }
}

/// A step in which nothing happens yet.
fn empty(trace: &Trace, event: &Event) -> StepView {
    let when = match trace.unit {
        "milliseconds" => format!("{:.3} ms:", event.at),
        "steps" => String::new(),
        _ => format!("time {:.3}:", event.at),
    };
    StepView {
        word: String::new(),
        node: shown(event.node),
        took: None,
        lost: Vec::new(),
        sends: Vec::new(),
        entered: false,
        violation: None,
        rules: Vec::new(),
        lines: Vec::new(),
        hits: Vec::new(),
        state: RecordedState::default().view(),
        print: 0,
        say: Some(when),
    }
}

fn add(trace: &Trace, step: &mut StepView, event: &Event, texts: &BTreeMap<u64, String>) {
    let message = |id: &u64| texts.get(id).map_or("a message", String::as_str);
    let mut say = |words: String| {
        let said = step.say.get_or_insert_default();
        match said.chars().last() {
            None => {}
            Some(':') => said.push(' '),
            Some(_) => said.push_str("; "),
        }
        said.push_str(&words);
    };
    let name = trace.name(event.node);
    match &event.what {
        EventKind::Acquire(_) => say(format!("{name} asks")),
        EventKind::Enter => {
            say(format!("{name} enters"));
            step.entered = true;
        }
        EventKind::Release => say(format!("{name} leaves")),
        EventKind::Withdraw => say(format!("{name} gives up")),
        EventKind::Send { id, to, message } => {
            say(format!("{name} sends {message} to {}", trace.name(*to)));
            let text = message.clone();
            step.sends.push(SendView { id: *id, to: shown(*to), text, pays: None, serves: None });
        }
        EventKind::Receive { id } => {
            say(format!("{name} receives {}", message(id)));
            step.took = Some(*id);
        }
        EventKind::Lose { id } => {
            say(format!("{name} never gets {}: it is lost", message(id)));
            step.lost.push(*id);
        }
        EventKind::Crash => say(format!("{name} crashes")),
        EventKind::Detect(failed) => {
            say(format!("{name} learns that {} crashed", trace.name(*failed)));
        }
        EventKind::Forget => say(format!("{name} forgets the lock")),
        EventKind::View { number, .. } => say(format!("{name} begins view {number}")),
        EventKind::Stop(how) => say(format!("{name} {how}")),
        EventKind::Act(what) => say(format!("{name} {what}")),
        EventKind::Violate(violation) => {
            say(format!("violation: {}", trace.describe(violation)));
            step.violation = Some(ViolationView::of(violation));
        }
    }
}
