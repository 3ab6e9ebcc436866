//! `doorway quorums`.

use serde_json::Value;

use crate::{answer, json, refusal};

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
