//! The copy of the tree in which mutants are built. Its list of algorithms contains one module and
//! its users only, which makes a build ten times faster. The modules are declared by `mod` lines,
//! by which cargo-mutants finds them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context as _;

use super::DIRECTORY;
use super::module::Module;
use crate::files::{self, File};
use crate::tidy::ALGORITHMS;

/// The text that opens the list of algorithms, and the one that declares their modules.
const LIST: &str = "\nalgorithms! {\n";
const DECLARATION: &str = "$(pub mod $module;)+";

/// The root of the copy.
pub(super) fn root() -> String {
    format!("{DIRECTORY}/tree")
}

/// Make the copy for these modules. A file that is unchanged is not written again, so that cargo
/// does not rebuild it.
pub(super) fn lay_out(files: &[File], kept: &[&Module<'_>]) -> anyhow::Result<()> {
    let list = format!("{ALGORITHMS}mod.rs");
    let mut wanted = BTreeMap::new();
    for file in files {
        let text = if file.path == list { pared(&file.text, kept)? } else { file.text.clone() };
        wanted.insert(file.path.as_str(), text);
    }
    let root = root();
    fs::create_dir_all(&root)?;
    for File { path, text } in files::below(Path::new(&root))? {
        match wanted.get(path.as_str()) {
            None => fs::remove_file(Path::new(&root).join(path))?,
            Some(same) if *same == text => drop(wanted.remove(path.as_str())),
            Some(_) => {}
        }
    }
    for (path, text) in wanted {
        let path = Path::new(&root).join(path);
        fs::create_dir_all(path.parent().unwrap_or(Path::new(&root)))?;
        fs::write(path, text)?;
    }
    Ok(())
}

/// The list of algorithms with these modules only. The others stay declared, but no driver is built
/// for them.
fn pared(list: &str, kept: &[&Module<'_>]) -> anyhow::Result<String> {
    let (head, lines) = list.split_once(LIST).context("the list of algorithms is gone")?;
    let (start, end) = head.split_once(DECLARATION).context("the list declares no modules")?;
    let mut pared = format!("{start}{end}");
    let (mut declared, mut listed) = (String::new(), String::new());
    for line in lines.lines() {
        let Some((name, _)) = line.trim().split_once(':') else { continue };
        declared.extend(["pub mod ", name, ";\n"]);
        if kept.iter().any(|module| module.name == name) {
            listed.extend([line, "\n"]);
        }
    }
    pared.extend([LIST, &listed, "}\n\n", &declared]);
    Ok(pared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_pared_to_what_is_kept() {
        let list =
            "macro {\n$(pub mod $module;)+\n}\n\nalgorithms! {\n    a: A;\n    b: B, C;\n}\n";
        let kept = Module { name: "b", files: Vec::new() };
        let expected = "macro {\n\n}\n\nalgorithms! {\n    b: B, C;\n}\n\npub mod a;\npub mod b;\n";
        assert_eq!(pared(list, &[&kept]).unwrap(), expected);
        assert!(pared("algorithms! {}\n", &[&kept]).is_err());
    }
}
