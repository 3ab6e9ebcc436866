//! Which lines of an algorithm's files carry out a step.
//!
//! A message is followed from `receive` to the arms of a `match` that name its kind, through every
//! function that is called on the way. Lines that send or enter are found by their words.

use std::collections::{BTreeMap, BTreeSet};

use super::parts::File;

/// Lines of a file: the number of the file, and the first and the last line, counted from 1.
pub type Span = (usize, usize, usize);

/// A line: the number of its file, and its number there.
pub type Place = (usize, usize);

/// What a step does that a reader wants to find in the code.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Effect {
    /// The node enters.
    Enter,
    /// The node sends a message of this kind.
    Send(String),
}

/// Where a message of one kind goes.
#[derive(Default)]
struct Way {
    seen: BTreeSet<Span>,
    /// The functions that handle it, or lead to one that does.
    found: BTreeSet<Span>,
    arms: BTreeSet<Span>,
    /// What follows the arms, or the calls that lead to them.
    tails: BTreeSet<Span>,
}

/// A part of the code with at most this many lines is little more than a call.
const SHORT: usize = 6;

/// A function with a body.
#[derive(Clone, Debug)]
struct Function {
    name: &'static str,
    span: Span,
    /// The type and the trait whose function it is; none if it is a free function.
    owners: Vec<&'static str>,
}

/// The files of an algorithm, and their functions.
#[derive(Clone, Debug)]
pub(super) struct Code {
    lines: Vec<Vec<&'static str>>,
    functions: Vec<Function>,
    kinds: Vec<String>,
    /// The functions that are called in each line of each file.
    called: Vec<Vec<Vec<Span>>>,
    /// The arms of each function for each kind of message, in capital letters.
    arms: BTreeMap<(Span, String), Vec<Span>>,
    /// The kinds of messages that each line of each file sends.
    sent: Vec<Vec<Vec<String>>>,
    /// The functions through which a message comes from `receive` to the arms for its kind.
    dispatchers: BTreeSet<Span>,
    /// The file of the variant itself, whose functions come before those of the file it varies.
    own: usize,
}

impl Code {
    /// The code in these files. The first has the handlers; `own` is the file of the algorithm.
    pub(super) fn read(files: &[File], own: &str, kinds: Vec<String>) -> Self {
        let lines: Vec<Vec<&str>> = files.iter().map(|(_, text)| text.lines().collect()).collect();
        let functions = lines.iter().enumerate().flat_map(|(file, lines)| functions(file, lines));
        let functions = functions.collect();
        let own = files.iter().position(|(path, _)| *path == own).unwrap_or(0);
        let mut code = Self {
            lines,
            functions,
            kinds,
            called: Vec::new(),
            arms: BTreeMap::new(),
            sent: Vec::new(),
            dispatchers: BTreeSet::new(),
            own,
        };
        let numbered = |file: usize| 1..=code.lines[file].len();
        let files = || 0..code.lines.len();
        let called = |file| numbered(file).map(|at| code.calls_in(file, at)).collect();
        let called = files().map(called).collect();
        let each = code.functions.iter().flat_map(|function| {
            let of = |kind: &String| {
                let arms = code.find_arms(function.span, kind);
                ((function.span, kind.to_uppercase()), arms)
            };
            code.kinds.iter().map(of).collect::<Vec<_>>()
        });
        let arms = each.collect();
        (code.called, code.arms) = (called, arms);
        let mut dispatchers: BTreeSet<Span> = code.handler("receive").into_iter().collect();
        for kind in &code.kinds {
            let mut way = Way::default();
            if let Some(receive) = code.handler("receive") {
                code.follow(kind, receive, &mut way);
            }
            dispatchers.extend(way.found);
        }
        code.dispatchers = dispatchers;
        let numbered = |file: usize| 1..=code.lines[file].len();
        let sent = |file| numbered(file).map(|at| code.kinds_sent(file, at)).collect();
        code.sent = (0..code.lines.len()).map(sent).collect();
        code
    }

