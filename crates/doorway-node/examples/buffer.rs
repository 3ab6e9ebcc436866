//! A bounded buffer between two processes, over a link: a producer sends the lines of a file, and a
//! consumer appends them to another one. Each line arrives exactly once and in order, also if
//! either process is killed (`kill -9`) and started again.
//!
//! ```sh
//! cargo run -p doorway-node --example buffer -- consume 127.0.0.1:7500 out.txt &
//! cargo run -p doorway-node --example buffer -- produce 127.0.0.1:7500 in.txt 256
//! ```
//!
//! The last argument is the capacity of the buffer: the most lines that are under way. It is 256 if
//! it is left out, and must be the same at both ends.
//!
//! The buffer itself is `doorway_core::buffer`, which decides what may be produced and consumed;
//! all of its states are searched (`doorway problems check buffer-pair`). The link is that of
//! `doorway_node::link`: messages arrive exactly once and in order across connections, but those
//! that have not arrived are dropped when one of the two processes restarts. Then the consumer says
//! how many lines are in its file, and the producer goes on after them.
//!
//! What is lost: nothing if a process is killed. If the machine crashes, the end of the file of the
//! consumer may be lost, because it is not synced to disk; the lines are then sent again, since the
//! file itself says how many there are. There is no TLS here: use it on this machine only.

#![expect(clippy::similar_names, reason = "a producer has produced, a consumer has consumed")]

use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant, SystemTime};

use doorway_core::buffer::{Consumer, Message, Producer};
use doorway_node::link::{Decoder, Frame, Hello, Inbox, Incarnation, Outbox, Verdict};

type Failure = Box<dyn Error>;

/// The lines under way, unless a number is given.
const CAPACITY: u64 = 256;
/// For how long a producer looks for its consumer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a process that waits looks again.
const PAUSE: Duration = Duration::from_millis(20);
/// The longest line.
const LINE_MAX: usize = 64 << 10;
/// The most bytes that are written at once.
const BATCH: usize = 64 << 10;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let capacity = |word: Option<&&str>| match word.map(|word| word.parse()) {
        None => Ok(CAPACITY),
        Some(Ok(capacity)) if capacity > 0 => Ok(capacity),
        Some(_) => Err("the capacity is a number of lines, at least 1".into()),
    };
    let ran = match words.as_slice() {
        ["consume", address, file, rest @ ..] if rest.len() < 2 => {
            capacity(rest.first()).and_then(|capacity| consume(address, file, capacity))
        }
        ["produce", address, file, rest @ ..] if rest.len() < 2 => {
            capacity(rest.first()).and_then(|capacity| produce(address, file, capacity))
        }
        _ => Err("say: buffer consume|produce ADDRESS FILE [CAPACITY]".into()),
    };
    if let Err(failure) = ran {
        eprintln!("buffer: {failure}");
        std::process::exit(1);
    }
}

/// One end of the link: a link to one peer, over one connection after another.
struct Link {
    me: Incarnation,
    capacity: u64,
    inbox: Inbox,
    outbox: Outbox,
}

/// A connection in use.
struct Connection {
    stream: TcpStream,
    number: u64,
    decoder: Decoder,
    /// Whether the process at the other end has just been started: nothing of the past is left.
    new_peer: bool,
}

