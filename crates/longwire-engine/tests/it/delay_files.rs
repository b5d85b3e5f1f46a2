//! Delay distributions from files: contents, draws and rejected lines.

use crate::common::files::{self, Contents, frame_context};
use crate::common::{ks_bound, ks_distance};
use longwire_engine::models::delay::DelayModel;
use longwire_engine::models::{DELAY, Described};
use longwire_testbed::support::rows;
use longwire_units::random::{Purpose, Stream};

const CONFIDENCE: f64 = 0.998;
const SAMPLES: usize = 200_000;
const MS: f64 = 1e6;

fn parse(model: &str, contents: &str) -> Described<dyn DelayModel> {
    files::parse(&DELAY, model, contents)
}

fn refusal(model: &str, contents: &str) -> String {
    files::parse_error(&DELAY, model, contents)
}

fn draws(model: &mut dyn DelayModel, seed: u64) -> Vec<f64> {
    let mut stream = Stream::new(seed, 0, Purpose::Delay);
    let frame = frame_context(0, 1000);
    let draw = |_| model.draw(&frame, &mut stream).as_nanos() as f64;
    (0..SAMPLES).map(draw).collect()
}

/// Returns the piecewise linear distribution function through these points.
fn lines(points: &[(f64, f64)]) -> impl Fn(f64) -> f64 {
    move |x| match points.iter().position(|(value, _)| *value > x) {
        None => 1.0,
        Some(0) => 0.0,
        Some(next) => {
            let ((a, p), (b, q)) = (points[next - 1], points[next]);
            p + (q - p) * (x - a) / (b - a)
        }
    }
}

/// Returns the maximum distance between two distribution functions that may both have jumps,
/// evaluated on both sides of each value.
fn distance(samples: &mut [f64], cdf: impl Fn(f64) -> f64) -> f64 {
    const BESIDE: f64 = 1e-3;
    samples.sort_by(f64::total_cmp);
    let part = |count: usize| count as f64 / samples.len() as f64;
    let mut most = 0.0f64;
    for same in samples.chunk_by(|a, b| a == b) {
        let below = samples.partition_point(|sample| *sample < same[0]);
        let before = (part(below) - cdf(same[0] - BESIDE)).abs();
        let behind = (part(below + same.len()) - cdf(same[0])).abs();
        most = most.max(before).max(behind);
    }
    most
}

fn check(model: &str, contents: &str, points: &[(f64, f64)]) {
    let mut model = parse(model, contents);
    let mut samples = draws(&mut *model, 1);
    let mean = samples.iter().sum::<f64>() / SAMPLES as f64;
    let distance = distance(&mut samples, lines(points));
    let bound = ks_bound(SAMPLES, CONFIDENCE);
    assert!(distance < bound, "{model}: {distance} of {bound}");
    let (least, greatest) = (samples[0], samples[SAMPLES - 1]);
    assert!(least >= points[0].0 && greatest <= points[points.len() - 1].0);
    assert!(model.least().as_nanos() as f64 <= least);
    // Half the range bounds any standard deviation; 0.7 % of that is three standard errors.
    let claimed = model.mean().as_nanos() as f64;
    let range = points[points.len() - 1].0 - points[0].0;
    assert!(
        (claimed - mean).abs() < 0.0035 * range,
        "{model}: {claimed}, {mean}"
    );
}

/// Entries are evenly spaced quantiles, in any order.
#[test]
fn tables_of_tc_are_inverse_distribution_functions() {
    let contents = "# mean 0\n-8192 0 4096\n\n  -4096 # the second\n8192\n";
    let at = |entry: f64| (50.0 + entry * 10.0) * MS;
    let points = [
        (at(-1.0), 0.0),
        (at(-0.5), 0.25),
        (at(0.0), 0.5),
        (at(0.5), 0.75),
        (at(1.0), 1.0),
    ];
    check("table:file=x,mean=50ms,stddev=10ms", contents, &points);
    // Negative values are redrawn: the upper half of the table remains.
    let points = [(0.0, 0.0), (5.0 * MS, 0.5), (10.0 * MS, 1.0)];
    check("table:file=x,mean=0ns,stddev=10ms", contents, &points);
    let points = [(47.0 * MS, 0.0), (50.0 * MS, 0.6), (52.0 * MS, 1.0)];
    let text = "table:file=x,mean=50ms,stddev=10ms,min=47ms,max=52ms";
    check(text, contents, &points);
}

