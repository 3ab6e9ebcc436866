//! The calls of the page.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, JsonRejection};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use doorway_lab::story::{
    self, Answer, ChoiceView, Pick, Question, StepView, StopCondition, Story, StoryView,
    ViolationView,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::cache::Cache;
use super::compare::Comparison;
use super::export::{self, Kind};
use super::jobs::{Jobs, Reader, aside};
use super::past::{self, PastRun, PastStory};
use super::problem::Problem;
use super::recordings::{self, Recordings};
use super::threads::{self, Walk};
use crate::files;
use crate::server::First;

/// The largest body of a call.
const BODY: usize = 1 << 20;

/// The most steps in one call, and in one answer.
const STEPS: usize = story::MAX_PICKED;

/// What all calls share.
#[derive(Clone)]
struct Lab {
    cache: Arc<Cache>,
    jobs: Jobs,
    first: Arc<First>,
    recordings: Arc<Recordings>,
}

/// The calls of the page, to be put below `/api`.
pub(crate) fn router(first: First) -> Router {
    let lab = Lab {
        cache: Arc::default(),
        jobs: Jobs::default(),
        first: Arc::new(first),
        recordings: Arc::default(),
    };
    Router::new()
        .route("/algorithms", get(async |headers: HeaderMap| kept(&headers, &story::catalogue())))
        .route("/algorithms/{name}", get(algorithm))
        .route("/stories", get(async |headers: HeaderMap| kept(&headers, &story::cards())))
        .route("/first", get(begin))
        .route("/open", post(open))
        .route("/play", post(play))
        .route("/step", post(step))
        .route("/go", post(go))
        .route("/choices", post(choices))
        .route("/check", post(check))
        .route("/draw", post(draw))
        .route("/compare", post(compare))
        .route("/run", post(run))
        .route("/read", post(hand_over).layer(DefaultBodyLimit::max(recordings::BODY)))
        .route("/recorded/{number}", get(recorded))
        .route("/threads", get(threads::list))
        .route("/threads/walk", post(walk))
        .route("/threads/check", post(check_threads))
        .fallback(async || Problem(axum::http::StatusCode::NOT_FOUND, "no such call".to_owned()))
        .layer(DefaultBodyLimit::max(BODY))
        .with_state(lab)
}

/// An answer that stays the same as long as the server runs, and that the browser may keep.
fn kept(headers: &HeaderMap, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => files::kept(headers, "application/json", bytes),
        Err(error) => Problem::bad(error.to_string()).into_response(),
    }
}

/// Everything about one algorithm: its rules and its code.
async fn algorithm(headers: HeaderMap, Path(name): Path<String>) -> Result<Response, Problem> {
    let found = story::algorithm(&name);
    let found = found.ok_or_else(|| Problem::bad(format!("there is no algorithm '{name}'")))?;
    Ok(kept(&headers, &found))
}

/// A story, or the new part of one, with the key by which the server remembers it.
#[derive(Serialize)]
struct StoryAnswer {
    key: String,
    #[serde(flatten)]
    view: StoryView,
    /// Why the rest of the steps could not be taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    broken: Option<String>,
}

impl Lab {
    /// Remember a story and tell its last steps. The group is told if `whole`.
    fn tell(&self, story: Story, steps: Vec<StepView>, whole: bool) -> StoryAnswer {
        let mut view = story.view(steps);
        if !whole {
            view.frame = None;
        }
        StoryAnswer { key: self.cache.put(story), view, broken: None }
    }

    /// A remembered story up to an earlier step.
    fn recall(&self, place: &Place) -> Result<Story, Problem> {
        let story = self.cache.get(&place.key).ok_or_else(Problem::forgotten)?;
        Ok(place.at.map_or_else(|| Story::clone(&story), |at| story.at(at)))
    }
}

/// A moment of a remembered story: its end, or an earlier step.
#[derive(Deserialize)]
struct Place {
    key: String,
    at: Option<usize>,
}

type Body<T> = Result<Json<T>, JsonRejection>;
type JsonAnswer<T> = Result<Json<T>, Problem>;

/// Take steps that a link names, as many as are possible.
fn take(story: &mut Story, words: &str) -> Result<(Vec<StepView>, Option<String>), Problem> {
    let words = story::step_words::split(words)?;
    if words.len() > STEPS {
        return Err(Problem::bad(format!("at most {STEPS} steps in one call")));
    }
    let mut steps = Vec::new();
    for word in words {
        match story.step(word) {
            Ok(step) => steps.push(step),
            Err(impossible) => return Ok((steps, Some(impossible.to_string()))),
        }
    }
    Ok((steps, None))
}

