//! A token ring on threads stabilises from any contents of its registers.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use doorway_threads::ring::{RingError, Station, TokenRing};

/// All contents of `n` registers with states below `k`.
fn contents(n: u32, k: usize) -> impl Iterator<Item = Vec<usize>> {
    (0..k.pow(n)).map(move |number| (0..n).map(|i| number / k.pow(i) % k).collect())
}

/// Poll all stations before any of them moves, then let all move. Returns how many were privileged.
fn move_together(stations: &mut [Station<'_>]) -> usize {
    stations.iter_mut().filter_map(Station::poll).collect::<Vec<_>>().len()
}

#[test]
fn a_ring_stabilises_if_all_stations_move_at_once() {
    let mut disordered = 0;
    for words in contents(4, 7) {
        let mut ring = TokenRing::holding(&words).unwrap();
        assert_eq!(ring.states(), 7);
        let mut stations: Vec<_> = ring.stations().collect();
        let privileged: Vec<_> = (0..60).map(|_| move_together(&mut stations)).collect();
        assert!(privileged.iter().all(|privileged| *privileged > 0), "{words:?}: {privileged:?}");
        assert!(privileged[30..].iter().all(|privileged| *privileged == 1), "{words:?}");
        disordered += usize::from(privileged[0] > 1);
    }
    // All but 7 * 6 * 3 + 7 contents have more than one privilege.
    assert_eq!(disordered, 2401 - 133);
}

/// What the stations of a ring on threads see of each other.
#[derive(Default)]
struct Watch {
    privileged: AtomicUsize,
    /// Whether the ring has stabilised by now.
    settled: AtomicBool,
    done: AtomicBool,
    two_at_once: AtomicUsize,
}

impl Watch {
    /// Pass on the privilege whenever it comes. Returns how often it came after the ring had
    /// stabilised.
    fn run(&self, mut station: Station<'_>, until: impl Fn(&Self, usize)) -> usize {
        let (mut times, mut times_settled) = (0, 0);
        while !self.done.load(Ordering::SeqCst) {
            let Some(privilege) = station.poll() else {
                thread::yield_now();
                continue;
            };
            let others = self.privileged.fetch_add(1, Ordering::SeqCst);
            times += 1;
            until(self, times);
            if self.settled.load(Ordering::SeqCst) {
                times_settled += 1;
                self.two_at_once.fetch_add(others, Ordering::SeqCst);
            }
            self.privileged.fetch_sub(1, Ordering::SeqCst);
            drop(privilege);
        }
        times_settled
    }
}

/// Run a ring on threads until its first station has been privileged often.
fn run(words: &[usize], laps: usize) {
    let mut ring = TokenRing::holding(words).expect("a few stations");
    let settling = ring.states() + 1;
    let watch = Watch::default();
    let first = |watch: &Watch, times| {
        watch.settled.fetch_or(times > settling, Ordering::SeqCst);
        watch.done.fetch_or(times > settling + laps, Ordering::SeqCst);
    };
    thread::scope(|scope| {
        let watch = &watch;
        let threads: Vec<_> = ring
            .stations()
            .enumerate()
            .map(|(i, station)| {
                scope.spawn(move || {
                    if i == 0 { watch.run(station, first) } else { watch.run(station, |_, _| {}) }
                })
            })
            .collect();
        for thread in threads {
            let turns = thread.join().expect("no station panics");
            assert!(turns >= laps, "{words:?}: each station has its turn in each lap");
        }
    });
    assert_eq!(watch.two_at_once.into_inner(), 0, "{words:?}");
}

#[test]
fn a_ring_on_threads_stabilises_from_every_state() {
    contents(3, 5).for_each(|words| run(&words, 5));
}

#[test]
fn a_ring_on_threads_stabilises_from_any_words() {
    run(&[usize::MAX, 12_345, 678, 9, 0], 1000);
    run(&[usize::MAX], 1000);
    run(&[3, 3], 1000);
}

#[test]
fn a_disturbed_station_does_no_lasting_harm() {
    let mut ring = TokenRing::new(5).unwrap();
    let mut stations: Vec<_> = ring.stations().collect();
    assert_eq!(move_together(&mut stations), 1);
    for word in 0..100 {
        stations[word % 5].disturb(word);
        (0..100).for_each(|_| assert!(move_together(&mut stations) >= 1));
        assert_eq!(move_together(&mut stations), 1);
    }
}

#[test]
fn a_forgotten_privilege_stays() {
    let mut ring = TokenRing::new(2).unwrap();
    let mut stations: Vec<_> = ring.stations().collect();
    std::mem::forget(stations[0].poll().unwrap());
    assert!(stations[1].poll().is_none());
    drop(stations[0].poll().unwrap());
    assert!(stations[0].poll().is_none());
    assert!(stations[1].poll().is_some());
}

#[test]
fn stations_can_be_sent_to_threads() {
    fn is_sent<T: Send>() {}
    is_sent::<Station<'_>>();
    is_sent::<TokenRing>();
}

#[test]
fn impossible_rings_are_refused() {
    assert_eq!(TokenRing::new(0).unwrap_err(), RingError::NoStations);
    assert_eq!(TokenRing::holding(&[]).unwrap_err(), RingError::NoStations);
    let most = doorway_threads::MOST;
    assert_eq!(
        TokenRing::new(most + 1).unwrap_err(),
        RingError::TooManyStations { asked: most + 1, most }
    );
}
