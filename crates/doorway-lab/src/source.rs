//! What the source file of an algorithm says to a reader: the rules of the paper, the lines that
//! carry each of them out, and what the fields of a state mean.
//!
//! Every algorithm file opens with numbered rules in the same words: "To ask", "On REQUEST", "To
//! leave", "Enter when". So the rule for a step is found in the text, and no algorithm says it
//! twice. A rule without such words continues the one before it.

mod code;
mod parts;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{LazyLock, OnceLock};

use code::{Acts, Code, Effect};
pub use code::{Place, Span};
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

/// A file of an algorithm.
#[derive(Clone, Copy, Debug)]
pub struct SourceFile {
    /// Its path below the folder of the algorithms.
    pub path: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// What the source files of an algorithm say.
#[derive(Clone, Debug)]
pub struct Source {
    /// The files with lines that act, the one with the handlers first.
    pub files: Vec<SourceFile>,
    /// The rules, in order.
    pub rules: Vec<Rule>,
    /// The kinds of messages, in the order in which they are declared.
    pub kinds: Vec<String>,
    /// What the fields of the states mean, by name.
    pub fields: BTreeMap<String, String>,
    code: Code,
    /// The lines for each trigger, and those for each effect that it may have. A story asks for
    /// them at every step.
    acts: BTreeMap<Trigger, (Vec<Span>, Acts)>,
}

impl Source {
    /// The source of the algorithm of this name. It is read once.
    pub fn of(name: &str) -> Option<&'static Self> {
        static SOURCES: LazyLock<Vec<(&str, OnceLock<Source>)>> =
            LazyLock::new(|| ALL.iter().map(|it| (it.info.name, OnceLock::new())).collect());
        let entry = ALL.iter().find(|entry| entry.info.name == name)?;
        let (_, source) = SOURCES.iter().find(|(known, _)| *known == name)?;
        Some(source.get_or_init(|| Self::read(entry)))
    }

    fn read(entry: &'static Entry) -> Self {
        let main = code(entry);
        let mut files = parts::files((main.file, main.source));
        if entry.file != main.file {
            files.push((entry.file, entry.source));
        }
        let mut fields = field_texts(entry.source);
        for (_, text) in &files {
            for (name, text) in field_texts(text) {
                fields.entry(name).or_insert(text);
            }
        }
        let own = kinds(main.source);
        // A message may carry one of another algorithm.
        let mut all = own.clone();
        all.extend(files.iter().flat_map(|(_, text)| kinds(text)));
        let mut seen = BTreeSet::new();
        all.retain(|kind| seen.insert(kind.clone()));
        let fixed = [Trigger::Start, Trigger::Ask, Trigger::Leave, Trigger::GiveUp, Trigger::Learn];
        let known: Vec<Trigger> =
            fixed.into_iter().chain(all.iter().map(|kind| receives(kind))).collect();
        let mut source = Self {
            files: files.iter().map(|&(path, text)| SourceFile { path, text }).collect(),
            rules: rules(entry.source),
            kinds: own,
            fields,
            code: Code::read(&files, entry.file, all.clone()),
            acts: BTreeMap::new(),
        };
        let effects = || all.iter().cloned().map(Effect::Send).chain([Effect::Enter]);
        for trigger in known {
            let (spans, tails) = source.find(&trigger);
            let all = [spans.clone(), tails].concat();
            let acts = effects().map(|effect| {
                let found = source.code.acts(&all, &effect);
                (effect, found)
            });
            let acts = acts.collect();
            source.acts.insert(trigger, (spans, acts));
        }
        source.keep_files_that_act();
        source
    }

    /// Drop the files without lines that act, and number the others anew.
    fn keep_files_that_act(&mut self) {
        let mut used = BTreeSet::from([0]);
        self.each_file(&mut |file| {
            used.insert(*file);
        });
        let used: Vec<usize> = used.into_iter().collect();
        self.each_file(&mut |file| {
            *file = used.iter().position(|used| used == file).unwrap_or_default();
        });
        self.files = used.iter().map(|file| self.files[*file]).collect();
    }

