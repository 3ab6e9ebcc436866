//! Wrong arguments are refused in one line that says what would be right.

use crate::refusal;

#[test]
fn unknown_names_are_answered_with_the_nearest() {
    assert!(refusal("explain ricart-agrawla").contains("'ricart-agrawala'"));
    assert!(refusal("explain RICART-AGRA").contains("'ricart-agrawala'"));
    assert!(refusal("quorums projectiv -n 7").contains("'projective-plane'"));
    assert!(refusal("quorums gird -n 7").contains("'grid'"));
    assert!(refusal("simulate lamprot -n 3").contains("'lamport'"));
    assert!(refusal("simulate maekawa -n 7 --quorums gird").contains("'grid'"));
    assert!(refusal("diagram lelann -n 3").contains("'le-lann'"));
    assert!(refusal("compare lamport majorty").contains("'majority'"));
    assert!(refusal("paper maekawa-tabel-1").contains("'maekawa-table-1'"));
    assert!(!refusal("explain quicksort").contains("did you mean"));
    assert!(refusal("lst").contains("'list'"));
    assert!(refusal("list --jsn").contains("'--json'"));
}

#[test]
fn a_forgotten_run_and_the_words_of_other_programs_are_understood() {
    let forgotten = refusal("backup -- ./backup.sh --all");
    assert!(forgotten.contains("say doorway run backup -- ./backup.sh --all"), "{forgotten}");
    assert!(!forgotten.contains("'break'"), "{forgotten}");
    assert!(refusal("stop").contains("`doorway drain`"));
    assert!(refusal("version").contains("`doorway --version`"));
}

