//! The commands of the Redis protocol, read from the arguments of a request.
//!
//! Everything that can be wrong with a command by itself is found here. An error says what would be
//! right, because a program that was written for Redis may expect more than locks.

use std::time::Duration;

use doorway_protocol::Name;
use doorway_protocol::nearest::nearest;

/// How many databases there are, as in a Redis that nobody has configured.
pub(super) const DATABASES: u32 = 16;

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Ping(Option<Vec<u8>>),
    Echo(Vec<u8>),
    Quit,
    /// Use another database.
    Select(u32),
    Hello(Hello),
    Auth(Credentials),
    /// The number of the connection.
    ClientId,
    /// Something about the connection that has no effect here, such as its name.
    ClientNote,
    Info,
    /// The list of commands, which is empty.
    Commands,
    CountCommands,
    ScriptLoad(Vec<u8>),
    ScriptExists(Vec<Vec<u8>>),
    ScriptFlush,
    Eval(Vec<u8>, Parameters),
    EvalSha(Vec<u8>, Parameters),
    Lock(LockCommand),
}

/// A command about locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LockCommand {
    Set {
        key: Vec<u8>,
        value: Vec<u8>,
        ttl: Duration,
        when: SetCondition,
    },
    Get(Vec<u8>),
    Exists(Vec<Vec<u8>>),
    /// How much longer a lease lasts, in seconds.
    Ttl(Vec<u8>),
    /// How much longer a lease lasts, in milliseconds.
    Pttl(Vec<u8>),
    /// Let the lease of this client end after this time.
    Expire(Vec<u8>, Duration),
    /// Take keys from their owners.
    Delete(Vec<Vec<u8>>),
    /// Release a key if it has this owner.
    DeleteIfOwner(Vec<u8>, Vec<u8>),
    /// The fence of a key, of this owner if one is given.
    Fence(Vec<u8>, Option<Vec<u8>>),
}

/// When `SET` does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SetCondition {
    /// `NX`: the lock is free.
    Free,
    /// `XX`: the lock has this owner.
    Owned,
    /// Neither: the lock is free or has this owner.
    FreeOrOwned,
}

/// The keys and arguments of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parameters {
    pub(super) keys: Vec<Vec<u8>>,
    pub(super) arguments: Vec<Vec<u8>>,
}

/// How a client begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    /// The version of RESP; as before if there is none.
    pub(super) version: Option<u8>,
    pub(super) credentials: Option<Credentials>,
}

/// How a client proves who it is: the name of a `[[client]]` and its token.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Credentials {
    /// Without a name, the token alone tells who the client is.
    pub(super) user: Option<Vec<u8>>,
    pub(super) token: Vec<u8>,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credentials(..)") // Tokens do not belong in a log.
    }
}

/// Every command, and how it is written.
const USAGE: [(&str, &str); 27] = [
    ("AUTH", "AUTH [name] token"),
    (
        "CLIENT",
        "CLIENT ID | SETINFO attribute value | SETNAME name | GETNAME | NO-EVICT | NO-TOUCH",
    ),
    ("COMMAND", "COMMAND [COUNT | DOCS | INFO | LIST]"),
    ("DEL", "DEL key [key ...]"),
    ("DELEX", "DELEX key IFEQ value"),
    ("DELIFEQ", "DELIFEQ key value"),
    ("DOORWAY.FENCE", "DOORWAY.FENCE key [value]"),
    ("ECHO", "ECHO text"),
    ("EVAL", "EVAL script numkeys [key ...] [argument ...]"),
    ("EVALSHA", "EVALSHA sha1 numkeys [key ...] [argument ...]"),
    ("EXISTS", "EXISTS key [key ...]"),
    ("EXPIRE", "EXPIRE key seconds"),
    ("GET", "GET key"),
    ("HELLO", "HELLO [2 | 3 [AUTH name token] [SETNAME name]]"),
    ("INFO", "INFO [section ...]"),
    ("PEXPIRE", "PEXPIRE key milliseconds"),
    ("PING", "PING [text]"),
    ("PSETEX", "PSETEX key milliseconds value"),
    ("PTTL", "PTTL key"),
    ("QUIT", "QUIT"),
    ("SCRIPT", "SCRIPT LOAD script | EXISTS sha1 [sha1 ...] | FLUSH"),
    ("SELECT", "SELECT database"),
    ("SET", "SET key value NX PX milliseconds"),
    ("SETEX", "SETEX key seconds value"),
    ("SETNX", "SET key value NX PX milliseconds"),
    ("TTL", "TTL key"),
    ("UNLINK", "UNLINK key [key ...]"),
];

