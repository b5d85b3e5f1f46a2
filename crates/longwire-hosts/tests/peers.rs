//! Two hosts and an underlay in virtual time: sessions, frames, clocks.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use longwire_engine::Nanos;
use longwire_hosts::{Identity, Key, Peer, PeerEvent, PeerReport, Rejection, Stamp};
use longwire_runtime::deciding::RemoteFrame;
use longwire_testbed::support::Draws;

const MTU: usize = 1_400;

/// A host: its peer, and its clocks' offsets from the test's time.
struct Host {
    peer: Peer,
    monotonic_ahead: u64,
    wall_ahead: i64,
    next: u64,
    events: Vec<PeerEvent>,
    /// Received frames: number, release on the test's clock, and whether late.
    frames: Vec<(u32, u64, bool)>,
    rejected: Vec<Rejection>,
}

fn identity(index: u16, instance: u64) -> Identity {
    Identity {
        index,
        digest: [9; 32],
        instance,
        mtu: MTU,
    }
}

fn peer(identity: Identity, key: u8) -> Peer {
    let other = 1 - identity.index;
    Peer::new(identity, Key::new([key; 32]), other, "other")
}

impl Host {
    fn new(index: u16, key: u8, instance: u64, monotonic_ahead: u64) -> Host {
        Host {
            peer: peer(identity(index, instance), key),
            monotonic_ahead,
            wall_ahead: 0,
            next: 0,
            events: Vec::new(),
            frames: Vec::new(),
            rejected: Vec::new(),
        }
    }

    fn stamp(&self, at: u64) -> Stamp {
        let wall = 1_700_000_000_000_000_000_u64 + at;
        Stamp {
            monotonic: Nanos::from_nanos(at + self.monotonic_ahead),
            wall: Nanos::from_nanos(wall.wrapping_add_signed(self.wall_ahead)),
        }
    }
}

/// Two hosts and the datagrams in flight between them.
struct World {
    now: u64,
    hosts: [Host; 2],
    /// Datagrams in flight, with their receivers, by arrival.
    flying: BTreeMap<(u64, u64), (usize, Vec<u8>)>,
    sent: u64,
    draws: Draws,
    delay: u64,
    jitter: u64,
    /// Datagrams are lost with probability 1/loses; 0 for no loss.
    loses: u64,
    /// Whether everything but handshakes is lost.
    loses_data: bool,
    /// Whether datagrams above 150 bytes are lost.
    loses_long: bool,
    /// Whether every datagram is duplicated.
    repeats: bool,
    /// Index of a host that neither sends nor receives.
    dead: Option<usize>,
    longest: usize,
    /// Initial messages sent, with their receivers.
    initiations: Vec<(usize, Vec<u8>)>,
    /// Number of frames queued before they are sent.
    together: u32,
}

const MILLI: u64 = 1_000_000;

impl World {
    fn new(delay: u64) -> World {
        World {
            now: 1_000 * MILLI,
            hosts: [
                Host::new(0, 1, 10, 0),
                Host::new(1, 1, 20, 7_777_777_777_777),
            ],
            flying: BTreeMap::new(),
            sent: 0,
            draws: Draws(1),
            delay,
            jitter: 0,
            loses: 0,
            loses_data: false,
            loses_long: false,
            repeats: false,
            dead: None,
            longest: 0,
            initiations: Vec::new(),
            together: 5,
        }
    }

    fn connected(delay: u64) -> World {
        let mut world = World::new(delay);
        world.connect();
        world
    }

    fn fly(&mut self, from: usize, datagrams: Vec<Vec<u8>>) {
        for datagram in datagrams {
            self.longest = self.longest.max(datagram.len());
            if datagram[0] == 1 {
                self.initiations.push((1 - from, datagram.clone()));
            }
            let times = if self.repeats { 2 } else { 1 };
            for _ in 0..times {
                let is_lost =
                    self.loses_data && datagram[0] == 3 || self.loses_long && datagram.len() > 150;
                if is_lost || self.loses > 0 && self.draws.below(self.loses) == 0 {
                    continue;
                }
                let at = self.now + self.delay + self.draws.below(self.jitter + 1);
                self.sent += 1;
                self.flying
                    .insert((at, self.sent), (1 - from, datagram.clone()));
            }
        }
    }