impl Link {
    fn new(capacity: u64) -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let me = Incarnation((now.as_nanos() as u64) ^ (u64::from(std::process::id()) << 48));
        Self { me, capacity, inbox: Inbox::default(), outbox: Outbox::default() }
    }

    /// Exchange hellos over a new connection.
    fn open(
        &mut self,
        stream: TcpStream,
        peer: &mut Option<Incarnation>,
    ) -> Result<Connection, Failure> {
        stream.set_nodelay(true)?;
        let (number, received) = self.inbox.greet();
        let (mut stream, mut decoder) = (stream, Decoder::default());
        let hello = Hello {
            group: "buffer".to_owned(),
            config: self.capacity,
            incarnation: self.me,
            received,
            ..Hello::default()
        };
        let mut bytes = Vec::new();
        Frame::Hello(hello.clone()).encode(&mut bytes);
        stream.write_all(&bytes)?;
        let theirs = loop {
            match decoder.frame()? {
                Some(Frame::Hello(theirs)) => break theirs,
                Some(_) => return Err("the other side did not say hello".into()),
                None => read(&mut stream, &mut decoder)?,
            }
        };
        if theirs.group != hello.group || theirs.config != hello.config {
            let (ours, theirs) = (hello.config, theirs.config);
            return Err(
                format!("the other side has capacity {theirs}, and this side {ours}").into()
            );
        }
        let new_peer = *peer != Some(theirs.incarnation);
        *peer = Some(theirs.incarnation);
        self.inbox.resume(number, theirs.incarnation);
        self.outbox.resume(number, self.me, theirs.incarnation, theirs.received)?;
        Ok(Connection { stream, number, decoder, new_peer })
    }

    fn push(&mut self, message: &Message<Vec<u8>>) -> Result<(), Failure> {
        self.outbox.push(postcard::to_stdvec(message)?);
        Ok(())
    }

    /// Write everything that waits.
    fn flush(&mut self, connection: &mut Connection) -> io::Result<()> {
        loop {
            let mut bytes = Vec::new();
            self.outbox.fill(connection.number, BATCH, &mut bytes);
            if bytes.is_empty() {
                return Ok(());
            }
            connection.stream.write_all(&bytes)?;
        }
    }

    /// Return the messages that have arrived. Wait for bytes if there are none.
    fn receive(&mut self, connection: &mut Connection) -> Result<Vec<Message<Vec<u8>>>, Failure> {
        let mut messages = Vec::new();
        // A message may have come together with the hello.
        if !connection.decoder.is_ready() {
            read(&mut connection.stream, &mut connection.decoder)?;
        }
        while let Some(frame) = connection.decoder.frame()? {
            match frame {
                Frame::Data { number, received, message } => {
                    self.outbox.acknowledge(received)?;
                    match self.inbox.judge(connection.number, number) {
                        Verdict::Deliver => messages.push(postcard::from_bytes(message)?),
                        Verdict::Duplicate => continue,
                        Verdict::Gap | Verdict::Stale => return Err("messages are missing".into()),
                    }
                    self.inbox.delivered();
                    self.outbox.set_received(self.inbox.received());
                }
                Frame::Ack(received) => self.outbox.acknowledge(received)?,
                Frame::Bye(why) => return Err(why.to_owned().into()),
                Frame::Hello(_) => return Err("a second hello".into()),
            }
        }
        Ok(messages)
    }
}

/// Read some bytes, or fail if the connection has ended.
fn read(stream: &mut TcpStream, decoder: &mut Decoder) -> io::Result<()> {
    let mut bytes = [0; 16 << 10];
    match stream.read(&mut bytes)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        count => {
            decoder.room().extend_from_slice(&bytes[..count]);
            Ok(())
        }
    }
}

/// Consume lines until the process is killed.
fn consume(address: &str, path: &str, capacity: u64) -> Result<(), Failure> {
    let (mut file, consumed) = reopen(path)?;
    let mut consumer = Consumer::resume(capacity, consumed);
    let listener = TcpListener::bind(address)?;
    println!("{consumed} lines are in {path}; listening at {}", listener.local_addr()?);
    let (mut link, mut peer) = (Link::new(capacity), None);
    loop {
        let (stream, _) = listener.accept()?;
        let mut connection = match link.open(stream, &mut peer) {
            Ok(connection) => connection,
            Err(why) => {
                eprintln!("buffer: a connection was refused: {why}");
                continue;
            }
        };
        if connection.new_peer {
            consumer = Consumer::resume(capacity, consumer.consumed());
            link.push(&consumer.credit())?;
        }
        let ended = loop {
            if let Err(why) = link.flush(&mut connection) {
                break why.into();
            }
            let messages = match link.receive(&mut connection) {
                Ok(messages) => messages,
                Err(why) => break why,
            };
            for message in messages {
                let Message::Item(number, line) = message else { continue };
                consumer.item(number, line)?;
            }
            // The lines are in the file before the producer is told: the file is the counter.
            let before = consumer.consumed();
            let mut lines = Vec::new();
            while let Some(line) = consumer.consume() {
                lines.extend(line);
                lines.push(b'\n');
            }
            file.write_all(&lines)?;
            if consumer.consumed() > before {
                link.push(&consumer.credit())?;
            }
        };
        eprintln!("buffer: the connection has ended: {ended}");
    }
}

