//! A TOML text whose values know their lines, and whose mistakes are all collected.

use std::cell::RefCell;
use std::ops::Range;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::mistake::Mistake;
use super::table::{Key, Kind, Table, Value};
use super::value;

/// Collects the mistakes of a text.
#[derive(Default)]
pub(super) struct Diagnostics {
    /// Where each line begins.
    begins: Vec<usize>,
    mistakes: RefCell<Vec<Mistake>>,
}

/// A value and its line; a default has none.
#[derive(Clone, Debug)]
pub(super) struct SourceValue<T> {
    pub(super) line: Option<usize>,
    pub(super) value: T,
}

impl Diagnostics {
    pub(super) fn new(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let begins = [0].into_iter().chain(ends.map(|(at, _)| at + 1)).collect();
        Self { begins, ..Self::default() }
    }

    /// The line, from 1, on which something begins.
    fn line(&self, span: &Range<usize>) -> usize {
        self.begins.partition_point(|begin| *begin <= span.start).max(1)
    }

    /// Note a mistake, with its remedy.
    pub(super) fn wrong(
        &self,
        line: Option<usize>,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let (what, remedy) = (what.into(), remedy.into());
        self.mistakes.borrow_mut().push(Mistake { line, what, remedy });
    }

    /// All mistakes, in the order of their lines.
    pub(super) fn into_mistakes(self) -> Vec<Mistake> {
        let mut all = self.mistakes.into_inner();
        all.sort_by_key(|mistake| mistake.line.unwrap_or(usize::MAX));
        all
    }

    /// Parse the text. What is not TOML is a mistake; the rest is read all the same.
    pub(super) fn parse<'t>(&self, text: &'t str) -> Spanned<DeTable<'t>> {
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            let line = error.span().map(|span| self.line(&span));
            let said = error.message().replace('\n', ", ");
            self.wrong(line, format!("this is not TOML: {said}"), "see https://toml.io");
        }
        table
    }
}

/// A table of the text, or one that the text does not have. Each value is read as the table of
/// settings says: by its type, within its range, and with its default.
pub(super) struct Section<'a, 't> {
    pub(super) diagnostics: &'a Diagnostics,
    found: Option<&'a DeTable<'t>>,
    table: &'static Table,
    /// The line of its heading, if the text has it.
    pub(super) line: Option<usize>,
}

impl<'a, 't> Section<'a, 't> {
    /// A table of the text. A key that it should not have is a mistake.
    pub(super) fn new(
        diagnostics: &'a Diagnostics,
        found: &'a DeTable<'t>,
        span: &Range<usize>,
        table: &'static Table,
    ) -> Self {
        for key in found.keys() {
            let name = key.get_ref();
            if table.key(name).is_none() {
                let what = format!("{} has no key `{}`", table.title, shown(name));
                diagnostics.wrong(Some(diagnostics.line(&key.span())), what, table.remedy(name));
            }
        }
        Self { diagnostics, found: Some(found), table, line: Some(diagnostics.line(span)) }
    }

    /// A table that the text does not have.
    pub(super) fn absent(diagnostics: &'a Diagnostics, table: &'static Table) -> Self {
        Self { diagnostics, found: None, table, line: None }
    }

    /// Does the text have this table?
    pub(super) fn is_there(&self) -> bool {
        self.found.is_some()
    }

    /// Does the text have this key?
    pub(super) fn has(&self, name: &str) -> bool {
        self.found.is_some_and(|found| found.contains_key(name))
    }

