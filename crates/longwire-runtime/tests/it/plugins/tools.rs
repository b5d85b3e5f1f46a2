//! Compiles plugins and builds links from them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use longwire_engine::{FrameMeta, Hook, Link, LinkConfig, LinkId, LinkSpec, Nanos, Verdict};
use longwire_runtime::{CPlugin, Faults, FileLoader};
use longwire_testbed::support::{binomial_interval, repository};

/// Compiles a plugin once; `define` selects a variant.
fn compile(source: &Path, define: &str) -> String {
    static MADE: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let stem = source.file_stem().expect("a file").to_string_lossy();
    let name = format!("{stem}{}.so", define.replace('=', "-"));
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if !made.contains(&library) {
        // Write to a unique name first, because other runs of these tests may have loaded the
        // library.
        let own = library.with_extension(std::process::id().to_string());
        run_compiler(source, define, &own);
        std::fs::rename(&own, &library).expect("both are in one folder");
        made.insert(library.clone());
    }
    library.to_str().expect("a plain name").to_owned()
}

fn run_compiler(source: &Path, define: &str, library: &Path) {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let mut command = Command::new(&compiler);
    let flags = "-std=c99 -O2 -Wall -Wextra -pedantic -Werror -shared -fPIC -I";
    command
        .args(flags.split(' '))
        .arg(repository().join("include"));
    if !define.is_empty() {
        command.arg(format!("-D{define}"));
    }
    command.arg("-o").arg(library).arg(source).arg("-lm");
    let made = command.status();
    let made = made.unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(made.success(), "{} does not compile", source.display());
}

/// Returns an example plugin.
pub fn example(name: &str) -> String {
    compile(&repository().join("examples/plugins").join(name), "")
}

/// Returns the plugin that docs/plugins.md builds.
pub fn documented() -> String {
    let page = std::fs::read_to_string(repository().join("docs/plugins.md")).expect("the page");
    let code = page.split("```c\n").nth(1).expect("a listing");
    let (code, _) = code.split_once("\n```").expect("its end");
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("burst.c");
    std::fs::write(&source, code).expect("a file of the test's own");
    compile(&source, "")
}

/// Returns the plugin whose behaviour tests control.
pub fn probe() -> String {
    probe_with("")
}

/// Returns a variant of that plugin.
pub fn probe_with(define: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/plugins");
    compile(&folder.join("probe.c"), define)
}

/// Returns a line with files for the names of plugins: the probe, and the examples.
pub fn named(line: &str) -> String {
    let mut line = line.to_owned();
    for name in ["probe", "bursty_wireless", "data_loss", "tdm"] {
        let named = format!("plugin:{name}");
        if line.contains(&named) {
            let file = match name {
                "probe" => probe(),
                name => example(&format!("{name}.c")),
            };
            line = line.replace(&named, &format!("plugin:{file}"));
        }
    }
    line
}

/// Parses a line such as `loss=plugin:probe delay=20ms`. Returns the link or the error.
pub fn parse(line: &str, faults: &Faults) -> Result<LinkConfig, String> {
    let loader = FileLoader::reporting_to(faults);
    let spec = LinkSpec::parse(&named(line), &loader).map_err(|error| error.to_string())?;
    spec.build(&loader).map_err(|error| error.to_string())
}

/// Returns the message for a rejected option.
pub fn refusal(option: &str, text: &str) -> String {
    match parse(&format!("{option}={text}"), &Faults::new()) {
        Ok(_) => panic!("{text} was taken"),
        Err(message) => message,
    }
}

/// Returns a link, and the faults of its plugins.
pub fn link(line: &str, seed: u64) -> (Link, Faults) {
    let faults = Faults::new();
    let config = parse(line, &faults).unwrap_or_else(|error| panic!("{error}"));
    (Link::new(config, seed, LinkId(0)), faults)
}

/// Loads one hook of a plugin, with parameters such as `p=40%,bytes=11`.
pub fn load(file: &str, hook: Hook, parameters: &str) -> (CPlugin, Faults) {
    let faults = Faults::new();
    let pairs = parameters
        .split(',')
        .filter_map(|pair| pair.split_once('='));
    let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let pairs: Vec<_> = pairs.collect();
    let plugin = CPlugin::load(file, hook, &pairs, &faults);
    (plugin.expect("a plugin"), faults)
}

pub fn offer(link: &mut Link, arrival: u64, bytes: &[u8]) -> Verdict {
    let frame = FrameMeta::new(Nanos::from_nanos(arrival), bytes.len() as u32);
    link.offer(frame, bytes)
}

/// Returns the release of a delivered frame.
pub fn release(verdict: Verdict) -> u64 {
    match verdict {
        Verdict::Deliver(delivery) => delivery.release.as_nanos(),
        other => panic!("not delivered: {other:?}"),
    }
}

/// Returns bounds on the number of successes in `trials` independent trials with probability `p`.
/// They are violated with a probability of 10^-6.
pub fn bounds(trials: u64, p: f64) -> std::ops::RangeInclusive<u64> {
    let (least, most) = binomial_interval(trials, p, 1.0 - 1e-6);
    least..=most
}