    fn run_until(&mut self, end: u64) {
        loop {
            let flying = self.flying.first_key_value().map(|((at, _), _)| *at);
            let dead = self.dead;
            let due = self.hosts.iter().enumerate();
            let due = due.filter(|(index, _)| Some(*index) != dead);
            let due = due.map(|(_, host)| host.next);
            let next = flying.into_iter().chain(due).min().unwrap_or(end);
            if next > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(next);
            for index in 0..2 {
                if self.hosts[index].next <= self.now && self.dead != Some(index) {
                    self.poll(index);
                }
            }
            while let Some(entry) = self.flying.first_entry()
                && entry.key().0 <= self.now
            {
                let (to, datagram) = entry.remove();
                if self.dead != Some(to) {
                    self.receive(to, &datagram);
                }
            }
        }
    }

    /// Calls a host's peer, sends its datagrams and records its events.
    fn with_host<T>(
        &mut self,
        index: usize,
        call: impl FnOnce(&mut Host, Stamp, &mut dyn FnMut(&[u8])) -> T,
    ) -> T {
        let mut sent = Vec::new();
        let host = &mut self.hosts[index];
        let result = call(host, host.stamp(self.now), &mut |it| sent.push(it.to_vec()));
        host.events
            .extend(std::iter::from_fn(|| host.peer.next_event()));
        self.fly(index, sent);
        result
    }

    fn poll(&mut self, index: usize) {
        let after = self.now + 1;
        self.with_host(index, |host, now, send| {
            let next = host.peer.poll(now, None, send);
            host.next = (next.as_nanos() - host.monotonic_ahead).max(after);
        });
    }

    fn receive(&mut self, to: usize, datagram: &[u8]) {
        let at = self.now;
        self.with_host(to, |host, now, send| {
            let (frames, ahead) = (&mut host.frames, host.monotonic_ahead);
            let taken = host.peer.receive(now, datagram, send, &mut |frame| {
                let number = frame.line;
                assert_eq!(frame.bytes, bytes_of(number), "frame {number}");
                assert_eq!(u32::from(frame.port.0), number % 3);
                frames.push((number, frame.release.as_nanos() - ahead, frame.is_late));
            });
            host.rejected.extend(taken.err());
            host.next = at;
        });
    }

    /// Sends a frame whose release is `ahead` from now. Returns whether it was accepted.
    fn push(&mut self, from: usize, number: u32, ahead: u64) -> bool {
        let (at, is_last) = (self.now, (number + 1).is_multiple_of(self.together));
        self.with_host(from, |host, now, send| {
            let now = now.monotonic;
            let release = now.saturating_add(Nanos::from_nanos(ahead));
            let to = ((number % 3) as u16, number, release);
            let pushed = host.peer.push(now, to, &bytes_of(number), send);
            if is_last {
                host.peer.flush(now, send);
            }
            // Poll again now, as the thread does after each iteration.
            host.next = at;
            pushed
        })
    }

    /// Sends frames at regular intervals. Returns the number accepted.
    fn push_each(&mut self, from: usize, numbers: Range<u32>, pause: u64, ahead: u64) -> u64 {
        let mut pushed = 0;
        for number in numbers {
            pushed += u64::from(self.push(from, number, ahead));
            self.run_for(pause);
        }
        pushed
    }

    fn run_for(&mut self, time: u64) {
        self.run_until(self.now + time);
    }

    /// Returns the number of frames that a host received, and checks that none arrived twice.
    fn received_once(&self, index: usize) -> usize {
        let frames = self.hosts[index].frames.iter();
        let numbers: BTreeSet<u32> = frames.map(|frame| frame.0).collect();
        let count = self.hosts[index].frames.len();
        assert_eq!(numbers.len(), count, "a frame arrived twice");
        count
    }

    fn report(&self, index: usize) -> PeerReport {
        let host = &self.hosts[index];
        host.peer.report(host.stamp(self.now))
    }

    fn connect(&mut self) {
        self.run_for(1_000 * MILLI);
        for host in &self.hosts {
            assert_eq!(host.events, [PeerEvent::Connected { restarted: false }]);
        }
    }
}

/// Returns a frame of 0 to 9,000 bytes; long ones are fragmented.
fn bytes_of(number: u32) -> Vec<u8> {
    let len = match number % 7 {
        0 => 9_000,
        1 => 0,
        2 => 1_514,
        _ => 60 + number as usize % 600,
    };
    (0..len).map(|at| (at as u32 ^ number) as u8).collect()
}

