//! `doorway story`.

use crate::{answer, failing, file, json, parsed, refusal, temporary, text_of};

#[test]
fn every_story_is_listed_and_can_be_played() {
    let (text, all) = (answer("story"), json("story"));
    let all = all.as_array().expect("an array");
    assert_eq!(text.lines().count(), all.len() + 1);
    let kinds = |kind: &str| all.iter().filter(|story| story["kind"] == kind).count();
    assert!(kinds("paper") >= 45 && kinds("flaw") >= 28, "{} stories", all.len());
    assert_eq!(kinds("paper") + kinds("extension") + kinds("flaw"), all.len());
    let withdrawals = all.iter().filter(|it| it["name"].as_str().unwrap().ends_with("/withdraw"));
    for story in withdrawals {
        assert_eq!(story["kind"], "extension", "{story}");
    }
    for story in all {
        let name = story["name"].as_str().expect("a name");
        assert!(text.lines().any(|line| line.starts_with(name)), "{name}");
        let played = json(&format!("story {name}"));
        assert_eq!(played["name"], story["name"]);
        if story["kind"] == "flaw" {
            assert!(played["violation"].is_string(), "{name}");
            assert!(!played["events"].as_array().expect("events").is_empty(), "{name}");
        } else {
            assert!(!played["steps"].as_array().expect("steps").is_empty(), "{name}");
        }
    }
}

#[test]
fn a_story_of_a_paper_is_told_with_its_source() {
    let text = answer("story maekawa/section-5");
    assert!(text.starts_with("Maekawa 1985, section 5 and figure 2: "), "{text}");
    assert!(text.ends_with("nothing is violated\n"), "{text}");
    assert_eq!(text, answer("story section-5"), "the end of the name is enough");
}

#[test]
fn a_flaw_is_told_with_what_is_wrong_and_what_is_right() {
    let text = answer("story maekawa-displaced-3");
    assert!(text.starts_with("maekawa-displaced-3: the paper: a request displaced"), "{text}");
    assert!(text.contains("quorums {1,2,3} {2,3} {3}"), "{text}");
    assert!(text.contains("violated after 8 steps: stuck: "), "{text}");
    assert!(text.ends_with("Holds: maekawa.\n"), "{text}");
    let bound = answer("story maekawa-waiting-bound");
    assert!(bound.contains("violated after 24 steps: claim: 3 requests were served"), "{bound}");
}

#[test]
fn a_story_is_drawn_in_space_and_time_or_as_a_tree() {
    let (picture, tree) = (temporary("story.svg"), temporary("lift.svg"));
    answer(&format!("story lamport-nonfifo --diagram {picture}"));
    assert!(text_of(&picture).contains("✗ nodes 1, 2 are inside together"));
    answer(&format!("story raymond-tree/lift --draw-tree {tree}"));
    assert!(text_of(&tree).contains("coloured: it has just turned"));
    let reason = refusal(&format!("story ricart-agrawala/concurrent --draw-tree {tree}"));
    assert!(reason.contains("no tree to draw") && reason.contains("raymond-tree"), "{reason}");
    assert!(refusal("story raymond-tree/lift --draw-tree lift.png").contains("must end in .svg"));
}

#[test]
fn the_states_of_nodes_are_columns_of_text() {
    let text = answer("story suzuki-kasami/mesh --columns requests,queue,served");
    let heading = text.lines().find(|line| line.trim_start().starts_with("time")).expect(&text);
    let columns: Vec<_> = heading.split_whitespace().collect();
    assert!(columns.ends_with(&["requests", "queue", "served"]), "{heading}");
    assert!(text.contains("[1 0 0 0 1 0 0 0]"), "{text}");
    let all = answer("story suzuki-kasami/mesh --columns all");
    assert!(all.contains(" phase ") && all.contains(" served"), "{all}");
    let reason = refusal("story suzuki-kasami/mesh --columns request");
    assert!(reason.contains("'requests'") && reason.contains("or all"), "{reason}");
    let script = file("columns.txt", "run raymond-tree n=3 tree=chain\nacquire 3\nstabilize\n");
    let text = answer(&format!("replay {script} --columns holder,queue"));
    assert!(text.contains("holder") && text.contains("node 3 receives Privilege"), "{text}");
}

#[test]
fn unknown_stories_are_answered_with_the_nearest() {
    assert!(refusal("story lamport-nonfif").contains("'lamport-nonfifo'"));
    assert!(refusal("story withdraw").contains("carvalho-roucairol/withdraw or"));
    assert!(refusal("story maekawa --diagram x.svg").contains("one story"));
    assert!(refusal("story --diagram x.svg").contains("<NAME>"));
    let some = answer("story maekawa-printed");
    assert!(
        some.contains("maekawa-printed/displaced-3") && some.contains("maekawa-fano"),
        "{some}"
    );
    assert!(!some.contains("lamport"), "{some}");
}

#[test]
fn a_counterexample_is_written_in_the_informal_trace_format() {
    let (text, reason) = failing("check lamport -n 2 --channel unordered --format itf", 1);
    assert!(reason.contains("violated: exclusion"), "{reason}");
    let itf = parsed(&text);
    assert_eq!(itf["#meta"]["format"], "ITF");
    let variables: Vec<_> = itf["vars"].as_array().expect("variables").clone();
    let states = itf["states"].as_array().expect("states");
    assert_eq!(states.len(), 5, "the first state and four steps");
    for (index, state) in states.iter().enumerate() {
        assert_eq!(state["#meta"]["index"], index);
        let keys: Vec<_> = state.as_object().expect("a state").keys().cloned().collect();
        assert_eq!(keys.len(), variables.len() + 1, "{keys:?}");
        assert!(variables.iter().all(|name| keys.iter().any(|key| name == key)), "{keys:?}");
    }
    assert_eq!(states[0]["action"], "init");
    let inside = |node: usize| &states[4]["phase"]["#map"][node][1];
    assert_eq!((inside(0), inside(1)), (&"inside".into(), &"inside".into()));
    assert!(itf.get("loop").is_none());
    let line = "check maekawa-printed --quorums 1,2,3;2,3;3 --acquires 1 --format itf";
    assert!(!failing(line, 1).0.contains("PhantomData"));
    assert_eq!(answer("check central -n 2 --format itf"), "", "nothing is violated");
    assert!(refusal("check --all -n 2 --format itf").contains("name the algorithm"));
    assert!(refusal("check lamport --json --format itf").contains("--format"));
    assert_eq!(parsed(&answer("check central -n 2 --format json"))["verdict"], "holds");
}