/// Read a command.
pub(super) fn command(arguments: Vec<Vec<u8>>) -> Result<Command, String> {
    use LockCommand as Lock;
    let mut arguments = arguments.into_iter();
    let name = shown(&arguments.next().unwrap_or_default()).to_ascii_uppercase();
    let rest: Vec<Vec<u8>> = arguments.collect();
    let lock = match (name.as_str(), rest.as_slice()) {
        ("PING", []) => return Ok(Command::Ping(None)),
        ("PING", [text]) => return Ok(Command::Ping(Some(text.clone()))),
        ("ECHO", [text]) => return Ok(Command::Echo(text.clone())),
        ("QUIT", []) => return Ok(Command::Quit),
        ("SELECT", [number]) => return select(number),
        ("HELLO", words) => return hello(words).map(Command::Hello),
        ("AUTH", [token]) => {
            return Ok(Command::Auth(Credentials { user: None, token: token.clone() }));
        }
        ("AUTH", [user, token]) => return Ok(Command::Auth(credentials(user, token))),
        ("CLIENT", [word, ..]) => return client(word),
        ("INFO", _) => return Ok(Command::Info),
        ("COMMAND", [word]) if is(word, "COUNT") => return Ok(Command::CountCommands),
        ("COMMAND", _) => return Ok(Command::Commands),
        ("SCRIPT", [word, text]) if is(word, "LOAD") => {
            return Ok(Command::ScriptLoad(text.clone()));
        }
        ("SCRIPT", [word, hashes @ ..]) if is(word, "EXISTS") && !hashes.is_empty() => {
            return Ok(Command::ScriptExists(hashes.to_vec()));
        }
        ("SCRIPT", [word, ..]) if is(word, "FLUSH") => return Ok(Command::ScriptFlush),
        ("EVAL", [text, number, rest @ ..]) => {
            return Ok(Command::Eval(text.clone(), parameters(number, rest)?));
        }
        ("EVALSHA", [hash, number, rest @ ..]) => {
            return Ok(Command::EvalSha(hash.clone(), parameters(number, rest)?));
        }
        ("SET", [key, value, options @ ..]) => set(key, value, options)?,
        ("SETNX", [_, _]) => return Err(endless("SETNX")),
        ("PSETEX", [key, time, value]) => set_for(key, value, milliseconds(time)?),
        ("SETEX", [key, time, value]) => set_for(key, value, seconds(time)?),
        ("GET", [key]) => Lock::Get(key.clone()),
        ("EXISTS", [_, ..]) => Lock::Exists(rest),
        ("TTL", [key]) => Lock::Ttl(key.clone()),
        ("PTTL", [key]) => Lock::Pttl(key.clone()),
        ("EXPIRE", [key, time]) => Lock::Expire(key.clone(), seconds(time)?),
        ("PEXPIRE", [key, time]) => Lock::Expire(key.clone(), milliseconds(time)?),
        ("DEL" | "UNLINK", [_, ..]) => Lock::Delete(rest),
        ("DELIFEQ", [key, value]) => Lock::DeleteIfOwner(key.clone(), value.clone()),
        ("DELEX", [key, word, value]) if is(word, "IFEQ") => {
            Lock::DeleteIfOwner(key.clone(), value.clone())
        }
        ("DOORWAY.FENCE", [key]) => Lock::Fence(key.clone(), None),
        ("DOORWAY.FENCE", [key, value]) => Lock::Fence(key.clone(), Some(value.clone())),
        _ => return Err(not_understood(&name)),
    };
    Ok(Command::Lock(lock))
}

