//! The stores of the other seats, as this one reaches them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::bond::Bond;
use crate::error::AskError;
use crate::rpc::client::{Client, Dialer};
use crate::rpc::frame::{Agreement, Ask, Head, Hello, ReplyBody};
use crate::types::Peer;

/// The clients of all other seats.
pub(crate) struct Peers {
    seat: u64,
    bond: Arc<Bond>,
    dialer: Dialer,
    clients: Mutex<BTreeMap<u64, Client>>,
}

impl Peers {
    pub(crate) fn new(seat: u64, bond: Arc<Bond>, dialer: Dialer) -> Self {
        Self { seat, bond, dialer, clients: Mutex::default() }
    }

    /// Ask the store of a seat, and wait for the answer no longer than this.
    pub(crate) async fn ask(
        &self,
        seat: u64,
        peer: &Peer,
        ask: Ask,
        patience: Duration,
    ) -> Result<ReplyBody, AskError> {
        let client = self.client(seat, peer);
        let head = Head { cluster: self.bond.cluster(), from: self.seat, to: Some(seat) };
        client.ask(head, ask, patience).await
    }

    /// Ask the store at an address who it is. It has to agree as this one does.
    pub(crate) async fn hello(
        &self,
        group: &str,
        address: &str,
        ours: Agreement,
    ) -> Result<Hello, AskError> {
        let client = Client::new(self.dialer.clone(), address.to_owned(), None);
        let head = Head { cluster: self.bond.cluster(), from: self.seat, to: None };
        // The connection has to be made, too.
        let patience = self.dialer.patience * 2;
        match client.ask(head, Ask::Hello(group.to_owned()), patience).await? {
            ReplyBody::Hello(hello) => {
                ours.check(hello.agreement).map_err(AskError::Refused)?;
                Ok(hello)
            }
            told => Err(unexpected(&told)),
        }
    }

    /// When the store of a seat has answered for the last time.
    pub(crate) fn heard(&self, seat: u64) -> Option<Instant> {
        self.clients.lock().get(&seat).and_then(Client::heard)
    }

    /// Close the connections with all seats but these.
    pub(crate) fn retain(&self, keep: impl Fn(u64) -> bool) {
        self.clients.lock().retain(|seat, _| keep(*seat));
    }

    fn client(&self, seat: u64, peer: &Peer) -> Client {
        let mut clients = self.clients.lock();
        if let Some(client) = clients.get(&seat)
            && client.address == peer.address
        {
            return client.clone();
        }
        let name = Some(peer.name.clone());
        let client = Client::new(self.dialer.clone(), peer.address.clone(), name);
        clients.insert(seat, client.clone());
        client
    }
}

/// An answer that does not belong to its question.
pub(crate) fn unexpected(told: &ReplyBody) -> AskError {
    AskError::Refused(format!("an answer that does not fit: {told:?}"))
}
