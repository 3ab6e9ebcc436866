//! The encoding of frames and messages: it never changes within a version, and no bytes do harm.

use std::fmt::Write as _;
use std::path::Path;

use doorway_core::Mode;
use doorway_node::link::{Decoder, Frame, FrameError, Hello, Incarnation, ReceivedCount, Versions};
use doorway_node::messages::{
    AlgorithmMessage, Answer, ClientReport, ClientStatus, Flush, HeldLock, Message, Question,
    RecordOrder,
};
use doorway_node::{Fence, Name};
use proptest::prelude::*;

fn hello() -> Hello {
    Hello {
        versions: Versions { min: 1, max: 3 },
        group: "shop".to_owned(),
        node: "n1".to_owned(),
        config: 0x0123_4567_89ab_cdef,
        incarnation: Incarnation(77),
        epochs: vec![1, 0, 300],
        received: ReceivedCount { of: Incarnation(99), count: 12 },
    }
}

/// One of each kind of frame and of each kind of message.
fn samples() -> Vec<(&'static str, Vec<u8>)> {
    let lock = Name::new("orders").expect("a name");
    let fence = Fence::new(3, 5);
    let held = HeldLock { lock: lock.clone(), mode: Mode::Shared, permits: 2 };
    let report = |status| {
        let mode = Mode::Exclusive;
        let client = matches!(status, ClientStatus::Inside(_)).then(|| "ada".to_owned());
        ClientReport { lock: lock.clone(), session: 8, mode, status, since_ms: 1500, client }
    };
    let reports = vec![report(ClientStatus::Inside(fence)), report(ClientStatus::Waiting(4))];
    let step =
        AlgorithmMessage { view: 3, clock: 500, lock: lock.clone(), payload: vec![1, 2, 255] };
    let flush = Flush { epochs: vec![1, 2], part: 0, parts: 1, held: vec![held] };
    let frame = |frame: Frame<'_>| {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        bytes
    };
    let message = |message: Message| postcard::to_allocvec(&message).expect("a message");
    vec![
        ("frame hello", frame(Frame::Hello(hello()))),
        ("frame data", frame(Frame::Data { number: 300, received: 2, message: &[7, 8] })),
        ("frame ack", frame(Frame::Ack(1 << 40))),
        ("frame bye", frame(Frame::Bye("wrong group"))),
        ("message step", message(Message::Algorithm(step))),
        ("message flush", message(Message::Flush(flush))),
        ("message epochs", message(Message::Epochs(vec![0, 1, 1 << 20]))),
        ("message ask clients", message(Message::Ask(6, Question::Clients(lock.clone())))),
        ("message tell clients", message(Message::Tell(6, Answer::Clients(reports)))),
    ]
}

/// What version 2 has added.
fn added_samples() -> Vec<(&'static str, Vec<u8>)> {
    let message = |message: Message| postcard::to_allocvec(&message).expect("a message");
    let order =
        RecordOrder { id: 9, lock: Name::new("deploy/web").expect("a name"), for_ms: 10_000 };
    vec![
        ("message ask service", message(Message::Ask(7, Question::Service(vec![1, 2])))),
        ("message tell service", message(Message::Tell(7, Answer::Service(Some(vec![3]))))),
        ("message ask record", message(Message::Ask(0, Question::Record(order)))),
        ("message ask recorded", message(Message::Ask(8, Question::Recorded(9)))),
        ("message tell recording", message(Message::Tell(8, Answer::Recording(Some(vec![4]))))),
    ]
}

#[test]
fn the_bytes_of_each_version_stay_as_they_are() {
    assert_eq!(
        Versions::SPOKEN,
        Versions { min: 1, max: 2 },
        "a new version has a file of its own"
    );
    golden("v1.txt", samples());
    golden("v2.txt", added_samples());
}

fn golden(file: &str, samples: Vec<(&'static str, Vec<u8>)>) {
    let mut text = String::new();
    for (name, bytes) in samples {
        let hex = bytes.iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
        writeln!(text, "{name}: {hex}").expect("memory can be written");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &text).expect("a file");
    }
    assert_eq!(std::fs::read_to_string(&path).expect("a file"), text);
}

#[test]
fn every_sample_is_read_back() {
    for (name, bytes) in samples() {
        if name.starts_with("message") {
            let message: Message = postcard::from_bytes(&bytes).unwrap();
            assert_eq!(postcard::to_allocvec(&message).unwrap(), bytes, "{name}");
        } else {
            let mut decoder = Decoder::default();
            decoder.room().extend_from_slice(&bytes);
            let mut again = Vec::new();
            decoder.frame().unwrap().unwrap().encode(&mut again);
            assert_eq!(again, bytes, "{name}");
        }
    }
}

