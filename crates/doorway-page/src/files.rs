//! The files of the page, inside the program.
//!
//! In a debug build they are read from the folder, so that a change shows after a reload.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

/// A file: its path below the folder `web`, and its contents.
pub type File = (&'static str, &'static [u8]);

macro_rules! files {
    ($($path:literal),+ $(,)?) => {
        &[$(($path, include_bytes!(concat!("../web/", $path)))),+]
    };
}

/// Every file. A test holds this table and the folder together.
pub const FILES: &[File] = files![
    "index.html",
    "live.css",
    "live.html",
    "page.css",
    "screens.css",
    "js/arrange.js",
    "js/bills.js",
    "js/branches.js",
    "js/choices.js",
    "js/code.js",
    "js/compare.js",
    "js/dom.js",
    "js/edges.js",
    "js/export.js",
    "js/file.js",
    "js/here.js",
    "js/keys.js",
    "js/lab.js",
    "js/live.js",
    "js/livecall.js",
    "js/lock.js",
    "js/locks.js",
    "js/main.js",
    "js/matrix.js",
    "js/moment.js",
    "js/network.js",
    "js/news.js",
    "js/overview.js",
    "js/pills.js",
    "js/seek.js",
    "js/server.js",
    "js/setup.js",
    "js/share.js",
    "js/shelf.js",
    "js/spacetime.js",
    "js/spark.js",
    "js/story.js",
    "js/table.js",
    "js/tell.js",
    "js/threadcheck.js",
    "js/threadplan.js",
    "js/threads.js",
    "js/threadview.js",
    "js/timeline.js",
    "js/token.js",
    "js/transport.js",
    "js/url.js",
    "js/verdict.js",
    "js/waits.js",
];

/// The files of the live page among them.
const LIVE: &[&str] = &[
    "live.css",
    "live.html",
    "js/dom.js",
    "js/live.js",
    "js/livecall.js",
    "js/lock.js",
    "js/locks.js",
    "js/news.js",
    "js/spark.js",
    "js/token.js",
];

/// The files of the live page that the laboratory has too.
const SHARED: &[&str] = &["js/dom.js", "js/token.js"];

/// Whether a file belongs to the live page of a node.
pub fn is_live(path: &str) -> bool {
    LIVE.contains(&path)
}

/// The contents of a file.
pub fn read(path: &str) -> Option<Vec<u8>> {
    let (known, bytes) = FILES.iter().find(|(known, _)| *known == path)?;
    if cfg!(debug_assertions) {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
        if let Ok(fresh) = std::fs::read(folder.join(known)) {
            return Some(fresh);
        }
    }
    Some(bytes.to_vec())
}

/// The type of a file, by the ending of its name.
fn media_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

/// The modules of the laboratory among the files.
pub fn modules() -> impl Iterator<Item = &'static str> {
    let lab = |path: &&str| !is_live(path) || SHARED.contains(path);
    FILES.iter().map(|(path, _)| *path).filter(|path| path.starts_with("js/")).filter(lab)
}

/// Whether a file is a module or a style sheet.
fn is_code(path: &str) -> bool {
    [".js", ".css"].iter().any(|ending| path.ends_with(ending))
}

/// A file as it is sent: modules and style sheets without indentation, empty lines and lines of
/// comment, which are a sixth of them. No text in them goes over several lines.
fn lean(path: &str, bytes: Vec<u8>) -> Vec<u8> {
    let text = is_code(path).then(|| str::from_utf8(&bytes).ok()).flatten();
    let Some(text) = text else { return bytes };
    let mut lean = String::with_capacity(text.len());
    let mut comment = false;
    for line in text.lines().map(str::trim) {
        comment |= line.starts_with("/*");
        if !comment && !line.is_empty() && !line.starts_with("//") {
            lean += line;
            lean.push('\n');
        }
        comment &= !line.ends_with("*/");
    }
    lean.into_bytes()
}

/// How many bytes of files are sent to show all of the live page, or all of the laboratory.
pub fn weight(live: bool) -> usize {
    let mine = |path: &str| is_live(path) == live || SHARED.contains(&path);
    let sent = |(path, bytes): &File| lean(path, bytes.to_vec()).len();
    FILES.iter().filter(|(path, _)| mine(path)).map(sent).sum()
}

/// Answer a request with these headers for a file. `/` is the page itself.
pub fn answer(headers: &HeaderMap, path: &str) -> Response {
    let path = path.trim_start_matches('/');
    let path = if path.is_empty() { "index.html" } else { path };
    match read(path) {
        Some(bytes) => kept(headers, media_type(path), lean(path, bytes)),
        None => (StatusCode::NOT_FOUND, "there is no such file\n").into_response(),
    }
}

