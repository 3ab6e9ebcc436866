//! A node that acquires locks at random and reports every entry to a referee. The tests of whole
//! groups run it in processes of their own.
//!
//! It takes `key=value` arguments, works until it has made its entries, prints `done`, and serves
//! the other nodes until its standard input is closed.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use doorway_node::{Config, Handle, MemberConfig, Mode, Node, RuleConfig, TlsConfig};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// The arguments.
#[derive(Default)]
struct Orders {
    config: Config,
    referee: String,
    names: Vec<String>,
    clients: u64,
    entries: u64,
    seed: u64,
}

fn main() -> Result<(), Error> {
    let orders = Orders::read(std::env::args().skip(1))?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let node = Node::start(orders.config.clone()).await?;
        let mut clients = Vec::new();
        for client in 0..orders.clients {
            clients.push(tokio::spawn(work(node.clone(), Orders::of(&orders, client))));
        }
        for client in clients {
            client.await??;
        }
        println!("done");
        std::io::stdout().flush()?;
        tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
        node.stop().await;
        Ok(())
    })
}

/// Enter the locks one after another, and report each entry to the referee.
async fn work(node: Node, orders: Orders) -> Result<(), Error> {
    let mut dice = ChaCha8Rng::seed_from_u64(orders.seed);
    let mut referee = Referee::meet(Path::new(&orders.referee), &orders.config.me)?;
    let handles: Result<Vec<Handle>, _> = orders.names.iter().map(|name| node.open(name)).collect();
    let handles = handles?;
    let mut entered = 0;
    while entered < orders.entries {
        let roll = dice.next_u64();
        let handle = &handles[(roll % handles.len() as u64) as usize];
        let mut acquire = handle.lock_owned();
        let shared = handle.serves_shared() && roll & (1 << 40) != 0;
        if shared {
            acquire = acquire.shared();
        }
        if roll & (7 << 50) == 0 {
            // Some requests have a short deadline and time out.
            acquire = acquire.within(Duration::from_micros(roll >> 54));
        }
        let Ok(guard) = acquire.await else { continue };
        let mode = if shared { Mode::Shared } else { Mode::Exclusive };
        referee.enter(handle, mode, guard.fence().get())?;
        if roll & (3 << 60) == 0 {
            tokio::task::yield_now().await;
        }
        referee.leave(handle)?;
        drop(guard);
        entered += 1;
    }
    Ok(())
}

/// The connection to the referee. The referee answers every report, so that reports are in order.
struct Referee {
    write: UnixStream,
    read: BufReader<UnixStream>,
}

impl Referee {
    fn meet(path: &Path, node: &str) -> Result<Self, Error> {
        let write = UnixStream::connect(path)?;
        let read = BufReader::new(write.try_clone()?);
        let mut referee = Self { write, read };
        referee.tell(&format!("of {node}\n"))?;
        Ok(referee)
    }

    fn enter(&mut self, lock: &Handle, mode: Mode, fence: u64) -> Result<(), Error> {
        self.tell(&format!("enter {} {mode:?} {fence}\n", lock.name()))
    }

    fn leave(&mut self, lock: &Handle) -> Result<(), Error> {
        self.tell(&format!("leave {}\n", lock.name()))
    }

    fn tell(&mut self, line: &str) -> Result<(), Error> {
        self.write.write_all(line.as_bytes())?;
        let mut answer = String::new();
        self.read.read_line(&mut answer)?;
        if answer == "ok\n" { Ok(()) } else { Err(format!("the referee says {answer:?}").into()) }
    }
}

impl Orders {
    fn read(arguments: impl Iterator<Item = String>) -> Result<Self, Error> {
        let mut orders = Self { clients: 1, ..Self::default() };
        orders.config.members.clear();
        let mut certificates = None;
        for argument in arguments {
            let (key, value) = argument.split_once('=').ok_or("arguments are key=value")?;
            let config = &mut orders.config;
            match key {
                "me" => value.clone_into(&mut config.me),
                "group" => value.clone_into(&mut config.group),
                "member" => {
                    let (name, address) = value.split_once('@').ok_or("member=NAME@ADDRESS")?;
                    let (name, address) = (name.to_owned(), address.to_owned());
                    config.members.push(MemberConfig { name, address });
                }
                "rule" => {
                    let [pattern, algorithm, permits] = value.split(',').collect::<Vec<_>>()[..]
                    else {
                        return Err("rule=PATTERN,ALGORITHM,PERMITS".into());
                    };
                    let (pattern, algorithm) = (pattern.to_owned(), algorithm.to_owned());
                    config.rules.push(RuleConfig::new(pattern, algorithm, permits.parse()?));
                }
                "data" => config.data = Some(value.into()),
                "certificates" => certificates = Some(value.to_owned()),
                "referee" => value.clone_into(&mut orders.referee),
                "name" => orders.names.push(value.to_owned()),
                "clients" => orders.clients = value.parse()?,
                "entries" => orders.entries = value.parse()?,
                "seed" => orders.seed = value.parse()?,
                _ => return Err(format!("unknown key {key}").into()),
            }
        }
        if let Some(directory) = certificates {
            let read = |file: &str| std::fs::read(Path::new(&directory).join(file));
            let me = orders.config.me.clone();
            let (ca, certificate) = (read("ca.pem")?, read(&format!("{me}.pem"))?);
            orders.config.tls =
                Some(TlsConfig { ca, certificate, key: read(&format!("{me}.key"))? });
        }
        Ok(orders)
    }

    /// The work of one client among many.
    fn of(all: &Self, client: u64) -> Self {
        Self {
            config: all.config.clone(),
            referee: all.referee.clone(),
            names: all.names.clone(),
            clients: 1,
            entries: all.entries / all.clients,
            seed: all.seed ^ (client + 1) << 32,
        }
    }
}
