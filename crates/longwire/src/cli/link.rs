//! The link options: `--rate`, `--delay`, … for both directions, and with a
//! prefix for one.
//!
//! They are generated from one table, three times: without a prefix, with `up-`
//! and with `down-`. The engine's registry defines their values, so that help
//! names every model.

use std::cell::Cell;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use longwire_engine::models;
use longwire_engine::options::{LINK_OPTIONS, LinkOption, LinkOptions};
use longwire_engine::presets;
use longwire_engine::{Hook, LinkConfig, Loader, Plugin};
use longwire_runtime::{Faults, FileLoader};

use crate::Error;
use crate::commands::models::synopsis;
use longwire_runtime::suggest;

/// A prefix that limits an option to one direction.
struct Prefix {
    name: &'static str,
    /// Alternative name, after the ports A and B of `run`.
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
    /// Options of the direction up, including those of both directions.
    pub up: LinkOptions,
    /// Options of the direction down, including those of both directions.
    pub down: LinkOptions,
    /// Failures of the plugins of both directions.
    pub faults: Faults,
    /// The options that were given to one direction only, as in `--up-rate`.
    pub prefixed: Vec<String>,
    /// The preset on which all of these options are based, as it was written.
    pub preset: Option<String>,
}

impl DuplexArgs {
    /// Returns the two links: up and down.
    ///
    /// # Errors
    /// If the options do not fit together.
    pub fn links(&self) -> Result<(LinkConfig, LinkConfig), Error> {
        Ok((self.link_up()?, self.link_down()?))
    }

    /// Returns the link up.
    ///
    /// # Errors
    /// If its options do not fit together.
    pub fn link_up(&self) -> Result<LinkConfig, Error> {
        parse(&self.options()?.up, &self.faults)
    }

    /// Returns the link down.
    ///
    /// # Errors
    /// If its options do not fit together.
    pub fn link_down(&self) -> Result<LinkConfig, Error> {
        parse(&self.options()?.down, &self.faults)
    }

    /// Returns the options of both directions, those of the preset included.
    ///
    /// # Errors
    /// If the preset's file cannot be read.
    pub fn options(&self) -> Result<presets::Duplex, Error> {
        let under = self.preset()?;
        Ok(presets::Duplex {
            up: under.up.overlay(&self.up),
            down: under.down.overlay(&self.down),
        })
    }

    /// Returns the preset's options.
    fn preset(&self) -> Result<presets::Duplex, Error> {
        let Some(text) = &self.preset else {
            return Ok(presets::Duplex::default());
        };
        let read = presets::read(text, &FileLoader::reporting_to(&self.faults));
        read.map_err(|error| {
            let error = suggest::preset_error(&error);
            Error::Usage(format!("{PRESET}: {error}"))
        })
    }
}

/// Parses the options; each direction has its own loader, and so its own states
/// of plugins.
fn parse(options: &LinkOptions, faults: &Faults) -> Result<LinkConfig, Error> {
    options
        .parse_with(&FileLoader::reporting_to(faults))
        .map_err(|error| Error::Usage(suggest::option_error(&error)))
}

impl Args for DuplexArgs {
    fn augment_args(command: Command) -> Command {
        let command = augment(command.arg(preset_arg()), None);
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
            preset: matches.get_one::<String>(PRESET).cloned(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = DuplexArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The option that names a preset.
const PRESET: &str = "preset";

fn preset_arg() -> Arg {
    let names = presets::PRESETS.iter().map(|preset| preset.name);
    let names: Vec<&str> = names.collect();
    Arg::new(PRESET)
        .long(PRESET)
        .value_name("PRESET")
        .help_heading(HEADING)
        .help("A link by name, as in lte; other options change it")
        .long_help(format!(
            "A link by name, as in lte; other options change it: {}; or {}. `longwire preset` \
             shows them as options, with their sources",
            names.join(", "),
            synopsis(presets::FROM_FILE)
        ))
        .value_parser(check_preset)
}

/// Refuses a preset that does not exist when the option is parsed; a file is
/// read when the link is built.
fn check_preset(text: &str) -> Result<String, String> {
    let later = DeferredLoader::default();
    match presets::read(text, &later) {
        Err(error) if !later.used.get() => Err(suggest::preset_error(&error)),
        _ => Ok(text.to_owned()),
    }
}

/// Adds every option, with or without a prefix.
fn augment(command: Command, prefix: Option<&Prefix>) -> Command {
    LINK_OPTIONS
        .iter()
        .fold(command, |command, option| command.arg(arg(option, prefix)))
}

fn arg(option: &'static LinkOption, prefix: Option<&Prefix>) -> Arg {
    let action = if option.is_repeated() {
        ArgAction::Append
    } else {
        ArgAction::Set
    };
    let id = id(option, prefix);
    let arg = Arg::new(id.clone())
        .long(id)
        .value_name(option.value_name)
        .action(action)
        // So that the error for `--delay -5ms` is a negative delay, not an
        // unknown option -5.
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

/// The longest synopsis in help; instead of a longer one the model's name
/// stands. `longwire models` prints the parameters of each.
const SYNOPSIS_MAX: usize = 70;

/// Returns the summary and every model of the option's kind.
fn long_help(option: &LinkOption) -> String {
    let mut text = option.summary.to_owned();
    let registered = models::all();
    let of_kind = registered.iter().filter(|(kind, _)| *kind == option.name);
    for (index, (_, info)) in of_kind.enumerate() {
        text += if index == 0 { "\n\n" } else { "\n" };
        let synopsis = Some(synopsis(info)).filter(|text| text.len() <= SYNOPSIS_MAX);
        let written = synopsis.as_deref().unwrap_or(info.name);
        text += &format!("* {written}: {}", info.summary);
    }
    text
}

/// Refuses a value when it is parsed, so that the message names the option.
/// Values that depend on a file or a plugin are checked when the link is built:
/// files may be large.
fn check(option: &LinkOption, text: &str) -> Result<String, String> {
    if text.starts_with("--") {
        return Err(format!(
            "the value is missing: '{text}' looks like an option"
        ));
    }
    let mut alone = LinkOptions::default();
    alone.set(option.name, text.to_owned());
    let later = DeferredLoader::default();
    match alone.parse_with(&later) {
        Err(error) if !later.used.get() => {
            // clap's message already names the option.
            Err(suggest::spec_error(&error.source))
        }
        _ => Ok(text.to_owned()),
    }
}

/// A loader that loads nothing, and records that a file or plugin is needed.
#[derive(Debug, Default)]
struct DeferredLoader {
    used: Cell<bool>,
}

impl DeferredLoader {
    fn refuse<T>(&self) -> Result<T, String> {
        self.used.set(true);
        Err("read when the link is made".to_owned())
    }
}

impl Loader for DeferredLoader {
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

/// Returns the options that were given to one direction.
fn prefixed(matches: &ArgMatches) -> Vec<String> {
    let of = |prefix| {
        LINK_OPTIONS
            .iter()
            .map(move |option| id(option, Some(prefix)))
    };
    let ids = of(&UP).chain(of(&DOWN));
    let given = ids.filter(|id| matches.contains_id(id));
    given.map(|id| format!("--{id}")).collect()
}

fn read(matches: &ArgMatches, prefix: Option<&Prefix>) -> LinkOptions {
    let mut options = LinkOptions::default();
    for option in &LINK_OPTIONS {
        let values = matches.get_many::<String>(&id(option, prefix));
        for value in values.into_iter().flatten() {
            options.set(option.name, value.clone());
        }
    }
    options
}
