//! `doorway lock` in command substitutions, in several shells: what it prints is held, or it prints
//! nothing and says why.

use std::process::{Command, Stdio};

use crate::place::{DOORWAY, Place, until};
use crate::skip::skip;

/// The shells, with the options that run a line.
const SHELLS: [&[&str]; 4] =
    [&["bash", "-c"], &["dash", "-c"], &["zsh", "-c"], &["busybox", "sh", "-c"]];

/// The shells of this machine.
fn shells() -> Vec<&'static [&'static str]> {
    let (found, missing): (Vec<_>, Vec<_>) = SHELLS.into_iter().partition(|shell| {
        let mut look = Command::new(shell[0]);
        look.args(&shell[1..]).arg("exit 0").stdout(Stdio::null()).stderr(Stdio::null());
        look.status().is_ok_and(|status| status.success())
    });
    for shell in missing {
        skip(&format!("there is no {}", shell[0]));
    }
    found
}

/// What a shell prints that runs this script.
fn run(place: &Place, shell: &[&str], script: &str) -> String {
    let mut command = Command::new(shell[0]);
    command.args(&shell[1..]).arg(script).current_dir(&place.directory).stdin(Stdio::null());
    command.env("D", DOORWAY).env("DOORWAY_SOCKET", place.socket());
    let done = command.output().expect("it runs");
    let (out, errors) = (done.stdout, String::from_utf8_lossy(&done.stderr).into_owned());
    format!("{}{errors}", String::from_utf8(out).expect("text"))
}

/// The functions that the forms use.
const FUNCTIONS: &str = "get() { $D lock \"$1\"; }; \
    nested() { local x; x=$($D lock \"$1\" 2>/dev/null); echo \"$x\"; }; ";

#[test]
fn a_lock_is_held_when_the_command_substitution_has_ended() {
    let forms = [
        "f=$($D lock x)",
        "f=`$D lock x`",
        "f=$($D lock x 2>/dev/null)",
        "f=$($D lock x 2>&1)",
        "f=$($D lock x 2>>log)",
        "f=$($D lock -n x --pid $$ 2>/dev/null)",
        "f=$(timeout 50 $D lock x)",
        "f=$(timeout 50 $D lock x 2>/dev/null)",
        "f=$(timeout 50 $D lock x 2>/dev/null | cat)",
        "f=$($D lock x | cat)",
        "f=$($D lock x | cat | cat; true)",
        "f=$(cd /; $D lock x; true)",
        "f=$(cd / && $D lock x)",
        "f=$( ($D lock x; true) )",
        "f=$( { $D lock x 2>/dev/null; } )",
        "f=$(get x)",
        "f=$(get x | cat)",
        "f=$(get x 2>/dev/null; true)",
        "f=$(nested x)",
        "f=$(nested x | cat)",
        "f=$($D lock x >fence; cat fence)",
        "f=$(get x >fence; cat fence; true)",
        "if ! f=$($D lock -w 5 x 2>/dev/null); then exit 9; fi",
        "f=$(sh -c 'exec $D lock x 2>/dev/null')",
        "f=$(eval '$D lock x 2>/dev/null'; true)",
        "timeout 50 $D lock x >fence; f=$(cat fence)",
        "get x >fence; f=$(cat fence)",
        "f=$($D run -n y -- $D lock x)",
    ];
    let place = Place::new();
    for shell in shells() {
        for form in forms {
            let look = "echo \"$?-$f\"; $D run -n x -- true 2>/dev/null; echo $?";
            let text = run(&place, shell, &format!("{FUNCTIONS}{form}; {look}"));
            let held = text.split_once('\n').is_some_and(|(taken, other)| {
                let fence = taken.strip_prefix("0-").unwrap_or_default();
                fence.parse::<u64>().is_ok() && other == "1\n"
            });
            assert!(held, "{shell:?}: {form}: {text}");
            until("the lock goes with the script", || place.inside("x", 0));
        }
    }
}

#[test]
fn a_subshell_that_takes_a_lock_holds_it_until_it_ends() {
    let place = Place::new();
    let look = "$D run -n x -- true 2>/dev/null; echo $?";
    for shell in shells() {
        for form in [
            "(f=$($D lock x) && LOOK)",
            "(f=$($D lock x 2>/dev/null) && LOOK)",
            "(f=$(nested x) && LOOK)",
            "($D lock x >/dev/null && LOOK)",
            "($D lock x >/dev/null && LOOK) | cat",
            "(f=$($D lock x 2>/dev/null) && LOOK) | cat",
        ] {
            // The node notices the end of a process a little later.
            let free = "$D run -w 60 x -- true; echo $?";
            let script = format!("{FUNCTIONS}{form}; {free}").replace("LOOK", look);
            assert_eq!(run(&place, shell, &script), "1\n0\n", "{shell:?}: {form}");
        }
        let script = format!("(f=$($D lock x 2>/dev/null); {look} >seen) >/dev/null 2>&1 & exit");
        run(&place, shell, &script);
        let seen = || std::fs::read_to_string(place.file("seen")).unwrap_or_default();
        until("the subshell has outlived its script", || seen() == "1\n");
        std::fs::remove_file(place.file("seen")).unwrap();
        until("the lock goes with it", || place.inside("x", 0));
    }
}

#[test]
fn a_lock_that_might_not_be_held_is_refused_before_anything_is_printed() {
    let place = Place::new();
    std::fs::write(place.file("take"), "$D lock x\ntrue\n").unwrap();
    for shell in shells() {
        for form in [
            "f=$(sh take); echo \"got-$f\"",
            "f=$(timeout 50 sh take); echo \"got-$f\"",
            "f=$( (g=$($D lock x) && echo $g >file) >/dev/null & wait); echo \"got-$f\"",
        ] {
            let text = run(&place, shell, &format!("{FUNCTIONS}{form}"));
            let (got, why) = text.split_once('\n').unwrap_or_default();
            assert_eq!(got, "got-", "{shell:?}: {form}: {text}");
            let remedy = why.contains("`--pid $$`") && why.contains("`--ttl SECS`");
            assert!(
                why.starts_with("doorway: cannot know how long to hold x: ") && remedy,
                "{why}"
            );
            assert_eq!(place.who("x")["holders"].as_array().map(Vec::len), Some(0));
        }
    }
}

#[test]
fn a_lock_that_is_read_from_a_pipe_is_held_or_refused() {
    let place = Place::new();
    for shell in shells() {
        // zsh reads from the pipe itself; in other shells a subshell does.
        let script = "get x 2>/dev/null | { read f; if [ -n \"$f\" ]; then $D run -n x -- true; \
                      echo $?; else echo refused; fi; }";
        let text = run(&place, shell, &format!("{FUNCTIONS}{script} 2>/dev/null"));
        assert_eq!(text, if shell[0] == "zsh" { "1\n" } else { "refused\n" }, "{shell:?}");
    }
}