    /// Call `act` with every number of a file.
    fn each_file(&mut self, act: &mut dyn FnMut(&mut usize)) {
        for (spans, acts) in self.acts.values_mut() {
            let (more, hits): (Vec<_>, Vec<_>) =
                acts.values_mut().map(|(spans, hits)| (spans, hits)).unzip();
            for (file, ..) in spans.iter_mut().chain(more.into_iter().flatten()) {
                act(file);
            }
            for (file, _) in hits.into_iter().flatten() {
                act(file);
            }
        }
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

    /// The lines that handle a step: the arms for the kind of the message in whatever file they
    /// are, else the whole handler, and the functions that they call if they are little more than
    /// a call.
    pub fn lines_for(&self, trigger: &Trigger) -> Vec<Span> {
        self.acts.get(trigger).map(|(spans, _)| spans.clone()).unwrap_or_default()
    }

    /// The lines that handle a step that sends messages of these kinds or enters, and the lines
    /// among them that do so.
    pub fn acted(
        &self,
        trigger: &Trigger,
        sent: &[&str],
        entered: bool,
    ) -> (Vec<Span>, Vec<Place>) {
        let Some((spans, acts)) = self.acts.get(trigger) else { return Default::default() };
        let sent = sent.iter().map(|kind| Effect::Send((*kind).to_owned()));
        let effects: BTreeSet<Effect> = sent.chain(entered.then_some(Effect::Enter)).collect();
        let mut spans: BTreeSet<Span> = spans.iter().copied().collect();
        let mut hits = BTreeSet::new();
        for (more, places) in effects.iter().filter_map(|effect| acts.get(effect)) {
            spans.extend(more);
            hits.extend(places);
        }
        (spans.into_iter().collect(), hits.into_iter().collect())
    }

    /// The lines that handle a trigger, and others that may send or enter because of it.
    fn find(&self, trigger: &Trigger) -> (Vec<Span>, Vec<Span>) {
        let handler = match trigger {
            Trigger::Start => "start",
            Trigger::Ask => "acquire",
            Trigger::Leave => "release",
            Trigger::GiveUp => "withdraw",
            Trigger::Learn => "failed",
            Trigger::Receive(_) | Trigger::Enter => "receive",
        };
        let whole: Vec<Span> = self.code.handler(handler).into_iter().collect();
        let (spans, tails) = match trigger {
            Trigger::Receive(kind) => {
                let (arms, tails) = self.code.arms(kind);
                (if arms.is_empty() { whole } else { arms }, tails)
            }
            _ => (whole, Vec::new()),
        };
        (self.code.with_called(spans), tails)
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

/// The triggers that an algorithm must have a rule for: each handler, and each kind of message.
pub fn demanded(info: &Info) -> Vec<Trigger> {
    let Some(source) = Source::of(info.name) else { return Vec::new() };
    let own = |name: &str| source.code.handler(name).is_some();
    let mut triggers = vec![Trigger::Ask, Trigger::Leave];
    triggers.extend(info.withdraws.then_some(Trigger::GiveUp));
    triggers.extend(own("start").then_some(Trigger::Start));
    triggers.extend(own("failed").then_some(Trigger::Learn));
    // A variant of another algorithm does without some of its messages, and then has no rule that
    // names them.
    let variant = ALL.iter().find(|entry| entry.info.name == info.name);
    let variant = variant.is_some_and(|entry| entry.file != source.files[0].path);
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
                let lines = source.lines_for(&trigger);
                // With several kinds, the whole handler would say nothing about this one.
                let receive = source.code.handler("receive").unwrap();
                let vague = matches!(trigger, Trigger::Receive(_))
                    && source.kinds.len() > 1
                    && lines.contains(&receive);
                if lines.is_empty() || vague {
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
        let lines: Vec<&str> = source.files[0].text.lines().collect();
        let request = receives("Request");
        let [(0, from, to)] = source.lines_for(&request)[..] else { panic!("one arm") };
        assert_eq!(lines[from - 1].trim(), "Message::Request(clock) => {");
        assert_eq!(lines[to - 1], "            }");
        let (spans, hits) = source.acted(&request, &["Reply"], false);
        let [(0, hit)] = hits[..] else { panic!("one line") };
        assert_eq!(spans, [(0, from, to)]);
        assert_eq!(lines[hit - 1].trim(), "out.send(from, Message::Reply);");
        assert_eq!(source.fields["awaited"], "The nodes that have not yet replied to it.");
        // A rule of its own for the entry, and rules that continue others.
        let lamport = Source::of("lamport").unwrap();
        assert_eq!(lamport.rules_for(&receives("Request"), true, false), [2, 5]);
        let carvalho = Source::of("carvalho-roucairol").unwrap();
        assert_eq!(carvalho.rules_for(&receives("Request"), false, false), [2, 3, 4]);
    }

    /// What a reader sees: the marked lines, with the strongly marked ones after a star.
    fn shown(name: &str, trigger: &Trigger, sent: &[&str], entered: bool) -> Vec<String> {
        let source = Source::of(name).unwrap();
        let (spans, hits) = source.acted(trigger, sent, entered);
        let of = |(file, from, to): Span| {
            let SourceFile { path, text } = source.files[file];
            let first = text.lines().nth(from - 1).unwrap().trim();
            let hits = hits.iter().filter(|(of, at)| *of == file && (from..=to).contains(at));
            let hits = hits.map(|(_, at)| text.lines().nth(at - 1).unwrap().trim());
            let hits: Vec<String> = hits.map(|line| format!(" * {line}")).collect();
            format!("{path}: {first}{}", hits.concat())
        };
        spans.into_iter().map(of).collect()
    }

    #[test]
    fn a_message_is_followed_into_the_files_that_an_algorithm_is_built_of() {
        for (name, kind, sent, lines) in [
            (
                "maekawa",
                "Request",
                "Locked",
                &[
                    "maekawa.rs: let reply = self.arbiter.handle::<R>(from, message)?; \
                     * self.send(request.node, Message::answer(request, answer, self.clock), out);",
                    "maekawa/arbiter.rs: Message::Request(clock) => \
                     self.request::<R>(Timestamp { clock: *clock, node: from }),",
                    "maekawa/arbiter.rs: pub fn request<R: Rules>\
                     (&mut self, request: Timestamp) -> Result<Reply, &'static str> {",
                ][..],
            ),
            // The variant has a requester of its own.
            (
                "maekawa-unordered",
                "Inquire",
                "Relinquish",
                &[
                    "maekawa.rs: let reaction = self.requester.handle::<R>(from, message)?; \
                     * self.send(member, Message::Relinquish, out);",
                    "maekawa/requester.rs: Message::Inquire(number) \
                     if self.inquire::<R>(member, *number) => {",
                    "maekawa/requester.rs: Message::Inquire(_) => {}",
                    "maekawa_unordered.rs: fn inquire<R: Rules>\
                     (&mut self, _member: NodeId, number: u64) -> bool {",
                ],
            ),
            (
                "majority",
                "Release",
                "Yes",
                &[
                    "majority.rs: Message::Release(clock) => self.voter.release(theirs(clock)),",
                    "majority.rs: match answer { \
                     * self.send(group, r.node, Message::Yes(r.clock, self.clock), out);",
                    "majority/voter.rs: pub(super) fn release\
                     (&mut self, request: Timestamp) -> Option<VoterReply> {",
                ],
            ),
        ] {
            assert_eq!(shown(name, &receives(kind), &[sent], false), lines, "{name}");
        }
        // The message within the message; and what a node sends to itself takes effect at once.
        let heir = shown("maekawa-heir", &receives("Locked"), &[], true);
        assert!(heir.iter().any(|line| line.ends_with("* out.enter();")), "{heir:#?}");
        let alone = shown("maekawa-heir", &Trigger::Ask, &[], true);
        assert!(alone.iter().any(|line| line.ends_with("* out.enter();")), "{alone:#?}");
        let leave = shown("maekawa", &Trigger::Leave, &["Locked"], false);
        assert!(leave.iter().any(|line| line.contains("* self.send(request.node,")), "{leave:#?}");
    }
}
