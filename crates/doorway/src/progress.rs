//! Progress of long work, shown on standard error if that is a terminal.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar that appears after a moment and is removed at the end.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// A bar up to `total`; `of` names what is counted. Nothing is drawn unless standard error is a
    /// terminal.
    pub(crate) fn new(total: u64, of: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(4));
        let template = format!("{{bar:30}} {{human_pos}} of {{human_len}} {of}, {{eta}} to go");
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(500));
        Self(bar)
    }

    /// Show that this many are done.
    pub(crate) fn at(&self, done: u64) {
        self.0.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A line that changes, for work of unknown length. It appears after two seconds and is removed at
/// the end.
pub(crate) struct Meter {
    begin: Instant,
    bar: Option<ProgressBar>,
}

impl Meter {
    /// A meter of work that begins now.
    pub(crate) fn new() -> Self {
        Self { begin: Instant::now(), bar: None }
    }

    /// The seconds that the work has taken.
    pub(crate) fn seconds(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    /// Show a new text. Nothing is drawn unless standard error is a terminal.
    pub(crate) fn tell(&mut self, how: impl FnOnce() -> String) {
        if self.begin.elapsed() >= Duration::from_secs(2) {
            self.bar.get_or_insert_with(spinner).set_message(how());
        }
    }
}

/// A line that says what is being done, for work that cannot report its progress. Nothing is drawn
/// unless standard error is a terminal.
pub(crate) struct Busy(ProgressBar);

impl Busy {
    /// Show this text until the value is dropped.
    pub(crate) fn new(text: String) -> Self {
        let bar = spinner();
        bar.set_message(text);
        Self(bar)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn spinner() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(4));
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

impl Drop for Meter {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
