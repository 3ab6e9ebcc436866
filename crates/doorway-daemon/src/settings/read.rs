//! Turns a text into settings, or into a list of everything that is wrong with it.

use std::path::{Path, PathBuf};

use doorway_node::members::RULES_LIMIT;
use doorway_node::{Arrangement, Config, LockRules, MemberConfig, RuleConfig};
use doorway_protocol::nearest::nearest;
use doorway_protocol::{LABEL, Scope, is_label};
use doorway_sessions::principal::{Right, Rights};

use super::check::{self, Lines, LockLine};
use super::document::{Diagnostics, Section, SourceValue, shown};
use super::files::{self, Tls, beside};
use super::members::{MembersSettings, members};
use super::mistake::Mistakes;
use super::table::{LIMITS, TOP};
use super::value;
use super::{ClientSettings, DATA, Limits, Overrides, Settings, Socket};

pub(super) fn settings(
    text: &str,
    file: &Path,
    overrides: &Overrides,
) -> Result<Settings, Mistakes> {
    let diagnostics = Diagnostics::new(text);
    let table = diagnostics.parse(text);
    let top = Section::new(&diagnostics, table.get_ref(), &table.span(), &TOP);
    let made = all(&top, file, overrides);
    let all = diagnostics.into_mistakes();
    if all.is_empty() {
        return Ok(made);
    }
    Err(Mistakes { file: Some(file.display().to_string()), all })
}

/// Read the rules for locks, and nothing else of the file.
pub(super) fn rules_only(text: &str, file: &Path) -> Result<LockRules, Mistakes> {
    let diagnostics = Diagnostics::new(text);
    let table = diagnostics.parse(text);
    let top = Section::new(&diagnostics, table.get_ref(), &table.span(), &TOP);
    let (mut config, mut lines) = (Config::default(), Lines::default());
    if let Some(SourceValue { line, value }) = top.text("algorithm") {
        (config.algorithm, lines.algorithm) = (value, line);
    }
    rules(&top, &mut config, &mut lines);
    check::node(&diagnostics, &config, true, &lines);
    let rules = config.lock_rules();
    let bytes = rules.tables().bytes();
    if bytes > RULES_LIMIT {
        let what = format!("the rules have {bytes} bytes, of which {RULES_LIMIT} are allowed");
        diagnostics.wrong(None, what, "let fewer patterns match more names");
    }
    let all = diagnostics.into_mistakes();
    if all.is_empty() {
        return Ok(rules);
    }
    Err(Mistakes { file: Some(file.display().to_string()), all })
}

fn all(top: &Section<'_, '_>, file: &Path, overrides: &Overrides) -> Settings {
    let tls_table = top.table("tls");
    let tls = files::tls(file, &tls_table);
    let has_tls = tls_table.is_there();
    let limits_table = top.table("limits");
    let (mut node, lines, members) = node(top, file, overrides, tls.as_ref(), has_tls);
    node.outstanding = limits_table.count("outstanding") as usize;
    node.keep_idle = limits_table.count("idle_locks") as usize;
    check::node(top.diagnostics, &node, members.is_some(), &lines);
    if let Some(tls) = &tls
        && is_label(&node.me)
        && is_label(&node.group)
    {
        files::check_tls(top.diagnostics, tls, &node.me, &node.group);
    }
    let clients = clients(top, file);
    let (http, redis) = (top.table("http"), top.table("redis"));
    Settings {
        source: None,
        scope: if node.members.len() > 1 || members.is_some() {
            Scope::Cluster
        } else {
            Scope::Machine
        },
        node,
        members,
        socket: unix(top, file, overrides),
        sessions: door(&top.table("sessions"), has_tls, &clients),
        http: door(&http, has_tls, &clients),
        redis: door(&redis, has_tls, &clients),
        redlock: redis.is_there() && redis.switch("redlock"),
        etcd: door(&top.table("etcd"), has_tls, &clients),
        hosts: hosts(&http),
        page: http.is_there() && http.switch("page"),
        clients,
        tls: tls.map(|tls| tls.files),
        limits: limits(&limits_table),
        drain: top.time("drain").unwrap_or_default(),
        idle_stop: overrides.idle_stop.or(top.time("idle_stop")),
        wall_clock: std::time::SystemTime::now,
    }
}

