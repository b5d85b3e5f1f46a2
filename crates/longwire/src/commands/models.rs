//! `longwire models`: lists the registered models and their parameters.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use longwire_capture::whole_file;
use longwire_control::registry::{Model, unit_name};
use longwire_engine::spec::{ModelInfo, Param, Unit};
use longwire_runtime::suggest;

use super::model_pages;
use crate::cli::Paint;
use crate::report::output::print_json;
use crate::{Error, Globals};

/// Arguments of `models`.
#[derive(Debug, Args)]
#[command(after_help = "\
Write a model as NAME or NAME:KEY=VALUE,KEY=VALUE. The first model of a kind also takes
a bare value: `--delay 20ms` is `--delay constant:delay=20ms`.

Examples:
  longwire models               all models, one per line
  longwire models delay         all delay models in detail
  longwire models exponential   one model in detail
  longwire models --json        as JSON")]
pub struct ModelsArgs {
    /// Model, or kind of models, to show in detail
    pub name: Option<String>,

    /// Write the Markdown pages of the documentation to FOLDER
    #[arg(long, value_name = "FOLDER", conflicts_with = "name")]
    pub pages: Option<PathBuf>,
}

/// Kind and description of a model.
pub type RegisteredModel = (&'static str, &'static ModelInfo);

/// Returns every registered link and traffic model, ordered by kind.
pub fn registered() -> Vec<RegisteredModel> {
    let links = longwire_engine::all_models().into_iter();
    links.chain(longwire_traffic::traffic_models()).collect()
}

/// Prints the models.
///
/// # Errors
/// If no model or kind has the name, or stdout cannot be written.
pub fn run(args: &ModelsArgs, globals: &Globals) -> Result<ExitCode, Error> {
    if let Some(folder) = &args.pages {
        return write_pages(folder);
    }
    let shown = select(args.name.as_deref())?;
    if globals.json {
        let models = shown.iter().map(|(kind, info)| Model::of(kind, info));
        return print_json(&models.collect::<Vec<Model>>());
    }
    let mut out = io::stdout().lock();
    let paint = Paint::new(globals, &io::stdout());
    if args.name.is_some() {
        write_details(&mut out, &shown, paint)?;
    } else {
        write_list(&mut out, &shown, paint)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write_pages(folder: &Path) -> Result<ExitCode, Error> {
    fs::create_dir_all(folder).map_err(Error::file(folder, "cannot create the directory"))?;
    for page in model_pages::pages() {
        let path = folder.join(page.file);
        whole_file::write(&path, |out| out.write_all(page.text.as_bytes()))
            .map_err(Error::file(&path, "cannot write the page"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the model `name`, the models of the kind `name`, or all.
fn select(name: Option<&str>) -> Result<Vec<RegisteredModel>, Error> {
    let all = registered();
    let Some(name) = name else { return Ok(all) };
    let of_kind = |(kind, _): &RegisteredModel| *kind == name;
    let named = |(_, info): &RegisteredModel| info.name == name;
    let kind: Vec<RegisteredModel> = all.iter().copied().filter(of_kind).collect();
    if !kind.is_empty() {
        return Ok(kind);
    }
    let found: Vec<RegisteredModel> = all.iter().copied().filter(named).collect();
    if found.is_empty() {
        let mut names: Vec<&str> = all.iter().map(|(_, info)| info.name).collect();
        names.sort_unstable();
        names.dedup();
        let known = kinds(&all).into_iter().chain(names.iter().copied());
        if let Some(close) = suggest::closest(name, known) {
            return Err(Error::usage(format!(
                "unknown model or kind '{name}'; did you mean '{close}'?"
            )));
        }
        return Err(Error::usage(format!(
            "unknown model or kind '{name}'; kinds: {}; models: {}",
            kinds(&all).join(", "),
            names.join(", "),
        )));
    }
    Ok(found)
}

/// Returns the kinds, in registry order.
fn kinds(models: &[RegisteredModel]) -> Vec<&'static str> {
    let mut kinds: Vec<&str> = models.iter().map(|(kind, _)| *kind).collect();
    kinds.dedup();
    kinds
}

fn write_list(out: &mut impl Write, models: &[RegisteredModel], paint: Paint) -> io::Result<()> {
    let width = models.iter().map(|(_, info)| info.name.len()).max();
    for kind in kinds(models) {
        writeln!(out, "{}", paint.bold(format_args!("--{kind}")))?;
        for (_, info) in models.iter().filter(|(of, _)| *of == kind) {
            let name = format!("{:width$}", info.name, width = width.unwrap_or(0));
            writeln!(out, "  {}  {}", paint.good(name), info.summary)?;
        }
    }
    writeln!(out)?;
    writeln!(
        out,
        "`longwire models NAME` shows the parameters of a model."
    )
}

fn write_details(out: &mut impl Write, models: &[RegisteredModel], paint: Paint) -> io::Result<()> {
    for (index, (kind, info)) in models.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        let written = synopsis(info);
        writeln!(out, "{}", paint.bold(format_args!("--{kind} {written}")))?;
        writeln!(out, "  {}", info.summary)?;
        let width = info.params.iter().map(|param| param.name.len()).max();
        for param in info.params {
            let name = format!("{:width$}", param.name, width = width.unwrap_or(0));
            writeln!(out, "    {}  {}", paint.good(name), param_help(param))?;
        }
    }
    Ok(())
}

/// Formats a model as an option value with an example for each parameter, such as
/// `uniform:min=20ms,max=20ms`.
pub fn synopsis(info: &ModelInfo) -> String {
    let example = |param: &Param| {
        let value = param.default.unwrap_or(param.unit.example());
        format!("{}={value}", param.name)
    };
    if info.params.is_empty() {
        return info.name.to_owned();
    }
    let params: Vec<String> = info.params.iter().map(example).collect();
    format!("{}:{}", info.name, params.join(","))
}

fn param_help(param: &Param) -> String {
    let unit = match param.unit {
        Unit::Choice(words) => words.join(" or "),
        unit => format!("{}, such as {}", unit_name(unit), unit.example()),
    };
    match param.default {
        Some(default) => format!("{} ({unit}; default {default})", param.help),
        None => format!("{} ({unit})", param.help),
    }
}
