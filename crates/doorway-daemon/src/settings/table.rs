//! The table of settings: every key with its type, range, default and purpose.
//!
//! The reader, the messages of `doorway serve --check`, the page about settings and the file
//! packaging/doorway.toml are all made from it, so a key is described in one place.

use std::time::Duration;

use Kind::{Count, Mode, Switch, Tables, Text, Texts, Time};
use Value::{Default, Example, Heading, Required, Set};
use doorway_protocol::nearest::nearest;

use super::{DATA, SOCKET};

/// A table of the configuration file, such as `[tls]`.
pub(super) struct Table {
    /// What messages call the table.
    pub(super) title: &'static str,
    /// How a message says where a key of this table belongs.
    pub(super) place: &'static str,
    /// What the table is for.
    pub(super) about: &'static str,
    pub(super) keys: &'static [Key],
}

/// One key of a table.
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) value: Value,
    /// What the key is for.
    pub(super) about: &'static str,
}

/// The type of a value, with its range.
pub(super) enum Kind {
    /// A text that is not empty. The text here says what it names.
    Text(&'static str),
    /// A whole number in this range.
    Count(u64, u64),
    /// A time in this range.
    Time(Duration, Duration),
    /// Permissions of a file, in octal.
    Mode,
    /// True or false.
    Switch,
    /// A list of texts. The text here says of what.
    Texts(&'static str),
    /// A table, which the file has at most once.
    Table(&'static Table),
    /// A table that the file may have several times.
    Tables(&'static Table),
}

/// What holds without the key, and what the commented configuration shows. Texts, times and
/// permissions stand here without their quotes.
pub(super) enum Value {
    /// This value, if the file has no such key.
    Default(&'static str),
    /// Nothing; this is an example.
    Example(&'static str),
    /// Nothing, but the commented configuration sets the key to this.
    Set(&'static str),
    /// The key is required; this is an example.
    Required(&'static str),
    /// The keys of the table have values of their own.
    Heading,
}

const fn key(name: &'static str, kind: Kind, value: Value, about: &'static str) -> Key {
    Key { name, kind, value, about }
}

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_hours(24);
const MONTH: Duration = Duration::from_hours(30 * 24);

/// The authorities that Debian and its relatives trust.
pub(super) const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// The range of a number that only memory limits.
const NUMBER: Kind = Count(1, 1 << 30);

/// The range of the times of `[links]`.
const LINK_TIME: Kind = Time(Duration::from_millis(10), DAY);

/// What messages call a pattern of names.
const PATTERN: Kind = Text("a whole name, or a prefix followed by `*`");

pub(super) static TOP: Table = Table {
    title: "the file",
    place: "at the top of the file",
    about: "Keys at the top of the file stand before the first table.",
    keys: &[
        key(
            "group",
            Text("the name of the group"),
            Default("local"),
            "The name of the group. All members give the same name, and their certificates are for \
             NODE.GROUP.doorway.",
        ),
        key(
            "node",
            Text("the name of this node"),
            Example("a"),
            "The name of this node, which its certificate proves. Not needed if there is only one \
             [[member]].",
        ),
        key(
            "data",
            Text("a directory"),
            Set(DATA),
            "The directory for what must survive a restart: the number of starts, so that fences \
             always grow, and the ledger of sessions, so that no holder is forgotten after a \
             crash. Members of a group must name it; a node without members uses \
             /var/lib/doorway.",
        ),
        key(
            "socket",
            Text("a path, or @name"),
            Default(SOCKET),
            "The Unix socket for clients of this machine: a path, or @name for an abstract socket, \
             which is not a file.",
        ),
        key(
            "socket_mode",
            Mode,
            Default("0660"),
            "The permissions of the socket. Every user who may open it may use every lock. \"0660\" is for \
             the user and the group of the service, \"0666\" for everyone on the machine.",
        ),
        key(
            "algorithm",
            Text("the name of an algorithm"),
            Default("carvalho-roucairol"),
            "The algorithm of all locks that no [[lock]] matches. `doorway list` shows them all.",
        ),
        key(
            "handovers",
            Count(0, u32::MAX as u64),
            Default("6"),
            "How many times each client that waits at this node may get a lock before the lock \
             goes to another node that waits for it. A client gets it more than once only where \
             clients ask again at once. With 0, only one client gets it. Give all members the same \
             number: the shares of their clients depend on it.",
        ),
        key(
            "drain",
            Time(Duration::ZERO, DAY),
            Default("10s"),
            "How long `doorway drain` waits for clients to release their locks.",
        ),
        key(
            "idle_stop",
            Time(SECOND, Duration::from_hours(365 * 24)),
            Example("10m"),
            "Stop the node after this time without clients. Without this key it never stops by \
             itself.",
        ),
        key(
            "record",
            Text("a file"),
            Example("/var/lib/doorway/record"),
            "Record what the locks do in this file, for `doorway diagram --recorded`. Without this \
             key nothing is recorded. A group that agrees on its members cannot be recorded.",
        ),
        key("member", Tables(&MEMBER), Heading, "The members of a fixed group."),
        key("members", Kind::Table(&MEMBERS), Heading, "A group that agrees on its members."),
        key("tls", Kind::Table(&TLS), Heading, "The certificates of this node."),
        key("links", Kind::Table(&LINKS), Heading, "The links between members."),
        key("lock", Tables(&LOCK), Heading, "Rules for some locks."),
        key("sessions", Kind::Table(&SESSIONS), Heading, "Sessions over TCP."),
        key("http", Kind::Table(&HTTP), Heading, "HTTP over TCP."),
        key("redis", Kind::Table(&REDIS), Heading, "Locks for Redis clients."),
        key("etcd", Kind::Table(&ETCD), Heading, "Locks for etcd clients."),
        key("client", Tables(&CLIENT), Heading, "The clients that may connect over TCP."),
        key("limits", Kind::Table(&LIMITS), Heading, "Limits."),
    ],
};

pub(super) static MEMBER: Table = Table {
    title: "[[member]]",
    place: "under [[member]]",
    about: "A member of a fixed group. The files of all members list the same members in the same \
            order. Without any, and without [members], the node is alone.",
    keys: &[
        key(
            "name",
            Text("the name of the member, which its certificate proves"),
            Required("a"),
            "The name of the member.",
        ),
        key(
            "address",
            Text("where the other members find it, as \"a.example:7001\""),
            Example("a.example:7001"),
            "Where the other members find it: host:port. Required if there are several members.",
        ),
    ],
};

pub(super) static MEMBERS: Table = Table {
    title: "[members]",
    place: "under [members]",
    about: "A group that agrees on its members, instead of [[member]]. Machines are added, removed \
            and replaced while the others work, and locks go on if a minority of the machines \
            fails. `node`, `data` and [tls] are required. The group begins with `doorway members \
            init`.",
    keys: &[
        key(
            "agree",
            Text("\"raft\" or \"etcd\""),
            Default("raft"),
            "How the members agree: \"raft\" needs nothing besides the nodes themselves, \"etcd\" \
             uses an etcd that you have. All members of a group agree in the same way.",
        ),
        key(
            "address",
            Text("where the other members find this node, as \"a.example:7001\""),
            Required("a.example:7001"),
            "Where the other members find this node: host:port. The node listens there.",
        ),
        key(
            "join",
            Texts("a list of addresses of members"),
            Example("[\"a.example:7001\", \"b.example:7001\", \"c.example:7001\"]"),
            "The addresses of members. `doorway members init` founds the group with this node and \
             these members. It may contain the address of this node, so that all files can have \
             the same list.",
        ),
        key(
            "lease",
            Time(Duration::from_secs(2), Duration::from_mins(5)),
            Default("10s"),
            "How long the group waits for a silent member before it goes on without that member. \
             `doorway members init` uses it; afterwards `doorway members lease` changes the lease.",
        ),
        key(
            "etcd",
            Texts("a list of URLs, as [\"https://e1.example:2379\"]"),
            Example("[\"https://e1.example:2379\", \"https://e2.example:2379\"]"),
            "With agree = \"etcd\": the servers of etcd, http:// or https://. All of them belong \
             to one cluster. The keys of the group begin with /doorway/GROUP/.",
        ),
        key(
            "etcd_ca",
            Text("a file with certificates"),
            Default(AUTHORITIES),
            "The authority that has issued the certificates of etcd, for https://.",
        ),
        key(
            "etcd_certificate",
            Text("a file with a certificate"),
            Example("etcd-client.crt"),
            "The certificate that this node shows to etcd, if etcd asks for one.",
        ),
        key(
            "etcd_key",
            Text("a file with a key"),
            Example("etcd-client.key"),
            "The key of `etcd_certificate`.",
        ),
        key(
            "etcd_user",
            Text("the name of a user of etcd"),
            Example("doorway"),
            "The user of etcd, if etcd asks for one. The user needs to read and write all keys \
             that begin with /doorway/GROUP/.",
        ),
        key(
            "etcd_password",
            Text("a file with a password"),
            Example("etcd.password"),
            "The file with the password of `etcd_user`.",
        ),
    ],
};

static TLS: Table = Table {
    title: "[tls]",
    place: "under [tls]",
    about: "The certificates of this node, as `doorway ca node` makes them. A relative path is \
            relative to the directory of this file. The node reads them again when they change.",
    keys: &[
        key(
            "ca",
            Text("the file ca.crt of `doorway ca init`"),
            Required("ca.crt"),
            "The certificate of the authority.",
        ),
        key(
            "certificate",
            Text("the certificate that `doorway ca node` made"),
            Required("a.crt"),
            "The certificate of this node.",
        ),
        key(
            "key",
            Text("the key that `doorway ca node` made"),
            Required("a.key"),
            "The private key of this node.",
        ),
    ],
};

static LINKS: Table = Table {
    title: "[links]",
    place: "under [links]",
    about: "How soon a broken link between members is noticed.",
    keys: &[
        key(
            "heartbeat",
            LINK_TIME,
            Default("500ms"),
            "The node sends a heartbeat over a link on which it has sent nothing for this time.",
        ),
        key(
            "silence",
            LINK_TIME,
            Default("3s"),
            "The node reconnects a link on which it has received nothing for this time.",
        ),
    ],
};

static LOCK: Table = Table {
    title: "[[lock]]",
    place: "under [[lock]]",
    about: "A rule for the locks whose names match. The first rule that matches a name counts. All \
            members need the same rules in the same order. In a group with [members], the rules on \
            which the group has agreed count instead; `doorway members rules` changes them.",
    keys: &[
        key(
            "names",
            PATTERN,
            Required("reports/*"),
            "Which locks: a whole name, or a prefix followed by `*`.",
        ),
        key(
            "algorithm",
            Text("the name of an algorithm"),
            Example("readers-writers"),
            "The algorithm of these locks. `readers-writers` lets holders in shared mode in \
             together. Without this key it is the `algorithm` at the top.",
        ),
        key(
            "permits",
            Count(1, 16_777_216),
            Default("1"),
            "How many clients may hold such a lock at once (a counting semaphore). Above 1 the \
             algorithm is `raymond-k`.",
        ),
        key(
            "permits_per_node",
            Count(1, 16_777_216),
            Example("1"),
            "How many of the permits the clients of one node may hold at once, for `raymond-k`. \
             Without this key they may hold all of them. Fewer permits per node make an entry \
             cheaper: with one it costs at most 2(N-1) messages.",
        ),
        key(
            "quorums",
            Text("a construction, as \"grid\", or the quorum of each member, as \"a=a,b; b=b,a\""),
            Example("grid"),
            "How the quorums of `maekawa` and its relatives are made: projective-plane, \
             degenerate-plane, grid, triangle, triangle:1, triangle:2, cyclic, majority, weighted; \
             or the quorum of each member by hand, as \"a=a,b; b=b,c; c=c,a\". Any two quorums \
             must have a member in common. Without this key it is the construction with the \
             smallest quorums.",
        ),
        key(
            "weights",
            Text("the weight of each member, as \"a=2, b=1, c=1\""),
            Example("a=2, b=1, c=1"),
            "The weight of each member's vote, for `weighted-majority` and for `weighted` quorums. \
             A member that is not named has one vote. Without this key the first member has two \
             votes.",
        ),
        key(
            "tree",
            Text("chain, star, balanced:K, or the parent of each member, as \"b=a, c=a\""),
            Example("star"),
            "The tree of `raymond-tree`, and of `suzuki-kasami` and `raymond-echo` with the \
             topology `tree`: chain, star or balanced:K with the first member as the root, or the \
             parent of each member but the root, as \"b=a, c=a, d=b\". Without this key it is \
             balanced:2.",
        ),
        key(
            "topology",
            Text("mesh, ring or tree"),
            Example("ring"),
            "The links along which the messages of `suzuki-kasami` travel, or over which the wave \
             of `raymond-echo` builds its tree: mesh, ring or tree. Without this key it is mesh \
             for `suzuki-kasami` and ring for `raymond-echo`.",
        ),
        key(
            "coordinator",
            Text("the name of a member"),
            Example("a"),
            "The member that decides, for `central`. Without this key each lock has a coordinator \
             of its own, which follows from the names of the lock and the members, so that the \
             locks are spread over all members.",
        ),
    ],
};

static SESSIONS: Table = Table {
    title: "[sessions]",
    place: "under [sessions]",
    about: "Sessions over TCP with TLS, for `doorway --socket tcp://host:port` and the Rust \
            client. They need [tls] and a [[client]].",
    keys: &[key(
        "listen",
        Text("host:port, as \"0.0.0.0:7002\""),
        Required("0.0.0.0:7002"),
        "Where to listen: host:port.",
    )],
};

static HTTP: Table = Table {
    title: "[http]",
    place: "under [http]",
    about: "HTTP over TCP with TLS. It needs [tls] and a [[client]]. The Unix socket always serves \
            HTTP, too.",
    keys: &[
        key(
            "listen",
            Text("host:port, as \"0.0.0.0:7003\""),
            Required("0.0.0.0:7003"),
            "Where to listen: host:port.",
        ),
        key(
            "hosts",
            Texts("a list of names of this host"),
            Example("[\"locks.example\"]"),
            "The names by which clients may address this host, besides its IP addresses.",
        ),
        key(
            "page",
            Switch,
            Default("false"),
            "Whether to serve the live page at /page. Its files need no token; what it shows does.",
        ),
    ],
};

static REDIS: Table = Table {
    title: "[redis]",
    place: "under [redis]",
    about: "Locks for programs that use a Redis client: the part of the Redis protocol that lock \
            clients need, over TCP with TLS. It needs [tls] and a [[client]], whose token is the \
            password. With this table the Unix socket serves Redis clients, too. docs/redis.md \
            says what differs from Redis.",
    keys: &[
        key(
            "listen",
            Text("host:port, as \"127.0.0.1:6380\""),
            Required("127.0.0.1:6380"),
            "Where to listen: host:port.",
        ),
        key(
            "redlock",
            Switch,
            Default("false"),
            "Whether this node says OK for a lock that the same client holds at another member \
             with the same value, after that member has confirmed it, as Redlock needs it. Give it \
             to all members, and use values that no two programs share. docs/redis.md says why.",
        ),
    ],
};

static ETCD: Table = Table {
    title: "[etcd]",
    place: "under [etcd]",
    about: "Locks for programs that use an etcd client: the part of etcd's gRPC and of its JSON \
            gateway that lock clients need, over TCP with TLS. It needs [tls] and a [[client]], \
            whose name and token are the user and the password. With this table the Unix socket \
            serves etcd clients, too. docs/etcd.md says what differs from etcd.",
    keys: &[key(
        "listen",
        Text("host:port, as \"127.0.0.1:2379\""),
        Required("127.0.0.1:2379"),
        "Where to listen: host:port.",
    )],
};

static CLIENT: Table = Table {
    title: "[[client]]",
    place: "under [[client]]",
    about: "A client that may connect over TCP. It proves who it is by a certificate of `doorway \
            ca client NAME`, or by a token. `openssl rand -hex 32 > ci.token` makes a token.",
    keys: &[
        key("name", Text("the name of the client, as \"ci\""), Required("ci"), "Its name."),
        key(
            "token_file",
            Text("a file that holds the token"),
            Example("ci.token"),
            "A file that holds the token of the client: 16 characters or more.",
        ),
        key(
            "token_sha256",
            Text("64 hexadecimal digits"),
            Example("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
            "The SHA-256 of the token, instead of `token_file`: `printf %s \"$(cat ci.token)\" | \
             sha256sum` prints it.",
        ),
        key(
            "rights",
            Tables(&RIGHT),
            Required("[{ names = \"deploy/*\", may = [\"acquire\", \"inspect\", \"break\"] }]"),
            "What the client may do with which locks.",
        ),
    ],
};

static RIGHT: Table = Table {
    title: "an entry of `rights`",
    place: "as { names = \"deploy/*\", may = [\"acquire\"] }",
    about: "Rights to the locks whose names match.",
    keys: &[
        key(
            "names",
            PATTERN,
            Required("deploy/*"),
            "Which locks: a whole name, or a prefix followed by `*`.",
        ),
        key(
            "may",
            Texts("a list of \"acquire\", \"inspect\" and \"break\""),
            Example("[\"acquire\"]"),
            "What the client may do with them: \"acquire\" (also renew and release), \"inspect\" \
             (see holders and waiting requests) or \"break\" (take the lock from its holder).",
        ),
    ],
};

pub(super) static LIMITS: Table = Table {
    title: "[limits]",
    place: "under [limits]",
    about: "A client that exceeds a limit gets an error; other clients are not affected. Each \
            [[client]] gets at most half of `sessions`, `connections`, `queue` and `outstanding`, \
            and 256 streams of events; clients on this machine may use everything.",
    keys: &[
        key("sessions", NUMBER, Default("20000"), "Open sessions."),
        key(
            "connections",
            NUMBER,
            Default("25000"),
            "Connections, including those without a session.",
        ),
        key("grants", NUMBER, Default("200000"), "Grants that one session may hold."),
        key("waiting", NUMBER, Default("10000"), "Requests of one session that may wait."),
        key("queue", NUMBER, Default("10000"), "Requests at this node that may wait for one lock."),
        key(
            "ttl",
            Time(SECOND, DAY),
            Default("60s"),
            "The longest time to live of a session: how long it survives without a heartbeat.",
        ),
        key(
            "terraform_ttl",
            Time(SECOND, MONTH),
            Default("24h"),
            "How long a lock of Terraform is held if Terraform does not unlock it. Terraform \
             sends no heartbeats, so make this longer than any of its runs.",
        ),
        key(
            "endless",
            Switch,
            Default("false"),
            "Whether clients may hold a lock without a time to live, until it is released or \
             broken (`doorway lock --ttl never`).",
        ),
        key("outstanding", NUMBER, Default("1000000"), "Acquire requests that are open at once."),
        key(
            "idle_locks",
            Count(0, 1 << 30),
            Default("65536"),
            "Unused locks whose state the node keeps in memory.",
        ),
    ],
};

/// Every table, in the order of the page about settings.
pub(super) static ALL: [&Table; 13] = [
    &TOP, &MEMBER, &MEMBERS, &TLS, &LINKS, &LOCK, &SESSIONS, &HTTP, &REDIS, &ETCD, &CLIENT, &RIGHT,
    &LIMITS,
];

impl Table {
    /// The key of this name, if the table has one.
    pub(super) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// What to do about a key that this table does not have.
    pub(super) fn remedy(&self, key: &str) -> String {
        if let Some(near) = nearest(key, self.keys.iter().map(|key| key.name)) {
            return format!("did you mean `{near}`?");
        }
        let elsewhere = ALL.iter().filter(|table| table.key(key).is_some());
        let places: Vec<&str> = elsewhere.map(|table| table.place).collect();
        if places.is_empty() {
            let known: Vec<&str> = self.keys.iter().map(|key| key.name).collect();
            format!("known keys are {}", known.join(", "))
        } else {
            format!("it belongs {}", places.join(" or "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_key_is_answered_with_the_right_one_or_its_place() {
        assert_eq!(TOP.remedy("grup"), "did you mean `group`?");
        assert_eq!(TOP.remedy("memebr"), "did you mean `member`?");
        assert_eq!(
            TOP.remedy("listen"),
            "it belongs under [sessions] or under [http] or under [redis] or under [etcd]"
        );
        assert_eq!(TLS.remedy("password"), "known keys are ca, certificate, key");
    }
}
