//! Checks of single algorithms: claims of their papers, flaws that must be found, and comparisons
//! with other checkers.

mod basics;
mod figures;
mod flaws;
mod limits;
mod maekawa;
mod maekawa_heir;
mod one_pass;
mod opinions;
mod proofs;
mod raymond;
mod spin;
mod stateright;
mod teeth;
mod tell;
mod verdicts;
mod watch;
mod watching;
mod withdraw;
