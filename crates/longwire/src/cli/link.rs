//! The link options: `--rate`, `--delay`, … for both directions, and with a
//! prefix for one.
//!
//! They are generated from one table, three times: as they are, with `up-`
//! and with `down-`. What each takes comes from the engine's registry, so
//! that help names every model.

use std::cell::Cell;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use longwire_engine::models;
use longwire_engine::options::LinkOptions;
use longwire_engine::{Hook, LinkConfig, Loader, Plugin};
use longwire_runtime::{Faults, FileLoader};

use crate::Error;
use crate::commands::models::synopsis;

/// One link option.
struct LinkOption {
    /// Its name, which is also that of its kind of models if it has any.
    name: &'static str,
    value_name: &'static str,
    summary: &'static str,
    field: fn(&mut LinkOptions) -> Field<'_>,
}

/// Where an option's text goes.
enum Field<'a> {
    Once(&'a mut Option<String>),
    Repeated(&'a mut Vec<String>),
}

/// Every link option.
static OPTIONS: [LinkOption; 11] = [
    LinkOption {
        name: "rate",
        value_name: "RATE",
        summary: "How fast the link sends, as in 10mbit; without it, infinitely fast",
        field: |options| Field::Once(&mut options.rate),
    },
    LinkOption {
        name: "framing",
        value_name: "FRAMING",
        summary: "What the wire adds to each frame, as in ethernet; without it, nothing",
        field: |options| Field::Once(&mut options.framing),
    },
    LinkOption {
        name: "queue",
        value_name: "QUEUE",
        summary: "What may wait for the rate, as in 100p or 64kb; without it, what the link sends \
                  in two delays or 100 ms",
        field: |options| Field::Once(&mut options.queue),
    },
    LinkOption {
        name: "loss",
        value_name: "LOSS",
        summary: "Which frames are lost, as in 1%; may be given several times",
        field: |options| Field::Repeated(&mut options.loss),
    },
    LinkOption {
        name: "corrupt",
        value_name: "CORRUPTION",
        summary: "Which frames arrive spoilt, as in 0.1%, and how",
        field: |options| Field::Once(&mut options.corrupt),
    },
    LinkOption {
        name: "duplicate",
        value_name: "DUPLICATION",
        summary: "Which frames arrive several times, as in 1%",
        field: |options| Field::Once(&mut options.duplicate),
    },
    LinkOption {
        name: "delay",
        value_name: "DELAY",
        summary: "Propagation delay one way, as in 20ms, and its jitter",
        field: |options| Field::Once(&mut options.delay),
    },
    LinkOption {
        name: "reorder",
        value_name: "REORDERING",
        summary: "Which frames are held back or overtake on purpose, as in 1%,5ms",
        field: |options| Field::Once(&mut options.reorder),
    },
    LinkOption {
        name: "order",
        value_name: "ORDER",
        summary: "Whether jitter may reorder frames: in-order or reorder",
        field: |options| Field::Once(&mut options.order),
    },
    LinkOption {
        name: "mtu",
        value_name: "BYTES",
        summary: "The largest payload behind the Ethernet header, as in 1500; longer frames are \
                  dropped or cut into fragments",
        field: |options| Field::Once(&mut options.mtu),
    },
    LinkOption {
        name: "rewrite",
        value_name: "REWRITING",
        summary: "What is changed in every frame, as in ip:ttl=1; may be given several times",
        field: |options| Field::Repeated(&mut options.rewrite),
    },
];

/// A prefix that makes an option one direction's.
struct Prefix {
    name: &'static str,
    /// The name `run` users may prefer.
    alias: &'static str,
    way: &'static str,
}

const UP: Prefix = Prefix {
    name: "up",
    alias: "ab",
    way: "up: near to far, A to B",
};
const DOWN: Prefix = Prefix {
    name: "down",
    alias: "ba",
    way: "down: far to near, B to A",
};

const HEADING: &str = "Link";
const HEADING_ONE_WAY: &str = "Link, one direction";

/// Units and grammar, for the end of a help text.
pub const LINK_HELP: &str = "\
Values and units, as in tc:
  rate   10mbit 1.5gbit 64kbit     bits; kbps and mbps are bytes
  time   20ms 1.5s 250us 10ns
  size   64kb 1500b 1mb            kb is 1024 bytes
  other  100p (packets)  1% (share)  1e-6 (ratio)
A model is written NAME:KEY=VALUE,KEY=VALUE; `longwire models` lists them all.";

/// The prefixes, for commands of two directions.
pub const DUPLEX_HELP: &str = "\
Every link option sets both directions; with --up- or --down- in front, as in
--up-rate, it sets one. `--help` lists them.";

/// The options of a duplex link.
#[derive(Clone, Debug, Default)]
pub struct DuplexArgs {
    /// Of the direction up, with what both share.
    pub up: LinkOptions,
    /// Of the direction down, with what both share.
    pub down: LinkOptions,
    /// Where the plugins of both say that they failed.
    pub faults: Faults,
    /// The options that were given to one direction only, as in `--up-rate`.
    pub prefixed: Vec<String>,
}

impl DuplexArgs {
    /// The two links they describe: up and down.
    ///
    /// # Errors
    /// If they do not fit together.
    pub fn links(&self) -> Result<(LinkConfig, LinkConfig), Error> {
        Ok((self.link_up()?, self.link_down()?))
    }

    /// The link up.
    ///
    /// # Errors
    /// If its options do not fit together.
    pub fn link_up(&self) -> Result<LinkConfig, Error> {
        parse(&self.up, &self.faults)
    }

    /// The link down.
    ///
    /// # Errors
    /// If its options do not fit together.
    pub fn link_down(&self) -> Result<LinkConfig, Error> {
        parse(&self.down, &self.faults)
    }
}

/// Each direction has a loader of its own, and so its own states of plugins.
fn parse(options: &LinkOptions, faults: &Faults) -> Result<LinkConfig, Error> {
    options
        .parse_with(&FileLoader::reporting_to(faults))
        .map_err(|error| Error::Usage(error.to_string()))
}

impl Args for DuplexArgs {
    fn augment_args(command: Command) -> Command {
        let command = augment(command, None);
        let command = augment(command, Some(&UP));
        augment(command, Some(&DOWN))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for DuplexArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<DuplexArgs, clap::Error> {
        let both = read(matches, None);
        let (up, down) = (read(matches, Some(&UP)), read(matches, Some(&DOWN)));
        Ok(DuplexArgs {
            up: both.overlay(&up),
            faults: Faults::new(),
            down: both.overlay(&down),
            prefixed: prefixed(matches),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = DuplexArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Adds every option, with or without a prefix.
fn augment(command: Command, prefix: Option<&Prefix>) -> Command {
    OPTIONS
        .iter()
        .fold(command, |command, option| command.arg(arg(option, prefix)))
}

fn arg(option: &'static LinkOption, prefix: Option<&Prefix>) -> Arg {
    let mut options = LinkOptions::default();
    let action = match (option.field)(&mut options) {
        Field::Once(_) => ArgAction::Set,
        Field::Repeated(_) => ArgAction::Append,
    };
    let id = id(option, prefix);
    let arg = Arg::new(id.clone())
        .long(id)
        .value_name(option.value_name)
        .action(action)
        // So that `--delay -5ms` is told that it is negative, not that there
        // is no option -5.
        .allow_hyphen_values(true)
        .value_parser(move |text: &str| check(option, text));
    match prefix {
        None => arg
            .help_heading(HEADING)
            .help(option.summary)
            .long_help(long_help(option)),
        Some(prefix) => arg
            .alias(format!("{}-{}", prefix.alias, option.name))
            .help_heading(HEADING_ONE_WAY)
            .hide_short_help(true)
            .help(format!("As --{}, {}", option.name, prefix.way)),
    }
}

fn id(option: &LinkOption, prefix: Option<&Prefix>) -> String {
    match prefix {
        None => option.name.to_owned(),
        Some(prefix) => format!("{}-{}", prefix.name, option.name),
    }
}

/// The summary and every model of the option's kind.
fn long_help(option: &LinkOption) -> String {
    let mut text = option.summary.to_owned();
    let registered = models::all();
    let of_kind = registered.iter().filter(|(kind, _)| *kind == option.name);
    for (index, (_, info)) in of_kind.enumerate() {
        text += if index == 0 { "\n\n" } else { "\n" };
        text += &format!("* {}: {}", synopsis(info), info.summary);
    }
    text
}

/// Refuses a value as soon as it is read, so that the message names the
/// option it was given to. What depends on a file or a plugin is checked when
/// the link is made: files may be large.
fn check(option: &LinkOption, text: &str) -> Result<String, String> {
    if text.starts_with("--") {
        return Err(format!(
            "the value is missing: '{text}' looks like an option"
        ));
    }
    let mut alone = LinkOptions::default();
    set(&mut alone, option, text.to_owned());
    let later = Later::default();
    match alone.parse_with(&later) {
        Err(error) if !later.asked.get() => {
            // The option's own name is in the message's frame already.
            Err(error.source.to_string())
        }
        _ => Ok(text.to_owned()),
    }
}

/// Loads nothing, and remembers that it should have.
#[derive(Debug, Default)]
struct Later {
    asked: Cell<bool>,
}

impl Later {
    fn refuse<T>(&self) -> Result<T, String> {
        self.asked.set(true);
        Err("read when the link is made".to_owned())
    }
}

impl Loader for Later {
    fn read(
        &self,
        _path: &str,
        _take: &mut dyn FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        self.refuse()
    }

    fn plugin(
        &self,
        _path: &str,
        _hook: Hook,
        _parameters: &[(String, String)],
    ) -> Result<Box<dyn Plugin>, String> {
        self.refuse()
    }
}

/// The options of one direction that were given.
fn prefixed(matches: &ArgMatches) -> Vec<String> {
    let of = |prefix| OPTIONS.iter().map(move |option| id(option, Some(prefix)));
    let ids = of(&UP).chain(of(&DOWN));
    let given = ids.filter(|id| matches.contains_id(id));
    given.map(|id| format!("--{id}")).collect()
}

fn set(options: &mut LinkOptions, option: &LinkOption, text: String) {
    match (option.field)(options) {
        Field::Once(field) => *field = Some(text),
        Field::Repeated(field) => field.push(text),
    }
}

fn read(matches: &ArgMatches, prefix: Option<&Prefix>) -> LinkOptions {
    let mut options = LinkOptions::default();
    for option in &OPTIONS {
        let values = matches.get_many::<String>(&id(option, prefix));
        for value in values.into_iter().flatten() {
            set(&mut options, option, value.clone());
        }
    }
    options
}
