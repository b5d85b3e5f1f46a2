//! Presets: each builds a link, cites its sources and matches its summary.

use longwire_engine::models::rate::Rate;
use longwire_engine::presets::{self, Duplex, PRESETS};
use longwire_engine::{LinkConfig, Nanos, NoLoader};
use longwire_testbed::support::words;

use crate::common::{files::file, spec};

fn configs(duplex: &Duplex) -> [LinkConfig; 2] {
    [&duplex.up, &duplex.down].map(|spec| spec.build(&NoLoader).expect("no plugins"))
}

#[test]
fn every_preset_is_a_link_with_its_sources() {
    let wanted =
        words("adsl vdsl cable fiber lte 5g wifi edge 3g geo-satellite starlink dialup datacenter");
    for name in &wanted {
        assert!(PRESETS.iter().any(|preset| preset.name == *name), "{name}");
    }
    assert_eq!(PRESETS.len(), wanted.len());
    for preset in &PRESETS {
        let name = preset.name;
        assert!(
            !preset.sources.is_empty() && preset.assumptions.len() > 10,
            "{name}"
        );
        assert!(
            preset.sources.iter().all(|source| source.len() > 5),
            "{name}"
        );
        assert!(
            !preset.summary.ends_with('.') && !preset.summary.contains("  "),
            "{name}"
        );
        let duplex = presets::read(name, &NoLoader).unwrap();
        assert_eq!(duplex, preset.options());
        for config in configs(&duplex) {
            assert!(config.rate.bit_rate().is_some(), "{name} has no rate");
            assert_eq!(
                config.queue_undersized(),
                None,
                "{name}: its queue is too small for TCP"
            );
        }
    }
}

/// Round-trip times in milliseconds, from the summaries.
#[test]
fn round_trips_are_those_of_the_summaries() {
    for (name, millis) in [
        ("dialup", 120.0),
        ("edge", 840.0),
        ("3g", 106.6),
        ("lte", 86.4),
        ("5g", 44.0),
        ("adsl", 50.0),
        ("vdsl", 10.0),
        ("cable", 10.0),
        ("fiber", 3.0),
        ("geo-satellite", 600.0),
        ("starlink", 50.0),
        ("datacenter", 0.1),
    ] {
        let [up, down] = configs(&presets::read(name, &NoLoader).unwrap());
        let round_trip = up.delay.mean().saturating_add(down.delay.mean());
        assert_eq!(
            round_trip,
            Nanos::from_nanos((millis * 1e6) as u64),
            "{name}"
        );
    }
    let [up, _] = configs(&presets::read("wifi", &NoLoader).unwrap());
    assert!(matches!(up.rate, Rate::Model(_)));
}

#[test]
fn unknown_names_list_the_known_ones() {
    let refusal = |text: &str| presets::read(text, &NoLoader).unwrap_err().to_string();
    assert!(refusal("isdn").starts_with("unknown preset 'isdn'; known: dialup, edge"));
    assert!(refusal("").contains("known:"));
    assert_eq!(
        refusal("lte:rate=1mbit"),
        "lte takes no parameters; other options override its values"
    );
    assert!(refusal("errant").contains("'file' is required"));
    assert!(refusal("errant:file=x,city=oslo").contains("errant has no parameter 'city'"));
}

const PHONES: &str = "\
operator,country,rat,signal_quality,download_kbps,upload_kbps,latency_ms_avg,latency_ms_stdev
one,norway,3G,good,12242.951087747222,3441.331787874993,98.79122555107779,56.95
one,norway,4G,good,35638.47807286335,16417.91154955117,89.61577918141055,40.09
two,sweden,4G,bad,0,1,2,3
";

#[test]
fn errants_rows_are_links() {
    let read = |parameters: &str| {
        let preset = format!("errant:file=profiles.csv{parameters}");
        presets::read(&preset, &file(PHONES))
    };
    let duplex = read(",operator=one,country=norway,rat=4g,quality=good").unwrap();
    assert_eq!(read(",rat=4G,quality=good"), Ok(duplex.clone()));
    assert_eq!(duplex.down, spec("rate=35.638478mbit delay=44.808ms"));
    assert_eq!(duplex.up, spec("rate=16.417912mbit delay=44.808ms"));
    configs(&duplex);

    let refusal = |parameters: &str| read(parameters).unwrap_err().to_string();
    assert!(
        refusal(",operator=three").contains("no row for three; rows exist for one/norway/3G/good")
    );
    assert!(refusal(",operator=one").contains("several rows for one; set more"));
    assert!(refusal("").contains("several rows for any kind"));
    assert!(refusal(",operator=two").contains("line 4: rate: zero"));
    let broken = |table: &str| {
        let read = presets::read("errant:file=t", &file(table));
        read.unwrap_err().to_string()
    };
    assert!(broken("operator,country\n").contains("line 1: no column 'rat'"));
    for (row, message) in [
        ("a,b,c,d,1,2\n", "line 2: no field 7"),
        ("a,b,c,d,1,x,3\n", "line 2: rate: 'x' is not a number"),
        ("a,b,c,d,1,2,-3\n", "line 2: delay: '-3' is negative"),
        ("", "no row for any kind"),
    ] {
        let header = PHONES.lines().next().unwrap_or_default();
        let table = format!("{header}\n{row}");
        assert!(
            broken(&table).contains(message),
            "{row}: {}",
            broken(&table)
        );
    }
}
