//! Finding functions in formatted source: enough to measure them.

/// A function, from its `fn` to its closing brace.
#[derive(Debug, PartialEq)]
pub(crate) struct Function {
    /// Its first line, from 1.
    pub(crate) line: usize,
    /// How many lines it has.
    pub(crate) length: usize,
}

/// The functions of a formatted file. The formatter closes a body at the depth of its `fn`, so
/// depth alone finds the end.
pub(crate) fn functions(text: &str) -> Vec<Function> {
    let lines: Vec<&str> = text.lines().collect();
    let starts = lines.iter().enumerate().filter(|(_, line)| opens_function(line));
    let functions = starts.filter_map(|(start, first)| {
        let rest = lines[start..].iter().enumerate();
        let mut ends = rest.filter(|(at, line)| depth(line) == depth(first) && ends(*at, line));
        let (length, _) = ends.next()?;
        Some(Function { line: start + 1, length: length + 1 })
    });
    functions.collect()
}

/// Does a function end with this line, `at` lines after its `fn`, at the same depth?
fn ends(at: usize, line: &str) -> bool {
    let line = line.trim();
    let whole = at == 0 && line.ends_with('}');
    whole || line == "}" || line.ends_with(';')
}

fn opens_function(line: &str) -> bool {
    let mut words = line.split_whitespace().skip_while(|word| {
        word.starts_with("pub") || ["const", "async", "unsafe", "default"].contains(word)
    });
    words.next() == Some("fn")
}

fn depth(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_measured() {
        let text = "\
pub(crate) fn short() {}

impl X {
    const fn long(
        a: u32,
    ) -> u32 {
        if a == 1 {
            2;
        }
    }

    fn declared(&self);
    fn wrapped(
        &self,
    ) -> u32;
}
// fn in words
let fn_name = 1;
";
        let found: Vec<_> = functions(text).iter().map(|f| (f.line, f.length)).collect();
        assert_eq!(found, [(1, 1), (4, 7), (12, 1), (13, 3)]);
    }
}
