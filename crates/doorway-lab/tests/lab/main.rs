//! The laboratory itself: the simulator, scripts, diagrams, plots, papers and the search.

mod accounts;
mod assumptions;
mod buffer;
mod checked;
mod contributing;
mod counts;
mod diagram;
mod itf;
mod lamport_mutex;
mod papers;
mod pictures;
mod plot;
mod published;
mod script;
mod traces;
