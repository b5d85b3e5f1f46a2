//! Replays generated frames at exact times, through a link, into a capture file.
//!
//! ```sh
//! cargo run -p longwire-runtime --example replay -- out.pcap
//! ```

use std::error::Error;
use std::time::Duration;

use longwire_engine::{LinkSpec, Nanos, NoLoader};
use longwire_io::port::options::OpenOptions;
use longwire_io::port::registry;
use longwire_io::{PortError, ReceiveResult};
use longwire_runtime::replay::{ReplayConfig, ReplayOutput};
use longwire_runtime::{Feed, FeedFrame, FeedStatus, LinkSetup, NetworkPlan, RunConfig, start};

/// A feed of fifty frames, one per 10 ms. The last byte counts down.
struct Countdown {
    left: u8,
}

impl Feed for Countdown {
    fn feed(
        &mut self,
        max: usize,
        take: &mut dyn FnMut(FeedFrame<'_>),
    ) -> Result<ReceiveResult, PortError> {
        let mut frames = 0;
        while self.left > 0 && frames < max {
            let mut bytes = [0; 60];
            bytes[59] = self.left;
            take(FeedFrame {
                bytes: &bytes,
                wire_len: 60,
                due: Nanos::from_millis(10 * u64::from(50 - self.left)),
                output: 0,
            });
            self.left -= 1;
            frames += 1;
        }
        let end = self.left == 0;
        Ok(ReceiveResult { frames, end })
    }

    fn frame_max(&self) -> usize {
        60
    }

    fn status(&self) -> FeedStatus {
        FeedStatus {
            name: "countdown".to_owned(),
            fraction: Some(1.0 - f64::from(self.left) / 50.0),
            ..FeedStatus::default()
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let default = std::env::temp_dir().join("longwire-replay.pcap");
    let file = std::env::args()
        .nth(1)
        .unwrap_or(default.display().to_string());
    let port = registry::open(&format!("pcap:out={file}"), &OpenOptions::default())?;
    let spec: LinkSpec = "loss=10%".parse()?;
    let link = LinkSetup {
        name: "out".to_owned(),
        config: spec.build(&NoLoader)?,
    };
    let output = ReplayOutput {
        port,
        link,
        sent: None,
        cells: None,
    };
    let feed = Box::new(Countdown { left: 50 });
    let plan = NetworkPlan::replay(feed, vec![output], ReplayConfig::default());
    let replaying = start(plan, RunConfig::default(), None)?;
    while !replaying.wait(Duration::from_secs(1)) {}
    let report = replaying.stop();
    let link = &report.links[0];
    println!(
        "{} of {} frames were sent",
        link.traffic.packets_out, link.traffic.packets_in
    );
    if std::env::args().len() < 2 {
        std::fs::remove_file(&file)?;
    }
    Ok(())
}
