//! Traces in the Informal Trace Format, read by a reader that knows nothing of the writer. It is
//! written from the definition of the format, and as strict as a reader with types: each variable
//! has one type in all states.

use std::collections::BTreeMap;
use std::sync::Arc;

use doorway_core::algorithms::ALL;
use doorway_core::{NodeId, Shape, Start};
use doorway_lab::{AnyAlgorithm, Choice, Limits, Victims, Violation, World, itf};
use serde_json::{Map, Value, json};

/// The type of an expression.
#[derive(Clone, Debug, PartialEq)]
enum Type {
    /// That of an element which no state has shown yet.
    Unknown,
    Boolean,
    Text,
    Integer,
    List(Box<Self>),
    Set(Box<Self>),
    Map(Box<Self>, Box<Self>),
    Tuple(Vec<Self>),
    Record(BTreeMap<String, Self>),
    /// One of several tags, each with the type of its value.
    Variant(BTreeMap<String, Self>),
}

/// The expression's type, or what is wrong with it.
fn read(expression: &Value) -> Result<Type, String> {
    match expression {
        Value::Bool(_) => Ok(Type::Boolean),
        Value::String(_) => Ok(Type::Text),
        Value::Number(number) => match number.as_i64() {
            Some(small) if small.abs() < 1 << 53 => Ok(Type::Integer),
            _ => Err(format!("{number} is not an exact integer")),
        },
        Value::Array(elements) => Ok(Type::List(Box::new(element(elements)?))),
        Value::Null => Err("null is not an expression".to_owned()),
        Value::Object(fields) => {
            let special = fields.keys().find(|name| name.starts_with('#'));
            match (special, fields.len()) {
                (None, _) => record(fields),
                (Some(name), 1) => constructed(name, &fields[name]),
                (Some(name), _) => Err(format!("{name} stands beside other fields")),
            }
        }
    }
}

fn record(fields: &Map<String, Value>) -> Result<Type, String> {
    if let (Some(tag), Some(value), 2) = (fields.get("tag"), fields.get("value"), fields.len()) {
        let tag = tag.as_str().ok_or_else(|| format!("the tag {tag} is not text"))?;
        let letters = !tag.is_empty() && tag.chars().all(char::is_alphanumeric);
        if !letters {
            return Err(format!("{tag:?} is not a tag"));
        }
        return Ok(Type::Variant(BTreeMap::from([(tag.to_owned(), read(value)?)])));
    }
    let fields = fields.iter().map(|(name, value)| Ok((name.clone(), read(value)?)));
    Ok(Type::Record(fields.collect::<Result<_, String>>()?))
}

fn constructed(name: &str, content: &Value) -> Result<Type, String> {
    let list = || content.as_array().ok_or_else(|| format!("{name} holds {content}"));
    match name {
        "#bigint" => {
            let text = content.as_str().ok_or_else(|| format!("{name} holds {content}"))?;
            let digits = text.strip_prefix('-').unwrap_or(text);
            let number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            number.then_some(Type::Integer).ok_or_else(|| format!("{text} is not an integer"))
        }
        "#set" => Ok(Type::Set(Box::new(element(list()?)?))),
        "#tup" => Ok(Type::Tuple(list()?.iter().map(read).collect::<Result<_, _>>()?)),
        "#map" => {
            let (mut keys, mut values) = (Type::Unknown, Type::Unknown);
            for pair in list()? {
                let Some([key, value]) = pair.as_array().map(Vec::as_slice) else {
                    return Err(format!("{pair} is not a pair of a map"));
                };
                keys = same(keys, read(key)?)?;
                values = same(values, read(value)?)?;
            }
            Ok(Type::Map(Box::new(keys), Box::new(values)))
        }
        _ => Err(format!("the format does not know {name}")),
    }
}

/// The type of all elements.
fn element(elements: &[Value]) -> Result<Type, String> {
    elements.iter().try_fold(Type::Unknown, |known, element| same(known, read(element)?))
}

/// The type that has values of both types.
fn same(one: Type, other: Type) -> Result<Type, String> {
    let boxed = |one: Box<Type>, other: Box<Type>| same(*one, *other).map(Box::new);
    match (one, other) {
        (Type::Unknown, known) | (known, Type::Unknown) => Ok(known),
        (Type::List(one), Type::List(other)) => Ok(Type::List(boxed(one, other)?)),
        (Type::Set(one), Type::Set(other)) => Ok(Type::Set(boxed(one, other)?)),
        (Type::Map(key, value), Type::Map(other_key, other_value)) => {
            Ok(Type::Map(boxed(key, other_key)?, boxed(value, other_value)?))
        }
        (Type::Tuple(one), Type::Tuple(other)) if one.len() == other.len() => {
            let both = one.into_iter().zip(other).map(|(one, other)| same(one, other));
            Ok(Type::Tuple(both.collect::<Result<_, _>>()?))
        }
        (Type::Record(one), Type::Record(other)) if one.keys().eq(other.keys()) => {
            let both = one.into_iter().zip(other.into_values());
            let both = both.map(|((name, one), other)| Ok((name, same(one, other)?)));
            Ok(Type::Record(both.collect::<Result<_, String>>()?))
        }
        (Type::Variant(mut one), Type::Variant(other)) => {
            for (tag, value) in other {
                let known = one.remove(&tag).unwrap_or(Type::Unknown);
                one.insert(tag, same(known, value)?);
            }
            Ok(Type::Variant(one))
        }
        (one, other) if one == other => Ok(one),
        (one, other) => Err(format!("{one:?} and {other:?} are not one type")),
    }
}

