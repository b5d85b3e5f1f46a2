//! Trace formats: detection, parsing, and errors with position and reason.

use longwire_engine::Nanos;
use longwire_engine::trace::{Contents, Cursor, End, Format, Mapping, Quantity, Series};
use longwire_testbed::support::rows;

use crate::common::traces::{read, read_pieces, read_usual, stretches};

const SECOND: u64 = 1_000_000_000;
const MBIT: u64 = 1_000_000;

fn rates(text: &str) -> Result<Contents, String> {
    read_usual(Quantity::Rate, text)
}

fn rates_in(text: &[u8], piece: usize) -> Result<Contents, String> {
    read_pieces(None, &Mapping::usual(Quantity::Rate), text, piece)
}

fn rates_as(format: Format, text: &str) -> Result<Contents, String> {
    read(Some(format), &Mapping::usual(Quantity::Rate), text)
}

fn series(contents: Result<Contents, String>) -> Series {
    match contents {
        Ok(Contents::Series(series, _)) => series,
        Ok(Contents::Trains(trains)) => trains.base_delays().expect("trains have delays"),
        other => panic!("no series: {other:?}"),
    }
}

#[test]
fn the_format_of_a_trace_is_detected() {
    let table = "time,rate_mbps\n0,8\n1,4\n";
    assert_eq!(
        stretches(&series(rates(table))),
        [(8 * MBIT, SECOND), (4 * MBIT, SECOND)]
    );
    let mahimahi = "# of a train ride\n\n1\n";
    assert!(
        rates(mahimahi).unwrap_err().contains("whole number"),
        "mahimahi has no remarks"
    );
    assert!(
        matches!(rates("1\n1\n5\n"), Ok(Contents::Schedule(schedule)) if schedule.count() == 3)
    );
    assert!(matches!(rates("\u{feff}7"), Ok(Contents::Schedule(_))));
    let pensieve = "0 1.5\n0.5 2.5\n2 4\n";
    assert_eq!(
        stretches(&series(rates(pensieve))),
        [(2_500_000, SECOND / 2), (4 * MBIT, 3 * SECOND / 2)]
    );
    let json = "{\"StaticBwConfig\": {\"bw\": \"12Mbps\", \"duration\": \"1s 500ms\"}}";
    assert_eq!(
        stretches(&series(rates(json))),
        [(12 * MBIT, 3 * SECOND / 2)]
    );
    let toml = "# as of Rattan\n[StaticBwConfig]\nbw = \"12Mbps\"\nduration = \"2s\"\n";
    assert_eq!(stretches(&series(rates(toml))), [(12 * MBIT, 2 * SECOND)]);
    let trains = "0 20 0 1\n100 30 0 2\n200 20 1 1\n";
    assert!(rates(trains).unwrap_err().contains("rate model cellreplay"));
}

#[test]
fn a_format_may_be_said() {
    // Two numbers could also be a table in milliseconds and kbit/s.
    let text = "0 1\n1000 2\n2000 3\n";
    let pensieve = series(rates_as(Format::Pensieve, text));
    assert_eq!(pensieve.length(), Nanos::from_secs(2_000));
    let refused = rates_as(Format::Mahimahi, text).unwrap_err();
    assert_eq!(
        refused,
        "line 1: '0 1' is not a whole number of milliseconds"
    );
    let refused = rates_as(Format::NetemTrace, text).unwrap_err();
    assert!(refused.starts_with("line 1: "), "{refused}");
}

#[test]
fn pensieves_rates_hold_up_to_their_times() {
    // The third row repeats the second row's time, so its rate has no duration.
    let text = "10.5 99\n11 1\n11 7\n13 2\n";
    assert_eq!(
        stretches(&series(rates(text))),
        [(MBIT, SECOND / 2), (2 * MBIT, 2 * SECOND)]
    );
    // A slash ends a line of the file.
    for [text, message] in rows(
        "
        0 1/ | fewer than two lines with different times
        1 1/1 2/ | fewer than two lines with different times
        0 1/2 2/1 3/ | line 3: time is before the previous line's; sort the lines
        0 1/1 x/ | line 2: rate: 'x' is not a number
        0 1/1 -2/ | line 2: rate: '-2' is negative
        0 1/1/ | line 2: expected two numbers: seconds and Mbit/s
        0 1/1 2 3/ | line 2: expected two numbers: seconds and Mbit/s
        ",
    ) {
        let read = rates(&text.replace('/', "\n"));
        assert_eq!(read, Err(message.to_owned()), "{text}");
    }
}