#[derive(Deserialize)]
struct PlayCall {
    run: String,
    #[serde(default)]
    steps: String,
}

/// Play a story from its beginning.
async fn play(State(lab): State<Lab>, body: Body<PlayCall>) -> JsonAnswer<StoryAnswer> {
    let Json(call) = body?;
    aside(move || {
        let mut story = Story::begin(&call.run)?;
        let (steps, broken) = take(&mut story, &call.steps)?;
        Ok(Json(StoryAnswer { broken, ..lab.tell(story, steps, true) }))
    })
    .await
}

#[derive(Deserialize)]
struct StepCall {
    #[serde(flatten)]
    place: Place,
    steps: String,
}

/// Take more steps.
async fn step(State(lab): State<Lab>, body: Body<StepCall>) -> JsonAnswer<StoryAnswer> {
    let Json(call) = body?;
    aside(move || {
        let mut story = lab.recall(&call.place)?;
        let (steps, broken) = take(&mut story, &call.steps)?;
        Ok(Json(StoryAnswer { broken, ..lab.tell(story, steps, false) }))
    })
    .await
}

#[derive(Deserialize)]
struct GoCall {
    #[serde(flatten)]
    place: Place,
    until: String,
    by: String,
}

/// Let a rule pick the next steps.
async fn go(State(lab): State<Lab>, body: Body<GoCall>) -> JsonAnswer<StoryAnswer> {
    let Json(call) = body?;
    aside(move || {
        let (until, by): (StopCondition, Pick) = (call.until.parse()?, call.by.parse()?);
        let mut story = lab.recall(&call.place)?;
        let steps = story.go(by, until);
        Ok(Json(lab.tell(story, steps, false)))
    })
    .await
}

/// What can happen at an earlier moment.
async fn choices(State(lab): State<Lab>, body: Body<Place>) -> JsonAnswer<Vec<ChoiceView>> {
    let Json(place) = body?;
    aside(move || Ok(Json(lab.recall(&place)?.next()))).await
}

