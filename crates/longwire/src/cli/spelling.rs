//! Hints for options of other tools and of earlier versions.

use std::error::Error;
use std::ffi::OsString;

use clap::error::{ContextKind, ErrorKind};
use clap::{Command, CommandFactory};
use longwire_runtime::suggest;

use super::Cli;
use super::netem::{self, DELAY};

/// Options of other tools and earlier versions: name, equivalent option, example value. If a name
/// occurs twice, the first entry whose option exists in the command applies.
const OTHERS: [(&str, &str, &str); 37] = [
    ("latency", DELAY, "20ms"),
    ("rtt", DELAY, "20ms"),
    (JITTER, DELAY, "uniform:min=15ms,max=25ms"),
    ("bandwidth", "rate", "10mbit"),
    ("bw", "rate", "10mbit"),
    ("throughput", "rate", "10mbit"),
    ("speed", "rate", "10mbit"),
    ("link-rate", "rate", "10mbit"),
    ("pps", "rate", "1kpps"),
    ("packet-loss", "loss", "1%"),
    ("plr", "loss", "1%"),
    ("drop", "loss", "1%"),
    ("limit", "count", "100"),
    ("limit", "queue", "100p"),
    ("buffer", "queue", "100p"),
    ("buffer-size", "queue", "64kb"),
    ("corruption", "corrupt", "0.1%"),
    ("duplication", "duplicate", "1%"),
    ("reordering", "reorder", "1%,5ms"),
    ("duration", "time", "10s"),
    ("time", "until", "10s"),
    ("timeout", "time", "10s"),
    ("source", "src-ip", "10.0.0.1"),
    ("src", "src-ip", "10.0.0.1"),
    ("destination", "dst-ip", "10.0.0.1"),
    ("dst", "dst-ip", "10.0.0.1"),
    ("intf1", "to", "eth1"),
    ("packets", "count", "100"),
    ("upload", "up-rate", "2mbit"),
    ("download", "down-rate", "20mbit"),
    // Options of tcpreplay and tcprewrite; docs/replay.md lists them all.
    ("intf2", "to", "eth2"),
    ("mbps", "rate", "100mbit"),
    ("multiplier", "speed", "2x"),
    ("maxsleep", "gap-cap", "1s"),
    ("enet-smac", "src-mac", "02:00:00:00:00:01"),
    ("enet-dmac", "dst-mac", "02:00:00:00:00:02"),
    ("pnat", "map", "10.0.0.0/8=192.168.0.0/16"),
];

/// Option for jitter in other tools; Longwire uses a delay model.
const JITTER: &str = "jitter";

/// Prefixes of options for one direction.
const PREFIXES: [&str; 4] = ["up-", "down-", "ab-", "ba-"];

/// The message of [`core::num::ParseIntError`], which suggests no remedy.
const NO_DIGIT: &str = "invalid digit found in string";

/// Adds a hint to the error if there is one.
pub(super) fn explain(error: clap::Error, arguments: &[OsString]) -> clap::Error {
    let text = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let message = match error.kind() {
        ErrorKind::UnknownArgument => match text(ContextKind::InvalidArg) {
            option if option.starts_with("--") => match unknown(&option, arguments) {
                None => return without_far_fetched(error),
                message => message,
            },
            _ => netem_values(arguments),
        },
        ErrorKind::InvalidSubcommand => match &*text(ContextKind::InvalidSubcommand) {
            "down" => Some("unknown command 'down'; `off` turns links off".to_owned()),
            "up" => Some("unknown command 'up'; `on` turns links on".to_owned()),
            _ => None,
        },
        ErrorKind::ValueValidation
            if error
                .source()
                .is_some_and(|source| source.to_string() == NO_DIGIT) =>
        {
            Some(format!(
                "invalid value '{}' for '{}': not a whole number, such as 7",
                text(ContextKind::InvalidValue),
                text(ContextKind::InvalidArg)
            ))
        }
        _ => None,
    };
    let Some(message) = message else {
        return error;
    };
    refuse(error.kind(), &message, arguments)
}

/// Returns an error for the command that the arguments name.
pub(super) fn refuse(kind: ErrorKind, message: &str, arguments: &[OsString]) -> clap::Error {
    let mut root = Cli::command();
    root.build();
    command(&mut root, arguments).error(kind, message)
}

