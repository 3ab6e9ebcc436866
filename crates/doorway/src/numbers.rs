//! Whole numbers on the command line.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// A parser of whole numbers in this range. Its error says which numbers would be right.
pub(crate) fn whole<T>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number
            .ok_or_else(|| format!("say a whole number from {} to {}", range.start(), range.end()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_outside_the_range_are_refused_with_the_range() {
        let port = whole(1..=u16::MAX);
        assert_eq!((port("1"), port("65535")), (Ok(1), Ok(65535)));
        for wrong in ["0", "65536", "-1", "", "x", "1.5", "99999999999999999999"] {
            assert_eq!(port(wrong), Err("say a whole number from 1 to 65535".to_owned()));
        }
    }
}
