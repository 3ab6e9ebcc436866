//! The atlas as one HTML file: the page, its modules and every world of a group. It needs no server
//! and opens from `file://`.
//!
//! A browser loads no modules from `file://`, but it accepts an import map of `data:` addresses. So
//! each module becomes such an address, and the imports between them get names of the map.
//!
//! The file has the same promise as the page of the server: a policy in its head allows the scripts
//! and the style that are written here, by their hashes, and no other inline code. It has to allow
//! scripts from `data:` addresses, because the modules are such addresses.

use std::fmt::Write as _;

use doorway_lab::story::{self, Story};
use serde_json::json;

use super::problem::Problem;
use crate::files;

/// The file for the group of a story.
pub(crate) fn html(story: &Story) -> Result<String, Problem> {
    let atlas = story.atlas()?;
    let algorithm = story::algorithm(&atlas.frame.algorithm);
    let data = json!({ "tables": atlas, "algorithm": algorithm }).to_string();
    let mut imports = serde_json::Map::new();
    for path in files::modules() {
        let text = String::from_utf8_lossy(&files::read(path).unwrap_or_default()).into_owned();
        let text = text.replace("from \"./", "from \"page/");
        let text = text.replace("import(\"./", "import(\"page/");
        let module = path.replace("js/", "page/");
        let address = format!("data:text/javascript;base64,{}", base64(text.as_bytes()));
        imports.insert(module, address.into());
    }
    let sheet =
        |path: &str| String::from_utf8_lossy(&files::read(path).unwrap_or_default()).into_owned();
    let colours = doorway_lab::diagram::page_colours();
    let style = format!("\n{colours}{}{}", sheet("page.css"), sheet("screens.css"));
    let map = json!({ "imports": imports }).to_string();
    let start = "\nimport \"page/file.js\";\nimport \"page/main.js\";\n";
    let policy = policy(&[&map, start], &style);
    let index = sheet("index.html");
    let mut page = String::new();
    for line in index.lines() {
        if line.contains("charset") {
            let _ = writeln!(page, "{line}");
            let name = "http-equiv=\"Content-Security-Policy\"";
            let _ = writeln!(page, "<meta {name} content=\"{policy}\">");
        } else if line.contains("picture.css") {
            let _ = writeln!(page, "<style>{style}</style>");
            let _ = writeln!(page, "<script type=\"importmap\">{map}</script>");
        } else if line.contains("main.js") {
            // `<` cannot end the script early in this form.
            let data = data.replace('<', "\\u003c");
            let _ =
                writeln!(page, "<script type=\"application/json\" id=\"atlas\">{data}</script>");
            let _ = writeln!(page, "<script type=\"module\">{start}</script>");
        } else if !line.contains("rel=\"stylesheet\"") {
            let _ = writeln!(page, "{line}");
        }
    }
    Ok(page)
}

/// The content security policy of a file with these inline scripts and this style.
fn policy(scripts: &[&str], style: &str) -> String {
    let hash = |text: &str| {
        let hash = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        format!("'sha256-{}'", base64(hash.as_ref()))
    };
    let scripts: Vec<String> = scripts.iter().map(|script| hash(script)).collect();
    format!(
        "default-src 'none'; script-src {} data:; style-src {}; img-src data:; base-uri 'none'; \
         form-action 'none'",
        scripts.join(" "),
        hash(style)
    )
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte));
        let word = word << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_base64() {
        for (plain, coded) in [("", ""), ("M", "TQ=="), ("Ma", "TWE="), ("Man", "TWFu")] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn the_policy_names_the_hash_of_each_script() {
        let policy = policy(&["abc", ""], "");
        // The hashes of "abc" and of nothing in FIPS 180-4, in base64.
        let abc = "'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='";
        let nothing = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='";
        let scripts = format!("script-src {abc} {nothing} data:;");
        assert!(policy.contains(&scripts), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
    }

    #[test]
    fn the_file_holds_every_world_and_nothing_outside_it() {
        let story = Story::begin("ricart-agrawala n=2").unwrap();
        let html = html(&story).unwrap();
        assert!(html.contains("id=\"atlas\"") && html.contains("page/main.js"));
        assert!(!html.contains("src=\"/") && !html.contains("href=\"/"), "it needs no server");
        let large = Story::begin("lamport n=6").unwrap();
        assert!(super::html(&large).unwrap_err().1.contains("worlds"));
    }
}