    /// The handler of this name in the first file.
    pub(super) fn handler(&self, name: &str) -> Option<Span> {
        let handles =
            |it: &&Function| it.span.0 == 0 && it.name == name && it.owners.contains(&"Algorithm");
        self.functions.iter().find(handles).map(|it| it.span)
    }

    /// The arms for a message of this kind, wherever they are; and what follows the calls that lead
    /// to them, if that may send or enter.
    pub(super) fn arms(&self, kind: &str) -> (Vec<Span>, Vec<Span>) {
        let mut way = Way::default();
        if let Some(receive) = self.handler("receive") {
            self.follow(kind, receive, &mut way);
        }
        (way.arms.into_iter().collect(), way.tails.into_iter().collect())
    }

    /// These lines and, of those that are little more than a call, the functions that they call.
    pub(super) fn with_called(&self, spans: Vec<Span>) -> Vec<Span> {
        let mut all: BTreeSet<Span> = spans.iter().copied().collect();
        let mut short = spans;
        while let Some(span) = short.pop() {
            if span.2 - span.1 >= SHORT {
                continue;
            }
            for called in self.calls(span) {
                if !self.dispatchers.contains(&called) && all.insert(called) {
                    short.push(called);
                }
            }
        }
        all.into_iter().collect()
    }

    /// The lines among `spans` that have this effect, or else other lines that have it and that are
    /// reached from them.
    pub(super) fn acts(&self, spans: &[Span], effect: &Effect) -> (Vec<Span>, Vec<Place>) {
        for exact in [true, false] {
            let (mut near, mut seen) = (spans.to_vec(), spans.iter().copied().collect());
            while !near.is_empty() {
                let has = |span: &Span| !self.hits(*span, effect, exact).is_empty();
                let found: Vec<Span> = near.iter().copied().filter(has).collect();
                if !found.is_empty() {
                    let hits = found.iter().flat_map(|span| self.hits(*span, effect, exact));
                    let hits = hits.collect::<BTreeSet<Place>>().into_iter().collect();
                    return (found, hits);
                }
                near = self.next(&near, &mut seen);
            }
        }
        (Vec::new(), Vec::new())
    }

    /// What is called in these lines, and what handles the messages that a node sends to itself in
    /// them, without what was seen before.
    fn next(&self, near: &[Span], seen: &mut BTreeSet<Span>) -> Vec<Span> {
        let mut next = Vec::new();
        for span in near {
            let called = self.calls(*span);
            if called.iter().any(|called| self.sends_to_itself(*called)) {
                let sends = |kind: &&String| {
                    let effect = Effect::Send((*kind).clone());
                    !self.hits(*span, &effect, true).is_empty()
                };
                let mut sent: Vec<&String> = self.kinds.iter().filter(sends).collect();
                if sent.is_empty() {
                    sent = self.kinds.iter().collect(); // The line does not say which.
                }
                for kind in sent {
                    let (arms, tails) = self.arms(kind);
                    next.extend(arms.into_iter().chain(tails));
                }
            }
            next.extend(called.into_iter().filter(|called| !self.dispatchers.contains(called)));
        }
        next.retain(|span| seen.insert(*span));
        next
    }

    /// Whether a function handles a message that its node sends to itself.
    fn sends_to_itself(&self, span: Span) -> bool {
        let leads = |called: &Span| self.dispatchers.contains(called);
        self.text(span).contains("= self.me") && self.calls(span).iter().any(leads)
    }

    fn text(&self, (file, from, to): Span) -> String {
        self.lines[file][from - 1..to].join("\n")
    }

