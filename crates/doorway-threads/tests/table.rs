//! What is claimed of each algorithm is what the explorer finds.
#![cfg(feature = "check")]

use doorway_threads::Algorithm;
use doorway_threads::algorithms::{ALL, Task, with};
use doorway_threads::check::{Check, Report};

struct Run(usize);

impl Task for Run {
    type Output = Report;

    fn run<A: Algorithm>(self) -> Report {
        Check::<A>::new(self.0).run()
    }
}

#[test]
fn show() {
    for entry in ALL {
        for n in 2..=3.min(entry.info.most) {
            let report = with(entry.info.name, Run(n)).unwrap();
            println!(
                "{} n={n} {} states, {:?} {:?} {:?} {:?} {:?}",
                entry.info.name,
                report.progress.states,
                report.exclusion,
                report.deadlock_free,
                report.lockout_free,
                report.bypass,
                report.fifo
            );
            for line in report.schedule {
                println!("   {line}");
            }
            for line in report.cycle {
                println!("   * {line}");
            }
        }
    }
}
