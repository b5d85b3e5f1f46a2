//! Options for receiving the sent frames in the same process.

use clap::Args;
use longwire_engine::Nanos;
use longwire_runtime::sent::IgnoredFields;

use crate::Error;

/// Receivers of the sent frames, on the other side of a network under test.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Receiving")]
pub struct ReceiverArgs {
    /// Receive here meanwhile, on the other side of the network under test,
    /// and compare; once for each --to, in their order
    #[arg(
        long,
        value_name = "PORT",
        long_help = "Receive at this port meanwhile, on the other side of the network under test, \
                     and compare what arrives with what was sent: loss, disorder, changes, \
                     delay. Given as often as --to: what the first --to sends is expected at the \
                     first --receive, and so on"
    )]
    pub receive: Vec<String>,

    /// The network namespace of the receiving port, as `ip netns` names it;
    /// once for all, or for each --receive
    #[arg(long, value_name = "NAME", requires = "receive")]
    pub receive_netns: Vec<String>,

    /// How long to wait for frames under way when all frames have been sent
    #[arg(long, value_name = "TIME", requires = "receive")]
    #[arg(default_value = "500ms")]
    pub receive_wait: Nanos,

    /// Fields that may change on the way: mac, address, port, tos, ttl,
    /// checksum
    #[arg(long, value_name = "FIELDS", requires = "receive")]
    pub receive_ignore: Option<IgnoredFields>,
}

impl ReceiverArgs {
    /// Returns the receiving ports for `outputs` outputs, each with its namespace.
    ///
    /// # Errors
    /// If their number differs.
    pub fn ports(&self, outputs: usize) -> Result<Vec<(&str, Option<&str>)>, Error> {
        let (ports, namespaces) = (self.receive.len(), self.receive_netns.len());
        if ports != 0 && ports != outputs {
            return Err(Error::Usage(format!(
                "--receive was given {ports} times and --to {outputs} times: the frames of each \
                 --to are expected at the --receive in the same position"
            )));
        }
        if namespaces > 1 && namespaces != ports {
            return Err(Error::Usage(format!(
                "--receive-netns was given {namespaces} times for {ports} receiving ports: give \
                 it once for all, or once for each"
            )));
        }
        let namespace = |place: usize| {
            let own = self.receive_netns.get(place);
            own.or(self.receive_netns.first()).map(String::as_str)
        };
        let ports = self.receive.iter().enumerate();
        Ok(ports
            .map(|(place, port)| (port.as_str(), namespace(place)))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ports(receive: &[&str], netns: &[&str], outputs: usize) -> Result<String, String> {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
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
        assert_eq!(ports(&[], &[], 2).as_deref(), Ok(""));
        assert_eq!(ports(&["a", "b"], &[], 2).as_deref(), Ok("a b"));
        assert_eq!(ports(&["a", "b"], &["n"], 2).as_deref(), Ok("a@n b@n"));
        assert_eq!(ports(&["a", "b"], &["n", "m"], 2).as_deref(), Ok("a@n b@m"));
        let refused = ports(&["a"], &[], 2).err().unwrap_or_default();
        assert!(refused.contains("--to 2 times"), "{refused}");
        let refused = ports(&["a"], &["n", "m"], 1).err().unwrap_or_default();
        assert!(refused.contains("once for all"), "{refused}");
    }
}