    /// Follow a message of this kind into a function, and mark the lines that handle it. Returns
    /// whether there are any.
    fn follow(&self, kind: &str, function: Span, way: &mut Way) -> bool {
        if !way.seen.insert(function) {
            return way.found.contains(&function);
        }
        let (file, from, to) = function;
        let arms = self.arms_in(function, kind);
        let mut found = !arms.is_empty();
        way.arms.extend(arms);
        let others = self.kinds.iter().filter(|other| !other.eq_ignore_ascii_case(kind));
        let others = others.flat_map(|other| self.arms_in(function, other)).copied();
        let others: Vec<Span> = others.filter(|arm| !hands_on(&self.text(*arm))).collect();
        let within = |spans: &[Span], at| spans.iter().any(|span| (span.1..=span.2).contains(&at));
        for at in from + 1..=to {
            if within(&others, at) && !within(arms, at) {
                continue;
            }
            for called in &self.called[file][at - 1] {
                if *called != function && self.follow(kind, *called, way) {
                    let tail = (file, at, self.block_end(file, at, to));
                    found = true;
                    if !within(arms, at) && self.has_effects(tail) {
                        way.tails.insert(tail);
                    }
                }
            }
        }
        // What the arms have found out is acted upon after the `match`.
        if let Some((_, first, last)) = arms.last().copied()
            && !arms.iter().all(|arm| self.returns(*arm))
        {
            let depth = indent(self.lines[file][first - 1]);
            let close = (last..to).find(|at| indent(self.lines[file][*at]) < depth);
            let tail = close.map(|close| (file, close + 2, to - 1));
            way.tails.extend(tail.filter(|tail| tail.1 <= tail.2 && self.has_effects(*tail)));
        }
        if found {
            way.found.insert(function);
        }
        found
    }

    /// Whether an arm ends the function.
    fn returns(&self, (file, from, to): Span) -> bool {
        let last = if to > from { to - 1 } else { to };
        self.lines[file][last - 1].contains("return")
    }

    /// The last line of the block in which a line is.
    fn block_end(&self, file: usize, at: usize, to: usize) -> usize {
        let lines = &self.lines[file];
        let depth = indent(lines[at - 1]);
        let shallower = |at: &usize| !lines[*at].is_empty() && indent(lines[*at]) < depth;
        (at..to).find(shallower).unwrap_or(to)
    }

    /// Whether these lines do something outside the node.
    fn has_effects(&self, (file, from, to): Span) -> bool {
        (from..=to).any(|at| self.is_told(file, at))
    }

    /// Whether a line sends or enters, or calls a function that may, and that is not about which
    /// message has come.
    fn is_told(&self, file: usize, at: usize) -> bool {
        let line = self.lines[file][at - 1];
        let told = ["send", ".enter()", "(out)", ", out)", " out,"].iter();
        let leads = |called: &Span| self.dispatchers.contains(called);
        told.into_iter().any(|word| line.contains(word))
            && !self.called[file][at - 1].iter().any(leads)
    }

    /// The lines of a span that have this effect. Without a kind in the line, it may send any.
    fn hits(&self, span: Span, effect: &Effect, exact: bool) -> Vec<Place> {
        let (file, from, to) = span;
        let hit = |at: &usize| {
            let line = expression(self.lines[file][at - 1]);
            match effect {
                Effect::Enter => exact && line.contains(".enter()"),
                Effect::Send(kind) if exact => self.sent[file][at - 1].contains(kind),
                Effect::Send(_) => {
                    let sends = [".send(", ".send_all(", ".forward("];
                    sends.iter().any(|word| line.contains(word)) && !line.contains("Message::")
                }
            }
        };
        (from..=to).filter(hit).map(|at| (file, at)).collect()
    }

    /// The kinds of the messages that a line makes in a call that sends them.
    fn kinds_sent(&self, file: usize, at: usize) -> Vec<String> {
        let line = expression(self.lines[file][at - 1]);
        let makes = |kind: &&String| {
            let mut words = line.split("::").skip(1).map(word);
            words.any(|word| word == kind.as_str() || self.makes(word, kind))
        };
        let kinds: Vec<String> = self.kinds.iter().filter(makes).cloned().collect();
        if kinds.is_empty() {
            return kinds;
        }
        // The call may have begun some lines before.
        let depth = indent(self.lines[file][at - 1]);
        let mut before = (1..at).rev().take(3);
        let opens = |at: &usize| {
            let line = self.lines[file][at - 1];
            indent(line) < depth && line.ends_with('(')
        };
        let opening = before.find(opens);
        let sends = [Some(at), opening].into_iter().flatten().any(|at| self.is_told(file, at));
        if sends { kinds } else { Vec::new() }
    }

