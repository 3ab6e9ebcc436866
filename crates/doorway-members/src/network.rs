//! How openraft sends votes, entries and snapshots to other members.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use openraft::error::{
    Fatal, PayloadTooLarge, RPCError, RaftError, ReplicationClosed, StreamingError, Unreachable,
};
use openraft::network::{Backoff, RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse,
};
use openraft::{LogId as RaftLogId, OptionalSend};

use crate::encoding::{Line, Picture, Place};
use crate::error::AskError;
use crate::peers::{Peers, unexpected};
use crate::rpc::frame::{Ask, ReplyBody};
use crate::types::{LogId, Peer, Snapshot, TypeConfig, Vote};

type RpcError = RPCError<u64, Peer, RaftError<u64>>;

/// Makes a [`Link`] to each other member.
#[derive(Clone)]
pub(crate) struct Network {
    pub(crate) peers: Arc<Peers>,
    /// How long openraft waits before it tries again to reach a member.
    pub(crate) pause: Duration,
}

/// The way to one other member.
pub(crate) struct Link {
    peers: Arc<Peers>,
    seat: u64,
    peer: Peer,
    pause: Duration,
}

impl RaftNetworkFactory<TypeConfig> for Network {
    type Network = Link;

    async fn new_client(&mut self, seat: u64, peer: &Peer) -> Link {
        let Self { peers, pause } = self.clone();
        Link { peers, seat, peer: peer.clone(), pause }
    }
}

impl Link {
    async fn ask(&self, ask: Ask, option: &RPCOption) -> Result<ReplyBody, AskError> {
        self.peers.ask(self.seat, &self.peer, ask, option.hard_ttl()).await
    }
}

impl RaftNetwork<TypeConfig> for Link {
    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<u64>, RpcError> {
        let count = request.entries.len() as u64;
        let ask = Ask::Append {
            vote: request.vote.into(),
            previous: request.prev_log_id.map(Place::from),
            lines: request.entries.iter().map(Line::from).collect(),
            committed: request.leader_commit.map(Place::from),
        };
        match self.ask(ask, &option).await {
            Ok(ReplyBody::Appended) => Ok(AppendEntriesResponse::Success),
            Ok(ReplyBody::Partly(last)) => {
                Ok(AppendEntriesResponse::PartialSuccess(last.map(RaftLogId::from)))
            }
            Ok(ReplyBody::Conflict) => Ok(AppendEntriesResponse::Conflict),
            Ok(ReplyBody::HigherVote(vote)) => Ok(AppendEntriesResponse::HigherVote(vote.into())),
            Ok(told) => Err(unreachable(&unexpected(&told)).into()),
            Err(AskError::TooLong(_)) if count > 1 => {
                Err(PayloadTooLarge::new_entries_hint(count / 2).into())
            }
            Err(error) => Err(unreachable(&error).into()),
        }
    }

    async fn vote(
        &mut self,
        request: VoteRequest<u64>,
        option: RPCOption,
    ) -> Result<VoteResponse<u64>, RpcError> {
        let ask =
            Ask::Vote { vote: request.vote.into(), last: request.last_log_id.map(Place::from) };
        match self.ask(ask, &option).await {
            Ok(ReplyBody::Vote { vote, granted, last }) => {
                Ok(VoteResponse::new(Vote::from(vote), last.map(LogId::from), granted))
            }
            Ok(told) => Err(unreachable(&unexpected(&told)).into()),
            Err(error) => Err(unreachable(&error).into()),
        }
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot,
        _cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        option: RPCOption,
    ) -> Result<SnapshotResponse<u64>, StreamingError<TypeConfig, Fatal<u64>>> {
        let picture = Box::new(Picture::from(&snapshot));
        match self.ask(Ask::Snapshot { vote: vote.into(), picture }, &option).await {
            Ok(ReplyBody::HigherVote(vote)) => Ok(SnapshotResponse::new(vote.into())),
            Ok(told) => Err(unreachable(&unexpected(&told)).into()),
            Err(error) => Err(unreachable(&error).into()),
        }
    }

    fn backoff(&self) -> Backoff {
        Backoff::new(std::iter::repeat(self.pause))
    }
}

fn unreachable(error: &AskError) -> Unreachable {
    Unreachable::new(&io::Error::other(error.to_string()))
}
