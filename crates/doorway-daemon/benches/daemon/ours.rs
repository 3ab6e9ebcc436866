//! Our own service and its clients.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use doorway_client::{Client, Endpoint, Grant, Options, blocking};
use doorway_daemon::listen::Doors;
use doorway_daemon::serve;
use doorway_daemon::settings::{Overrides, Settings};

use crate::common::Scratch;
use crate::shared::pin::Placement;
use crate::shared::rivals::{Rival, Server};

/// The service ends by itself after being idle for this long, in case this program was killed.
const IDLE: Duration = Duration::from_secs(30);

/// How long a server may take until it answers.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// An async client of the service.
pub(crate) struct Doorway {
    client: Client,
    grant: Option<Grant>,
}

/// The name of a lock.
pub(crate) fn name(lock: usize) -> String {
    format!("orders/{lock}")
}

/// The endpoint of the service at this address.
pub(crate) fn endpoint(address: &str) -> Endpoint {
    Endpoint::parse(address).unwrap()
}

impl Rival for Doorway {
    const NAME: &str = "Doorway";

    fn serve(placement: Placement) -> Result<Server, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (address, directory) =
            (format!("@doorway-bench-{}-{number}", std::process::id()), Scratch::new());
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = placement.command(1);
        command.arg(own).args(["--serve", &address]).arg(directory.path().join("data"));
        command.arg(threads());
        Server::start(&mut command, address, directory)
    }

    async fn connect(address: &str, number: usize) -> io::Result<Self> {
        let options = Options::default().label(format!("client {number}"));
        let client = Client::connect(&endpoint(address), &options).await;
        Ok(Self { client: client.map_err(io::Error::other)?, grant: None })
    }

    async fn lock(&mut self, lock: usize) -> io::Result<()> {
        let grant = self.client.acquire(&name(lock)).enter().await;
        self.grant = Some(grant.map_err(io::Error::other)?);
        Ok(())
    }

    async fn unlock(&mut self, _lock: usize) -> io::Result<()> {
        match self.grant.take() {
            Some(grant) => grant.release().await.map_err(io::Error::other),
            None => Err(io::Error::other("nothing is held")),
        }
    }
}

/// The number of threads of the service. 0 stands for a single thread that no other has to wake.
fn threads() -> String {
    let mut words = std::env::args().skip_while(|word| word != "--threads");
    words.nth(1).unwrap_or_else(|| "0".to_owned())
}

/// Run the service as `doorway serve --local` does.
pub(crate) fn serve(address: &str, data: &str, threads: &str) {
    let overrides = Overrides {
        socket: Some(address.to_owned()),
        data: Some(Path::new(data).to_owned()),
        idle_stop: Some(IDLE),
    };
    let settings = Settings::local(&overrides).unwrap();
    let doors = Doors::from_settings(&settings).unwrap();
    let mut runtime = match threads.parse().unwrap() {
        0 => tokio::runtime::Builder::new_current_thread(),
        threads => {
            let mut runtime = tokio::runtime::Builder::new_multi_thread();
            runtime.worker_threads(threads);
            runtime
        }
    };
    let runtime = runtime.enable_all().build().unwrap();
    runtime.block_on(serve::run(settings, doors, std::future::pending())).unwrap();
}

/// A blocking client, as soon as the service accepts it.
pub(crate) fn blocking(endpoint: &Endpoint, number: usize) -> blocking::Client {
    let options = Options::default().label(format!("client {number}"));
    let begun = Instant::now();
    loop {
        match blocking::Client::connect(endpoint, &options) {
            Ok(client) => return client,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
