//! The Lua scripts of lock clients, recognised by their shape.
//!
//! Doorway runs no Lua. A script is brought into a normal form, in which comments, spaces, quotes
//! and the names of variables do not matter, and that form is looked up in a table. So a client
//! that indents its script in another way is understood, and a script that does anything else is
//! an error.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::sync::LazyLock;

use parking_lot::Mutex;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

/// What a script does. Its first argument is the value of the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Release the key if it has this owner. Returns 1 or 0.
    Release,
    /// Release the key if it has this owner. Returns 1, 0 if it has another one, -1 if it has none.
    ReleaseOrAbsent,
    /// If the key has this owner, its lease ends after the second argument, in milliseconds.
    SetTtl,
    /// If the key has this owner, its lease ends after the second argument, in seconds.
    SetTtlSeconds,
    /// If the key has this owner, its lease ends after the second argument, in milliseconds. If it
    /// has no owner, it is acquired.
    SetTtlOrAcquire,
    /// If the key has this owner, its lease is extended by the second argument, or set to it if
    /// the third argument is not `0`.
    AddTtl,
    /// How much longer the lease of the key lasts if it has this owner, in milliseconds; else 0.
    Ttl,
    /// Acquire all keys or none. Returns their number or 0.
    AcquireAll,
    /// If all keys have this owner, their leases end after the second argument, in milliseconds.
    ExtendAll,
    /// Release the keys that have this owner. Returns their number.
    ReleaseAll,
}

/// How a script finds out whether the key has the owner. `DO` is what it does then.
const IF_OWNER: [&str; 5] = [
    "if redis.call('get', KEYS[1]) == ARGV[1] then DO else return 0 end",
    "if redis.call('get', KEYS[1]) == ARGV[1] then DO end return 0",
    "local v = redis.call('get', KEYS[1]) if v == ARGV[1] then DO else return 0 end",
    "local v = redis.call('get', KEYS[1]) if v == ARGV[1] then DO end return 0",
    "local v = redis.call('get', KEYS[1]) if not v or v ~= ARGV[1] then return 0 end DO",
];

/// What a script does if the key has the owner.
const DO: [(&str, Shape); 8] = [
    ("return redis.call('del', KEYS[1])", Shape::Release),
    ("redis.call('del', KEYS[1]) return 1", Shape::Release),
    ("return redis.call('pexpire', KEYS[1], ARGV[2])", Shape::SetTtl),
    ("redis.call('pexpire', KEYS[1], ARGV[2]) return 1", Shape::SetTtl),
    ("return redis.call('expire', KEYS[1], ARGV[2])", Shape::SetTtlSeconds),
    ("redis.call('expire', KEYS[1], ARGV[2]) return 1", Shape::SetTtlSeconds),
    ("return redis.call('pttl', KEYS[1])", Shape::Ttl),
    ("local t = redis.call('pttl', KEYS[1]) return (t > 0) and t or 0", Shape::Ttl),
];

/// Scripts with a form of their own.
const OTHERS: [(&str, Shape); 7] = [
    (
        "local v = redis.call('get', KEYS[1])
         if v == ARGV[1] then return redis.call('del', KEYS[1])
         elseif v == false then return -1 else return 0 end",
        Shape::ReleaseOrAbsent,
    ),
    (
        "if redis.call('get', KEYS[1]) == ARGV[1] then
           return redis.call('pexpire', KEYS[1], ARGV[2])
         elseif redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2], 'nx') then return 1
         else return 0 end",
        Shape::SetTtlOrAcquire,
    ),
    (
        "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 else
           if redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2]) ~= nil then return 1
           else return 0 end
         end",
        Shape::SetTtl,
    ),
    (
        "local v = redis.call('get', KEYS[1])
         if not v or v ~= ARGV[1] then return 0 end
         local t = redis.call('pttl', KEYS[1])
         if not t then t = 0 end
         if t < 0 then return 0 end
         local new = ARGV[2]
         if ARGV[3] == '0' then new = ARGV[2] + t end
         redis.call('pexpire', KEYS[1], new)
         return 1",
        Shape::AddTtl,
    ),
    (
        "for i, k in ipairs(KEYS) do if redis.call('exists', k) == 1 then return 0 end end
         for i, k in ipairs(KEYS) do redis.call('set', k, ARGV[1], 'px', ARGV[2]) end
         return #KEYS",
        Shape::AcquireAll,
    ),
    (
        "for i, k in ipairs(KEYS) do if redis.call('get', k) ~= ARGV[1] then return 0 end end
         for i, k in ipairs(KEYS) do redis.call('set', k, ARGV[1], 'px', ARGV[2]) end
         return #KEYS",
        Shape::ExtendAll,
    ),
    (
        "local n = 0
         for i, k in ipairs(KEYS) do
           if redis.call('get', k) == ARGV[1] then redis.pcall('del', k) n = n + 1 end
         end
         return n",
        Shape::ReleaseAll,
    ),
];

