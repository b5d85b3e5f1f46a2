//! Arbitrary traces: either parsed to their end or refused with a message, regardless of how the
//! bytes arrive. A parsed trace is a schedule that a link can follow.
//!
//! The first line describes the trace that follows: a format or `auto`, a quantity, and columns,
//! such as `auto rate` or `table delay column=2 unit=ms where=cell/7`. Alternatively it is
//! `mahimahi`, `cellreplay` or `errant`, for the parsers of such files.

use longwire_engine::trace::format::{Contents, Format, TraceReader};
use longwire_engine::trace::schedule::{OpportunityCursor, OpportunitySchedule};
use longwire_engine::trace::{Cursor, End, Mapping, Quantity, RowTimes, Series};
use longwire_engine::{FrameMeta, Link, LinkConfig, LinkId, Nanos, Verdict, models, presets};

use super::{OneFile, head_line};

/// Parses the trace in two ways and checks the resulting series.
pub fn check(data: &[u8]) {
    let Some((head, rest)) = head_line(data) else {
        return;
    };
    let rest = rest.get(1..).unwrap_or(&[]);
    let words: Vec<&str> = head.split(' ').collect();
    let file = OneFile(rest);
    match words.as_slice() {
        ["mahimahi", ..] => check_rate("mahimahi:file=f", &file),
        ["cellreplay", ..] => check_rate("cellreplay:trains=t,opportunities=o,pause=5ms", &file),
        ["errant", ..] => {
            if let Ok(duplex) = presets::read("errant:file=f", &file) {
                for spec in [duplex.up, duplex.down] {
                    assert!(spec.build(&file).is_ok(), "{spec}");
                }
            }
        }
        [format, quantity, columns @ ..] => {
            let quantity = match *quantity {
                "delay" => Quantity::Delay,
                "loss" => Quantity::Loss,
                "duplicate" => Quantity::Duplication,
                _ => Quantity::Rate,
            };
            let found = Format::ALL.iter().find(|(name, _)| name == format);
            let mapping = mapping(quantity, columns);
            check_trace(found.map(|(_, format)| *format), &mapping, rest);
            if quantity == Quantity::Rate {
                for end in ["loop", "hold", "stop"] {
                    check_rate(&format!("trace:file=f,end={end}"), &file);
                }
            }
        }
        _ => {}
    }
}

/// Returns the table columns that the words describe.
fn mapping(quantity: Quantity, words: &[&str]) -> Mapping {
    let mut mapping = Mapping::usual(quantity);
    for word in words {
        let Some((key, value)) = word.split_once('=') else {
            continue;
        };
        match key {
            "column" => mapping.column = Some(value.to_owned()),
            "unit" => mapping.unit = Some(value.to_owned()),
            "time-unit" => mapping.time_unit = Some(value.to_owned()),
            "time" => mapping.times = RowTimes::Column(value.to_owned()),
            "every" => mapping.times = RowTimes::Every(value.parse().unwrap_or(1).max(1)),
            "where" => {
                let (name, wanted) = value.split_once('/').unwrap_or((value, ""));
                mapping.filter = Some((name.to_owned(), wanted.to_owned()));
            }
            _ => {}
        }
    }
    mapping
}

fn check_trace(format: Option<Format>, mapping: &Mapping, file: &[u8]) {
    let read = |piece: usize| {
        let mut reader = TraceReader::new(format, mapping.clone(), false);
        file.chunks(piece)
            .try_for_each(|piece| reader.feed(piece))?;
        reader.finish()
    };
    let whole = read(usize::MAX);
    assert_eq!(read(5), whole);
    match whole {
        Ok(Contents::Series(series, _)) => check_series(&series, mapping.quantity),
        Ok(Contents::Patterns(patterns, _)) => {
            let sets = &patterns.sets;
            let known = |index: &u64| (*index as usize) < sets.len();
            assert!(patterns.series.values().iter().all(known));
            assert!(sets.iter().all(|set| !set.is_empty()));
            let mut steps = sets.iter().flatten();
            assert!(steps.all(|steps| *steps <= Quantity::LOSS_STEPS));
        }
        Ok(Contents::Schedule(schedule)) => check_schedule(&schedule),
        Ok(Contents::Trains(trains)) => {
            let delays = trains.base_delays();
            check_series(&delays.expect("trains have delays"), Quantity::Delay);
        }
        Err(message) => assert!(!message.is_empty()),
    }
}

/// Intervals between look-ups in nanoseconds, used cyclically.
const LOOKS: [u64; 8] = [0, 1, 999, 1_000_000, 7, 1 << 30, 1 << 40, 1 << 62];

fn check_series(series: &Series, quantity: Quantity) {
    let most = match quantity {
        Quantity::Rate => 10_000_000_000_000,
        Quantity::Loss | Quantity::Duplication => Quantity::LOSS_STEPS,
        Quantity::Delay | Quantity::Time => 86_400_000_000_000,
    };
    assert!(series.values().iter().all(|value| *value <= most));
    let length: u64 = series.stretches().map(|(_, time)| time).sum();
    assert_eq!(Nanos::from_nanos(length), series.length());
    assert!(series.stretches().all(|(_, time)| time > 0));
    for end in [End::Loop, End::Hold, End::Stop] {
        let mean = series.mean(end);
        assert!(mean <= most, "{mean}");
        let (mut cursor, mut since) = (Cursor::default(), 0u64);
        for look in LOOKS.iter().cycle().take(40) {
            since = since.saturating_add(*look);
            let found = series.at(&mut cursor, Nanos::from_nanos(since), end);
            assert!(found.start.as_nanos() <= since);
            assert!(since < found.end.as_nanos() || found.end == Nanos::MAX);
            let over = end == End::Stop && since >= length;
            assert_eq!(found.value.is_none(), over);
            let known = |value| series.values().contains(&value);
            assert!(found.value.is_none_or(known));
        }
    }
}

fn check_schedule(schedule: &OpportunitySchedule) {
    assert!(schedule.count() > 0 && schedule.length() > Nanos::ZERO);
    for repeats in [false, true] {
        let (mut place, mut last) = (OpportunityCursor::default(), 0u64);
        for look in LOOKS.iter().cycle().take(40) {
            let least = last.saturating_add(*look);
            schedule.skip(&mut place, least, repeats);
            let Some(next) = schedule.time(&place) else {
                break;
            };
            assert!(next >= least);
            let Some(taken) = schedule.take(&mut place, 1 + look % 1_000, repeats) else {
                break;
            };
            assert!(taken >= next);
            last = taken;
        }
    }
}

/// Checks a link whose rate follows the file: departures never decrease, and none precedes its
/// arrival.
fn check_rate(rate: &str, file: &OneFile<'_>) {
    let Ok(rate) = models::RATE.parse_with(rate, file) else {
        return;
    };
    let config = LinkConfig {
        rate,
        ..LinkConfig::default()
    };
    let mut link = Link::new(config, 1, LinkId(0));
    let mut last = Nanos::ZERO;
    for n in 0..64u64 {
        let frame = FrameMeta::new(Nanos::from_nanos(n * n * n * 10_000), (n * n * 70) as u32);
        if let Verdict::Deliver(delivery) = link.offer(frame, &[]) {
            assert!(frame.arrival <= delivery.departure && last <= delivery.departure);
            last = delivery.departure;
        }
    }
}