/// Returns the command that the arguments name.
pub(super) fn command<'c>(root: &'c mut Command, arguments: &[OsString]) -> &'c mut Command {
    let mut found = root;
    for word in arguments.iter().skip(1) {
        if found.find_subcommand(word).is_some() {
            found = found
                .find_subcommand_mut(word)
                .unwrap_or_else(|| unreachable!("it has just been found"));
        }
    }
    found
}

/// Returns the message for an option of another tool.
fn unknown(given: &str, arguments: &[OsString]) -> Option<String> {
    let name = given.strip_prefix("--")?;
    let name = name.split_once('=').map_or(name, |(name, _)| name);
    let prefix = PREFIXES.iter().find(|prefix| name.starts_with(**prefix));
    let prefix = prefix.copied().unwrap_or_default();
    let plain = &name[prefix.len()..];
    let value_of = |name: &str| with_values(arguments).find(|(option, _)| *option == name);
    if plain == JITTER
        && let Some((_, jitter)) = value_of(name)
        && let Some((_, delay)) = value_of(&format!("{prefix}{DELAY}"))
        && let Some(model) = netem::jitter(delay, jitter)
    {
        return Some(format!(
            "unknown option '{given}'; --{prefix}{DELAY} sets both: {model}"
        ));
    }
    let mut root = Cli::command();
    let command = command(&mut root, arguments);
    let others = OTHERS.iter().filter(|(other, ..)| *other == plain);
    let mut others = others.filter(|(_, option, _)| has_option(command, option));
    let (_, option, value) = others.next()?;
    Some(format!(
        "unknown option '{given}'; try --{prefix}{option} {value}"
    ))
}

fn has_option(command: &Command, name: &str) -> bool {
    let mut options = command.get_arguments();
    options.any(|option| option.get_long() == Some(name))
}

/// Returns the long options with their values: `--NAME=VALUE`, or `--NAME` with the next word.
pub(super) fn with_values(arguments: &[OsString]) -> impl Iterator<Item = (&str, &str)> {
    arguments.iter().enumerate().filter_map(|(index, word)| {
        let word = word.to_str()?.strip_prefix("--")?;
        let next = || Some((word, arguments.get(index + 1)?.to_str()?));
        word.split_once('=').or_else(next)
    })
}

/// Removes implausible suggestions: clap's metric favours common prefixes.
fn without_far_fetched(mut error: clap::Error) -> clap::Error {
    let text = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let [given, suggested] = [ContextKind::InvalidArg, ContextKind::SuggestedArg].map(text);
    if suggest::closest(&given, [suggested.as_str()]).is_none() {
        error.remove(ContextKind::SuggestedArg);
    }
    error
}