#[test]
fn only_a_hello_may_have_more_bytes_at_its_end() {
    for (name, mut bytes) in samples().into_iter().take(4) {
        bytes.push(0);
        let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) + 1;
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        let mut decoder = Decoder::default();
        decoder.room().extend_from_slice(&bytes);
        match decoder.frame() {
            Ok(Some(Frame::Hello(read))) => assert_eq!(read, hello()),
            Ok(Some(Frame::Data { message, .. })) => assert_eq!(message, [7, 8, 0]),
            Err(FrameError::Garbled(_)) => assert!(name == "frame ack" || name == "frame bye"),
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn the_highest_common_version_is_used() {
    let of = |min, max| Versions { min, max };
    assert_eq!(of(1, 3).common(of(2, 5)), Some(3));
    assert_eq!(of(2, 5).common(of(1, 3)), Some(3));
    assert_eq!(of(1, 3).common(of(3, 3)), Some(3));
    assert_eq!(of(1, 2).common(of(3, 4)), None);
    assert_eq!(of(3, 4).common(of(1, 2)), None);
    // An empty range has no version in common with any other.
    assert_eq!(of(4, 1).common(of(1, 4)), None);
}

#[test]
fn too_long_and_empty_frames_are_errors_before_their_bytes_arrive() {
    for (length, wrong) in [
        ((1 << 20) + 1, FrameError::TooLong((1 << 20) + 1)),
        (u32::MAX, FrameError::TooLong(u32::MAX as usize)),
        (0, FrameError::Empty),
    ] {
        let mut decoder = Decoder::default();
        decoder.room().extend_from_slice(&length.to_le_bytes());
        assert!(decoder.is_ready());
        assert_eq!(decoder.frame(), Err(wrong));
    }
    let mut decoder = Decoder::default();
    decoder.room().extend_from_slice(&(1_u32 << 20).to_le_bytes());
    assert_eq!(decoder.frame(), Ok(None));
    assert!(decoder.room().capacity() < 1000, "memory for bytes that never came");
}

/// A frame with its own bytes.
#[derive(Clone, Debug)]
enum OwnedFrame {
    Hello(Hello),
    Data(u64, u64, Vec<u8>),
    Ack(u64),
    Bye(String),
}

impl OwnedFrame {
    fn frame(&self) -> Frame<'_> {
        match self {
            Self::Hello(hello) => Frame::Hello(hello.clone()),
            Self::Data(number, received, message) => {
                Frame::Data { number: *number, received: *received, message }
            }
            Self::Ack(received) => Frame::Ack(*received),
            Self::Bye(why) => Frame::Bye(why),
        }
    }
}

fn any_frame() -> impl Strategy<Value = OwnedFrame> {
    let words = ("[a-z0-9-]{1,63}", ".{0,20}");
    let numbers = (any::<[u16; 2]>(), any::<[u64; 4]>(), prop::collection::vec(any::<u64>(), 0..9));
    let hello = (words, numbers).prop_map(|((group, node), ([min, max], numbers, epochs))| {
        let [config, incarnation, of, count] = numbers;
        let received = ReceivedCount { of: Incarnation(of), count };
        let versions = Versions { min, max };
        let incarnation = Incarnation(incarnation);
        OwnedFrame::Hello(Hello { versions, group, node, config, incarnation, epochs, received })
    });
    let bytes = prop::collection::vec(any::<u8>(), 0..300);
    prop_oneof![
        hello,
        (any::<u64>(), any::<u64>(), bytes).prop_map(|(n, r, bytes)| OwnedFrame::Data(n, r, bytes)),
        any::<u64>().prop_map(OwnedFrame::Ack),
        ".{0,40}".prop_map(OwnedFrame::Bye),
    ]
}

/// Decode the bytes in pieces, and encode again what was decoded.
fn pass(pieces: &[&[u8]]) -> Result<Vec<u8>, FrameError> {
    let mut decoder = Decoder::default();
    let mut read = Vec::new();
    for piece in pieces {
        decoder.room().extend_from_slice(piece);
        while let Some(frame) = decoder.frame()? {
            frame.encode(&mut read);
        }
    }
    Ok(read)
}

proptest! {
    #[test]
    fn frames_are_read_as_they_were_written_however_they_are_cut(
        frames in prop::collection::vec(any_frame(), 1..6),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let mut bytes = Vec::new();
        for frame in &frames {
            let begin = bytes.len();
            frame.frame().encode(&mut bytes);
            let mut decoder = Decoder::default();
            decoder.room().extend_from_slice(&bytes[begin..]);
            prop_assert_eq!(decoder.frame(), Ok(Some(frame.frame())));
            prop_assert_eq!(decoder.frame(), Ok(None));
        }
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<_> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
        prop_assert_eq!(pass(&pieces), Ok(bytes.clone()));
    }

    #[test]
    fn a_frame_cut_short_is_not_there_yet(
        frame in any_frame(), end in any::<prop::sample::Index>()
    ) {
        let mut bytes = Vec::new();
        frame.frame().encode(&mut bytes);
        bytes.truncate(end.index(bytes.len()));
        prop_assert_eq!(pass(&[&bytes]), Ok(Vec::new()));
    }

    #[test]
    fn a_body_cut_short_is_an_error_or_a_shorter_message(
        frame in any_frame(), end in any::<prop::sample::Index>()
    ) {
        let mut bytes = Vec::new();
        frame.frame().encode(&mut bytes);
        bytes.truncate(5 + end.index(bytes.len() - 5));
        let length = bytes.len() as u32 - 4;
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        match pass(&[&bytes]) {
            Ok(read) => prop_assert!(matches!(frame, OwnedFrame::Data(..)) && read == bytes),
            Err(wrong) => prop_assert!(matches!(wrong, FrameError::Garbled(_))),
        }
    }

    #[test]
    fn any_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0_u8..5) {
        let _ = pass(&[&bytes]);
        // The same bytes as the body of a frame with a correct length.
        let mut framed = (bytes.len() as u32 + 1).to_le_bytes().to_vec();
        framed.push(kind);
        framed.extend_from_slice(&bytes);
        let _ = pass(&[&framed]);
        let _ = postcard::from_bytes::<Message>(&bytes);
    }
}