#[test]
fn frames_arrive_complete_with_their_releases() {
    let mut world = World::connected(MILLI / 2);
    let start = world.now;
    assert_eq!(world.push_each(0, 0..1_000, 100_000, 5 * MILLI), 1_000);
    world.run_for(100 * MILLI);
    let report = world.report(1);
    assert_eq!((report.frames_received, report.frames_lost), (1_000, 0));
    assert_eq!((report.frames_late, report.replayed), (0, 0));
    assert!(world.longest <= MTU, "{}", world.longest);
    for (number, release, is_late) in &world.hosts[1].frames {
        let expected = start + u64::from(*number) * 100_000 + 5 * MILLI;
        assert_eq!((*release, *is_late), (expected, false), "frame {number}");
    }
    // Five frames share a batch, and the first one waits for the last.
    let spare = report.spare_min_ns.expect("frames arrived");
    assert!((4_000_000..=4_600_000).contains(&spare), "{spare}");
}

#[test]
fn long_frames_share_datagrams() {
    let mut world = World::connected(MILLI / 2);
    // Ten frames of 1,514 bytes; the push of the last one flushes them.
    world.together = 66;
    let numbers = (2..66).step_by(7);
    let before = world.report(0).datagrams_sent;
    for number in numbers.clone() {
        assert!(world.push(0, number, 5 * MILLI));
    }
    assert_eq!(world.report(0).datagrams_sent - before, 12);
    world.run_for(MILLI);
    let came: Vec<u32> = world.hosts[1].frames.iter().map(|it| it.0).collect();
    assert_eq!(came, numbers.collect::<Vec<u32>>());
    assert!(world.longest <= MTU, "{}", world.longest);
}

#[test]
fn frames_of_all_lengths_arrive_complete_for_every_mtu() {
    for mtu in [548, 1_400, 1_472, 65_000] {
        let mut world = World::new(MILLI / 2);
        for (host, index) in world.hosts.iter_mut().zip(0..) {
            let identity = identity(index, 1);
            host.peer = peer(Identity { mtu, ..identity }, 1);
        }
        world.connect();
        let stamp = [0, 1].map(|index| world.hosts[index].stamp(world.now));
        let [here, there] = &mut world.hosts;
        // Lengths around a datagram's capacity, and around the room left by a previous frame.
        let edges = [mtu - 54, mtu - 108, mtu - 130, 2 * mtu, 3 * mtu];
        let around = |edge: &usize| edge.saturating_sub(70)..edge + 70;
        let lengths = edges.iter().flat_map(around);
        let lengths = lengths.chain([0, 65_535, 1, 65_535, 9_000]);
        let lengths: Vec<usize> = lengths.filter(|len| *len <= 65_535).collect();
        let (mut sent, mut came) = (Vec::new(), Vec::new());
        for together in [1, 2, 5] {
            for (number, len) in lengths.iter().enumerate() {
                let bytes = vec![number as u8; *len];
                let to = (1, number as u32, stamp[0].monotonic);
                let mut send = |it: &[u8]| sent.push(it.to_vec());
                here.peer.push(stamp[0].monotonic, to, &bytes, &mut send);
                if number % together == 0 || number + 1 == lengths.len() {
                    here.peer.flush(stamp[0].monotonic, &mut send);
                }
            }
            for datagram in sent.drain(..) {
                assert!(datagram.len() <= mtu, "{} of {mtu}", datagram.len());
                let mut take = |frame: RemoteFrame<'_>| {
                    let number = frame.line as usize;
                    assert!(frame.bytes.iter().all(|byte| *byte == number as u8));
                    came.push((number, frame.bytes.len()));
                };
                let taken = there
                    .peer
                    .receive(stamp[1], &datagram, &mut |_| {}, &mut take);
                taken.expect("a datagram of the session");
            }
            let expected: Vec<(usize, usize)> = lengths.iter().copied().enumerate().collect();
            assert_eq!(std::mem::take(&mut came), expected, "{mtu}, {together}");
        }
    }
}