/// Open the file of the consumer, and count its lines. A line without an end was being written when
/// the process before was killed: it is taken away, and will arrive again.
fn reopen(path: &str) -> io::Result<(File, u64)> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    file.set_len(whole as u64)?;
    let lines = bytes[..whole].split_inclusive(|byte| *byte == b'\n').count();
    Ok((file, lines as u64))
}

/// Produce the lines of a file, until the consumer has all of them.
fn produce(address: &str, path: &str, capacity: u64) -> Result<(), Failure> {
    let total = lines(path)?.try_fold(0, |count, line| line.map(|_| count + 1))?;
    let mut link = Link::new(capacity);
    let (mut peer, mut producer) = (None, None::<Producer<Vec<u8>>>);
    let mut source = lines(path)?;
    let mut begun: Option<(Instant, u64)> = None;
    let mut tried = Instant::now();
    loop {
        let connected = TcpStream::connect(address).map_err(Failure::from);
        let mut connection = match connected.and_then(|stream| link.open(stream, &mut peer)) {
            Ok(connection) => connection,
            Err(why) if tried.elapsed() > PATIENCE => {
                return Err(format!("no consumer at {address}: {why}").into());
            }
            Err(_) => {
                std::thread::sleep(PAUSE);
                continue;
            }
        };
        if connection.new_peer
            && let Some(producer) = &producer
        {
            // A consumer that has just started has none of the lines that were under way.
            producer.unconfirmed().try_for_each(|item| link.push(&item))?;
        }
        let ended: Failure = loop {
            if let Some(producer) = &mut producer {
                while producer.free() > 0
                    && let Some(line) = source.next()
                {
                    if let Ok(item) = producer.produce(line?) {
                        link.push(&item)?;
                    }
                }
                if producer.known_consumed() == total {
                    tell(begun, total);
                    return Ok(());
                }
            }
            if let Err(why) = link.flush(&mut connection) {
                break why.into();
            }
            let messages = match link.receive(&mut connection) {
                Ok(messages) => messages,
                Err(why) => break why,
            };
            for message in messages {
                let Message::Credit(consumed) = message else { continue };
                if consumed > total {
                    let text = format!("the consumer has {consumed} lines, and {path} has {total}");
                    return Err(text.into());
                }
                if let Some(producer) = &mut producer {
                    producer.credit(consumed)?;
                    continue;
                }
                // The first credit says where to go on.
                producer = Some(Producer::resume(capacity, consumed));
                begun = Some((Instant::now(), consumed));
                source = lines(path)?;
                for _ in 0..consumed {
                    source.next().transpose()?;
                }
            }
        };
        eprintln!("buffer: the connection has ended: {ended}");
        tried = Instant::now();
    }
}

/// Tell how fast it was.
fn tell(begun: Option<(Instant, u64)>, total: u64) {
    let Some((begin, before)) = begun else { return };
    let (seconds, lines) = (begin.elapsed().as_secs_f64(), total - before);
    println!("{lines} lines in {seconds:.3} s, {:.0} a second", lines as f64 / seconds.max(1e-9));
}

/// The lines of a file, without their ends.
fn lines(path: &str) -> Result<impl Iterator<Item = io::Result<Vec<u8>>>, Failure> {
    let file = File::open(path).map_err(|error| format!("cannot open {path}: {error}"))?;
    Ok(BufReader::new(file).split(b'\n').map(|line| {
        let line = line?;
        if line.len() > LINE_MAX {
            let text = format!("a line of {} bytes; at most {LINE_MAX} are allowed", line.len());
            return Err(io::Error::other(text));
        }
        Ok(line)
    }))
}
