//! Protocol Buffers and their JSON, as far as the messages of etcd need them.
//!
//! A message is a list of fields, and one table, `messages!`, says what its fields are called and
//! which numbers they have. From this table come the bytes of gRPC, the JSON of etcd's gateway, and
//! the descriptions that tools ask for. So no other program is needed to build, and the forms
//! cannot differ.
//!
//! Everything here is read from strangers: unknown fields are skipped, and no length is believed
//! before its bytes are there.

use data_encoding::BASE64;
use serde_json::{Map, Value};

/// Why bytes or a JSON text are not a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct MalformedMessage(pub(super) String);

impl MalformedMessage {
    fn new(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// The value of a field as it stands in the bytes of a message.
#[derive(Clone, Copy, Debug)]
pub(super) enum Raw<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    /// A number of 4 or 8 bytes, which no message of etcd has.
    Fixed,
}

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Int32,
    Int64,
    Uint64,
    Bool,
    Text,
    Bytes,
    /// A message of this package with this name.
    Message(&'static str, &'static str),
    /// A number with one of these names, and the name of the list.
    Enumeration(&'static str, &'static [&'static str]),
}

/// What a field is called, and what may stand there.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldInfo {
    pub(super) name: &'static str,
    pub(super) number: i32,
    pub(super) kind: Kind,
    pub(super) repeated: bool,
}

/// The messages that have the name of a package before their own, with their fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Package {
    pub(super) name: &'static str,
    pub(super) messages: &'static [(&'static str, &'static [FieldInfo])],
}

/// A message.
pub(super) trait Message: Default {
    const PACKAGE: &'static str;
    const NAME: &'static str;
    const FIELDS: &'static [FieldInfo];

    /// Append the bytes of the message.
    fn encode(&self, out: &mut Vec<u8>);

    /// Take over a field.
    fn merge(&mut self, number: u64, value: Raw<'_>) -> Result<(), MalformedMessage>;

    /// The fields that are not empty.
    fn to_json(&self) -> Map<String, Value>;

    /// Take over a field of this name. False if there is no such field.
    fn merge_json(&mut self, name: &str, value: &Value) -> Result<bool, MalformedMessage>;

    /// The message as bytes.
    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out
    }

    /// The message that these bytes are.
    fn decode(mut bytes: &[u8]) -> Result<Self, MalformedMessage> {
        let mut message = Self::default();
        while !bytes.is_empty() {
            let key = varint(&mut bytes)?;
            let value = raw(key & 7, &mut bytes)?;
            message.merge(key >> 3, value)?;
        }
        Ok(message)
    }

    /// The message that this JSON is.
    fn from_json(value: &Value) -> Result<Self, MalformedMessage> {
        let Value::Object(fields) = value else {
            return Err(MalformedMessage(format!("a message is a JSON object, not {value}")));
        };
        let mut message = Self::default();
        for (name, value) in fields {
            let known = value.is_null() || message.merge_json(name, value)?;
            if !known {
                return Err(MalformedMessage(format!("there is no field `{name}`")));
            }
        }
        Ok(message)
    }
}

/// A field of a message.
pub(super) trait Field: Sized {
    const KIND: Kind;
    const REPEATED: bool = false;

    /// Append the field, unless it is empty.
    fn encode(&self, number: u64, out: &mut Vec<u8>);

    /// Take over a value.
    fn merge(&mut self, value: Raw<'_>) -> Result<(), MalformedMessage>;

    /// The field as JSON; none if it is empty.
    fn to_json(&self) -> Option<Value>;

    /// Take over a value of JSON.
    fn merge_json(&mut self, value: &Value) -> Result<(), MalformedMessage>;
}

fn varint(bytes: &mut &[u8]) -> Result<u64, MalformedMessage> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let Some((byte, rest)) = bytes.split_first() else {
            return Err(MalformedMessage::new("the message ends in the middle of a number"));
        };
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(MalformedMessage::new("a number of the message has more than ten bytes"))
}

fn take<'a>(bytes: &mut &'a [u8], length: u64) -> Result<&'a [u8], MalformedMessage> {
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let Some((taken, rest)) = bytes.split_at_checked(length) else {
        return Err(MalformedMessage::new("the message ends in the middle of a field"));
    };
    *bytes = rest;
    Ok(taken)
}

