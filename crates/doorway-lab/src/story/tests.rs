//! Stories of every algorithm and of every script.

use std::collections::BTreeSet;

use doorway_core::algorithms::ALL;

use super::*;
use crate::check::{Check, SearchTargets, Verdict};
use crate::source::Source;
use crate::stories::{SCRIPTS, Script};

const QUESTION: Question = Question {
    acquires: None,
    losses: 0,
    duplicates: 0,
    crashes: 0,
    withdrawing: false,
    limit: 1_000_000,
};

/// Play words from the beginning.
fn play(setup: &str, words: &[String]) -> Story {
    let mut story = Story::begin(setup).unwrap();
    for word in words {
        story.step(word).unwrap();
    }
    story
}

/// Play the words of a link from the beginning.
fn play_words(setup: &str, words: &str) -> Story {
    let words: Vec<String> =
        step_words::split(words).unwrap().into_iter().map(str::to_owned).collect();
    play(setup, &words)
}

#[test]
fn every_algorithm_has_a_story_that_its_words_tell_again() {
    for entry in ALL {
        let setup = format!("{} n=3", entry.info.name);
        for pick in ["oldest", "fair", "dice:7"] {
            let mut story = Story::begin(&setup).unwrap();
            let steps = story.go(pick.parse().unwrap(), StopCondition::Steps(150));
            // A refuted algorithm may end in a deadlock before anybody has entered.
            let ended = entry.info.refuted.is_some() && story.violation().is_some();
            assert!(ended || steps.len() == 150, "{setup}, {pick}: {} steps", steps.len());
            let entered = steps.iter().any(|step| step.entered);
            assert!(ended || entered, "{setup}, {pick}: nobody enters");
            let words: Vec<String> = steps.iter().map(|step| step.word.clone()).collect();
            assert_eq!(story.step_words(), words);
            let again = play(&setup, &words);
            assert_eq!(again.print(), story.print(), "{setup}, {pick}");
            assert_eq!(step_words::split(&words.concat()).unwrap(), words);
            for at in [0, 1, 63, 64, 65, words.len()] {
                let at = at.min(words.len());
                let (early, played) = (story.at(at), play(&setup, &words[..at]));
                assert_eq!(early.world(), played.world(), "{setup}, {pick}, {at} steps");
                assert_eq!((early.print(), early.len()), (played.print(), at));
            }
        }
    }
}

