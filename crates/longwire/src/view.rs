//! The live view: page, verdict, and start of a browser.

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

use longwire_control::{Judgement, PageFile, ViewConfig, ViewUrls};
use longwire_network::{Controller, NetworkReport};

use crate::report::{Verdict, print_line};

/// Time allowed for the browser to read the redirecting page.
const READ_WITHIN: Duration = Duration::from_secs(20);

/// Returns the configuration of a live view at an address.
pub fn config(address: SocketAddr) -> ViewConfig {
    ViewConfig {
        address,
        files: FILES,
    }
}

/// Judges a run so far, as a report at this time would.
pub fn judge(controller: &Controller) -> Judgement {
    let mut run = controller.report();
    if controller.takes_changes() {
        let report = controller.look(|network| NetworkReport::new(run, network));
        run = report.run;
    }
    let Verdict { grade, line, .. } = Verdict::of(&run);
    Judgement { grade, line }
}

/// Prints the page URLs, even with `--quiet`, because the page cannot be opened without them. On a
/// desktop, opens the page.
pub fn announce(urls: &ViewUrls) {
    print_line(format_args!("view: {}", urls.full));
    print_line(format_args!("view, read-only: {}", urls.read));
    open_in_browser(&urls.full);
}

/// Opens a URL in the desktop's browser if the program runs in a desktop session.
fn open_in_browser(url: &str) {
    let desktop = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| env::var_os(name).is_some());
    if !desktop || !std::io::stderr().is_terminal() {
        return;
    }
    // Best effort: without `xdg-open`, the user opens the printed URL.
    let Some(page) = redirection(url) else {
        return;
    };
    let browser = Command::new("xdg-open")
        .arg(&page)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    // The browser may read the page after `xdg-open` exits.
    thread::spawn(move || {
        if let Ok(mut browser) = browser {
            let _ = browser.wait();
            thread::sleep(READ_WITHIN);
        }
        let _ = fs::remove_file(page);
    });
}

/// Writes a page that redirects to a URL and is readable only by this user; returns its path. The
/// URL contains the token, and process arguments are visible to every user.
fn redirection(url: &str) -> Option<PathBuf> {
    let directory = PathBuf::from(env::var_os("XDG_RUNTIME_DIR")?);
    let page = directory.join(format!("longwire-view-{}.html", std::process::id()));
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let url = url.replace('&', "&amp;").replace('"', "&quot;");
    let text = format!(r#"<!doctype html><meta http-equiv="refresh" content="0; url={url}">"#);
    options.open(&page).ok()?.write_all(text.as_bytes()).ok()?;
    Some(page)
}

static FILES: &[PageFile] = &[
    PageFile {
        path: "/",
        kind: "text/html; charset=utf-8",
        content: include_bytes!("../page/index.html"),
    },
    PageFile {
        path: "/assets/favicon.svg",
        kind: "image/svg+xml",
        content: include_bytes!("../page/assets/favicon.svg"),
    },
    PageFile {
        path: "/assets/index.css",
        kind: "text/css",
        content: include_bytes!("../page/assets/index.css"),
    },
    PageFile {
        path: "/assets/index.js",
        kind: "text/javascript",
        content: include_bytes!("../page/assets/index.js"),
    },
    PageFile {
        path: "/assets/licences.txt",
        kind: "text/plain; charset=utf-8",
        content: include_bytes!("../page/assets/licences.txt"),
    },
    PageFile {
        path: "/assets/worker.js",
        kind: "text/javascript",
        content: include_bytes!("../page/assets/worker.js"),
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::FILES;

    #[test]
    fn every_built_file_is_served() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        let names = |folder: &str| -> Vec<String> {
            let entries = fs::read_dir(page.join(folder)).expect("the page is committed");
            let names = entries.map(|entry| entry.expect("an entry").file_name());
            names
                .map(|name| format!("/{folder}{}", name.to_string_lossy()))
                .collect()
        };
        let mut built: BTreeSet<String> = names("").into_iter().chain(names("assets/")).collect();
        assert!(built.remove("/assets") && built.remove("/index.html") && built.insert("/".into()));
        let served: BTreeSet<String> = FILES.iter().map(|file| file.path.to_owned()).collect();
        assert_eq!(served, built);
    }
}
