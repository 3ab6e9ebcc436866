//! `doorway ca`: a private authority, and the certificates of nodes and clients.

use std::io::Write;
use std::path::PathBuf;

use clap::Subcommand;
use doorway_daemon::ca::{
    self, AUTHORITY_DAYS, Authority, CaError, CertificateFiles, CertificateSummary, LEAF_DAYS,
    Leaf, MOST_DAYS,
};
use doorway_daemon::certificate::SOON_DAYS;

use super::print_json;
use crate::failure::Usage;
use crate::table::Table;

/// Make a private authority, and certificates for the nodes and clients of a group
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  doorway ca init --group shop --dir ca
  doorway ca node a --address a.example --dir ca --to a-files
  doorway ca client ci --dir ca
  doorway ca show ca")]
pub(crate) struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    Init(Init),
    Node(Node),
    Client(Client),
    Show(Show),
}

/// Make the authority of a group: ca.crt for everyone, ca.key for nobody else
#[derive(clap::Args)]
struct Init {
    /// The group
    #[arg(long, value_name = "NAME")]
    group: String,
    /// Where it is kept
    #[arg(long, value_name = "DIR", default_value = "ca")]
    dir: PathBuf,
    /// For how many days
    #[arg(long, value_name = "DAYS", default_value_t = AUTHORITY_DAYS, value_parser = days())]
    days: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Make the certificate and key of a node
#[derive(clap::Args)]
struct Node {
    /// The node
    #[arg(value_name = "NAME")]
    name: String,
    /// A host name or IP address under which clients reach it; may be given several times
    #[arg(long, value_name = "HOST")]
    address: Vec<String>,
    #[command(flatten)]
    common: Common,
}

/// Make the certificate and key of a client that comes in over TCP
#[derive(clap::Args)]
struct Client {
    /// The client
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    common: Common,
}

#[derive(clap::Args)]
struct Common {
    /// Where the authority is kept
    #[arg(long, value_name = "DIR", default_value = "ca")]
    dir: PathBuf,
    /// Where the two files go [default: the directory of the authority]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// For how many days; never longer than the authority
    #[arg(long, value_name = "DAYS", default_value_t = LEAF_DAYS, value_parser = days())]
    days: u32,
    /// Replace the certificate that is there; its key and its addresses stay
    #[arg(long)]
    renew: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// List certificates: for whom, and until when
#[derive(clap::Args)]
struct Show {
    /// A certificate, or a directory with certificates
    #[arg(value_name = "PATH", default_value = "ca")]
    path: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn days() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(MOST_DAYS))
}

/// Do it, and print what to do with what was made.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    match &args.task {
        Task::Init(Init { group, dir, days, json }) => {
            let made = ca::init(dir, group, *days).map_err(told)?;
            if *json {
                return print_json(out, &made);
            }
            let CertificateFiles { certificate, key, until, .. } = &made;
            writeln!(out, "wrote {} and {}, until {until}", certificate.display(), key.display())?;
            writeln!(out, "keep {} safe and copied elsewhere: who has it can", key.display())?;
            writeln!(out, "make certificates of this group, and without it nobody can")?;
            Ok(())
        }
        Task::Node(Node { name, address, common }) => {
            let authority = Authority::open(&common.dir).map_err(told)?;
            let made = authority.node(&common.leaf(name, address)).map_err(told)?;
            print(out, &made, &authority, common.json)
        }
        Task::Client(Client { name, common }) => {
            let authority = Authority::open(&common.dir).map_err(told)?;
            let made = authority.client(&common.leaf(name, &[])).map_err(told)?;
            print(out, &made, &authority, common.json)
        }
        Task::Show(Show { path, json }) => {
            let shown = ca::show(path).map_err(told)?;
            if *json { print_json(out, &shown) } else { list(out, &shown) }
        }
    }
}

impl Common {
    fn leaf<'a>(&'a self, name: &'a str, addresses: &'a [String]) -> Leaf<'a> {
        let Self { dir, to, days, renew, .. } = self;
        Leaf { name, addresses, days: *days, to: to.as_ref().unwrap_or(dir), renew: *renew }
    }
}

fn print(
    out: &mut dyn Write,
    made: &CertificateFiles,
    authority: &Authority,
    json: bool,
) -> anyhow::Result<()> {
    if json {
        return print_json(out, made);
    }
    let CertificateFiles { certificate, key, names, until, toml } = made;
    let (certificate, key, names) = (certificate.display(), key.display(), names.join(", "));
    writeln!(out, "wrote {certificate} and {key}")?;
    writeln!(out, "for {names}, until {until}")?;
    writeln!(
        out,
        "both belong beside {}; in doorway.toml stands",
        authority.certificate().display()
    )?;
    writeln!(out, "\n{}", toml.trim_end())?;
    Ok(())
}

fn list(out: &mut dyn Write, shown: &[CertificateSummary]) -> anyhow::Result<()> {
    let heading = ["FILE", "KIND", "UNTIL", "DAYS", "FOR"];
    let mut table = Table::new(heading.map(str::to_owned));
    for CertificateSummary { file, kind, names, until, days_left } in shown {
        let days = match days_left {
            ..0 => "ended".to_owned(),
            left if *left < SOON_DAYS => format!("{left} (soon)"),
            left => left.to_string(),
        };
        let file = file.display().to_string();
        table.row([file, (*kind).to_owned(), until.clone(), days, names.join(", ")]);
    }
    Ok(table.print(out, 0)?)
}

/// What a person can mend by asking differently is a misuse.
fn told(error: CaError) -> anyhow::Error {
    match error {
        CaError::Io { .. } | CaError::Make(_) => error.into(),
        misuse => Usage(misuse.to_string()).into(),
    }
}
