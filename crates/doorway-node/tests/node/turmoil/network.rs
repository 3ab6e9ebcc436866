//! TCP as turmoil simulates it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use doorway_node::net::Network;
use turmoil::net::{TcpListener, TcpStream};

/// The port at which every node listens.
pub(crate) const PORT: u16 = 7400;

/// The network of the simulation that runs on this thread.
pub(crate) struct SimulatedNetwork;

impl Network for SimulatedNetwork {
    type Stream = TcpStream;
    type Listener = TcpListener;

    async fn bind(&self, _address: &str) -> io::Result<TcpListener> {
        // A simulated host has only one address, which it does not know.
        TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).await
    }

    async fn accept(&self, listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
        listener.accept().await
    }

    async fn connect(&self, address: &str) -> io::Result<TcpStream> {
        TcpStream::connect(address).await
    }
}
