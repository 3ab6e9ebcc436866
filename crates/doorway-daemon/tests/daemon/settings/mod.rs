//! The configuration file: what each key does, and that all mistakes are reported at once.

mod certificates;
mod members;

use std::path::Path;
use std::time::Duration;

use doorway_client::Endpoint;
use doorway_daemon::settings::{Overrides, Proof, Settings, Socket, example, local, page};
use doorway_node::Config;
use doorway_protocol::{Name, Scope};
use doorway_sessions::principal::Right;
use proptest::prelude::*;

/// Parse the text of a configuration in the directory /nowhere.
fn parse(text: &str) -> Result<Settings, String> {
    let file = Path::new("/nowhere/doorway.toml");
    Settings::parse(text, file, &Overrides::default()).map_err(|mistakes| mistakes.to_string())
}

#[test]
fn an_empty_configuration_is_the_node_of_a_machine() {
    let settings = parse("").unwrap();
    assert_eq!(settings.scope, Scope::Machine);
    assert_eq!(settings.socket, Some(Socket::File("/run/doorway/socket".into(), 0o660)));
    assert_eq!(settings.node.data.as_deref(), Some(Path::new("/var/lib/doorway")));
    assert_eq!((settings.sessions, settings.http), (None, None));
    assert_eq!(settings.drain, Duration::from_secs(10));
    assert_eq!(settings.idle_stop, None);
}

#[test]
fn redis_clients_need_certificates_and_a_client_of_the_settings() {
    assert_eq!(parse("").unwrap().redis, None, "the door is closed by default");
    let mistakes = parse("[redis]\nlisten = \"127.0.0.1\"").unwrap_err();
    for part in ["`listen` is \"127.0.0.1\"", "needs certificates", "no client may connect"] {
        assert!(mistakes.contains(part), "{mistakes}");
    }
    assert!(parse("[redis]").unwrap_err().contains("listen"));
}

#[test]
fn the_defaults_of_the_table_are_those_of_a_node() {
    let (settings, node) = (parse("").unwrap().node, Config::default());
    assert_eq!((settings.group, settings.algorithm), (node.group, node.algorithm));
    assert_eq!((settings.heartbeat, settings.silence), (node.heartbeat, node.silence));
    assert_eq!((settings.outstanding, settings.keep_idle), (node.outstanding, node.keep_idle));
    assert_eq!((settings.handovers, settings.members), (node.handovers, node.members));
}

#[test]
fn the_commented_configuration_is_made_from_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/doorway.toml");
    if std::env::var_os("GOLDEN").is_some() {
        std::fs::write(&path, example()).unwrap();
    }
    let file = std::fs::read_to_string(path).unwrap();
    assert_eq!(file, example(), "GOLDEN=1 writes packaging/doorway.toml anew");
    let settings = parse(&file).unwrap();
    assert_eq!(settings.node.data.as_deref(), Some(Path::new("/var/lib/doorway")));
}

/// Only the files that it names are missing, a client has two tokens, there are two kinds of
/// groups, one of them cannot be recorded, and no algorithm uses all keys of a rule.
#[test]
fn every_key_of_the_commented_configuration_can_be_set() {
    let file = example();
    let uncommented: Vec<&str> = file
        .lines()
        .map(|line| {
            let key = line.strip_prefix('#').filter(|rest| rest.starts_with(|c| c != ' '));
            key.unwrap_or(line)
        })
        .collect();
    let said = parse(&uncommented.join("\n")).unwrap_err();
    for line in said.lines().skip(1) {
        let expected = [
            "cannot read /nowhere/",
            "a client has one token",
            "[members] or [[member]], not both",
            "a group that agrees on its members cannot be recorded",
            "`etcd` is for members that agree by etcd",
            "readers-writers has no use for a coordinator",
        ];
        assert!(expected.iter().any(|part| line.contains(part)), "{line}");
    }
    assert_eq!(said.lines().count(), 1 + 9, "{said}");
}

