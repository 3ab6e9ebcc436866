//! The page in a browser: serves it, prints its address and opens it.

use std::env;
use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::Context as _;
use doorway_page::guard::Token;
use doorway_page::server::{First, Server};
use tokio::signal::unix::{SignalKind, signal};

use crate::numbers::whole;

/// Where the page is served, and whether it is opened.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct PageArgs {
    /// Print the address without opening it
    #[arg(long)]
    pub(crate) no_open: bool,
    /// Listen on this port of the loopback interface; 0 takes any free port [default: 7093, or any
    /// free port if that is taken]
    #[arg(long, value_name = "PORT", value_parser = whole(0..=u16::MAX))]
    pub(crate) port: Option<u16>,
}

/// The port if none is asked for. With the same port after a restart, a browser still knows which
/// moment the page showed last. It is outside the range from which systems hand out ports.
const PORT: u16 = 7093;

/// [`PageArgs`] of a command that serves the page only with `--page`: without it they are refused.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(mut_arg("no_open", |it| it.requires("page")), mut_arg("port", |it| it.requires("page")))]
pub(crate) struct OptionalPageArgs {
    #[command(flatten)]
    pub(crate) page: PageArgs,
}

/// Serve the page until the command is interrupted.
pub(crate) fn serve(args: &PageArgs, first: First, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build();
    let runtime = runtime.context("cannot start the threads of the server")?;
    runtime.block_on(async {
        let token = Token::random().context("the system gives no random bytes")?;
        let server = bind(args.port, token, first).await?;
        // A person who sees the address may press Ctrl-C at once.
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for Ctrl-C")?;
        let address = server.address();
        writeln!(out, "The page is at {address}\nPress Ctrl-C to stop.")?;
        out.flush()?;
        if !args.no_open && has_screen() {
            open(&server.ticket_address());
        }
        tokio::select! {
            ended = server.run() => ended.context("the server stopped"),
            _ = interrupt.recv() => Ok(()),
        }
    })
}

/// Listen on the port that was asked for; or else on [`PORT`], or on any other that is free.
async fn bind(port: Option<u16>, token: Token, first: First) -> anyhow::Result<Server> {
    if port.is_none()
        && let Ok(server) = Server::bind(PORT, token.clone(), first.clone()).await
    {
        return Ok(server);
    }
    let port = port.unwrap_or(0);
    let bound = Server::bind(port, token, first).await;
    bound.with_context(|| format!("cannot listen on port {port} of loopback"))
}

/// Whether a browser can be opened.
fn has_screen() -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| env::var_os(name).is_some())
}

/// Open the address. Where that fails, the address with the token is on the screen already, which
/// only the user of the terminal sees.
fn open(address: &str) {
    let mut command = Command::new("xdg-open");
    command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Ok(mut child) = command.spawn() {
        std::thread::spawn(move || child.wait());
    }
}
