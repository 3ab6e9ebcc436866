//! `doorway ca`: a private certificate authority for the nodes and clients of a group.

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
use crate::numbers::whole;
use crate::table::Table;

/// Make certificates for the nodes and clients of a group, signed by a private authority
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

/// Make the authority of a group: ca.crt, which is public, and ca.key, which is secret
#[derive(clap::Args)]
struct Init {
    /// Make the authority of the group with this name
    #[arg(long, value_name = "NAME")]
    group: String,
    /// Write the authority into this directory
    #[arg(long, value_name = "DIR", default_value = "ca")]
    dir: PathBuf,
    /// Make it valid for this many days
    #[arg(
        long,
        value_name = "DAYS",
        default_value_t = AUTHORITY_DAYS,
        value_parser = whole(1..=MOST_DAYS),
    )]
    days: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Make the certificate and key of a node
#[derive(clap::Args)]
struct Node {
    /// The name of the node
    #[arg(value_name = "NAME")]
    name: String,
    /// Let clients reach the node under this host name or IP address; may be given several times
    #[arg(long, value_name = "HOST")]
    address: Vec<String>,
    #[command(flatten)]
    common: Common,
}

/// Make the certificate and key of a client that connects over TCP
#[derive(clap::Args)]
struct Client {
    /// The name of the client
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    common: Common,
}

#[derive(clap::Args)]
struct Common {
    /// Use the authority in this directory
    #[arg(long, value_name = "DIR", default_value = "ca")]
    dir: PathBuf,
    /// Write the certificate and its key into this directory [default: that of the authority]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Make the certificate valid for this many days, but never longer than the authority
    #[arg(
        long,
        value_name = "DAYS",
        default_value_t = LEAF_DAYS,
        value_parser = whole(1..=MOST_DAYS),
    )]
    days: u32,
    /// Replace an existing certificate, and keep its key and its addresses
    #[arg(long)]
    renew: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// List certificates: whose they are, and until when they are valid
#[derive(clap::Args)]
struct Show {
    /// A certificate, or a directory with certificates
    #[arg(value_name = "PATH", default_value = "ca")]
    path: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Make or show certificates, and say what to do with them.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    match &args.task {
        Task::Init(Init { group, dir, days, json }) => {
            let made = ca::init(dir, group, *days).map_err(failed)?;
            if *json {
                return print_json(out, &made);
            }
            let CertificateFiles { certificate, key, until, .. } = &made;
            let (certificate, key) = (certificate.display(), key.display());
            writeln!(out, "wrote {certificate} and {key}, valid until {until}")?;
            writeln!(out, "keep {key} secret: everyone who has it can make valid certificates;")?;
            writeln!(out, "and keep a copy of it elsewhere: without it nobody can make new ones")?;
            Ok(())
        }
        Task::Node(Node { name, address, common }) => {
            let authority = Authority::open(&common.dir).map_err(failed)?;
            let made = authority.node(&common.leaf(name, address)).map_err(failed)?;
            print(out, &made, &authority, common.json)
        }
        Task::Client(Client { name, common }) => {
            let authority = Authority::open(&common.dir).map_err(failed)?;
            let made = authority.client(&common.leaf(name, &[])).map_err(failed)?;
            print(out, &made, &authority, common.json)
        }
        Task::Show(Show { path, json }) => {
            let shown = ca::show(path).map_err(failed)?;
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
    writeln!(out, "for {names}, valid until {until}")?;
    let authority = authority.certificate();
    let authority = authority.display();
    writeln!(out, "copy both files and {authority} into one directory; add to doorway.toml:")?;
    writeln!(out, "\n{}", toml.trim_end())?;
    Ok(())
}

fn list(out: &mut dyn Write, shown: &[CertificateSummary]) -> anyhow::Result<()> {
    let heading = ["FILE", "KIND", "UNTIL", "DAYS", "FOR"];
    let mut table = Table::new(heading.map(str::to_owned));
    for CertificateSummary { file, kind, names, until, days_left } in shown {
        let days = match days_left {
            ..0 => "expired".to_owned(),
            left if *left < SOON_DAYS => format!("{left} (soon)"),
            left => left.to_string(),
        };
        let file = file.display().to_string();
        table.row([file, (*kind).to_owned(), until.clone(), days, names.join(", ")]);
    }
    Ok(table.print(out, 0)?)
}

/// Errors that another command line would avoid are reported as misuse.
fn failed(error: CaError) -> anyhow::Error {
    match error {
        CaError::Io { .. } | CaError::Make(_) => error.into(),
        misuse => Usage(misuse.to_string()).into(),
    }
}
