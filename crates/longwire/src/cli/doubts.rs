//! Warnings about rates that were probably mistyped on the command line.

use std::any::TypeId;
use std::ffi::OsString;

use clap::{Arg, CommandFactory};
use longwire_engine::BitRate;
use longwire_traffic::arrivals::LoadRate;

use super::{Cli, spelling};

/// Profile option that takes a model with rates.
const SERVICE: &str = "service";

/// Returns a warning for each rate in bytes that was probably meant in bits, such as `10mbps`.
/// Skips link options, whose models warn themselves.
pub(super) fn of_rates(arguments: &[OsString]) -> Vec<String> {
    let mut root = Cli::command();
    let command = spelling::command(&mut root, arguments);
    let options: Vec<&Arg> = command.get_arguments().filter(|arg| is_rate(arg)).collect();
    let doubts = spelling::with_values(arguments).filter_map(|(name, value)| {
        options
            .iter()
            .find(|option| option.get_long() == Some(name))?;
        let doubt = value.split([',', ':', '=']).find_map(BitRate::doubt)?;
        Some(format!("--{name}: {doubt}"))
    });
    doubts.collect()
}

fn is_rate(option: &Arg) -> bool {
    let kind = option.get_value_parser().type_id();
    let rates = [TypeId::of::<BitRate>(), TypeId::of::<LoadRate>()];
    rates.iter().any(|rate| kind == *rate) || option.get_long() == Some(SERVICE)
}

#[cfg(test)]
mod tests {
    use longwire_testbed::support::rows;

    use super::*;

    #[test]
    fn every_option_with_a_rate_is_warned_of_once() {
        let cases = rows(
            "
            generate --to x --rate 100mbps                            | --rate
            generate --to x --rate=100mbps                            | --rate
            replay t.pcap --to x --rate 100mbps                       | --rate
            generate --to x --profile y1564 --cir 100mbps             | --cir
            generate --to x --profile y1564 --service a:cir=100mbps   | --service
            run a b --gap-frames 100mbps                              | --gap-frames
            bench rate --rate 1mbit,100mbps                           | --rate
            generate --to x --rate 100mbit                            |
            generate --to x --rate 100MBps                            |
            replay t.pcap --to x --rate 1mpps                         |
            exec -- generate --rate 100mbps                           |
            simulate a.pcap b.pcap --rate 10mbps                      |
            ",
        );
        for [line, option] in cases {
            let words = ["longwire"].into_iter().chain(line.split_whitespace());
            let cli = Cli::from_arguments(words.map(OsString::from).collect());
            let cli = cli.unwrap_or_else(|error| panic!("{line}: {error}"));
            let wanted = (!option.is_empty()).then(|| {
                format!(
                    "{option}: 100mbps is 800mbit: as in tc, bps means bytes per second; write \
                     100mbit for bits, or 800mbit for bytes"
                )
            });
            assert_eq!(cli.globals.doubts, Vec::from_iter(wanted), "{line}");
        }
    }
}