fn raw<'a>(kind: u64, bytes: &mut &'a [u8]) -> Result<Raw<'a>, MalformedMessage> {
    match kind {
        0 => varint(bytes).map(Raw::Varint),
        1 => take(bytes, 8).map(|_| Raw::Fixed),
        2 => {
            let length = varint(bytes)?;
            take(bytes, length).map(Raw::Bytes)
        }
        5 => take(bytes, 4).map(|_| Raw::Fixed),
        _ => Err(MalformedMessage::new("a field of the message has a type that does not exist")),
    }
}

fn put_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_bytes(number: u64, bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(number << 3 | 2, out);
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn wrong_type() -> MalformedMessage {
    MalformedMessage::new("a field of the message has the wrong type")
}

fn wrong_json(wanted: &str, value: &Value) -> MalformedMessage {
    MalformedMessage(format!("a field is to be {wanted}, not {value}"))
}

/// A number as JSON: a text, because many programs round large numbers.
fn json_number(value: &Value) -> Option<i128> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => {
            number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
        }
        _ => None,
    }
}

macro_rules! number {
    ($type:ty, $kind:expr, $name:literal, $to:expr, $from:expr) => {
        impl Field for $type {
            const KIND: Kind = $kind;

            fn encode(&self, number: u64, out: &mut Vec<u8>) {
                if *self != Self::default() {
                    Some(*self).encode(number, out);
                }
            }

            fn merge(&mut self, value: Raw<'_>) -> Result<(), MalformedMessage> {
                let Raw::Varint(number) = value else { return Err(wrong_type()) };
                *self = $from(number);
                Ok(())
            }

            fn to_json(&self) -> Option<Value> {
                (*self != Self::default()).then(|| Value::String(self.to_string()))
            }

            fn merge_json(&mut self, value: &Value) -> Result<(), MalformedMessage> {
                let number = json_number(value).and_then(|number| Self::try_from(number).ok());
                *self = number.ok_or_else(|| wrong_json($name, value))?;
                Ok(())
            }
        }

        /// One of several fields, of which a message has one.
        impl Field for Option<$type> {
            const KIND: Kind = $kind;

            fn encode(&self, number: u64, out: &mut Vec<u8>) {
                if let Some(value) = self {
                    put_varint(number << 3, out);
                    put_varint($to(*value), out);
                }
            }

            fn merge(&mut self, value: Raw<'_>) -> Result<(), MalformedMessage> {
                self.get_or_insert_default().merge(value)
            }

            fn to_json(&self) -> Option<Value> {
                self.map(|value| Value::String(value.to_string()))
            }

            fn merge_json(&mut self, value: &Value) -> Result<(), MalformedMessage> {
                self.get_or_insert_default().merge_json(value)
            }
        }
    };
}

number!(
    i32,
    Kind::Int32,
    "a whole number",
    |number| i64::cast_unsigned(i64::from(number)),
    |number| number as i32
);
number!(i64, Kind::Int64, "a whole number", i64::cast_unsigned, u64::cast_signed);
number!(u64, Kind::Uint64, "a whole number", std::convert::identity, std::convert::identity);

impl Field for bool {
    const KIND: Kind = Kind::Bool;

    fn encode(&self, number: u64, out: &mut Vec<u8>) {
        if *self {
            put_varint(number << 3, out);
            out.push(1);
        }
    }

    fn merge(&mut self, value: Raw<'_>) -> Result<(), MalformedMessage> {
        let Raw::Varint(number) = value else { return Err(wrong_type()) };
        *self = number != 0;
        Ok(())
    }

    fn to_json(&self) -> Option<Value> {
        self.then_some(Value::Bool(true))
    }

    fn merge_json(&mut self, value: &Value) -> Result<(), MalformedMessage> {
        *self = value.as_bool().ok_or_else(|| wrong_json("true or false", value))?;
        Ok(())
    }
}

impl Field for String {
    const KIND: Kind = Kind::Text;

    fn encode(&self, number: u64, out: &mut Vec<u8>) {
        if !self.is_empty() {
            put_bytes(number, self.as_bytes(), out);
        }
    }

