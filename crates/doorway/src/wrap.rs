//! Text broken into lines that fit the terminal.

use std::io::{self, IsTerminal as _, Write};

/// How wide prose is where standard output is not a terminal.
const PROSE: usize = 100;

/// The width of the terminal on standard output; `None` if it is not a terminal.
pub(crate) fn terminal_width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    // Some terminals do not know their size and say 0.
    let columns = rustix::termios::tcgetwinsize(io::stdout()).map_or(0, |size| size.ws_col);
    // Columns of fewer letters would be unreadable.
    Some(if columns == 0 { 80 } else { usize::from(columns).max(40) })
}

/// Print prose after `indent` spaces, in lines that fit the terminal, or a page where there is
/// none.
pub(crate) fn print_prose(out: &mut dyn Write, indent: usize, text: &str) -> io::Result<()> {
    print_to(out, indent, text, terminal_width().unwrap_or(PROSE))
}

/// Print text that was written in lines after `indent` spaces. The lines are kept, unless the
/// terminal is too narrow for them.
pub(crate) fn print_lines(out: &mut dyn Write, indent: usize, text: &str) -> io::Result<()> {
    let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    match terminal_width() {
        Some(width) if indent + widest > width => {
            for paragraph in paragraphs(text) {
                print_to(out, indent, &paragraph, width)?;
            }
            Ok(())
        }
        _ => text
            .lines()
            .try_for_each(|line| writeln!(out, "{}", format!("{:indent$}{line}", "").trim_end())),
    }
}

/// Print `text` to the right of `left`. On a terminal that is too narrow, it continues below
/// itself.
pub(crate) fn print_beside(out: &mut dyn Write, left: &str, text: &str) -> io::Result<()> {
    print_beside_to(out, left, text, terminal_width().unwrap_or(usize::MAX))
}

/// Print a diagram as text after `indent` spaces. The columns of its nodes stay as they are. What
/// happened stands after them, and continues below itself on a terminal that is too narrow.
pub(crate) fn print_diagram(out: &mut dyn Write, indent: usize, text: &str) -> io::Result<()> {
    let width = terminal_width().unwrap_or(usize::MAX);
    text.lines().try_for_each(|line| {
        let glyphs = line.char_indices().rfind(|(_, letter)| "│░█▒×".contains(*letter));
        let after = glyphs.map_or(0, |(at, glyph)| at + glyph.len_utf8());
        let at = after + line[after..].len() - line[after..].trim_start().len();
        let (columns, event) = line.split_at(at);
        print_beside_to(out, &format!("{:indent$}{columns}", ""), event, width)
    })
}

fn print_beside_to(out: &mut dyn Write, left: &str, text: &str, width: usize) -> io::Result<()> {
    let column = left.chars().count();
    let room = width.saturating_sub(column).max(20);
    for (number, line) in wrap(text, room, 0).into_iter().enumerate() {
        let left = if number == 0 { left } else { "" };
        writeln!(out, "{}", format!("{left:column$}{line}").trim_end())?;
    }
    Ok(())
}

/// The text with each paragraph and each item of a list broken anew into lines of at most `width`
/// letters.
pub(crate) fn filled(text: &str, width: usize) -> String {
    let fill = |paragraph: &String| {
        let hang = marker(paragraph);
        wrap(paragraph, width, hang).join(&format!("\n{:hang$}", ""))
    };
    paragraphs(text).iter().map(fill).collect::<Vec<_>>().join("\n")
}

fn print_to(out: &mut dyn Write, indent: usize, text: &str, width: usize) -> io::Result<()> {
    // The lines of a list hang below the text of their item.
    let hang = marker(text);
    for (number, line) in wrap(text, width - indent.min(width), hang).into_iter().enumerate() {
        let blank = if number == 0 { indent } else { indent + hang };
        writeln!(out, "{}", format!("{:blank$}{line}", "").trim_end())?;
    }
    Ok(())
}

