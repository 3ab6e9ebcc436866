//! Finds the node to which a call belongs, and passes the call on to it.
//!
//! A client may know all members of the group, and send its calls to any of them. Leases and keys
//! stay at one node; this one passes calls about others on.

use std::sync::Arc;

use doorway_node::members::BoxedFuture;
use doorway_protocol::{Holder, Name};
use serde::{Deserialize, Serialize};

use super::holders::Holders;
use super::home::{Client, HomeCall, HomeReply, Homes, KeyState};
use super::label;
use super::status::{Code, Status};
use crate::service::{CallDoor, PassedClient, Service};

/// How many times a node looks for the holder of a lock, if the holder changes while it looks.
const LOOKS: usize = 3;

/// A call as it is passed on, with the client that the other node has to trust.
#[derive(Debug, Serialize, Deserialize)]
struct PassedCall {
    #[serde(flatten)]
    client: PassedClient,
    call: HomeCall,
}

/// Where leases and keys are.
pub(super) struct Routes {
    pub(super) homes: Arc<Homes>,
    pub(super) holders: Holders,
}

/// The client that holds a lock, as etcd would show it.
pub(super) struct Owner {
    /// The key of the holder; none if its client does not use etcd, or if its node does not answer.
    pub(super) key: Option<KeyState>,
    pub(super) holder: Holder,
}

impl Routes {
    pub(super) fn new(service: &Service) -> Arc<Self> {
        let homes = Homes::new(service);
        // Not an `Arc`: the service is in it, and would keep itself alive.
        let here = Arc::downgrade(&homes);
        let carry_out = Arc::new(move |call| carry_out(here.upgrade(), call));
        service.carry_out_by(CallDoor::Etcd, carry_out);
        Arc::new(Self { homes, holders: Holders::default() })
    }

    pub(super) fn service(&self) -> &Service {
        &self.homes.service
    }

    /// Carry out a call about a lease or a revision at the node where it is at home.
    pub(super) async fn at_home(
        &self,
        client: &Client,
        id: i64,
        call: HomeCall,
    ) -> Result<HomeReply, Status> {
        let (here, others) = self.homes.homes_of(id);
        let mut outcome = Err(Status::no_lease());
        if here {
            outcome = self.homes.carry_out(client, call.clone()).await;
        }
        for node in others {
            // Only if the names of two members give the same numbers, there is another one to ask.
            let known = match &outcome {
                Err(status) => status.code != Code::NotFound,
                Ok(HomeReply::Time { left, .. }) => *left > 0,
                Ok(HomeReply::Key(key)) => key.is_some(),
                Ok(HomeReply::Done(done)) => *done,
            };
            if known {
                break;
            }
            outcome = self.at(&node, client, call.clone()).await;
        }
        outcome
    }

    /// Carry out a call about a key at the node where it is at home.
    pub(super) async fn key_at_home(
        &self,
        client: &Client,
        id: i64,
        call: HomeCall,
    ) -> Result<Option<KeyState>, Status> {
        match self.at_home(client, id, call).await? {
            HomeReply::Key(key) => Ok(key),
            _ => Err(Status::unexpected()),
        }
    }

    /// Carry out a call at this node or at another one.
    pub(super) async fn at(
        &self,
        node: &str,
        client: &Client,
        call: HomeCall,
    ) -> Result<HomeReply, Status> {
        if node == self.service().node().name() {
            return self.homes.carry_out(client, call).await;
        }
        let client = PassedClient::new(self.service(), &client.principal);
        let passed = PassedCall { client, call };
        let text = serde_json::to_string(&passed).map_err(|_| Status::unexpected())?;
        let client = &passed.client;
        let answer = self.service().pass_on(node, CallDoor::Etcd, client, text).await?;
        let answer: Result<Result<HomeReply, Status>, _> = serde_json::from_str(&answer);
        answer.unwrap_or_else(|_| Err(Status::unexpected()))
    }

    /// The client that holds a lock, at any member. If the node of the holder does not answer, its
    /// key is missing.
    pub(super) async fn owner(
        &self,
        client: &Client,
        lock: &Name,
    ) -> Result<Option<Owner>, Status> {
        let Some((holder, key)) = self.holder(client, lock).await? else { return Ok(None) };
        Ok(Some(Owner { key: key.unwrap_or_default(), holder }))
    }

    /// The client that holds a lock, at any member. An error if the node of the holder does not
    /// answer: nobody else knows whether the holder has a key.
    pub(super) async fn owner_with_key(
        &self,
        client: &Client,
        lock: &Name,
    ) -> Result<Option<Owner>, Status> {
        let Some((holder, key)) = self.holder(client, lock).await? else { return Ok(None) };
        Ok(Some(Owner { key: key?, holder }))
    }

    /// The client that holds a lock, at any member, and its key, if it has one. The key is an error
    /// if the node of the holder does not answer.
    async fn holder(
        &self,
        client: &Client,
        lock: &Name,
    ) -> Result<Option<(Holder, Result<Option<KeyState>, Status>)>, Status> {
        for _ in 0..LOOKS {
            let held = self.service().holding(&client.principal, lock).await?;
            let Some(held) = held else { return Ok(None) };
            let call = HomeCall::Holder { lock: lock.to_string() };
            let key = match self.at(&held.holder.node, client, call).await {
                Ok(HomeReply::Key(key)) => Ok(key),
                Ok(_) => return Err(Status::unexpected()),
                // A node without this door has no keys.
                Err(status) if status.code == Code::Unimplemented => Ok(None),
                // The report names the holder, so its client is told without a key.
                Err(status) if status.code == Code::Unavailable => Err(status),
                Err(status) => return Err(status),
            };
            let other = |key: &KeyState| key.fence != Some(held.holder.fence);
            if !matches!(&key, Ok(Some(key)) if other(key)) {
                return Ok(Some((held.holder, key)));
            }
            // Another client holds the lock since the first question.
        }
        let text = format!("the holder of `{lock}` has just changed: ask again");
        Err(Status::new(Code::Unavailable, text))
    }
}