/// The normal forms of all scripts.
static FORMS: LazyLock<BTreeMap<String, Shape>> = LazyLock::new(|| {
    let made = IF_OWNER.iter().flat_map(|test| {
        DO.iter().map(move |(then, shape)| (test.replacen("DO", then, 1), *shape))
    });
    let others = OTHERS.iter().map(|(text, shape)| ((*text).to_owned(), *shape));
    let all = made.chain(others);
    all.filter_map(|(text, shape)| Some((normal_form(text.as_bytes())?, shape))).collect()
});

/// How many tokens the normal form of a script may have; those of the table have fewer.
const MAX_TOKENS: usize = 400;

/// Find out what a script does; `None` if Doorway does not know it.
pub(super) fn shape(text: &[u8]) -> Option<Shape> {
    FORMS.get(&normal_form(text)?).copied()
}

/// Bring a script into its normal form: single spaces between tokens, no comments, text in lower
/// case and double quotes, variables numbered in the order of their declarations, and variables
/// that are only another name of a key or an argument replaced by it. `None` if it is not Lua, or
/// too long for any known script.
fn normal_form(text: &[u8]) -> Option<String> {
    let tokens = tokenize(std::str::from_utf8(text).ok()?)?;
    let mut form: Vec<&str> = Vec::new();
    // What stands for each variable, the newest last.
    let mut names: Vec<(&str, &[&str])> = Vec::new();
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let (mut at, mut numbered) = (0, 0);
    while let Some(word) = tokens.get(at) {
        if let ["local", name, "=", rest @ ..] = &tokens[at..]
            && let Some(place) = argument(rest)
        {
            if GIVEN.contains(name) {
                return None;
            }
            names.push((name, place));
            at += 3 + place.len();
            continue;
        }
        at += 1;
        form.push(word);
        if matches!(*word, "local" | "for") {
            // The names that are declared here.
            while let Some(name) = tokens.get(at).filter(|name| is_name(name)) {
                if GIVEN.contains(name) {
                    return None;
                }
                names.push((name, NUMBERED.get(numbered..=numbered)?));
                numbered += 1;
                form.push(NUMBERED[numbered - 1]);
                at += 1;
                if tokens.get(at) != Some(&",") {
                    break;
                }
                form.push(",");
                at += 1;
            }
            continue;
        }
        let is_field = form.len() > 1 && form[form.len() - 2] == ".";
        let known = names.iter().rev().find(|(name, _)| name == word && !is_field);
        if let Some((_, stands)) = known {
            form.pop();
            form.extend_from_slice(stands);
        }
        if form.len() > MAX_TOKENS {
            return None;
        }
    }
    Some(form.join(" "))
}

/// The names of variables in a normal form. No script can have them.
const NUMBERED: [&str; 12] =
    ["$1", "$2", "$3", "$4", "$5", "$6", "$7", "$8", "$9", "$10", "$11", "$12"];

/// What Redis gives a script. A script that gives one of these names to something else is unknown.
const GIVEN: [&str; 4] = ["KEYS", "ARGV", "redis", "ipairs"];

