//! A story as a table: a row for each step.

use std::fmt::Write as _;

use super::Story;

impl Story {
    /// The steps as comma-separated values.
    pub fn csv(&self) -> String {
        let mut text = String::from("step,do,node,phase,entered,sends,messages,violation\n");
        let mut sent = 0;
        for (step, number) in self.retell().iter().zip(1u32..) {
            sent += step.sends.len();
            let told: Vec<String> =
                step.sends.iter().map(|send| format!("{} to {}", send.text, send.to)).collect();
            let violation = step.violation.as_ref().map_or("", |violation| &violation.text);
            let _ = writeln!(
                text,
                "{number},{},{},{},{},{},{sent},{}",
                step.word,
                step.node,
                step.state.phase,
                step.entered,
                quoted(&told.join("; ")),
                quoted(violation),
            );
        }
        text
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}
