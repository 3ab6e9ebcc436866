//! The shipped sessions without a network, a disk and a clock: step by step, and against random
//! schedules of client machines. The blocking and the async client use the same shell over real
//! sockets.

mod clients;
mod schedules;
mod shell;
mod steps;
