//! Where etcd is, and how it is reached.

use std::fmt;
use std::str::FromStr;

/// The port of etcd, if an address names none.
const PORT: u16 = 2379;

/// The address of a server of etcd: `http://HOST:PORT` or `https://HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdAddress {
    pub(super) is_https: bool,
    /// Without the brackets of IPv6.
    pub(super) host: String,
    pub(super) port: u16,
}

impl EtcdAddress {
    /// Whether the server is reached over TLS.
    pub fn is_https(&self) -> bool {
        self.is_https
    }

    /// The host and the port, as in a URL.
    pub(super) fn authority(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

impl fmt::Display for EtcdAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.is_https { "https" } else { "http" }, self.authority())
    }
}

/// Why a text is not the address of a server of etcd.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadEtcdAddress(&'static str);

impl FromStr for EtcdAddress {
    type Err = BadEtcdAddress;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (is_https, rest) = match text.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            _ => return Err(BadEtcdAddress("it begins with neither http:// nor https://")),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains('@') {
            return Err(BadEtcdAddress("a user and a password have settings of their own"));
        }
        if rest.contains(['/', '?', '#']) {
            return Err(BadEtcdAddress("nothing may follow the port"));
        }
        let (host, port) = match rest.strip_prefix('[') {
            Some(rest) => {
                let (host, after) =
                    rest.split_once(']').ok_or(BadEtcdAddress("a bracket is not closed"))?;
                if !after.is_empty() && !after.starts_with(':') {
                    return Err(BadEtcdAddress("a `:` and the port follow the bracket"));
                }
                (host, after.strip_prefix(':'))
            }
            None => match rest.rsplit_once(':') {
                Some((host, _)) if host.contains(':') => {
                    return Err(BadEtcdAddress("an IPv6 address stands in brackets"));
                }
                Some((host, port)) => (host, Some(port)),
                None => (rest, None),
            },
        };
        let is_host = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
        if host.is_empty() || !host.chars().all(is_host) {
            return Err(BadEtcdAddress("it has no host"));
        }
        let port = match port.map(str::parse) {
            None => PORT,
            Some(Ok(port)) if port > 0 => port,
            Some(_) => return Err(BadEtcdAddress("the port is not a number from 1 to 65535")),
        };
        Ok(Self { is_https, host: host.to_owned(), port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written() {
        for (text, shown) in [
            ("http://127.0.0.1:2379", "http://127.0.0.1:2379"),
            ("https://e1.example", "https://e1.example:2379"),
            ("https://e1.example:443/", "https://e1.example:443"),
            ("http://[::1]:2000", "http://[::1]:2000"),
            ("http://[::1]", "http://[::1]:2379"),
        ] {
            assert_eq!(text.parse::<EtcdAddress>().unwrap().to_string(), shown);
        }
        for text in [
            "",
            "e1:2379",
            "ftp://e1",
            "http://",
            "http://:2379",
            "http://e1:0",
            "http://e1:70000",
            "http://e1:x",
            "http://e1/v3",
            "http://u:p@e1",
            "http://::1",
            "http://[::1",
            "http://[::1]2379",
            "http://a b",
            "http://a\r\nhost: b",
        ] {
            assert!(text.parse::<EtcdAddress>().is_err(), "{text}");
        }
    }
}
