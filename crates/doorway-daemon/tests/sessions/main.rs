//! The shipped sessions without a network, a disk and a clock: step by step, against random
//! schedules of client machines, and together with client machines in every schedule. The blocking
//! and the async client use the same shell over real sockets.

mod clients;
mod schedules;
mod search;
mod shell;
mod steps;
