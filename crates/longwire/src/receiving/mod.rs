//! Receivers of sent frames. The frames of each output are expected at a port on the far side of
//! the network under test.

pub mod text;

pub use longwire_traffic::receive::ReceivedByLink;

use std::time::Duration;

use clap::Args;
use longwire_engine::Nanos;
use longwire_io::net::NetNamespace;
use longwire_runtime::RunReport;
use longwire_runtime::replay::ReplayOutput;
use longwire_runtime::sent::{IgnoredFields, SentFrames, sent_log};
use longwire_traffic::receive::{ReceiveConfig, ReceiveError, Receiver};

use crate::report::output::print_line;
use crate::{Error, Globals};

/// Running receivers, one per output; empty if nothing is received.
pub struct Receivers {
    running: Vec<Receiver>,
    wait: Duration,
}

impl Receivers {
    /// Opens the receivers. The outputs register the frames that they send.
    ///
    /// # Errors
    /// If a port or a namespace cannot be opened, or the number of receivers does not match the
    /// outputs.
    pub fn open(
        args: &ReceiverArgs,
        outputs: &mut [ReplayOutput],
        globals: &Globals,
    ) -> Result<Receivers, Error> {
        let ports = args.ports(outputs.len())?;
        let mut running = Vec::new();
        for ((port, namespace), output) in ports.into_iter().zip(outputs) {
            let (log, sent) = sent_log(&output.port.name, args.receive_ignore.unwrap_or_default());
            output.sent = Some(log);
            let receiver = receive(port, namespace, sent)?;
            for note in receiver.notes().iter().filter(|_| globals.verbose) {
                print_line(format_args!("{note}"));
            }
            running.push(receiver);
        }
        Ok(Receivers {
            running,
            wait: Duration::from_nanos(args.receive_wait.as_nanos()),
        })
    }

    /// Waits for frames in flight, and returns the receivers' reports. Adds receiver errors to the
    /// run's report.
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
    let open = || Receiver::open(port, ReceiveConfig::default(), Some(sent));
    let receiver = match namespace {
        None => open(),
        Some(name) => {
            let there = NetNamespace::named(name).and_then(|namespace| namespace.run(open));
            there.map_err(|error| Error::failed(format!("--receive-netns {name}: {error}")))?
        }
    };
    receiver.map_err(|error| refused(port, error))
}

/// Returns the error for a `--receive` that cannot be opened.
pub fn refused(port: &str, error: ReceiveError) -> Error {
    match error {
        ReceiveError::Port(error) => Error::Port(error),
        error => Error::failed(format!("--receive {port}: {error}")),
    }
}

const RECEIVE_HELP: &str = "\
Receive on this port, behind the network under test, and compare with the sent frames: loss, \
reordering, changes, delay. Give it once per --to: frames from the first --to are expected at the \
first --receive, and so on";

/// Receivers of the sent frames, on the other side of a network under test.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Receiving")]
pub struct ReceiverArgs {
    /// Receive on this port, behind the network under test, and compare with the sent frames; one
    /// per --to, in order
    #[arg(long, value_name = "PORT", long_help = RECEIVE_HELP)]
    pub receive: Vec<String>,

    /// Network namespace of the receiving port, named as in `ip netns`; one for all, or one per
    /// --receive
    #[arg(long, value_name = "NAME", requires = "receive")]
    pub receive_netns: Vec<String>,

    /// Time to wait for frames in flight after the last frame is sent
    #[arg(long, value_name = "TIME", requires = "receive")]
    #[arg(default_value = "500ms")]
    pub receive_wait: Nanos,

    /// Fields that may change in transit: mac, address, port, tos, ttl, checksum
    #[arg(long, value_name = "FIELDS", requires = "receive")]
    pub receive_ignore: Option<IgnoredFields>,
}

impl ReceiverArgs {
    /// Returns the receiving ports for `outputs` outputs, each with its namespace.
    ///
    /// # Errors
    /// If the number of ports differs.
    pub fn ports(&self, outputs: usize) -> Result<Vec<(&str, Option<&str>)>, Error> {
        let (ports, namespaces) = (self.receive.len(), self.receive_netns.len());
        if ports != 0 && ports != outputs {
            return Err(Error::usage(format!(
                "--receive was given {ports} times and --to {outputs} times; give one --receive \
                 for each --to, in the same order"
            )));
        }
        if namespaces > 1 && namespaces != ports {
            return Err(Error::usage(format!(
                "--receive-netns was given {namespaces} times for {ports} receiving ports; give it \
                 once for all, or once for each"
            )));
        }
        let namespace = |place: usize| {
            let own = self.receive_netns.get(place);
            own.or(self.receive_netns.first()).map(String::as_str)
        };
        let ports = self.receive.iter().enumerate();
        let ports = ports.map(|(place, port)| (port.as_str(), namespace(place)));
        Ok(ports.collect())
    }
}

#[cfg(test)]
mod tests {
    use longwire_testbed::support::words;

    use super::*;

    fn ports(receive: &str, netns: &str, outputs: usize) -> Result<String, String> {
        let owned = |names: &str| words(names).into_iter().map(str::to_owned).collect();
        let args = ReceiverArgs {
            receive: owned(receive),
            receive_netns: owned(netns),
            receive_wait: Nanos::ZERO,
            receive_ignore: None,
        };
        let ports = args.ports(outputs).map_err(|error| error.to_string())?;
        let shown = ports.iter().map(|(port, netns)| match netns {
            Some(netns) => format!("{port}@{netns}"),
            None => (*port).to_owned(),
        });
        Ok(shown.collect::<Vec<String>>().join(" "))
    }

    #[test]
    fn each_output_has_its_receiver_or_none_has() {
        for (receive, netns, shown) in [
            ("", "", ""),
            ("a b", "", "a b"),
            ("a b", "n", "a@n b@n"),
            ("a b", "n m", "a@n b@m"),
        ] {
            assert_eq!(ports(receive, netns, 2).as_deref(), Ok(shown));
        }
        let refused = ports("a", "", 2).expect_err("one receiver");
        assert!(refused.contains("--to 2 times"), "{refused}");
        let refused = ports("a", "n m", 1).expect_err("two namespaces");
        assert!(refused.contains("once for all"), "{refused}");
    }
}