    fn key(&self, name: &str) -> &'static Key {
        self.table.key(name).expect("every key that is read is in the table of settings")
    }

    /// The value of a key as `read` understands it, or else its default. If `read` does not
    /// understand it, the mistake says what is `wanted`.
    fn value<T>(
        &self,
        name: &str,
        wanted: &str,
        read: impl FnOnce(&'a DeValue<'t>) -> Option<T>,
        default: impl FnOnce(&'static str) -> Option<T>,
    ) -> Option<SourceValue<T>> {
        let default = || match self.key(name).value {
            Value::Default(text) => default(text).map(|value| SourceValue { line: None, value }),
            _ => None,
        };
        let found = self.found.and_then(|found| found.get_key_value(name));
        let Some((key, value)) = found else {
            if matches!(self.key(name).value, Value::Required(_)) {
                self.require(name, wanted);
            }
            return default();
        };
        let (line, value) = (Some(self.diagnostics.line(&key.span())), value.get_ref());
        let read = read(value).map(|value| SourceValue { line, value });
        read.or_else(|| {
            let what = format!("`{name}` is {}", described(value));
            self.diagnostics.wrong(line, what, format!("it has to be {wanted}"));
            default()
        })
    }

    /// If the table is there and has no such key, that is a mistake.
    fn require(&self, name: &str, wanted: &str) {
        if self.found.is_some_and(|found| !found.contains_key(name)) {
            let what = format!("{} has no `{name}`", self.table.title);
            self.diagnostics.wrong(self.line, what, format!("add `{name}`: {wanted}"));
        }
    }

    /// A text.
    pub(super) fn text(&self, name: &str) -> Option<SourceValue<String>> {
        let Kind::Text(wanted) = self.key(name).kind else { panic!("`{name}` is not a text") };
        let read =
            |value: &DeValue<'_>| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        self.value(name, wanted, read, |default| Some(default.to_owned()))
    }

    /// A text that is required here, though not everywhere.
    pub(super) fn required_text(&self, name: &str) -> Option<SourceValue<String>> {
        if let Kind::Text(wanted) = self.key(name).kind {
            self.require(name, wanted);
        }
        self.text(name)
    }

    /// A whole number; 0 if the table of settings has no default.
    pub(super) fn count(&self, name: &str) -> u64 {
        self.counted(name).map_or(0, |at| at.value)
    }

    /// A text, or a whole number as a text, if the file or the table of settings has one.
    pub(super) fn text_or_count(&self, name: &str) -> Option<SourceValue<String>> {
        if !matches!(self.key(name).kind, Kind::Count(..)) {
            return self.text(name);
        }
        let SourceValue { line, value } = self.counted(name)?;
        Some(SourceValue { line, value: value.to_string() })
    }

    fn counted(&self, name: &str) -> Option<SourceValue<u64>> {
        let Kind::Count(least, most) = self.key(name).kind else {
            panic!("`{name}` is not a number")
        };
        let wanted = format!("a number from {least} to {most}");
        let read = |value: &DeValue<'_>| {
            value::integer(value).filter(|number| (least..=most).contains(number))
        };
        self.value(name, &wanted, read, |text| text.parse().ok())
    }

    /// True or false; false if the table of settings has no default.
    pub(super) fn switch(&self, name: &str) -> bool {
        debug_assert!(matches!(self.key(name).kind, Kind::Switch), "`{name}` is not a switch");
        let read = self.value(name, "true or false", DeValue::as_bool, |text| text.parse().ok());
        read.is_some_and(|at| at.value)
    }

    /// A time, if the file or the table of settings has one.
    pub(super) fn time(&self, name: &str) -> Option<Duration> {
        let Kind::Time(least, most) = self.key(name).kind else { panic!("`{name}` is not a time") };
        let (from, to) = (value::written(least), value::written(most));
        let wanted = format!("a time from {from} to {to}, such as \"10s\"");
        let read = |value: &DeValue<'_>| {
            value::duration(value).filter(|time| (least..=most).contains(time))
        };
        self.value(name, &wanted, read, value::span).map(|at| at.value)
    }

    /// Permissions of a file; none if the table of settings has no default.
    pub(super) fn mode(&self, name: &str) -> u32 {
        let wanted = "permissions in octal, such as \"0660\"";
        self.value(name, wanted, value::mode, value::octal).map_or(0, |at| at.value)
    }

    /// A list of texts, each with the line of the list.
    pub(super) fn texts(&self, name: &str) -> Vec<SourceValue<String>> {
        let Kind::Texts(wanted) = self.key(name).kind else { panic!("`{name}` is not a list") };
        let read = |value: &DeValue<'_>| {
            let texts = value.as_array()?.iter();
            texts.map(|text| text.get_ref().as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        };
        let list = self.value(name, wanted, read, |_| None);
        let Some(SourceValue { line, value }) = list else { return Vec::new() };
        value.into_iter().map(|value| SourceValue { line, value }).collect()
    }

    /// A table below this one.
    pub(super) fn table(&self, name: &str) -> Self {
        let Kind::Table(table) = self.key(name).kind else { panic!("`{name}` is not a table") };
        let wanted = format!("a table, which begins with {}", table.title);
        let found = self.value(name, &wanted, DeValue::as_table, |_| None);
        let span = self.found.and_then(|found| found.get(name)).map(Spanned::span);
        match found.zip(span) {
            Some((at, span)) => Section::new(self.diagnostics, at.value, &span, table),
            None => Section::absent(self.diagnostics, table),
        }
    }

    /// The tables of a list below this one.
    pub(super) fn tables(&self, name: &str) -> Vec<Self> {
        let Kind::Tables(table) = self.key(name).kind else { panic!("`{name}` is not a list") };
        let wanted = format!("a list of tables, each {}", table.place);
        let read = |value: &'a DeValue<'t>| {
            let tables = value.as_array()?.iter();
            tables.map(|each| Some((each.get_ref().as_table()?, each.span()))).collect()
        };
        let all: Option<SourceValue<Vec<_>>> = self.value(name, &wanted, read, |_| None);
        let all = all.map(|all| all.value).unwrap_or_default();
        all.into_iter()
            .map(|(found, span)| Section::new(self.diagnostics, found, &span, table))
            .collect()
    }
}

/// A value as a message shows it.
fn described(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) if text.is_empty() => "empty".to_owned(),
        DeValue::String(text) => format!("\"{}\"", shown(text)),
        DeValue::Integer(number) => shown(number.as_str()),
        DeValue::Float(number) => shown(number.as_str()),
        DeValue::Boolean(yes) => yes.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// The beginning of a text, on one line, long enough to be recognised.
pub(super) fn shown(text: &str) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let mut shown: String = text.chars().take(60).map(clean).collect();
    if text.chars().nth(60).is_some() {
        shown.push_str("...");
    }
    shown
}
