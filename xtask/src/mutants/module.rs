//! The modules of the algorithms, and the tests that concern each.

use crate::files::File;
use crate::tidy::ALGORITHMS;

/// The directory of the test program whose modules are about single algorithms.
const TESTS: &str = "crates/doorway-lab/tests/checks/";

/// An algorithm's file, and the files in the folder of its name.
pub(crate) struct Module<'a> {
    pub(crate) name: &'a str,
    pub(super) files: Vec<&'a File>,
}

impl<'a> Module<'a> {
    /// Every module, the smallest first.
    pub(crate) fn all(files: &'a [File]) -> Vec<Self> {
        let mut modules: Vec<Module<'a>> = Vec::new();
        for file in files.iter().filter(|file| file.is_source()) {
            let Some(inner) = file.path.strip_prefix(ALGORITHMS) else { continue };
            let name = inner.split('/').next().unwrap_or(inner).trim_end_matches(".rs");
            match modules.iter_mut().find(|module| module.name == name) {
                Some(module) => module.files.push(file),
                None if name == "mod" => {}
                None => modules.push(Self { name, files: vec![file] }),
            }
        }
        modules.sort_by_key(|module| module.texts().map(str::len).sum::<usize>());
        modules
    }

    fn texts(&self) -> impl Iterator<Item = &'a str> {
        self.files.iter().map(|file| file.text.as_str())
    }

    /// Does its code contain this text?
    pub(crate) fn says(&self, what: &str) -> bool {
        self.texts().any(|text| text.contains(what))
    }

    /// Its name, and the names of the modules that use it.
    pub(crate) fn with_users(&self, modules: &[Self]) -> Vec<&'a str> {
        let path = format!("{}::", self.name);
        let users = modules.iter().filter(|other| other.name == self.name || other.says(&path));
        users.map(|module| module.name).collect()
    }

    /// A hash of its code (FNV-1a).
    pub(super) fn fingerprint(&self) -> String {
        hash(self.texts())
    }

    /// A hash of its code without comments.
    pub(crate) fn code_fingerprint(&self) -> String {
        code_hash(self.texts())
    }

    /// The modules of the program `checks` that mention it.
    pub(super) fn own_tests(&self, files: &'a [File]) -> Vec<&'a str> {
        let path = format!("{}::", self.name);
        let named = files.iter().filter(|file| file.text.contains(&path));
        let mut modules: Vec<&str> = named.filter_map(test_module).collect();
        modules.dedup();
        modules
    }
}

/// A hash of code without comments.
pub(crate) fn code_hash<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let lines = texts.flat_map(str::lines).map(str::trim);
    hash(lines.filter(|line| !line.starts_with("//")))
}

/// FNV-1a.
fn hash<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    let hash = texts.flat_map(str::bytes).fold(0xcbf2_9ce4_8422_2325, step);
    format!("{hash:016x}")
}

/// The module of the program `checks` that a file is part of.
fn test_module(file: &File) -> Option<&str> {
    let inner = file.path.strip_prefix(TESTS)?;
    inner.split('/').next()?.split('.').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_module_is_its_file_and_its_folder() {
        let core = |path: &str, text| file(&format!("{ALGORITHMS}{path}"), text);
        let test = |path: &str, text| file(&format!("{TESTS}{path}"), text);
        let files = [
            core("long.rs", "use super::short::X; // and more"),
            core("mod.rs", ""),
            core("short.rs", "x"),
            core("short/part.rs", "y"),
            test("main.rs", "mod many;"),
            test("many/mod.rs", ""),
            test("many/one.rs", "short::"),
            test("many/two.rs", "short::"),
            test("other.rs", "long::"),
            test("some.rs", "short::"),
        ];
        let modules = Module::all(&files);
        let names: Vec<_> =
            modules.iter().map(|module| (module.name, module.files.len())).collect();
        assert_eq!(names, [("short", 2), ("long", 1)]);
        assert_eq!(modules[0].with_users(&modules), ["short", "long"]);
        assert_eq!(modules[1].with_users(&modules), ["long"]);
        assert_eq!(modules[0].own_tests(&files), ["many", "some"]);
        assert_ne!(modules[0].fingerprint(), modules[1].fingerprint());
    }
}
