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
    let mut states = vec![state(&world, 0, "init")];
    for (index, choice) in (1..).zip(choices.iter().chain(cycle)) {
        let (commands, there) = tell(&world, &[*choice]);
        world = there;
        states.push(state(&world, index, &commands[0]));
    }
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

fn state(world: &World, index: u32, action: &str) -> Json {
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
    let phases: Vec<Json> = nodes().map(|node| json!([node.0 + 1, phase(node)])).collect();
    let text = |node| world.nodes().member(node).algorithm_text();
    let states: Vec<Json> =
        nodes().map(|node| json!([node.0 + 1, value(&Value::read(&text(node)))])).collect();
    let mut letters: Vec<_> = world.under_way().collect();
    letters.sort_by_key(|(_, letter)| letter.id);
    let letter = |message: &dyn std::fmt::Debug| value(&Value::read(&format!("{message:?}")));
    let network: Vec<Json> = letters
        .iter()
        .map(|(at, sent)| {
            json!({ "from": at.from.0 + 1, "to": at.to.0 + 1, "message": letter(&sent.body) })
        })
        .collect();
    json!({
        "#meta": { "index": index },
        "action": action,
        "phase": { "#map": phases },
        "nodes": { "#map": states },
        "network": network,
    })
}

/// A value in ITF. A name with values is a variant, with a tag.
fn value(value: &Value) -> Json {
    let all = |values: &[Value]| values.iter().map(self::value).collect::<Vec<Json>>();
    match value {
        Value::Atom(text) => atom(text),
        Value::List(values) => json!(all(values)),
        Value::Set(values) => json!({ "#set": all(values) }),
        Value::Map(pairs) => {
            let pairs: Vec<Json> = pairs
                .iter()
                .map(|(key, held)| json!([self::value(key), self::value(held)]))
                .collect();
            json!({ "#map": pairs })
        }
        Value::Record(_, fields) => {
            let fields = fields.iter().map(|(name, held)| (name.clone(), self::value(held)));
            Json::Object(fields.collect::<Map<String, Json>>())
        }
        Value::Variant(name, values) if name.is_empty() => json!({ "#tup": all(values) }),
        Value::Variant(name, values) => match values.as_slice() {
            [one] => json!({ "tag": name, "value": self::value(one) }),
            several => json!({ "tag": name, "value": { "#tup": all(several) } }),
        },
    }
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
        let of = |text: &str| value(&Value::read(text));
        assert_eq!(of("7"), json!(7));
        assert_eq!(of("18446744073709551615"), json!({ "#bigint": "18446744073709551615" }));
        assert_eq!(of("9007199254740992"), json!({ "#bigint": "9007199254740992" }));
        assert_eq!(of("true"), json!(true));
        assert_eq!(of("{1, 2}"), json!({ "#set": [1, 2] }));
        assert_eq!(of("{1: [2]}"), json!({ "#map": [[1, [2]]] }));
        assert_eq!(of("(1, 2)"), json!({ "#tup": [1, 2] }));
        assert_eq!(of("Some(1)"), json!({ "tag": "Some", "value": 1 }));
        assert_eq!(of("A { b: None }"), json!({ "b": "None" }));
    }
}