/// Why a command was not understood: its arguments are wrong, or there is no such command.
fn not_understood(name: &str) -> String {
    if let Some((_, usage)) = USAGE.iter().find(|(known, _)| *known == name) {
        return format!("the arguments of {name} are wrong: write {usage}");
    }
    let near = nearest(name, USAGE.iter().map(|(known, _)| *known));
    let near = near.map(|near| format!(" did you mean {near}?")).unwrap_or_default();
    format!(
        "unknown command '{name}':{near} Doorway keeps locks and no other data; docs/redis.md \
         lists the commands that it has"
    )
}

fn select(number: &[u8]) -> Result<Command, String> {
    let known = text(number).and_then(|text| text.parse().ok()).filter(|it| *it < DATABASES);
    known.map(Command::Select).ok_or_else(|| {
        format!("there is no database {}: choose one from 0 to {}", shown(number), DATABASES - 1)
    })
}

fn hello(words: &[Vec<u8>]) -> Result<Hello, String> {
    let mut hello = Hello { version: None, credentials: None };
    let [version, options @ ..] = words else { return Ok(hello) };
    hello.version = text(version).and_then(|text| text.parse().ok());
    if hello.version.is_none() {
        return Err(not_understood("HELLO"));
    }
    let mut rest = options;
    loop {
        rest = match rest {
            [] => return Ok(hello),
            [word, user, token, rest @ ..] if is(word, "AUTH") => {
                hello.credentials = Some(credentials(user, token));
                rest
            }
            [word, _, rest @ ..] if is(word, "SETNAME") => rest,
            _ => return Err(not_understood("HELLO")),
        }
    }
}

fn credentials(user: &[u8], token: &[u8]) -> Credentials {
    // Redis calls the user of clients that name none so.
    let user = (user != b"default" && !user.is_empty()).then(|| user.to_vec());
    Credentials { user, token: token.to_vec() }
}

fn client(word: &[u8]) -> Result<Command, String> {
    match text(word).unwrap_or_default().to_ascii_uppercase().as_str() {
        "ID" => Ok(Command::ClientId),
        "SETINFO" | "SETNAME" | "GETNAME" | "NO-EVICT" | "NO-TOUCH" => Ok(Command::ClientNote),
        _ => Err(not_understood("CLIENT")),
    }
}

fn set(key: &[u8], value: &[u8], options: &[Vec<u8>]) -> Result<LockCommand, String> {
    let (mut ttl, mut when) = (None, SetCondition::FreeOrOwned);
    let mut rest = options;
    loop {
        rest = match rest {
            [] => break,
            [word, rest @ ..] if is(word, "NX") && when != SetCondition::Owned => {
                when = SetCondition::Free;
                rest
            }
            [word, rest @ ..] if is(word, "XX") && when != SetCondition::Free => {
                when = SetCondition::Owned;
                rest
            }
            [word, time, rest @ ..] if is(word, "PX") && ttl.is_none() => {
                ttl = Some(milliseconds(time)?);
                rest
            }
            [word, time, rest @ ..] if is(word, "EX") && ttl.is_none() => {
                ttl = Some(seconds(time)?);
                rest
            }
            [word, ..] => {
                return Err(format!(
                    "`{}` is not an option of SET here, or contradicts another one: a lock is \
                     acquired by SET key value NX PX milliseconds (or EX seconds), and extended \
                     by its owner with XX instead of NX",
                    shown(word)
                ));
            }
        }
    }
    let Some(ttl) = ttl else { return Err(endless("SET")) };
    Ok(LockCommand::Set { key: key.to_vec(), value: value.to_vec(), ttl, when })
}

