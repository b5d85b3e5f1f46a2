//! `xdp:IF` against the kernel, over veth pairs. Without the right to make
//! namespaces and to load XDP programs the tests say so and pass, except in
//! CI, where that is a failure.

#[path = "common/pair.rs"]
#[allow(dead_code, missing_docs, reason = "each test uses a part of it")]
mod pair;

use longwire_engine::Nanos;
use longwire_io::port::options::{OpenOptions, XdpMode};
use longwire_io::port::packet::{self, PacketPort};
use longwire_io::port::xdp::{self, XdpPort};
use longwire_io::{RxPort, TxPort};
use pair::{PORT, Pair, STATION, frame, now, receive_until, send};

fn open_as(pair: &Pair, xdp_mode: XdpMode) -> XdpPort {
    let options = OpenOptions {
        xdp_mode,
        ..OpenOptions::default()
    };
    pair.in_port(|| xdp::open(PORT, &options)).unwrap()
}

fn open(pair: &Pair) -> XdpPort {
    open_as(pair, XdpMode::Best)
}

fn open_station(pair: &Pair) -> PacketPort {
    pair.in_station(|| packet::open(STATION, &OpenOptions::default()))
        .unwrap()
}

#[test]
fn frames_pass_both_ways_whole_and_in_order() {
    let Some(pair) = Pair::new() else { return };
    for mode in [XdpMode::Native, XdpMode::Generic] {
        let mut port = open_as(&pair, mode);
        let mut station = open_station(&pair);
        eprintln!("{:?}", port.notes);
        let sent: Vec<_> = (0..200)
            .map(|n| frame(n, [18, 60, 64, 1000, 1514][n as usize % 5]))
            .collect();
        for bytes in &sent {
            send(&mut station.tx, bytes);
        }
        let got = receive_until(&mut port.rx, |got| got.len() >= sent.len());
        let got: Vec<_> = got.into_iter().map(|kept| kept.bytes).collect();
        assert!(got == sent, "{} of {} frames", got.len(), sent.len());
        for bytes in &sent {
            send(&mut port.tx, bytes);
        }
        let got = receive_until(&mut station.rx, |got| got.len() >= sent.len());
        let got: Vec<_> = got.into_iter().map(|kept| kept.bytes).collect();
        assert!(got == sent, "{} of {} frames", got.len(), sent.len());
        assert_eq!(port.rx.losses(), Default::default());
        assert_eq!(port.tx.losses(), Default::default());
    }
}

#[test]
fn arrivals_are_tight_and_in_order() {
    let Some(pair) = Pair::new() else { return };
    for mode in [XdpMode::Native, XdpMode::Generic] {
        let mut port = open_as(&pair, mode);
        let mut station = open_station(&pair);
        let mut late = Vec::new();
        let mut last = Nanos::ZERO;
        for n in 0..2000 {
            let before = now();
            send(&mut station.tx, &frame(n, 64));
            let got = receive_until(&mut port.rx, |got| !got.is_empty());
            let after = now();
            let arrival = got[0].arrival;
            assert!(arrival >= last && arrival <= after);
            assert!(arrival >= before);
            late.push(after.saturating_sub(arrival).as_nanos());
            last = arrival;
        }
        late.sort_unstable();
        eprintln!(
            "{mode:?}: received − arrival: p50 {} p99 {} ns",
            late[1000], late[1980]
        );
        assert!(late[1000] < 200_000, "p50 {} ns", late[1000]);
    }
}
