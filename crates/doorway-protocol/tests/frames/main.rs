//! Frames: their bytes never change, they can arrive in any pieces, and garbage is refused.

mod samples;

use std::fmt::{Debug, Write};
use std::{env, fs};

use doorway_protocol::{
    Claims, Code, Fence, FrameError, Frames, Greeting, Hello, MAGIC, MAX_FRAME, Mode, Name,
    Refusal, Reply, Request, put,
};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The bytes of version 1 never change. `UPDATE=1` adds new messages to the golden file.
#[test]
fn the_bytes_of_version_1_do_not_change() {
    let mut text = String::new();
    for sample in samples::all() {
        let hex = sample.bytes.iter().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").expect("writing to a string succeeds");
            hex
        });
        writeln!(text, "{}\n  {hex}", sample.value).unwrap();
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/version_1.txt");
    if env::var_os("UPDATE").is_some() {
        fs::write(path, &text).unwrap();
    }
    let golden = fs::read_to_string(path).unwrap();
    for (ours, theirs) in text.lines().zip(golden.lines()) {
        assert_eq!(
            ours, theirs,
            "version 1 has changed, so old clients and new nodes would not understand each other"
        );
    }
    assert_eq!(text, golden);
}

/// A value is read as it was written, whatever pieces its bytes arrive in.
fn round_trip<T: Serialize + DeserializeOwned + Debug + PartialEq>(value: &T) {
    let mut bytes = Vec::new();
    put(value, &mut bytes);
    put(value, &mut bytes);
    let step = (bytes.len() / 64).max(1);
    for cut in (0..=bytes.len()).step_by(step) {
        let mut frames = Frames::default();
        frames.feed(&bytes[..cut]);
        let mut got = Vec::new();
        while let Some(value) = frames.take::<T>().expect("whole frames") {
            got.push(value);
        }
        assert_eq!(got.len(), cut / (bytes.len() / 2), "no frame is read before it is complete");
        frames.feed(&bytes[cut..]);
        while let Some(value) = frames.take::<T>().expect("whole frames") {
            got.push(value);
        }
        assert!(got.len() == 2 && got.iter().all(|it| it == value), "{got:?}");
    }
}

#[test]
fn every_message_is_read_as_it_was_written() {
    samples::hellos().iter().for_each(round_trip::<Hello>);
    round_trip::<Claims>(&samples::claims());
    samples::greetings().iter().for_each(round_trip::<Greeting>);
    samples::requests().iter().for_each(round_trip::<Request>);
    samples::replies().iter().for_each(round_trip::<Reply>);
}

#[test]
fn a_connection_begins_with_magic() {
    for cut in 0..MAGIC.len() {
        let mut frames = Frames::default();
        frames.feed(&MAGIC[..cut]);
        assert_eq!(frames.magic(), Ok(false));
        frames.feed(&MAGIC[cut..]);
        assert_eq!(frames.magic(), Ok(true));
        let mut frames = Frames::default();
        frames.feed(&MAGIC[..cut]);
        frames.feed(b"x");
        assert_eq!(frames.magic(), Err(FrameError::Magic));
    }
}

#[test]
fn a_frame_that_is_too_long_is_refused_before_it_arrives() {
    let mut frames = Frames::default();
    frames.feed(&(MAX_FRAME as u32 + 1).to_le_bytes());
    assert_eq!(frames.take::<Request>(), Err(FrameError::TooLong(MAX_FRAME + 1)));
    let mut frames = Frames::default();
    frames.feed(&(MAX_FRAME as u32).to_le_bytes());
    assert_eq!(frames.take::<Request>(), Ok(None));
}

#[test]
fn a_frame_holds_one_value_and_nothing_else() {
    let mut bytes = Vec::new();
    put(&Request::Alive(1), &mut bytes);
    bytes[0] += 1;
    bytes.push(0);
    let mut frames = Frames::default();
    frames.feed(&bytes);
    assert_eq!(frames.take::<Request>(), Err(FrameError::Garbled));
}

#[test]
fn many_frames_at_once_are_read_without_moving_them() {
    let mut bytes = Vec::new();
    for number in 0..50_000 {
        put(&Request::Alive(number), &mut bytes);
    }
    let mut frames = Frames::default();
    frames.feed(&bytes);
    for number in 0..50_000 {
        assert_eq!(frames.take(), Ok(Some(Request::Alive(number))));
    }
    assert_eq!(frames.take::<Request>(), Ok(None));
    assert!(frames.space().capacity() <= 4096, "the memory of a burst is given back");
}

