//! Custom ports: a live link with a delay of 20 ms between two standard library channels. Needs no
//! network device.
//!
//! ```sh
//! cargo run -p longwire-runtime --example custom_port
//! ```

use std::error::Error;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Instant;

use longwire_engine::{LinkSpec, Nanos, NoLoader};
use longwire_io::port::one_way::{DiscardTx, SilentRx};
use longwire_io::port::own::OwnRx;
use longwire_io::port::registry::{AnyRx, AnyTx, Port};
use longwire_io::{Event, PortError, PushResult, ReceiveResult, RxFrame, TxFrame, TxPort};
use longwire_runtime::{LinkSetup, NetworkPlan, RunConfig, start};

/// A port's receiving half: frames that the program sends to a channel.
struct Input {
    frames: Receiver<Vec<u8>>,
    /// Signalled after each frame, so that the run can sleep between frames.
    event: Arc<Event>,
}

impl OwnRx for Input {
    fn receive(
        &mut self,
        now: Nanos,
        max: usize,
        take: &mut dyn FnMut(RxFrame<'_>),
    ) -> Result<ReceiveResult, PortError> {
        self.event.clear();
        let mut frames = 0;
        for bytes in self.frames.try_iter().take(max) {
            frames += 1;
            take(RxFrame::whole(&bytes, now));
        }
        Ok(ReceiveResult { frames, end: false })
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.event.as_fd())
    }

    fn frame_max(&self) -> usize {
        1_514
    }
}

/// A port's sending half: a channel that the program reads.
struct Output(Sender<Vec<u8>>);

impl TxPort for Output {
    fn push(&mut self, frame: TxFrame<'_>) -> PushResult {
        // The frame is lost if the program has stopped reading.
        let _ = self.0.send(frame.bytes.to_vec());
        PushResult::Taken
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        Ok(0)
    }

    fn free_slots(&self) -> usize {
        64
    }

    fn unsent(&self) -> usize {
        0
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (sender, frames) = mpsc::channel();
    let (output, arrived) = mpsc::channel();
    let event = Arc::new(Event::new()?);
    let input = Input {
        frames,
        event: Arc::clone(&event),
    };
    let a = Port::with_halves(
        "a",
        AnyRx::Own(Box::new(input)),
        AnyTx::Discard(DiscardTx::default()),
    );
    let b = Port::with_halves(
        "b",
        AnyRx::Silent(SilentRx),
        AnyTx::Own(Box::new(Output(output))),
    );
    let spec: LinkSpec = "delay=20ms".parse()?;
    let link = LinkSetup {
        name: "ab".to_owned(),
        config: spec.build(&NoLoader)?,
    };
    let plan = NetworkPlan::link(a, b, link, None);
    let running = start(plan, RunConfig::default(), None)?;

    for number in 0..5_u8 {
        let sent = Instant::now();
        sender.send(vec![number; 60])?;
        event.signal();
        let frame = arrived.recv()?;
        println!("frame {} arrives after {:.2?}", frame[0], sent.elapsed());
    }
    let report = running.stop();
    println!(
        "{} frames, {} late",
        report.links[0].traffic.packets_out, report.links[0].artifacts["late"]
    );
    Ok(())
}