/// A script as the page opens it.
#[derive(Serialize)]
struct ScriptView {
    #[serde(flatten)]
    telling: StoryAnswer,
    /// All steps of the script: more than were told at once, if it is long.
    words: String,
    notes: Vec<(usize, String)>,
    round: Option<(usize, usize)>,
    ends: Option<ViolationView>,
    title: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OpenCall {
    Story { story: String },
    Script { script: String },
}

/// Open a story of the shelf, or the text of a script.
async fn open(State(lab): State<Lab>, body: Body<OpenCall>) -> Result<Response, Problem> {
    let Json(call) = body?;
    let (id, script) = match call {
        OpenCall::Story { story } => {
            let script = story::script_of(&story).map(str::to_owned);
            (story, script)
        }
        OpenCall::Script { script } => ("script".to_owned(), Some(script)),
    };
    let jobs = lab.jobs.clone();
    match script {
        Some(text) => aside(move || Ok(Json(read(&lab, &id, &text)?).into_response())).await,
        None => jobs.aside(move || open_flaw(&lab, &id)).await,
    }
}

/// Search for the shortest counterexample of a flaw, and open it at its end. If the flaw is built
/// into a copy of an algorithm, nothing can be chosen in it.
fn open_flaw(lab: &Lab, name: &str) -> Result<Response, Problem> {
    let (flaw, found) = past::search(name)?;
    let Some(script) = found.script(flaw.what) else {
        return Ok(Json(PastStory::flaw(&flaw, &found)).into_response());
    };
    let notes = vec![(0, flaw.story.to_owned())];
    let opened = read(lab, name, &script)?;
    Ok(Json(ScriptView { notes, ..opened }).into_response())
}

fn read(lab: &Lab, name: &str, text: &str) -> Result<ScriptView, Problem> {
    let told = Story::read(text).map_err(|why| Problem::bad(format!("{name}, {why}")))?;
    let mut steps = told.story.retell();
    let early = told.story.at(STEPS);
    steps.truncate(STEPS);
    Ok(ScriptView {
        telling: lab.tell(early, steps, true),
        words: told.words.concat(),
        notes: told.notes,
        round: told.round,
        ends: told.violation,
        title: name.to_owned(),
    })
}

/// What the command line asked for.
async fn begin(State(lab): State<Lab>) -> Result<Response, Problem> {
    aside(move || match &*lab.first {
        First::Shelf | First::Live(_) | First::Threads(_) | First::Link(_) => {
            Ok(Json(json!({ "shelf": true })).into_response())
        }
        First::Script { name, text } => Ok(Json(read(&lab, name, text)?).into_response()),
        First::Recording(trace) => Ok(Json(PastStory::recorded(trace)).into_response()),
    })
    .await
}

#[derive(Deserialize)]
struct CheckCall {
    #[serde(flatten)]
    place: Place,
    /// How many more requests each node makes; for ever if it is left out.
    acquires: Option<u32>,
    #[serde(default)]
    losses: u32,
    #[serde(default)]
    duplicates: u32,
    #[serde(default)]
    crashes: u32,
    #[serde(default)]
    withdrawing: bool,
    limit: Option<u64>,
}

/// The most worlds of a check, and the number if none is given.
const WORLDS: (u64, u64) = (5_000_000, 1_000_000);

/// Check the very moment on screen.
async fn check(State(lab): State<Lab>, body: Body<CheckCall>) -> Result<Response, Problem> {
    let Json(call) = body?;
    let story = lab.recall(&call.place)?;
    let question = Question {
        acquires: call.acquires,
        losses: call.losses,
        duplicates: call.duplicates,
        crashes: call.crashes,
        withdrawing: call.withdrawing,
        limit: call.limit.unwrap_or(WORLDS.1).min(WORLDS.0),
    };
    let work = move |reader: &mut Reader| {
        let answer: Answer = story.from_here(&question, &mut |step, progress| {
            reader.progress(
                || json!({ "step": step, "worlds": progress.states, "depth": progress.depth }),
            )
        })?;
        reader.tell(&answer);
        Ok(())
    };
    lab.jobs.run(work).await
}

/// Measure algorithms side by side.
async fn compare(State(lab): State<Lab>, body: Body<Comparison>) -> Result<Response, Problem> {
    let Json(call) = body?;
    let plan = call.plan()?;
    lab.jobs.run(move |reader| plan.run(reader)).await
}

/// The run behind one point of a comparison.
async fn run(State(lab): State<Lab>, body: Body<Comparison>) -> JsonAnswer<PastStory> {
    let Json(call) = body?;
    let plan = call.plan()?;
    lab.jobs.aside(move || Ok(Json(PastStory::simulated(&plan.trace()?)))).await
}

/// Take a recording from the live page.
async fn hand_over(
    State(lab): State<Lab>,
    body: Result<Bytes, BytesRejection>,
) -> JsonAnswer<serde_json::Value> {
    let too_long = |rejection: BytesRejection| {
        let why = "the recording is too long to be handed over: save it as a file";
        Problem(rejection.status(), why.to_owned())
    };
    let (body, jobs) = (body.map_err(too_long)?, lab.jobs.clone());
    jobs.aside(move || {
        let handed = serde_json::from_slice(&body).map_err(|why| {
            Problem::bad(format!("the recording is not what it should be: {why}"))
        })?;
        Ok(Json(json!({ "number": lab.recordings.put(handed)? })))
    })
    .await
}

/// A recording that the live page has handed over.
async fn recorded(State(lab): State<Lab>, Path(number): Path<String>) -> JsonAnswer<PastStory> {
    aside(move || Ok(Json(PastStory::recorded(&*lab.recordings.get(&number)?)))).await
}

/// A story between threads.
async fn walk(body: Body<Walk>) -> JsonAnswer<serde_json::Value> {
    let Json(call) = body?;
    aside(move || call.tell()).await
}

/// Every schedule between threads.
async fn check_threads(State(lab): State<Lab>, body: Body<Walk>) -> Result<Response, Problem> {
    let Json(call) = body?;
    call.check(&lab.jobs).await
}

/// What is drawn: a run in which nothing can be chosen, or a story.
#[derive(Deserialize)]
#[serde(untagged)]
enum DrawnRun {
    Past { past: PastRun },
    Story(Place),
}

#[derive(Deserialize)]
struct DrawCall {
    #[serde(flatten)]
    what: DrawnRun,
    format: Kind,
}

/// A story as a file.
async fn draw(State(lab): State<Lab>, body: Body<DrawCall>) -> Result<Response, Problem> {
    let Json(DrawCall { what, format }) = body?;
    let is_long = match &what {
        DrawnRun::Past { past } => past.is_long(),
        DrawnRun::Story(_) => matches!(format, Kind::Atlas),
    };
    let jobs = lab.jobs.clone();
    let work = move || match what {
        DrawnRun::Past { past } => export::trace(&past.trace(&lab.recordings, &lab.first)?, format),
        DrawnRun::Story(place) => export::story(&lab.recall(&place)?, format),
    };
    if is_long { jobs.aside(work).await } else { aside(work).await }
}
