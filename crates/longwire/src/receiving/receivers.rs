//! Receivers of a replay: the frames of each output are expected at a port on the other
//! side of the network under test.

use std::time::Duration;

use longwire_io::net::NetNamespace;
use longwire_runtime::RunReport;
use longwire_runtime::replay::ReplayOutput;
use longwire_runtime::sent::{SentFrames, sent_log};
use longwire_traffic::receive::{ReceiveConfig, ReceiveError, Receiver};

use super::ReceivedByLink;
use crate::cli::ReceiverArgs;
use crate::report::stderr::print_line;
use crate::{Error, Globals};

/// Running receivers: one per output, or none.
pub struct Receivers {
    running: Vec<Receiver>,
    wait: Duration,
}

impl Receivers {
    /// Opens the receivers; the outputs register the frames that they send.
    ///
    /// # Errors
    /// If a port or a namespace cannot be opened, or there is not one receiver per
    /// output.
    pub fn open(
        args: &ReceiverArgs,
        outputs: &mut [ReplayOutput],
        globals: &Globals,
    ) -> Result<Receivers, Error> {
        let ports = args.ports(outputs.len())?;
        let mut running = Vec::new();
        for ((port, namespace), output) in ports.into_iter().zip(outputs) {
            let ignored = args.receive_ignore.unwrap_or_default();
            let (log, sent) = sent_log(&output.port.name, ignored);
            output.sent = Some(log);
            let receiver = receive(port, namespace, sent)?;
            if globals.verbose {
                receiver
                    .notes()
                    .iter()
                    .for_each(|note| print_line(format_args!("{note}")));
            }
            running.push(receiver);
        }
        Ok(Receivers {
            running,
            wait: Duration::from_nanos(args.receive_wait.as_nanos()),
        })
    }

    /// Waits for frames in flight and returns the receivers' reports. Their errors are
    /// added to the report of the run.
    pub fn finish(self, report: &mut RunReport) -> ReceivedByLink {
        let mut all = ReceivedByLink::new();
        if self.running.is_empty() {
            return all;
        }
        std::thread::sleep(self.wait);
        for (receiver, link) in self.running.into_iter().zip(&report.links) {
            let received = receiver.stop();
            if let Some(error) = &received.error {
                let error = format!("receiving at {}: {error}", received.port);
                report.error.get_or_insert(error);
            }
            all.insert(link.name.clone(), received);
        }
        all
    }
}

fn receive(port: &str, namespace: Option<&str>, sent: SentFrames) -> Result<Receiver, Error> {
    let open = || Receiver::of_sent(port, ReceiveConfig::default(), sent);
    let receiver = match namespace {
        None => open(),
        Some(name) => {
            let there = NetNamespace::named(name).and_then(|namespace| namespace.run(open));
            there.map_err(|error| Error::failed(format!("--receive-netns {name}: {error}")))?
        }
    };
    receiver.map_err(|error| refused(port, error))
}

/// Returns the error for a refused `--receive`.
pub fn refused(port: &str, error: ReceiveError) -> Error {
    match error {
        ReceiveError::Port(error) => Error::Port(error),
        error => Error::failed(format!("--receive {port}: {error}")),
    }
}
