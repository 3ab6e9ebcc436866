//! `doorway quorums`.

use serde_json::Value;

use crate::{answer, json, refusal, temporary, text_of};

#[test]
fn quorums_are_printed_from_one_and_verified() {
    let plane = json("quorums projective-plane -n 13");
    assert_eq!((&plane["kind"], &plane["n"]), (&"projective-plane".into(), &13.into()));
    assert_eq!((&plane["size_min"], &plane["size_max"]), (&4.into(), &4.into()));
    assert!(["a", "b", "c", "d"].iter().all(|letter| plane["properties"][letter] == true));
    let sets = plane["quorums"].as_array().expect("an array");
    assert_eq!(sets.len(), 13);
    for (set, node) in sets.iter().zip(1..) {
        assert!(set.as_array().expect("a set").contains(&Value::from(node)), "(b) for {node}");
    }
    assert!(answer("quorums projective-plane -n 7").contains("(a)  yes  any two quorums meet"));
}

#[test]
fn every_construction_answers_under_the_same_names() {
    for kind in [
        "projective-plane",
        "degenerate-plane",
        "grid",
        "triangle",
        "cyclic",
        "majority",
        "weighted",
    ] {
        let system = json(&format!("quorums {kind} -n 13"));
        assert_eq!((&system["kind"], &system["n"]), (&kind.into(), &13.into()));
        let letters = system["properties"].as_object().expect("an object");
        assert!(letters.keys().eq(["a", "b", "c", "d"]) && letters.values().all(Value::is_boolean));
        assert_eq!(letters["a"], true, "{kind}");
        let turns = system["turns"].as_array().cloned().unwrap_or_default();
        let turns = turns.iter().chain([&system["quorums"]]);
        let turns: Vec<_> = turns.map(|sets| sets.as_array().expect("an array")).collect();
        assert!(turns.iter().all(|sets| sets.len() == 13), "{kind}");
        let sets = turns.into_iter().flatten();
        let sizes: Vec<_> = sets.map(|set| set.as_array().expect("a set").len()).collect();
        let range = (sizes.iter().min(), sizes.iter().max());
        let said = |key: &str| system[key].as_u64().expect(key) as usize;
        assert_eq!(range, (Some(&said("size_min")), Some(&said("size_max"))), "{kind}");
    }
}

#[test]
fn the_schemes_of_the_triangle_can_be_chosen() {
    let first = json("quorums triangle -n 6 --scheme 1");
    let second = json("quorums triangle -n 6 --scheme 2");
    assert_ne!(first["quorums"], second["quorums"]);
    let both = json("quorums triangle -n 6");
    assert_eq!(both, json("quorums triangle -n 6 --scheme both"));
    let turns = [&first["quorums"], &second["quorums"]].map(Clone::clone);
    assert_eq!(both["turns"], Value::from(turns.to_vec()));
    assert_eq!(both["properties"]["d"], true, "taking turns balances the load");
    assert!(refusal("quorums grid -n 6 --scheme 1").contains("no schemes"));
}

#[test]
fn a_table_compares_the_constructions_with_the_bound() {
    let text = answer("quorums --table");
    assert_eq!(
        text.lines().filter(|line| line.starts_with(char::is_numeric)).count(),
        31,
        "{text}"
    );
    let line = text.lines().find(|line| line.starts_with("13 ")).expect("13 nodes");
    let cells: Vec<_> = line.split_whitespace().collect();
    assert_eq!(cells, ["13", "4.00", "4", "4", "4", "4.77", "6.08", "7", "projective-plane"]);
    assert!(text.contains("(1+√(4N-3))/2"), "{text}");
    let lines = json("quorums --table -n 40");
    let lines = lines.as_array().expect("an array");
    assert_eq!((lines.len(), &lines[6]["best"]), (40, &"projective-plane".into()));
    assert!(lines[5]["sizes"][0]["mean"].is_null(), "there is no plane of six points");
    assert!(refusal("quorums --table -n 201").contains("at most 200"));
    assert!(refusal("quorums grid --table").contains("--table"));
}

#[test]
fn quorums_made_by_hand_are_verified() {
    let text = answer("quorums 1,2,3;2,3;3");
    assert!(text.starts_with("hand-made quorums for 3 nodes"), "{text}");
    assert!(text.contains("(a)  yes") && text.contains("(c)  no"), "{text}");
    assert_eq!(json("quorums 1,2,3;2,3;3")["quorums"][1], Value::from(vec![2, 3]));
    assert!(refusal("quorums 1;2").contains("have no node in common"));
}

#[test]
fn planes_that_do_not_exist_are_told_from_those_that_are_not_known() {
    let slides = "quorums projective-plane -n 31";
    assert_eq!(json(slides)["size_max"], 6, "order 5, where the slides print 43 nodes");
    assert_eq!(json("quorums projective-plane -n 91")["size_max"], 10, "K = 10 exists");
    let theorem = refusal("quorums projective-plane -n 43");
    assert!(theorem.contains("of order 6, does not exist, by the theorem of Bruck"), "{theorem}");
    assert!(refusal("quorums projective-plane -n 111").contains("a search by Lam"));
    assert!(refusal("quorums projective-plane -n 157").contains("is not known"));
}

#[test]
fn quorums_are_drawn() {
    for (kind, panels) in [("projective-plane -n 7", 7), ("grid -n 9", 9), ("triangle -n 15", 30)] {
        let picture = temporary("quorums.svg");
        answer(&format!("quorums {kind} --picture {picture}"));
        assert_eq!(text_of(&picture).matches("class=\"mark\"").count(), panels, "{kind}");
    }
    assert!(refusal("quorums grid -n 65 --picture x.svg").contains("at most 64"));
}