/// An answer that the browser may keep. Before it uses the answer again it asks, and is told in a
/// few bytes if nothing has changed.
pub fn kept(headers: &HeaderMap, media_type: &'static str, bytes: Vec<u8>) -> Response {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    let tag = format!("\"{:016x}\"", hasher.finish());
    let known =
        headers.get(header::IF_NONE_MATCH).is_some_and(|it| it.as_bytes() == tag.as_bytes());
    let about = [(header::CACHE_CONTROL, "no-cache".to_owned()), (header::ETAG, tag)];
    if known {
        return (StatusCode::NOT_MODIFIED, about).into_response();
    }
    (about, [(header::CONTENT_TYPE, media_type)], bytes).into_response()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn listed(folder: &Path, below: &str, into: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{below}{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                listed(&entry.path(), &format!("{name}/"), into);
            } else {
                into.push(name);
            }
        }
    }

    #[test]
    fn the_table_has_every_file_of_the_folder() {
        let mut found = Vec::new();
        listed(&Path::new(env!("CARGO_MANIFEST_DIR")).join("web"), "", &mut found);
        found.sort_unstable();
        let mut known: Vec<_> = FILES.iter().map(|(path, _)| (*path).to_owned()).collect();
        known.sort_unstable();
        assert_eq!(known, found);
        assert!(LIVE.iter().all(|path| known.iter().any(|known| known == path)));
        let status = |path| answer(&HeaderMap::new(), path).status();
        assert_eq!(status("/"), 200);
        assert_eq!(status("/../Cargo.toml"), 404);
        assert_eq!(status("//etc/passwd"), 404);
    }

    #[test]
    fn a_file_that_the_browser_has_is_not_sent_again() {
        let first = answer(&HeaderMap::new(), "/page.css");
        assert_eq!(first.headers()[header::CACHE_CONTROL], "no-cache");
        let mut known = HeaderMap::new();
        known.insert(header::IF_NONE_MATCH, first.headers()[header::ETAG].clone());
        assert_eq!(answer(&known, "/page.css").status(), 304);
        assert_eq!(answer(&known, "/screens.css").status(), 200, "another file");
    }

    #[test]
    fn files_are_sent_without_comments_and_indentation() {
        let sent = |path: &str, text: &str| {
            String::from_utf8(lean(path, text.as_bytes().to_vec())).unwrap()
        };
        let module = "// A module.\n\n/**\n * Twice as much.\n */\nexport function twice(it) {\n  \
                      /* one line */\n  return it // here\n    * 2;\n}\n";
        let short = "export function twice(it) {\nreturn it // here\n* 2;\n}\n";
        assert_eq!(sent("js/twice.js", module), short);
        assert_eq!(sent("index.html", module), module);
        // What the shortening relies on: comments end where a line ends, and texts in the line in
        // which they begin.
        for (path, bytes) in FILES.iter().filter(|(path, _)| is_code(path)) {
            for line in str::from_utf8(bytes).unwrap().lines().map(str::trim) {
                let begins = line.starts_with("/*");
                assert!(!begins || !line.contains("*/") || line.ends_with("*/"), "{path}: {line}");
                assert!(line.matches('`').count().is_multiple_of(2), "{path}: {line}");
                assert!(!line.ends_with('\\'), "{path}: {line}");
            }
        }
    }

    #[test]
    fn the_page_is_small_and_its_modules_are_short() {
        assert!(weight(false) < 150_000, "the laboratory has {} bytes", weight(false));
        assert!(weight(true) < 50_000, "the live page has {} bytes", weight(true));
        for (path, bytes) in FILES.iter().filter(|(path, _)| path.starts_with("js/")) {
            let lines = std::str::from_utf8(bytes).unwrap().lines().count();
            assert!(lines <= 220, "{path}: {lines} lines");
        }
    }

    #[cfg(feature = "lab")]
    #[test]
    fn no_file_names_an_algorithm() {
        for (path, bytes) in FILES {
            let text = std::str::from_utf8(bytes).unwrap();
            let words = || text.split(|c: char| !(c.is_ascii_alphanumeric() || "-_".contains(c)));
            for entry in doorway_core::algorithms::ALL {
                let name = entry.info.name;
                // One name is an English word too; as such it is not quoted.
                let quoted = [format!("\"{name}\""), format!("'{name}'"), format!("`{name}`")];
                let named = quoted.iter().any(|quoted| text.contains(quoted))
                    || name.contains('-') && words().any(|word| word == name);
                assert!(!named, "{path} names {name}");
            }
        }
    }
}
