//! Tests of waiting.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use super::*;

fn new_waiter(mode: WaitMode) -> Waiter {
    Waiter::new(mode, false, Arc::default())
}

/// Returns a time that no test reaches.
fn far() -> Nanos {
    monotonic_now().saturating_add(Nanos::from_secs(20))
}

fn bell() -> Event {
    Event::new().expect("an event descriptor")
}

#[test]
fn the_margin_follows_the_wake_up_latency_within_its_bounds() {
    let mut waiter = new_waiter(WaitMode::Adaptive);
    let learn = |waiter: &mut Waiter, latency| {
        (0..CLASSES).for_each(|class| waiter.margins.learn(class, latency));
    };
    for _ in 0..100 {
        learn(&mut waiter, Nanos::from_micros(150));
    }
    let learnt = waiter.margin_max();
    assert!(learnt > Nanos::from_micros(140), "{learnt}");
    // One machine pause must not raise the spinning time for long.
    learn(&mut waiter, Nanos::from_secs(1));
    let raised = learnt.saturating_add(MARGIN_UP).min(MARGIN_MAX);
    assert_eq!(waiter.margin_max(), raised);
    for _ in 0..20_000 {
        learn(&mut waiter, Nanos::ZERO);
    }
    assert_eq!(waiter.margin_max(), MARGIN_MIN);
}

#[test]
fn block_sleeps_to_the_release_itself_and_spin_never_sleeps() {
    let next = monotonic_now().saturating_add(Nanos::from_secs(1));
    assert!(new_waiter(WaitMode::Spin).plan(None).is_none());
    assert!(new_waiter(WaitMode::Spin).plan(Some(next)).is_none());
    let mut block = new_waiter(WaitMode::Block);
    // The release is further away than the maximum sleep.
    assert!(block.plan(Some(next)).is_some_and(|until| until < next));
    let near = monotonic_now().saturating_add(Nanos::from_millis(100));
    assert_eq!(block.plan(Some(near)), Some(near));
}

#[test]
fn adaptive_spins_when_the_release_is_near_and_sleeps_to_just_before_when_far() {
    let mut waiter = new_waiter(WaitMode::Adaptive);
    waiter.contention = CoreContention::fixed(false);
    let near = monotonic_now().saturating_add(Nanos::from_micros(1));
    assert!(waiter.plan(Some(near)).is_none());
    let far = monotonic_now().saturating_add(Nanos::from_millis(100));
    let early = far.saturating_sub(LONG_ENDS_BEFORE);
    assert_eq!(waiter.plan(Some(far)), Some(early), "and sleeps again");
    let margin = waiter.margin_max();
    let rest = waiter.wake_at(early, far);
    assert_eq!(rest, far.saturating_sub(margin));
    waiter.active();
    assert!(waiter.plan(Some(far)).is_none(), "lingers after traffic");
}

#[test]
fn adaptive_spins_for_a_share_of_the_time_only_where_others_want_the_core() {
    let mut waiter = new_waiter(WaitMode::Adaptive);
    waiter.contention = CoreContention::fixed(true);
    let start = monotonic_now();
    let (mut spun, mut slept) = (0u64, 0u64);
    while monotonic_now().saturating_sub(start) < WINDOW.saturating_mul(3) {
        waiter.active();
        let near = monotonic_now().saturating_add(Nanos::from_micros(20));
        match waiter.plan(Some(near)) {
            None => {
                std::thread::sleep(Duration::from_micros(500));
                waiter.plan(Some(near));
                spun += 1;
            }
            Some(until) => {
                assert_eq!(until, near, "sleeps to the release itself");
                slept += 1;
            }
        }
    }
    let some = spun >= 2 && slept > spun;
    assert!(some, "spun {spun} times, slept {slept} times");
}

#[test]
fn thick_frames_are_let_gather_only_where_others_want_the_core() {
    let source = bell();
    source.signal();
    for contended in [true, false] {
        let mut waiter = new_waiter(WaitMode::Adaptive);
        waiter.contention = CoreContention::fixed(contended);
        waiter.plan(None);
        let bell = bell();
        for _ in 0..=WAKES_MANY {
            waiter.sleep(far(), &[source.as_fd()], &bell);
        }
        assert_eq!(waiter.moderates(), contended);
        let start = monotonic_now();
        waiter.sleep(far(), &[source.as_fd()], &bell);
        let slept = monotonic_now().saturating_sub(start);
        assert!(slept < Nanos::from_secs(10));
        assert!(!contended || slept >= MODERATION, "{slept}");
    }
}

#[test]
fn a_readable_source_or_the_bell_ends_a_sleep() {
    let mut waiter = new_waiter(WaitMode::Block);
    let (source, bell) = (bell(), bell());
    source.signal();
    let start = Instant::now();
    waiter.sleep(far(), &[source.as_fd()], &bell);
    bell.signal();
    waiter.sleep(far(), &[], &bell);
    assert!(start.elapsed() < Duration::from_secs(10));
    let soon = monotonic_now().saturating_add(Nanos::from_millis(30));
    let start = Instant::now();
    waiter.sleep(soon, &[], &bell);
    let slept = start.elapsed();
    assert!(slept >= Duration::from_millis(25), "the bell rang on");
}

