//! Numbers as a person reads them.

/// A number with at most three decimals.
pub fn short(value: f64) -> String {
    if value.is_infinite() {
        return "unbounded".into();
    }
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn numbers_are_short() {
        let values = [8.0, 0.5, 2.0 / 3.0, 100.0, -0.0001, f64::INFINITY];
        assert_eq!(values.map(short), ["8", "0.5", "0.667", "100", "0", "unbounded"]);
    }
}
