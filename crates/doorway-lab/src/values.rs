//! The state of a node as a value with parts, read from its text.
//!
//! The laboratory knows states only as text: that of `Debug`, which every algorithm derives. This
//! module takes the text apart, so that printers can show single fields.

use std::fmt::{self, Display};

/// A value, as its `Debug` text tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number, a name, or any other text without parts.
    Atom(String),
    /// A name with fields, as in `Token { queue: [1], served: [0, 1] }`.
    Record(String, Vec<(String, Self)>),
    /// A name with values, as in `Some(1)`. The name of a tuple is empty.
    Variant(String, Vec<Self>),
    /// `[1, 2]`
    List(Vec<Self>),
    /// `{1, 2}`
    Set(Vec<Self>),
    /// `{1: 2, 3: 4}`
    Map(Vec<(Self, Self)>),
}

impl Value {
    /// Read a value from its `Debug` text. A text that is none becomes an atom.
    pub fn read(text: &str) -> Self {
        let mut reader = Reader { rest: text };
        let value = reader.value();
        reader.blank();
        match value {
            Some(value) if reader.rest.is_empty() => value,
            _ => Self::Atom(text.to_owned()),
        }
    }

    /// The fields of a record and of the records in it, each with its name. What is `None` has no
    /// fields.
    pub fn fields(&self) -> Vec<(&str, &Self)> {
        match self {
            Self::Record(_, fields) => fields
                .iter()
                .flat_map(|(name, value)| {
                    let inner = value.fields();
                    if inner.is_empty() { vec![(name.as_str(), value)] } else { inner }
                })
                .collect(),
            Self::Variant(name, values) if name == "Some" => {
                values.iter().flat_map(Self::fields).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The value in few characters: lists without commas, and nothing for `None`.
impl Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined =
            |values: &[Self]| values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        match self {
            Self::Atom(text) if text == "None" => Ok(()),
            Self::Atom(text) => f.write_str(text),
            Self::Variant(name, values) if name == "Some" => f.write_str(&joined(values)),
            Self::Variant(name, values) => write!(f, "{name}({})", joined(values)),
            Self::List(values) => write!(f, "[{}]", joined(values)),
            Self::Set(values) => write!(f, "{{{}}}", joined(values)),
            Self::Map(pairs) => {
                let pairs: Vec<_> =
                    pairs.iter().map(|(key, value)| format!("{key}:{value}")).collect();
                write!(f, "{{{}}}", pairs.join(" "))
            }
            Self::Record(_, fields) => {
                let fields: Vec<_> =
                    fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
                f.write_str(&fields.join(" "))
            }
        }
    }
}

/// What is left to read.
struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn blank(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Take this text if it comes next.
    fn take(&mut self, text: &str) -> bool {
        self.blank();
        match self.rest.strip_prefix(text) {
            None => false,
            Some(rest) => {
                self.rest = rest;
                true
            }
        }
    }

    fn value(&mut self) -> Option<Value> {
        self.blank();
        if self.take("[") {
            return Some(Value::List(self.values("]")?));
        }
        if self.take("{") {
            return self.set_or_map();
        }
        if self.rest.starts_with('"') {
            return self.quoted();
        }
        let name = self.word();
        if self.rest.starts_with('(') && self.take("(") {
            return Some(Value::Variant(name, self.values(")")?));
        }
        if !name.is_empty() && self.rest.starts_with(" {") && self.take("{") {
            return Some(Value::Record(name, self.named()?));
        }
        (!name.is_empty()).then_some(Value::Atom(name))
    }

    /// Everything up to the next sign that ends a value.
    fn word(&mut self) -> String {
        let ends = |at: usize, c: char| match c {
            ',' | '(' | ')' | '[' | ']' | '{' | '}' => true,
            // Two colons are part of a path, as in `PhantomData<core::Rules>`.
            ':' => !self.rest[at + 1..].starts_with(':') && !self.rest[..at].ends_with(':'),
            ' ' => self.rest[at..].starts_with(" {") || self.rest[at..].starts_with(" }"),
            _ => false,
        };
        let end = self.rest.char_indices().find(|(at, c)| ends(*at, *c));
        let (word, rest) = self.rest.split_at(end.map_or(self.rest.len(), |(at, _)| at));
        self.rest = rest;
        word.to_owned()
    }

    fn quoted(&mut self) -> Option<Value> {
        let mut escaped = false;
        for (at, c) in self.rest.char_indices().skip(1) {
            match c {
                '\\' if !escaped => escaped = true,
                '"' if !escaped => {
                    let (word, rest) = self.rest.split_at(at + 1);
                    self.rest = rest;
                    return Some(Value::Atom(word.to_owned()));
                }
                _ => escaped = false,
            }
        }
        None
    }

    fn values(&mut self, end: &str) -> Option<Vec<Value>> {
        let mut values = Vec::new();
        while !self.take(end) {
            values.push(self.value()?);
            if !self.take(",") && !self.rest.trim_start().starts_with(end) {
                return None;
            }
        }
        Some(values)
    }

    fn set_or_map(&mut self) -> Option<Value> {
        let (mut values, mut pairs) = (Vec::new(), Vec::new());
        while !self.take("}") {
            let value = self.value()?;
            if self.take(":") {
                pairs.push((value, self.value()?));
            } else {
                values.push(value);
            }
            if !self.take(",") && !self.rest.trim_start().starts_with('}') {
                return None;
            }
        }
        match (values.is_empty(), pairs.is_empty()) {
            (_, true) => Some(Value::Set(values)),
            (true, false) => Some(Value::Map(pairs)),
            (false, false) => None,
        }
    }

    fn named(&mut self) -> Option<Vec<(String, Value)>> {
        let mut fields = Vec::new();
        while !self.take("}") {
            self.blank();
            let name = self.word();
            if !self.take(":") {
                return None;
            }
            let value = self.value()?;
            // A type without values says nothing about the state.
            if !matches!(&value, Value::Atom(text) if text.starts_with("PhantomData<")) {
                fields.push((name, value));
            }
            if !self.take(",") && !self.rest.trim_start().starts_with('}') {
                return None;
            }
        }
        Some(fields)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::Arc;

    use doorway_core::algorithms::ALL;
    use doorway_core::{Shape, Start};

    use super::*;
    use crate::{AnyAlgorithm, Limits, World};

    #[derive(Debug)]
    #[expect(dead_code, reason = "only its text is read")]
    struct Sample {
        number: i64,
        name: &'static str,
        maybe: Option<(u8, bool)>,
        nothing: Option<u8>,
        inner: Element,
        set: BTreeSet<u8>,
        map: BTreeMap<u8, Vec<u8>>,
    }

    #[derive(Debug)]
    #[expect(dead_code, reason = "only its text is read")]
    struct Element {
        list: Vec<Option<u8>>,
    }

    #[test]
    fn a_value_is_read_from_its_text() {
        let sample = Sample {
            number: -3,
            name: "a \"}, b",
            maybe: Some((1, true)),
            nothing: None,
            inner: Element { list: vec![Some(1), None] },
            set: BTreeSet::from([1, 2]),
            map: BTreeMap::from([(1, vec![]), (2, vec![3])]),
        };
        let value = Value::read(&format!("{sample:?}"));
        let fields: Vec<_> = value.fields().into_iter().map(|(name, _)| name).collect();
        assert_eq!(fields, ["number", "name", "maybe", "nothing", "list", "set", "map"]);
        let shown: Vec<_> =
            value.fields().into_iter().map(|(_, value)| value.to_string()).collect();
        let expected = ["-3", r#""a \"}, b""#, "(1 true)", "", "[1 ]", "{1 2}", "{1:[] 2:[3]}"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_field_that_holds_only_a_type_is_left_out() {
        let value = Value::read("Node { rules: PhantomData<core::rules::Printed>, clock: 3 }");
        assert_eq!(value, Value::read("Node { clock: 3 }"));
    }

    #[test]
    fn the_states_of_all_algorithms_are_read() {
        for entry in ALL {
            let group = Arc::new(entry.info.group(3, &Shape::default()).unwrap());
            let limits = Limits::reliable(&group, 2);
            let channel = entry.info.channel;
            let algorithm = AnyAlgorithm::from(entry);
            let mut world = World::new(algorithm, group, &Start::default(), channel, limits);
            for seed in 0..60 {
                for node in world.group().nodes() {
                    let text = world.nodes().member(node).algorithm_text();
                    let value = Value::read(&text);
                    assert!(!value.fields().is_empty(), "{}: {text}", entry.info.name);
                }
                let choices = world.choices();
                let Some(choice) = choices.get(seed % choices.len().max(1)) else { break };
                world.apply(*choice);
            }
        }
    }

    #[test]
    fn a_text_that_is_no_value_stays_as_it_is() {
        for text in ["", "a {", "[1, 2", "{1: 2, 3}", "(", "\"open", "x)"] {
            assert_eq!(Value::read(text), Value::Atom(text.to_owned()));
        }
    }
}
