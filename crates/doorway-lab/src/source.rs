//! What the source file of an algorithm says to a reader: the rules of the paper, the lines that
//! carry each of them out, and what the fields of a state mean.
//!
//! Every algorithm file opens with numbered rules in the same words: "To ask", "On REQUEST", "To
//! leave", "Enter when". So the rule for a step is found in the text, and no algorithm says it
//! twice. A rule without such words continues the one before it.

use std::collections::{BTreeMap, BTreeSet};

use doorway_core::Info;
use doorway_core::algorithms::{ALL, Entry};

/// What makes a node act.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trigger {
    /// The group begins, or the node begins the lock again.
    Start,
    /// A client asks.
    Ask,
    /// The client inside leaves.
    Leave,
    /// The waiting client gives up.
    GiveUp,
    /// The node learns of a crash.
    Learn,
    /// A message of this kind arrives.
    Receive(String),
    /// The node enters, whatever the reason.
    Enter,
}

/// A rule of the paper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its number in the file.
    pub number: usize,
    /// Its text.
    pub text: String,
    triggers: Vec<Trigger>,
    /// Does the rule refer to another algorithm for all that it does not say itself?
    refers: bool,
    /// Is the rule about requests that are given up, which the paper does not have?
    added: bool,
}

/// Lines of a file, counted from 1, the last one included.
pub type Span = (usize, usize);

/// What the source file of an algorithm says.
#[derive(Clone, Debug)]
pub struct Source {
    /// The file with the handlers.
    pub file: &'static str,
    /// Its text.
    pub text: &'static str,
    /// The rules, in order.
    pub rules: Vec<Rule>,
    /// The kinds of messages, in the order in which they are declared.
    pub kinds: Vec<String>,
    /// What the fields of the states mean, by name.
    pub fields: BTreeMap<String, String>,
    lines: Vec<&'static str>,
    functions: BTreeMap<String, Span>,
    /// The lines for each trigger that is known beforehand. A story asks for them at every step.
    spans: BTreeMap<Trigger, Vec<Span>>,
}

impl Source {
    /// The source of the algorithm of this name.
    pub fn of(name: &str) -> Option<Self> {
        let entry = ALL.iter().find(|entry| entry.info.name == name)?;
        let code = code(entry);
        let lines: Vec<&str> = code.source.lines().collect();
        let mut fields = field_texts(code.source);
        fields.extend(field_texts(entry.source));
        let mut source = Self {
            file: code.file,
            text: code.source,
            rules: rules(entry.source),
            kinds: kinds(code.source),
            fields,
            functions: functions(&lines),
            lines,
            spans: BTreeMap::new(),
        };
        let kinds = source.kinds.iter().map(|kind| receives(kind));
        let fixed = [Trigger::Start, Trigger::Ask, Trigger::Leave, Trigger::GiveUp, Trigger::Learn];
        let known = fixed.into_iter().chain(kinds);
        source.spans = known.map(|trigger| (trigger.clone(), source.find(&trigger))).collect();
        Some(source)
    }