#[test]
fn the_page_about_settings_describes_every_key_of_the_commented_configuration() {
    let (file, page) = (example(), page());
    let keys = file.lines().filter_map(|line| line.trim_start_matches('#').split_once(" = "));
    // A sentence may have the same form, but a key is one word.
    let keys: Vec<&str> = keys.map(|(key, _)| key).filter(|key| !key.contains(' ')).collect();
    assert!(keys.len() >= 35, "{keys:?}");
    for key in keys {
        assert!(page.contains(&format!("| `{key}` |")), "{key}");
    }
}

#[test]
fn every_setting_of_a_file_takes_effect() {
    let text = r#"
        group = "shop"
        node = "a"
        data = "state"
        socket = "@shop"
        algorithm = "suzuki-kasami"
        handovers = 3
        drain = "1.5s"
        idle_stop = 60
        record = "/tmp/record"
        [[member]]
        name = "a"
        [[lock]]
        names = "builders"
        permits = 4
        permits_per_node = 4
        [[lock]]
        names = "reports/*"
        algorithm = "readers-writers"
        [[lock]]
        names = "grid/*"
        algorithm = "maekawa"
        quorums = "grid"
        [[lock]]
        names = "ring/*"
        topology = "ring"
        [[lock]]
        names = "tree/*"
        algorithm = "raymond-tree"
        tree = "star"
        [[lock]]
        names = "votes/*"
        algorithm = "weighted-majority"
        weights = "a=3"
        [[lock]]
        names = "desk/*"
        algorithm = "central"
        coordinator = "a"
        [links]
        heartbeat = "100ms"
        silence = 2
        [limits]
        sessions = 1_000
        connections = 2000
        grants = 5
        waiting = 6
        queue = 8
        ttl = "2m"
        terraform_ttl = "8h"
        outstanding = 7
        idle_locks = 0
    "#;
    let settings = parse(text).unwrap();
    let node = &settings.node;
    assert_eq!((node.group.as_str(), node.me.as_str(), node.handovers), ("shop", "a", 3));
    assert_eq!(node.data.as_deref(), Some(Path::new("/nowhere/state")), "beside the file");
    assert_eq!(settings.socket, Some(Socket::Abstract("shop".into())));
    assert_eq!(settings.drain, Duration::from_millis(1500));
    assert_eq!(settings.idle_stop, Some(Duration::from_mins(1)));
    let rules: Vec<_> = node.rules.iter().map(|rule| (&*rule.algorithm, rule.permits)).collect();
    assert_eq!(rules[..2], [("raymond-k", 4), ("readers-writers", 1)]);
    let keys: Vec<_> = node.rules.iter().flat_map(|rule| rule.arrangement.keys()).collect();
    let expected = [
        ("permits_per_node", "4"),
        ("quorums", "grid"),
        ("topology", "ring"),
        ("tree", "star"),
        ("weights", "a=3"),
        ("coordinator", "a"),
    ];
    assert_eq!(keys, expected.map(|(key, value)| (key, value.to_owned())));
    assert_eq!(node.algorithm, "suzuki-kasami");
    assert_eq!(node.heartbeat, Duration::from_millis(100));
    assert_eq!(node.silence, Duration::from_secs(2));
    assert_eq!((node.outstanding, node.keep_idle), (7, 0));
    let limits = &settings.limits;
    let counts = (limits.sessions, limits.connections, limits.grants, limits.waiting);
    assert_eq!(counts, (1000, 2000, 5, 6));
    assert_eq!(limits.queue, 8);
    assert_eq!(limits.ttl, Duration::from_mins(2));
    assert_eq!(limits.terraform_ttl, Duration::from_hours(8));
}

/// Clients read the socket out of the file without a parser of TOML.
#[test]
fn clients_find_the_socket_that_the_file_names() {
    for text in [
        "",
        "group = \"a\"",
        "socket = \"/run/x/socket\"",
        "  socket='@name' # A comment.",
        "#socket = \"/commented\"\nsocket_mode = \"0600\"",
        "socket = \"beside\"\nsocket_mode = \"0600\"\n[limits]\nsessions = 5",
        "[links]\nheartbeat = 1\n",
    ] {
        let file = Path::new("/nowhere/doorway.toml");
        let read = Settings::parse(text, file, &Overrides::default()).unwrap().socket.unwrap();
        let found = Endpoint::configured(text, Path::new("/nowhere"));
        assert_eq!(found.to_string(), read.to_string(), "{text}");
    }
}

