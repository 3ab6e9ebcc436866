//! The two texts that are made from the table: the page about settings, and the commented
//! configuration.

use std::fmt::Write as _;

use doorway_protocol::text::capitalized;

use super::table::{ALL, Key, Kind, TOP, Table, Value};
use super::value::written;

/// How long a line of the commented configuration may be.
const WIDTH: usize = 100;

/// The page about settings, in Markdown: every key with its type, default and purpose.
pub fn page() -> String {
    let mut page = "# Settings\n\n\
        The keys of /etc/doorway/doorway.toml. `doorway serve --check` reports every mistake in a \
        file with its line. packaging/doorway.toml is a file to begin with. A time is a number of \
        seconds, or a text such as \"500ms\", \"10s\" or \"1m 30s\".\n"
        .to_owned();
    for table in ALL {
        let title = if table.title.starts_with('[') {
            format!("`{}`", table.title)
        } else {
            capitalized(table.title)
        };
        let _ = writeln!(page, "\n## {title}\n\n{}\n", table.about);
        page += "| key | type | default | meaning |\n|---|---|---|---|\n";
        for key in table.keys {
            let name = match key.kind {
                Kind::Table(table) | Kind::Tables(table) if table.title.starts_with('[') => {
                    table.title.to_owned()
                }
                _ => key.name.to_owned(),
            };
            let default = match key.value {
                Value::Default(_) => format!("`{}`", literal(key)),
                Value::Required(_) => "required".to_owned(),
                Value::Example(_) | Value::Set(_) | Value::Heading => "none".to_owned(),
            };
            let about = key.about.replace('|', "\\|");
            let _ = writeln!(page, "| `{name}` | {} | {default} | {about} |", kind(&key.kind));
        }
    }
    page
}

/// The commented configuration: packaging/doorway.toml.
pub fn example() -> String {
    let mut file = "\
        # The configuration of a machine's node: /etc/doorway/doorway.toml.\n\
        #\n\
        # A key after a `#` shows its default, or an example where the key has no default: remove\n\
        # the `#` to set it. `doorway serve --check` reports every mistake with its line.\n"
        .to_owned();
    for key in TOP.keys {
        match key.kind {
            Kind::Table(table) | Kind::Tables(table) => section(&mut file, table),
            _ => {
                file.push('\n');
                entry(&mut file, key);
            }
        }
    }
    file
}

fn section(file: &mut String, table: &Table) {
    let rule = "-".repeat(WIDTH - 8 - table.title.len());
    let _ = writeln!(file, "\n# ---- {} {rule}\n", table.title);
    comment(file, table.about);
    let _ = writeln!(file, "#{}", table.title);
    for key in table.keys {
        entry(file, key);
    }
}

fn entry(file: &mut String, key: &Key) {
    comment(file, key.about);
    let mark = if matches!(key.value, Value::Set(_)) { "" } else { "#" };
    let _ = writeln!(file, "{mark}{} = {}", key.name, literal(key));
}

/// Write a text as comments, broken between words.
fn comment(file: &mut String, text: &str) {
    let mut line = String::from("#");
    for word in text.split(' ') {
        if line.len() + 1 + word.len() > WIDTH {
            file.push_str(&line);
            file.push('\n');
            "#".clone_into(&mut line);
        }
        line.push(' ');
        line.push_str(word);
    }
    file.push_str(&line);
    file.push('\n');
}

/// The value that is shown, as TOML.
fn literal(key: &Key) -> String {
    let value = match key.value {
        Value::Default(value)
        | Value::Example(value)
        | Value::Set(value)
        | Value::Required(value) => value,
        Value::Heading => "",
    };
    match key.kind {
        Kind::Text(_) | Kind::Time(..) | Kind::Mode => format!("\"{value}\""),
        _ => value.to_owned(),
    }
}

/// A type, with its range.
fn kind(kind: &Kind) -> String {
    match kind {
        Kind::Text(_) => "text".to_owned(),
        Kind::Count(least, most) => format!("number from {least} to {most}"),
        Kind::Time(least, most) => format!("time from {} to {}", written(*least), written(*most)),
        Kind::Mode => "octal text".to_owned(),
        Kind::Switch => "true or false".to_owned(),
        Kind::Texts(_) => "list of texts".to_owned(),
        Kind::Table(_) => "table".to_owned(),
        Kind::Tables(_) => "list of tables".to_owned(),
    }
}
