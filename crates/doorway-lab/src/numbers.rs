//! Numbers as text for a reader.

/// A number with at most three decimals.
pub fn short(value: f64) -> String {
    if value.is_infinite() {
        return "unbounded".into();
    }
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

/// A whole number with a comma before every three digits, as in `1,234,567`.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let values = [8.0, 0.5, 2.0 / 3.0, 100.0, -0.0001, f64::INFINITY];
        assert_eq!(values.map(short), ["8", "0.5", "0.667", "100", "0", "unbounded"]);
    }

    #[test]
    fn digits_are_grouped_by_three() {
        let values = [0, 7, 999, 1_000, 12_345, u64::MAX];
        let texts = ["0", "7", "999", "1,000", "12,345", "18,446,744,073,709,551,615"];
        assert_eq!(values.map(grouped), texts);
    }
}
