//! The algorithms between threads in the hands of other tools, which pick the schedules.

mod loom;
mod shuttle;
