//! Tests of the options that filter, alter and send frames.

use clap::Parser;
use longwire_packet::alter::About;
use longwire_testbed::support::{rows, words};

use super::*;
use crate::cli::PumpArgs;

#[derive(Debug, Parser)]
struct Replay {
    #[command(flatten)]
    pump: PumpArgs,
    #[command(flatten)]
    alter: AlterArgs,
}

fn parse(options: &str) -> Result<AlterArgs, String> {
    let words = words("replay --to null").into_iter().chain(words(options));
    let replay = Replay::try_parse_from(words).map_err(|error| error.to_string())?;
    Ok(replay.alter)
}

#[test]
fn options_reach_the_frames() {
    let plain = parse("").unwrap();
    assert!(plain.filter.is_none() && plain.split.is_none());
    assert!(!plain.alterations(1).unwrap().is_nothing());
    let kept = parse("--truncated keep").unwrap();
    assert!(kept.alterations(1).unwrap().is_nothing());
    let wanted = parse(
        "--ttl -1 --map 10.0.0.0/8=11.0.0.0/8 --dst-mac 02:00:00:00:00:09 --vlan push:7 \
         --vlan push:8 --dscp ef",
    );
    let mut frame = vec![
        2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 20, 0, 0, 0, 0,
    ];
    frame.extend([64, 59, 0, 0, 10, 1, 2, 3, 192, 0, 2, 7]);
    let mut seen = Vec::new();
    let mut alterations = wanted.unwrap().alterations(1).unwrap();
    let len = frame.len() as u32;
    alterations.apply(&frame, len, About::default(), &mut |bytes, _| {
        seen.extend(bytes)
    });
    assert_eq!(seen[..6], [2, 0, 0, 0, 0, 9]);
    assert_eq!(seen[12..22], [0x81, 0, 0, 8, 0x81, 0, 0, 7, 8, 0]);
    assert_eq!((seen[23], seen[30], seen[34]), (46 << 2, 63, 11));
}

/// Non-IP frames are sent by default, unless addresses are anonymised; an option overrides this.
#[test]
fn the_option_decides_about_unaltered_frames() {
    let key = "11".repeat(32);
    let lldp = [&[2; 12][..], &[0x88, 0xcc], &[0; 40]].concat();
    let tunnel = {
        let mut frame = vec![2; 12];
        frame.extend([
            8, 0, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, 4, 0, 0, 10, 1, 2, 3, 10, 9, 9, 9,
        ]);
        frame.extend([
            0x45, 0, 0, 20, 0, 0, 0, 0, 64, 59, 0, 0, 10, 1, 2, 3, 10, 9, 9, 9,
        ]);
        frame
    };
    let map = "--map 10.0.0.0/8=11.0.0.0/8";
    for (options, sent) in [
        (map.to_owned(), [1, 1]),
        (format!("{map} --unaltered drop"), [0, 0]),
        (format!("--anonymize {key}"), [0, 0]),
        (format!("--anonymize {key} --inner"), [0, 1]),
        (format!("--anonymize {key} --unaltered send"), [1, 1]),
    ] {
        let mut alterations = parse(&options).unwrap().alterations(1).unwrap();
        let frames = [&lldp, &tunnel].map(|frame| {
            let mut taken = 0;
            let len = frame.len() as u32;
            alterations.apply(frame, len, About::default(), &mut |_, _| taken += 1);
            taken
        });
        assert_eq!(frames, sent, "{options:?}");
    }
}

#[test]
fn conflicting_options_are_refused_with_a_remedy() {
    let two = "--src-mac 02:00:00:00:00:01,02:00:00:00:00:02";
    let error = parse(two).unwrap().alterations(1).unwrap_err().to_string();
    assert!(error.contains("need --split"), "{error}");
    let sided = parse(&format!("{two} --split syn")).unwrap();
    assert!(sided.alterations(1).is_ok());
    let refused = rows(
        "
        --map 10.0.0.0/8   | OLD=NEW
        --filter tcp[13    | column 7
        --split nobody     | client=NETWORK
        --truncated some   | one of zeros, random, pattern:HEX
        --anonymize 1234   | 64 hexadecimal digits
        --unaltered keep   | one of send, drop
        --fit-mtu 10       | 68..=65535
        --mtu-action drop  | --fit-mtu
        ",
    );
    for [options, message] in refused {
        let error = parse(options).unwrap_err();
        assert!(error.contains(message), "{options}: {error}");
    }
}
