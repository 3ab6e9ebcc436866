//! How the process of a node starts, with what its disk has.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;

use doorway_protocol::{DirectoryId, NamePattern, Scope};
use doorway_sessions::ledger::{Ledger, LedgerStart};
use doorway_sessions::principal::Rights;
use doorway_sessions::settings::{ClientSettings, Limits};
use doorway_sessions::{Input, Sessions, Setup};

use super::group::Group;
use super::{Node, NodeEvent, Process, SECONDS};
use crate::clock::SECOND;
use crate::context::{Context, log};
use crate::disk::DiskFile;
use crate::settings::Settings;

impl Node {
    /// Start a process. False if it cannot start now.
    pub(crate) fn start(&mut self, context: &mut Context) -> bool {
        let settings = Rc::clone(&context.settings);
        let now = self.clock.read(context.now);
        let epoch = if settings.agreed.is_some() {
            None
        } else {
            let Ok(epoch) = self.raise_epoch(0) else { return false };
            Some(epoch)
        };
        let seconds = SECONDS + context.now / SECOND;
        let start = LedgerStart {
            boot: self.boot(),
            tcp: true,
            ttl: settings.ttl,
            seconds,
            directory: DirectoryId([self.id as u8; 16]),
        };
        let file = DiskFile(Rc::clone(&self.disk));
        let opened = Ledger::begin(file, PathBuf::from("sessions"), start);
        let Ok((ledger, former)) = opened else { return false };
        self.starts += 1;
        let reclaims = former.lacking || !former.records.is_empty();
        log!(
            context,
            "n{} starts: epoch {epoch:?}, {} records, lacking {}, damaged {}",
            self.id,
            former.records.len(),
            former.lacking,
            former.damaged
        );
        let group = Group::new(&settings, self.id, epoch, reclaims, context);
        self.process = Some(Process {
            start: self.starts,
            began: context.now,
            slept: self.slept_until(context.now),
            group,
            sessions: Sessions::new(setup(self.id, ledger.directory(), &settings), now),
            inputs: VecDeque::new(),
            doors: BTreeMap::new(),
            guards: BTreeMap::new(),
            tasks: BTreeMap::new(),
            watched: BTreeMap::new(),
            ledger,
            serving: !reclaims,
            tick: u64::MAX,
            stopping: false,
            stays: false,
            secrets: context.random.next(),
            calls: BTreeMap::new(),
            answers: Vec::new(),
            leases: BTreeMap::new(),
            breaks: BTreeMap::new(),
        });
        self.begin(context);
        self.input(context, Input::Restored(Box::new(former)));
        self.settle(context);
        let dialled = if epoch.is_some() { self.id + 1..settings.nodes } else { 0..0 };
        for peer in dialled {
            let wait = context.random.between(0, 1_000_000);
            self.later(context, wait, NodeEvent::Dial(peer));
        }
        true
    }
}

/// The settings of the sessions. Nothing comes near the limits.
fn setup(node: usize, directory: DirectoryId, settings: &Settings) -> Setup {
    let client =
        |at: usize| ClientSettings { name: format!("c{at}"), token: None, rights: Rights::all() };
    let configured = settings.rules.iter().filter(|(begin, _, permits)| {
        !begin.starts_with('%') && (*permits > 1 || !begin.is_empty())
    });
    Setup {
        node: format!("n{node}"),
        directory,
        scope: Scope::Cluster,
        limits: Limits {
            sessions: 1000,
            connections: 1000,
            grants: 100,
            waiting: 100,
            queue: 1000,
            ttl: settings.ttl,
            terraform_ttl: settings.ttl,
            endless: settings.endless,
            files: 10_000,
        },
        outstanding: 1000,
        rules: configured
            .map(|(begin, _, permits)| (NamePattern::new(&format!("{begin}*")), *permits))
            .collect(),
        clients: (0..settings.clients.len()).map(client).collect(),
        alone: settings.alone(),
        ledger: true,
        agreed: settings.agreed.is_some(),
    }
}