    /// Whether the constructor of this name makes messages of this kind.
    fn makes(&self, constructor: &str, kind: &str) -> bool {
        let named = |it: &&Function| it.name == constructor && it.owners == ["Message"];
        self.functions.iter().filter(named).any(|it| {
            let text = self.text(it.span);
            text.split("=> Self::").skip(1).any(|rest| word(rest) == kind)
        })
    }

    /// The functions of these files that are called in these lines.
    fn calls(&self, span: Span) -> Vec<Span> {
        let (file, from, to) = span;
        let called = self.called[file][from - 1..to].iter().flatten().copied();
        called.filter(|called| *called != span).collect::<BTreeSet<Span>>().into_iter().collect()
    }

    /// The functions of these files that are called in a line.
    fn calls_in(&self, file: usize, at: usize) -> Vec<Span> {
        let line = self.lines[file][at - 1];
        if line.trim_start().starts_with("//") {
            return Vec::new();
        }
        let around = |it: &&Function| it.span.0 == file && (it.span.1..=it.span.2).contains(&at);
        let owners: &[&str] = self.functions.iter().find(around).map_or(&[], |it| &it.owners);
        let mut called = Vec::new();
        for (end, _) in line.match_indices(['(', '<']) {
            let head = line[..end].trim_end_matches("::");
            let name = head.rfind(|c: char| !is_word(c)).map_or(0, |before| before + 1);
            let (before, name) = head.split_at(name);
            if name.starts_with(|c: char| c.is_ascii_lowercase()) {
                called.extend(self.resolve(file, owners, before, name));
            }
        }
        called
    }

    /// The function that a call means, by what stands before its name.
    fn resolve(&self, file: usize, owners: &[&str], before: &str, name: &str) -> Option<Span> {
        let named = self.functions.iter().filter(|it| it.name == name);
        let field = before.strip_suffix('.').and_then(|it| it.rsplit_once("self."));
        let of_self = before.ends_with("self.") || before.ends_with("Self::");
        let found: Vec<&Function> = if before.ends_with("fn ") {
            return None;
        } else if of_self {
            named.filter(|it| it.owners.iter().any(|owner| owners.contains(owner))).collect()
        } else if let Some((_, field)) = field.filter(|(_, field)| field.chars().all(is_word)) {
            let mut types = self.field_types(file, field);
            // What a type does not say itself, its trait says for it.
            let own = |it: &&Function| it.owners.iter().any(|owner| types.contains(owner));
            let traits = self.functions.iter().filter(own).filter_map(|it| it.owners.first());
            let traits: Vec<&str> = traits.copied().filter(|it| *it != "Algorithm").collect();
            types.extend(traits);
            named.filter(|it| it.owners.iter().any(|owner| types.contains(owner))).collect()
        } else if before.ends_with('.') {
            // A part of this file, or the algorithm inside this one.
            let part = |it: &&Function| it.span.0 == file && !it.owners.is_empty();
            let inner = |it: &&Function| it.owners.first() == Some(&"Algorithm");
            named.filter(|it| part(it) || inner(it)).filter(|it| it.owners != owners).collect()
        } else {
            named.filter(|it| it.span.0 == file && it.owners.is_empty()).collect()
        };
        let rank = |it: &&&Function| (it.span.0 != self.own, it.span.0 != file, it.span);
        found.iter().min_by_key(rank).map(|it| it.span)
    }

    /// The types in the declaration of a field.
    fn field_types(&self, file: usize, field: &str) -> Vec<&'static str> {
        let declared = self.lines[file].iter().find_map(|line| {
            let line = line.strip_prefix("    ")?;
            line.trim_start_matches("pub ").strip_prefix(field)?.strip_prefix(": ")
        });
        let names = declared.unwrap_or_default().split(|c: char| !is_word(c));
        names.filter(|name| name.len() > 1).collect()
    }

    /// The arms of a function for a kind of message that do more than reject it.
    fn arms_in(&self, function: Span, kind: &str) -> &[Span] {
        let arms = self.arms.get(&(function, kind.to_uppercase()));
        arms.map_or(&[], Vec::as_slice)
    }

    fn find_arms(&self, (file, from, to): Span, kind: &str) -> Vec<Span> {
        let lines = &self.lines[file];
        let mut found = Vec::new();
        let mut pattern = from;
        for at in from..to {
            let code = lines[at].trim_start();
            if code.starts_with("Message::") {
                pattern = at;
            }
            let continues = code.starts_with("| ") || pattern == at;
            if !continues || !code.contains("=>") {
                continue;
            }
            let text = lines[pattern..=at].join(" ");
            let text = text.split("=>").next().unwrap_or_default();
            let names = text.split("Message::").skip(1);
            if names.into_iter().any(|rest| word(rest).eq_ignore_ascii_case(kind)) {
                found.push((file, pattern + 1, arm_end(lines, at)));
            }
        }
        let rejects = |span: &Span| {
            let text = self.text(*span);
            span.2 - span.1 < 3 && (text.contains("reject(") || text.contains("Err("))
        };
        if found.iter().any(|span| !rejects(span)) {
            found.retain(|span| !rejects(span));
        }
        found
    }
}