/// A key or an argument at the beginning of these tokens, if it is a whole expression.
fn argument<'a>(tokens: &'a [&'a str]) -> Option<&'a [&'a str]> {
    let place = tokens.get(..4)?;
    let is_place = matches!(place, ["KEYS" | "ARGV", "[", number, "]"]
        if number.bytes().all(|byte| byte.is_ascii_digit()));
    // Only a name or the end may follow; `and` and `or` would continue the expression.
    let ends = tokens.get(4).is_none_or(|next| is_name(next) && !matches!(*next, "and" | "or"));
    (is_place && ends).then_some(place)
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Split a script into tokens: names, numbers, texts in double quotes, and signs. `None` if it has
/// something that no known script has, such as an escape or a long string.
fn tokenize(text: &str) -> Option<Vec<String>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if tokens.len() > MAX_TOKENS {
            return None;
        }
        let length = match first {
            _ if first.is_ascii_whitespace() => {
                rest = rest.trim_ascii_start();
                continue;
            }
            '-' if rest.starts_with("--[") => return None,
            '-' if rest.starts_with("--") => {
                rest = rest.split_once(['\n', '\r']).map_or("", |(_, rest)| rest);
                continue;
            }
            ';' => {
                rest = &rest[1..];
                continue;
            }
            '"' | '\'' => {
                let inside = &rest[1..];
                let end = inside.find(first)?;
                let inside = &inside[..end];
                if inside.contains(['\\', '"', '\'', '\n']) {
                    return None;
                }
                tokens.push(format!("\"{}\"", inside.to_ascii_lowercase()));
                rest = &rest[end + 2..];
                continue;
            }
            _ if first.is_ascii_alphanumeric() || first == '_' => {
                rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len())
            }
            '=' | '~' | '<' | '>' if rest[1..].starts_with('=') => 2,
            _ if first.is_ascii_punctuation() => 1,
            _ => return None,
        };
        tokens.push(rest[..length].to_owned());
        rest = &rest[length..];
    }
    Some(tokens)
}

/// How many scripts are remembered by their SHA-1.
const REMEMBERED: usize = 1000;

/// The scripts that clients have sent, by their SHA-1. A script that was forgotten is sent again by
/// its client.
#[derive(Default)]
pub(super) struct Scripts(Mutex<KnownScripts>);

#[derive(Default)]
struct KnownScripts {
    shapes: BTreeMap<Vec<u8>, Shape>,
    /// The oldest first.
    order: VecDeque<Vec<u8>>,
}

