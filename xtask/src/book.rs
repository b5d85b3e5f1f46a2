//! The book: docs/ and generated pages, checked and rendered.
//!
//! The sources of the book are a copy in `target/book-src`. Generated pages are written only to the
//! copy, and are not committed: help of every command, control API, models, list of decisions.
//! mdbook renders the copy to `target/book`.

mod json;
mod links;
mod reference;

use std::path::{Path, PathBuf};
use std::{fs, io};

use links::Pages;

use crate::runner::Shortfall::{Failed, Skipped};
use crate::runner::{
    Outcome, Runner, cargo, is_ci, limited, locked, root, run, succeeds, target_dir,
};

/// Renders the book.
pub fn run_steps(runner: &mut Runner) {
    runner.step("book", || sources().and_then(|()| render(&folder())));
}

/// Checks the book's links, including generated pages.
pub fn check(runner: &mut Runner) {
    runner.step("book: links", sources);
}

fn folder() -> PathBuf {
    target_dir().join("book-src")
}

/// Builds the program, then the book's sources.
fn sources() -> Outcome {
    // Build as for the tests, so that each crate is compiled only once.
    let mut build = cargo(["test", "--workspace", "--no-run"]);
    build.args(locked());
    run(build)?;
    let program = target_dir().join("debug/longwire");
    let problems = write_sources(&folder(), &program).map_err(Failed)?;
    if problems.is_empty() {
        return Ok(());
    }
    let (count, list) = (problems.len(), problems.join("\n"));
    Err(Failed(format!("{count} broken links:\n{list}")))
}

fn render(folder: &Path) -> Outcome {
    if !succeeds("mdbook", &["--version"]) {
        let why = "links and generated pages are checked, but mdbook is not installed: \
                   cargo install mdbook --locked --debug";
        let outcome = if is_ci() { Failed } else { Skipped };
        return Err(outcome(why.to_owned()));
    }
    let mut command = limited("mdbook");
    command.arg("build").arg(folder);
    run(command)
}

/// Writes all pages of the book; returns broken links.
fn write_sources(folder: &Path, program: &Path) -> Result<Vec<String>, String> {
    let at = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| at(folder, error))?;
    }
    copy(&root().join("docs"), folder).map_err(|error| at(folder, error))?;
    let models = folder.join("models");
    reference::output(program, &["models", "--pages", &models.to_string_lossy()])?;
    let (options, api) = (
        reference::options_page(program)?,
        reference::api_page(program)?,
    );
    fill(folder, "reference/options.md", "options", &options)?;
    fill(folder, "reference/api.md", "api", &api)?;

    let summary = folder.join("SUMMARY.md");
    let text = fs::read_to_string(&summary).map_err(|error| at(&summary, error))?;
    let text = with_decisions(folder, &text).map_err(|error| at(folder, error))?;
    // Copy pages outside docs/ that the book includes.
    for page in links::targets(&text).filter_map(|link| link.strip_prefix("../")) {
        let from = root().join(page);
        fs::copy(&from, folder.join(page)).map_err(|error| at(&from, error))?;
    }
    let text = text
        .replace("](../", "](")
        .replace("README.md)", "index.md)");
    fs::write(&summary, text).map_err(|error| at(&summary, error))?;
    name_indexes(folder).map_err(|error| at(folder, error))?;
    let pages = Pages::read(folder)?;
    pages.move_links(folder)?;
    Ok(Pages::read(folder)?.broken())
}

/// Copies a folder recursively.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Renames each README.md to index.md: mdbook writes index.html for both, but does not rewrite
/// links to README.md.
fn name_indexes(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            name_indexes(&path)?;
        } else if path.ends_with("README.md") {
            fs::rename(&path, path.with_file_name("index.md"))?;
        }
    }
    Ok(())
}

/// Replaces the marker of a generated part in a page.
fn fill(folder: &Path, page: &str, part: &str, text: &str) -> Result<(), String> {
    let path = folder.join(page);
    let mark = format!("<!-- generated: {part} -->");
    let before = fs::read_to_string(&path).map_err(|error| format!("{page}: {error}"))?;
    if !before.contains(&mark) {
        return Err(format!("{page} has no line {mark}"));
    }
    fs::write(&path, before.replace(&mark, text)).map_err(|error| format!("{page}: {error}"))
}

/// Returns the summary with one line per decision, because mdbook renders only pages listed in the
/// summary.
fn with_decisions(folder: &Path, summary: &str) -> io::Result<String> {
    let entries = fs::read_dir(folder.join("decisions"))?;
    let files = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut files = files.collect::<io::Result<Vec<PathBuf>>>()?;
    files.sort();
    let mut lines = String::new();
    for file in files.iter().filter(|file| !file.ends_with("README.md")) {
        let text = fs::read_to_string(file)?;
        let title = text.lines().find_map(|line| line.strip_prefix("# "));
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let title = title.unwrap_or(&name);
        lines += &format!("  - [{title}](decisions/{name})\n");
    }
    let mark = "(decisions/README.md)\n";
    Ok(summary.replacen(mark, &format!("{mark}{lines}"), 1))
}
