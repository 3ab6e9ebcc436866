//! Stories: runs of a group that a person makes step by step and that a page shows.
//!
//! A story is a pure function of a group and of the steps taken, as short words (see
//! [`step_words`]). So a link is enough to tell it again, and going back is playing less of it.
//! Some moments on the way are kept, from which later ones are reached quickly.
//!
//! Everything that has a meaning is decided here: which message a step took, which request pays for
//! a message, which rule ran and which lines of code. A page decides only where to draw it.

mod atlas;
mod catalogue;
mod csv;
mod fields;
mod here;
mod moment;
mod pick;
mod recorded;
mod shelf;
pub mod step_words;
mod view;
mod waits;

use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::str::FromStr;
use std::sync::Arc;

use crate::check::{History, Judge};
use crate::diagram::kind_colours;
use crate::source::Source;
use crate::{Choice, Trace, Violation, World, script};

pub use atlas::{Atlas, MAX_WORLDS};
pub use catalogue::{AlgorithmEntry, AlgorithmView, RuleView, algorithm, catalogue};
pub use here::{Answer, Question};
use moment::Moment;
pub use pick::Pick;
pub use recorded::recorded;
pub use shelf::{Card, cards, script_of};
pub use view::{
    ChoiceView, ClaimView, FrameView, GroupView, NodeView, OpeningView, SendView, StepView,
    StoryView, ViolationView, WaitView,
};

/// The most steps of a story.
pub const MAX_STEPS: usize = 100_000;

/// A moment is kept after each of these many steps.
const APART: usize = 64;

/// A step that is impossible, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impossible {
    /// The step, counted from 1.
    pub step: usize,
    /// Why it cannot happen.
    pub why: String,
}

impl fmt::Display for Impossible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {}: {}", self.step, self.why)
    }
}

/// When to stop picking steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopCondition {
    /// After the next entry.
    Entry,
    /// When no message is under way.
    Quiet,
    /// At a violation or a deadlock.
    Violation,
    /// After this number of steps.
    Steps(usize),
}

impl FromStr for StopCondition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "entry" => Ok(Self::Entry),
            "quiet" => Ok(Self::Quiet),
            "violation" => Ok(Self::Violation),
            _ => text.parse().map(Self::Steps).map_err(|_| {
                format!("cannot go on until '{text}': say entry, quiet, violation or a number")
            }),
        }
    }
}

/// The most steps that are picked at once.
pub const MAX_PICKED: usize = 2_000;

/// What stays the same in a story.
struct Frame {
    setup: String,
    opening: Vec<OpeningView>,
    source: &'static Source,
    history: Option<History>,
}

/// A story up to its last step.
#[derive(Clone)]
pub struct Story {
    frame: Arc<Frame>,
    choices: Vec<Choice>,
    /// The moments after 0, [`APART`], twice [`APART`] ... steps.
    kept: Vec<Arc<Moment>>,
    now: Moment,
}

impl fmt::Debug for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Story({}, {} steps)", self.frame.setup, self.choices.len())
    }
}

/// A script as a story: where it ends, and what its author says at which step.
#[derive(Clone, Debug)]
pub struct ScriptedStory {
    /// The story.
    pub story: Story,
    /// The steps as words.
    pub words: Vec<String>,
    /// The comments of the script, each with the number of steps before it.
    pub notes: Vec<(usize, String)>,
    /// The steps that are repeated forever, if the script ends in a round.
    pub round: Option<(usize, usize)>,
    /// The violation at the end of the script.
    pub violation: Option<ViolationView>,
}

impl Story {
    /// A story without steps, of a group that is described as in a script: the words after `run`,
    /// and `quorum` lines below them.
    pub fn begin(setup: &str) -> Result<Self, String> {
        let (mut world, history) = script::world(setup).map_err(|error| match error.line {
            1 => error.message,
            _ => error.to_string(),
        })?;
        world.limits_mut().forgetting = false;
        let source = Source::of(world.info().name).ok_or("the algorithm has no source")?;
        let (now, opening) = Moment::new(world);
        let setup = setup.lines().map(str::trim).collect::<Vec<_>>().join("\n");
        let frame = Arc::new(Frame { setup, opening, source, history });
        Ok(Self { frame, choices: Vec::new(), kept: vec![Arc::new(now.clone())], now })
    }

    /// The story of a script.
    pub fn read(text: &str) -> Result<ScriptedStory, String> {
        let outcome = script::run(text).map_err(|error| error.to_string())?;
        if outcome.choices.len() > MAX_STEPS {
            return Err(format!("the script has more than {MAX_STEPS} steps"));
        }
        let mut story = Self::begin(&outcome.setup)?;
        let mut words = Vec::new();
        for choice in outcome.choices {
            words.push(story.take(choice).word);
        }
        let round = outcome.round.map(|round| (round.start, round.end));
        let violation = match outcome.violation {
            Some(Violation::Stuck(_)) => story.now.stuck(),
            other => other.as_ref().map(ViolationView::of),
        };
        Ok(ScriptedStory { story, words, notes: outcome.notes, round, violation })
    }

    /// Take a step that a link names.
    pub fn step(&mut self, word: &str) -> Result<StepView, Impossible> {
        let impossible = |why: String| Impossible { step: self.len() + 1, why };
        if let Some(violation) = &self.now.over {
            return Err(impossible(format!("the story has ended: {violation}")));
        }
        if self.len() >= MAX_STEPS {
            return Err(impossible(format!("a story has at most {MAX_STEPS} steps")));
        }
        let choice = step_words::choice(&self.now.world, word).map_err(impossible)?;
        Ok(self.take(choice))
    }

