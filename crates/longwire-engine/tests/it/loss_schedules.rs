//! Losses by count, from a list and over time.

use crate::common::assert_binomial;
use crate::common::files::{self, frame_context, stream};
use longwire_engine::models::LOSS;
use longwire_engine::models::loss::LossModel;
use longwire_engine::{DropReason, Nanos, Verdict};
use longwire_testbed::support::rows;
use longwire_units::random::{Purpose, Stream};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
const EPOCH: u64 = 12_345_678_901;

fn parse(model: &str, contents: &str) -> Box<dyn LossModel> {
    let mut model = files::parse(&LOSS, model, contents).model;
    model.start(Nanos::from_nanos(EPOCH));
    model
}

fn refusal(model: &str, contents: &str) -> String {
    files::parse_error(&LOSS, model, contents)
}

/// Returns the numbers of lost frames among `frames`, from 1.
fn lost(model: &str, contents: &str, frames: u64) -> Vec<u64> {
    let mut model = parse(model, contents);
    let frame = frame_context(EPOCH, 1000);
    let mut judge = |_: &u64| model.judge(&frame, &mut stream()) == Some(DropReason::Loss);
    (1..=frames).filter(|number| judge(number)).collect()
}

/// Ranges of a list may be unordered and overlap; a loop repeats the list after its last number.
#[test]
fn chosen_frames_are_lost() {
    for [model, frames, numbers] in rows(
        "
        nth:every=100                        | 350  | 100 200 300
        nth:every=3,offset=4                 | 14   | 7 10 13
        nth:1                                | 4    | 1 2 3 4
        nth:every=18446744073709551615,offset=3 | 1000 |
        list:packets=3;7;9-12                | 40   | 3 7 9 10 11 12
        list:packets=9-12; 3 ;10-14;7-8      | 40   | 3 7 8 9 10 11 12 13 14
        list:packets=2;4-5,end=loop          | 16   | 2 4 5 7 9 10 12 14 15
        list:packets=1,end=loop              | 3    | 1 2 3
        ",
    ) {
        let numbers = numbers
            .split_whitespace()
            .map(|number| number.parse().expect(number));
        let found = lost(model, "", frames.parse().expect(frames));
        assert_eq!(found, numbers.collect::<Vec<u64>>(), "{model}");
    }
}

#[test]
fn a_file_selects_the_lost_frames() {
    let contents = "1101\n # 0 is lost\n1 0\n";
    assert_eq!(lost("per-packet:file=x,end=stop", contents, 30), [3, 6]);
    assert_eq!(lost("per-packet:file=x", contents, 14), [3, 6, 9, 12]);
    // Several words of bits, compared with the text.
    let bits: String = (0..1_000u32)
        .map(|n| {
            if n.wrapping_mul(2_654_435_761) >> 29 == 0 {
                '0'
            } else {
                '1'
            }
        })
        .collect();
    let expected = bits.chars().zip(1..).filter(|(bit, _)| *bit == '0');
    let expected: Vec<u64> = expected.map(|(_, number)| number).collect();
    assert!(expected.len() > 50);
    assert_eq!(lost("per-packet:file=x,end=stop", &bits, 1_500), expected);
    assert_eq!(
        refusal("per-packet:file=l.txt", "110\n10 2\n"),
        "per-packet: file: l.txt: line 2: column 4: '2' is neither 0 nor 1"
    );
    assert_eq!(
        refusal("per-packet:file=l.txt", "# nothing"),
        "per-packet: file: l.txt: no entries"
    );
}

/// Returns whether a frame is lost at this time after the epoch.
fn down(model: &mut Box<dyn LossModel>, since: u64) -> bool {
    let frame = frame_context(EPOCH + since, 1000);
    let lost = model.judge(&frame, &mut stream());
    assert!(matches!(lost, None | Some(DropReason::Outage)));
    lost.is_some()
}