#[test]
fn the_claims_of_a_page_fit_into_a_frame() {
    let claim = doorway_protocol::Claim {
        lock: samples::name(&"x".repeat(Name::MAX)),
        mode: Mode::Shared,
        permits: Some(u32::MAX),
        fence: Fence::from_number(i64::MAX as u64).unwrap(),
        request: u64::MAX,
    };
    let held = vec![claim; Claims::MAX];
    let claims = Claims { held, waiting: vec![u64::MAX; Claims::MAX], more: true };
    let mut bytes = Vec::new();
    put(&claims, &mut bytes);
    assert!(
        bytes.len() < MAX_FRAME - 8192,
        "there must be room for a greeting besides: {}",
        bytes.len()
    );
}

#[test]
fn a_value_that_is_too_long_is_not_written() {
    let mut bytes = vec![1, 2, 3];
    assert!(!put(&"x".repeat(MAX_FRAME), &mut bytes));
    assert_eq!(bytes, [1, 2, 3]);
    assert!(
        put(&"x".repeat(MAX_FRAME - 3), &mut bytes),
        "postcard needs three bytes for the length"
    );
}

#[test]
fn long_reasons_are_cut() {
    let long = "\u{e4}".repeat(MAX_FRAME);
    let kept = long[..4096].to_owned();
    let refusal = Refusal { code: Code::Gone, text: long.clone() };
    let lost = Reply::Lost(samples::name("a"), Fence::new(1, 1), format!("x{long}"));
    let mut frames = Frames::default();
    for reply in [Reply::Refused(1, refusal), lost] {
        let mut bytes = Vec::new();
        assert!(put(&reply, &mut bytes));
        frames.feed(&bytes);
    }
    let refusal = Refusal { code: Code::Gone, text: kept.clone() };
    assert_eq!(frames.take(), Ok(Some(Reply::Refused(1, refusal))));
    let Ok(Some(Reply::Lost(.., reason))) = frames.take() else { panic!("not a loss") };
    assert_eq!(reason, format!("x{}", &kept[..4094]), "cut at the end of a character");
}

#[test]
fn fences_are_checked_wherever_they_come_from() {
    for (number, right) in [(0, false), (1, true), (i64::MAX as u64, true), (1 << 63, false)] {
        let mut bytes = Vec::new();
        put(&number, &mut bytes);
        let mut frames = Frames::default();
        frames.feed(&bytes);
        assert_eq!(frames.take::<Fence>().is_ok(), right, "{number}");
    }
}

#[test]
fn fences_are_positive_numbers() {
    assert_eq!("1099511627777".parse(), Ok(Fence::new(1, 1)));
    for wrong in ["", "0", "-1", "x", "9223372036854775808", "99999999999999999999999"] {
        let error = wrong.parse::<Fence>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("{wrong:?} is not a fence")), "{error}");
    }
}

proptest! {
    #[test]
    fn garbage_does_not_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        cut in 0..200_usize,
    ) {
        let mut frames = Frames::default();
        frames.feed(&bytes[..cut.min(bytes.len())]);
        let _ = frames.magic();
        let _ = frames.take::<Hello>();
        frames.feed(&bytes[cut.min(bytes.len())..]);
        let _ = frames.take::<Request>();
        let _ = frames.take::<Reply>();
        let _ = frames.take::<Greeting>();
    }

    #[test]
    fn a_changed_byte_does_not_panic(
        which in any::<usize>(),
        at in any::<usize>(),
        with: u8,
    ) {
        let all = samples::all();
        let mut bytes = all[which % all.len()].bytes.clone();
        let place = 4 + at % (bytes.len() - 4);
        bytes[place] = with;
        let mut frames = Frames::default();
        frames.feed(&bytes);
        let _ = frames.take::<Hello>();
        let _ = frames.take::<Request>();
        let _ = frames.take::<Reply>();
        let _ = frames.take::<Greeting>();
        let _ = frames.take::<Claims>();
    }

    #[test]
    fn names_are_checked_wherever_they_come_from(text in "\\PC{0,80}|[a-z\\x00-\\x20]{0,10}") {
        let mut bytes = Vec::new();
        put(&text, &mut bytes);
        let mut frames = Frames::default();
        frames.feed(&bytes);
        let came = frames.take::<Name>();
        let right = Name::new(&text).map(Some).map_err(|_| FrameError::Garbled);
        prop_assert_eq!(came, right);
    }
}