/// Interpolates like CellReplay: to whole milliseconds, rounded down.
#[test]
fn cellreplays_trains_hold_base_delays() {
    let text = "0 20 0 1\n100 30 0 2\n150 30 0\n200 25 1 1\n";
    let delays = series(read_usual(Quantity::Delay, text));
    let mut cursor = Cursor::default();
    let mut at = |milli| {
        let since = Nanos::from_millis(milli);
        delays.at(&mut cursor, since, End::Loop).value.unwrap() / 1_000_000
    };
    assert_eq!(
        [at(0), at(9), at(10), at(99), at(100), at(149)],
        [20, 20, 21, 29, 30, 30]
    );
    // A falling delay is truncated to the next lower value after its first millisecond.
    assert_eq!(
        [at(150), at(151), at(160), at(161), at(199), at(200)],
        [30, 29, 29, 28, 25, 20]
    );
    for [text, message] in rows(
        "
        0 20 0/1 20 0/ | fewer than 3 lines
        5 20 0/5 20 0/5 20 0/ | all lines have the same time
        0 20 0/2 20 0/1 20 0/ | line 3: time is before the previous line's; sort the lines
        0 20 0/2 20 5 4/ | line 2: opportunity 4 is before its predecessor; sort the opportunities
        0 20 0/2 20/ | line 2: no opportunity after the base delay; add one
        0 20 0/2 x 0/ | line 2: 'x' is not a whole number of milliseconds below 2^32
        0 20 0/2 86400001 0/ | line 2: a base delay of 86400001 ms is above 24h
        ",
    ) {
        let read = read_usual(Quantity::Delay, &text.replace('/', "\n"));
        assert_eq!(read, Err(message.to_owned()), "{text}");
    }
}

/// Covers only unlimited patterns; the files in `netem_trace.rs` cover the others.
#[test]
fn netem_traces_patterns_may_repeat_for_ever() {
    let text = r#"{"RepeatedBwPatternConfig":{"pattern":[
        {"StaticBwConfig":{"bw":{"gbps":0,"bps":12000000},"duration":{"secs":1,"nanos":0}}},
        {"StaticBwConfig":{"bw":"24Mbps","duration":"1s"}}],"count":0}}"#;
    let Ok(Contents::Series(series_for_ever, true)) = rates(text) else {
        panic!("a count of 0 repeats for ever");
    };
    let once = [(12 * MBIT, SECOND), (24 * MBIT, SECOND)];
    assert_eq!(stretches(&series_for_ever), once);
}

/// 50,000 draws from N(12 Mbit/s, 1 Mbit/s): the mean, and the share above 13 Mbit/s (15.87 %), are
/// within four standard deviations.
#[test]
fn netem_traces_normal_rates_have_their_law() {
    let model = |more: &str| {
        format!(
            "{{\"NormalizedBwConfig\":{{\"mean\":\"12Mbps\",\"std_dev\":\"1Mbps\",\
             \"duration\":\"50s\",\"step\":\"1ms\"{more}}}}}"
        )
    };
    let normal = series(rates(&model("")));
    let count = 50_000.0;
    let mean = normal.mean(End::Loop) as f64;
    assert!((mean - 12e6).abs() < 4.0 * 1e6 / f64::sqrt(count), "{mean}");
    let above = normal.stretches().filter(|(rate, _)| *rate > 13 * MBIT);
    let share = above.map(|(_, time)| time).sum::<u64>() as f64 / 50e9;
    let deviation = (0.158_655f64 * 0.841_345 / count).sqrt();
    assert!((share - 0.158_655).abs() < 4.0 * deviation, "{share}");
    assert_eq!(
        normal,
        series(rates(&model(",\"seed\":42"))),
        "42 is the usual seed"
    );
    assert_ne!(normal, series(rates(&model(",\"seed\":43"))));
    let bounded = series(rates(&model(
        ",\"lower_bound\":\"11.5Mbps\",\"upper_bound\":\"12500kbps\"",
    )));
    let range = 11_500_000..=12_500_000;
    assert!(bounded.values().iter().all(|rate| range.contains(rate)));
}