fn node(
    top: &Section<'_, '_>,
    file: &Path,
    overrides: &Overrides,
    tls: Option<&Tls>,
    has_tls: bool,
) -> (Config, Lines, Option<MembersSettings>) {
    let mut config = Config::default();
    let mut lines = Lines { tls: has_tls, ..Lines::default() };
    let text = |key: &str, line: &mut Option<usize>| {
        let SourceValue { line: at, value } = top.text(key)?;
        *line = at;
        Some(value)
    };
    config.group = text("group", &mut lines.group).unwrap_or(config.group);
    let is_fixed = fixed_members(top, &mut config, &mut lines);
    match text("node", &mut lines.node) {
        Some(me) => {
            if lines.members.is_empty() {
                config.members[0].name.clone_from(&me);
                lines.members.extend(lines.node.map(|line| (me.clone(), line)));
            }
            config.me = me;
        }
        // The only member is this node, whatever its name is.
        None if config.members.len() == 1 => config.me.clone_from(&config.members[0].name),
        None => {}
    }
    config.algorithm = text("algorithm", &mut lines.algorithm).unwrap_or(config.algorithm);
    rules(top, &mut config, &mut lines);
    config.handovers = top.count("handovers") as u32;
    let path = |key: &str| top.text(key).map(|at| beside(file, &at.value));
    config.data = overrides.data.clone().or(path("data"));
    let agreed = members(top, file, &mut config, is_fixed);
    if config.data.is_none() && config.members.len() == 1 {
        // Without a directory fences would begin anew, and former holders would be forgotten.
        // Members of a group must name theirs, because several may share a machine.
        config.data = Some(PathBuf::from(DATA));
    }
    config.record = path("record");
    config.tls = tls.map(|tls| tls.config.clone());
    let table = top.table("links");
    lines.links = table.line;
    config.heartbeat = table.time("heartbeat").unwrap_or(config.heartbeat);
    config.silence = table.time("silence").unwrap_or(config.silence);
    (config, lines, agreed)
}

/// Read every `[[member]]`. False if the file has none.
fn fixed_members(top: &Section<'_, '_>, config: &mut Config, lines: &mut Lines) -> bool {
    let sections = top.tables("member");
    let several = sections.len() > 1;
    let mut members = Vec::new();
    for section in sections {
        let name = section.text("name");
        let address =
            if several { section.required_text("address") } else { section.text("address") };
        if let Some(SourceValue { line, value }) = &address
            && let Err(why) = value::address(value)
        {
            let what = format!("`address` is \"{}\": {why}", shown(value));
            top.diagnostics.wrong(*line, what, "write host:port, as \"a.example:7001\"");
        }
        let Some(name) = name else { continue };
        lines.members.extend(name.line.map(|line| (name.value.clone(), line)));
        let address = address.map(|at| at.value).unwrap_or_default();
        members.push(MemberConfig { name: name.value, address });
    }
    if members.is_empty() {
        return false;
    }
    config.members = members;
    true
}

fn rules(top: &Section<'_, '_>, config: &mut Config, lines: &mut Lines) {
    for section in top.tables("lock") {
        let names = section.text("names");
        let permits = section.count("permits") as u32;
        let algorithm = section.text("algorithm");
        let (arrangement, arranged) = arrangement(&section);
        let inherited = algorithm.is_none() && permits == 1 && arrangement.is_default();
        // Only one algorithm serves permits, so it need not be named.
        let default = if permits > 1 { "raymond-k" } else { &config.algorithm };
        let algorithm_line = algorithm.as_ref().and_then(|at| at.line);
        let algorithm = algorithm.map_or_else(|| default.to_owned(), |at| at.value);
        let Some(SourceValue { line, value: pattern }) = names else { continue };
        if pattern.starts_with('%') {
            let what = format!("names that begin with `%` belong to the node: `{pattern}`");
            top.diagnostics.wrong(line, what, "begin the name with another character");
        }
        lines.locks.push(LockLine {
            pattern: pattern.clone(),
            line,
            algorithm: algorithm_line,
            arrangement: arranged,
            inherited,
        });
        config.rules.push(RuleConfig { pattern, algorithm, permits, arrangement });
    }
}