    fn merge(&mut self, value: Raw<'_>) -> Result<(), MalformedMessage> {
        let Raw::Bytes(bytes) = value else { return Err(wrong_type()) };
        let text = std::str::from_utf8(bytes);
        text.map_err(|_| MalformedMessage::new("a text of the message is not UTF-8"))?
            .clone_into(self);
        Ok(())
    }

    fn to_json(&self) -> Option<Value> {
        (!self.is_empty()).then(|| Value::String(self.clone()))
    }

    fn merge_json(&mut self, value: &Value) -> Result<(), MalformedMessage> {
        value.as_str().ok_or_else(|| wrong_json("a text", value))?.clone_into(self);
        Ok(())
    }
}

/// One of several fields, of which a message has one.
impl Field for Option<String> {
    const KIND: Kind = Kind::Text;

    fn encode(&self, number: u64, out: &mut Vec<u8>) {
        if let Some(text) = self {
            put_bytes(number, text.as_bytes(), out);
        }
    }

    fn merge(&mut self, value: Raw<'_>) -> Result<(), MalformedMessage> {
        self.get_or_insert_default().merge(value)
    }

    fn to_json(&self) -> Option<Value> {
        self.clone().map(Value::String)
    }

    fn merge_json(&mut self, value: &Value) -> Result<(), MalformedMessage> {
        self.get_or_insert_default().merge_json(value)
    }
}

impl Field for Vec<u8> {
    const KIND: Kind = Kind::Bytes;

    fn encode(&self, number: u64, out: &mut Vec<u8>) {
        if !self.is_empty() {
            put_bytes(number, self, out);
        }
    }

    fn merge(&mut self, value: Raw<'_>) -> Result<(), MalformedMessage> {
        let Raw::Bytes(bytes) = value else { return Err(wrong_type()) };
        *self = bytes.to_vec();
        Ok(())
    }

    fn to_json(&self) -> Option<Value> {
        (!self.is_empty()).then(|| Value::String(BASE64.encode(self)))
    }

    fn merge_json(&mut self, value: &Value) -> Result<(), MalformedMessage> {
        let bytes = value.as_str().and_then(|text| BASE64.decode(text.as_bytes()).ok());
        *self = bytes.ok_or_else(|| wrong_json("bytes in base64", value))?;
        Ok(())
    }
}

/// One of several fields, of which a message has one.
impl Field for Option<Vec<u8>> {
    const KIND: Kind = Kind::Bytes;

    fn encode(&self, number: u64, out: &mut Vec<u8>) {
        if let Some(bytes) = self {
            put_bytes(number, bytes, out);
        }
    }

    fn merge(&mut self, value: Raw<'_>) -> Result<(), MalformedMessage> {
        self.get_or_insert_default().merge(value)
    }

    fn to_json(&self) -> Option<Value> {
        self.as_ref().map(|bytes| Value::String(BASE64.encode(bytes)))
    }

    fn merge_json(&mut self, value: &Value) -> Result<(), MalformedMessage> {
        self.get_or_insert_default().merge_json(value)
    }
}

impl Field for Vec<Vec<u8>> {
    const KIND: Kind = Kind::Bytes;
    const REPEATED: bool = true;

    fn encode(&self, number: u64, out: &mut Vec<u8>) {
        for bytes in self {
            put_bytes(number, bytes, out);
        }
    }

    fn merge(&mut self, value: Raw<'_>) -> Result<(), MalformedMessage> {
        let Raw::Bytes(bytes) = value else { return Err(wrong_type()) };
        self.push(bytes.to_vec());
        Ok(())
    }

    fn to_json(&self) -> Option<Value> {
        let all = self.iter().map(|bytes| Value::String(BASE64.encode(bytes)));
        (!self.is_empty()).then(|| all.collect())
    }

    fn merge_json(&mut self, value: &Value) -> Result<(), MalformedMessage> {
        for value in list(value)? {
            let mut bytes = Vec::new();
            bytes.merge_json(value)?;
            self.push(bytes);
        }
        Ok(())
    }
}

impl<M: Message> Field for Option<M> {
    const KIND: Kind = Kind::Message(M::PACKAGE, M::NAME);

    fn encode(&self, number: u64, out: &mut Vec<u8>) {
        if let Some(message) = self {
            put_bytes(number, &message.bytes(), out);
        }
    }

