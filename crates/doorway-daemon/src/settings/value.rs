//! Reads single values: times, permissions, patterns, tokens and addresses.

use std::time::Duration;

use doorway_protocol::NamePattern;
use doorway_sessions::principal::{PatternRights, Right};
use toml::de::DeValue;

/// A whole number, however it is written.
pub(super) fn integer(value: &DeValue<'_>) -> Option<u64> {
    let number = value.as_integer()?;
    u64::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok()
}

/// A time: a number of seconds, or a text as [`span`] reads it.
pub(super) fn duration(value: &DeValue<'_>) -> Option<Duration> {
    match value {
        DeValue::Integer(_) => integer(value).map(Duration::from_secs),
        DeValue::Float(number) => seconds(&number.as_str().replace('_', "")),
        DeValue::String(text) => span(text),
        _ => None,
    }
}

/// Read a time: `500ms`, `10s`, `2m`, `1m 30s`, `1h`, or a number of seconds.
pub fn span(text: &str) -> Option<Duration> {
    let text = text.trim();
    let is_number = text.bytes().all(|byte| byte == b'.' || byte.is_ascii_digit());
    if is_number { seconds(text) } else { humantime::parse_duration(text).ok() }
}

fn seconds(number: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(number.parse().ok()?).ok()
}

/// A time as [`span`] reads it, in one unit.
pub(super) fn written(time: Duration) -> String {
    match (time.as_secs(), time.subsec_millis()) {
        (0, 0) => "0s".to_owned(),
        (seconds, 0) if seconds % 86_400 == 0 => format!("{}d", seconds / 86_400),
        (seconds, 0) if seconds % 3600 == 0 => format!("{}h", seconds / 3600),
        (seconds, 0) => format!("{seconds}s"),
        _ => format!("{}ms", time.as_millis()),
    }
}

/// Permissions: octal digits as text, or a number such as `0o660`.
pub(super) fn mode(value: &DeValue<'_>) -> Option<u32> {
    match value {
        DeValue::String(text) => octal(text.strip_prefix("0o").unwrap_or(text)),
        // 660 would be decimal, which is surely not meant.
        DeValue::Integer(number) if number.radix() == 8 => {
            u32::try_from(integer(value)?).ok().filter(|mode| *mode <= 0o777)
        }
        _ => None,
    }
}

/// Permissions of a file by their octal digits.
pub(super) fn octal(digits: &str) -> Option<u32> {
    u32::from_str_radix(digits, 8).ok().filter(|mode| *mode <= 0o777)
}

/// A pattern of names: a whole name, or a beginning followed by `*`.
pub(super) fn allowed(pattern: &str, may: Vec<Right>) -> Result<PatternRights, String> {
    let pattern = NamePattern::parse(pattern).map_err(|error| error.to_string())?;
    Ok(PatternRights { pattern, may })
}

/// A right by its name.
pub(super) fn right(text: &str) -> Option<Right> {
    RIGHTS.iter().find(|(name, _)| *name == text).map(|(_, right)| *right)
}

/// The rights and their names.
pub(super) const RIGHTS: [(&str, Right); 3] =
    [("acquire", Right::Acquire), ("inspect", Right::Inspect), ("break", Right::Break)];

/// Read a SHA-256: 64 hexadecimal digits.
pub(super) fn sha256(text: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, at) in hash.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(hash)
}

/// Check an address to listen at or to connect to: `host:port`.
pub(super) fn address(text: &str) -> Result<(), String> {
    let Some((host, port)) = text.rsplit_once(':') else {
        return Err("it has no port".to_owned());
    };
    if host.is_empty() || host.contains(char::is_whitespace) {
        return Err("it has no host".to_owned());
    }
    if host.contains(':') && !(host.starts_with('[') && host.ends_with(']')) {
        return Err("an IPv6 address needs brackets".to_owned());
    }
    match port.parse::<u16>() {
        Ok(_) => Ok(()),
        Err(_) => Err(format!("`{port}` is not a port")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_and_without_units() {
        let cases = [("500ms", 500), ("10s", 10_000), ("2m", 120_000), ("1h", 3_600_000)];
        let odd =
            [("7", 7000), ("0.5", 500), ("1.5 s", 1500), (" 2 min ", 120_000), ("1.5h", 5_400_000)];
        let joined = [("1m 30s", 90_000), ("1h30m", 5_400_000), ("0s", 0)];
        for (text, millis) in cases.into_iter().chain(odd).chain(joined) {
            assert_eq!(span(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in
            ["", ".", "s", "-1s", "1e9", "ten", "1 fortnight", "1.2.3", "999999999999999999999h"]
        {
            assert_eq!(span(text), None, "{text}");
        }
    }

    #[test]
    fn times_are_written_as_they_are_read() {
        for text in ["0s", "10ms", "1s", "90s", "1500ms", "2h", "1d", "365d"] {
            assert_eq!(span(text).map(written).as_deref(), Some(text));
        }
    }

    #[test]
    fn addresses_have_a_host_and_a_port() {
        for good in ["a.example:7001", "10.0.0.1:0", "[::1]:7001"] {
            assert_eq!(address(good), Ok(()), "{good}");
        }
        for bad in ["a.example", ":7001", "::1:7001", "a:b", "a:99999", "a b:1"] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn patterns_end_in_a_star_or_are_names() {
        assert!(allowed("deploy/*", Vec::new()).is_ok());
        assert!(allowed("*", Vec::new()).is_ok());
        assert!(allowed("deploy", Vec::new()).is_ok());
        for bad in ["", "a*b", "**", "a\u{7}"] {
            assert!(allowed(bad, Vec::new()).is_err(), "{bad:?}");
        }
    }
}
