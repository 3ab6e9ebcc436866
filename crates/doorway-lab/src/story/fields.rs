//! The state of a node as a table: its `Debug` text, split at the first level.

/// Names and values of the fields in the `Debug` text of a state.
///
/// A state that wraps another one is shown as the other one with more fields. The number of the
/// node is left out: it is the heading of its column.
pub(super) fn fields(text: &str) -> Vec<(String, String)> {
    let Some((_, body)) = body(text, '{', '}') else {
        return match body(text, '(', ')') {
            Some((_, inside)) => fields(inside),
            None => vec![("state".to_owned(), text.to_owned())],
        };
    };
    let mut found = Vec::new();
    for part in parts(body) {
        match part.split_once(": ") {
            // The number of the node, and what the type alone says.
            Some(("me", _)) => {}
            Some((_, value)) if value.starts_with("PhantomData") => {}
            Some((name, value)) if is_state(value) => {
                let inner = fields(value).into_iter();
                found.extend(inner.map(|(inner, value)| (format!("{name}.{inner}"), value)));
            }
            Some((name, value)) => found.push((name.to_owned(), value.to_owned())),
            None => found.push((String::new(), part.to_owned())),
        }
    }
    found
}

/// Whether a value is a struct with several named fields, which gets rows of its own.
fn is_state(value: &str) -> bool {
    body(value, '{', '}').is_some_and(|(_, body)| parts(body).len() > 1)
}

/// The name before the brackets that enclose the rest of a text, and what is between them.
fn body(text: &str, open: char, close: char) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once(open)?;
    let name = name.trim();
    let named = name.starts_with(char::is_uppercase)
        && name.chars().all(|letter| letter.is_alphanumeric() || "_<>:, ".contains(letter));
    let inside = rest.strip_suffix(close)?;
    // `Some(1) with {2}`: the last bracket does not close the first one.
    (named && balanced(inside)).then(|| (name, inside.trim()))
}

fn balanced(text: &str) -> bool {
    let mut depth = 0i32;
    text.chars().all(|letter| {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        depth >= 0
    }) && depth == 0
}

/// The parts of a text between commas that are in no bracket.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut from, mut parts) = (0i32, 0, Vec::new());
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[from..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        fields(text).into_iter().map(|(name, value)| format!("{name}={value}")).collect()
    }

    #[test]
    fn a_state_is_split_at_its_first_level() {
        let text =
            "Some { me: 1, highest: 3, awaited: {1, 2}, at: Some(Stamp { clock: 1, node: 2 }) }";
        assert_eq!(
            shown(text),
            ["highest=3", "awaited={1, 2}", "at=Some(Stamp { clock: 1, node: 2 })"]
        );
        assert_eq!(shown("Wrapped(Inner { a: 1 })"), ["a=1"]);
        assert_eq!(shown("Unit"), ["state=Unit"]);
        let nested =
            "Outer { me: 2, base: Inner { a: 1, b: (2, 3) }, mode: None, of: PhantomData<X> }";
        assert_eq!(shown(nested), ["base.a=1", "base.b=(2, 3)", "mode=None"]);
    }
}
