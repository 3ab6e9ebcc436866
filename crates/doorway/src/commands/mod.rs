//! One file for each command: its arguments, and what it does with them.

pub(crate) mod break_lock;
pub(crate) mod ca;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod diagram;
pub(crate) mod doctor;
pub(crate) mod drain;
pub(crate) mod elect;
pub(crate) mod explain;
pub(crate) mod fence_guard;
pub(crate) mod grant;
pub(crate) mod lab;
pub(crate) mod list;
pub(crate) mod lock;
pub(crate) mod man;
pub(crate) mod members;
pub(crate) mod paper;
pub(crate) mod problems;
pub(crate) mod quorums;
pub(crate) mod renew;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod simulate;
pub(crate) mod status;
pub(crate) mod story;
pub(crate) mod threads;
pub(crate) mod top;
pub(crate) mod unlock;
pub(crate) mod wait;
pub(crate) mod who;

use std::io::{self, IsTerminal as _, Write};

use serde::Serialize;

/// Print a value as JSON: laid out for a person, on one line for a program.
fn print_json(out: &mut dyn Write, value: &impl Serialize) -> anyhow::Result<()> {
    if io::stdout().is_terminal() {
        serde_json::to_writer_pretty(&mut *out, value)?;
    } else {
        serde_json::to_writer(&mut *out, value)?;
    }
    Ok(writeln!(out)?)
}