#[test]
fn the_command_line_overrides_the_file() {
    let overrides = Overrides {
        socket: Some("@other".into()),
        data: Some("/elsewhere".into()),
        idle_stop: Some(Duration::from_secs(1)),
    };
    let text = "socket = \"/x\"\ndata = \"/y\"\nidle_stop = 9";
    let settings = Settings::parse(text, Path::new("x.toml"), &overrides).unwrap();
    assert_eq!(settings.socket, Some(Socket::Abstract("other".into())));
    assert_eq!(settings.node.data.as_deref(), Some(Path::new("/elsewhere")));
    assert_eq!(settings.idle_stop, Some(Duration::from_secs(1)));
}

#[test]
fn all_mistakes_are_reported_at_once_with_their_lines() {
    let text = include_str!("mistakes.toml");
    let file = Path::new("doorway.toml");
    let said = Settings::parse(text, file, &Overrides::default()).unwrap_err().to_string() + "\n";
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/daemon/settings/mistakes.txt");
    if std::env::var_os("GOLDEN").is_some() {
        std::fs::write(&golden, &said).unwrap();
    }
    assert_eq!(said, std::fs::read_to_string(golden).unwrap(), "GOLDEN=1 writes it anew");
}

/// Each mistake in how a rule arranges the members is one line with a remedy.
#[test]
fn members_that_cannot_be_arranged_are_reported_with_their_line() {
    let head = "node = \"a\"\n[[member]]\nname = \"a\"\n";
    for (keys, expected) in [
        ("algorithm = \"maekawa\"\nquorums = \"gird\"", "7: `quorums`: 'gird' is not a kind of"),
        (
            "algorithm = \"maekawa\"\nquorums = \"a=a; b=b\"",
            "7: the rule for `x` cannot be used: the quorums of `a` and `b` have no member in \
             common; add a member of one quorum to the other",
        ),
        (
            "algorithm = \"maekawa\"\nquorums = \"a=a,b\"",
            "7: the rule for `x` cannot be used: `b` is not a member; the members are a",
        ),
        (
            "algorithm = \"weighted-majority\"\nweights = \"a=0\"",
            "7: the rule for `x` cannot be used: all weights are zero; at least one must be",
        ),
        (
            "algorithm = \"raymond-tree\"\ntree = \"a=b, b=a\"",
            "7: the rule for `x` cannot be used: the tree has a cycle through `b`; give every",
        ),
        (
            "algorithm = \"central\"\ncoordinator = \"b\"",
            "7: the rule for `x` cannot be used: the coordinator `b` is not a member; the members",
        ),
        (
            "algorithm = \"lamport\"\ntopology = \"ring\"",
            "7: the rule for `x` cannot be used: lamport has no use for a topology; `doorway list`",
        ),
        ("permits = 2\npermits_per_node = 3", "; write a number from 1 to 2"),
        ("permits = 2\npermits_per_node = 0", "7: `permits_per_node` is 0; it has to be a number"),
        (
            "algorithm = \"maekawa\"\nweights = \"a=1\"\nquorums = \"grid\"",
            "7: the rule for `x` cannot be used: maekawa has no use for weights",
        ),
        (
            "algorithm = \"maekawa\"\nquorums = \"grid\"\ntree = \"chain\"",
            "8: the rule for `x` cannot be used: maekawa has no use for a tree",
        ),
        (
            "algorithm = \"raymond-echo\"\ntree = \"b=a\"\ntopology = \"tree\"",
            "7: the rule for `x` cannot be used: `b` is not a member; the members are a",
        ),
        (
            "algorithm = \"raymond-tree\"\ntree = \"chain\"\ncoordinator = \"a\"",
            "8: the rule for `x` cannot be used: raymond-tree has no use for a coordinator",
        ),
        ("algorithm = \"mekawa\"", "6: the rule for `x` cannot be used: no algorithm is called"),
        ("algorithm = \"le-lann\"", "6: the rule for `x` cannot be used: `le-lann` is not offered"),
        (
            "quorums = \"grid\"",
            "6: the rule for `x` cannot be used: carvalho-roucairol has no use for quorums; `doorway list`",
        ),
    ] {
        let said = parse(&format!("{head}[[lock]]\nnames = \"x\"\n{keys}\n")).unwrap_err();
        assert!(said.contains(expected), "{keys}: {said}");
        assert_eq!(said.lines().count(), 2, "{said}");
    }
}