    /// Let a rule pick steps, at most [`MAX_PICKED`] of them.
    pub fn go(&mut self, pick: Pick, until: StopCondition) -> Vec<StepView> {
        let most = if let StopCondition::Steps(count) = until { count } else { MAX_PICKED };
        let mut steps = Vec::new();
        while steps.len() < most.min(MAX_PICKED) && self.len() < MAX_STEPS {
            let Some(choice) = pick.next(&self.now) else { break };
            let step = self.take(choice);
            let done = match until {
                StopCondition::Entry => step.entered,
                StopCondition::Quiet => self.now.world.under_way().next().is_none(),
                StopCondition::Violation => self.now.world.stuck().is_some(),
                StopCondition::Steps(_) => false,
            };
            let over = step.violation.is_some();
            steps.push(step);
            if done || over {
                break;
            }
        }
        steps
    }

    fn take(&mut self, choice: Choice) -> StepView {
        let judge: Option<&Judge> = self.frame.history.map(History::judge);
        let step = self.now.take(choice, self.frame.source, judge);
        self.choices.push(choice);
        if self.choices.len().is_multiple_of(APART) {
            self.kept.push(Arc::new(self.now.clone()));
        }
        step
    }

    /// How many steps were taken.
    pub fn len(&self) -> usize {
        self.choices.len()
    }

    /// Whether no step was taken.
    pub fn is_empty(&self) -> bool {
        self.choices.is_empty()
    }

    /// The group, as in a script.
    pub fn setup(&self) -> &str {
        &self.frame.setup
    }

    /// A hash of everything that was told.
    pub fn print(&self) -> u32 {
        self.now.print
    }

    /// The world after the last step.
    pub fn world(&self) -> &World {
        &self.now.world
    }

    /// The violation with which the story ends.
    pub fn violation(&self) -> Option<Violation> {
        self.now.over.clone().or_else(|| self.now.world.stuck())
    }

    /// The story up to an earlier step.
    #[must_use]
    pub fn at(&self, steps: usize) -> Self {
        let steps = steps.min(self.len());
        if steps == self.len() {
            return self.clone();
        }
        let kept = &self.kept[..=steps / APART];
        let mut story = Self {
            frame: self.frame.clone(),
            choices: self.choices[..kept.len().saturating_sub(1) * APART].to_vec(),
            now: Moment::clone(&kept[kept.len() - 1]),
            kept: kept.to_vec(),
        };
        for choice in &self.choices[story.len()..steps] {
            story.take(*choice);
        }
        story
    }

    /// What can happen next. That a node forgets the lock is not among the choices, because the
    /// question takes a copy of all nodes for each node; the step `f1` is possible all the same.
    pub fn next(&self) -> Vec<ChoiceView> {
        self.now.choices()
    }

    /// The story as a page is told it: the group and these steps, which are the last ones.
    pub fn view(&self, steps: Vec<StepView>) -> StoryView {
        let first = &self.kept[0].world;
        let world = &self.now.world;
        StoryView {
            frame: Some(FrameView {
                run: self.frame.setup.clone(),
                algorithm: world.info().name.to_owned(),
                group: GroupView::of(world),
                fields: view::field_names(first),
                base: first.group().nodes().map(|node| NodeView::of(first, node)).collect(),
                opening: self.frame.opening.clone(),
                colours: kind_colours(self.frame.source.kinds.iter().map(String::as_str)),
                names: Vec::new(),
            }),
            from: self.len() - steps.len(),
            steps,
            choices: self.next(),
            stuck: self.now.stuck(),
        }
    }

    /// Tell all steps again, from the beginning.
    pub fn retell(&self) -> Vec<StepView> {
        let mut story = self.at(0);
        self.choices.iter().map(|choice| story.take(*choice)).collect()
    }

    /// The steps as words.
    pub fn step_words(&self) -> Vec<String> {
        let mut world = self.kept[0].world.clone();
        let mut words = Vec::new();
        for choice in &self.choices {
            words.push(step_words::word(&world, *choice));
            world.apply(*choice);
        }
        words
    }

    /// What happened, for diagrams.
    pub fn trace(&self) -> Trace {
        let mut world = self.kept[0].world.clone();
        let title = self.frame.setup.lines().next().unwrap_or_default();
        let mut trace = Trace::new(title, world.group().size());
        for step in world.opening() {
            trace.record(0.0, step);
        }
        for (choice, at) in self.choices.iter().zip(1u32..) {
            let step = world.apply(*choice);
            trace.record(f64::from(at), &step);
        }
        trace
    }

    /// The story as a script for `doorway replay`, with its effects.
    pub fn script(&self) -> Result<String, String> {
        let (commands, _) = script::tell(&self.kept[0].world, &self.choices);
        let comment = "A story told on the page of the laboratory.";
        let text = script::compose(comment, &self.frame.setup, &commands, &[]);
        let played = script::run(&text).map_err(|error| error.to_string())?;
        Ok(played.text)
    }

    /// A hash of the group and of the choices, which tells this story from others.
    pub fn key(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.frame.setup, &self.choices).hash(&mut hasher);
        hasher.finish()
    }

    /// An estimate of the memory that the kept moments take, in bytes.
    pub fn weight(&self) -> usize {
        let letters = self.now.world.under_way().count();
        let moment = 400 + 300 * self.now.world.group().size() as usize + 120 * letters;
        moment * (self.kept.len() + 1) + 40 * self.choices.len()
    }
}

#[cfg(test)]
mod tests;
