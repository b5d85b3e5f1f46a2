//! Every discipline compared with its oracle, over thousands of random patterns and parameters:
//! identical drops and reasons, marks and departures.

use std::collections::VecDeque;

use longwire_engine::{DropReason, models};

use crate::queues::idle::texts;
use crate::queues::link::{Fate, run_engine, run_oracle};
use crate::queues::oracle::codel::{Codel, CodelParams, CodelQueue};
use crate::queues::oracle::dualpi2::{DualPi2, DualPi2Params, Scheduler};
use crate::queues::oracle::fq_codel::FqCodel;
use crate::queues::oracle::pie::{Pie, PieParams};
use crate::queues::oracle::red::{Red, RedParams};
use crate::queues::oracle::simple::{ByClass, Class, Drr, HeadDrop, Priority};
use crate::queues::oracle::{Limit, Oracle, queue_stream};
use crate::queues::traffic::{Draws, Pattern, pattern};

/// Number of patterns per discipline.
const PATTERNS: u64 = 2_000;

/// Events caused by one discipline's patterns, to check the coverage of the comparison.
#[derive(Debug, Default)]
struct Seen {
    frames: u64,
    sent: u64,
    marked: u64,
    full: u64,
    aqm: u64,
}

impl Seen {
    fn note(&mut self, fate: &Fate) {
        self.frames += 1;
        match fate {
            Fate::Sent { mark, .. } => {
                self.sent += 1;
                self.marked += u64::from(*mark);
            }
            Fate::Dropped(DropReason::QueueFull) => self.full += 1,
            Fate::Dropped(_) => self.aqm += 1,
        }
    }
}

/// Creates a discipline's specification text and its oracle from a pattern and a seed.
type Make = fn(&mut Draws, &Pattern, u64) -> (String, Box<dyn Oracle>);

fn compare(name: u64, make: Make) -> Seen {
    let mut seen = Seen::default();
    for case in 0..PATTERNS {
        let seed = name << 32 | case;
        let mut draws = Draws::new(seed);
        let frames = draws.scale(20, 1_500) as usize;
        let pattern = pattern(&mut draws, frames);
        let (text, mut oracle) = make(&mut draws, &pattern, seed);
        let expected = run_oracle(&pattern, oracle.as_mut());
        let found = run_engine(&pattern, &text, seed);
        assert_eq!(found.len(), expected.len());
        for (packet, (found, expected)) in pattern.packets.iter().zip(found.iter().zip(&expected)) {
            assert_eq!(
                found, expected,
                "case {case}: {text} at {} bit/s: {packet:?}",
                pattern.rate
            );
            seen.note(found);
        }
    }
    // Guards against patterns that exercise too little.
    assert!(seen.sent > seen.frames / 3, "{seen:?}");
    assert!(seen.full > seen.frames / 500, "{seen:?}");
    seen
}

/// Draws a limit that is occasionally reached, in packets, bytes or both.
fn draw_limit(draws: &mut Draws) -> Limit {
    Limit {
        packets: if draws.once_in(2) {
            draws.scale(1, 1_000)
        } else {
            draws.scale(30, 1_000)
        },
        bytes: draws.once_in(4).then(|| draws.scale(500, 1_000_000)),
    }
}

#[test]
fn head_drop() {
    let seen = compare(1, |draws, _, _| {
        let limit = draw_limit(draws);
        let queue = VecDeque::new();
        let text = format!("head-drop:{}", limit.text());
        (text, Box::new(HeadDrop { limit, queue }))
    });
    assert_eq!((seen.marked, seen.aqm), (0, 0));
}

fn draw_codel(draws: &mut Draws, pattern: &Pattern) -> CodelParams {
    let unit = pattern.unit();
    let interval = draws.scale(unit, 100 * unit);
    CodelParams {
        target: i128::from(draws.scale(1, interval)),
        interval: i128::from(interval),
        maxpacket: draws.choose(&[512, 1_514]),
        ecn: draws.once_in(2),
    }
}

fn codel_text(params: &CodelParams) -> String {
    let CodelParams {
        target,
        interval,
        maxpacket,
        ecn,
    } = params;
    format!("target={target}ns,interval={interval}ns,mtu={maxpacket}b,ecn={ecn}")
}

#[test]
fn codel() {
    let seen = compare(2, |draws, pattern, _| {
        let (limit, params) = (draw_limit(draws), draw_codel(draws, pattern));
        let text = format!("codel:{},{}", limit.text(), codel_text(&params));
        let codel = CodelQueue::new(params);
        (text, Box::new(Codel { limit, codel }))
    });
    assert!(seen.aqm > seen.frames / 50, "{seen:?}");
    assert!(seen.marked > seen.frames / 100, "{seen:?}");
}

