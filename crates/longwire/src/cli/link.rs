//! Link options: `--rate`, `--delay`, … for both directions, or prefixed for one.
//!
//! Each option is generated three times from the engine's option table: without a prefix, with
//! `up-` and with `down-`. Values are parsed only once, in this module.

use std::cell::Cell;

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use longwire_engine::presets::{self, Duplex};
use longwire_engine::{
    Hook, LinkConfig, LinkSpec, Loader, OptionError, PARTS, Part, Plugin, TakePiece,
};
use longwire_runtime::{Faults, FileLoader, suggest};

use super::netem;
use crate::Error;
use crate::commands::models::synopsis;
use crate::table::joined;

/// Prefix that restricts an option to one direction.
struct Prefix {
    name: &'static str,
    /// Alias derived from the ports A and B of `run`.
    alias: &'static str,
    way: &'static str,
}

const UP: Prefix = Prefix {
    name: "up",
    alias: "ab",
    way: "direction up, near to far or A to B",
};
const DOWN: Prefix = Prefix {
    name: "down",
    alias: "ba",
    way: "direction down, far to near or B to A",
};

const HEADING: &str = "Link";
const HEADING_ONE_WAY: &str = "Link, one direction";

/// Units and grammar, at the end of a help text.
pub const LINK_HELP: &str = "\
Values and units, as in tc:
  rate   10mbit 1.5gbit 64kbit     bits; kbps and mbps are bytes
  time   20ms 1.5s 250us 10ns
  size   64kb 1500b 1mb            kb is 1024 bytes
  other  100p (packets)  1% (share)  1e-6 (ratio)
Models are written NAME:KEY=VALUE,KEY=VALUE; `longwire models` lists them.";

/// Help on prefixes, for commands with two directions.
pub const DUPLEX_HELP: &str = "\
Link options set both directions; the prefix --up- or --down- sets one, as in
--up-rate. `--help` lists them.";

/// Options of a duplex link.
#[derive(Clone, Debug, Default)]
pub struct DuplexArgs {
    /// Options for both directions, for up and for down.
    both: Vec<LinkValue>,
    up: Vec<LinkValue>,
    down: Vec<LinkValue>,
    /// Preset that these options override, as written.
    preset: Option<String>,
    /// Plugin faults of both directions.
    pub faults: Faults,
}

/// A parsed option value. Files and plugins are loaded only when the link is built: they may
/// start threads, but `exec` can enter a user namespace only while it is single-threaded.
#[derive(Clone, Debug)]
struct LinkValue {
    part: &'static Part,
    text: String,
    parsed: Option<LinkSpec>,
}

impl DuplexArgs {
    /// Returns the specifications of both directions, preset included.
    ///
    /// # Errors
    /// If a file or a plugin cannot be read, or values conflict.
    pub fn specs(&self) -> Result<Duplex, Error> {
        self.read(&self.loader())
    }

    fn loader(&self) -> FileLoader {
        FileLoader::reporting_to(&self.faults)
    }

    fn read(&self, loader: &FileLoader) -> Result<Duplex, Error> {
        let preset = match &self.preset {
            Some(text) => presets::read(text, loader).map_err(|error| {
                let error = suggest::preset_error(&error);
                Error::usage(format!("{PRESET}: {error}"))
            })?,
            None => Duplex::default(),
        };
        let refused = |error| Error::usage(suggest::option_error(&error));
        let read = |values| read_values(values, loader).map_err(refused);
        let both = read(&self.both)?;
        Ok(Duplex {
            up: preset.up.overlay(&both).overlay(&read(&self.up)?),
            down: preset.down.overlay(&both).overlay(&read(&self.down)?),
        })
    }

    /// Returns the up and down links.
    ///
    /// # Errors
    /// See [`DuplexArgs::specs`].
    pub fn links(&self) -> Result<(LinkConfig, LinkConfig), Error> {
        let loader = self.loader();
        let Duplex { up, down } = self.read(&loader)?;
        Ok((build(&up, &loader)?, build(&down, &loader)?))
    }

    /// Returns the link of the direction that `choose` selects.
    ///
    /// # Errors
    /// See [`DuplexArgs::specs`].
    pub fn link(&self, choose: fn(Duplex) -> LinkSpec) -> Result<LinkConfig, Error> {
        let loader = self.loader();
        build(&choose(self.read(&loader)?), &loader)
    }

    /// Returns an option that was given for only one direction, such as `--up-rate`.
    pub fn prefixed(&self) -> Option<String> {
        let up = self.up.first().map(|value| id(value.part, Some(&UP)));
        up.map(|id| format!("--{id}")).or_else(|| self.of_down())
    }

    /// Returns an option that was given for direction down, such as `--down-rate`.
    pub fn of_down(&self) -> Option<String> {
        let down = self.down.first()?;
        Some(format!("--{}", id(down.part, Some(&DOWN))))
    }

    /// Returns the preset, as written.
    pub fn preset(&self) -> Option<&str> {
        self.preset.as_deref()
    }