impl Owner {
    /// Whether the lock is held with this fence.
    pub(super) fn is(&self, fence: i64) -> bool {
        self.holder.fence.get().cast_signed() == fence
    }

    /// The value of the holder's key.
    pub(super) fn value(&self) -> Vec<u8> {
        let key = self.key.as_ref().map(|key| key.value.clone());
        let told = || label::value(&self.holder.client);
        key.or_else(told).unwrap_or_else(|| format!("doorway:{}", self.holder.fence).into())
    }
}

/// Carry out a call that another member has passed on.
fn carry_out(homes: Option<Arc<Homes>>, text: String) -> BoxedFuture<'static, String> {
    Box::pin(async move {
        let answer = match (serde_json::from_str::<PassedCall>(&text), homes) {
            (Ok(PassedCall { client, call }), Some(homes)) => {
                let principal = client.principal();
                homes.carry_out(&Client { principal, remote: true }, call).await
            }
            (Ok(_), None) => Err(Status::unimplemented("this node serves no etcd clients")),
            (Err(_), _) => Err(Status::unimplemented(
                "the node at which the lease is at home has another version",
            )),
        };
        serde_json::to_string(&answer).unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use doorway_sessions::principal::{Principal, Rights};
    use proptest::prelude::*;
    use proptest::sample::Index;
    use proptest::test_runner::{Config, TestRunner};
    use tokio::time::timeout;

    use super::super::home::KeyAsk;
    use super::*;
    use crate::settings::{Overrides, Settings};

    /// One call of each kind, as it is passed on.
    fn calls(service: &Service) -> Vec<String> {
        let principal = Principal { name: "client ci".into(), uid: None, rights: Rights::all() };
        let (lock, lease, value) = (|| "l".to_owned(), 0x4000_0000_0000_0007, b"v".to_vec());
        let ask = KeyAsk { lease, lock: lock(), key: b"l".to_vec(), value: value.clone() };
        let calls = [
            HomeCall::KeepAlive(lease),
            HomeCall::Revoke(lease),
            HomeCall::TimeToLive(lease),
            HomeCall::Enter { ask: ask.clone(), first: true },
            HomeCall::Lock(ask.clone()),
            HomeCall::Try(ask),
            HomeCall::Look { lease, lock: lock() },
            HomeCall::Request { lock: lock(), revision: 7 },
            HomeCall::Await { lock: lock(), revision: 7 },
            HomeCall::Holder { lock: lock() },
            HomeCall::Delete { lease, lock: lock(), created: Some(7) },
            HomeCall::DeleteValue { lock: lock(), value: value.clone() },
            HomeCall::Put { lease, lock: lock(), value, created: None },
        ];
        let client = || PassedClient::new(service, &principal);
        let passed = calls.map(|call| PassedCall { client: client(), call });
        passed.iter().map(|call| serde_json::to_string(call).unwrap()).collect()
    }

    /// A member of another version, or one with a mistake, may pass on anything.
    #[test]
    fn calls_with_random_changes_are_no_trouble() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let file = std::path::Path::new("/nowhere/doorway.toml");
        let mut settings = Settings::parse("", file, &Overrides::default()).unwrap();
        settings.node.data = None;
        let service = runtime.block_on(Service::start(&settings, None)).unwrap();
        let routes = Routes::new(&service);
        let send = |text: String| {
            let answer = carry_out(Some(Arc::clone(&routes.homes)), text);
            runtime.block_on(async { timeout(Duration::from_millis(200), answer).await })
        };
        let calls = calls(&service);
        let no_lease: Result<HomeReply, Status> = Err(Status::no_lease());
        // The number names no lease of this node, and the calls are understood.
        assert_eq!(send(calls[1].clone()).unwrap(), serde_json::to_string(&no_lease).unwrap());
        let changes = prop::collection::vec((any::<Index>(), 0..4, any::<u8>()), 1..5);
        let config = Config { failure_persistence: None, ..Config::with_cases(2000) };
        let case = (any::<Index>(), changes);
        let checked = TestRunner::new(config).run(&case, |(call, changes)| {
            let mut bytes = call.get(&calls).clone().into_bytes();
            for (at, how, byte) in changes {
                let at = at.index(bytes.len().max(1)).min(bytes.len());
                match how {
                    0 => bytes.insert(at, byte),
                    1 => bytes.truncate(at),
                    2 => bytes.splice(at..at, b"9999999999".iter().copied()).for_each(drop),
                    _ if at < bytes.len() => bytes[at] = byte,
                    _ => {}
                }
            }
            // Without an answer, it waits for a lock.
            if let Ok(answer) = send(String::from_utf8_lossy(&bytes).into_owned()) {
                let read = serde_json::from_str::<Result<HomeReply, Status>>(&answer);
                prop_assert!(read.is_ok(), "{}", answer);
            }
            Ok(())
        });
        checked.unwrap();
    }
}
