//! `doorway run`, compared with other programs that run a command under a lock.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::Extent;
use crate::common::Scratch;
use crate::servers::Servers;
use crate::shared::pin::Placement;
use crate::shared::rivals::{Etcd, Rival as _, installed};
use crate::shared::samples::Samples;
use crate::shared::table::{Row, Table, progress};

pub(crate) fn measure(extent: Extent, servers: &Servers, table: &mut Table) {
    let placement = servers.placement;
    let doorway = match built() {
        Ok(doorway) => doorway,
        Err(why) => return table.note(format!("`doorway run`, {placement}: not measured, {why}.")),
    };
    progress(&format!("commands, {placement}"));
    let scratch = Scratch::new();
    let mut run = Command::new(doorway);
    run.env("DOORWAY_SOCKET", servers.ours.address()).args(["run", "x", "--", "true"]);
    let commands = vec![("flock FILE true", flock(&scratch)), ("doorway run x -- true", run)];
    // A child process runs on the cores of this thread, and so do its children.
    let thread = placement.spawn(0, move |_| in_turns(commands, extent.runs));
    match thread.join().unwrap() {
        Ok(mut times) => {
            // etcdctl is measured alone, because its server is busy for a while after each run.
            if extent.rivals {
                match etcdctl(placement, extent.runs) {
                    Ok(etcdctl) => times.splice(1..1, etcdctl).for_each(drop),
                    Err(why) => table.note(format!("etcdctl, {placement}: not measured, {why}.")),
                }
            }
            report(times, servers, table);
        }
        Err(why) => table.note(format!("`doorway run`, {placement}: not measured, {why}.")),
    }
}

fn etcdctl(placement: Placement, runs: usize) -> Result<Vec<(&'static str, Samples)>, String> {
    installed("etcdctl")?;
    let server = Etcd::serve(placement)?;
    let mut command = Command::new("etcdctl");
    command.env("ETCDCTL_API", "3").args(["--endpoints", server.address()]);
    command.args(["lock", "x", "true"]);
    let commands = vec![("etcdctl lock x true", command)];
    placement.spawn(0, move |_| in_turns(commands, runs)).join().unwrap()
}

fn report(times: Vec<(&'static str, Samples)>, servers: &Servers, table: &mut Table) {
    let medians: Vec<f64> = times.iter().map(|(_, times)| times.median()).collect();
    let last = times.len() - 1;
    for (at, (what, times)) in times.into_iter().enumerate() {
        let row = Row::of(what).at(servers.placement).times(times);
        if at < last {
            table.add(row);
            continue;
        }
        let mut row = row.against("flock", medians[0]);
        let mut met = medians[last] <= 1.4 * medians[0];
        if last > 1 {
            row = row.against("etcdctl", medians[1]);
            met &= medians[last] <= medians[1] / 4.0;
        }
        table.add(row.judged("1.4 x flock, 0.25 x etcdctl", met));
    }
}

/// The path of the `doorway` command that was built beside this program, if it has `run`.
fn built() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let beside = own.parent().and_then(|deps| deps.parent());
    let doorway = beside.map(|beside| beside.join("doorway")).filter(|path| path.is_file());
    let doorway = doorway.ok_or("there is no `doorway` beside this program")?;
    let mut help = Command::new(&doorway);
    help.args(["run", "--help"]);
    once(&mut help).map(|()| doorway)
}

fn flock(scratch: &Scratch) -> Command {
    let mut command = Command::new("flock");
    command.arg(scratch.path().join("file")).arg("true");
    command
}

/// Run the commands in turn, `runs` times each. A first run, which is not counted, loads all files.
fn in_turns(
    mut commands: Vec<(&'static str, Command)>,
    runs: usize,
) -> Result<Vec<(&'static str, Samples)>, String> {
    let mut times: Vec<_> = commands.iter().map(|(what, _)| (*what, Samples::default())).collect();
    for (_, command) in &mut commands {
        patiently(command)?;
    }
    for _ in 0..runs {
        for ((_, command), (_, samples)) in commands.iter_mut().zip(&mut times) {
            let begun = Instant::now();
            once(command)?;
            samples.push(begun.elapsed());
        }
    }
    Ok(times)
}

/// Run a command until it succeeds, because its server may have just started.
fn patiently(command: &mut Command) -> Result<(), String> {
    let begun = Instant::now();
    while let Err(why) = once(command) {
        if begun.elapsed() > crate::ours::PATIENCE {
            return Err(why);
        }
    }
    Ok(())
}

fn once(command: &mut Command) -> Result<(), String> {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match quiet.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?} fails with {status}")),
        Err(error) => Err(format!("{command:?} does not start: {error}")),
    }
}
