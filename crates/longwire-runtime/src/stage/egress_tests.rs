use std::sync::Mutex;

use longwire_engine::{Bytes, LinkId};
use longwire_io::delay_line::{DelayLineConfig, DelayLineWriter, Note, delay_line};
use longwire_io::port::SendStamp;
use longwire_io::{Offload, TxFrame};

use super::*;
use crate::record::{Epoch, Event, Recorder, RecordingParts};
use crate::report::LinkReport;
use crate::stage::segments::tests::{HEADERS, PAYLOAD, super_packet};
use crate::summary;
use crate::sync::locked;

/// A port whose device may hold frames and stamp some of them.
#[derive(Default)]
struct Device {
    lead: Option<Nanos>,
    /// Stamp minus release; `None` without stamps.
    stamped_after: Option<i64>,
    every: u32,
    pushed: Vec<Nanos>,
    waiting: usize,
    stamps: Vec<SendStamp>,
    looks: u32,
    /// Whether the port rejects all frames.
    full: bool,
}

impl TxPort for Device {
    fn push(&mut self, frame: TxFrame<'_>) -> PushResult {
        if self.full {
            return PushResult::Full;
        }
        let place = self.pushed.len();
        if let Some(after) = self.stamped_after
            && self.every > 0
            && place.is_multiple_of(self.every as usize)
        {
            let left = frame.release.as_nanos().saturating_add_signed(after);
            self.stamps.push(SendStamp {
                release: frame.release,
                left: Nanos::from_nanos(left),
                by: StampedBy::Device,
            });
        }
        self.pushed.push(frame.release);
        self.waiting += 1;
        PushResult::Taken
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        Ok(std::mem::take(&mut self.waiting))
    }

    fn free_slots(&self) -> usize {
        1024
    }

    fn unsent(&self) -> usize {
        self.waiting
    }

    fn sample_every(&mut self, every: u32) -> Option<StampedBy> {
        self.every = every;
        self.stamped_after.map(|_| StampedBy::Device)
    }

    fn sampled(&mut self, take: &mut dyn FnMut(SendStamp)) {
        self.looks += 1;
        self.stamps.drain(..).for_each(take);
    }

    fn launch_lead(&self) -> Option<Nanos> {
        self.lead
    }
}

fn micros(micros: u64) -> Nanos {
    Nanos::from_micros(micros)
}

/// A stage with a manual clock, and its line's writer.
struct Bench {
    egress: Egress<Device>,
    line: DelayLineWriter,
    clock: Clock,
    shared: Arc<LinkShared>,
}

impl Bench {
    fn new(port: Device) -> Bench {
        Bench::of(port, true, None)
    }

    /// Returns a stage in which the link with this specification decides.
    fn of(port: Device, in_order: bool, link: Option<&str>) -> Bench {
        Bench::with(port, in_order, link, None)
    }

    fn with(
        port: Device,
        in_order: bool,
        link: Option<&str>,
        record_handle: Option<RecordHandle>,
    ) -> Bench {
        let config = DelayLineConfig {
            budget: Bytes(1 << 20),
            huge_pages: false,
        };
        let (line, reader) = delay_line(&config).expect("memory");
        let (clock, shared) = (Clock::arrivals(), Arc::new(LinkShared::default()));
        let link = link.map(|spec| {
            let spec: longwire_engine::LinkSpec = spec.parse().expect("a link");
            let config = spec.build(&longwire_engine::NoLoader).expect("no plugins");
            let link = longwire_engine::Link::new(config, 1, LinkId(0));
            LaneParts::new(link, LinkId(0), Arc::clone(&shared), None)
        });
        let parts = EgressParts {
            port,
            line: reader,
            clock: clock.clone(),
            in_order,
            link,
            record_handle,
            tolerance: micros(10),
            grace_until: Nanos::ZERO,
        };
        Bench {
            egress: Egress::new(parts, Arc::clone(&shared)),
            line,
            clock,
            shared,
        }
    }

    /// Puts a frame on the line for each release.
    fn fill(&mut self, releases: impl IntoIterator<Item = u64>) {
        for release in releases {
            let note = Note {
                release: micros(release),
                tag: 0,
                offload: Offload::NONE,
                part: None,
                wire_len: 60,
            };
            self.line.push(&[0; 60], note).expect("room");
        }
        self.line.publish();
    }