    /// The numbers of the rules for a step. An entry has a rule of its own in some files. Rules
    /// about requests that are given up count only at a node that has `given_up` one.
    pub fn rules_for(&self, trigger: &Trigger, entered: bool, given_up: bool) -> Vec<usize> {
        let entering = |rule: &&Rule| entered && rule.triggers.contains(&Trigger::Enter);
        let counts = |rule: &&Rule| !rule.added || given_up || *trigger == Trigger::GiveUp;
        let runs =
            |rule: &&Rule| (rule.triggers.contains(trigger) || entering(rule)) && counts(rule);
        let mut found: Vec<usize> =
            self.rules.iter().filter(runs).map(|rule| rule.number).collect();
        if !self.rules.iter().any(|rule| rule.triggers.contains(trigger)) {
            // Another algorithm's rules; or the message only counts for the condition to enter.
            let refers = self.rules.iter().any(|rule| rule.refers);
            let counts = |rule: &&Rule| rule.triggers.contains(&Trigger::Enter);
            let rest =
                self.rules.iter().filter(|rule| if refers { rule.refers } else { counts(rule) });
            found.extend(rest.map(|rule| rule.number));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The lines that handle a step: the arm for the kind of the message, else the whole handler,
    /// and the function that it calls if it is little more than a call.
    pub fn lines_for(&self, trigger: &Trigger) -> Vec<Span> {
        self.spans.get(trigger).cloned().unwrap_or_else(|| self.find(trigger))
    }

    fn find(&self, trigger: &Trigger) -> Vec<Span> {
        let handler = match trigger {
            Trigger::Start => "start",
            Trigger::Ask => "acquire",
            Trigger::Leave => "release",
            Trigger::GiveUp => "withdraw",
            Trigger::Learn => "failed",
            Trigger::Receive(_) | Trigger::Enter => "receive",
        };
        let whole: Vec<Span> = self.functions.get(handler).copied().into_iter().collect();
        let mut spans = match trigger {
            Trigger::Receive(kind) => {
                let arms = arms(&self.lines, &self.functions, kind);
                if arms.is_empty() { whole } else { arms }
            }
            _ => whole,
        };
        for (from, to) in spans.clone() {
            if to - from < 4 {
                spans.extend(self.called((from, to)));
            }
        }
        spans.sort_unstable();
        spans.dedup();
        spans
    }

    /// The lines among `spans` that can have sent a message of one of these kinds, or entered.
    pub fn hits(&self, spans: &[Span], sent: &[&str], entered: bool) -> Vec<usize> {
        let sent: BTreeSet<String> = sent.iter().map(|kind| format!("Message::{kind}")).collect();
        let hit = |line: &str| {
            let sends = line.contains("send") && sent.iter().any(|kind| line.contains(kind));
            sends || entered && line.contains(".enter()")
        };
        let numbers = spans.iter().flat_map(|(from, to)| *from..=*to);
        numbers.filter(|number| self.lines.get(number - 1).is_some_and(|line| hit(line))).collect()
    }

    /// The functions of the file that are called in these lines.
    fn called(&self, (from, to): Span) -> Vec<Span> {
        let text = self.lines[from - 1..to].join("\n");
        let called = self.functions.iter().filter(|(name, _)| {
            text.contains(&format!("self.{name}(")) || text.contains(&format!("Self::{name}("))
        });
        called.map(|(_, span)| *span).filter(|span| *span != (from, to)).collect()
    }
}

/// Whether the algorithm of this name sends every message to the successor of its sender, so that
/// its nodes form a ring: every line of its code that sends names the successor.
pub fn sends_round(name: &str) -> bool {
    let Some(entry) = ALL.iter().find(|entry| entry.info.name == name) else { return false };
    let code = code(entry).source.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    let mut sends =
        code.filter(|line| line.contains(".send(") || line.contains(".send_all(")).peekable();
    sends.peek().is_some() && sends.all(|line| line.contains("successor("))
}

/// The entry whose file has the handlers: the algorithm's own, or the one that it builds upon.
fn code(entry: &'static Entry) -> &'static Entry {
    let handles = |entry: &Entry| {
        let mut lines = entry.source.lines();
        lines.any(|line| line.starts_with("impl") && line.contains(" Algorithm for "))
    };
    if handles(entry) {
        return entry;
    }
    let base = ALL.iter().find(|other| {
        let module = other.file.trim_end_matches(".rs");
        handles(other) && entry.source.contains(&format!("use super::{module}::"))
    });
    base.unwrap_or(entry)
}

/// The numbered items in the opening comment of a file.
fn rules(source: &str) -> Vec<Rule> {
    let mut items: Vec<(usize, String, bool)> = Vec::new();
    let comment = source.lines().map_while(|line| line.strip_prefix("//!"));
    let (mut open, mut added) = (false, false);
    for line in comment {
        let line = line.strip_prefix(' ').unwrap_or(line);
        if let Some(heading) = line.strip_prefix("# ") {
            added = heading != "Rules";
        }
        let item = line.split_once(". ").and_then(|(number, text)| {
            Some((number.parse::<usize>().ok().filter(|number| *number == items.len() + 1)?, text))
        });
        match item {
            Some((number, text)) => {
                items.push((number, text.to_owned(), added));
                open = true;
            }
            None if line.starts_with("   ") && open => {
                if let Some((_, text, _)) = items.last_mut() {
                    *text += " ";
                    *text += line.trim();
                }
            }
            None => open = false,
        }
    }
    let mut rules: Vec<Rule> = Vec::new();
    for (number, text, added) in items {
        let triggers = triggers(&text, &rules);
        let refers = text.contains("s in `");
        rules.push(Rule { number, text, triggers, refers, added });
    }
    rules
}

/// What a rule is for. One that does not say it continues an earlier rule.
fn triggers(text: &str, before: &[Rule]) -> Vec<Trigger> {
    let mut triggers: Vec<Trigger> = text.split(". ").flat_map(sentence_triggers).collect();
    // "Else wait until one says FAILED": the rule goes on when that message arrives.
    let awaited = text.split("until one says ").skip(1);
    let awaited = awaited.filter_map(|rest| kind_word(rest.split([' ', '.']).next()?));
    triggers.extend(awaited.map(Trigger::Receive));
    let of = |rules: &mut dyn Iterator<Item = &Rule>| -> Vec<Trigger> {
        rules.flat_map(|rule| rule.triggers.clone()).collect()
    };
    if triggers.is_empty() {
        triggers = if let Some(rest) = text.strip_prefix("After ") {
            let numbers: Vec<usize> =
                rest.split([' ', ',', ':']).filter_map(|word| word.parse().ok()).collect();
            let named = |rule: &&Rule| numbers.is_empty() || numbers.contains(&rule.number);
            of(&mut before.iter().filter(named))
        } else {
            of(&mut before.last().into_iter())
        };
    }
    triggers.sort_unstable();
    triggers.dedup();
    triggers
}

fn sentence_triggers(sentence: &str) -> Vec<Trigger> {
    let fixed = [
        ("To ask", Trigger::Ask),
        ("To leave", Trigger::Leave),
        ("To give up", Trigger::GiveUp),
        ("To start", Trigger::Start),
        ("On learning", Trigger::Learn),
        ("Enter when", Trigger::Enter),
    ];
    if let Some((_, trigger)) = fixed.into_iter().find(|(head, _)| sentence.starts_with(head)) {
        return vec![trigger];
    }
    let kinds = |words: &mut dyn Iterator<Item = &str>| -> Vec<Trigger> {
        words.filter_map(kind_word).map(Trigger::Receive).collect()
    };
    if let Some(rest) = sentence.strip_prefix("On ") {
        // "On the last of the N−1 REPLYs", "On EXPLORE or ECHO of the present wave".
        let mut words = rest.split([' ', ',', ':']).filter(|word| !word.is_empty()).peekable();
        while words.peek().is_some_and(|word| kind_word(word).is_none()) {
            words.next();
        }
        let named = words.take_while(|word| *word == "or" || kind_word(word).is_some());
        return kinds(&mut { named });
    }
    if sentence.contains("s in `") && !sentence.starts_with("As in") {
        return kinds(&mut sentence.split([' ', ',', ':']));
    }
    Vec::new()
}

/// The kind that a word in capital letters names: "REPLYs" is "REPLY".
fn kind_word(word: &str) -> Option<String> {
    let word = word.strip_suffix('s').unwrap_or(word);
    let capital = word.len() > 1 && word.chars().all(|letter| letter.is_ascii_uppercase());
    capital.then(|| word.to_owned())
}

/// The trigger of a message: kinds are in capital letters in the rules.
pub fn receives(kind: &str) -> Trigger {
    Trigger::Receive(kind.to_uppercase())
}

/// The variants of `enum Message`.
fn kinds(source: &str) -> Vec<String> {
    let declared = source.lines().skip_while(|line| !line.starts_with("pub enum Message"));
    let body = declared.skip(1).take_while(|line| *line != "}");
    let variants = body.filter(|line| line.starts_with("    ") && !line.starts_with("     "));
    let name = |line: &str| {
        let line = line.trim();
        let end = line.find(|c: char| !c.is_alphanumeric()).unwrap_or(line.len());
        line.starts_with(char::is_uppercase).then(|| line[..end].to_owned())
    };
    variants.filter_map(name).collect()
}

/// The comments above the fields of structs, by the name of the field.
fn field_texts(source: &str) -> BTreeMap<String, String> {
    let (mut texts, mut comment) = (BTreeMap::new(), Vec::new());
    for line in source.lines() {
        let line = line.trim();
        if let Some(text) = line.strip_prefix("///") {
            comment.push(text.trim());
            continue;
        }
        let name = line.strip_prefix("pub ").unwrap_or(line).split_once(": ").map(|(name, _)| name);
        let plain = |name: &&str| name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        if let Some(name) = name.filter(plain).filter(|_| !comment.is_empty()) {
            texts.entry(name.to_owned()).or_insert_with(|| comment.join(" ").replace('`', ""));
        }
        comment.clear();
    }
    texts
}

/// The functions of a file. Of several with one name, the first counts: the handlers come first.
fn functions(lines: &[&str]) -> BTreeMap<String, Span> {
    let mut found = BTreeMap::new();
    for (at, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        let Some(rest) = code
            .strip_prefix("fn ")
            .or_else(|| code.strip_prefix("pub(super) fn "))
            .or_else(|| code.strip_prefix("pub fn "))
        else {
            continue;
        };
        let end = rest.find(['(', '<']).unwrap_or(rest.len());
        let close = format!("{}}}", " ".repeat(indent));
        let last = lines[at..].iter().position(|line| *line == close).unwrap_or(0);
        found.entry(rest[..end].to_owned()).or_insert((at + 1, at + 1 + last));
    }
    found
}

/// The arms for a kind of message that do more than reject it: those of `receive`, or else those of
/// another function that receives.
fn arms(lines: &[&str], functions: &BTreeMap<String, Span>, kind: &str) -> Vec<Span> {
    let handlers = ["receive", "handle", "take"].into_iter().filter_map(|name| functions.get(name));
    for (from, to) in handlers {
        let mut found = Vec::new();
        for at in *from..*to {
            let code = lines[at].trim_start();
            let pattern = code.split("=>").next().unwrap_or(code);
            let names = pattern.split("Message::").skip(1).any(|rest| {
                let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
                rest[..end].eq_ignore_ascii_case(kind)
            });
            if names && code.starts_with("Message::") && code.contains("=>") {
                found.push((at + 1, arm_end(lines, at)));
            }
        }
        let rejects = |(from, to): &Span| {
            let text = lines[from - 1..*to].join("\n");
            to - from < 3 && (text.contains("reject(") || text.contains("Err("))
        };
        if found.iter().any(|span| !rejects(span)) {
            found.retain(|span| !rejects(span));
        }
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

/// The last line of the arm that begins at index `at`.
fn arm_end(lines: &[&str], at: usize) -> usize {
    let indent = lines[at].len() - lines[at].trim_start().len();
    if !lines[at].trim_end().ends_with('{') {
        return at + 1;
    }
    let inner = |line: &&str| {
        let deep = line.len() - line.trim_start().len();
        line.trim().is_empty() || deep > indent
    };
    at + 2 + lines[at + 1..].iter().take_while(|line| inner(line)).count()
}

/// The triggers that an algorithm must have a rule for: each handler, and each kind of message.
pub fn demanded(info: &Info) -> Vec<Trigger> {
    let Some(source) = Source::of(info.name) else { return Vec::new() };
    let own = |name: &str| source.functions.contains_key(name);
    let mut triggers = vec![Trigger::Ask, Trigger::Leave];
    triggers.extend(info.withdraws.then_some(Trigger::GiveUp));
    triggers.extend(own("start").then_some(Trigger::Start));
    triggers.extend(own("failed").then_some(Trigger::Learn));
    // A variant of another algorithm does without some of its messages, and then has no rule that
    // names them.
    let variant = ALL.iter().find(|entry| entry.info.name == info.name);
    let variant = variant.is_some_and(|entry| entry.file != source.file);
    let named = |kind: &str| source.rules.iter().any(|rule| rule.text.contains(kind));
    let kinds = source.kinds.iter().filter(|kind| !variant || named(&kind.to_uppercase()));
    triggers.extend(kinds.map(|kind| receives(kind)));
    triggers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_handler_and_message_kind_has_a_rule_and_lines() {
        let mut missing = Vec::new();
        for entry in ALL {
            let source = Source::of(entry.info.name).unwrap();
            assert!(!source.kinds.is_empty(), "{}", entry.info.name);
            for trigger in demanded(&entry.info) {
                if source.rules_for(&trigger, false, true).is_empty() {
                    missing.push(format!("{}: no rule for {trigger:?}", entry.info.name));
                }
                if source.lines_for(&trigger).is_empty() {
                    missing.push(format!("{}: no lines for {trigger:?}", entry.info.name));
                }
            }
        }
        assert!(missing.is_empty(), "{}", missing.join("\n"));
    }

    #[test]
    fn rules_arms_and_fields_are_found_in_the_text() {
        let source = Source::of("ricart-agrawala").unwrap();
        assert_eq!(source.kinds, ["Request", "Reply"]);
        assert_eq!(source.rules_for(&Trigger::Ask, false, false), [1]);
        assert_eq!(source.rules_for(&receives("Request"), false, false), [2]);
        assert_eq!(source.rules_for(&receives("Reply"), false, false), [3]);
        assert_eq!(source.rules_for(&receives("Reply"), false, true), [3, 6]);
        assert!(source.rules[1].text.ends_with("with an older request; else REPLY."));
        let lines: Vec<&str> = source.text.lines().collect();
        let [(from, to)] = source.lines_for(&receives("Request"))[..] else { panic!("one arm") };
        assert_eq!(lines[from - 1].trim(), "Message::Request(clock) => {");
        assert_eq!(lines[to - 1], "            }");
        let [hit] = source.hits(&[(from, to)], &["Reply"], false)[..] else { panic!("one line") };
        assert_eq!(lines[hit - 1].trim(), "out.send(from, Message::Reply);");
        assert_eq!(source.fields["awaited"], "The nodes that have not yet replied to it.");
        // A rule of its own for the entry, and rules that continue others.
        let lamport = Source::of("lamport").unwrap();
        assert_eq!(lamport.rules_for(&receives("Request"), true, false), [2, 5]);
        let carvalho = Source::of("carvalho-roucairol").unwrap();
        assert_eq!(carvalho.rules_for(&receives("Request"), false, false), [2, 3, 4]);
    }
}
