//! `longwire preset`: prints presets as options to edit and reuse.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use indexmap::IndexSet;
use longwire_engine::LinkSpec;
use longwire_engine::presets::{self, Duplex, FROM_FILE, PRESETS, Preset};
use longwire_runtime::{FileLoader, suggest};
use serde::Serialize;

use super::models::synopsis;
use crate::cli::Paint;
use crate::report::output::print_json;
use crate::table::joined;
use crate::{Error, Globals};

/// Arguments of `preset`.
#[derive(Debug, Args)]
#[command(after_help = "\
A preset is an access link without the network beyond it, shown as link options. Later
options override it: `longwire exec --preset lte --up-rate 1mbit`.

Examples:
  longwire preset              all presets, one per line
  longwire preset lte          options and sources of one preset
  longwire preset --json       as JSON
  longwire preset errant:file=profiles.csv,operator=telia,rat=4G,quality=good")]
pub struct PresetArgs {
    /// Preset to show
    pub name: Option<String>,
}

/// Prints presets.
///
/// # Errors
/// If no preset has this name, its file cannot be read, or stdout cannot be written.
pub fn run(args: &PresetArgs, globals: &Globals) -> Result<ExitCode, Error> {
    let mut out = io::stdout().lock();
    let paint = Paint::new(globals, &io::stdout());
    let Some(name) = &args.name else {
        if globals.json {
            let all: Vec<PresetJson> = PRESETS.iter().map(PresetJson::of).collect();
            return print_json(&all);
        }
        write_list(&mut out, paint)?;
        return Ok(ExitCode::SUCCESS);
    };
    let duplex = presets::read(name, &FileLoader::new());
    let duplex = duplex.map_err(|error| Error::usage(suggest::preset_error(&error)))?;
    let known = PRESETS.iter().find(|preset| preset.name == name.trim());
    if globals.json {
        let json = match known {
            Some(preset) => PresetJson::of(preset),
            None => PresetJson::new(name, FROM_FILE.summary, &duplex),
        };
        return print_json(&json);
    }
    if let Some(preset) = known {
        write_origin(&mut out, preset, paint)?;
    }
    if let Some(queue) = derived_queue(&duplex) {
        writeln!(out, "# queue: {queue}")?;
    }
    writeln!(out, "{}", lines(&duplex).join(" \\\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn write_list(out: &mut impl Write, paint: Paint) -> io::Result<()> {
    let width = PRESETS.iter().map(|preset| preset.name.len()).max();
    let width = width.unwrap_or(0);
    let presets = PRESETS.iter().map(|preset| (preset.name, preset.summary));
    for (name, summary) in presets.chain([(FROM_FILE.name, FROM_FILE.summary)]) {
        writeln!(out, "{}  {summary}", paint.good(format!("{name:width$}")))?;
    }
    writeln!(out)?;
    writeln!(
        out,
        "`longwire preset NAME` shows options and sources of one preset."
    )?;
    writeln!(out, "The last preset reads a file: {}", synopsis(FROM_FILE))
}

/// Writes a preset's description and source as shell comments.
fn write_origin(out: &mut impl Write, preset: &Preset, paint: Paint) -> io::Result<()> {
    writeln!(out, "# {}: {}", paint.bold(preset.name), preset.summary)?;
    for source in preset.sources {
        writeln!(out, "# from: {source}")?;
    }
    writeln!(out, "# assumed: {}", preset.assumptions)
}

/// Returns the derived queue if the preset has none; `None` if both directions have a queue or need
/// none.
fn derived_queue(duplex: &Duplex) -> Option<String> {
    let limit = |spec: &LinkSpec| {
        let given = spec.queue.as_ref().map_or(0, |queue| queue.models().len());
        let derived = given == 0 && spec.bit_rate().is_some();
        derived.then(|| spec.queue_limit().to_string())
    };
    let limits = match (limit(&duplex.up), limit(&duplex.down)) {
        (None, None) => return None,
        (Some(up), Some(down)) if up == down => up,
        (up, down) => {
            let sides = [("up", up), ("down", down)].into_iter();
            joined(
                sides.filter_map(|(name, limit)| Some(format!("{name} {}", limit?))),
                ", ",
            )
        }
    };
    Some(format!(
        "tail drop, {limits}, derived from rate and delay; set --queue to change it"
    ))
}

/// Returns a preset's options in command-line syntax, one per line.
pub fn lines(duplex: &Duplex) -> Vec<String> {
    let (up, down) = (duplex.up.given(), duplex.down.given());
    let of = |options: &[(&'static str, String)], name| {
        let texts = options.iter().filter(|(of, _)| *of == name);
        texts.map(|(_, text)| text.clone()).collect::<Vec<String>>()
    };
    let names: IndexSet<&str> = up.iter().chain(&down).map(|(name, _)| *name).collect();
    let mut lines = Vec::new();
    let mut push = |prefix: &str, name: &str, texts: Vec<String>| {
        let line = |text: String| format!("--{prefix}{name} {}", quoted(&text));
        lines.extend(texts.into_iter().map(line));
    };
    for name in names {
        let (up, down) = (of(&up, name), of(&down, name));
        if up == down {
            push("", name, up);
        } else {
            push("up-", name, up);
            push("down-", name, down);
        }
    }
    lines
}

/// Quotes a word for the shell.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-:=,/%+".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[derive(Serialize)]
struct PresetJson<'a> {
    name: &'a str,
    summary: &'a str,
    sources: &'a [&'a str],
    assumptions: &'a str,
    /// Derived queue, as text.
    derived_queue: Option<String>,
    /// Options by name.
    up: BTreeMap<&'static str, Vec<String>>,
    down: BTreeMap<&'static str, Vec<String>>,
}

impl<'a> PresetJson<'a> {
    /// Returns a preset without sources and assumptions.
    fn new(name: &'a str, summary: &'a str, duplex: &Duplex) -> PresetJson<'a> {
        let by_name = |options: &LinkSpec| {
            let mut map: BTreeMap<&str, Vec<String>> = BTreeMap::new();
            for (name, text) in options.given() {
                map.entry(name).or_default().push(text);
            }
            map
        };
        PresetJson {
            name,
            summary,
            sources: &[],
            assumptions: "",
            derived_queue: derived_queue(duplex),
            up: by_name(&duplex.up),
            down: by_name(&duplex.down),
        }
    }

    fn of(preset: &'a Preset) -> PresetJson<'a> {
        PresetJson {
            sources: preset.sources,
            assumptions: preset.assumptions,
            ..PresetJson::new(preset.name, preset.summary, &preset.options())
        }
    }
}