#[test]
fn late_lost_and_repeated_frames_are_counted() {
    let mut world = World::connected(2 * MILLI);
    (world.jitter, world.loses, world.repeats) = (MILLI, 10, true);
    world.push_each(0, 0..2_000, 100_000, 2 * MILLI + MILLI / 2);
    world.loses = 0;
    world.run_for(100 * MILLI);
    let report = world.report(1);
    assert_eq!(report.frames_received + report.frames_lost, 2_000);
    assert_eq!(world.received_once(1) as u64, report.frames_received);
    assert!(
        report.frames_lost > 0 && report.frames_lost < 200,
        "{report:?}"
    );
    assert!(report.frames_late > 500, "{report:?}");
    assert!(report.replayed > 500, "{report:?}");
}

#[test]
fn nothing_is_lost_while_retransmission_is_possible() {
    // 10 % of datagrams are lost, including requests and resent batches.
    for (jitter, pause) in [(0, 100_000), (MILLI, 100_000), (MILLI, 20 * MILLI)] {
        let mut world = World::connected(MILLI / 2);
        (world.jitter, world.loses) = (jitter, 10);
        world.together = if pause > MILLI { 1 } else { 5 };
        world.push_each(0, 0..2_000, pause, 40 * MILLI);
        world.run_for(100 * MILLI);
        let (sender, receiver) = (world.report(0), world.report(1));
        let frames = &world.hosts[1].frames;
        let late = frames.iter().filter(|it| it.2).count();
        assert!(
            receiver.frames_lost <= 1 && late <= 1,
            "{jitter}: {receiver:?}"
        );
        assert!(receiver.frames_recovered > 50, "{jitter}: {receiver:?}");
        assert!(sender.datagrams_resent > 50, "{jitter}: {sender:?}");
        world.received_once(1);
    }
}

#[test]
fn releases_keep_their_order_while_the_estimate_moves() {
    let mut world = World::connected(MILLI / 2);
    world.jitter = 3 * MILLI;
    world.push_each(0, 0..3_000, MILLI, 10 * MILLI);
    world.run_for(100 * MILLI);
    for port in 0..3 {
        let frames = world.hosts[1].frames.iter().filter(|it| it.0 % 3 == port);
        let mut frames: Vec<(u32, u64)> = frames.map(|it| (it.0, it.1)).collect();
        frames.sort_unstable();
        assert!(frames.len() > 900);
        assert!(frames.windows(2).all(|two| two[0].1 <= two[1].1));
    }
}

#[test]
fn a_clock_that_is_set_is_reported_and_moves_no_frame() {
    let mut world = World::new(MILLI / 2);
    world.hosts[1].wall_ahead = -100 * MILLI as i64;
    world.connect();
    let offset = world.report(0).clock_offset_ns.expect("an offset");
    assert!((offset + 100 * MILLI as i64).abs() < 1_000, "{offset}");
    world.hosts[1].wall_ahead = 50 * MILLI as i64;
    world.run_for(500 * MILLI);
    let expected = PeerEvent::ClockSet(150 * MILLI as i64);
    assert_eq!(world.hosts[0].events[1..], [expected]);
    let at = world.now;
    world.push(1, 4, 5 * MILLI);
    world.run_until(at + 10 * MILLI);
    assert_eq!(world.hosts[0].frames, [(4, at + 5 * MILLI, false)]);
}

#[test]
fn a_host_that_was_started_again_gets_new_keys() {
    for dead in [1, 0] {
        let mut world = World::connected(MILLI / 2);
        let before = world.report(1 - dead).sessions;
        let old: Vec<_> = world.flying.values().cloned().collect();
        world.hosts[dead] = Host::new(dead as u16, 1, 99 + dead as u64, 55 * MILLI);
        world.flying.clear();
        let alive = &mut world.hosts[1 - dead];
        alive.events.clear();
        assert!(alive.peer.is_connected());
        world.dead = Some(dead);
        world.run_for(3_000 * MILLI);
        world.dead = None;
        assert_eq!(world.hosts[1 - dead].events, [PeerEvent::Silent]);
        assert!(!world.push(1 - dead, 4, 0));
        world.run_for(2_000 * MILLI);
        let alive = &world.hosts[1 - dead];
        let back = PeerEvent::Connected { restarted: true };
        assert_eq!(alive.events, [PeerEvent::Silent, back], "host {dead} died");
        let report = world.report(1 - dead);
        assert_eq!(report.sessions, before + 1);
        assert_eq!((report.frames_unsent, report.outages > 0), (1, true));
        assert!(world.push(1 - dead, 9, 5 * MILLI));
        world.run_for(100 * MILLI);
        assert_eq!(world.hosts[dead].frames.len(), 1);
        // Datagrams from the old session are foreign.
        for (to, datagram) in old {
            let rejected = world.hosts[to].rejected.len();
            world.receive(to, &datagram);
            assert_eq!(world.hosts[to].rejected.len(), rejected + 1);
        }
    }
}

