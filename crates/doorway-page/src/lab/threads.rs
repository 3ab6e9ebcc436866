//! The algorithms between threads, step by step: registers, places in the code, which process goes
//! next, and fences that can be left out.

use axum::Json;
use axum::response::Response;
use doorway_threads::Section;
use doorway_threads::algorithms::ALL;
use doorway_threads::check::{self, Check, Line, Moment, Progress, Rules, StepChoice};
use serde::Deserialize;
use serde_json::{Value, json};

use super::jobs::Jobs;
use super::problem::Problem;

/// How many states a check visits at most.
const STATES: u64 = 3_000_000;

/// Every algorithm between threads.
pub(crate) async fn list() -> Json<Value> {
    let views = ALL.iter().map(|entry| {
        let info = entry.info;
        json!({
            "name": info.name, "origin": info.origin, "lock": entry.lock, "fewest": info.fewest,
            "most": info.most.min(check::MAX_PROCESSES), "registers": info.registers,
            "fences": info.fences, "source": entry.source,
        })
    });
    Json(views.collect())
}

/// A story between threads: which algorithm, how many processes, how memory behaves.
#[derive(Deserialize)]
pub(crate) struct Walk {
    name: String,
    n: usize,
    /// Writes wait in buffers, as on x86.
    #[serde(default)]
    buffers: bool,
    /// The letters of the fences that are left out.
    #[serde(default)]
    dropped: String,
    /// The steps so far: `p0p1p0.2`.
    #[serde(default)]
    steps: String,
}

impl Walk {
    fn rules(&self) -> Result<Rules, Problem> {
        let entry = ALL.iter().find(|entry| entry.info.name == self.name);
        let entry = entry.ok_or_else(|| {
            Problem::bad(format!("there is no algorithm '{}' between threads", self.name))
        })?;
        let known = |letter: char| entry.info.fences.contains(letter);
        if let Some(letter) = self.dropped.chars().find(|letter| !known(*letter)) {
            return Err(Problem::bad(format!("{} has no fence '{letter}'", self.name)));
        }
        let (buffers, dropped) = (self.buffers, self.dropped.clone());
        Ok(Rules { buffers, dropped, bound: entry.info.bound, ..Rules::default() })
    }

    /// Tell the story.
    pub(crate) fn tell(&self) -> Result<Json<Value>, Problem> {
        let turns = turns(&self.steps)?;
        let moments = check::tell(&self.name, self.n, &self.rules()?, &turns)?;
        Ok(Json(json!({ "moments": moments.iter().map(moment).collect::<Vec<_>>() })))
    }

    /// Look for a schedule that breaks the algorithm.
    pub(crate) async fn check(self, jobs: &Jobs) -> Result<Response, Problem> {
        let rules = self.rules()?;
        check::tell(&self.name, self.n, &rules, &[])?;
        jobs.run(move |reader| {
            let Self { name, n, .. } = self;
            reader.tell(&json!({ "looking": true }));
            let mut watch = |progress: &Progress| {
                reader.progress(|| json!({ "looking": true, "states": progress.states }))
            };
            let unknown = || format!("there is no algorithm '{name}'");
            let mut check = Check::named(&name, n).ok_or_else(unknown)?;
            (check.waiting, check.limit) = (!rules.buffers, STATES);
            check.rules = rules.clone();
            let report = check.run_watched(&mut watch);
            let told = |lines: &[Line]| check::choices_of(&name, n, &rules, lines);
            let schedule = told(&report.schedule)?;
            let whole: Vec<Line> = report.schedule.iter().chain(&report.cycle).cloned().collect();
            let all = told(&whole)?;
            reader.tell(&json!({
                "states": report.progress.states, "exhausted": report.exhausted,
                "exclusion": report.exclusion, "deadlockFree": report.deadlock_free,
                "lockoutFree": report.lockout_free,
                "steps": words(&all), "round": schedule.len(), "cycle": all.len() - schedule.len(),
            }));
            Ok(())
        })
        .await
    }
}

/// A schedule of an algorithm between threads that the page opens at its end.
#[derive(Clone, Debug)]
pub struct Schedule {
    name: String,
    processes: usize,
    buffers: bool,
    dropped: String,
    turns: String,
    /// After how many turns those begin that are repeated forever.
    round: Option<usize>,
}

