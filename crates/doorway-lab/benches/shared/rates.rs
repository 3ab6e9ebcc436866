//! The rates that a benchmark of the laboratory has measured: lines for people, JSON for programs.

#![allow(dead_code, reason = "each benchmark uses some of it")]

use serde_json::{Value, json};

/// What a benchmark prints.
pub(crate) struct Rates {
    json: bool,
    rows: Vec<Value>,
}

impl Rates {
    /// Rates for a program if the benchmark was started with `--json`, otherwise lines.
    pub(crate) fn new() -> Self {
        Self { json: std::env::args().any(|arg| arg == "--json"), rows: Vec::new() }
    }

    /// Whether a program reads the rates.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Print a line for people.
    pub(crate) fn line(&self, line: &str) {
        if !self.json {
            println!("{line}");
        }
    }

    /// Keep a rate for programs.
    pub(crate) fn add(&mut self, what: &str, per_second: f64) {
        self.rows.push(json!({ "what": what, "per_second": per_second }));
    }

    /// Print all rates if a program reads them.
    pub(crate) fn finish(self) {
        if self.json {
            println!("{:#}", json!({ "rows": self.rows }));
        }
    }
}