/// Returns the message for netem's `--delay 20ms 5ms` or `--loss 1% 25%`.
pub(super) fn netem_values(arguments: &[OsString]) -> Option<String> {
    arguments.windows(3).find_map(|words| {
        let [option, first, second] = words else {
            return None;
        };
        let option = option.to_str()?.strip_prefix("--")?;
        let prefix = PREFIXES
            .iter()
            .find_map(|prefix| option.strip_prefix(prefix));
        let (first, second) = (first.to_str()?, second.to_str()?);
        let model = netem::two_values(prefix.unwrap_or(option), first, second)?;
        Some(format!(
            "--{option} takes one value, not '{first} {second}': {model}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use longwire_testbed::support::{rows, words};

    use super::*;

    const FINE: &str = "it is right";

    /// Returns the error message for a command line.
    fn message(line: &str) -> String {
        let line = format!("longwire {line}");
        let words = words(&line).into_iter().map(OsString::from);
        let parsed = Cli::from_arguments(words.collect());
        parsed.map_or_else(|error| error.to_string(), |_| FINE.to_owned())
    }

    /// Returns the first line of the error message.
    fn said(line: &str) -> String {
        message(line).lines().next().unwrap_or_default().to_owned()
    }

    #[test]
    fn options_of_other_tools_lead_to_those_here() {
        let cases = rows(
            "
            exec --latency 20ms -- true                 | --delay 20ms
            exec --up-bandwidth=1mbit -- true           | --up-rate 10mbit
            exec --jitter 5ms                           | --delay uniform:min=15ms,max=25ms
            exec --upload 2mbit                         | --up-rate 2mbit
            replay t.pcap --to x --mbps=100             | --rate 100mbit
            replay t.pcap --to x --multiplier 2.0       | --speed 2x
            replay t.pcap --to x --maxsleep 1000        | --gap-cap 1s
            run a b --packet-loss 5                     | --loss 1%
            run a b --limit 5                           | --queue 100p
            run a b --link-rate 1mbit                   | --rate 10mbit
            replay t.pcap --to x --limit 5              | --count 100
            replay t.pcap --to x --time 5s              | --until 10s
            generate --to x --source 10.0.0.1           | --src-ip 10.0.0.1
            ctl add x --match in-port=a --latency 1ms   | --delay 20ms
            ",
        );
        for [line, option] in cases {
            let said = said(line);
            assert!(said.contains("unknown option '--"), "{line}: {said}");
            assert!(said.ends_with(&format!("; try {option}")), "{line}: {said}");
        }
        // clap reports other typos, and options after the command belong to the command.
        assert!(said("exec --dely 1ms").contains("unexpected argument"));
        assert_eq!(said("exec -- ping --latency"), FINE);
    }

    #[test]
    fn states_are_on_and_off() {
        assert!(said("ctl down link").ends_with("`off` turns links off"));
        assert!(said("ctl up link").ends_with("`on` turns links on"));
    }

    #[test]
    fn a_second_value_is_explained_with_the_model() {
        let models = [
            "uniform:min=95ms,max=105ms as in netem, or normal:mean=100ms,stddev=5ms",
            "uniform:min=15ms,max=25ms as in netem, or normal:mean=20ms,stddev=5ms",
            "is a model: correlated:rate=1%,correlation=25%",
        ];
        let cases = rows(
            "
            0 | exec --jitter 5ms --delay 100ms              |
            0 | exec --delay=100ms --jitter=5ms -- true      |
            0 | run a b --up-delay 100ms --up-jitter 5ms     |
            1 | exec --delay 20ms 5ms -- ping far            | takes one value, not '20ms 5ms'
            1 | exec --up-delay 20ms 5ms ping far            | takes one value, not '20ms 5ms'
            1 | run a b --delay 20ms 5ms                     | takes one value, not '20ms 5ms'
            1 | simulate --delay 20ms 5ms in.pcap out.pcap   | takes one value, not '20ms 5ms'
            1 | exec --delay '20ms,5ms'                      |
            1 | exec --delay '20ms, 5ms'                     |
            1 | exec --delay '20ms 5ms'                      |
            2 | exec --loss 1% 25% ping far                  | takes one value, not '1% 25%'
            2 | run a b --down-loss 1% 25%                   | takes one value, not '1% 25%'
            2 | exec --loss '1%,25%'                         |
            2 | exec --loss '1% 25%'                         |
            ",
        );
        for [model, line, refusal] in cases {
            let said = message(line);
            let model = models[model.parse::<usize>().expect("an index")];
            assert!(said.contains(model), "{line}: {said}");
            assert!(said.contains(refusal), "{line}: {said}");
        }
        // The model named in the hint exists.
        assert_eq!(said("exec --loss correlated:rate=1%,correlation=25%"), FINE);
        // Options of the command are kept.
        assert_eq!(said("exec --delay 1ms -- tool --delay 20ms 5ms"), FINE);
    }

    #[test]
    fn an_option_with_nothing_alike_has_no_suggestion() {
        for option in ["--output", "--quality"] {
            let said = message(&format!("exec {option} x"));
            assert!(said.contains("unexpected argument"), "{said}");
            assert!(!said.contains("similar"), "{said}");
        }
        assert!(message("exec --dely 1ms").contains("'--delay'"));
    }

    #[test]
    fn integers_are_whole_numbers() {
        for line in [
            "exec --seed",
            "generate --to x --count",
            "replay t --to x --loop",
        ] {
            let said = said(&format!("{line} abc"));
            let wanted = "not a whole number, such as 7";
            assert!(said.ends_with(wanted), "{line}: {said}");
        }
    }

    #[test]
    fn every_option_that_is_named_exists() {
        let root = Cli::command();
        for (other, option, _) in OTHERS {
            let mut commands = root.get_subcommands();
            let has = has_option;
            let fits = commands.any(|command| has(command, option) && !has(command, other));
            assert!(fits, "--{other} would lead to --{option} nowhere");
        }
    }
}