    /// Returns the options for up and for down as written; options for both directions appear in
    /// both.
    pub fn texts(&self) -> [Vec<(&'static str, String)>; 2] {
        [&self.up, &self.down].map(|own| {
            let is_own = |part: &Part| own.iter().any(|value| value.part.name == part.name);
            let both = self.both.iter().filter(|value| !is_own(value.part));
            both.chain(own)
                .map(|value| (value.part.name, value.text.clone()))
                .collect()
        })
    }

    /// Returns whether no option was given.
    pub fn is_empty(&self) -> bool {
        let given = [&self.both, &self.up, &self.down];
        self.preset.is_none() && given.iter().all(|values| values.is_empty())
    }
}

fn build(spec: &LinkSpec, loader: &FileLoader) -> Result<LinkConfig, Error> {
    let built = spec.build(loader);
    built.map_err(|error| Error::usage(suggest::option_error(&error)))
}

/// Applies values in order to a new specification.
fn read_values(values: &[LinkValue], loader: &dyn Loader) -> Result<LinkSpec, OptionError> {
    let mut spec = LinkSpec::new();
    for value in values {
        match &value.parsed {
            Some(parsed) => spec.append(parsed)?,
            None => value.part.add(&mut spec, &value.text, loader)?,
        }
    }
    Ok(spec)
}

impl Args for DuplexArgs {
    fn augment_args(command: Command) -> Command {
        // Add every option three times: without a prefix, and for each direction.
        let prefixes = [None, Some(&UP), Some(&DOWN)].into_iter();
        let args = prefixes.flat_map(|prefix| PARTS.iter().map(move |part| arg(part, prefix)));
        command.arg(preset_arg()).args(args)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for DuplexArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<DuplexArgs, clap::Error> {
        let of = |prefix| {
            let values = PARTS.iter().flat_map(|part| {
                let values = matches.get_many::<LinkValue>(&id(part, prefix));
                values.into_iter().flatten().cloned()
            });
            values.collect()
        };
        Ok(DuplexArgs {
            both: of(None),
            up: of(Some(&UP)),
            down: of(Some(&DOWN)),
            preset: matches.get_one::<String>(PRESET).cloned(),
            faults: Faults::new(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = DuplexArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Name of the preset option.
const PRESET: &str = "preset";

fn preset_arg() -> Arg {
    let names = joined(presets::PRESETS.iter().map(|preset| preset.name), ", ");
    Arg::new(PRESET)
        .long(PRESET)
        .value_name("PRESET")
        .value_parser(check_preset)
        .help_heading(HEADING)
        .help("Start from a preset, such as lte; other options override it")
        .long_help(format!(
            "Start from a preset, which other options override: {names}; or a row of ERRANT's \
             table of mobile networks, {}. `longwire preset` shows their options and sources",
            synopsis(presets::FROM_FILE)
        ))
}

/// Refuses an unknown preset at parse time; a preset file is read when the link is built.
fn check_preset(text: &str) -> Result<String, String> {
    let later = DeferredLoader::default();
    match presets::read(text, &later) {
        Err(error) if !later.used.get() => Err(suggest::preset_error(&error)),
        _ => Ok(text.to_owned()),
    }
}

fn arg(part: &'static Part, prefix: Option<&Prefix>) -> Arg {
    let action = if part.is_repeated {
        ArgAction::Append
    } else {
        ArgAction::Set
    };
    let id = id(part, prefix);
    let arg = Arg::new(id.clone())
        .long(id)
        .value_name(part.value_name)
        .action(action)
        .value_parser(ValueParser::from(move |text: &str| parse(part, text)))
        // Report `--delay -5ms` as a negative delay, not as an unknown option -5.
        .allow_hyphen_values(true);
    match prefix {
        None => arg
            .help_heading(HEADING)
            .help(part.summary)
            .long_help(long_help(part)),
        Some(prefix) => arg
            .alias(format!("{}-{}", prefix.alias, part.name))
            .help_heading(HEADING_ONE_WAY)
            .hide_short_help(true)
            .help(format!("--{} for {}", part.name, prefix.way)),
    }
}

fn id(part: &Part, prefix: Option<&Prefix>) -> String {
    match prefix {
        None => part.name.to_owned(),
        Some(prefix) => format!("{}-{}", prefix.name, part.name),
    }
}

/// Maximum length of a synopsis in help. Longer ones are reduced to the model's name; `longwire
/// models` prints all parameters.
const SYNOPSIS_MAX: usize = 70;

/// Returns the summary, followed by every model of the option's kind.
fn long_help(part: &Part) -> String {
    let mut text = part.summary.to_owned();
    for (index, (_, info)) in part.models().into_iter().enumerate() {
        text += if index == 0 { "\n\n" } else { "\n" };
        let synopsis = Some(synopsis(info)).filter(|text| text.len() <= SYNOPSIS_MAX);
        let written = synopsis.as_deref().unwrap_or(info.name);
        text += &format!("* {written}: {}", info.summary);
    }
    text
}

/// Parses a value; errors name the option.
fn parse(part: &'static Part, text: &str) -> Result<LinkValue, String> {
    if text.starts_with("--") {
        return Err(format!(
            "the value is missing: '{text}' looks like an option"
        ));
    }
    let (mut spec, later) = (LinkSpec::new(), DeferredLoader::default());
    let parsed = match part.add(&mut spec, text, &later) {
        Ok(()) => Some(spec),
        Err(_) if later.used.get() => None,
        // clap adds the option's name to the message.
        Err(error) => {
            let model = text.split_once([',', ' ']).and_then(|(first, second)| {
                netem::two_values(part.name, first, second.trim_start())
            });
            return Err(model.unwrap_or_else(|| suggest::spec_error(&error.source)));
        }
    };
    Ok(LinkValue {
        part,
        text: text.to_owned(),
        parsed,
    })
}

/// A loader that loads nothing, but records whether a file or plugin is needed.
#[derive(Debug, Default)]
struct DeferredLoader {
    used: Cell<bool>,
}

impl DeferredLoader {
    fn refuse<T>(&self) -> Result<T, String> {
        self.used.set(true);
        Err("read when the link is built".to_owned())
    }
}

impl Loader for DeferredLoader {
    fn read(&self, _path: &str, _take: TakePiece<'_>) -> Result<(), String> {
        self.refuse()
    }

    fn plugin(&self, _: &str, _: Hook, _: &[(String, String)]) -> Result<Box<dyn Plugin>, String> {
        self.refuse()
    }
}
