//! Counterexamples in the Informal Trace Format (ITF) of the TLA+ tools, which Apalache, Quint and
//! trace viewers read: <https://apalache-mc.org/docs/adr/015adr-trace.html>.
//!
//! Each state has these variables:
//!
//! | variable | meaning |
//! |---|---|
//! | `action` | the command of a script that led to the state; `"init"` in the first one |
//! | `phase` | a map from each node to `"outside"`, `"waiting"`, `"inside"` or `"crashed"` |
//! | `nodes` | a map from each node to the state of its algorithm |
//! | `network` | the messages in transit, in the order in which they were sent |
//!
//! A reader with types can read the states, because every value of a field has the same form. A
//! message is always a variant `{ "tag": ..., "value": ... }`, and so are `None` and `Some(1)`. A
//! variant without content has the empty tuple as its value, as in Quint.

use std::collections::BTreeSet;

use doorway_core::Phase;
use serde_json::{Map, Value as Json, json};

use crate::script::tell;
use crate::values::Value;
use crate::{Choice, Violation, World};

/// Numbers beyond this are not exact in JSON.
const EXACT: i64 = 1 << 53;

/// The variables of a state.
const VARIABLES: [&str; 4] = ["action", "phase", "nodes", "network"];

/// A run that begins with a world and makes these choices; those of `cycle` are then repeated
/// forever.
pub fn trace(first: &World, choices: &[Choice], cycle: &[Choice], violation: &Violation) -> Json {
    let mut world = first.clone();
    let mut moments = vec![ItfState::new(&world, "init".to_owned())];
    for choice in choices.iter().chain(cycle) {
        let (commands, there) = tell(&world, &[*choice]);
        world = there;
        moments.push(ItfState::new(&world, commands.concat()));
    }
    let mut maps = MapFields::default();
    moments.iter().flat_map(|moment| &moment.nodes).for_each(|value| maps.find(value, ""));
    let states: Vec<Json> =
        (0..).zip(&moments).map(|(at, moment)| moment.state(at, &maps)).collect();
    let info = first.info();
    let mut trace = json!({
        "#meta": {
            "format": "ITF",
            "format-description": "https://apalache-mc.org/docs/adr/015adr-trace.html",
            "source": format!("doorway, {} with {} nodes", info.name, first.group().size()),
            "status": "violation",
            "description": violation.to_string(),
        },
        "vars": VARIABLES,
        "states": states,
    });
    if !cycle.is_empty() {
        // The state after the last one is the one at this index.
        trace["loop"] = json!(choices.len());
    }
    trace
}

/// A world, taken apart.
struct ItfState {
    /// The command that led to it.
    action: String,
    phases: Vec<&'static str>,
    /// The state of each node.
    nodes: Vec<Value>,
    network: Vec<Transit>,
}

/// A message in transit.
struct Transit {
    from: u32,
    to: u32,
    message: Value,
}

impl ItfState {
    fn new(world: &World, action: String) -> Self {
        let nodes = || world.group().nodes();
        let phase = |node| {
            let member = world.nodes().member(node);
            match member.phase() {
                _ if world.crashed(node) => "crashed",
                Phase::Outside => "outside",
                Phase::Waiting => "waiting",
                Phase::Inside => "inside",
            }
        };
        let state = |node| Value::read(&world.nodes().member(node).algorithm_text());
        let mut letters: Vec<_> = world.under_way().collect();
        letters.sort_by_key(|(_, letter)| letter.id);
        let transit = letters.iter().map(|(at, sent)| Transit {
            from: at.from.0 + 1,
            to: at.to.0 + 1,
            message: Value::read(&format!("{:?}", sent.body)),
        });
        Self {
            action,
            phases: nodes().map(phase).collect(),
            nodes: nodes().map(state).collect(),
            network: transit.collect(),
        }
    }

    /// The moment as a state of a trace.
    fn state(&self, index: u32, maps: &MapFields) -> Json {
        let phases: Vec<Json> =
            (1..).zip(&self.phases).map(|(n, it)| pair(n, &json!(it))).collect();
        let nodes: Vec<Json> =
            (1..).zip(&self.nodes).map(|(n, state)| pair(n, &maps.value(state, ""))).collect();
        let transit = |Transit { from, to, message }: &Transit| {
            let message = self::message(message, maps);
            json!({ "from": from, "to": to, "message": message })
        };
        json!({
            "#meta": { "index": index },
            "action": self.action,
            "phase": { "#map": phases },
            "nodes": { "#map": nodes },
            "network": self.network.iter().map(transit).collect::<Vec<Json>>(),
        })
    }
}

/// What a map holds for a node.
fn pair(node: u32, held: &Json) -> Json {
    json!([node, held])
}

/// The fields that are maps. The text of an empty map is that of an empty set, so only other states
/// of the trace tell what it is.
#[derive(Default)]
struct MapFields(BTreeSet<String>);