#[test]
fn every_step_names_a_rule_and_the_lines_that_ran() {
    let mut missed = BTreeSet::new();
    for entry in ALL {
        let mut story = Story::begin(&format!("{} n=4", entry.info.name)).unwrap();
        let source = Source::of(entry.info.name).unwrap();
        let fields = story.view(Vec::new()).frame.unwrap().fields;
        assert!(fields.iter().all(|name| !name.is_empty()), "{}", entry.info.name);
        for step in story.go(Pick::Dice(3), StopCondition::Steps(200)) {
            // The table of the page has a row for each field, whatever its value is.
            assert_eq!(step.state.fields.len(), fields.len(), "{}", entry.info.name);
            assert!(!step.rules.is_empty(), "{}: {}", entry.info.name, step.word);
            assert!(!step.lines.is_empty(), "{}: {}", entry.info.name, step.word);
            let lines = |file: usize| source.files[file].text.lines().count();
            assert!(step.lines.iter().all(|&(file, from, to)| from <= to && to <= lines(file)));
            // Whatever a step does outside its node, some line of the code does it.
            if step.hits.is_empty() && (step.entered || !step.sends.is_empty()) {
                let cause = step.word.chars().next().unwrap();
                let sent: Vec<String> = step.sends.iter().map(|it| it.text.clone()).collect();
                missed.insert(format!("{} {cause} {sent:?} {:?}", entry.info.name, step.lines));
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn every_script_is_on_the_shelf_and_is_told_as_a_story() {
    assert_eq!(cards().len(), SCRIPTS.len() + crate::flaws::all().len());
    for Script { name: id, text, .. } in SCRIPTS {
        let outcome = script::run(text).unwrap();
        let told = Story::read(text).unwrap();
        assert_eq!(told.story.len(), told.words.len(), "{id}");
        let again = play(told.story.setup(), &told.words);
        assert_eq!(again.print(), told.story.print(), "{id}");
        let expected = outcome.violation.as_ref().map(ToString::to_string);
        let text = told.violation.map(|violation| violation.text);
        // Of a deadlock, the story also says whether other clients can still ask.
        let until = |text: &Option<String>| {
            text.as_ref().map(|text| text.split([',', ' ']).take(3).collect::<Vec<_>>().concat())
        };
        match outcome.violation {
            Some(Violation::Stuck(_)) => assert_eq!(until(&text), until(&expected), "{id}"),
            _ => assert_eq!(text, expected, "{id}"),
        }
        if told.round.is_none() {
            let ended = again.violation().map(|violation| violation.to_string());
            assert_eq!(ended, expected, "{id}");
        }
        let script = told.story.script().unwrap_or_else(|why| panic!("{id}: {why}"));
        let reread = Story::read(&script).unwrap();
        assert_eq!(reread.words, told.words, "{id}");
    }
}

#[test]
fn messages_add_up_and_each_is_paid_by_a_request() {
    // Two nodes ask; each entry costs 2(N-1) = 4 messages, and no other node pays.
    let mut story = Story::begin("ricart-agrawala n=3").unwrap();
    for word in ["a1", "a2"] {
        story.step(word).unwrap();
    }
    let mut steps = story.at(0).retell();
    steps.extend(story.retell());
    for _ in 0..2 {
        steps.extend(story.go(Pick::Oldest, StopCondition::Entry));
        let inside = steps.last().unwrap().node;
        steps.push(story.step(&format!("r{inside}")).unwrap());
    }
    let paid = |node: u32| {
        let sends = steps.iter().flat_map(|step| &step.sends);
        sends.filter(|send| send.pays == Some((node, 1))).count()
    };
    assert_eq!((paid(1), paid(2), paid(3)), (4, 4, 0));
    let claim = story.view(Vec::new()).frame.unwrap().group.claim;
    assert_eq!((claim.text.as_str(), claim.least, claim.most), ("2(N-1)", 4.0, Some(4.0)));
}

#[test]
fn choices_are_grouped_by_message() {
    let mut story = Story::begin("ricart-agrawala n=3").unwrap();
    story.step("a2").unwrap();
    let view = story.view(Vec::new());
    let messages: Vec<_> = view.choices.iter().filter(|choice| choice.kind == "message").collect();
    let told: Vec<_> = messages.iter().map(|it| (it.from, it.node, it.words.clone())).collect();
    let words = |words: [&str; 3]| words.map(str::to_owned).to_vec();
    assert_eq!(told[0], (Some(2), 1, words(["d2-1", "x2-1", "u2-1"])));
    assert_eq!(told.len(), 2);
    for choice in view.choices {
        for word in choice.words {
            story.clone().step(&word).unwrap();
        }
    }
}

#[test]
fn a_lost_message_and_those_of_a_crashed_node_are_told() {
    let mut story = Story::begin("ricart-agrawala n=3").unwrap();
    let ids: Vec<u64> = story.step("a2").unwrap().sends.iter().map(|send| send.id).collect();
    assert_eq!(story.step("x2-1").unwrap().lost, ids[..1]);
    assert_eq!(story.step("c3").unwrap().lost, ids[1..]);
    assert_eq!(story.step("k2-3").unwrap().state.phase, "waiting");
    assert!(story.step("a3").unwrap_err().why.contains("has crashed"));
}

#[test]
fn impossible_steps_are_refused_with_a_sentence() {
    let mut story = Story::begin("ricart-agrawala n=3").unwrap();
    for word in ["", "r1", "w1", "d1-2", "k1-2", "f9", "q", "d1-2.0", "a1.5", "s1"] {
        let refused = story.step(word).unwrap_err();
        assert_eq!(refused.step, 1, "{word}");
        assert!(refused.why.len() > 10, "{word}");
    }
    assert!(Story::begin("nonsense n=3").unwrap_err().contains("no algorithm 'nonsense'"));
    assert!(Story::begin("ricart-agrawala n=1000").is_err());
    assert!(Story::begin("ricart-agrawala n=3\nacquire 1").unwrap_err().contains("quorum"));
    assert!(Story::begin("").is_err());
    assert!("coin".parse::<Pick>().is_err());
    assert!("supper".parse::<StopCondition>().is_err());
}

#[test]
fn nothing_happens_after_a_violation() {
    let told = Story::read(script_of("maekawa-slides-printed/two-inquiries").unwrap()).unwrap();
    let mut story = told.story;
    assert!(story.next().is_empty());
    assert!(story.step("a4").unwrap_err().why.contains("inside together"));
    assert!(story.go(Pick::Fair, StopCondition::Steps(5)).is_empty());
    assert_eq!(told.notes[0].0, 0);
    assert!(told.notes.iter().any(|(at, note)| *at > 0 && note.contains("inquires twice")));
}

#[test]
fn from_here_says_whether_it_can_still_go_wrong_and_since_when_not() {
    let ask = |story: &Story| story.from_here(&QUESTION, &mut |_, _| true).unwrap();
    let start = Story::begin("maekawa-sequential-self-first n=3").unwrap();
    let Answer::Possible { steps, violation, .. } = ask(&start) else { panic!("it can go wrong") };
    assert_eq!(violation.property, "stuck");
    let end = play(start.setup(), &steps);
    assert_eq!(end.violation().unwrap().to_string(), violation.text, "the way leads there");
    let Answer::Possible { steps: none, violation: there, .. } = ask(&end) else {
        panic!("it has gone wrong")
    };
    assert_eq!((none.len(), there.text), (0, violation.text), "the moment itself is wrong");
    let fine = play("maekawa-sequential n=3", &steps[..2]);
    assert!(matches!(ask(&fine), Answer::Impossible { since: 0, .. }));
    // A loss is a fault of the network, after which a node waits for ever.
    let lossy = Question { acquires: Some(0), losses: 1, ..QUESTION };
    let mut asked = Story::begin("ricart-agrawala n=3").unwrap();
    asked.step("a1").unwrap();
    let answer = asked.from_here(&lossy, &mut |_, _| true).unwrap();
    assert!(matches!(answer, Answer::Possible { .. }), "{answer:?}");
    asked.step("d1-2").unwrap();
    asked.step("d2-1").unwrap();
    asked.step("d1-3").unwrap();
    asked.step("d3-1").unwrap();
    let answer = asked.from_here(&lossy, &mut |_, _| true).unwrap();
    let Answer::Impossible { since: 5, exact: true, worlds, .. } = answer else {
        panic!("{answer:?}")
    };
    // Enough for the moment itself, and too little for the moments before it.
    let short = Question { limit: worlds, ..lossy };
    let answer = asked.from_here(&short, &mut |_, _| true).unwrap();
    assert!(matches!(answer, Answer::Impossible { since: 5, exact: false, .. }), "{answer:?}");
    assert!(asked.from_here(&Question { acquires: None, ..lossy }, &mut |_, _| true).is_err());
    let stopped = start.from_here(&Question { limit: 3, ..QUESTION }, &mut |_, _| true).unwrap();
    assert!(matches!(stopped, Answer::NotExhausted { .. }));
}

/// A fault or a give-up between two moments may happen after the earlier one too.
#[test]
fn since_when_counts_the_faults_of_the_steps_between() {
    let question = Question { acquires: Some(0), ..QUESTION };
    for (setup, words, since) in [
        // Without its REQUEST node 1 waits for ever, until its client gives up.
        ("ricart-agrawala n=2", "a1x1-2w1", 3),
        ("raymond-k n=2", "a2a1u1-2d1-2d2-1", 3),
        ("majority n=2", "a1d1-2c2k1-2", 2),
    ] {
        let story = play_words(setup, words);
        let answer = story.from_here(&question, &mut |_, _| true).unwrap();
        let Answer::Impossible { since: told, exact: true, .. } = answer else {
            panic!("{setup}: {answer:?}")
        };
        assert_eq!(told, since, "{setup}");
        // Without the faults, nothing goes wrong from the beginning.
        let sound = Question { acquires: Some(1), ..QUESTION };
        let answer = story.at(0).from_here(&sound, &mut |_, _| true).unwrap();
        assert!(matches!(answer, Answer::Impossible { since: 0, .. }), "{setup}: {answer:?}");
    }
    // With nodes that ask for ever, no check looks back behind a loss or a doubled message.
    let story = play_words("raymond-echo n=2", "a2u2-1a1d1-2d2-1.2d1-2");
    let answer = story.from_here(&QUESTION, &mut |_, _| true).unwrap();
    assert!(matches!(answer, Answer::Impossible { since: 2, exact: false, .. }), "{answer:?}");
}

/// The request of node 2 is lost, and the token goes to and fro between the others.
#[test]
fn the_cycle_of_a_starvation_is_told_and_returns_to_its_beginning() {
    let begin = play_words("suzuki-kasami n=3", "a2x2-1x2-3a3");
    let mut world = begin.world().clone();
    let limits = world.limits_mut();
    (limits.losses, limits.duplicates, limits.crashes) = (0, 0, 0);
    (limits.withdrawing, limits.forgetting) = (false, false);
    // Without the deadlock that comes first, which is that the others stop asking.
    let targets = SearchTargets { stuck: false, ..SearchTargets::default() };
    let verdict = Check { targets, ..Check::new(&world, 200_000) }.run().verdict;
    let Verdict::Violated { trace, cycle, violation } = verdict else { panic!("{verdict:?}") };
    assert_eq!(violation, Violation::Starved(doorway_core::NodeId(1)));
    let (steps, cycle) = here::way(&world, &trace, &cycle);
    assert!(!cycle.is_empty());
    let words = [begin.step_words(), steps].concat();
    let before = play(begin.setup(), &words);
    let after = play(begin.setup(), &[words, cycle].concat());
    assert_eq!(before.world().settled(), after.world().settled());
}

#[test]
fn clients_give_up_if_the_question_says_so() {
    let story = Story::begin("ricart-agrawala n=2").unwrap();
    let worlds = |withdrawing| {
        let question = Question { acquires: Some(1), withdrawing, ..QUESTION };
        match story.from_here(&question, &mut |_, _| true).unwrap() {
            Answer::Impossible { since: 0, worlds, .. } => worlds,
            answer => panic!("{answer:?}"),
        }
    };
    assert!(worlds(true) > worlds(false));
}

#[test]
fn an_atlas_has_the_worlds_that_the_checker_visits() {
    let fits =
        [("ricart-agrawala n=2", true), ("ricart-agrawala n=3", false), ("maekawa n=2", true)];
    let others = [("naimi-trehel n=3", false), ("le-lann n=3", false)];
    for (setup, gives_up) in fits.into_iter().chain(others) {
        let story = Story::begin(setup).unwrap();
        let mut world = story.world().clone();
        let limits = world.limits_mut();
        (limits.losses, limits.duplicates, limits.crashes) = (0, 0, 0);
        let atlas = story.atlas().unwrap();
        assert_eq!(atlas.withdrawing(), gives_up, "{setup}");
        limits.withdrawing = gives_up;
        let report = Check::safety(&world, 100_000).run();
        let visited = (report.progress.states as usize, report.progress.steps as usize);
        assert_eq!(atlas.size(), visited, "{setup}");
    }
}

#[test]
fn a_recording_is_told_with_the_names_of_its_nodes() {
    let mut story = Story::begin("ricart-agrawala n=3").unwrap();
    story.go(Pick::Fair, StopCondition::Steps(40));
    let names = vec!["a".to_owned(), "b".to_owned(), "c".to_owned()];
    let view = recorded(&Trace { names: names.clone(), ..story.trace() });
    assert_eq!(view.frame.unwrap().names, names);
    let told = story.retell();
    let entries = |steps: &[StepView]| steps.iter().filter(|step| step.entered).count();
    let sends = |steps: &[StepView]| steps.iter().map(|step| step.sends.len()).sum::<usize>();
    assert_eq!(entries(&view.steps), entries(&told));
    assert_eq!(sends(&view.steps), sends(&told));
    assert!(view.steps.iter().all(|step| step.say.is_some()));
    assert_eq!(story.csv().lines().count(), 41);
}

/// A recording of a lock that node a holds and for which node b waits. The recording of b begins at
/// this moment. `standing` is what each node says about how the lock stands; nodes of earlier
/// versions say nothing.
fn recorded_in_use(moment: u64, standing: &str) -> Trace {
    let node = |name: &str, lines: &str| {
        let header = format!(
            r#"{{"recording":1,"group":"g","node":"{name}","members":["a","b","c"],"began":0,"partial":true}}"#
        );
        format!("{header}\n{lines}{{\"end\":\"time\"}}\n")
    };
    let begin = |at: u64, rest: &str| {
        format!(
            r#"{{"at":{at},"view":7,"lock":"x","did":"begin","algorithm":"ricart-agrawala","permits":1,{rest},"floor":0{standing}}}"#
        ) + "\n"
    };
    let line = |at: u64, rest: &str| format!(r#"{{"at":{at},"view":7,"lock":"x",{rest}}}"#) + "\n";
    let a = begin(10, r#""holders":[{"node":"a","mode":"Exclusive","permits":1}]"#)
        + &line(50, r#""did":"release""#)
        + &line(50, r#""did":"send","to":"b","message":"Reply""#);
    let b = begin(moment, r#""holders":[],"waiting":"Exclusive""#)
        + &line(60, r#""did":"receive","from":"a""#)
        + &line(60, r#""did":"enter""#);
    let c = begin(30, r#""holders":[]"#);
    let text = node("a", &a) + &node("b", &b) + &node("c", &c);
    let file = crate::recording::File { name: "record".to_owned(), text };
    crate::recording::read(&[file], Some("x")).unwrap().trace
}

#[test]
fn a_recording_of_a_lock_in_use_begins_as_the_lock_stood() {
    let phases = |trace: &Trace| {
        let view = recorded(trace);
        let base = view.frame.unwrap().base.iter().map(|node| node.phase).collect::<Vec<_>>();
        (base, view.steps.iter().map(|step| (step.node, step.entered)).collect::<Vec<_>>())
    };
    let standing = r#","standing":true"#;
    let trace = recorded_in_use(20, standing);
    let (released, entered) = ((1, false), (2, true));
    assert_eq!(phases(&trace), (vec!["inside", "waiting", "outside"], vec![released, entered]));
    let text = crate::diagram::render(&trace, crate::diagram::Format::Chrome);
    assert!(text.contains("waiting") && text.contains("inside"), "{text}");
    let late = phases(&recorded_in_use(55, standing));
    let (base, steps) = (vec!["inside", "outside", "outside"], vec![released, (2, false), entered]);
    assert_eq!(late, (base, steps), "how b stood before is not known");
    let earlier = phases(&recorded_in_use(20, ""));
    assert_eq!(earlier.0, ["outside"; 3], "a node of an earlier version");
}

#[test]
fn quorums_are_arranged_as_they_were_constructed() {
    let layout = |setup: &str| {
        let group = Story::begin(setup).unwrap().view(Vec::new()).frame.unwrap().group;
        (group.layout, group.rows)
    };
    assert_eq!(layout("maekawa n=9 quorums=grid"), ("grid", vec![3, 3, 3]));
    assert_eq!(layout("maekawa n=8 quorums=grid"), ("grid", vec![3, 3, 2]));
    assert_eq!(layout("maekawa n=8 quorums=triangle"), ("triangle", vec![1, 2, 3, 2]));
    assert_eq!(layout("maekawa n=10 quorums=triangle:1"), ("triangle", vec![1, 2, 3, 4]));
    assert_eq!(layout("maekawa n=7"), ("plane", vec![]));
    assert_eq!(layout("maekawa n=8 quorums=majority"), ("quorums", vec![]));
    // A plane that a person has numbered in another way is one too; a line that is missing shows.
    let by_hand = "maekawa n=7 quorums=1,2,4;2,3,5;3,4,6;4,5,7;1,5,6;2,6,7;1,3,7";
    assert_eq!(layout(by_hand).0, "plane");
    assert_eq!(
        layout("maekawa n=7 quorums=1,2,4;2,4,1;3,4,1;4,1,2;1,4,5;2,4,6;1,4,7").0,
        "quorums"
    );
    assert_eq!(layout("suzuki-kasami n=5 topology=ring").0, "ring");
    assert_eq!(layout("le-lann n=5").0, "ring");
    assert_eq!(layout("raymond-tree n=5").0, "tree");
}

#[test]
fn an_algorithm_stands_in_a_ring_if_and_only_if_its_messages_go_round() {
    for entry in ALL {
        let name = entry.info.name;
        let mut story = Story::begin(&format!("{name} n=5")).unwrap();
        let view = story.view(Vec::new()).frame.unwrap();
        let opening =
            view.opening.iter().flat_map(|it| it.sends.iter().map(|send| (it.node, send.to)));
        let mut sends: Vec<(u32, u32)> = opening.collect();
        for step in story.go(Pick::Dice(5), StopCondition::Steps(400)) {
            sends.extend(step.sends.iter().map(|send| (step.node, send.to)));
        }
        let round = sends.iter().all(|(from, to)| *to == from % 5 + 1);
        assert_eq!(view.group.layout == "ring", round, "{name}");
        let edges = if round { 5 } else { view.group.edges.len() };
        assert_eq!(view.group.edges.len(), edges, "{name}");
    }
}
