//! The live view: its page, the judgement it shows, and the browser.

use std::env;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use longwire_control::{Judgement, PageFile, ViewConfig, ViewUrls};
use longwire_fabric::{Controller, NetworkReport};

use crate::report::network::verdict_on;
use crate::report::stderr::print_line;
use crate::report::verdict::Verdict;

/// The files of the page; none if it was not built.
static BUILT: &[PageFile] = include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// The page that is served where it was not built.
static MISSING: &[PageFile] = &[PageFile {
    path: "/",
    kind: "text/html; charset=utf-8",
    content: include_bytes!("missing.html"),
    gzip: false,
}];

/// Returns the configuration of a live view at an address.
pub fn config(address: SocketAddr) -> ViewConfig {
    ViewConfig {
        address,
        files: if BUILT.is_empty() { MISSING } else { BUILT },
    }
}

/// Judges a run so far, as its report will at the end.
pub fn judge(controller: &Controller) -> Judgement {
    let mut run = controller.report();
    if !controller.takes_changes() {
        // The outputs of a replay are its links, and not ports next to them.
        run.ports.clear();
        let Verdict { faithful, line, .. } = Verdict::of(&run);
        return Judgement { faithful, line };
    }
    let report = controller.look(|network| NetworkReport::new(run, network));
    let Verdict { faithful, line, .. } = verdict_on(&report);
    Judgement { faithful, line }
}

/// Prints the URLs of the page, also with `--quiet`: without them it cannot be opened. On a
/// desktop, opens the page.
pub fn announce(urls: &ViewUrls) {
    print_line(format_args!("view: {}", urls.full));
    print_line(format_args!("view, to read only: {}", urls.read));
    open_in_browser(&urls.full);
}

/// Opens a URL in the browser of the desktop, if a person started this program on one.
fn open_in_browser(url: &str) {
    let desktop = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| env::var_os(name).is_some());
    if !desktop || !std::io::stderr().is_terminal() {
        return;
    }
    // The URL has been printed: without `xdg-open`, a person opens it.
    let _ = Command::new("xdg-open")
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
}
