//! Order of a replay's frames over several ports.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use longwire_engine::Nanos;
use longwire_io::port::AnyTx;
use longwire_io::{PortError, PushResult, TxFrame, TxPort};
use longwire_runtime::RunReport;
use longwire_units::random::{Purpose, Stream};

use crate::replay::{Numbered, output, replay_within};

/// A departed frame's release, number and port.
type Departure = (Nanos, u64, usize);

/// A port that records departures, at most `room` per flush.
struct NotingPort {
    index: usize,
    room: usize,
    pushed: Vec<Departure>,
    departures: Arc<Mutex<Vec<Departure>>>,
}

impl TxPort for NotingPort {
    fn push(&mut self, frame: TxFrame<'_>) -> PushResult {
        if self.pushed.len() == 2 * self.room {
            return PushResult::Full;
        }
        let number = u64::from_le_bytes(frame.bytes[..8].try_into().unwrap());
        self.pushed.push((frame.release, number, self.index));
        PushResult::Taken
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        let left = self.pushed.len().min(self.room);
        self.departures
            .lock()
            .unwrap()
            .extend(self.pushed.drain(..left));
        Ok(left)
    }

    fn free_slots(&self) -> usize {
        2 * self.room - self.pushed.len()
    }

    fn unsent(&self) -> usize {
        self.pushed.len()
    }
}

/// Sends 4,000 frames, with a link per port, and returns the departures.
fn departures(gap: Option<Nanos>, links: &[&str], room: usize) -> (Vec<Departure>, RunReport) {
    let departures = Arc::new(Mutex::new(Vec::new()));
    let outputs = links.iter().enumerate().map(|(index, line)| {
        let port = NotingPort {
            index,
            room,
            pushed: Vec::new(),
            departures: Arc::clone(&departures),
        };
        output(AnyTx::Own(Box::new(port)), line)
    });
    let ports = links.len();
    let mut draws = Stream::new(29, 0, Purpose::Payload);
    let mut next = Nanos::ZERO;
    let place = move |_| {
        let (due, draw) = (next, draws.next_u64());
        // About half of the frames are due together with the previous one.
        if draw.is_multiple_of(2) {
            next = next.saturating_add(gap.unwrap_or_default());
        }
        (due, (draw >> 8) as usize % ports)
    };
    let feed = Numbered {
        outputs: ports,
        paced: gap.is_some(),
        ..Numbered::new(4_000, place)
    };
    let report = replay_within(Duration::from_secs(60), feed, outputs.collect());
    assert_eq!(report.error, None);
    let departures = std::mem::take(&mut *departures.lock().unwrap());
    (departures, report)
}

#[test]
fn frames_leave_in_the_feeds_order_whatever_the_port_and_the_pace() {
    for gap in [
        None,
        Some(Nanos::from_nanos(500)),
        Some(Nanos::from_micros(40)),
    ] {
        for room in [3, 64] {
            let (left, report) = departures(gap, &["", "", ""], room);
            let numbers = left.iter().map(|(_, number, _)| *number);
            assert!(numbers.eq(0..4_000), "{gap:?}, {room} at once");
            let out = report.links.iter().map(|link| link.traffic.packets_out);
            assert_eq!(out.sum::<u64>(), 4_000);
            let in_flight = report.links.iter().map(|link| link.in_flight);
            assert_eq!(in_flight.sum::<u64>(), 0);
        }
    }
}

#[test]
fn frames_leave_in_the_order_of_their_releases_and_ties_in_that_of_the_feed() {
    let gap = Some(Nanos::from_micros(10));
    let cases: [&[&str]; 4] = [
        &["delay=5ms", "delay=7ms"],
        &["delay=uniform:min=5ms,max=6ms", "delay=5500us"],
        &["queue=codel delay=5ms", "delay=5ms"],
        &[
            "queue=fq-codel rate=50mbit delay=5ms",
            "rate=40mbit delay=uniform:min=5ms,max=6ms",
        ],
    ];
    for links in cases {
        let (left, report) = departures(gap, links, 64);
        assert!(left.len() > 3_000, "{links:?}: {}", left.len());
        let ports = left.iter().filter(|(_, _, port)| *port == 0).count();
        assert!((1_000..3_000).contains(&ports), "{links:?}: {ports}");
        let place = |departure: &Departure| (departure.0, departure.1);
        let behind = left.windows(2).find(|two| place(&two[1]) < place(&two[0]));
        // A frame fed after it was due follows earlier departures.
        let late = report.links.iter().map(|link| link.artifacts["behind"]);
        let is_explained = behind.is_none() || late.sum::<u64>() > 0;
        assert!(is_explained, "{links:?}: {behind:?}");
    }
}

/// A full port blocks all ports. Their lateness is not the emulator's own.
#[test]
fn a_full_port_holds_up_the_others() {
    let (left, report) = departures(Some(Nanos::from_nanos(100)), &["", ""], 1);
    assert_eq!(left.len(), 4_000);
    for (port, link) in report.links.iter().enumerate() {
        let late = ["late", "late_receiver"].map(|kind| link.artifacts[kind]);
        assert!(late[1] > 1_000 && late[0] < 100, "port {port}: {late:?}");
    }
}
