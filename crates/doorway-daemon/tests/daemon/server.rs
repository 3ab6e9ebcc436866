//! A service in the process of the test, on a socket of its own.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixStream};

use doorway_daemon::listen::{Doors, accept_unix, bind_unix};
use doorway_daemon::redis;
use doorway_daemon::service::Service;
use doorway_daemon::settings::{Settings, Socket};
use doorway_daemon::{etcd, http};
use doorway_sessions::ledger::Ledger;
use tokio::runtime::Runtime;

use crate::common::{PATIENCE, fresh, until};

/// A service on a runtime of its own, on an abstract socket of its own, which also serves HTTP, and
/// clients of Redis and etcd.
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) service: Service,
    pub(crate) runtime: Runtime,
}

impl Server {
    pub(crate) fn start(settings: &Settings) -> Self {
        let (runtime, name) = (runtime(), fresh());
        let service = runtime.block_on(async {
            let (listener, _) =
                bind_unix(&Socket::Abstract(name.clone())).expect("a name that nobody uses");
            let service = start(settings).await;
            let doors = with_http(&service, settings, Doors::default());
            tokio::spawn(accept_unix(service.clone(), listener, doors));
            service
        });
        Self { name, service, runtime }
    }

    /// End the service as a power cut would: no client is notified, and the ledger stays as it is.
    pub(crate) fn crash(self) {
        let Self { service, runtime, .. } = self;
        runtime.shutdown_timeout(PATIENCE);
        drop(service);
    }

    /// Wait until a condition holds.
    pub(crate) fn until(&self, what: &str, done: impl Fn(&Service) -> bool) {
        until(what, || done(&self.service));
    }
}

pub(crate) fn runtime() -> Runtime {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build().expect("a runtime can be made")
}

/// A service with the ledger of its directory, if it has one.
pub(crate) async fn start(settings: &Settings) -> Service {
    let ttl = settings.limits.ttl;
    let data = settings.node.data.as_deref();
    let ledger = data.map(|data| Ledger::open(data, false, ttl).expect("the directory is free"));
    Service::start(settings, ledger).await.expect("nothing is wrong with the settings")
}

/// The doors of a service, with HTTP and for clients of Redis and etcd.
pub(crate) fn with_http(service: &Service, settings: &Settings, doors: Doors) -> Doors {
    let http = http::door(service, settings, &doors);
    let redis = redis::door(service, &doors, settings.redlock);
    let etcd = etcd::door(service, &doors);
    Doors { http: Some(http), redis: Some(redis), etcd: Some(etcd), ..doors }
}

/// A connection to an abstract socket.
pub(crate) fn connect(name: &str) -> std::io::Result<UnixStream> {
    let address = SocketAddr::from_abstract_name(name)?;
    let stream = UnixStream::connect_addr(&address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}
