//! A TOML text whose values know their lines, and whose mistakes are all collected.

use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::{self, Table};
use super::mistake::Mistake;
use super::value;

/// Collects the mistakes of a text.
pub(super) struct Book {
    /// Where each line begins.
    begins: Vec<usize>,
    pub(super) mistakes: Vec<Mistake>,
}

/// A value and its line.
#[derive(Clone, Debug)]
pub(super) struct At<T> {
    pub(super) line: usize,
    pub(super) value: T,
}

impl Book {
    pub(super) fn new(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let begins = [0].into_iter().chain(ends.map(|(at, _)| at + 1)).collect();
        Self { begins, mistakes: Vec::new() }
    }

    /// The line, from 1, on which something begins.
    fn line(&self, span: &Range<usize>) -> usize {
        self.begins.partition_point(|begin| *begin <= span.start).max(1)
    }

    pub(super) fn wrong(
        &mut self,
        line: impl Into<Option<usize>>,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let (what, remedy) = (what.into(), remedy.into());
        self.mistakes.push(Mistake { line: line.into(), what, remedy });
    }

    /// Take the text apart. What is no TOML is a mistake; the rest is read all the same.
    pub(super) fn parse<'t>(&mut self, text: &'t str) -> Spanned<DeTable<'t>> {
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            let line = error.span().map(|span| self.line(&span));
            let said = error.message().replace('\n', ", ");
            self.wrong(line, format!("this is no TOML: {said}"), "see https://toml.io");
        }
        table
    }
}

/// A table of the text.
pub(super) struct Section<'a, 't> {
    table: &'a DeTable<'t>,
    kind: &'static Table,
    /// The line of its heading.
    pub(super) line: usize,
}

impl<'a, 't> Section<'a, 't> {
    /// A table of which these keys are known; others are mistakes.
    pub(super) fn new(
        book: &mut Book,
        table: &'a DeTable<'t>,
        span: &Range<usize>,
        kind: &'static Table,
    ) -> Self {
        for key in table.keys() {
            let name = key.get_ref();
            if !kind.keys.contains(&name.as_ref()) {
                let line = book.line(&key.span());
                let remedy = keys::remedy(kind, name);
                book.wrong(line, format!("{} has no key `{}`", kind.title, shown(name)), remedy);
            }
        }
        Self { table, kind, line: book.line(span) }
    }

    fn find(&self, book: &Book, key: &str) -> Option<(usize, &'a DeValue<'t>, Range<usize>)> {
        let (name, value) = self.table.get_key_value(key)?;
        Some((book.line(&name.span()), value.get_ref(), value.span()))
    }

    /// A value that `read` understands; what else it should be is said by `wanted`.
    fn value<T>(
        &self,
        book: &mut Book,
        key: &str,
        wanted: &str,
        read: impl FnOnce(&'a DeValue<'t>) -> Option<T>,
    ) -> Option<At<T>> {
        let (line, value, _) = self.find(book, key)?;
        let read = read(value).map(|value| At { line, value });
        if read.is_none() {
            let found = described(value);
            book.wrong(line, format!("`{key}` is {found}"), format!("it has to be {wanted}"));
        }
        read
    }

    pub(super) fn text(&self, book: &mut Book, key: &str, wanted: &str) -> Option<At<String>> {
        self.value(book, key, wanted, |value| {
            value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
        })
    }

    /// A text without which the table means nothing.
    pub(super) fn needed(&self, book: &mut Book, key: &str, wanted: &str) -> Option<At<String>> {
        if !self.table.contains_key(key) {
            let what = format!("{} has no `{key}`", self.kind.title);
            book.wrong(self.line, what, format!("add `{key}`: {wanted}"));
            return None;
        }
        self.text(book, key, wanted)
    }

    pub(super) fn count(
        &self,
        book: &mut Book,
        key: &str,
        range: RangeInclusive<u64>,
    ) -> Option<At<u64>> {
        let wanted = format!("a number from {} to {}", range.start(), range.end());
        let read = |value: &DeValue<'_>| value::integer(value).filter(|n| range.contains(n));
        self.value(book, key, &wanted, read)
    }

    pub(super) fn time(
        &self,
        book: &mut Book,
        key: &str,
        range: RangeInclusive<Duration>,
    ) -> Option<At<Duration>> {
        let (least, most) = (value::written(*range.start()), value::written(*range.end()));
        let wanted = format!("a time from {least} to {most}, such as \"10s\"");
        let read = |value: &DeValue<'_>| value::duration(value).filter(|time| range.contains(time));
        self.value(book, key, &wanted, read)
    }

    pub(super) fn mode(&self, book: &mut Book, key: &str) -> Option<At<u32>> {
        let wanted = "permissions in octal, such as \"0660\"";
        self.value(book, key, wanted, value::mode)
    }

    pub(super) fn texts(&self, book: &mut Book, key: &str, wanted: &str) -> Vec<At<String>> {
        let list = self.value(book, key, wanted, |value| {
            let texts = value.as_array()?.iter();
            texts.map(|text| text.get_ref().as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        let Some(At { line, value }) = list else { return Vec::new() };
        value.into_iter().map(|value| At { line, value }).collect()
    }

    /// A table below this one.
    pub(super) fn table(&self, book: &mut Book, key: &str, kind: &'static Table) -> Option<Self> {
        let (_, _, span) = self.find(book, key)?;
        let wanted = format!("a table, which begins with [{key}]");
        let table = self.value(book, key, &wanted, DeValue::as_table)?;
        Some(Section::new(book, table.value, &span, kind))
    }

    /// The tables of a list.
    pub(super) fn tables(&self, book: &mut Book, key: &str, kind: &'static Table) -> Vec<Self> {
        let wanted = format!("a list of tables, each {}", kind.written);
        let all = self.value(book, key, &wanted, |value| {
            let tables = value.as_array()?.iter();
            let table =
                |each: &'a Spanned<DeValue<'t>>| Some((each.get_ref().as_table()?, each.span()));
            tables.map(table).collect::<Option<Vec<_>>>()
        });
        let all = all.map(|all| all.value).unwrap_or_default();
        all.into_iter().map(|(table, span)| Section::new(book, table, &span, kind)).collect()
    }
}

/// A value as a person may recognise it.
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

/// So much of what someone wrote that it can be found again, on one line.
pub(super) fn shown(text: &str) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let mut shown: String = text.chars().take(60).map(clean).collect();
    if text.chars().nth(60).is_some() {
        shown.push_str("...");
    }
    shown
}