/// How a `[[lock]]` arranges the members, and the line of each key that says so.
fn arrangement(section: &Section<'_, '_>) -> (Arrangement, Vec<(&'static str, Option<usize>)>) {
    let (mut arrangement, mut lines) = (Arrangement::default(), Vec::new());
    for key in Arrangement::KEYS {
        let Some(SourceValue { line, value }) = section.text_or_count(key) else { continue };
        lines.push((key, line));
        if let Err(why) = arrangement.set(key, &value) {
            let (what, remedy) = why.split_once("; ").unwrap_or((&why, ""));
            section.diagnostics.wrong(line, format!("`{key}`: {what}"), remedy);
        }
    }
    (arrangement, lines)
}

fn unix(top: &Section<'_, '_>, file: &Path, overrides: &Overrides) -> Option<Socket> {
    let mode = top.mode("socket_mode");
    let SourceValue { line, value: name } = match (&overrides.socket, top.text("socket")) {
        (Some(name), _) => SourceValue { line: None, value: name.clone() },
        (None, named) => named?,
    };
    let relative = line.is_some() && !name.starts_with('@') && !name.contains("://");
    let whole = if relative { beside(file, &name).display().to_string() } else { name.clone() };
    match socket(&whole, mode) {
        Ok(socket) => Some(socket),
        Err((what, remedy)) => {
            let what = format!("\"{}\" cannot be a socket: {what}", shown(&name));
            top.diagnostics.wrong(line, what, remedy);
            None
        }
    }
}

/// A Unix socket by its name: a path, or `@name` for an abstract one.
pub(super) fn socket(name: &str, mode: u32) -> Result<Socket, (String, &'static str)> {
    let remedy = "write a path, or @name for a socket that is not a file";
    if name.contains('\0') || name.is_empty() || name == "@" {
        return Err(("it is not a name".to_owned(), remedy));
    }
    if name.contains("://") {
        let remedy = "for sessions over TCP, set `listen` under [sessions]";
        return Err(("it is not a Unix socket".to_owned(), remedy));
    }
    // The system reserves 108 bytes for the name, one of them for a zero byte.
    if name.len() > 107 {
        let what = format!("it has {} bytes, of which 107 are allowed", name.len());
        return Err((what, "choose a shorter path"));
    }
    Ok(match name.strip_prefix('@') {
        Some(name) => Socket::Abstract(name.to_owned()),
        None => Socket::File(PathBuf::from(name), mode),
    })
}

/// The address at which to listen on TCP. That needs certificates, and clients that may connect.
fn door(section: &Section<'_, '_>, tls: bool, clients: &[ClientSettings]) -> Option<String> {
    let SourceValue { line, value } = section.text("listen")?;
    if let Err(why) = value::address(&value) {
        let what = format!("`listen` is \"{}\": {why}", shown(&value));
        section.diagnostics.wrong(line, what, "write host:port, as \"0.0.0.0:7002\"");
    }
    if !tls {
        let remedy = "add [tls] with `ca`, `certificate` and `key`; `doorway ca` makes them";
        section.diagnostics.wrong(line, "listening on TCP needs certificates", remedy);
    }
    if clients.is_empty() {
        let remedy = "add [[client]] with `name` and `rights` for each client";
        section.diagnostics.wrong(line, "no client may connect over TCP", remedy);
    }
    Some(value)
}

fn hosts(section: &Section<'_, '_>) -> Vec<String> {
    let mut hosts = Vec::new();
    for SourceValue { line, value } in section.texts("hosts") {
        let odd = |c: char| !(c.is_ascii_alphanumeric() || "-.".contains(c));
        if value.is_empty() || value.contains(odd) {
            let what = format!("\"{}\" is not the name of a host", shown(&value));
            section.diagnostics.wrong(
                line,
                what,
                "write names without a port, as \"locks.example\"",
            );
        }
        hosts.push(value.to_ascii_lowercase());
    }
    hosts
}

fn clients(top: &Section<'_, '_>, file: &Path) -> Vec<ClientSettings> {
    let mut clients: Vec<ClientSettings> = Vec::new();
    for section in top.tables("client") {
        let name = section.text("name");
        let token = token(&section, file);
        let rights = rights(&section);
        let Some(SourceValue { line, value: name }) = name else { continue };
        if !is_label(&name) {
            let what = format!("`{}` cannot be the name of a client", shown(&name));
            top.diagnostics.wrong(line, what, format!("use {LABEL}"));
        }
        if clients.iter().any(|other| other.name == name) {
            let what = format!("client `{name}` is listed twice");
            top.diagnostics.wrong(line, what, "put all its rights into one of the two");
        }
        if token.is_some() && clients.iter().any(|other| other.token == token) {
            let what = format!("client `{name}` has the token of another client");
            top.diagnostics.wrong(line, what, "give each client a token of its own");
        }
        clients.push(ClientSettings { name, token, rights });
    }
    clients
}

fn token(section: &Section<'_, '_>, file: &Path) -> Option<[u8; 32]> {
    let (named, hash) = (section.text("token_file"), section.text("token_sha256"));
    if let (Some(_), Some(hash)) = (&named, &hash) {
        let what = "a client has one token, in `token_file` or as `token_sha256`";
        section.diagnostics.wrong(hash.line, what, "remove one of the two");
    }
    if let Some(SourceValue { line, value }) = named {
        return files::token(section.diagnostics, line, &beside(file, &value));
    }
    let SourceValue { line, value } = hash?;
    let hash = value::sha256(&value);
    if hash.is_none() {
        let what = format!("`token_sha256` is \"{}\"", shown(&value));
        let remedy = "it has to be 64 hexadecimal digits, as sha256sum prints them";
        section.diagnostics.wrong(line, what, remedy);
    }
    hash
}

fn rights(section: &Section<'_, '_>) -> Rights {
    let mut rights = Rights::default();
    let sections = section.tables("rights");
    if sections.is_empty() && section.has("rights") {
        let remedy = "add { names = \"deploy/*\", may = [\"acquire\", \"inspect\"] } to `rights`";
        section.diagnostics.wrong(section.line, "a client without rights may do nothing", remedy);
    }
    for each in sections {
        let names = each.text("names");
        let mut may: Vec<Right> = Vec::new();
        for SourceValue { line, value } in each.texts("may") {
            if let Some(right) = value::right(&value) {
                may.push(right);
                continue;
            }
            let names = value::RIGHTS.map(|(name, _)| name);
            let remedy = match nearest(&value, names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the rights are {}", names.join(", ")),
            };
            section.diagnostics.wrong(
                line,
                format!("there is no right `{}`", shown(&value)),
                remedy,
            );
        }
        let Some(SourceValue { line, value }) = names else { continue };
        match value::allowed(&value, may) {
            Ok(allowed) => rights.0.push(allowed),
            Err(why) => {
                let what = format!("`{}` matches no names: {why}", shown(&value));
                section.diagnostics.wrong(
                    line,
                    what,
                    "write a whole name, or a prefix followed by `*`",
                );
            }
        }
    }
    rights
}

fn limits(section: &Section<'_, '_>) -> Limits {
    let count = |key: &str| section.count(key) as usize;
    Limits {
        sessions: count("sessions"),
        connections: count("connections"),
        grants: count("grants"),
        waiting: count("waiting"),
        queue: count("queue"),
        ttl: section.time("ttl").unwrap_or_default(),
        terraform_ttl: section.time("terraform_ttl").unwrap_or_default(),
        endless: section.switch("endless"),
        files: usize::MAX,
    }
}

/// The limits of clients, if the file says nothing about them.
pub fn default_limits() -> Limits {
    limits(&Section::absent(&Diagnostics::default(), &LIMITS))
}