    fn step_at(&mut self, at: u64) -> Step {
        self.clock.advance(micros(at));
        self.egress.step().expect("a step")
    }

    fn report(&self) -> LinkReport {
        summary::link("out", &[], &self.shared)
    }

    fn finish(&mut self) -> LinkReport {
        self.egress.finish();
        self.report()
    }
}

#[test]
fn frames_that_a_device_holds_are_handed_over_early_and_are_not_late() {
    for in_order in [true, false] {
        let device = Device {
            lead: Some(micros(1_000)),
            ..Device::default()
        };
        let mut bench = Bench::of(device, in_order, None);
        bench.fill([5_000, 5_500, 9_000]);
        assert_eq!(bench.egress.next_release(), Some(micros(4_000)));
        let step = bench.step_at(3_999);
        assert_eq!((step.frames, step.next_at), (0, Some(micros(4_000))));
        let step = bench.step_at(4_000);
        assert_eq!((step.frames, step.next_at), (1, Some(micros(4_500))));
        bench.step_at(5_200);
        assert_eq!(bench.egress.port().pushed, [5_000, 5_500].map(micros));
        // The frame with release 9,000 leaves 30 us late.
        bench.step_at(9_030);
        let report = bench.finish();
        assert_eq!(report.traffic.packets_out, 3);
        assert_eq!(report.artifacts["late"], 1);
        assert_eq!(report.lateness_us.p50, 0.0);
        assert!((29.0..31.0).contains(&report.lateness_us.max));
    }
}

#[test]
fn late_frames_are_counted_by_what_made_them_late() {
    let mut bench = Bench::new(Device::default());
    bench.egress.account.judge.grace_until = micros(1_000);
    let pauses = Arc::new(PauseHistory::default());
    bench.egress.excuse_by(&pauses);
    pauses.add((micros(2_000), micros(2_990)));
    // The first frame is late within the grace period, the second because of a pause that explains
    // all but 10 us, and the third without an excuse.
    for (release, at) in [(500, 600), (2_000, 3_000), (4_000, 4_100)] {
        bench.fill([release]);
        bench.step_at(at);
    }
    // The port is full for 200 us.
    bench.egress.port.full = true;
    bench.fill([5_000]);
    assert_eq!(bench.step_at(5_050).frames, 0);
    bench.egress.port.full = false;
    bench.step_at(5_200);
    let report = bench.finish();
    for kind in ["late", "late_start", "late_paused", "late_receiver"] {
        assert_eq!(report.artifacts[kind], 1, "{kind}");
    }
    let (all, own) = (report.lateness_us, report.lateness_own_us);
    assert!((990.0..1_010.0).contains(&all.max), "{all:?}");
    assert!((195.0..205.0).contains(&own.max), "{own:?}");
}

#[test]
fn a_port_that_sends_at_once_is_given_nothing_early() {
    let mut bench = Bench::new(Device::default());
    bench.fill([5_000]);
    assert_eq!(bench.step_at(4_999).frames, 0);
    assert_eq!(bench.step_at(5_000).frames, 1);
    let report = bench.finish();
    assert!(report.send_stamps.is_none());
    assert_eq!(bench.egress.port().looks, 0, "stamps were not requested");
}

