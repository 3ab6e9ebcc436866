//! Tests run the shipped state machines, not imitations of them: a mistake in the shipped code is
//! not found by searching its twin.
//!
//! The opening comment of a search says what it searches: `Shipped:` and the types of this
//! repository, or `Published:` and the specification of somebody else. It stands in the `mod.rs` of
//! the directory, which a reader opens first, or in the file itself if there is none.

use std::collections::BTreeSet;

use crate::files::File;

/// The machines that some search has to run.
const MACHINES: [&str; 9] = [
    "AgreedViews",
    "Inbox",
    "Keeper",
    "Lock",
    "Outbox",
    "SessionMachine",
    "Sessions",
    "Shard",
    "ViewChange",
];
/// A test that answers more kinds of requests than this has a server in it.
const KINDS: usize = 4;
/// Tests that may do that. This one answers at random, so that its client meets every answer.
const ANSWERS_AT_RANDOM: [&str; 1] = ["crates/doorway-client/tests/client/trace.rs"];

/// What imitates a shipped machine or may do so, as `path: what`.
pub(crate) fn complaints(files: &[File]) -> Vec<String> {
    let tests: Vec<&File> =
        files.iter().filter(|file| file.is_source() && file.path.contains("/tests/")).collect();
    let mut complaints = Vec::new();
    let mut searched = BTreeSet::new();
    for search in tests.iter().filter(|file| is_search(&file.text)) {
        let module = format!("{}/mod.rs", parent(&search.path));
        let opening = tests.iter().find(|file| file.path == module).unwrap_or(search);
        let said = |word: &str| opening.text.lines().find_map(|line| line.strip_prefix(word));
        let Some(shipped) = said("//! Shipped: ") else {
            if said("//! Published: ").is_none() {
                let what =
                    "a search whose opening comment has no line `Shipped: ` with what it runs";
                complaints.push(format!("{}: {what}", opening.path));
            }
            continue;
        };
        let scope = scope(search, &tests);
        for name in shipped.split('`').skip(1).step_by(2) {
            searched.insert(name);
            let wrong = wrong(name, files, &scope);
            complaints.extend(wrong.map(|what| format!("{}: `{name}` {what}", opening.path)));
        }
    }
    let missing =
        MACHINES.iter().filter(|name| is_shipped(name, files) && !searched.contains(*name));
    complaints.extend(missing.map(|name| format!("no search runs the shipped `{name}`")));
    for test in tests.iter().filter(|test| !ANSWERS_AT_RANDOM.contains(&test.path.as_str())) {
        let is_server = answered(&test.text) > KINDS && test.text.contains("Reply::");
        if is_server && !test.text.contains("Sessions") {
            let what = "answers requests as the shipped `Sessions` do; run those instead";
            complaints.push(format!("{}: {what}", test.path));
        }
    }
    complaints
}

/// Does a file define a system for the explorer? A wrapper around any other system does not.
fn is_search(text: &str) -> bool {
    let wraps = |line: &str| line.starts_with("impl<S: System>");
    let explores = |line: &str| {
        (line.contains(" System for ") || line.contains(" Model for ")) && !wraps(line)
    };
    text.lines().any(|line| line.starts_with("impl") && explores(line))
}

/// The files of a search: those in its directory, and the modules beside it that they use.
fn scope<'a>(search: &File, tests: &[&'a File]) -> Vec<&'a File> {
    let directory = parent(&search.path);
    let own = |file: &&&File| file.path.starts_with(&format!("{directory}/"));
    let own: Vec<&File> = tests.iter().filter(own).copied().collect();
    let beside = format!("{}/", parent(directory));
    let used = |file: &&&File| {
        let Some(rest) = file.path.strip_prefix(&beside) else { return false };
        let module = rest.split(['/', '.']).next().unwrap_or_default();
        let from = |way: &str| own.iter().any(|it| it.text.contains(&format!("{way}::{module}::")));
        from("super") || from("crate") || file.path.starts_with(&format!("{directory}/"))
    };
    tests.iter().filter(used).copied().collect()
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// Does a `src` directory define a type of this name?
fn is_shipped(name: &str, files: &[File]) -> bool {
    let mut shipped = files.iter().filter(|file| file.path.contains("/src/") && file.is_source());
    shipped.any(|file| defines(&file.text, name))
}

/// Why a search does not run the shipped type of this name.
fn wrong(name: &str, files: &[File], scope: &[&File]) -> Option<&'static str> {
    if !is_shipped(name, files) {
        return Some("is not defined in any `src` directory");
    }
    if scope.iter().any(|file| defines(&file.text, name)) {
        return Some("is defined by the test itself");
    }
    let imported = |file: &&File| items(&file.text).0.iter().any(|item| has(item, name));
    if !scope.iter().any(imported) {
        return Some("is not imported from a crate of this repository");
    }
    let used = |file: &&File| has(&items(&file.text).1, name);
    (!scope.iter().any(used)).then_some("is imported and not used")
}

/// The imports from our crates, and the rest of the code without comments.
fn items(text: &str) -> (Vec<String>, String) {
    let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or("")).collect();
    let code = code.join("\n");
    let (mut imports, mut rest) = (Vec::new(), String::new());
    for item in code.split_inclusive(';') {
        match item.find("use doorway_") {
            Some(at) => imports.push(item[at..].to_owned()),
            None => rest.push_str(item),
        }
    }
    (imports, rest)
}

