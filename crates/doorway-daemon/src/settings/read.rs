//! A text becomes settings, or a list of all that is wrong with it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use doorway_node::{Config, MemberConfig, RuleConfig};
use doorway_protocol::{LABEL, Scope, is_label};

use super::check::{self, Lines, LockLine};
use super::document::{At, Book, Section, shown};
use super::files::{self, Tls, beside};
use super::keys::{self, nearest};
use super::mistake::Mistakes;
use super::value;
use super::{DATA, Known, Limits, Overrides, SOCKET, Settings, Socket};
use crate::principal::{Right, Rights};

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_hours(24);

/// Who may use the node of a machine, unless the file says otherwise: its user and its group.
const SOCKET_MODE: u32 = 0o660;

/// How long a service that stops waits for its clients, unless the file says otherwise.
const DRAIN: Duration = Duration::from_secs(10);

/// So many permits or members nobody needs.
const MANY: u64 = 16_777_216;

pub(super) fn settings(
    text: &str,
    file: &Path,
    overrides: &Overrides,
) -> Result<Settings, Mistakes> {
    let mut book = Book::new(text);
    let table = book.parse(text);
    let top = Section::new(&mut book, table.get_ref(), &table.span(), &keys::TOP);
    let made = all(&mut book, &top, file, overrides);
    if book.mistakes.is_empty() {
        return Ok(made);
    }
    let mut all = book.mistakes;
    all.sort_by_key(|mistake| mistake.line.unwrap_or(usize::MAX));
    Err(Mistakes { file: Some(file.display().to_string()), all })
}

fn all(book: &mut Book, top: &Section<'_, '_>, file: &Path, overrides: &Overrides) -> Settings {
    let tls_table = top.table(book, "tls", &keys::TLS);
    let tls = tls_table.as_ref().and_then(|section| files::tls(book, file, section));
    let has_tls = tls_table.is_some();
    let (mut node, lines) = node(book, top, file, overrides, tls.as_ref(), has_tls);
    let limits = limits(book, top, &mut node);
    check::node(book, &node, &lines);
    if let Some(tls) = &tls
        && is_label(&node.me)
        && is_label(&node.group)
    {
        files::check_tls(book, tls, &node.me, &node.group);
    }
    let clients: Vec<Known> = clients(book, top, file);
    let sessions = top.table(book, "sessions", &keys::SESSIONS);
    let sessions = sessions.and_then(|section| door(book, &section, has_tls, &clients));
    let http = top.table(book, "http", &keys::HTTP);
    let hosts = http.as_ref().map(|section| hosts(book, section)).unwrap_or_default();
    let http = http.and_then(|section| door(book, &section, has_tls, &clients));
    let idle = top.time(book, "idle_stop", SECOND..=365 * DAY);
    Settings {
        scope: if node.members.len() > 1 { Scope::Cluster } else { Scope::Machine },
        node,
        socket: unix(book, top, file, overrides),
        sessions,
        http,
        hosts,
        clients,
        tls: tls.map(|tls| tls.files),
        limits,
        drain: top.time(book, "drain", Duration::ZERO..=DAY).map_or(DRAIN, |at| at.value),
        idle_stop: overrides.idle_stop.or(idle.map(|at| at.value)),
    }
}