#[test]
fn invalid_toml_is_reported_with_its_line() {
    let said =
        parse("group = \"shop\"\nnode = \nsocket = \"@x\"\ngroup = \"twice\"\n").unwrap_err();
    assert!(said.contains("/nowhere/doorway.toml:2: this is not TOML"), "{said}");
    assert!(said.contains("/nowhere/doorway.toml:4: this is not TOML"), "{said}");
}

/// With the directory of the file, a relative path may be too long.
#[test]
fn a_socket_whose_whole_path_is_too_long_is_refused() {
    let name = "s".repeat(107 - "/nowhere/".len());
    assert!(parse(&format!("socket = \"{name}\"")).is_ok());
    let said = parse(&format!("\nsocket = \"{name}s\"")).unwrap_err();
    assert!(said.contains("cannot be a socket"), "{said}");
    assert!(said.contains("it has 108 bytes, of which 107 are allowed"), "{said}");
}

#[test]
fn a_group_needs_certificates_and_a_directory() {
    let text = "[[member]]\nname='a'\naddress='a:1'\n[[member]]\nname='b'\naddress='b:1'\n";
    let said = parse(text).unwrap_err();
    assert!(said.contains(":2: the file does not say which of the members this node is"), "{said}");
    assert!(said.contains(":2: a node with peers needs certificates; add [tls]"), "{said}");
    assert!(said.contains(":2: a node with peers needs a directory"), "{said}");
}