#[test]
fn outages_repeat_with_their_period() {
    let mut outage = parse("outage:period=10s,duration=500ms,offset=3s", "");
    for lap in [0, 1, 99] {
        let start = (lap * 10 + 3) * SECOND;
        assert!(!down(&mut outage, start - 1));
        assert!(down(&mut outage, start));
        assert!(down(&mut outage, start + 500 * MS - 1));
        assert!(!down(&mut outage, start + 500 * MS));
        assert!(!down(&mut outage, start + 9 * SECOND));
    }
    // There is no outage before the first, for any period.
    let frame = frame_context(EPOCH - SECOND, 1000);
    assert_eq!(outage.judge(&frame, &mut stream()), None);
    assert!(!down(&mut outage, 0));
    let mut always = parse("outage:period=1s,duration=1s", "");
    assert!(down(&mut always, 0) && down(&mut always, 77 * SECOND - 1));
}

#[test]
fn outages_start_at_their_times() {
    let spans = [(2, 3), (3, 4), (10, 15)];
    let mut once = parse("outages:schedule=2s/1s;3s/1s;10s/5s", "");
    let mut again = parse("outages:schedule=2s/1s; 3s/1s; 10s/5s,repeat=20s", "");
    let is_in = |since: u64| {
        spans
            .iter()
            .any(|(start, end)| (start * SECOND..end * SECOND).contains(&since))
    };
    // Forwards and backwards in time, at and just before every second.
    let times = (0..60).chain((0..60).rev());
    for since in times.flat_map(|second| [second * SECOND, (second + 1) * SECOND - 1]) {
        assert_eq!(down(&mut once, since), is_in(since), "{since}");
        assert_eq!(
            down(&mut again, since),
            is_in(since % (20 * SECOND)),
            "{since}"
        );
    }
}

/// On the medium, a frame's departure determines its loss; at the entry, its arrival. 1000 bytes
/// take 8 ms at 1 Mbit/s.
#[test]
fn an_outage_meets_the_departure_or_the_arrival() {
    let outcome = |place: &str, arrival: u64| {
        let line = format!("rate=1mbit loss=outages:schedule=100ms/10ms,at={place}");
        crate::common::link(&line, 1).offer(crate::common::frame(arrival * MS, 1000), &[])
    };
    assert_eq!(outcome("medium", 95), Verdict::Drop(DropReason::Outage));
    assert!(matches!(outcome("medium", 105), Verdict::Deliver(_)));
    assert!(matches!(outcome("entry", 95), Verdict::Deliver(_)));
    assert_eq!(outcome("entry", 105), Verdict::Drop(DropReason::EntryLoss));
}

/// 60,000 frames per row, within bounds that 99.98 % of correct models meet.
#[test]
fn a_trace_gives_loss_probabilities() {
    let contents = "time_s,loss_percent\n0,0\n60,25\n120,100\n180,1.5\n";
    let rates = [0.0, 0.25, 1.0, 0.015];
    for (end, after) in [("loop", rates[1]), ("hold", rates[3]), ("stop", 0.0)] {
        let mut trace = parse(&format!("trace:file=x,end={end}"), contents);
        let mut stream = Stream::new(1, 0, Purpose::MediumLoss);
        for (minute, rate) in rates.into_iter().chain([after; 2]).enumerate() {
            // A period takes four minutes; the second period is checked only in its second minute.
            let minute = if minute == 4 { 5 } else { minute as u64 };
            let lost = (0..60_000).filter(|index| {
                let frame = frame_context(EPOCH + minute * 60 * SECOND + index * MS, 500);
                trace.judge(&frame, &mut stream) == Some(DropReason::Loss)
            });
            let lost = lost.count() as u64;
            let what = format!("{end}, {minute}");
            assert_binomial(&what, lost, 60_000, rate, 0.9998);
        }
    }
    assert_eq!(
        refusal("trace:file=t.csv", "time_s,loss_percent\n0,1\n1,101\n"),
        "trace: file: t.csv: line 3: loss: '101' is too large; the maximum is 100%"
    );
}
