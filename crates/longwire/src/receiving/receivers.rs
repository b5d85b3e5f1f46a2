//! Receivers next to a replay: what each output sends is expected at a port on
//! the other side of the network under test.

use std::time::Duration;

use longwire_io::net::NetNamespace;
use longwire_runtime::RunReport;
use longwire_runtime::receive::{ReceiveConfig, ReceiveError, Receiving, Sent, sent_log};
use longwire_runtime::replay::ReplayOutput;

use crate::cli::ReceiverArgs;
use crate::report::stderr::print_line;
use crate::{Error, Globals};

/// Receivers that run, one for each output or none at all.
pub struct Receivers {
    running: Vec<Receiving>,
    wait: Duration,
}

impl Receivers {
    /// Opens them, and has the outputs tell them what they send.
    ///
    /// # Errors
    /// If a port or a namespace cannot be opened, or there are not as many as
    /// outputs.
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
            let receiving = receive(port, namespace, sent)?;
            if globals.verbose {
                receiving
                    .notes()
                    .iter()
                    .for_each(|note| print_line(format_args!("{note}")));
            }
            running.push(receiving);
        }
        Ok(Receivers {
            running,
            wait: Duration::from_nanos(args.receive_wait.as_nanos()),
        })
    }

    /// Waits for what is still under way, and adds what arrived to the report
    /// of the link that sent it.
    pub fn finish(self, report: &mut RunReport) {
        if self.running.is_empty() {
            return;
        }
        std::thread::sleep(self.wait);
        for (receiving, link) in self.running.into_iter().zip(&mut report.links) {
            let received = receiving.stop();
            if let Some(error) = &received.error {
                let error = format!("receiving at {}: {error}", received.port);
                report.error.get_or_insert(error);
            }
            link.received = Some(Box::new(received));
        }
    }
}

fn receive(port: &str, namespace: Option<&str>, sent: Sent) -> Result<Receiving, Error> {
    let open = || Receiving::of_sent(port, ReceiveConfig::default(), sent);
    let receiving = match namespace {
        None => open(),
        Some(name) => {
            let there = NetNamespace::named(name).and_then(|namespace| namespace.run(open));
            there.map_err(|error| Error::Failed(format!("--receive-netns {name}: {error}")))?
        }
    };
    receiving.map_err(|error| refused(port, error))
}

/// Returns the error of a command whose option `--receive` is refused.
pub fn refused(port: &str, error: ReceiveError) -> Error {
    match error {
        ReceiveError::Port(error) => Error::Port(error),
        error => Error::Failed(format!("--receive {port}: {error}")),
    }
}
