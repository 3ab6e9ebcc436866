//! What the commands that use a node share.

pub(crate) mod acquire;
pub(crate) mod ancestors;
pub(crate) mod child;
pub(crate) mod command_line;
pub(crate) mod dial;
pub(crate) mod event_loop;
pub(crate) mod exit;
pub(crate) mod guarded_command;
pub(crate) mod identity;
pub(crate) mod link;
pub(crate) mod lock_request;
pub(crate) mod lost_policy;
pub(crate) mod once;
pub(crate) mod options;
pub(crate) mod owner;
pub(crate) mod query;
pub(crate) mod release;
pub(crate) mod screen;
pub(crate) mod signals;
pub(crate) mod start;
pub(crate) mod stderr;
pub(crate) mod supervisor;
pub(crate) mod terminal;
pub(crate) mod wait_line;