#[test]
fn work_between_two_turns_of_spinning_is_no_pause() {
    let mut waiter = new_waiter(WaitMode::Spin);
    waiter.witness.begin();
    waiter.plan(None);
    std::thread::sleep(Duration::from_millis(50));
    waiter.plan(None);
    assert!(waiter.witness.log().max < Nanos::from_millis(50));
}

#[test]
fn a_time_that_had_passed_before_the_wait_is_no_pause() {
    for contended in [false, true] {
        let mut waiter = new_waiter(WaitMode::Adaptive);
        waiter.contention = CoreContention::fixed(contended);
        waiter.witness.begin();
        let margins = waiter.margins.0;
        let bell = bell();
        let sleep_past = |waiter: &mut Waiter| {
            let past = monotonic_now().saturating_sub(Nanos::from_secs(20));
            waiter.sleep(past, &[], &bell);
        };
        sleep_past(&mut waiter);
        // The same applies with batching.
        waiter.plan(None);
        waiter.window.wakes = WAKES_MANY;
        assert_eq!(waiter.moderates(), contended);
        sleep_past(&mut waiter);
        // The machine may have paused.
        let longest = waiter.witness.log().max;
        assert!(longest < Nanos::from_secs(10), "{longest}");
        assert_eq!(waiter.margins.0, margins, "it did not wake up");
    }
}

#[test]
fn short_and_long_sleeps_have_margins_of_their_own() {
    let mut waiter = new_waiter(WaitMode::Adaptive);
    let now = Nanos::from_secs(1);
    let (near, far) = (Nanos::from_micros(100), Nanos::from_millis(1));
    let [class_near, class_far] = [near, far].map(|length| class_of(length).expect("not long"));
    assert_ne!(class_near, class_far);
    assert_eq!(class_of(LONG), None);
    for _ in 0..1_000 {
        waiter.margins.learn(class_near, Nanos::from_micros(5));
        waiter.margins.learn(class_far, Nanos::from_micros(90));
    }
    let margin = |waiter: &mut Waiter, length: Nanos| {
        let next = now.saturating_add(length);
        next.saturating_sub(waiter.wake_at(now, next))
    };
    let (short, long) = (margin(&mut waiter, near), margin(&mut waiter, far));
    assert!(short < Nanos::from_micros(10), "{short}");
    assert!(long > Nanos::from_micros(80), "{long}");
}

#[test]
fn frames_gather_only_if_they_are_frequent_and_the_link_has_a_delay() {
    let waiter = |slack| new_waiter(WaitMode::Adaptive).gather_within(slack);
    let mut slow = waiter(Nanos::from_millis(20));
    slow.arrived(9);
    assert_eq!(slow.gathering(), None);
    slow.arrived(1);
    assert_eq!(slow.gathering(), Some(GATHER_MAX));
    // Batching takes a quarter of a short delay, and is off for shorter ones.
    let mut short = waiter(Nanos::from_micros(400));
    short.arrived(1_000);
    assert_eq!(short.gathering(), Some(Nanos::from_micros(100)));
    for slack in [Nanos::ZERO, Nanos::from_micros(399)] {
        let mut none = waiter(slack);
        none.arrived(1_000_000);
        assert_eq!(none.gathering(), None);
    }
}

#[test]
fn lingering_ends_when_it_brings_nothing_and_is_tried_again() {
    let mut linger = Linger::default();
    for _ in 0..LINGERS_UNPAID {
        assert!(linger.pays());
        linger.now = true;
        linger.traffic(false);
        linger.sleeps();
    }
    assert!(!linger.pays());
    (0..LINGER_RETRY).for_each(|_| linger.traffic(true));
    assert!(linger.pays());
    // A frame arrives during a linger.
    linger.now = true;
    linger.traffic(true);
    linger.sleeps();
    assert!(linger.pays() && linger.unpaid == 0);
}

#[test]
fn a_flood_takes_the_raised_priority_until_it_has_ended_for_a_while() {
    let mut priority = FloodPriority::default();
    let at = Nanos::from_millis;
    assert_eq!(priority.note(at(10), false), None);
    assert_eq!(priority.note(at(20), true), Some(true));
    assert_eq!(priority.note(at(30), false), None);
    assert_eq!(priority.note(at(40), true), None);
    assert_eq!(priority.note(at(89), false), None);
    assert_eq!(priority.note(at(90), false), Some(false));
    assert_eq!(priority.note(at(200), false), None);
}

#[test]
fn only_many_arrivals_on_busy_cores_are_a_flood() {
    let is_normal = |contended, arrivals| {
        let mut waiter = new_waiter(WaitMode::Adaptive);
        waiter.contention = CoreContention::fixed(contended);
        let start = monotonic_now();
        waiter.look_around(start);
        waiter.arrived(arrivals);
        // The priority changes at the end of a window.
        waiter.look_around(start.saturating_add(WINDOW));
        waiter.priority.is_normal
    };
    let flood = FLOOD as usize;
    // The first check only detects busy cores.
    assert!(is_normal(true, flood));
    assert!(!is_normal(true, flood - 1));
    assert!(!is_normal(false, 10 * flood));
}