    fn merge(&mut self, value: Raw<'_>) -> Result<(), MalformedMessage> {
        let Raw::Bytes(bytes) = value else { return Err(wrong_type()) };
        *self = Some(M::decode(bytes)?);
        Ok(())
    }

    fn to_json(&self) -> Option<Value> {
        self.as_ref().map(|message| Value::Object(message.to_json()))
    }

    fn merge_json(&mut self, value: &Value) -> Result<(), MalformedMessage> {
        *self = Some(M::from_json(value)?);
        Ok(())
    }
}

impl<M: Message> Field for Vec<M> {
    const KIND: Kind = Kind::Message(M::PACKAGE, M::NAME);
    const REPEATED: bool = true;

    fn encode(&self, number: u64, out: &mut Vec<u8>) {
        for message in self {
            put_bytes(number, &message.bytes(), out);
        }
    }

    fn merge(&mut self, value: Raw<'_>) -> Result<(), MalformedMessage> {
        let Raw::Bytes(bytes) = value else { return Err(wrong_type()) };
        self.push(M::decode(bytes)?);
        Ok(())
    }

    fn to_json(&self) -> Option<Value> {
        let all = self.iter().map(|message| Value::Object(message.to_json()));
        (!self.is_empty()).then(|| all.collect())
    }

    fn merge_json(&mut self, value: &Value) -> Result<(), MalformedMessage> {
        for value in list(value)? {
            self.push(M::from_json(value)?);
        }
        Ok(())
    }
}

fn list(value: &Value) -> Result<&Vec<Value>, MalformedMessage> {
    value.as_array().ok_or_else(|| wrong_json("a list", value))
}

/// A number that has a name.
pub(super) trait Enumeration: Copy + Default + PartialEq {
    const NAME: &'static str;
    /// The names, in the order of their numbers.
    const NAMES: &'static [&'static str];

    fn number(self) -> u64;
    fn from_number(number: u64) -> Self;
}

/// A field with one of several names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct EnumField<E>(pub(super) E);

impl<E: Enumeration> Field for EnumField<E> {
    const KIND: Kind = Kind::Enumeration(E::NAME, E::NAMES);

    fn encode(&self, number: u64, out: &mut Vec<u8>) {
        if self.0 != E::default() {
            put_varint(number << 3, out);
            put_varint(self.0.number(), out);
        }
    }

    fn merge(&mut self, value: Raw<'_>) -> Result<(), MalformedMessage> {
        let Raw::Varint(number) = value else { return Err(wrong_type()) };
        self.0 = E::from_number(number);
        Ok(())
    }

    fn to_json(&self) -> Option<Value> {
        let name = E::NAMES.get(self.0.number() as usize)?;
        (self.0 != E::default()).then(|| Value::String((*name).to_owned()))
    }

    fn merge_json(&mut self, value: &Value) -> Result<(), MalformedMessage> {
        let number = match value {
            Value::String(name) => E::NAMES.iter().position(|it| it == name).map(|at| at as u64),
            other => other.as_u64(),
        };
        let names = E::NAMES.join(", ");
        let number = number.ok_or_else(|| wrong_json(&format!("one of {names}"), value))?;
        self.0 = E::from_number(number);
        Ok(())
    }
}

/// Repeated numbers stand in one field, or each in a field of its own.
impl<E: Enumeration> Field for Vec<EnumField<E>> {
    const KIND: Kind = Kind::Enumeration(E::NAME, E::NAMES);
    const REPEATED: bool = true;

    fn encode(&self, number: u64, out: &mut Vec<u8>) {
        let mut packed = Vec::new();
        for EnumField(it) in self {
            put_varint(it.number(), &mut packed);
        }
        if !packed.is_empty() {
            put_bytes(number, &packed, out);
        }
    }

    fn merge(&mut self, value: Raw<'_>) -> Result<(), MalformedMessage> {
        match value {
            Raw::Varint(number) => self.push(EnumField(E::from_number(number))),
            Raw::Bytes(mut bytes) => {
                while !bytes.is_empty() {
                    self.push(EnumField(E::from_number(varint(&mut bytes)?)));
                }
            }
            Raw::Fixed => return Err(wrong_type()),
        }
        Ok(())
    }