impl Schedule {
    /// The schedule in these lines of a report, and the lines after it that are repeated forever.
    pub fn new(
        name: &str,
        processes: usize,
        buffers: bool,
        dropped: &str,
        lines: &[Line],
        cycle: &[Line],
    ) -> Result<Self, String> {
        let (name, dropped) = (name.to_owned(), dropped.to_owned());
        let walk = Walk { name, n: processes, buffers, dropped, steps: String::new() };
        let rules = walk.rules().map_err(|problem| problem.1)?;
        let told = |lines: &[Line]| check::choices_of(&walk.name, processes, &rules, lines);
        let turns = words(&told(&[lines, cycle].concat())?);
        let round = if cycle.is_empty() { None } else { Some(told(lines)?.len()) };
        let Walk { name, dropped, .. } = walk;
        Ok(Self { name, processes, buffers, dropped, turns, round })
    }

    /// The schedule as the page names it in a link.
    pub(crate) fn query(&self) -> String {
        let Self { name, processes, buffers, dropped, turns, round } = self;
        let buffers = u8::from(*buffers);
        let round = round.map(|round| format!("&round={round}")).unwrap_or_default();
        format!("name={name}&n={processes}&buffers={buffers}&drop={dropped}&steps={turns}{round}")
    }
}

fn section(section: Section) -> &'static str {
    match section {
        Section::Outside => "outside",
        Section::Doorway => "doorway",
        Section::Waiting => "waiting",
        Section::Inside => "inside",
        Section::Leaving => "leaving",
    }
}

fn moment(moment: &Moment) -> Value {
    let places = moment.places.iter().map(|(name, part)| json!([name, section(*part)]));
    let turns = moment.choices.iter();
    let turns = turns
        .map(|(turn, what)| json!({ "do": word(*turn), "process": turn.process, "text": what }));
    // As text: a register may hold more than the numbers of a browser can tell apart.
    let texts = |values: &[(String, usize)]| {
        values.iter().map(|(name, value)| json!([name, value.to_string()])).collect::<Vec<_>>()
    };
    let buffers: Vec<_> = moment.buffers.iter().map(|writes| texts(writes)).collect();
    let line = moment.line.as_ref();
    json!({
        "places": places.collect::<Vec<_>>(),
        "registers": texts(&moment.registers),
        "buffers": buffers,
        "turns": turns.collect::<Vec<_>>(),
        "right": moment.right,
        "process": line.map(|line| line.process),
        "line": line.map(ToString::to_string),
        "memory": line.is_some_and(Line::is_of_memory),
    })
}

fn word(turn: StepChoice) -> String {
    match turn.which {
        0 => format!("p{}", turn.process),
        which => format!("p{}.{which}", turn.process),
    }
}

fn words(turns: &[StepChoice]) -> String {
    turns.iter().map(|turn| word(*turn)).collect()
}

/// The turns that a link names.
fn turns(steps: &str) -> Result<Vec<StepChoice>, Problem> {
    let wrong = |word: &str| {
        let word: String = word.chars().take(20).collect();
        Problem::bad(format!("'{word}' is not a step between threads; an example is p0p1p0"))
    };
    let mut parts = steps.split('p');
    if let Some(before) = parts.next().filter(|before| !before.is_empty()) {
        return Err(wrong(before));
    }
    let turn = |word: &str| {
        let (process, which) = word.split_once('.').unwrap_or((word, "0"));
        match (process.parse(), which.parse()) {
            (Ok(process), Ok(which)) => Ok(StepChoice { process, which }),
            _ => Err(wrong(word)),
        }
    };
    parts.map(turn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_and_anything_else_is_refused() {
        let read = turns("p0p1.2").unwrap();
        assert_eq!(words(&read), "p0p1.2");
        for bad in ["x", "p", "p1.", "p-1", "0p1"] {
            assert!(turns(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_story_between_threads_is_told_and_wrong_ones_are_refused() {
        let walk = |name: &str, n, dropped: &str, steps: &str| Walk {
            name: name.to_owned(),
            n,
            buffers: true,
            dropped: dropped.to_owned(),
            steps: steps.to_owned(),
        };
        let Json(told) = walk("peterson", 2, "b", "p0p1").tell().unwrap();
        assert_eq!(told["moments"].as_array().unwrap().len(), 3);
        for (bad, why) in [
            (walk("nobody", 2, "", ""), "no algorithm"),
            (walk("peterson", 3, "", ""), "2 to 2 processes"),
            (walk("peterson", 2, "z", ""), "no fence"),
            (walk("peterson", 2, "", "p7"), "cannot take"),
        ] {
            let problem = bad.tell().unwrap_err();
            assert!(problem.1.contains(why), "{}", problem.1);
        }
    }
}
