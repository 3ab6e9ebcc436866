//! The files of which the algorithms are built besides those in the list of algorithms.

use std::collections::BTreeSet;

use doorway_core::algorithms::ALL;

macro_rules! parts {
    ($($path:literal),+ $(,)?) => {
        &[$((
            $path,
            include_str!(concat!("../../../doorway-core/src/algorithms/", $path)),
        )),+]
    };
}

/// Every file in a folder below the algorithms: its path there, and its text. A test holds this
/// table and the folders together.
const PARTS: &[(&str, &str)] = parts![
    "maekawa/arbiter.rs",
    "maekawa/cost.rs",
    "maekawa/gate.rs",
    "maekawa/requester.rs",
    "maekawa/rules.rs",
    "maekawa/settle.rs",
    "maekawa_heir/hosted.rs",
    "maekawa_heir/settle.rs",
    "majority/settle.rs",
    "majority/voter.rs",
    "ricart_agrawala_token/settle.rs",
    "suzuki_kasami/settle.rs",
];

/// A file: its path below the algorithms, and its text.
pub(super) type File = (&'static str, &'static str);

/// The files that `first` is built of, itself included: the modules that they declare, and the
/// algorithms that they use. The nearest come first.
pub(super) fn files(first: File) -> Vec<File> {
    let listed = ALL.iter().map(|entry| (entry.file, entry.source));
    let all: Vec<File> = listed.chain(PARTS.iter().copied()).collect();
    let (mut files, mut seen) = (vec![first], BTreeSet::from([first.0]));
    let mut at = 0;
    while let Some((path, text)) = files.get(at).copied() {
        let folder = path.trim_end_matches(".rs");
        for line in text.lines() {
            let declared = line.trim_start_matches("pub ").strip_prefix("mod ");
            let declared = declared.and_then(|rest| rest.strip_suffix(';'));
            let used = line.strip_prefix("use super::").and_then(|rest| rest.split("::").next());
            let wanted = match (declared, used) {
                (Some(name), _) => format!("{folder}/{name}.rs"),
                (_, Some(name)) => format!("{name}.rs"),
                _ => continue,
            };
            let found = all.iter().find(|(path, _)| *path == wanted);
            files.extend(found.filter(|(path, _)| seen.insert(path)));
        }
        at += 1;
    }
    files
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn the_table_has_every_file_below_the_algorithms() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../doorway-core/src/algorithms");
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if !entry.file_type().unwrap().is_dir() {
                continue;
            }
            let name = entry.file_name().into_string().unwrap();
            for file in fs::read_dir(entry.path()).unwrap().map(Result::unwrap) {
                found.push(format!("{name}/{}", file.file_name().into_string().unwrap()));
            }
        }
        found.sort_unstable();
        assert_eq!(PARTS.iter().map(|(path, _)| *path).collect::<Vec<_>>(), found);
    }

    #[test]
    fn an_algorithm_has_its_modules_and_those_that_it_uses() {
        let of = |file: &str| {
            let entry = ALL.iter().find(|entry| entry.file == file).unwrap();
            files((entry.file, entry.source)).into_iter().map(|(path, _)| path).collect::<Vec<_>>()
        };
        assert_eq!(of("lamport.rs"), ["lamport.rs"]);
        assert_eq!(of("majority.rs"), ["majority.rs", "majority/settle.rs", "majority/voter.rs"]);
        let heir = of("maekawa_heir.rs");
        assert!(heir.contains(&"maekawa/arbiter.rs") && heir.contains(&"maekawa_heir/hosted.rs"));
    }
}
