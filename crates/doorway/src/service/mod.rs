//! What the commands that use a node share.

pub(crate) mod acquire;
pub(crate) mod child;
pub(crate) mod exit;
pub(crate) mod fit;
pub(crate) mod hold;
pub(crate) mod link;
pub(crate) mod lost;
pub(crate) mod options;
pub(crate) mod release;
pub(crate) mod say;
pub(crate) mod screen;
pub(crate) mod signals;
pub(crate) mod start;
pub(crate) mod talk;
pub(crate) mod terminal;
pub(crate) mod turn;
pub(crate) mod wait_line;
pub(crate) mod wanted;
pub(crate) mod who;
pub(crate) mod words;