#[test]
fn a_group_that_agrees_on_its_members_needs_a_name_certificates_and_a_directory() {
    let said =
        parse("[members]\njoin = ['b:1', 'b']\nagree = 'paxos'\nlease = '1s'\n").unwrap_err();
    for part in [
        ":1: [members] has no `address`; add `address`",
        ":1: a node of a group that agrees on its members needs a name; add `node",
        ":1: a node with peers needs certificates; add [tls]",
        ":1: a node with peers needs a directory",
        ":2: `join` has \"b\": it has no port; write host:port",
        ":3: members cannot agree by \"paxos\"; write agree = \"raft\" or agree = \"etcd\"",
        ":4: `lease` is \"1s\"; it has to be a time from 2s to 300s",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let both = "node = 'a'\ndata = 'd'\n[members]\naddress = 'a:1'\n[[member]]\nname = 'a'\n";
    let said = parse(both).unwrap_err();
    assert!(said.contains(":3: a file has [members] or [[member]], not both; remove"), "{said}");
}

#[test]
fn members_that_agree_by_etcd_say_where_it_is() {
    let with = |rest: &str| {
        let text = format!("node = 'a'\ndata = 'd'\n[members]\naddress = 'a:1'\n{rest}\n");
        parse(&text).unwrap_err()
    };
    for (rest, part) in [
        ("agree = 'etcd'", ":3: members that agree by etcd need its addresses; add etcd = ["),
        ("agree = 'etcd'\netcd = []", ":3: members that agree by etcd need its addresses"),
        ("etcd = ['http://e1']", ":3: `etcd` is for members that agree by etcd; add agree ="),
        ("agree = 'etcd'\netcd = ['e1:2379']", ":6: `etcd` has \"e1:2379\": it begins with"),
        ("agree = 'etcd'\netcd = ['http://e1', 'http://e2/v3']", ":6: `etcd` has \"http://e2/v3\""),
        (
            "agree = 'etcd'\netcd = ['https://e1']\netcd_ca = '/nowhere/ca'",
            ":7: `etcd_ca`: cannot read /nowhere/ca: No such file",
        ),
        (
            "agree = 'etcd'\netcd = ['https://e1']\netcd_ca = '/dev/null'",
            ":3: the certificates for etcd cannot be used: the authority has no certificate",
        ),
        (
            "agree = 'etcd'\netcd = ['https://e1']\netcd_key = '/dev/null'",
            ":3: `etcd_certificate` and `etcd_key` need each other; add `etcd_certificate`",
        ),
        (
            "agree = 'etcd'\netcd = ['http://e1']\netcd_user = 'u'",
            ":3: `etcd_user` and `etcd_password` need each other; add `etcd_password`",
        ),
    ] {
        let said = with(rest);
        assert!(said.contains(part), "{part}: {said}");
    }
    let said = with("agree = 'etcd'\netcd = ['http://e1', 'http://[::1]:2']");
    assert!(!said.contains("etcd"), "{said}");
}

#[test]
fn a_token_is_known_by_its_hash() {
    // As `printf %s 0123456789abcdef0123 | sha256sum` prints it.
    let hash = "7a32d19ad8c8c1b7f4f2d1f6c25bd7ff7a0a1d7e5d7b5e4a5bd8f2c2e9d7c1aa";
    let text = format!(
        "[[client]]\nname = \"ci\"\ntoken_sha256 = \"{hash}\"\n\
         rights = [{{ names = \"deploy/*\", may = [\"acquire\"] }}]\n\
         [[client]]\nname = \"eye\"\ntoken_sha256 = \"{}\"\n\
         rights = [{{ names = \"*\", may = [\"inspect\"] }}]\n",
        sha256("0123456789abcdef0123"),
    );
    let settings = parse(&text).unwrap();
    let eye = settings.principal(Proof::Token("0123456789abcdef0123")).unwrap();
    assert_eq!(eye.name, "client eye");
    let lock = Name::new("deploy/web").unwrap();
    assert!(eye.rights.may(Right::Inspect, &lock) && !eye.rights.may(Right::Acquire, &lock));
    for wrong in ["", "0123456789abcdef012", "0123456789abcdef0124", hash] {
        assert!(settings.principal(Proof::Token(wrong)).is_none(), "{wrong}");
    }
}

fn sha256(text: &str) -> String {
    let hash = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    let digits = hash.as_ref().iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

#[test]
fn the_node_of_a_user_needs_no_configuration() {
    let settings = Settings::local(&Overrides::default()).unwrap();
    let user = local::user();
    assert_eq!(settings.scope, Scope::User);
    assert_eq!(settings.socket, Some(Socket::Abstract(format!("doorway-{user}"))));
    assert_eq!(settings.idle_stop, Some(Duration::from_mins(10)));
    assert!(settings.node.validate().is_ok());
    let overrides = Overrides { socket: Some("tcp://x:1".into()), ..Overrides::default() };
    assert!(Settings::local(&overrides).unwrap_err().to_string().contains("--socket"));
}

/// A random line, similar to one of a configuration.
fn line() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "group",
        "node",
        "socket_mode",
        "drain",
        "member",
        "members.join",
        "members.lease",
        "members.etcd",
        "lock.names",
        "tls.ca",
        "client.rights",
        "limits",
        "http.listen",
        "sessions",
        "grup",
        "links.silence",
    ]);
    let value = prop::sample::select(vec![
        "\"a\"",
        "1",
        "-1",
        "0o777",
        "1e308",
        "inf",
        "[]",
        "[[]]",
        "{}",
        "[{}]",
        "2026-01-01",
        "\"99999999999999999999h\"",
        "[{ names = \"*\", may = [\"x\"] }]",
        "\"\\u0000\"",
        "\"é*\"",
        "0xffffffffffffffff",
        "true",
        "\"a:1\"",
    ]);
    let heading = prop::sample::select(vec![
        "[[member]]",
        "[members]",
        "[[lock]]",
        "[tls]",
        "[[client]]",
        "[limits",
    ]);
    prop_oneof![
        (key, value).prop_map(|(key, value)| format!("{key} = {value}")),
        heading.prop_map(str::to_owned),
        "\\PC{0,20}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn no_lines_make_the_reader_panic(lines in prop::collection::vec(line(), 0..12)) {
        if let Err(said) = parse(&lines.join("\n")) {
            for line in said.lines().skip(1) {
                prop_assert!(line.contains("doorway.toml"), "{line}");
                prop_assert!(line.contains("; "), "a remedy: {line}");
            }
        }
    }
}