fn node(
    book: &mut Book,
    top: &Section<'_, '_>,
    file: &Path,
    overrides: &Overrides,
    tls: Option<&Tls>,
    has_tls: bool,
) -> (Config, Lines) {
    let mut config = Config::default();
    let mut lines = Lines { tls: has_tls, ..Lines::default() };
    let text = |book: &mut Book, key: &str, wanted: &str, line: &mut Option<usize>| {
        let At { line: at, value } = top.text(book, key, wanted)?;
        *line = Some(at);
        Some(value)
    };
    let group = text(book, "group", "the name of the group", &mut lines.group);
    config.group = group.unwrap_or(config.group);
    members(book, top, &mut config, &mut lines);
    let me = text(book, "node", "the name of this node", &mut lines.node);
    match me {
        Some(me) => {
            if lines.members.is_empty() {
                config.members[0].name.clone_from(&me);
                lines.members.extend(lines.node.map(|line| (me.clone(), line)));
            }
            config.me = me;
        }
        // The only member is this node, whatever it is called.
        None if config.members.len() == 1 => config.me.clone_from(&config.members[0].name),
        None => {}
    }
    let algorithm = text(book, "algorithm", "the name of an algorithm", &mut lines.algorithm);
    config.algorithm = algorithm.unwrap_or(config.algorithm);
    rules(book, top, &mut config, &mut lines);
    let handovers = top.count(book, "handovers", 0..=u64::from(u32::MAX));
    config.handovers = handovers.map_or(config.handovers, |at| at.value as u32);
    let path = |book: &mut Book, key: &str, wanted: &str| {
        top.text(book, key, wanted).map(|at| beside(file, &at.value))
    };
    config.data = path(book, "data", "a directory");
    config.data = overrides.data.clone().or(config.data);
    if config.data.is_none() && config.members.len() == 1 {
        // Without one, fences would begin anew and former holders be forgotten. In a group it is
        // named, for members may share a machine.
        config.data = Some(PathBuf::from(DATA));
    }
    config.record = path(book, "record", "a file");
    config.tls = tls.map(|tls| tls.config.clone());
    if let Some(links) = top.table(book, "links", &keys::LINKS) {
        lines.links = Some(links.line);
        let range = Duration::from_millis(10)..=DAY;
        let heartbeat = links.time(book, "heartbeat", range.clone());
        config.heartbeat = heartbeat.map_or(config.heartbeat, |at| at.value);
        let silence = links.time(book, "silence", range);
        config.silence = silence.map_or(config.silence, |at| at.value);
    }
    (config, lines)
}

fn members(book: &mut Book, top: &Section<'_, '_>, config: &mut Config, lines: &mut Lines) {
    let sections = top.tables(book, "member", &keys::MEMBER);
    let several = sections.len() > 1;
    let mut members = Vec::new();
    for section in sections {
        let name = section.needed(book, "name", "what its certificate proves");
        let address = if several {
            section.needed(book, "address", "where the others find it, as \"a.example:7001\"")
        } else {
            section.text(book, "address", "where the others find it, as \"a.example:7001\"")
        };
        if let Some(At { line, value }) = &address
            && let Err(why) = value::address(value)
        {
            let what = format!("`address` is \"{}\": {why}", shown(value));
            book.wrong(*line, what, "write host:port, as \"a.example:7001\"");
        }
        let Some(name) = name else { continue };
        lines.members.push((name.value.clone(), name.line));
        let address = address.map(|at| at.value).unwrap_or_default();
        members.push(MemberConfig { name: name.value, address });
    }
    if !members.is_empty() {
        config.members = members;
    }
}

fn rules(book: &mut Book, top: &Section<'_, '_>, config: &mut Config, lines: &mut Lines) {
    for section in top.tables(book, "lock", &keys::LOCK) {
        let names = section.needed(book, "names", "a name, or a beginning and `*`");
        let permits = section.count(book, "permits", 1..=MANY).map_or(1, |at| at.value as u32);
        let algorithm = section.text(book, "algorithm", "the name of an algorithm");
        let inherited = algorithm.is_none() && permits == 1;
        // Permits are served by one algorithm alone, so it need not be named.
        let default = if permits > 1 { "raymond-k" } else { &config.algorithm };
        let algorithm = algorithm.map_or_else(|| default.to_owned(), |at| at.value);
        let Some(names) = names else { continue };
        if names.value.starts_with('%') {
            let what = format!("names that begin with `%` are the node's own: `{}`", names.value);
            book.wrong(names.line, what, "begin with something else");
        }
        lines.locks.push(LockLine { pattern: names.value.clone(), line: names.line, inherited });
        config.rules.push(RuleConfig { pattern: names.value, algorithm, permits });
    }
}

