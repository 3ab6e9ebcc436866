//! Columns of text, aligned, and made to fit the terminal.

use std::io::{self, Write};

use crate::wrap::{terminal_width, wrap};

/// Blanks between two columns.
const GAP: usize = 2;

/// No column is made narrower than this, unless its cells are.
const NARROWEST: usize = 9;

/// Rows of cells, the first of which is the heading.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    /// The columns that may be left out on a narrow terminal, in the order of leaving.
    optional: Vec<usize>,
}

impl Table {
    /// A table with these columns.
    pub(crate) fn new(heading: impl IntoIterator<Item = String>) -> Self {
        Self { rows: vec![heading.into_iter().collect()], optional: Vec::new() }
    }

    /// Name the columns, counted from 0, that may be left out on a narrow terminal.
    pub(crate) fn optional(mut self, columns: impl IntoIterator<Item = usize>) -> Self {
        self.optional.extend(columns);
        self
    }

    /// Append a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Print the rows without the heading.
    pub(crate) fn print_body(&self, out: &mut dyn Write, indent: usize) -> io::Result<()> {
        Self { rows: self.rows[1..].to_vec(), optional: self.optional.clone() }.print(out, indent)
    }

    /// Print the table, every line after `indent` spaces and with no blanks at its end.
    ///
    /// On a terminal that is too narrow, long cells are wrapped; if that is not enough, optional
    /// columns are left out, and a line below says which.
    pub(crate) fn print(&self, out: &mut dyn Write, indent: usize) -> io::Result<()> {
        self.print_to(out, indent, terminal_width())
    }

    fn print_to(&self, out: &mut dyn Write, indent: usize, most: Option<usize>) -> io::Result<()> {
        let room = most.map_or(usize::MAX, |most| most.saturating_sub(indent));
        let mut columns: Vec<usize> =
            (0..self.rows.iter().map(Vec::len).max().unwrap_or(0)).collect();
        let mut left_out = Vec::new();
        let mut optional = self.optional.iter();
        let widths = loop {
            let widths = self.widths(&columns, room);
            if total(&widths) <= room {
                break widths;
            }
            let Some(next) = optional.next() else { break widths };
            columns.retain(|column| column != next);
            left_out.extend(self.rows[0].get(*next).cloned());
        };
        for row in &self.rows {
            print_row(out, indent, row, &columns, &widths)?;
        }
        if !left_out.is_empty() {
            let names = left_out.join(" and ");
            writeln!(out, "\n{:indent$}(too narrow for {names}; --json has everything)", "")?;
        }
        Ok(())
    }

    /// The widths of these columns: those of their cells, or less if they do not fit otherwise.
    fn widths(&self, columns: &[usize], room: usize) -> Vec<usize> {
        let cells = |column: usize| self.rows.iter().filter_map(move |row| row.get(column));
        let width = |column: &usize| cells(*column).map(|cell| cell.chars().count()).max();
        let mut widths: Vec<usize> = columns.iter().map(|c| width(c).unwrap_or(0)).collect();
        while total(&widths) > room {
            let Some(widest) = widths.iter_mut().max_by_key(|width| **width) else { break };
            if *widest <= NARROWEST {
                break;
            }
            *widest -= 1;
        }
        widths
    }
}

fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

fn print_row(
    out: &mut dyn Write,
    indent: usize,
    row: &[String],
    columns: &[usize],
    widths: &[usize],
) -> io::Result<()> {
    let cell = |column: &usize| row.get(*column).map_or("", String::as_str);
    let cells: Vec<Vec<String>> =
        columns.iter().zip(widths).map(|(column, width)| wrap(cell(column), *width, 0)).collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    for number in 0..height {
        let parts = cells.iter().zip(widths).map(|(lines, width)| {
            let line = lines.get(number).map_or("", String::as_str);
            format!("{line:width$}")
        });
        let line = parts.collect::<Vec<_>>().join(&" ".repeat(GAP));
        writeln!(out, "{}", format!("{:indent$}{line}", "").trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(table: &Table, most: Option<usize>) -> String {
        let mut out = Vec::new();
        table.print_to(&mut out, 1, most).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(["name", "N"].map(str::to_owned));
        table.row(["é".to_owned(), "1".to_owned()]);
        table.row(["longer".to_owned(), String::new()]);
        assert_eq!(printed(&table, None), " name    N\n é       1\n longer\n");
    }

    #[test]
    fn a_narrow_terminal_gets_wrapped_cells_and_fewer_columns() {
        let mut table = Table::new(["name", "kind", "what it does"].map(str::to_owned));
        table = table.optional([1]);
        table.row(["ring", "token-based", "passes one token on and on"].map(str::to_owned));
        assert!(printed(&table, Some(80)).lines().count() == 2);
        assert_eq!(
            printed(&table, Some(36)),
            " name  kind         what it does\n ring  token-based  passes one token\n \
             \x20                  on and on\n"
        );
        let narrow = printed(&table, Some(24));
        assert!(narrow.contains("(too narrow for kind; --json has everything)"), "{narrow}");
        assert!(narrow.lines().take(3).all(|line| line.chars().count() <= 24), "{narrow}");
    }
}
