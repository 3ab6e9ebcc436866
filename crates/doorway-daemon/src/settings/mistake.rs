//! The mistakes of a configuration, each with its line and remedy.

use std::fmt;

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The line of the file, from 1, if the mistake belongs to one.
    pub line: Option<usize>,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

/// All mistakes of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes {
    /// The file, as it was named, if there is one.
    pub file: Option<String>,
    /// The mistakes, in the order of their lines.
    pub all: Vec<Mistake>,
}

impl Mistakes {
    /// A single mistake, without a line.
    pub fn one(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        let mistake = Mistake { line: None, what: what.into(), remedy: remedy.into() };
        Self { file: None, all: vec![mistake] }
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.all.len() > 1 {
            write!(f, "the configuration has {} mistakes", self.all.len())?;
        } else {
            f.write_str("the configuration has a mistake")?;
        }
        for Mistake { line, what, remedy } in &self.all {
            f.write_str("\n  ")?;
            match (&self.file, line) {
                (Some(file), Some(line)) => write!(f, "{file}:{line}: ")?,
                (Some(file), None) => write!(f, "{file}: ")?,
                (None, Some(line)) => write!(f, "line {line}: ")?,
                (None, None) => {}
            }
            write!(f, "{what}; {remedy}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Mistakes {}