/// The length of the mark with which an item of a list begins, as in `- ` or `2. `. A year at the
/// end of a sentence is none.
fn marker(text: &str) -> usize {
    let word = text.split(' ').next().unwrap_or_default();
    let number = word.strip_suffix('.').is_some_and(|digits| digits.parse::<u8>().is_ok());
    if word == "-" || number { word.len() + 1 } else { 0 }
}

/// The paragraphs and items of a text, each as one line; an empty line stays one.
fn paragraphs(text: &str) -> Vec<String> {
    let mut paragraphs: Vec<String> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        let words = line.trim();
        match paragraphs.last_mut() {
            Some(last) if open && !words.is_empty() && marker(words) == 0 => {
                last.push(' ');
                last.push_str(words);
            }
            _ => paragraphs.push(words.to_owned()),
        }
        open = !words.is_empty();
    }
    paragraphs
}

/// Break a text at blanks, or after a hyphen or comma inside a long word, into lines of at most
/// `width` letters. All but the first are shorter by `hang`. There is at least one line.
pub(crate) fn wrap(text: &str, width: usize, hang: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut rest = word;
        loop {
            let room = if lines.len() == 1 { width } else { width.saturating_sub(hang) }.max(1);
            let line = lines.last_mut().expect("there is always a line");
            let used = line.chars().count();
            let blank = usize::from(!line.is_empty());
            if used + blank + rest.chars().count() <= room {
                line.extend(std::iter::repeat_n(' ', blank));
                line.push_str(rest);
                break;
            }
            if used > 0 {
                lines.push(String::new());
                continue;
            }
            let (head, tail) = rest.split_at(break_at(rest, room));
            line.push_str(head);
            lines.push(String::new());
            rest = tail;
        }
    }
    lines
}

/// Where to break a word that is longer than `room`: after the last hyphen or comma that fits.
fn break_at(word: &str, room: usize) -> usize {
    let fitting = || word.char_indices().take(room).map(|(at, letter)| at + letter.len_utf8());
    let good = fitting().filter(|end| word[..*end].ends_with(['-', ',', '/']));
    good.last().or_else(|| fitting().last()).unwrap_or(word.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit() {
        assert_eq!(wrap("one two three", 7, 0), ["one two", "three"]);
        assert_eq!(wrap("one two three", 7, 3), ["one two", "thre", "e"]);
        assert_eq!(
            wrap("maekawa-sequential-self-first", 20, 0),
            ["maekawa-sequential-", "self-first"]
        );
        assert_eq!(wrap("", 5, 0), [""]);
        for line in wrap("a√b √√√√√√√√√√ c", 4, 0) {
            assert!(line.chars().count() <= 4, "{line}");
        }
    }

    #[test]
    fn the_last_column_continues_below_itself() {
        let printed = |left: &str, text: &str, width| {
            let mut out = Vec::new();
            print_beside_to(&mut out, left, text, width).unwrap();
            String::from_utf8(out).unwrap()
        };
        let text = "node 1 waits and nothing can happen";
        assert_eq!(printed("8  ░  ", text, usize::MAX), format!("8  ░  {text}\n"));
        assert_eq!(
            printed("8  ░  ", text, 26),
            "8  ░  node 1 waits and\n      nothing can happen\n"
        );
        assert_eq!(printed("8  ░  ", "", 26), "8  ░\n");
    }

    #[test]
    fn paragraphs_and_items_are_kept_apart() {
        let text = "One\ntwo.\n\n1. First\n   more.\n2. Second.\n- Third";
        let parts = ["One two.", "", "1. First more.", "2. Second.", "- Third"];
        assert_eq!(paragraphs(text), parts);
        assert_eq!(["1. x", "- x", "x 1.", "12. x", "1986. x"].map(marker), [3, 2, 0, 4, 0]);
    }

    #[test]
    fn text_is_filled_by_paragraphs_and_items() {
        let text = "one\ntwo\n\nThree things:\n\n- first\n  and more\n- second";
        let lines =
            ["one two", "", "Three", "things:", "", "- first", "  and", "  more", "- second"];
        assert_eq!(filled(text, 8), lines.join("\n"));
    }
}
