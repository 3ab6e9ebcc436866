//! The keys of the file: every one that is known, so that a slip is answered with what was meant.

/// A kind of table.
pub(super) struct Table {
    /// How messages call it.
    pub(super) title: &'static str,
    /// How it is written.
    pub(super) written: &'static str,
    /// Its keys.
    pub(super) keys: &'static [&'static str],
}

pub(super) static TOP: Table = Table {
    title: "the file",
    written: "at the top",
    keys: &[
        "group",
        "node",
        "data",
        "socket",
        "socket_mode",
        "algorithm",
        "handovers",
        "drain",
        "idle_stop",
        "record",
        "member",
        "lock",
        "sessions",
        "http",
        "client",
        "tls",
        "links",
        "limits",
    ],
};

pub(super) static MEMBER: Table =
    Table { title: "[[member]]", written: "under [[member]]", keys: &["name", "address"] };

pub(super) static LOCK: Table = Table {
    title: "[[lock]]",
    written: "under [[lock]]",
    keys: &["names", "algorithm", "permits"],
};

pub(super) static SESSIONS: Table =
    Table { title: "[sessions]", written: "under [sessions]", keys: &["listen"] };

pub(super) static HTTP: Table =
    Table { title: "[http]", written: "under [http]", keys: &["listen", "hosts"] };

pub(super) static CLIENT: Table = Table {
    title: "[[client]]",
    written: "under [[client]]",
    keys: &["name", "token_file", "token_sha256", "rights"],
};

pub(super) static RIGHT: Table = Table {
    title: "an entry of `rights`",
    written: "as { names = \"deploy/*\", may = [\"acquire\"] }",
    keys: &["names", "may"],
};

pub(super) static TLS: Table =
    Table { title: "[tls]", written: "under [tls]", keys: &["ca", "certificate", "key"] };

pub(super) static LINKS: Table =
    Table { title: "[links]", written: "under [links]", keys: &["heartbeat", "silence"] };

pub(super) static LIMITS: Table = Table {
    title: "[limits]",
    written: "under [limits]",
    keys: &[
        "sessions",
        "connections",
        "grants",
        "waiting",
        "queue",
        "ttl",
        "outstanding",
        "idle_locks",
    ],
};

static ALL: [&Table; 10] =
    [&TOP, &MEMBER, &LOCK, &SESSIONS, &HTTP, &CLIENT, &RIGHT, &TLS, &LINKS, &LIMITS];

/// What to do about a key that this kind of table has not.
pub(super) fn remedy(here: &Table, key: &str) -> String {
    if let Some(near) = nearest(key, here.keys.iter().copied()) {
        return format!("did you mean `{near}`?");
    }
    let elsewhere: Vec<&str> =
        ALL.iter().filter(|table| table.keys.contains(&key)).map(|table| table.written).collect();
    if elsewhere.is_empty() {
        format!("known are {}", here.keys.join(", "))
    } else {
        format!("it stands {}", elsewhere.join(" or "))
    }
}

/// The candidate that a word is a slip of: at most a third of its letters would have to change.
pub(super) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word: String = word.chars().take(64).collect::<String>().to_lowercase();
    let measured = candidates.into_iter().map(|near| {
        let length = near.chars().count().max(word.chars().count());
        (strsim::damerau_levenshtein(&word, near), length, near)
    });
    let close = measured.filter(|(far, length, _)| far * 3 <= *length);
    close.min_by_key(|(far, _, _)| *far).map(|(_, _, near)| near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_understood() {
        assert_eq!(remedy(&TOP, "grup"), "did you mean `group`?");
        assert_eq!(remedy(&TOP, "memebr"), "did you mean `member`?");
        assert_eq!(remedy(&TOP, "listen"), "it stands under [sessions] or under [http]");
        assert_eq!(remedy(&TLS, "password"), "known are ca, certificate, key");
    }

    #[test]
    fn every_key_is_in_the_example() {
        let example = include_str!("../../../../packaging/doorway.toml");
        let written = |key: &&str| {
            let begins = |line: &str| {
                let line = line.trim_start_matches(['#', ' ']);
                let words = [format!("{key} ="), format!("[{key}]"), format!("[[{key}]]")];
                words.iter().any(|word| line.contains(word.as_str()))
            };
            example.lines().any(begins)
        };
        for table in ALL {
            for key in table.keys {
                assert!(written(key), "`{key}` {} is not in packaging/doorway.toml", table.written);
            }
        }
    }
}
