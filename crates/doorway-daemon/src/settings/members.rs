//! The settings of a group that agrees on its members.

use std::path::Path;
use std::time::Duration;

use doorway_members::EtcdAccess;
use doorway_node::{Config, MemberConfig};

use super::document::{Diagnostics, Section, SourceValue, shown};
use super::{etcd, value};

/// The settings of a group that agrees on its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MembersSettings {
    /// The address at which the other members find this node, and at which it listens.
    pub address: String,
    /// The addresses of members. The address of this node may be among them.
    pub join: Vec<String>,
    /// The lease of members, until the group has one.
    pub lease: Duration,
    /// The etcd by which the members agree; none if they agree by Raft.
    pub etcd: Option<EtcdAccess>,
}

/// Read `[members]`, if the file has it. The node then is its own only member in `config`.
pub(super) fn members(
    top: &Section<'_, '_>,
    file: &Path,
    config: &mut Config,
    is_fixed: bool,
) -> Option<MembersSettings> {
    let section = top.table("members");
    if !section.is_there() {
        return None;
    }
    let diagnostics = top.diagnostics;
    if is_fixed {
        let remedy = "remove [members] to keep the fixed group, or every [[member]] to let the \
                      members agree";
        diagnostics.wrong(section.line, "a file has [members] or [[member]], not both", remedy);
    }
    let agree = section.text("agree");
    let by_etcd = agree.as_ref().is_some_and(|at| at.value == "etcd");
    if let Some(SourceValue { line, value }) = agree.filter(|at| at.value != "raft" && !by_etcd) {
        let what = format!("members cannot agree by \"{}\"", shown(&value));
        diagnostics.wrong(line, what, "write agree = \"raft\" or agree = \"etcd\"");
    }
    let etcd = etcd::access(&section, file, by_etcd);
    if let Some(SourceValue { line, .. }) = top.text("record") {
        let what = "a recording names the members of its group once, so a group that agrees on its \
                    members cannot be recorded";
        diagnostics.wrong(line, what, "remove `record`");
    }
    let address = section.text("address");
    if let Some(SourceValue { line, value }) = &address {
        check(diagnostics, "address", *line, value);
    }
    let mut join = Vec::new();
    for SourceValue { line, value } in section.texts("join") {
        check(diagnostics, "join", line, &value);
        join.push(value);
    }
    let address = address.map(|at| at.value).unwrap_or_default();
    if !is_fixed {
        config.members = vec![MemberConfig { name: config.me.clone(), address: address.clone() }];
    }
    if !top.has("node") {
        let what = "a node of a group that agrees on its members needs a name";
        let remedy = "add `node = \"NAME\"` with the name for which its certificate was made";
        diagnostics.wrong(section.line, what, remedy);
    }
    if !top.has("tls") {
        let what = "a node with peers needs certificates";
        let remedy = "add [tls] with `ca`, `certificate` and `key`; `doorway ca` makes them";
        diagnostics.wrong(section.line, what, remedy);
    }
    if config.data.is_none() {
        let what = "a node with peers needs a directory that survives restarts";
        diagnostics.wrong(section.line, what, "add data = \"/var/lib/doorway\"");
    }
    Some(MembersSettings { address, join, lease: section.time("lease").unwrap_or_default(), etcd })
}

fn check(diagnostics: &Diagnostics, key: &str, line: Option<usize>, address: &str) {
    if let Err(why) = value::address(address) {
        let what = format!("`{key}` has \"{}\": {why}", shown(address));
        diagnostics.wrong(line, what, "write host:port, as \"a.example:7001\"");
    }
}
