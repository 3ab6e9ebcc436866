//! `doorway replay`.

use crate::{NOWHERE, answer, failing, file, json, parsed, refusal, temporary, text_of};

#[test]
fn a_saved_counterexample_shows_the_same_again() {
    for (name, check, violated) in [
        ("safety", "lamport -n 2 --channel unordered", "exclusion: nodes 1, 2 are inside together"),
        ("stuck", "le-lann -n 2 --loss", "stuck: node 1 waits and nothing can happen any more"),
        ("double", "le-lann -n 3 --duplicate", "refusal: node 2 rejected a second token"),
        (
            "chosen",
            "raymond-k-scanned -n 3 --permits 2 --seats 1",
            "stuck: node 1 waits and nothing can happen any more",
        ),
        (
            "order",
            "raymond-tree -n 3 --history order",
            "order: node 2 is inside, but node 3 asked before and waits",
        ),
        ("wave", "raymond-echo -n 3 --graph star --initiators 1,2 --crash=outside", "stuck: node"),
    ] {
        let story = temporary(&format!("{name}.txt"));
        let (told, reason) = failing(&format!("check {check} --save {story}"), 1);
        assert!(reason.contains(violated), "{check}: {reason}");
        assert!(text_of(&story).starts_with(&format!("# violated: {violated}")), "{check}");

        let (again, failure) = failing(&format!("replay {story}"), 1);
        let words = reason.split_once(": violated: ").unwrap().1.trim_end();
        let what = words.split_once(": ").unwrap().1;
        assert_eq!(failure, format!("doorway: {story} ends with a violation: {what}\n"));
        assert!(again.ends_with(&format!("violated: {words}\n")), "{again}");
        let steps = |text: &str| -> Vec<String> {
            let step = |line: &&str| line.starts_with("   ");
            text.lines().filter(step).map(str::to_owned).collect()
        };
        assert_eq!(steps(&told), steps(&again), "{check}");
        assert!(!steps(&told).is_empty());
    }
}

#[test]
fn effects_that_do_not_happen_are_reported_with_their_line() {
    let script = "run le-lann n=2\n----\n1 -> 2 Token\n\nacquire 2\n----\n2 waits\n";
    let right = file("right.txt", script);
    assert!(answer(&format!("replay {right}")).ends_with("nothing is violated\n"));
    let wrong = file("other.txt", &script.replace("1 -> 2 Token", "1 -> 3 Token"));
    let (_, reason) = failing(&format!("replay {wrong}"), 1);
    assert!(reason.contains("other.txt, line 3: the script says '1 -> 3 Token'"), "{reason}");
    assert!(reason.contains("what happens is '1 -> 2 Token'"), "{reason}");
    let found = parsed(&failing(&format!("replay {wrong} --json"), 1).0);
    assert_eq!(found["difference"]["line"], 3);
    assert_eq!(json(&format!("replay {right}"))["difference"], serde_json::Value::Null);

    for (name, check, effect, edited) in [
        ("safety", "lamport -n 2 --channel unordered", "1 -> 2 Ack", "1 -> 2 Nack"),
        ("order", "raymond-tree -n 3 --history order", "2 -> 1 Request", "2 -> 3 Request"),
    ] {
        let story = temporary(&format!("edited-{name}.txt"));
        failing(&format!("check {check} --save {story}"), 1);
        let text = text_of(&story).replace(effect, edited);
        let by_hand = file(&format!("edited-{name}-by-hand.txt"), &text);
        let (_, reason) = failing(&format!("replay {by_hand}"), 1);
        assert!(reason.contains(&format!("the script says '{edited}")), "{reason}");
        assert!(reason.contains(&format!("what happens is '{effect}")), "{reason}");
    }
}

/// The request of node 2 is lost, and node 3, which always asks again, goes in and out forever.
const STARVATION: &str = "run central n=3
acquire 2
drop 2 1
acquire 3

# And again and again:
round
deliver 3 1
deliver 1 3
release 3
acquire 3
deliver 3 1 Release
again
";

#[test]
fn a_starvation_goes_round() {
    let picture = temporary("starvation.svg");
    let story = file("starvation.txt", STARVATION);
    let (text, reason) = failing(&format!("replay {story} --diagram {picture}"), 1);
    assert!(text.contains("and again and again:\n"), "{text}");
    assert!(text.contains("and so on for ever; starved: node 2 waits for ever"), "{text}");
    assert!(text.ends_with(
        "violated: starvation: node 2 waits for ever, though messages arrive and nodes leave\n"
    ));
    assert!(reason.contains("ends with a violation: node 2 waits for ever"), "{reason}");
    assert!(text_of(&picture).contains("✗ node 2 waits for ever"));

    let found = parsed(&failing(&format!("replay {story} --json"), 1).0);
    assert_eq!((&found["verdict"], &found["property"]), (&"violated".into(), &"starvation".into()));

    // A request that is not lost arrives some time, so no node starves while it is in transit.
    let patient = STARVATION.replace("drop 2 1\n", "");
    let text = answer(&format!("replay {}", file("patient.txt", &patient)));
    assert!(text.ends_with("and so on for ever\nnothing is violated\n"), "{text}");
}

#[test]
fn a_story_in_which_all_is_well_is_played() {
    let picture = temporary("played.mmd");
    let story = file("played.txt", "run le-lann n=2\nacquire 2\ndeliver 1 2\n");
    let text = answer(&format!("replay {story} --diagram {picture}"));
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "le-lann n=2");
    assert!(lines[1].contains("at the start  1 -> 2 Token"), "{text}");
    assert!(lines[3].ends_with("deliver 1 2   2 <- 1 Token; 2 enters"), "{text}");
    assert_eq!(lines[4..], ["nothing is violated"]);
    assert!(text_of(&picture).starts_with("sequenceDiagram"));
    let found = json(&format!("replay {story}"));
    assert_eq!((&found["verdict"], &found["n"]), (&"holds".into(), &2.into()));
    assert_eq!(found["steps"][2]["effects"][1], "2 enters");
}

#[test]
fn what_cannot_be_played_is_refused() {
    let (_, reason) = failing(&format!("replay {NOWHERE}"), 1);
    assert!(reason.starts_with(&format!("doorway: cannot read {NOWHERE}: ")), "{reason}");
    let wrong = file("unplayable.txt", "run le-lann n=2\nacquire 3\n");
    assert!(refusal(&format!("replay {wrong}")).contains("line 2"));
    let story = file("fine.txt", "run le-lann n=2\n");
    assert!(refusal(&format!("replay {story} --diagram picture.bmp")).contains(".svg"));
    #[cfg(unix)]
    assert!(refusal("replay /dev/zero").contains("/dev/zero is too large: at most 16 MiB"));
    let (_, reason) = failing(&format!("replay {story} --diagram {NOWHERE}"), 1);
    assert!(reason.starts_with(&format!("doorway: cannot write {NOWHERE}: ")), "{reason}");
}