/// The types of a trace's variables, or what is wrong with it.
fn read_trace(text: &str) -> Result<BTreeMap<String, Type>, String> {
    let trace: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let trace = trace.as_object().ok_or("a trace is an object")?;
    let known = ["#meta", "params", "vars", "states", "loop"];
    if let Some(other) = trace.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("a trace has no {other}"));
    }
    let names = trace.get("vars").and_then(Value::as_array).ok_or("vars is a list")?;
    let names: Option<Vec<&str>> = names.iter().map(Value::as_str).collect();
    let names = names.ok_or("the names of variables are texts")?;
    let states = trace.get("states").and_then(Value::as_array).ok_or("states is a list")?;
    if let Some(at) = trace.get("loop") {
        let inside = at.as_u64().is_some_and(|at| at < states.len() as u64);
        inside.then_some(()).ok_or_else(|| format!("there is no state {at} for the loop"))?;
    }
    let mut types = BTreeMap::new();
    for (index, state) in states.iter().enumerate() {
        let state = state.as_object().ok_or("a state is an object")?;
        let given = state.keys().filter(|name| *name != "#meta").count();
        if given != names.len() {
            return Err(format!("state {index} has {given} variables"));
        }
        for name in &names {
            let value = state.get(*name).ok_or_else(|| format!("state {index} has no {name}"))?;
            let known = types.remove(*name).unwrap_or(Type::Unknown);
            let both = read(value).and_then(|found| same(known, found));
            types.insert((*name).to_owned(), both.map_err(|why| format!("{name}: {why}"))?);
        }
    }
    Ok(types)
}

/// Some run of an algorithm, in which messages may be lost and nodes may crash.
fn run(name: &str, seed: usize) -> (World, Vec<Choice>) {
    let algorithm = AnyAlgorithm::named(name).expect("an algorithm");
    let info = algorithm.info();
    let shape = Shape { permits: info.permits.then_some(2), seats: None, ..Shape::default() };
    let group = Arc::new(info.group(3, &shape).expect("a group"));
    let mut limits = Limits::reliable(&group, 3);
    (limits.losses, limits.crashes, limits.victims) = (1, 1, Victims::Anyone);
    limits.detection = true;
    let first = World::new(algorithm, group, &Start::default(), info.channel, limits);
    let (mut world, mut made, mut random) = (first.clone(), Vec::new(), seed);
    while made.len() < 80 {
        let choices = world.choices();
        if choices.is_empty() {
            break;
        }
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let choice = choices[(random >> 33) % choices.len()];
        world.apply(choice);
        made.push(choice);
    }
    (first, made)
}

/// Every algorithm, with nodes that crash and messages that are lost.
#[test]
fn every_trace_keeps_to_the_grammar_and_to_one_type_for_each_variable() {
    let violation = Violation::Stuck(vec![NodeId(0)]);
    for entry in ALL {
        for seed in 1..6 {
            let (first, choices) = run(entry.info.name, seed);
            let (way, cycle) = choices.split_at(choices.len() / 2);
            let text = itf::trace(&first, way, cycle, &violation).to_string();
            let types = read_trace(&text);
            let types = types.unwrap_or_else(|why| panic!("{}: {why}\n{text}", entry.info.name));
            assert!(matches!(types["nodes"], Type::Map(..)), "{types:?}");
            assert_eq!(types["action"], Type::Text);
            let Type::List(transit) = &types["network"] else { panic!("{types:?}") };
            if let Type::Record(fields) = &**transit {
                assert!(matches!(fields["message"], Type::Variant(_)), "{fields:?}");
            }
        }
    }
}

/// The reader refuses what the format does not allow, and what has no type.
#[test]
fn the_reader_is_strict() {
    let trace = |values: Vec<Value>| {
        let states: Vec<Value> = values.into_iter().map(|x| json!({ "x": x })).collect();
        read_trace(&json!({ "vars": ["x"], "states": states }).to_string())
    };
    let some = json!({ "tag": "Some", "value": 1 });
    let none = json!({ "tag": "None", "value": { "#tup": [] } });
    assert!(trace(vec![some.clone(), none]).is_ok());
    for wrong in [
        vec![some, json!("None")],
        vec![json!({ "#set": [1] }), json!({ "#map": [] })],
        vec![json!([1, "a"])],
        vec![json!({ "a": 1 }), json!({ "b": 1 })],
        vec![json!(null)],
        vec![json!(1.5)],
        vec![json!(1_u64 << 53)],
        vec![json!({ "#bigint": "1x" })],
        vec![json!({ "#map": [[1]] })],
        vec![json!({ "#list": [] })],
        vec![json!({ "#set": [], "a": 1 })],
        vec![json!({ "tag": "a b", "value": 1 })],
    ] {
        assert!(trace(wrong.clone()).is_err(), "{wrong:?}");
    }
    for wrong in [
        json!({ "vars": ["x"], "states": [{}] }),
        json!({ "vars": [], "states": [{ "x": 1 }] }),
        json!({ "vars": [], "states": [{}], "loop": 1 }),
        json!({ "vars": [], "states": [], "more": 1 }),
        json!({ "vars": [] }),
    ] {
        assert!(read_trace(&wrong.to_string()).is_err(), "{wrong}");
    }
}
