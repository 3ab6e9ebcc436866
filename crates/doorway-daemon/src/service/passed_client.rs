//! A client as one member names it to another one, when it passes a call of this client on.

use std::sync::Arc;

use doorway_protocol::NamePattern;
use doorway_sessions::principal::{PatternRights, Principal, Right, Rights};
use serde::{Deserialize, Serialize};

use super::Service;

/// A client and its rights at the member that passes its call on, which the other member trusts.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PassedClient {
    client: String,
    rights: Vec<PassedRights>,
}

/// Rights to the locks of a pattern.
#[derive(Debug, Serialize, Deserialize)]
struct PassedRights {
    names: String,
    acquire: bool,
    inspect: bool,
    break_: bool,
}

impl PassedClient {
    /// Name a client of this node to another member.
    pub(crate) fn new(service: &Service, principal: &Principal) -> Self {
        let Principal { name, uid, rights } = principal;
        // A user of this machine may be another one on the machine of the other node.
        let here = || format!("{name} at the node {}", service.node().name());
        let rights = rights.0.iter().map(|PatternRights { pattern, may }| PassedRights {
            names: match pattern {
                NamePattern::Exact(name) => name.clone(),
                NamePattern::Prefix(prefix) => format!("{prefix}*"),
            },
            acquire: may.contains(&Right::Acquire),
            inspect: may.contains(&Right::Inspect),
            break_: may.contains(&Right::Break),
        });
        let client = if uid.is_some() { here() } else { name.clone() };
        Self { client, rights: rights.collect() }
    }

    /// The name of the client, by which other members know it.
    pub(crate) fn name(&self) -> &str {
        &self.client
    }

    /// The client, at the member to which its call was passed on.
    pub(crate) fn principal(self) -> Arc<Principal> {
        let rights = Rights(self.rights.into_iter().map(allowed).collect());
        Arc::new(Principal { name: self.client, uid: None, rights })
    }
}

fn allowed(rights: PassedRights) -> PatternRights {
    let PassedRights { names, acquire, inspect, break_ } = rights;
    let may = [(acquire, Right::Acquire), (inspect, Right::Inspect), (break_, Right::Break)];
    let may = may.into_iter().filter_map(|(may, right)| may.then_some(right)).collect();
    PatternRights { pattern: NamePattern::new(&names), may }
}