#[test]
fn frames_of_an_outage_are_lost_and_counted_once() {
    for from in [0, 1] {
        let mut world = World::connected(MILLI / 2);
        let mut pushed = world.push_each(from, 0..500, MILLI, 5 * MILLI);
        // Both hosts are up, but the underlay drops everything.
        world.loses = 1;
        pushed += world.push_each(from, 500..2_000, MILLI, 5 * MILLI);
        (world.loses, world.loses_data) = (0, true);
        world.run_for(300 * MILLI);
        world.loses_data = false;
        world.run_for(2_000 * MILLI);
        let (sender, receiver) = (world.report(from), world.report(1 - from));
        assert_eq!((receiver.sessions, receiver.outages), (2, 1));
        assert_eq!(sender.frames_sent, pushed);
        assert!(receiver.frames_lost > 900, "host {from}: {receiver:?}");
        assert_eq!(receiver.frames_received + receiver.frames_lost, pushed);
        world.push(from, 4, 5 * MILLI);
        world.push(from, 9, 5 * MILLI);
        world.run_for(100 * MILLI);
        let after = world.report(1 - from);
        assert_eq!(after.frames_lost, receiver.frames_lost);
        assert_eq!(after.frames_received, receiver.frames_received + 2);
    }
}

#[test]
fn the_last_frames_are_missed_although_no_other_follows() {
    let mut world = World::connected(MILLI / 2);
    world.loses_long = true;
    for number in 0..30 {
        // The datagrams of most of these frames exceed 150 bytes; those of pings do not.
        world.push(0, 3 + 7 * number, 5 * MILLI);
        world.run_for(MILLI);
    }
    world.run_for(500 * MILLI);
    let (sender, receiver) = (world.report(0), world.report(1));
    assert_eq!(sender.frames_sent, 30);
    assert_eq!(receiver.frames_received + receiver.frames_lost, 30);
    assert!(receiver.frames_lost > 20, "{receiver:?}");
    assert_eq!(receiver.outages, 0);
}

#[test]
fn frames_to_a_host_that_died_are_counted() {
    let mut world = World::connected(MILLI / 2);
    world.dead = Some(1);
    let pushed = world.push_each(0, 0..1_500, MILLI, 5 * MILLI);
    let report = world.report(0);
    assert!((900..1_100).contains(&pushed), "{pushed}");
    assert_eq!(report.frames_unsent, 1_500 - pushed);
    assert!(pushed - report.frames_unconfirmed <= 2, "{report:?}");
    // A restarted host cannot count these frames, so they stay unconfirmed.
    world.dead = None;
    world.hosts[1] = Host::new(1, 1, 77, 12 * MILLI);
    world.run_for(2_000 * MILLI);
    assert!(world.hosts[0].peer.is_connected());
    let after = world.report(0);
    assert_eq!(after.frames_unconfirmed, report.frames_unconfirmed);
}

#[test]
fn frames_of_a_short_outage_are_resent_to_the_new_session() {
    let mut world = World::connected(MILLI / 2);
    world.loses = 1;
    world.run_for(900 * MILLI);
    for number in 0..10 {
        assert!(world.push(0, number, 3_000 * MILLI));
    }
    (world.loses, world.loses_data) = (0, true);
    world.run_for(400 * MILLI);
    world.loses_data = false;
    world.run_for(1_000 * MILLI);
    // The next batch reveals the missing batches.
    for number in 10..15 {
        assert!(world.push(0, number, 1_600 * MILLI));
    }
    world.run_for(100 * MILLI);
    let report = world.report(1);
    assert_eq!(report.sessions, 2);
    assert_eq!((report.frames_received, report.frames_lost), (15, 0));
    assert!(world.hosts[1].frames.iter().all(|frame| !frame.2));
}

