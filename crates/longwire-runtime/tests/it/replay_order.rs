//! Order of a replay's frames over several ports.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use longwire_engine::{LinkSpec, Nanos, NoLoader};
use longwire_io::port::one_way::SilentRx;
use longwire_io::port::own::OwnTx;
use longwire_io::port::{AnyRx, AnyTx, Port};
use longwire_io::{PortError, PushResult, ReceiveResult, TxFrame};
use longwire_runtime::replay::{ReplayConfig, ReplayOutput};
use longwire_runtime::{
    Feed, FeedFrame, FeedStatus, LinkSetup, NetworkPlan, RunConfig, RunReport, start,
};
use longwire_units::random::{Purpose, Stream};

/// Release, number and port of a departed frame.
type Departure = (Nanos, u64, usize);

/// Numbered frames to random ports, some with equal times.
struct Mixed {
    frames: u64,
    next: u64,
    due: Nanos,
    /// Time between frames; `None` for frames without times.
    gap: Option<Nanos>,
    outputs: usize,
    draws: Stream,
}

impl Feed for Mixed {
    fn feed(
        &mut self,
        max: usize,
        take: &mut dyn FnMut(FeedFrame<'_>),
    ) -> Result<ReceiveResult, PortError> {
        let mut frames = 0;
        while frames < max && self.next < self.frames {
            let mut bytes = [0; 60];
            bytes[..8].copy_from_slice(&self.next.to_le_bytes());
            let draw = self.draws.next_u64();
            take(FeedFrame {
                bytes: &bytes,
                wire_len: 60,
                due: self.due,
                output: (draw >> 8) as usize % self.outputs,
            });
            // About half of the frames are due with the previous one.
            if draw.is_multiple_of(2) {
                self.due = self.due.saturating_add(self.gap.unwrap_or_default());
            }
            self.next += 1;
            frames += 1;
        }
        Ok(ReceiveResult {
            frames,
            end: self.next == self.frames,
        })
    }

    fn outputs(&self) -> usize {
        self.outputs
    }

    fn is_paced(&self) -> bool {
        self.gap.is_some()
    }

    fn frame_max(&self) -> usize {
        60
    }

    fn status(&self) -> FeedStatus {
        FeedStatus::default()
    }
}

/// A port that records departures; at most `room` per flush.
struct NotingPort {
    index: usize,
    room: usize,
    pushed: Vec<Departure>,
    departures: Arc<Mutex<Vec<Departure>>>,
}

impl OwnTx for NotingPort {
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

/// Sends 4,000 frames through a link per port; returns the departures.
fn departures(gap: Option<Nanos>, links: &[&str], room: usize) -> (Vec<Departure>, RunReport) {
    let departures = Arc::new(Mutex::new(Vec::new()));
    let outputs = links.iter().enumerate().map(|(index, line)| {
        let spec: LinkSpec = line.parse().expect("a valid line");
        let port = NotingPort {
            index,
            room,
            pushed: Vec::new(),
            departures: Arc::clone(&departures),
        };
        ReplayOutput {
            port: Port {
                name: "noting".into(),
                rx: AnyRx::Silent(SilentRx),
                tx: AnyTx::Own(Box::new(port)),
                notes: Vec::new(),
            },
            link: LinkSetup {
                name: format!("out{index}"),
                config: spec.build(&NoLoader).expect("no plugins"),
            },
            sent: None,
            cells: None,
        }
    });
    let feed = Mixed {
        frames: 4_000,
        next: 0,
        due: Nanos::ZERO,
        gap,
        outputs: links.len(),
        draws: Stream::new(29, 0, Purpose::Payload),
    };
    let config = RunConfig {
        realtime: false,
        grace: Nanos::ZERO,
        ..RunConfig::default()
    };
    let outputs = outputs.collect();
    let plan = NetworkPlan::replay(Box::new(feed), outputs, ReplayConfig::default());
    let running = start(plan, config, None).expect("it starts");
    assert!(running.wait(Duration::from_secs(60)));
    let report = running.stop();
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

/// A full port blocks all ports; their lateness is not the emulator's own.
#[test]
fn a_full_port_holds_up_the_others() {
    let (left, report) = departures(Some(Nanos::from_nanos(100)), &["", ""], 1);
    assert_eq!(left.len(), 4_000);
    for link in &report.links {
        let late = ["late", "late_receiver"].map(|kind| link.artifacts[kind]);
        assert!(late[1] > 1_000 && late[0] < 100, "{}: {late:?}", link.name);
    }
}
