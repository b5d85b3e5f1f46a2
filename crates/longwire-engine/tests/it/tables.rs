//! Text tables and the series read from them.

use longwire_engine::Nanos;
use longwire_engine::trace::{Contents, Cursor, End, Format, Mapping, Quantity, RowTimes, Series};
use longwire_testbed::support::rows;
use proptest::prelude::*;

use crate::common::traces::{self, stretches};

const SECOND: u64 = 1_000_000_000;

fn read(mapping: &Mapping, text: &str) -> Result<Series, String> {
    match traces::read(Some(Format::Table), mapping, text)? {
        Contents::Series(series, false) => Ok(series),
        other => panic!("no series: {other:?}"),
    }
}

fn usual(quantity: Quantity, text: &str) -> Result<Series, String> {
    read(&Mapping::usual(quantity), text)
}

#[test]
fn columns_are_found_by_their_names_and_units() {
    let text = "time,rate_mbps,Delay (ms),loss [%]\n0,10,20,0.5\n\n# half\n2.5,5.5,30.25,1\n";
    let rate = usual(Quantity::Rate, text).unwrap();
    let (two, half) = (2 * SECOND, SECOND / 2);
    assert_eq!(
        stretches(&rate),
        [(10_000_000, two + half), (5_500_000, two + half)]
    );
    let delay = usual(Quantity::Delay, text).unwrap();
    assert_eq!(delay.values(), [20_000_000, 30_250_000]);
    let loss = usual(Quantity::Loss, text).unwrap();
    assert_eq!(loss.values(), [500_000_000_000, 1_000_000_000_000]);
}

#[test]
fn values_may_bring_their_units_and_fields_any_separator() {
    for text in [
        "time;bandwidth\n0;\"1 Mbps\"\n1;2mbit\n",
        "Time\tThroughput\n0s\t1Mbit/s\n1000ms\t2000 kbps\n",
        "t bitrate\n0 1mbit\n1 2mbit",
        "0,1mbit\n1,2mbit",
    ] {
        let rate = usual(Quantity::Rate, text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(
            stretches(&rate),
            [(1_000_000, SECOND), (2_000_000, SECOND)],
            "{text}"
        );
    }
}

/// As recorded by G-NetTrack: dates, kbit/s without a unit, and gaps.
#[test]
fn a_mapping_reads_what_no_custom_covers() {
    let text = "Timestamp,Operator,DL_bitrate,UL_bitrate,PINGAVG\n\
                2019.12.16_13.40.04,A,1000,10,-\n\
                2019.12.16_13.40.05,B,7,7,7\n\
                2019.12.16_13.40.05,A,-,20,31\n\
                2019.12.16_13.40.06,A,3000,30,33\n";
    let mapping = Mapping {
        column: Some("dl_bitrate".to_owned()),
        unit: Some("kbit".to_owned()),
        filter: Some(("Operator".to_owned(), "A".to_owned())),
        ..Mapping::usual(Quantity::Rate)
    };
    let rate = read(&mapping, text).unwrap();
    assert_eq!(
        stretches(&rate),
        [(1_000_000, 2 * SECOND), (3_000_000, 2 * SECOND)]
    );
    let every = Mapping {
        column: Some("4".to_owned()),
        times: RowTimes::Every(SECOND / 10),
        filter: None,
        ..mapping.clone()
    };
    let rate = read(&every, text).unwrap();
    assert_eq!(rate.values(), [10_000, 7_000, 20_000, 30_000]);
    assert_eq!(rate.length(), Nanos::from_millis(400));
    let nobody = Mapping {
        filter: Some(("Operator".to_owned(), "C".to_owned())),
        ..mapping
    };
    assert_eq!(
        read(&nobody, text),
        Err("no row has 'C' in column 'Operator'".to_owned())
    );
}

#[test]
fn errors_are_reported_with_their_line() {
    // A slash ends a line of the file.
    for [text, message] in rows(
        "
        time,rate_mbps/1,5/0,6/ | line 3: time is before the previous row's; sort the rows
        time,rate_mbps/0,-5/ | line 2: rate: '-5' is negative
        time,rate_mbps/0,nan/ | line 2: rate: 'nan' is not a number
        time,rate_mbps/0,inf/ | line 2: rate: 'inf' is not a number
        time,rate_mbps/-1,5/ | line 2: time: '-1' is negative
        time,rate_mbps/0,99999999/ | line 2: rate: '99999999' is too large; the maximum is 10tbit
        time,rate_mbps/1e30,1/ | line 2: time: '1e30' is too large
        time,rate_mbps/0/ | line 2: 1 fields, but column 2 is needed
        time,speed/0,1/ | line 1: no column named rate; set rate-column=NAME, with NAME one of time, speed
        time,rate_mbps,bw_mbps/ | line 1: 'rate_mbps' and 'bw_mbps' may both be the rate; set rate-column=NAME
        time,rate/0,5/ | line 2: rate: '5' has no unit; name the column rate_mbit, write 5mbit, or set rate-unit=mbit
        0,1,2/ | line 1: the 3 columns have no names; set time-column=1
        time,rate_mbps/ | no rows
        time,rate_mbps/0,-/ | no rows
        # nothing/ | no data: only comments or empty lines
        ",
    ) {
        let read = usual(Quantity::Rate, &text.replace('/', "\n"));
        assert_eq!(read, Err(message.to_owned()), "{text}");
    }
}

/// Finds a series value by scanning the rows.
fn oracle(rows: &[(u64, u64)], length: u64, since: u64, end: End) -> Option<u64> {
    let inside = match end {
        End::Loop => since % length,
        End::Stop if since >= length => return None,
        End::Stop | End::Hold => since,
    };
    rows.iter()
        .rev()
        .find(|(start, _)| *start <= inside)
        .map(|(_, value)| *value)
}

proptest! {
    #[test]
    fn a_series_says_what_its_rows_do(
        gaps in proptest::collection::vec((0u64..50, 0u64..4), 2..40),
        looks in proptest::collection::vec(prop_oneof![0u64..20, 0u64..3_000, any::<u64>()], 1..60),
        back in any::<bool>(),
        end in proptest::sample::select(vec![End::Loop, End::Hold, End::Stop]),
    ) {
        let mut text = String::from("time_ns,rate_bps\n");
        let mut rows: Vec<(u64, u64)> = Vec::new();
        let (mut time, mut gap_last) = (0, 0);
        for (gap, value) in gaps {
            time += if rows.is_empty() { 0 } else { gap };
            if gap > 0 && !rows.is_empty() {
                gap_last = gap;
            }
            text += &format!("{time},{value}\n");
            rows.push((time, value));
        }
        prop_assume!(gap_last > 0);
        let length = time + gap_last;
        let series = usual(Quantity::Rate, &text).unwrap();
        prop_assert_eq!(series.length(), Nanos::from_nanos(length));
        let (mut cursor, mut since) = (Cursor::default(), 0u64);
        for look in looks {
            since = if back { look } else { since.saturating_add(look) };
            let found = series.at(&mut cursor, Nanos::from_nanos(since), end);
            prop_assert_eq!(found.value, oracle(&rows, length, since, end));
            prop_assert!(found.start.as_nanos() <= since);
            prop_assert!(since < found.end.as_nanos() || found.end == Nanos::MAX);
            // The value also holds in the last nanosecond of its stretch.
            if found.end < Nanos::MAX {
                let last = found.end.as_nanos() - 1;
                prop_assert_eq!(found.value, oracle(&rows, length, last, end));
            }
        }
    }
}