impl MapFields {
    /// Find the maps in a value, which is at this path.
    fn find(&mut self, value: &Value, path: &str) {
        match value {
            Value::Atom(_) => {}
            Value::List(values) | Value::Set(values) | Value::Variant(_, values) => {
                for value in values {
                    self.find(value, path);
                }
            }
            Value::Map(pairs) => {
                self.0.insert(path.to_owned());
                for (_, held) in pairs {
                    self.find(held, path);
                }
            }
            Value::Record(_, fields) => {
                for (name, held) in fields {
                    self.find(held, &format!("{path}.{name}"));
                }
            }
        }
    }

    /// A value at this path in ITF. A name with values is a variant, and so is a name alone.
    fn value(&self, value: &Value, path: &str) -> Json {
        let all =
            |values: &[Value]| values.iter().map(|it| self.value(it, path)).collect::<Vec<Json>>();
        match value {
            Value::Atom(text) if is_name(text) => variant(text, &json!({ "#tup": [] })),
            Value::Atom(text) => atom(text),
            Value::List(values) => json!(all(values)),
            Value::Set(values) if values.is_empty() && self.0.contains(path) => {
                json!({ "#map": [] })
            }
            Value::Set(values) => json!({ "#set": all(values) }),
            Value::Map(pairs) => {
                let pairs: Vec<Json> = pairs
                    .iter()
                    .map(|(key, held)| json!([self.value(key, path), self.value(held, path)]))
                    .collect();
                json!({ "#map": pairs })
            }
            Value::Record(_, fields) => {
                let fields = fields.iter().map(|(name, held)| {
                    (name.clone(), self.value(held, &format!("{path}.{name}")))
                });
                Json::Object(fields.collect::<Map<String, Json>>())
            }
            Value::Variant(name, values) if name.is_empty() => json!({ "#tup": all(values) }),
            Value::Variant(name, values) => match values.as_slice() {
                [one] => variant(name, &self.value(one, path)),
                several => variant(name, &json!({ "#tup": all(several) })),
            },
        }
    }
}

/// A message in ITF: a variant, whatever its content is.
fn message(value: &Value, maps: &MapFields) -> Json {
    let written = maps.value(value, "message");
    match value {
        Value::Record(name, _) => variant(name, &written),
        // A text that is not a value begins with a name all the same.
        Value::Atom(text) if !is_name(text) => {
            let end = text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len());
            variant(&text[..end], &json!(text))
        }
        _ => written,
    }
}

fn variant(tag: &str, value: &Json) -> Json {
    json!({ "tag": tag, "value": value })
}

/// Whether the text is the name of a variant, as `None` is.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.chars().all(|c| c.is_ascii_alphanumeric())
}

fn atom(text: &str) -> Json {
    match (text, text.parse::<i64>()) {
        ("true", _) => json!(true),
        ("false", _) => json!(false),
        (_, Ok(number)) if number.abs() < EXACT => json!(number),
        (_, Ok(_)) => json!({ "#bigint": text }),
        (_, Err(_)) if is_large(text) => json!({ "#bigint": text }),
        _ => json!(text),
    }
}

fn is_large(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_the_format_says() {
        let of = |text: &str| MapFields::default().value(&Value::read(text), "");
        assert_eq!(of("7"), json!(7));
        assert_eq!(of("18446744073709551615"), json!({ "#bigint": "18446744073709551615" }));
        assert_eq!(of("9007199254740992"), json!({ "#bigint": "9007199254740992" }));
        assert_eq!(of("true"), json!(true));
        assert_eq!(of("{1, 2}"), json!({ "#set": [1, 2] }));
        assert_eq!(of("{1: [2]}"), json!({ "#map": [[1, [2]]] }));
        assert_eq!(of("(1, 2)"), json!({ "#tup": [1, 2] }));
        assert_eq!(of("Some(1)"), json!({ "tag": "Some", "value": 1 }));
        let none = json!({ "tag": "None", "value": { "#tup": [] } });
        assert_eq!(of("A { b: None }"), json!({ "b": none }));
        assert_eq!(of("3.1"), json!("3.1"));
    }

    #[test]
    fn a_message_is_a_variant() {
        let of = |text: &str| message(&Value::read(text), &MapFields::default());
        assert_eq!(of("Reply"), json!({ "tag": "Reply", "value": { "#tup": [] } }));
        assert_eq!(of("Reply { n: 1 }"), json!({ "tag": "Reply", "value": { "n": 1 } }));
        assert_eq!(of("Failed(2)"), json!({ "tag": "Failed", "value": 2 }));
        let text = "Failed(2) arbiter 3";
        assert_eq!(of(text), json!({ "tag": "Failed", "value": text }));
    }

    #[test]
    fn an_empty_map_is_a_map_if_the_field_is_one_elsewhere() {
        let mut maps = MapFields::default();
        maps.find(&Value::read("A { late: {1: (2, 3)}, gone: {1} }"), "");
        let empty = maps.value(&Value::read("A { late: {}, gone: {} }"), "");
        assert_eq!(empty, json!({ "late": { "#map": [] }, "gone": { "#set": [] } }));
    }
}