fn unix(
    book: &mut Book,
    top: &Section<'_, '_>,
    file: &Path,
    overrides: &Overrides,
) -> Option<Socket> {
    let mode = top.mode(book, "socket_mode").map_or(SOCKET_MODE, |at| at.value);
    let named = top.text(book, "socket", "a path, or @name");
    let (line, name) = match (&overrides.socket, named) {
        (Some(name), _) => (None, name.clone()),
        (None, Some(At { line, value })) => (Some(line), value),
        (None, None) => return Some(Socket::File(PathBuf::from(SOCKET), mode)),
    };
    let relative = line.is_some() && !name.starts_with('@') && !name.contains("://");
    let whole = if relative { beside(file, &name).display().to_string() } else { name.clone() };
    match socket(&whole, mode) {
        Ok(socket) => Some(socket),
        Err((what, remedy)) => {
            book.wrong(line, format!("no socket can be \"{}\": {what}", shown(&name)), remedy);
            None
        }
    }
}

/// A Unix socket by its name: a path, or `@name` for one that is no file.
pub(super) fn socket(name: &str, mode: u32) -> Result<Socket, (String, &'static str)> {
    let remedy = "write a path, or @name for a socket that is no file";
    if name.contains('\0') || name.is_empty() || name == "@" {
        return Err(("that is no name".to_owned(), remedy));
    }
    if name.contains("://") {
        let remedy = "sessions over TCP come in at `listen` under [sessions]";
        return Err(("that is no Unix socket".to_owned(), remedy));
    }
    // The system keeps 108 bytes for it, one of them for the end or the beginning.
    if name.len() > 107 {
        let what = format!("it has {} bytes, of which 107 are allowed", name.len());
        return Err((what, "choose a shorter path"));
    }
    Ok(match name.strip_prefix('@') {
        Some(name) => Socket::Abstract(name.to_owned()),
        None => Socket::File(PathBuf::from(name), mode),
    })
}

/// Where a door on TCP listens. It needs certificates, and clients that may come in.
fn door(
    book: &mut Book,
    section: &Section<'_, '_>,
    tls: bool,
    clients: &[Known],
) -> Option<String> {
    let At { line, value } = section.needed(book, "listen", "host:port, as \"0.0.0.0:7002\"")?;
    if let Err(why) = value::address(&value) {
        let what = format!("`listen` is \"{}\": {why}", shown(&value));
        book.wrong(line, what, "write host:port, as \"0.0.0.0:7002\"");
    }
    if !tls {
        let remedy = "add [tls] with `ca`, `certificate` and `key`; `doorway ca` makes them";
        book.wrong(line, "a door on TCP needs certificates", remedy);
    }
    if clients.is_empty() {
        let remedy = "add [[client]] with `name` and `rights`; nobody else may come in over TCP";
        book.wrong(line, "a door on TCP that nobody may use", remedy);
    }
    Some(value)
}

fn hosts(book: &mut Book, section: &Section<'_, '_>) -> Vec<String> {
    let mut hosts = Vec::new();
    for At { line, value } in section.texts(book, "hosts", "a list of names of this host") {
        let odd = |c: char| !(c.is_ascii_alphanumeric() || "-.".contains(c));
        if value.is_empty() || value.contains(odd) {
            let what = format!("no host is called \"{}\"", shown(&value));
            book.wrong(line, what, "write names without port, as \"locks.example\"");
        }
        hosts.push(value.to_ascii_lowercase());
    }
    hosts
}

