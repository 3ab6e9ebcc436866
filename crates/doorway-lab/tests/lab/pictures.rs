//! What every test of a picture needs.

use std::path::Path;

use quick_xml::events::Event as Xml;

/// Compare with a file of `tests/golden`; `UPDATE=1` rewrites it.
pub(crate) fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, text).expect("golden files can be written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "{name} has changed; look at it, then rewrite it with UPDATE=1");
}

/// The classes of all elements, after checking that every tag is closed.
pub(crate) fn classes(svg: &str) -> Vec<String> {
    let mut reader = quick_xml::Reader::from_str(svg);
    let mut open = 0;
    let mut classes = Vec::new();
    loop {
        let event = reader.read_event().expect("the picture is well-formed XML");
        if let Xml::Start(tag) | Xml::Empty(tag) = &event {
            for attribute in tag.attributes() {
                let attribute = attribute.expect("attributes are well-formed");
                let value = attribute.unescape_value().expect("escapes are known");
                if attribute.key.as_ref() == b"class" {
                    classes.push(value.into_owned());
                }
            }
        }
        match event {
            Xml::Start(_) => open += 1,
            Xml::End(_) => open -= 1,
            Xml::Text(text) => drop(text.xml_content().expect("escapes are known")),
            Xml::Eof => break,
            _ => {}
        }
    }
    assert_eq!(open, 0, "every tag is closed");
    classes
}
