//! Columns of text, aligned.

use std::io::{self, Write};

/// Rows of cells, the first of which is the heading.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    pub(crate) fn new(heading: impl IntoIterator<Item = String>) -> Self {
        Self { rows: vec![heading.into_iter().collect()] }
    }

    /// Append a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Print the rows without the heading.
    pub(crate) fn print_body(&self, out: &mut dyn Write, indent: usize) -> io::Result<()> {
        Self { rows: self.rows[1..].to_vec() }.print(out, indent)
    }

    /// Print it, every line after `indent` spaces, two spaces between columns, none at the end.
    pub(crate) fn print(&self, out: &mut dyn Write, indent: usize) -> io::Result<()> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            let line = cells.collect::<Vec<_>>().join("  ");
            writeln!(out, "{}{}", " ".repeat(indent), line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(["name", "N"].map(str::to_owned));
        table.row(["é".to_owned(), "1".to_owned()]);
        table.row(["longer".to_owned(), String::new()]);
        let mut out = Vec::new();
        table.print(&mut out, 1).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), " name    N\n é       1\n longer\n");
    }
}