fn clients(book: &mut Book, top: &Section<'_, '_>, file: &Path) -> Vec<Known> {
    let mut clients: Vec<Known> = Vec::new();
    for section in top.tables(book, "client", &keys::CLIENT) {
        let name = section.needed(book, "name", "what people call it, as \"ci\"");
        let token = token(book, &section, file);
        let rights = rights(book, &section);
        let Some(At { line, value: name }) = name else { continue };
        if !is_label(&name) {
            book.wrong(
                line,
                format!("no client can be called `{}`", shown(&name)),
                format!("use {LABEL}"),
            );
        }
        if clients.iter().any(|other| other.name == name) {
            let what = format!("client `{name}` is listed twice");
            book.wrong(line, what, "put all its rights into one of the two");
        }
        if token.is_some() && clients.iter().any(|other| other.token == token) {
            let what = format!("client `{name}` has the token of another one");
            book.wrong(line, what, "give each client a token of its own");
        }
        clients.push(Known { name, token, rights });
    }
    clients
}

fn token(book: &mut Book, section: &Section<'_, '_>, file: &Path) -> Option<[u8; 32]> {
    let named = section.text(book, "token_file", "a file that holds the token");
    let hash = section.text(book, "token_sha256", "64 hexadecimal digits");
    if let (Some(_), Some(hash)) = (&named, &hash) {
        let what = "a client has one token, in `token_file` or as `token_sha256`";
        book.wrong(hash.line, what, "remove one of the two");
    }
    if let Some(At { line, value }) = named {
        return files::token(book, line, &beside(file, &value));
    }
    let At { line, value } = hash?;
    let hash = value::sha256(&value);
    if hash.is_none() {
        let what = format!("`token_sha256` is \"{}\"", shown(&value));
        book.wrong(line, what, "it has to be 64 hexadecimal digits, as sha256sum prints them");
    }
    hash
}

fn rights(book: &mut Book, section: &Section<'_, '_>) -> Rights {
    let mut rights = Rights::default();
    let sections = section.tables(book, "rights", &keys::RIGHT);
    if sections.is_empty() {
        let remedy = "add rights = [{ names = \"deploy/*\", may = [\"acquire\", \"inspect\"] }]";
        book.wrong(section.line, "a client without rights may do nothing", remedy);
    }
    for each in sections {
        let names = each.needed(book, "names", "a name, or a beginning and `*`");
        let mut may: Vec<Right> = Vec::new();
        let wanted = "a list of \"acquire\", \"inspect\" and \"break\"";
        for At { line, value } in each.texts(book, "may", wanted) {
            if let Some(right) = value::right(&value) {
                may.push(right);
                continue;
            }
            let names = value::RIGHTS.map(|(name, _)| name);
            let remedy = match nearest(&value, names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", names.join(", ")),
            };
            book.wrong(line, format!("there is no right `{}`", shown(&value)), remedy);
        }
        let Some(At { line, value }) = names else { continue };
        match value::allowed(&value, may) {
            Ok(allowed) => rights.0.push(allowed),
            Err(why) => {
                let what = format!("no names fit `{}`: {why}", shown(&value));
                book.wrong(line, what, "write a whole name, or a beginning and `*`");
            }
        }
    }
    rights
}

fn limits(book: &mut Book, top: &Section<'_, '_>, node: &mut Config) -> Limits {
    let mut limits = Limits::default();
    let Some(section) = top.table(book, "limits", &keys::LIMITS) else { return limits };
    let idle = section.count(book, "idle_locks", 0..=1 << 30);
    node.keep_idle = idle.map_or(node.keep_idle, |at| at.value as usize);
    for (key, limit) in [
        ("outstanding", &mut node.outstanding),
        ("sessions", &mut limits.sessions),
        ("connections", &mut limits.connections),
        ("grants", &mut limits.grants),
        ("waiting", &mut limits.waiting),
        ("queue", &mut limits.queue),
    ] {
        *limit = section.count(book, key, 1..=1 << 30).map_or(*limit, |at| at.value as usize);
    }
    let ttl = section.time(book, "ttl", SECOND..=DAY);
    limits.ttl = ttl.map_or(limits.ttl, |at| at.value);
    limits
}