#[test]
fn fq_codel() {
    let seen = compare(3, |draws, pattern, seed| {
        let (limit, params) = (draw_limit(draws), draw_codel(draws, pattern));
        let flows = draws.choose(&[1, 2, 7, 1024]);
        let quantum = draws.choose(&[64, 300, 1_514, 9_000]);
        let threshold = draws
            .once_in(3)
            .then(|| draws.scale(1, 50 * pattern.unit()));
        let mut text = format!("fq-codel:{},{}", limit.text(), codel_text(&params));
        text += &format!(",flows={flows},quantum={quantum}b");
        if let Some(threshold) = threshold {
            text += &format!(",ce-threshold={threshold}ns");
        }
        let (perturbation, _) = queue_stream(seed);
        let oracle = FqCodel::new(limit, params, flows, quantum, threshold, perturbation);
        (text, Box::new(oracle))
    });
    assert!(seen.aqm > seen.frames / 100, "{seen:?}");
    assert!(seen.marked > seen.frames / 100, "{seen:?}");
}

fn draw_pie(draws: &mut Draws, pattern: &Pattern) -> PieParams {
    let unit = pattern.unit();
    let qdelay_ref = draws.scale(unit, 50 * unit);
    // Shorter delays allow larger gains (RFC 8033, section 4.2).
    let scale = 15e6 / qdelay_ref as f64 * draws.real(0.5, 20.0);
    PieParams {
        qdelay_ref,
        t_update: draws.scale(unit, 50 * unit).max(10_000),
        alpha: (0.125 * scale).min(1e6),
        beta: (1.25 * scale).min(1e6),
        max_burst: draws.choose(&[0, 1, 10, 100]) * unit,
        mean_pktsize: draws.choose(&[0, 500, 1_000]),
        ecn: draws.once_in(2),
        mark_ecnth: draws.choose(&[0.1, 0.5, 1.0]),
    }
}

#[test]
fn pie() {
    let seen = compare(4, |draws, pattern, seed| {
        let (limit, params) = (draw_limit(draws), draw_pie(draws, pattern));
        let PieParams {
            qdelay_ref,
            t_update,
            alpha,
            beta,
            ..
        } = params;
        let mut text = format!("pie:{},target={qdelay_ref}ns", limit.text());
        text += &format!(",tupdate={t_update}ns,alpha={alpha},beta={beta}");
        text += &format!(",max-burst={}ns", params.max_burst);
        text += &format!(",mean-packet={}b,ecn={}", params.mean_pktsize, params.ecn);
        text += &format!(",ecn-threshold={}%", params.mark_ecnth * 100.0);
        let oracle = Pie::new(limit, params, queue_stream(seed).1);
        (text, Box::new(oracle))
    });
    assert!(seen.aqm > seen.frames / 50, "{seen:?}");
    assert!(seen.marked > seen.frames / 500, "{seen:?}");
}

fn draw_red(draws: &mut Draws, pattern: &Pattern) -> (String, RedParams) {
    let min = draws.between(0, 30);
    let max = min + draws.choose(&[0, 1, 10, 60]);
    let max = max.max(1);
    let (in_bytes, packet) = (draws.once_in(2), draws.choose(&[64, 500, 1_000]));
    let percent = draws.choose(&[0, 1, 10, 100]);
    let weight = draws
        .once_in(4)
        .then(|| draws.choose(&[0.002, 0.05, 0.3, 1.0]));
    let (gentle, adaptive, ecn) = (draws.once_in(2), draws.once_in(2), draws.once_in(2));
    let bandwidth = draws
        .once_in(3)
        .then(|| draws.scale(100_000, 1_000_000_000));
    let unit = if in_bytes { "bytes" } else { "packets" };
    let mut text = format!("min={min}p,max={max}p,maxp={percent}%,packet={packet}b");
    text += &format!(",gentle={gentle},adaptive={adaptive},unit={unit},ecn={ecn}");
    if let Some(weight) = weight {
        text += &format!(",weight={weight}");
    }
    if let Some(bandwidth) = bandwidth {
        text += &format!(",bandwidth={bandwidth}bit");
    }
    let scale = if in_bytes { packet as f64 } else { 1.0 };
    let rate = bandwidth.unwrap_or(pattern.rate) as f64;
    let packets_per_sec = rate / (packet as f64 * 8.0);
    let params = RedParams {
        min_th: min as f64 * scale,
        max_th: max as f64 * scale,
        max_p: percent as f64 / 100.0,
        w_q: match (weight, adaptive) {
            (Some(weight), _) => weight,
            (None, true) => -libm::expm1(-1.0 / packets_per_sec),
            (None, false) => 0.002,
        },
        gentle,
        adaptive,
        in_bytes,
        mean_packet: packet as f64,
        packets_per_sec,
        ecn,
    };
    (text, params)
}

#[test]
fn red() {
    let seen = compare(5, |draws, pattern, seed| {
        let limit = draw_limit(draws);
        let (text, params) = draw_red(draws, pattern);
        let text = format!("red:{},{text}", limit.text());
        let oracle = Red::new(limit, params, queue_stream(seed).1);
        (text, Box::new(oracle))
    });
    assert!(seen.aqm > seen.frames / 50, "{seen:?}");
    assert!(seen.marked > seen.frames / 500, "{seen:?}");
}