#[test]
fn samples_are_quantiles() {
    let contents = "30, 10\n# noon\n20ms 20000us;60\n";
    let points = [
        (10.0 * MS, 0.0),
        (20.0 * MS, 0.25),
        (20.0 * MS, 0.5),
        (30.0 * MS, 0.75),
        (60.0 * MS, 1.0),
    ];
    check("samples:file=x", contents, &points);
    let moved = points.map(|(value, below)| (value + 5.0 * MS, below));
    check("samples:file=x,location=5ms", contents, &moved);
    let model = parse("samples:file=x,unit=us", "7");
    assert_eq!(model.fixed().map(|delay| delay.as_nanos()), Some(7_000));
}

#[test]
fn distribution_functions_are_read_point_by_point() {
    let contents = "# ms probability\n10 0.2\n20,50%\n20 0.6\n\n80ms\t1\n";
    let points = [
        (10.0 * MS, 0.0),
        (10.0 * MS, 0.2),
        (20.0 * MS, 0.5),
        (20.0 * MS, 0.6),
        (80.0 * MS, 1.0),
    ];
    check("cdf:file=x", contents, &points);
    let points = [
        (15.0 * MS, 0.0),
        (20.0 * MS, 0.15 / 0.35),
        (20.0 * MS, 0.25 / 0.35),
        (35.0 * MS, 1.0),
    ];
    check("cdf:file=x,min=15ms,max=35ms", contents, &points);
}

/// Many entries; results do not depend on how the file is split into pieces.
#[test]
fn a_large_table_is_read_in_pieces() {
    let entries: Vec<String> = (-8192..=8192).map(|entry: i32| entry.to_string()).collect();
    let rows: Vec<String> = entries.chunks(8).map(|row| row.join(" ")).collect();
    let text = rows.join("\n");
    for piece in [1, 13, 4096] {
        let contents = Contents {
            text: text.as_bytes(),
            piece,
        };
        let model = "table:file=x,mean=50ms,stddev=10ms";
        let mut model = DELAY.parse_with(model, &contents).unwrap();
        let mut samples = draws(&mut *model, 2);
        let uniform = |x: f64| (x / MS - 40.0) / 20.0;
        assert!(ks_distance(&mut samples, uniform) < ks_bound(SAMPLES, CONFIDENCE));
    }
}

#[test]
fn wrong_lines_are_refused_with_their_number() {
    for [text, contents, message] in rows(
        "
        table:file=x,mean=1ms,stddev=1ms | # remark/1 2/3 x4/ | line 3: 'x4' is not an integer from -32768 to 32767
        table:file=x,mean=1ms,stddev=1ms | 1/32768            | line 2: '32768' is not an integer from -32768 to 32767
        table:file=x,mean=1ms,stddev=1ms | 1.5                | line 1: '1.5' is not an integer from -32768 to 32767
        table:file=x,mean=1ms,stddev=1ms | # nothing/         | no entries
        samples:file=x                   | 1/2 -3/            | line 2: delay: '-3' is negative
        samples:file=x                   | 1/nan              | line 2: delay: 'nan' is not a number
        samples:file=x                   | 25h                | line 1: delay: '25h' is too large; the maximum is 24h
        samples:file=x                   |                    | no delays
        cdf:file=x                       | 1 0/3 0.5/2 1/     | line 3: delay is below the previous point's; sort the points
        cdf:file=x                       | 1 0.5/2 0.4        | line 2: probability is below the previous point's; sort the points
        cdf:file=x                       | 1 0/2 0.9          | the last probability is 0.9; it must be 1
        cdf:file=x                       | 1 0/2              | line 2: 1 fields; write a delay and a probability
        cdf:file=x                       | 1 1.5              | line 1: probability: '1.5' is too large; the maximum is 100%
        cdf:file=x                       | #                  | no points
        ",
    ) {
        let (model, _) = text.split_once(':').expect("a model");
        let refused = refusal(text, &contents.replace('/', "\n"));
        assert_eq!(refused, format!("{model}: file: x: {message}"), "{contents}");
    }
    assert_eq!(
        refusal("table:file=a.dist,mean=1ms,stddev=1ms,min=3ms", "-1 0 1"),
        "table: only 0.0e0 of the distribution is between min=3ms and max=86400s; the minimum \
         is 1e-6"
    );
    let error = DELAY.parse("samples:file=s.txt").unwrap_err().to_string();
    assert_eq!(
        error,
        "samples: file: s.txt: files cannot be read in this context"
    );
}