/// Whether an arm hands the message within the message on.
fn hands_on(arm: &str) -> bool {
    arm.split("=>").nth(1).is_some_and(|act| act.contains("&message") || act.contains(" message,"))
}

fn is_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// The word with which a text begins.
fn word(text: &str) -> &str {
    &text[..text.find(|c: char| !is_word(c)).unwrap_or(text.len())]
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// A line without the pattern of an arm.
fn expression(line: &'static str) -> &'static str {
    let code = line.trim_start();
    if code.starts_with("//") {
        return "";
    }
    let is_arm = code.starts_with("Message::") || code.starts_with("| ");
    if is_arm { code.split_once("=>").map_or("", |(_, rest)| rest) } else { code }
}

/// The functions of a file that have a body.
fn functions(file: usize, lines: &[&'static str]) -> Vec<Function> {
    let mut found = Vec::new();
    let mut owners: Vec<&'static str> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if line.starts_with("impl") || line.starts_with("pub trait ") || line.starts_with("trait ")
        {
            owners = owners_of(line);
        } else if *line == "}" {
            owners.clear();
        }
        let code = line.trim_start();
        let heads = ["fn ", "pub(super) fn ", "pub fn ", "const fn ", "pub const fn "];
        let Some(rest) = heads.iter().find_map(|head| code.strip_prefix(head)) else { continue };
        let name = word(rest);
        let close = format!("{}}}", " ".repeat(indent(line)));
        let header = lines[at..].iter().take_while(|line| !line.ends_with('}'));
        let declared = header.clone().position(|line| line.ends_with(';'));
        let body = header.clone().position(|line| line.ends_with('{'));
        if body.is_none() || declared.is_some_and(|end| body.is_some_and(|body| end < body)) {
            continue;
        }
        let last = lines[at..].iter().position(|line| *line == close).unwrap_or(0);
        let span = (file, at + 1, at + 1 + last);
        found.push(Function { name, span, owners: owners.clone() });
    }
    found
}

/// The trait and the type that the head of an `impl` or a trait names, without their parameters.
fn owners_of(head: &'static str) -> Vec<&'static str> {
    let mut owners = Vec::new();
    let (mut depth, mut begin) = (0usize, None);
    for (at, letter) in head.char_indices() {
        if depth == 0 && is_word(letter) {
            begin.get_or_insert(at);
            continue;
        }
        if let Some(begin) = begin.take() {
            owners.push(&head[begin..at]);
        }
        match letter {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            ':' | '{' if depth == 0 => break,
            _ => {}
        }
    }
    owners.retain(|name| !["impl", "for", "pub", "trait", "where", "fmt"].contains(name));
    owners
}

/// The last line of the arm whose pattern ends at index `at`.
fn arm_end(lines: &[&str], at: usize) -> usize {
    let depth = indent(lines[at]);
    if !lines[at].trim_end().ends_with('{') {
        return at + 1;
    }
    let inner = |line: &&str| line.trim().is_empty() || indent(line) > depth;
    at + 2 + lines[at + 1..].iter().take_while(|line| inner(line)).count()
}

/// The lines that have each effect, worked out once for each algorithm.
pub(super) type Acts = BTreeMap<Effect, (Vec<Span>, Vec<Place>)>;
