//! Launch times on a device that holds no frames: a request is refused or ignored, and frames with
//! a launch time pass unchanged.

use std::sync::Arc;
use std::time::{Duration, Instant};

use longwire_engine::Nanos;
use longwire_testbed::support::{device, namespace, wire};

use super::super::lock::PortLock;
use super::launch::{FrameHolder, LEAD};
use super::tx::PacketTx;
use super::{OpenOptions, PortError, Purpose, open, open_sockets};
use crate::net::sysctl;
use crate::port::options::LaunchMode;
use crate::port::settings::Settings;
use crate::port::{PushResult, RxPort, TxFrame, TxPort, settings};

/// Connects two interfaces in the calling thread's namespace.
fn cable() {
    sysctl::set("ipv6/conf/default/disable_ipv6", "1").expect("IPv6");
    wire(device("near", None), device("far", None)).expect("a cable");
}

fn options(launch: LaunchMode) -> OpenOptions {
    OpenOptions {
        launch,
        purpose: Purpose::Send,
        ..OpenOptions::default()
    }
}

#[test]
fn a_device_that_holds_no_frames_is_recognized() {
    let Some(namespace) = namespace() else { return };
    namespace.run(cable).expect("a thread");
    let open = |launch| {
        namespace
            .run(|| open("near", &options(launch)))
            .expect("a thread")
    };
    for launch in [LaunchMode::Off, LaunchMode::Device] {
        let port = open(launch).expect("opens");
        assert_eq!(port.tx.launch_lead(), None);
        let notes = port.notes;
        assert!(!notes.iter().any(|note| note.contains("held")), "{notes:?}");
    }
    let error = open(LaunchMode::Queue).err().expect("nothing holds frames");
    assert!(matches!(error, PortError::Unsupported { .. }));
    let advice = "tc qdisc replace dev near root fq";
    assert!(error.to_string().contains(advice), "{error}");
}

#[test]
fn frames_with_a_launch_time_pass_whole_and_in_order() {
    let Some(namespace) = namespace() else { return };
    namespace.run(cable).expect("a thread");
    for clock in [libc::CLOCK_MONOTONIC, libc::CLOCK_TAI] {
        let holder = FrameHolder {
            clock,
            device: false,
        };
        let (mut tx, mut far) = namespace
            .run(|| {
                let near = settings::find_up("packet:near", "near").expect("is there");
                let mut notes = Vec::new();
                let sockets =
                    open_sockets("packet:near", &near, (Some(holder), Some(1518)), &mut notes);
                let settings = Arc::new(Settings::untouched(PortLock::none()));
                (
                    PacketTx::new(sockets.expect("sockets"), "packet:near", &near, settings),
                    open("far", &OpenOptions::default())
                        .expect("the far end")
                        .rx
                        .expect("it receives"),
                )
            })
            .expect("a thread");
        assert_eq!(tx.launch_lead(), Some(LEAD));
        assert!(tx.sample_every(3).is_some());
        let frames: Vec<Vec<u8>> = (0..90u8).map(|n| vec![n; 60 + usize::from(n)]).collect();
        for bytes in &frames {
            let release = Nanos::from_nanos(u64::from(bytes[0]));
            while tx.push(TxFrame::whole(bytes, release)) == PushResult::Full {
                tx.flush().expect("sends");
            }
        }
        tx.flush().expect("sends");
        let (mut got, mut stamps) = (Vec::new(), Vec::new());
        let start = Instant::now();
        while got.len() < frames.len() && start.elapsed() < Duration::from_secs(2) {
            let keep = &mut |frame: crate::port::RxFrame<'_>| got.push(frame.bytes.to_vec());
            far.receive(Nanos::MAX, 64, keep).expect("receives");
            tx.sampled(&mut |stamp| stamps.push(stamp.release.as_nanos()));
        }
        assert!(got == frames, "{} of {}", got.len(), frames.len());
        assert_eq!(stamps, (0..90).step_by(3).collect::<Vec<u64>>());
        assert_eq!(tx.losses(), Default::default());
    }
}
