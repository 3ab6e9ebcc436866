//! Three services that are the members of one group, each a process of its own.

use std::fs;
use std::path::{Path, PathBuf};

use doorway_daemon::ca::{self, Authority, Leaf};
use doorway_daemon::listen::Doors;
use doorway_daemon::serve;
use doorway_daemon::settings::{Overrides, Settings};

use crate::common::Scratch;
use crate::shared::pin::Placement;
use crate::shared::rivals::{Server, free_address};

/// The names of the members.
const MEMBERS: [&str; 3] = ["a", "b", "c"];

/// A group of three services on this machine.
pub(crate) struct Group {
    members: Vec<Server>,
    _certificates: Scratch,
}

impl Group {
    /// Start the services of `program`, which is this benchmark or another build of it.
    pub(crate) fn start(placement: Placement, program: &Path) -> Self {
        let certificates = Scratch::new();
        ca::init(certificates.path(), "bench", 30).unwrap();
        let authority = Authority::open(certificates.path()).unwrap();
        let addresses = MEMBERS.map(|_| free_address());
        let line =
            |(name, address)| format!("[[member]]\nname = \"{name}\"\naddress = \"{address}\"\n");
        let list: Vec<_> = MEMBERS.iter().zip(addresses).map(line).collect();
        let list = list.concat();
        let member = |name: &&'static str| {
            let (to, addresses) = (certificates.path(), ["127.0.0.1".to_owned()]);
            let leaf = Leaf { name, addresses: &addresses, days: 30, to, renew: false };
            authority.node(&leaf).unwrap();
            let directory = Scratch::new();
            let (here, there) = (directory.path().display(), to.display());
            let text = format!(
                "group = \"bench\"\nnode = \"{name}\"\nsocket = \"{here}/socket\"\n\
                 data = \"{here}/data\"\n{list}[tls]\nca = \"{there}/ca.crt\"\n\
                 certificate = \"{there}/{name}.crt\"\nkey = \"{there}/{name}.key\"\n"
            );
            let file = directory.path().join("doorway.toml");
            fs::write(&file, text).unwrap();
            let mut command = placement.command(1);
            command.arg(program).arg("--serve-member").arg(&file);
            let socket = format!("{here}/socket");
            Server::start(&mut command, socket, directory).unwrap()
        };
        let members = MEMBERS.iter().map(member).collect();
        Self { members, _certificates: certificates }
    }

    /// Where the clients of each member find it.
    pub(crate) fn sockets(&self) -> Vec<String> {
        self.members.iter().map(|member| member.address().to_owned()).collect()
    }
}

/// The program of the services that are measured first, if `--before PROGRAM` names one: another
/// build of this benchmark.
pub(crate) fn program_before() -> Option<PathBuf> {
    std::env::args().skip_while(|word| word != "--before").nth(1).map(PathBuf::from)
}

/// Run the service with the settings in this file, on one thread.
pub(crate) fn serve(file: &str) {
    let settings = Settings::load(Path::new(file), &Overrides::default()).unwrap();
    let doors = Doors::from_settings(&settings).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // A server that is started in the background may ignore this signal unless it waits for it.
    let stop = async { drop(tokio::signal::ctrl_c().await) };
    runtime.block_on(serve::run(settings, doors, stop)).unwrap();
}