fn set_for(key: &[u8], value: &[u8], ttl: Duration) -> LockCommand {
    let (key, value) = (key.to_vec(), value.to_vec());
    LockCommand::Set { key, value, ttl, when: SetCondition::FreeOrOwned }
}

fn endless(name: &str) -> String {
    format!(
        "{name} without a time to live would hold the lock forever if its client ended: write SET \
         key value NX PX milliseconds (with redis-py: Lock(..., timeout=10))"
    )
}

fn parameters(number: &[u8], rest: &[Vec<u8>]) -> Result<Parameters, String> {
    let count = text(number).and_then(|text| text.parse::<usize>().ok());
    let parts = count.and_then(|count| rest.split_at_checked(count));
    let Some((keys, arguments)) = parts else {
        let (given, most) = (shown(number), rest.len());
        return Err(format!(
            "`{given}` is not the number of keys: {most} keys and arguments follow"
        ));
    };
    Ok(Parameters { keys: keys.to_vec(), arguments: arguments.to_vec() })
}

/// A time to live in milliseconds.
pub(super) fn milliseconds(given: &[u8]) -> Result<Duration, String> {
    time(given, "milliseconds", 1)
}

/// A time to live in seconds.
pub(super) fn seconds(given: &[u8]) -> Result<Duration, String> {
    time(given, "seconds", 1000)
}

fn time(given: &[u8], unit: &str, factor: u64) -> Result<Duration, String> {
    let count: Option<u64> = text(given).and_then(|text| text.parse().ok());
    match count {
        Some(count @ 1..) => Ok(Duration::from_millis(count.saturating_mul(factor))),
        _ => Err(format!(
            "`{}` is not a time to live: write a whole number of {unit} from 1 on",
            shown(given)
        )),
    }
}