    fn to_json(&self) -> Option<Value> {
        let name = |it: &EnumField<E>| {
            let name = E::NAMES.get(it.0.number() as usize).copied().unwrap_or_default();
            Value::String(name.to_owned())
        };
        (!self.is_empty()).then(|| self.iter().map(name).collect())
    }

    fn merge_json(&mut self, value: &Value) -> Result<(), MalformedMessage> {
        for value in list(value)? {
            let mut one = EnumField(E::default());
            one.merge_json(value)?;
            self.push(one);
        }
        Ok(())
    }
}

/// The name of a field as JSON may write it, too: `rangeEnd` for `range_end`.
pub(super) fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |text, word| {
        let mut letters = word.chars();
        let head = letters.next().map(|letter| letter.to_ascii_uppercase());
        head.into_iter().fold(text, |mut text, letter| {
            text.push(letter);
            text
        }) + letters.as_str()
    })
}

/// The object of those fields that are not empty.
pub(super) fn object(fields: Vec<(&str, Option<Value>)>) -> Map<String, Value> {
    let named = |(name, value): (&str, Option<Value>)| Some((name.to_owned(), value?));
    fields.into_iter().filter_map(named).collect()
}

/// Make the messages of a package from a table: the fields of each, with their names and numbers.
macro_rules! messages {
    ($package:tt = $prefix:literal; $($(#[$doc:meta])* $name:ident {
        $($field:ident: $type:ty = $number:literal $as:literal),* $(,)?
    })*) => {
        pub(super) const $package: Package = Package {
            name: $prefix,
            messages: &[$((stringify!($name), $name::FIELDS)),*],
        };

        $(
        $(#[$doc])*
        #[allow(clippy::struct_field_names, reason = "these are the names of etcd")]
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub(crate) struct $name {
            $(pub(crate) $field: $type,)*
        }

        impl Message for $name {
            const PACKAGE: &'static str = $prefix;
            const NAME: &'static str = stringify!($name);
            const FIELDS: &'static [FieldInfo] = &[$(FieldInfo {
                name: $as,
                number: $number,
                kind: <$type as Field>::KIND,
                repeated: <$type as Field>::REPEATED,
            }),*];

            #[allow(unused_variables, reason = "some messages are empty")]
            fn encode(&self, out: &mut Vec<u8>) {
                $(Field::encode(&self.$field, $number, out);)*
            }

            #[allow(unused_variables, reason = "some messages are empty")]
            fn merge(&mut self, number: u64, value: Raw<'_>) -> Result<(), MalformedMessage> {
                match number {
                    $($number => Field::merge(&mut self.$field, value),)*
                    _ => Ok(()),
                }
            }

            fn to_json(&self) -> Map<String, Value> {
                object(vec![$(($as, Field::to_json(&self.$field)),)*])
            }

            #[allow(unused_variables, reason = "some messages are empty")]
            fn merge_json(&mut self, name: &str, value: &Value) -> Result<bool, MalformedMessage> {
                $(if name == $as || name == camel($as) {
                    return Field::merge_json(&mut self.$field, value).map(|()| true);
                })*
                Ok(false)
            }
        }
        )*
    };
}

/// Make numbers with names of a table.
macro_rules! enumerations {
    ($($(#[$doc:meta])* $name:ident { $($case:ident $as:literal),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) enum $name {
            #[default]
            $($case,)*
            /// A number that etcd does not have.
            Unknown,
        }

        impl Enumeration for $name {
            const NAME: &'static str = stringify!($name);
            const NAMES: &'static [&'static str] = &[$($as),*];

            fn number(self) -> u64 {
                self as u64
            }

            fn from_number(number: u64) -> Self {
                let known = [$(Self::$case),*];
                usize::try_from(number).ok().and_then(|at| known.get(at)).copied()
                    .unwrap_or(Self::Unknown)
            }
        }
    )*};
}