/// Does a file define a type of this name?
fn defines(text: &str, name: &str) -> bool {
    let defines = |line: &str| {
        let line = line.split("//").next().unwrap_or_default();
        let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        let kind = |word: &str| ["struct", "enum", "type", "trait"].contains(&word);
        words.any(kind) && words.next() == Some(name)
    };
    text.lines().any(defines)
}

/// Is this one of the words of the text?
fn has(text: &str, name: &str) -> bool {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == name)
}

/// How many kinds of requests of clients a test distinguishes.
fn answered(text: &str) -> usize {
    let arms = text.lines().filter(|line| line.contains("=>") || line.trim().starts_with('|'));
    let kinds = arms.flat_map(|line| line.split(" Request::").skip(1));
    let kind = |rest: &str| rest.split(|c: char| !c.is_alphanumeric()).next().map(str::to_owned);
    kinds.filter_map(kind).collect::<BTreeSet<String>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEARCH: &str = "crates/doorway-node/tests/parts/x_check/mod.rs";
    const HEAD: &str = "//! All of it.\n//!\n//! Shipped: `Keeper`.\n";
    const RUNS: &str = "use doorway_node::{\n    Event, Keeper,\n};\nstruct World(Keeper);\n\
                        impl System for World {}\n";

    /// What is found in a repository with one machine and these test files.
    fn found(tests: &[(&str, &str)]) -> Vec<String> {
        let file = |(path, text): &(&str, &str)| File {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
        };
        let mut files: Vec<File> = tests.iter().map(file).collect();
        files.push(file(&("crates/doorway-node/src/keeper.rs", "pub struct Keeper {}\n")));
        complaints(&files)
    }

    fn complaint(what: &str) -> [String; 1] {
        [format!("{SEARCH}: `Keeper` {what}")]
    }

    #[test]
    fn a_search_of_a_shipped_machine_is_right() {
        assert_eq!(found(&[(SEARCH, &format!("{HEAD}{RUNS}"))]), [""; 0]);
        let elsewhere = "crates/doorway-node/tests/parts/shell/mod.rs";
        let search = format!("{HEAD}use super::shell::World;\nimpl System for World {{}}\n");
        assert_eq!(
            found(&[(SEARCH, &search), (elsewhere, &RUNS.replace("impl", "// impl"))]),
            [""; 0]
        );
        let other = "crates/doorway-lab/tests/lab/mutex.rs";
        let published = "//! Published: `Mutex.tla`.\nimpl<const N: usize> Model for Mutex<N> {}\n";
        assert_eq!(found(&[(SEARCH, &format!("{HEAD}{RUNS}")), (other, published)]), [""; 0]);
    }

    #[test]
    fn a_search_that_does_not_say_what_it_runs_is_found() {
        let silent = found(&[(SEARCH, RUNS)]);
        assert!(silent[0].contains("has no line `Shipped: `"), "{silent:?}");
        let part = "crates/doorway-node/tests/parts/x_check/act.rs";
        let hidden = found(&[(SEARCH, "//! All of it.\n"), (part, &format!("{HEAD}{RUNS}"))]);
        assert!(hidden[0].starts_with(SEARCH), "not where a reader looks: {hidden:?}");
        assert_eq!(found(&[(SEARCH, HEAD), (part, RUNS)]), [""; 0]);
    }

    #[test]
    fn a_search_of_an_imitation_is_found() {
        let twin = format!("{HEAD}struct Keeper {{}}\nimpl System for Keeper {{}}\n");
        assert_eq!(found(&[(SEARCH, &twin)]), complaint("is defined by the test itself"));
        let twin = format!("{HEAD}// use doorway_node::Keeper;\nimpl System for Nodes {{}}\n");
        let what = "is not imported from a crate of this repository";
        assert_eq!(found(&[(SEARCH, &twin)]), complaint(what));
        let twin = format!("{HEAD}use doorway_node::Keeper;\nimpl System for Nodes {{}}\n");
        assert_eq!(found(&[(SEARCH, &twin)]), complaint("is imported and not used"));
        let unknown = HEAD.replace("Keeper", "Turnover") + RUNS;
        let what = format!("{SEARCH}: `Turnover` is not defined in any `src` directory");
        assert_eq!(found(&[(SEARCH, &unknown)])[0], what);
    }

    #[test]
    fn a_machine_that_no_search_runs_is_found() {
        assert_eq!(found(&[]), ["no search runs the shipped `Keeper`"]);
    }

    #[test]
    fn every_machine_is_shipped() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let files = crate::files::below(&root.join("crates")).unwrap();
        for name in MACHINES {
            assert!(is_shipped(name, &files), "{name}");
        }
    }

    #[test]
    fn an_imitation_of_the_server_is_found() {
        let server = "match request {\n    Request::Acquire(..) => one(),\n    Request::Alive(n) \
                      => tell(Reply::Alive(n)),\n    Request::Release(..)\n    | Request::Bye => \
                      two(),\n    Request::Break(..) => three(),\n    Request::Status(n) => \
                      four(),\n}\n";
        let path = "crates/doorway-client/tests/client/server.rs";
        let what = "answers requests as the shipped `Sessions` do; run those instead";
        let found = |path, text| found(&[(SEARCH, &format!("{HEAD}{RUNS}")), (path, text)]);
        assert_eq!(found(path, server), [format!("{path}: {what}")]);
        let shell = format!("use doorway_sessions::Sessions;\n{server}");
        assert_eq!(found(path, &shell), [""; 0]);
        assert_eq!(found(ANSWERS_AT_RANDOM[0], server), [""; 0]);
    }
}