/// The lock of a key. Database 0 has the keys as they are; a key of another database has the number
/// of that database before it.
pub(super) fn lock(database: u32, key: &[u8]) -> Result<Name, String> {
    let Some(key_text) = text(key) else {
        return Err(format!(
            "the key `{}` is not UTF-8, as the name of a lock has to be",
            shown(key)
        ));
    };
    let name = match database {
        0 => Name::new(key_text),
        number => Name::new(&format!("db{number}/{key_text}")),
    };
    name.map_err(|error| format!("the key `{}` cannot be a lock: {error}", shown(key)))
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

fn is(word: &[u8], name: &str) -> bool {
    word.eq_ignore_ascii_case(name.as_bytes())
}

/// The beginning of what a client sent, for an error.
fn shown(bytes: &[u8]) -> String {
    let part = &bytes[..bytes.len().min(60)];
    part.escape_ascii().to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(line: &str) -> Result<Command, String> {
        command(line.split(' ').map(|word| word.as_bytes().to_vec()).collect())
    }

    fn set(when: SetCondition, ms: u64) -> Command {
        let (key, value, ttl) = (b"k".to_vec(), b"v".to_vec(), Duration::from_millis(ms));
        Command::Lock(LockCommand::Set { key, value, ttl, when })
    }

    #[test]
    fn a_lock_is_set_in_every_order_of_the_options() {
        for line in ["SET k v NX PX 500", "set k v px 500 nx", "Set k v Px 500 NX"] {
            assert_eq!(read(line), Ok(set(SetCondition::Free, 500)));
        }
        assert_eq!(read("SET k v EX 2 NX"), Ok(set(SetCondition::Free, 2000)));
        assert_eq!(read("SET k v XX EX 2"), Ok(set(SetCondition::Owned, 2000)));
        assert_eq!(read("SET k v PX 7"), Ok(set(SetCondition::FreeOrOwned, 7)));
        assert_eq!(read("PSETEX k 7 v"), Ok(set(SetCondition::FreeOrOwned, 7)));
        assert_eq!(read("SETEX k 7 v"), Ok(set(SetCondition::FreeOrOwned, 7000)));
        let long = Ok(set(SetCondition::Free, u64::MAX));
        assert_eq!(read("SET k v NX EX 18446744073709551615"), long, "the limit refuses it later");
    }

    #[test]
    fn an_error_says_what_would_be_right() {
        for (line, part) in [
            ("SET k v", "NX PX milliseconds"),
            ("SET k v NX", "forever"),
            ("SETNX k v", "forever"),
            ("SET k v NX XX PX 5", "`XX` is not an option"),
            ("SET k v NX PX 5 GET", "`GET` is not an option"),
            ("SET k v NX PX 5 EX 5", "`EX` is not an option"),
            ("SET k v NX PX", "`PX` is not an option"),
            ("SET k v KEEPTTL NX", "`KEEPTTL` is not an option"),
            ("SET k v NX PX 0", "from 1 on"),
            ("SET k v NX PX -5", "`-5` is not a time"),
            ("SET k v NX PX 1.5", "whole number of milliseconds"),
            ("SET k", "write SET key value NX PX milliseconds"),
            ("EXPIRE k", "write EXPIRE key seconds"),
            ("EXPIRE k 5 NX", "write EXPIRE key seconds"),
            ("GET", "write GET key"),
            ("SELECT 16", "from 0 to 15"),
            ("SELECT x", "from 0 to 15"),
            ("EVAL x 3 a b", "`3` is not the number of keys: 2"),
            ("EVAL x -1", "`-1` is not the number"),
            ("HELLO x", "write HELLO"),
            ("HELLO 3 AUTH me", "write HELLO"),
            ("CLIENT KILL", "write CLIENT ID"),
            ("GTE k", "did you mean GET?"),
            ("LPUSH k v", "keeps locks and no other data"),
            ("FLUSHALL", "docs/redis.md"),
        ] {
            let why = read(line).unwrap_err();
            assert!(why.contains(part), "{line}: {why}");
        }
    }

    #[test]
    fn clients_begin_in_several_ways() {
        let named = |user: Option<&str>| {
            let user = user.map(|user| user.as_bytes().to_vec());
            Some(Credentials { user, token: b"secret".to_vec() })
        };
        for (line, version, credentials) in [
            ("HELLO", None, None),
            ("HELLO 3", Some(3), None),
            ("HELLO 9", Some(9), None),
            ("HELLO 3 AUTH ci secret SETNAME x", Some(3), named(Some("ci"))),
            ("HELLO 2 SETNAME x AUTH default secret", Some(2), named(None)),
        ] {
            assert_eq!(read(line), Ok(Command::Hello(Hello { version, credentials })));
        }
        let shown = format!("{:?}", read("AUTH ci secret"));
        assert!(!shown.contains("secret"), "{shown}");
    }

    #[test]
    fn each_database_has_names_of_its_own() {
        assert_eq!(lock(0, b"a/b").unwrap().as_str(), "a/b");
        assert_eq!(lock(3, b"a/b").unwrap().as_str(), "db3/a/b");
        assert!(lock(0, b"").unwrap_err().contains("must not be empty"));
        assert!(lock(0, b"\xff").unwrap_err().contains("not UTF-8"));
        assert!(lock(0, b"a\nb").unwrap_err().contains("control character"));
        assert!(lock(9, &[b'x'; 200]).unwrap_err().contains("200 bytes"));
    }

    #[test]
    fn every_command_of_the_list_is_known_by_its_name() {
        for (name, _) in USAGE {
            if let Err(why) = read(name) {
                assert!(why.contains(&format!("arguments of {name}")), "{why}");
            }
        }
        assert!(USAGE.is_sorted());
    }

    proptest! {
        #[test]
        fn any_arguments_are_no_trouble(
            first in prop::sample::select(USAGE.map(|(name, _)| name).to_vec()),
            rest in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..6),
        ) {
            let arguments = std::iter::once(first.as_bytes().to_vec()).chain(rest);
            let _ = command(arguments.collect());
        }
    }
}
