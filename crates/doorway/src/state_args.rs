//! The arguments that show the states of nodes in a run: as columns of text, or as a tree.

use std::path::PathBuf;

use clap::Args;
use doorway_lab::{Trace, diagram, pictures};

use crate::failure::Usage;
use crate::files;

/// How the states of nodes are shown.
#[derive(Args, Clone, Debug)]
pub(crate) struct StateArgs {
    /// Print the run with columns of these fields of the acting node's state, as in
    /// requests,queue,served; 'all' shows every field
    #[arg(long, value_name = "FIELDS", value_delimiter = ',')]
    columns: Vec<String>,
    /// Write a picture to FILE.svg: the tree after each event that turned one of its edges
    #[arg(long, value_name = "FILE.svg")]
    draw_tree: Option<PathBuf>,
}

impl StateArgs {
    /// Whether nothing was asked for.
    pub(crate) fn is_default(&self) -> bool {
        self.columns.is_empty() && self.draw_tree.is_none()
    }

    /// Draw the tree, if that was asked for.
    pub(crate) fn draw(&self, trace: &Trace) -> anyhow::Result<()> {
        let Some(path) = &self.draw_tree else { return Ok(()) };
        files::ensure_svg(path, "a tree")?;
        files::write(path, &pictures::tree(trace).map_err(Usage)?)
    }

    /// The run as text with columns, if they were asked for.
    pub(crate) fn columns(&self, trace: &Trace) -> Result<Option<String>, Usage> {
        if self.columns.is_empty() {
            return Ok(None);
        }
        diagram::text_with_state(trace, &self.columns).map(Some).map_err(Usage)
    }
}