fn refused(cases: impl IntoIterator<Item = (String, &'static str)>) {
    for (line, why) in cases {
        let reason = refusal(&line);
        assert!(reason.contains(why), "doorway {line}: {reason}");
    }
}

#[test]
fn sizes_beyond_the_limits_are_refused_everywhere() {
    let commands = [
        "simulate lamport",
        "diagram lamport",
        "explain lamport",
        "compare lamport",
        "quorums grid",
    ];
    let sizes = ["0", "-3", "16777217", "99999999999999999999", "many", "2.5"];
    let cases = |command| sizes.map(|size| (format!("{command} -n {size}"), "1 to 16777216 nodes"));
    refused(commands.into_iter().flat_map(cases));
}

#[test]
fn impossible_groups_are_refused_in_one_line() {
    let cases = [
        ("quorums grid", "-n <N>"),
        ("quorums projective-plane -n 8", "8"),
        ("quorums majority -n 16777216", "members"),
        ("quorums weighted -n 3 --weights 1,1", "weights"),
        ("quorums weighted -n 3 --weights 0,0,0", "zero"),
        ("quorums weighted -n 2 --weights 1,x", "a whole number"),
        ("quorums weighted -n 3 --weights -1,2,3", "say a whole number from 0"),
        ("simulate weighted-majority -n 3 --weights -1,2,3", "say a whole number from 0"),
        ("quorums grid -n 2 --weights 1,1", "weights"),
        ("quorums grid:3 -n 9", "triangle:1, triangle:2, or quorums by hand"),
        ("quorums grid -n 9 --picture grid.png", "'grid.png' must end in .svg"),
        ("explain ricart-agrawala --topology star", "mesh, ring, tree"),
        ("explain ricart-agrawala --graph round", "balanced:K"),
        ("explain ricart-agrawala -n 16777216 --graph mesh", "at most"),
        ("explain ricart-agrawala --initiators 0", "from 1"),
        ("explain", "<ALGORITHM>"),
        ("simulate maekawa -n 8 --quorums projective-plane", "7 and 13"),
        ("simulate maekawa -n 3 --quorums weighted --weights 0,0,0", "zero"),
        ("simulate raymond-k -n 3 --permits 4294967295", "1 to 16777216 permits"),
        ("simulate raymond-k -n 3 --permits 0", "1 to 16777216 permits, not 0"),
        ("simulate raymond-k -n 3 --permits 3 --seats 0", "at least one seat"),
        ("simulate raymond-k -n 3 --permits 2 --seats 3", "3 seats"),
        ("simulate raymond-k -n 3 --permits 9 --seats 2", "cannot hold 9 permits"),
        ("simulate raymond-k -n 3 --seats 1", "--permits"),
        ("simulate lamport -n 3 --permits 2", "no use for permits"),
        ("simulate raymond-echo -n 4 --graph 1-2,3-4", "connected"),
        ("simulate raymond-echo -n 4 --initiators 5", "nodes of the group"),
        ("simulate raymond-tree -n 4 --tree bush", "balanced:2"),
        ("completions cobol", "bash"),
        ("", "doorway help"),
    ];
    refused(cases.map(|(line, why)| (line.to_owned(), why)));
}

/// What no run can be like, whatever command runs it.
const RUNS: [(&str, &str); 48] = [
    ("--entries 0", "1 to 50000000"),
    ("--entries -1", "up to 50000000"),
    ("--entries x", "up to 50000000"),
    ("--entries 18446744073709551615 --warmup 1", "up to 50000000"),
    ("--warmup 99999999999", "up to 50000000"),
    ("--warmup -1", "up to 50000000"),
    ("--seed -1", "a whole number from 0 to 18446744073709551615"),
    ("--seed 18446744073709551616", "a whole number from 0 to 18446744073709551615"),
    ("--seed x", "--seed"),
    ("--seed", "--seed"),
    ("--think -1", "a number from 0"),
    ("--think nan", "a number from 0"),
    ("--think gauss:1", "exponential:1"),
    ("--think 1e300", "a number from 0 to 1e9"),
    ("--inside -1", "a number from 0"),
    ("--inside uniform:2..1", "uniform:0.5..1.5"),
    ("--delay 1", "constant:1"),
    ("--delay gauss:1", "'gauss:1' is not a distribution"),
    ("--delay constant:-1", "not a distribution"),
    ("--delay uniform:1", "not a distribution"),
    ("--delay constant:0", "must be above 0"),
    ("--open 0", "a rate of"),
    ("--open -1", "a rate of"),
    ("--open nan", "NaN"),
    ("--open 1 --serial", "--serial"),
    ("--hot 1", "2:10"),
    ("--hot 9:1", "at most 3 nodes"),
    ("--hot 1:0", "a factor of"),
    ("--hot 1:nan", "a factor of"),
    ("--shared 0.5", "no shared mode"),
    ("--shared 2", "from 0 to 1"),
    ("--shared nan", "from 0 to 1"),
    ("--channel slow", "fifo, unordered"),
    ("--loss 2", "from 0 to 1"),
    ("--loss -0.5", "from 0 to 1, not -0.5"),
    ("--loss much", "a number, as in 0.5"),
    ("--loss nan", "NaN"),
    ("--duplicate 1.5", "from 0 to 1"),
    ("--crash 1", "3@25.5"),
    ("--crash 0@1", "3@25.5"),
    ("--crash 9@1", "node 9"),
    ("--crash 1@-1", "not a time"),
    ("--crash 1@nan", "not a time"),
    ("--detect -1", "a time from 0"),
    ("--detect inf", "a time from 0"),
    ("--partition 1", "1,2@10..20"),
    ("--partition 9@1..2", "node 9"),
    ("--partition 1@2..1", "1,2@10..20"),
];

#[test]
fn impossible_runs_are_refused_in_one_line() {
    for command in ["simulate lamport -n 3", "diagram lamport -n 3", "compare lamport --points 3"] {
        refused(RUNS.map(|(options, why)| (format!("{command} {options}"), why)));
    }
}

#[test]
fn impossible_comparisons_are_refused_in_one_line() {
    let cases = [
        ("--sweep up", "n, load or delay"),
        ("--points 0", "0 cannot be a point"),
        ("--points 2.5", "2.5 cannot be a point"),
        ("--points 16777217", "cannot be a point"),
        ("--points x", "--points"),
        ("--points 3,,5", "numbers with commas between them, as in 3,7,13"),
        ("--sweep load --points -1", "-1 cannot be a point"),
        ("--sweep load --points nan", "NaN cannot be a point"),
        ("--sweep delay --points 0", "0 cannot be a point"),
        ("--sweep load --think 3", "sets the think time itself"),
        ("--metric beauty", "messages"),
        ("--threads many", "1 to 1024 threads"),
    ];
    refused(cases.map(|(options, why)| (format!("compare lamport {options}"), why)));
}

#[test]
fn impossible_checks_are_refused_in_one_line() {
    let sizes = ["0", "-3", "33", "16777217", "99999999999999999999", "many"];
    refused(sizes.map(|size| (format!("check lamport -n {size}"), "1 to 32 nodes")));
    let cases = [
        ("check lamprot -n 3", "'lamport'"),
        ("check -n 3", "<ALGORITHM"),
        ("check lamport --all", "--all"),
        ("check lamport -n 3 --acquires 0", "1 to 1000, or forever"),
        ("check lamport -n 3 --acquires 4294967295", "1 to 1000, or forever"),
        ("check lamport -n 3 --acquires often", "1 to 1000, or forever"),
        ("check lamport -n 3 --acquires forever --loss", "combined with faults"),
        ("check --all --acquires forever --crash=outside", "combined with faults"),
        ("check lamport -n 3 --limit 0", "1 to 4000000000 worlds"),
        ("check lamport -n 3 --limit 4000000001", "1 to 4000000000 worlds"),
        ("check lamport -n 3 --memory 0", "gigabytes"),
        ("check lamport -n 3 --threads 0", "1 to 1024 threads"),
        ("check lamport -n 3 --channel slow", "fifo, unordered"),
        ("check lamport -n 3 --crash=often", "outside, inside, any"),
        ("check lamport -n 3 --requesters 4", "there is no node 4"),
        ("check lamport -n 3 --requesters 0", "from 1"),
        ("check lamport -n 3 --readers 1", "no shared mode"),
        ("check readers-writers -n 3 --readers 4", "there is no node 4"),
        ("check readers-writers -n 3 --readers 1 --requesters 2", "node 1 is one of --readers"),
        ("check lamport -n 3 --permits 2", "no use for permits"),
        ("check maekawa -n 4 --quorums projective-plane", "4"),
        ("check raymond-echo -n 32 --graph 1-33", "two different nodes"),
        ("check lamport -n 3 --diagram picture.bmp", ".svg"),
        ("check --all --save story.txt", "--save"),
        ("check --all -n 2 --permits 0", "no algorithm can be checked so"),
        ("replay", "<FILE>"),
    ];
    refused(cases.map(|(line, why)| (line.to_owned(), why)));
}

#[test]
fn whole_numbers_and_commands_are_answered_with_what_would_be_right() {
    let days = "'--days <DAYS>': say a whole number from 1 to 36500";
    let seed = "'--seed <SEED>': say a whole number from 0 to 18446744073709551615";
    let cases = [
        ("ca init --group a --days 0", days),
        ("ca init --group a --days x", days),
        ("ca node a --days 36501", days),
        ("lab --port 99999", "'--port <PORT>': say a whole number from 0 to 65535"),
        ("lab --port=", "say a whole number from 0 to 65535"),
        ("problems run buffer-pair --seed x", seed),
        ("problems show buffer-pair --seed -1", seed),
        ("problems check buffer-pair -n 0", "say a whole number from 1 to 1000"),
        ("ca", "no command given: `doorway help ca` shows the commands"),
        ("threads", "no command given: `doorway help threads` shows the commands"),
        ("threads run", "'run'; `doorway help threads` shows the commands"),
        ("zzz", "'zzz'; `doorway help` shows the commands"),
        ("list x", "unexpected argument 'x' found; say doorway list [OPTIONS]"),
        ("quorums", "<KIND|SETS>; say doorway quorums "),
    ];
    refused(cases.map(|(line, why)| (line.to_owned(), why)));
}