/// Stamps are departures, not handovers. They are read at intervals, not per frame, and at high
/// rates more often, with fewer stamps per reading. Stamps before the release are counted
/// separately.
#[test]
fn stamps_are_read_at_intervals() {
    for (after, every, frames, gap, looks_expected, lateness_us) in [
        (7_000, 10, 1_000, 1_000, 9..=12, 7.0),
        // 10,000 stamps/s for one second.
        (0, 1, 10_000, 100, 200..=400, 0.0),
        (-300, 1, 40, 1, 1..=1, 0.0),
    ] {
        let mut bench = Bench::new(Device {
            stamped_after: Some(after),
            ..Device::default()
        });
        let by = bench.egress.watch_sends(every);
        assert_eq!(by, Some(StampedBy::Device));
        for number in 1..=frames {
            bench.fill([number * gap]);
            bench.step_at(number * gap);
        }
        let looks = bench.egress.port().looks;
        assert!(looks_expected.contains(&looks), "{after}: {looks}");
        let stamps = bench.finish().send_stamps.expect("stamps");
        let count = frames / u64::from(every);
        let facts = (stamps.by, stamps.every, stamps.count);
        assert_eq!(facts, ("device", every, count));
        let lateness = stamps.lateness_us.p50;
        assert!((lateness - lateness_us).abs() < 0.1, "{stamps:?}");
        let (early, earliest) = if after < 0 { (count, 0.3) } else { (0, 0.0) };
        assert_eq!((stamps.early, stamps.earliest_us), (early, earliest));
        assert!(after > 0 || stamps.lateness_us.max == 0.0, "{stamps:?}");
    }
    // The frames are late and leave in one step, but their stamps precede their releases.
    let mut bench = Bench::new(Device {
        stamped_after: Some(-300),
        ..Device::default()
    });
    bench.egress.watch_sends(1);
    bench.fill(1..=40);
    bench.step_at(100);
    let stamps = bench.finish().send_stamps.expect("stamps");
    assert_eq!((stamps.count, stamps.early), (40, 40));
    assert_eq!((stamps.lateness_us.max, stamps.earliest_us), (0.0, 0.3));
}

#[test]
fn copies_that_wait_are_in_flight() {
    let spec = "rate=2mbit queue=fq-codel delay=3ms duplicate=nth:every=3";
    let mut bench = Bench::of(Device::default(), true, Some(spec));
    bench.shared.seen_until.asleep();
    let mut most = 0;
    for micros in 0..400_u64 {
        if micros.is_multiple_of(7) && micros < 300 {
            bench.fill([100 * micros]);
            bench.shared.ingress.traffic.packets_in.add(1);
            bench.shared.ingress.crossed.add(1);
        }
        bench.step_at(100 * micros);
        let found = bench.report();
        let came = found.traffic.packets_in + found.effects.duplicated;
        let gone = found.traffic.packets_out + found.drops.total();
        assert_eq!(came, gone + found.in_flight, "{found:?}");
        most = most.max(found.in_flight);
    }
    let found = bench.report();
    assert_eq!((found.in_flight, found.effects.duplicated), (0, 14));
    assert!(most > 2, "{most}");
}

/// Recorded frames, with their wire lengths.
type KeptFrames = Vec<(u32, Vec<u8>)>;

struct Keeper(Arc<Mutex<KeptFrames>>);

impl Recorder for Keeper {
    fn start(&mut self, _: Epoch) {}

    fn snap_len(&self) -> u32 {
        60
    }

    fn record(&mut self, _: LinkId, events: &[Event], all: &mut [u8]) -> Result<(), String> {
        for event in events {
            if let Event::Left {
                wire_len, bytes, ..
            } = event
            {
                locked(&self.0).push((*wire_len, all[bytes.clone()].to_vec()));
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), String> {
        Ok(())
    }
}

#[test]
fn a_super_packet_leaves_whole_and_is_recorded_as_wire_frames() {
    let kept = Arc::<Mutex<_>>::default();
    let keeper: Box<dyn Recorder> = Box::new(Keeper(Arc::clone(&kept)));
    let recording = RecordingParts::by(Some(keeper));
    let record_handle = recording.departures(LinkId(0));
    let mut bench = Bench::with(Device::default(), true, None, record_handle);
    let writer = recording.start(Epoch::ZERO).expect("a thread");
    let (frame, offload) = super_packet(3);
    let note = Note {
        release: micros(1),
        tag: 0,
        offload,
        part: None,
        wire_len: frame.len() as u32,
    };
    bench.line.push(&frame, note).expect("room");
    bench.line.publish();
    bench.step_at(1);
    assert_eq!(bench.egress.port().pushed, [micros(1)]);
    assert_eq!(bench.finish().traffic.packets_out, 3);
    drop(bench);
    writer.expect("a recording").end().expect("no failure");
    let kept = locked(&kept);
    assert_eq!(kept.len(), 3);
    for (number, (wire_len, bytes)) in kept.iter().enumerate() {
        assert_eq!((*wire_len as usize, bytes.len()), (HEADERS + PAYLOAD, 60));
        assert_eq!(bytes[HEADERS..], [number as u8; 60 - HEADERS]);
    }
}