impl Scripts {
    /// Remember a script, and return its SHA-1 in hexadecimal digits and what it does; `None` if
    /// Doorway does not know it.
    pub(super) fn learn(&self, text: &[u8]) -> Option<(String, Shape)> {
        let shape = shape(text)?;
        let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, text);
        let hex = hash.as_ref().iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}"); // Writing into a string cannot fail.
            hex
        });
        let key = hex.clone().into_bytes();
        let mut known = self.0.lock();
        if known.shapes.insert(key.clone(), shape).is_none() {
            known.order.push_back(key);
        }
        while known.order.len() > REMEMBERED {
            let oldest = known.order.pop_front().unwrap_or_default();
            known.shapes.remove(&oldest);
        }
        Some((hex, shape))
    }

    /// What the script with this SHA-1 does, in hexadecimal digits.
    pub(super) fn find(&self, hash: &[u8]) -> Option<Shape> {
        self.0.lock().shapes.get(&hash.to_ascii_lowercase()).copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_form_of_the_table_is_a_form_of_its_own() {
        assert_eq!(FORMS.len(), IF_OWNER.len() * DO.len() + OTHERS.len());
        for (form, shape_of) in FORMS.iter() {
            let script = form.replace('$', "v");
            assert_eq!(shape(script.as_bytes()), Some(*shape_of), "{script}");
        }
    }

    /// How clients write their scripts: other quotes, capitals, names, comments and spaces.
    #[test]
    fn scripts_are_recognised_as_clients_write_them() {
        for (text, expected) in [
            // redlock-py, pottery, rslock, go-redsync before 4.12.
            (
                "if redis.call(\"GET\",KEYS[1]) == ARGV[1] then\n  return redis.call(\"DEL\",KEYS[1])\n\
                 else\n  return 0\nend\n",
                Shape::Release,
            ),
            // redis-py.
            (
                "local token = redis.call('get', KEYS[1])\nif not token or token ~= ARGV[1] then\n\
                 return 0\nend\nredis.call('del', KEYS[1])\nreturn 1",
                Shape::Release,
            ),
            (
                "local token = redis.call('get', KEYS[1])\nif not token or token ~= ARGV[1] then\n\
                 return 0\nend\nredis.call('pexpire', KEYS[1], ARGV[2])\nreturn 1",
                Shape::SetTtl,
            ),
            // redis-semaphore.
            (
                "local key = KEYS[1]\nlocal identifier = ARGV[1]\n\n\
                 if redis.call('get', key) == identifier then\n  return redis.call('del', key)\n\
                 end\n\nreturn 0",
                Shape::Release,
            ),
            (
                "local key = KEYS[1]\nlocal identifier = ARGV[1]\nlocal lockTimeout = ARGV[2]\n\
                 local value = redis.call('get', key)\nif value == identifier then\n\
                 redis.call('pexpire', key, lockTimeout)\nreturn 1\nend\nreturn 0",
                Shape::SetTtl,
            ),
            // Spring and others.
            (
                "local key = KEYS[1];\nif redis.call('get', key) == ARGV[1] then\n\
                 return redis.call('expire', key, ARGV[2]);\nelse return 0; end;",
                Shape::SetTtlSeconds,
            ),
            // redlock.
            (
                "\n\t-- Return 0 if an entry already exists.\n\tfor i, key in ipairs(KEYS) do\n\
                 if redis.call(\"exists\", key) == 1 then\nreturn 0\nend\nend\n\
                 for i, key in ipairs(KEYS) do\n\
                 redis.call(\"set\", key, ARGV[1], \"PX\", ARGV[2])\nend\nreturn #KEYS\n",
                Shape::AcquireAll,
            ),
        ] {
            assert_eq!(shape(text.as_bytes()), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_script_that_does_anything_else_is_not_recognised() {
        for text in [
            "",
            "return 1",
            // Another key, another argument, no test, the wrong test.
            "if redis.call('get', KEYS[2]) == ARGV[1] then return redis.call('del', KEYS[1]) \
             else return 0 end",
            "if redis.call('get', KEYS[1]) == ARGV[2] then return redis.call('del', KEYS[1]) \
             else return 0 end",
            "return redis.call('del', KEYS[1])",
            "if redis.call('get', KEYS[1]) ~= ARGV[1] then return redis.call('del', KEYS[1]) \
             else return 0 end",
            // A variable that hides another, and one that is changed.
            "local k = KEYS[1] do local k = KEYS[2] end \
             if redis.call('get', k) == ARGV[1] then return redis.call('del', k) else return 0 end",
            "local k = KEYS[1] k = KEYS[2] \
             if redis.call('get', k) == ARGV[1] then return redis.call('del', k) else return 0 end",
            "local k = KEYS[1] .. 'x' \
             if redis.call('get', k) == ARGV[1] then return redis.call('del', k) else return 0 end",
            "local k = KEYS[1] or KEYS[2] \
             if redis.call('get', k) == ARGV[1] then return redis.call('del', k) else return 0 end",
            // A variable that was never declared, and one that hides what Redis gives.
            "local x = redis.call('get', KEYS[1]) if v1 == ARGV[1] then \
             return redis.call('del', KEYS[1]) else return 0 end",
            "local ARGV = KEYS[1] local x = ARGV[1] \
             if redis.call('get', KEYS[1]) == x then return redis.call('del', KEYS[1]) \
             else return 0 end",
            // Text that only looks like a comment or a string.
            "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) \
             else return 0 end --\rredis.call('flushall')",
            "--[[\n]] redis.call('flushall') --",
            "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del\\0', KEYS[1]) \
             else return 0 end",
            "local redis = x if redis.call('get', KEYS[1]) == ARGV[1] then \
             return redis.call('del', KEYS[1]) else return 0 end",
        ] {
            assert_eq!(shape(text.as_bytes()), None, "{text}");
        }
        assert_eq!(shape(&[0xff; 100]), None);
        assert_eq!(shape("local x = KEYS[1] ".repeat(3000).as_bytes()), None);
    }

    proptest! {
        #[test]
        fn any_text_is_no_trouble(text in "[ -~\n]{0,120}", odd in ".{0,40}") {
            let _ = (shape(text.as_bytes()), shape(odd.as_bytes()));
        }

        #[test]
        fn a_known_script_with_anything_after_it_is_not_known(more in "[a-z]{1,8}\\([a-z]*\\)") {
            let text = format!("redis.call('del', KEYS[1]) {more}");
            prop_assert_eq!(shape(text.as_bytes()), None);
        }
    }

    #[test]
    fn scripts_are_found_by_their_hash_until_too_many_others_came() {
        let scripts = Scripts::default();
        let release = "if redis.call(\"get\",KEYS[1]) == ARGV[1] then\n        \
                       return redis.call(\"del\",KEYS[1])\n    else\n        return 0\n    end";
        let (hash, shape) = scripts.learn(release.as_bytes()).unwrap();
        assert_eq!(shape, Shape::Release);
        assert_eq!(scripts.find(hash.to_uppercase().as_bytes()), Some(Shape::Release));
        assert_eq!(scripts.find(b"0000"), None);
        assert!(scripts.learn(b"return 1").is_none());
        for number in 0..REMEMBERED {
            let text = format!("--{number}\n{release}");
            assert!(scripts.learn(text.as_bytes()).is_some());
        }
        assert_eq!(scripts.find(hash.as_bytes()), None, "its client sends it again");
    }
}