#[test]
fn dualpi2() {
    let seen = compare(6, |draws, pattern, _| {
        let (limit, unit) = (draw_limit(draws), pattern.unit());
        let rtt_max = draws.scale(10 * unit, 300 * unit).max(30_000);
        let target = draws.scale(unit, 50 * unit);
        let given = draws.once_in(2);
        let tupdate = if given {
            draws.scale(unit, 50 * unit).max(10_000)
        } else {
            target.min(rtt_max / 3).max(10_000)
        };
        let params = DualPi2Params {
            limit_packets: limit.packets as usize,
            limit_bytes: limit.bytes,
            mtu: 1_514,
            k: draws.choose(&[0.5, 1.0, 2.0, 4.0]),
            target,
            rtt_max,
            tupdate,
            min_th: draws.scale(1, 20 * unit),
            range: draws.choose(&[0, 1, 10]) * unit,
            th_len: draws.choose(&[0, 1, 5]),
            scheduler: if draws.once_in(2) {
                Scheduler::Wrr(draws.choose(&[1, 7, 15]))
            } else {
                Scheduler::TsFifo(draws.choose(&[0, 10, 100]) * unit)
            },
        };
        let mut text = format!("dualpi2:{},coupling={}", limit.text(), params.k);
        text += &format!(",target={target}ns,rtt-max={rtt_max}ns");
        if given {
            text += &format!(",tupdate={tupdate}ns");
        }
        let (min, range, packets) = (params.min_th, params.range, params.th_len);
        text += &format!(",l4s-min={min}ns,l4s-range={range}ns,l4s-packets={packets}p");
        text += &match params.scheduler {
            Scheduler::Wrr(weight) => format!(",scheduler=wrr,weight={weight}"),
            Scheduler::TsFifo(tshift) => format!(",scheduler=ts-fifo,tshift={tshift}ns"),
        };
        (text, Box::new(DualPi2::new(params)))
    });
    assert!(seen.aqm > seen.frames / 100, "{seen:?}");
    assert!(seen.marked > seen.frames / 20, "{seen:?}");
}

/// Draws classes with and without their own limits, within a total limit; the last class takes the
/// remaining code points. Half of the time, code points are VLAN priorities instead of DSCPs.
fn draw_classes(draws: &mut Draws, weighted: bool) -> (String, ByClass) {
    let limit = draw_limit(draws);
    let mut classes = Vec::new();
    let mut texts = Vec::new();
    let by_tag = draws.once_in(2);
    let (prefix, all) = if by_tag {
        ("pcp", [vec![7, 5], vec![6, 1], vec![0], vec![4]])
    } else {
        ("", [vec![48, 46], vec![34, 1], vec![8], vec![63]])
    };
    for points in all {
        if draws.once_in(4) {
            continue;
        }
        let points_text = points.iter().map(|point| format!("{prefix}{point}"));
        let mut text = points_text.collect::<Vec<String>>().join("+");
        let weight = if weighted {
            draws.between(1, 9) as i64
        } else {
            1
        };
        if weight != 1 {
            text += &format!("*{weight}");
        }
        let own = draws.once_in(3).then(|| draws.scale(1, 100));
        if let Some(packets) = own {
            text += &format!("@{packets}p");
        }
        let own = own.map(|packets| Limit {
            packets,
            bytes: None,
        });
        texts.push(text);
        classes.push(Class {
            points,
            weight,
            limit: own,
            queue: VecDeque::new(),
            deficit: 0,
        });
    }
    if classes.is_empty() {
        return draw_classes(draws, weighted);
    }
    let text = format!("classes={},{}", texts.join("/"), limit.text());
    let total = limit;
    let classes = ByClass {
        classes,
        total,
        by_tag,
    };
    (text, classes)
}

#[test]
fn priority() {
    compare(7, |draws, _, _| {
        let (text, classes) = draw_classes(draws, false);
        (format!("priority:{text}"), Box::new(Priority(classes)))
    });
}

#[test]
fn drr() {
    compare(8, |draws, _, _| {
        let (text, classes) = draw_classes(draws, true);
        let quantum = draws.choose(&[1, 100, 1_514, 20_000]);
        let oracle = Drr {
            classes,
            quantum,
            active: VecDeque::new(),
            serving: None,
        };
        (format!("drr:{text},quantum={quantum}b"), Box::new(oracle))
    });
}

/// Covers all registered queues, including those without an oracle: `run_engine` asserts that
/// verdicts do not depend on the times of polling.
#[test]
fn no_queue_depends_on_the_times_of_polling() {
    for entry in models::QUEUE.entries {
        for text in texts(&entry.info) {
            let mut draws = Draws::new(0);
            let mut slow = 0;
            while slow < 60 {
                let frames = draws.scale(10, 1_500) as usize;
                let pattern = pattern(&mut draws, frames);
                // At these rates, default times of a few milliseconds matter.
                if (500_000..20_000_000).contains(&pattern.rate) {
                    run_engine(&pattern, &text, slow);
                    slow += 1;
                }
            }
        }
    }
}