#[test]
fn wrong_models_are_refused_with_their_place() {
    for [text, message] in rows(
        r#"
        {"StaticBwConfig":         | EOF while parsing
        a = 1/b =/                 | line 2:
        {"A":{},"B":{}}            | with one name
        {"OtherBwConfig":{}}       | unknown rate model OtherBwConfig
        {"StaticDelayConfig":{}}   | unknown rate model StaticDelayConfig
        {"StaticBwConfig":{"rate":"1Mbps"}}   | unknown key 'rate'; known: bw, duration
        {"StaticBwConfig":{"bw":"1"}}         | StaticBwConfig: bw: '1' is not of the form 12Mbps
        {"StaticBwConfig":{"bw":"-1Mbps"}}    | bw: '-1Mbps' is not of the form 12Mbps
        {"StaticBwConfig":{"bw":12}}          | bw: not a string such as 12Mbps
        {"StaticBwConfig":{"bw":{"gbps":1}}}  | bw: no integer 'bps'
        {"StaticBwConfig":{"bw":"11Tbps"}}    | too large
        {"StaticBwConfig":{"duration":"0s"}}  | zero duration
        {"RepeatedBwPatternConfig":{"pattern":[],"count":1}} | zero duration
        {"RepeatedBwPatternConfig":{"pattern":[{"StaticBwConfig":{"bw":1}}],"count":1}} | RepeatedBwPatternConfig: pattern 1: StaticBwConfig: bw
        {"RepeatedBwPatternConfig":{"pattern":[{"RepeatedBwPatternConfig":{"pattern":[]}}],"count":1}} | only the outermost pattern may be unlimited
        {"NormalizedBwConfig":{"duration":"20s","step":"1us"}} | more than 10000000 values
        {"TraceBwConfig":[[1]]}      | row 1: not a list such as
        {"TraceBwConfig":[[-1,[1]]]} | negative
        {"TraceBwConfig":{"pattern":[["25ms"]]}}        | row 1: not a list such as
        {"TraceBwConfig":{"pattern":[["25ms",["10"]]]}} | row 1: '10' is not of the form 12Mbps
        {"TraceBwConfig":{"patern":[]}} | unknown key 'patern'; known: pattern
        {"TraceBwConfig":{}} | zero duration
        {"TraceBwConfig":7}  | not a list such as
        "#,
    ) {
        // A slash ends a line of the file.
        let text = text.replace('/', "\n");
        let refused = rates(&text).expect_err(&text);
        assert!(refused.contains(message), "{text}: {refused}");
    }
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(rates(&format!("{{\"a\":{nested}}}")).is_err());
}

#[test]
fn non_traces_are_refused_early() {
    let long = vec![b'a'; 70_000];
    let refused = rates_in(&long, 4_096).unwrap_err();
    assert_eq!(refused, "line 1: longer than 65536 bytes");
    let binary = rates_in(b"\xff\xfe\x00\n1\n", 4_096).unwrap_err();
    assert_eq!(binary, "line 1: not UTF-8 text");
    assert_eq!(
        rates(""),
        Err("no data: only comments or empty lines".to_owned())
    );
    assert_eq!(
        rates("#\n\n#"),
        Err("no data: only comments or empty lines".to_owned())
    );
    // A one-line document may exceed the maximum line length.
    let spaces = " ".repeat(100_000);
    let json = format!("{{{spaces}\"StaticBwConfig\":{{}}}}");
    assert_eq!(stretches(&series(rates(&json))), [(12 * MBIT, SECOND)]);
    let endless = format!("{{{}", " ".repeat(17 << 20));
    let refused = rates_in(endless.as_bytes(), 65_536).unwrap_err();
    assert!(refused.contains("longer than 16 MB"), "{refused}");
}

/// A long trace takes far less memory than its text: 16 bytes per table row, or 8 per millisecond
/// that has opportunities.
#[test]
fn a_long_trace_is_read_in_good_time() {
    let mut text = String::from("time_s,rate_mbps\n");
    for row in 0..300_000u32 {
        text += &format!(
            "{}.{:03},{}.{:03}\n",
            row / 10,
            row % 10 * 100,
            row % 97,
            row % 997
        );
    }
    let series = series(rates_in(text.as_bytes(), 65_536));
    assert_eq!(series.values().len(), 300_000);
    assert_eq!(series.length(), Nanos::from_secs(30_000));
    let opportunities: String = (0..1_000_000u32)
        .map(|line| format!("{}\n", 1 + line / 83))
        .collect();
    let schedule = rates_in(opportunities.as_bytes(), 65_536);
    assert!(matches!(schedule, Ok(Contents::Schedule(schedule)) if schedule.count() == 1_000_000));
}