pub(super) use {enumerations, messages};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::messages::{
        Compare, CompareTarget, FilterType, KeyValue, LeaseTimeToLiveResponse, PutRequest,
        RangeRequest, RequestOp, TxnRequest, WatchCreateRequest, WatchRequest,
    };
    use super::*;

    fn transaction() -> TxnRequest {
        let put = PutRequest {
            key: b"lock/7".to_vec(),
            value: vec![0, 255],
            lease: i64::MAX,
            ..PutRequest::default()
        };
        let range = RangeRequest { key: b"lock/".to_vec(), limit: 1, ..RangeRequest::default() };
        TxnRequest {
            compare: vec![Compare {
                target: EnumField(CompareTarget::Create),
                key: b"lock/7".to_vec(),
                create_revision: Some(0),
                ..Compare::default()
            }],
            success: vec![
                RequestOp { request_put: Some(put), ..RequestOp::default() },
                RequestOp { request_range: Some(range), ..RequestOp::default() },
            ],
            failure: Vec::new(),
        }
    }

    #[test]
    fn bytes_are_those_of_protocol_buffers() {
        let kv = KeyValue {
            key: b"k".to_vec(),
            create_revision: 300,
            mod_revision: -1,
            ..KeyValue::default()
        };
        let minus_one = [0x18, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1];
        let bytes = [&[0x0a, 1, b'k', 0x10, 0xac, 2][..], &minus_one].concat();
        assert_eq!(kv.bytes(), bytes);
        assert_eq!(KeyValue::decode(&bytes), Ok(kv));
        // A field of a later version, of each type, is skipped.
        let later = [&[0xa0, 6, 1, 0xa1, 6][..], &[0; 8], &[0xa5, 6], &[0; 4], &[0xa2, 6, 1, 0]];
        assert_eq!(KeyValue::decode(&later.concat()), Ok(KeyValue::default()));
        for wrong in [&[0x0a, 2, b'k'][..], &[0x08, 1], &[0x10], &[0x13], &[255; 11], &[0x0a, 255]]
        {
            assert!(KeyValue::decode(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_message_is_the_same_after_both_ways() {
        let message = transaction();
        assert_eq!(TxnRequest::decode(&message.bytes()), Ok(message.clone()));
        let json = Value::Object(message.to_json());
        assert_eq!(TxnRequest::from_json(&json), Ok(message));
        let keys = vec![b"a".to_vec(), Vec::new()];
        let times = LeaseTimeToLiveResponse { keys, granted_ttl: 7, ..Default::default() };
        assert_eq!(LeaseTimeToLiveResponse::decode(&times.bytes()), Ok(times));
        let create = WatchCreateRequest {
            filters: vec![EnumField(FilterType::NoDelete), EnumField(FilterType::NoPut)],
            ..WatchCreateRequest::default()
        };
        let watch = WatchRequest { create_request: Some(create), ..WatchRequest::default() };
        assert_eq!(WatchRequest::decode(&watch.bytes()), Ok(watch));
    }

    #[test]
    fn json_is_that_of_the_gateway() {
        let json = Value::Object(transaction().to_json());
        assert_eq!(
            json,
            json!({
                "compare": [{"target": "CREATE", "key": "bG9jay83", "create_revision": "0"}],
                "success": [
                    {"request_put": {
                        "key": "bG9jay83", "value": "AP8=", "lease": "9223372036854775807"}},
                    {"request_range": {"key": "bG9jay8=", "limit": "1"}},
                ],
            })
        );
        let other = json!({"rangeEnd": "AA==", "limit": 1, "sortOrder": 2, "serializable": true});
        let range = RangeRequest::from_json(&other).unwrap();
        assert_eq!((&range.range_end[..], range.limit, range.serializable), (&[0][..], 1, true));
        for wrong in [
            json!([]),
            json!({"no": 1}),
            json!({"key": 1}),
            json!({"key": "?"}),
            json!({"limit": "x"}),
            json!({"limit": 1.5}),
            json!({"sort_order": "UP"}),
            json!({"serializable": 1}),
        ] {
            assert!(RangeRequest::from_json(&wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn random_bytes_are_no_trouble(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(message) = TxnRequest::decode(&bytes) {
                prop_assert_eq!(TxnRequest::decode(&message.bytes()), Ok(message));
            }
            let _ = (WatchRequest::decode(&bytes), LeaseTimeToLiveResponse::decode(&bytes));
        }

        #[test]
        fn spoiled_messages_are_no_trouble(
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = transaction().bytes();
            let place = at.index(bytes.len());
            bytes[place] = byte;
            bytes.truncate(cut.index(bytes.len() + 1));
            let _ = TxnRequest::decode(&bytes);
        }
    }
}