#[test]
fn hosts_with_a_long_round_trip_are_connected() {
    for (delay, jitter) in [(400 * MILLI, 0), (300 * MILLI, 100 * MILLI)] {
        let mut world = World::new(delay);
        world.jitter = jitter;
        world.run_for(6_000 * MILLI);
        for host in &world.hosts {
            assert_eq!(host.events, [PeerEvent::Connected { restarted: false }]);
            assert!(!host.rejected.contains(&Rejection::Foreign));
        }
        assert_eq!(world.report(0).sessions, 1);
    }
}

#[test]
fn replayed_handshakes_are_counted_and_not_answered() {
    let mut world = World::connected(MILLI / 2);
    let recorded = world.initiations.clone();
    assert!(!recorded.is_empty());
    let replay = |world: &mut World, recorded: &[(usize, Vec<u8>)]| {
        let before = (world.sent, world.report(1).replayed);
        for (to, datagram) in recorded {
            world.receive(*to, datagram);
        }
        let after = (world.sent, world.report(1).replayed);
        (after.0 - before.0, after.1 - before.1)
    };
    // Replay messages from the running host.
    for _ in 0..3 {
        assert_eq!(replay(&mut world, &recorded), (0, recorded.len() as u64));
    }
    // Replay messages from a restarted host, before and after it returns.
    world.hosts[0] = Host::new(0, 1, 99, 55 * MILLI);
    world.initiations.clear();
    for _ in 0..1_000 {
        world.run_for(2 * MILLI);
        assert_eq!(replay(&mut world, &recorded), (0, recorded.len() as u64));
    }
    assert_eq!(world.report(1).sessions, 2);
    assert!(world.hosts.iter().all(|host| host.peer.is_connected()));
    // The restarted receiver remembers nothing and answers each replayed message once.
    // Nevertheless, the sender's next handshake establishes the session.
    let recorded = [recorded, world.initiations.clone()].concat();
    world.hosts[1] = Host::new(1, 1, 77, 12 * MILLI);
    let (sent, replayed) = replay(&mut world, &recorded);
    assert_eq!((sent, replayed), (recorded.len() as u64, 0));
    for _ in 0..1_500 {
        world.run_for(2 * MILLI);
        assert_eq!(replay(&mut world, &recorded), (0, recorded.len() as u64));
    }
    assert!(world.hosts.iter().all(|host| host.peer.is_connected()));
    assert_eq!(world.report(1).sessions, 1);
    world.push(0, 4, 5 * MILLI);
    world.push(0, 9, 5 * MILLI);
    world.run_for(10 * MILLI);
    assert_eq!(world.hosts[1].frames.len(), 2);
}

#[test]
fn strangers_are_foreign_and_disturb_nothing() {
    let mut world = World::connected(MILLI / 2);
    let mut strangers = World::new(MILLI / 2);
    strangers.hosts = [Host::new(0, 2, 1, 0), Host::new(1, 2, 2, 0)];
    strangers.connect();
    let mut theirs = Vec::new();
    let mut host = Host::new(0, 2, 5, 0);
    host.peer
        .poll(host.stamp(0), None, &mut |it| theirs.push(it.to_vec()));
    assert_eq!(theirs.len(), 1);
    theirs.extend(strangers.flying.values().map(|(_, it)| it.clone()));
    theirs.extend(
        [(3, 0), (3, 1), (3, 11), (3, 40), (2, 60), (1, 60)].map(|(kind, len)| vec![kind; len]),
    );
    let count = theirs.len();
    for datagram in theirs {
        for to in 0..2 {
            world.receive(to, &datagram);
        }
    }
    for host in &world.hosts {
        assert_eq!(host.rejected.len(), count, "{:?}", host.rejected);
        assert!(host.peer.is_connected());
    }
    world.push(0, 4, 5 * MILLI);
    world.run_for(10 * MILLI);
    assert_eq!(world.hosts[1].frames.len(), 1);
}

#[test]
fn hosts_of_other_networks_are_not_connected() {
    let mut world = World::new(MILLI / 2);
    let identity = Identity {
        digest: [8; 32],
        ..identity(1, 1)
    };
    world.hosts[1].peer = peer(identity, 1);
    world.run_for(2_000 * MILLI);
    for host in &world.hosts {
        assert!(!host.peer.is_connected());
        assert!(host.events.contains(&PeerEvent::OtherNetwork));
    }
}
