//! Every way to name a file in a request.

use std::fs;
use std::path::{Path, PathBuf};

use longwire_control::node::NodeRefusal;
use longwire_testbed::support::{FileOption, Folder, compile_plugin, rows};
use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::{Value, json};

use crate::files::{NO_FILES, NO_PLUGINS};
use crate::networks::NetworkRequest;
use crate::request::AttachmentRequest;

/// File contents that no response may contain.
const SECRET: &str = "swordfish";

/// A file that reports being opened, and a FIFO, which would block a reader.
struct Trap {
    folder: Folder,
    secret: PathBuf,
    fifo: PathBuf,
    opened: Inotify,
}

impl Trap {
    fn new() -> Trap {
        let folder = Folder::new();
        let (secret, fifo) = (folder.path().join("secret"), folder.path().join("fifo"));
        fs::write(&secret, format!("name,{SECRET}\n{SECRET}:x:0:0,{SECRET}\n")).expect("a file");
        mkfifo(&fifo, Mode::S_IRWXU).expect("a FIFO");
        let opened = Inotify::init(InitFlags::IN_NONBLOCK).expect("inotify");
        let flags = AddWatchFlags::IN_OPEN | AddWatchFlags::IN_ACCESS;
        opened.add_watch(&secret, flags).expect("a watch");
        Trap {
            folder,
            secret,
            fifo,
            opened,
        }
    }

    fn absolute(&self) -> [String; 4] {
        let (secret, fifo) = (self.secret.display(), self.fifo.display());
        let missing = self.folder.path().join("missing").display().to_string();
        [
            secret.to_string(),
            fifo.to_string(),
            missing,
            "/etc/shadow".to_owned(),
        ]
    }

    /// Returns paths relative to the working directory.
    fn relative(&self) -> Vec<String> {
        let here = std::env::current_dir().expect("a directory");
        let up = "../".repeat(here.components().count() - 1);
        let relative = |path: &String| format!("{up}{}", path.trim_start_matches('/'));
        let mut all: Vec<String> = self.absolute().iter().map(relative).collect();
        assert!(Path::new(&all[0]).exists(), "{}", all[0]);
        // Names in the working directory, without `/`.
        all.extend(["Cargo.toml", "missing", "-"].map(str::to_owned));
        all
    }

    fn was_opened(&self) -> bool {
        !matches!(self.opened.read_events(), Err(Errno::EAGAIN))
    }
}

/// All request fields for link options: name, kind of request, and the request.
const OPTIONS: &str = r#"
    attachment | attach | { "OPTION": "TEXT" }
    attachment, one direction | attach | { "down": { "OPTION": "TEXT" } }
    attachment, a list | attach | { "OPTION": ["TEXT"] }
    link of a network | network | { "link": [{ "name": "x", "OPTION": "TEXT" }] }
    direction of a link | network | { "link": [{ "name": "x", "up": { "OPTION": "TEXT" } }] }
    defaults | network | { "defaults": { "OPTION": "TEXT" } }
    template | network | { "templates": { "t": { "OPTION": "TEXT" } } }
    event | network | { "link": [{ "name": "x", "match": "in-port=a" }], "at": [{ "time": "1s", "set": { "x": { "OPTION": "TEXT" } } }] }
"#;

/// All remaining request fields for paths.
const PATHS: &str = r#"
    csv | network | { "link": [{ "csv": "TEXT" }] }
    key | network | { "underlay": { "key": "TEXT" }, "link": [{ "name": "x", "match": "in-port=a" }], "host": [{ "name": "h", "ports": ["a"], "address": "192.0.2.1" }, { "name": "i", "ports": ["b"], "address": "192.0.2.2" }] }
    capture to read | network | { "ports": { "a": "pcap:TEXT", "b": "null" } }
    capture to write | network | { "ports": { "a": "pcap:out=TEXT", "b": "null" } }
"#;

/// Sends a request with this option and text.
fn enter(
    (kind, request): (&str, &str),
    (option, text): (&str, &str),
    files: bool,
) -> Result<(), NodeRefusal> {
    let text = json!(text).to_string();
    let request = request.replace("OPTION", option);
    let request = request.replace("TEXT", &text[1..text.len() - 1]);
    let request = serde_json::from_str(&request).expect("JSON");
    match kind {
        "attach" => attach(request, files),
        _ => network(request, files),
    }
}

/// Returns whether a field accepts an option: presets cover both directions, and not every option
/// accepts a list.
fn takes(at: &str, option: &FileOption) -> bool {
    let presets = ["attachment", "link of a network", "defaults", "template"];
    match option.option {
        "preset" => presets.contains(&at),
        "loss" => true,
        _ => at != "attachment, a list",
    }
}

fn attach(link: Value, files: bool) -> Result<(), NodeRefusal> {
    let body = json!({ "target": { "pid": 1 }, "link": link, "files": files });
    AttachmentRequest::read(&serde_json::from_value(body).expect("an attachment")).map(drop)
}

fn network(mut file: Value, files: bool) -> Result<(), NodeRefusal> {
    if file.get("ports").is_none() {
        file["ports"] = json!({ "a": "null", "b": "null" });
    }
    let host = file.get("host").map(|_| "h");
    let body = json!({ "file": file, "files": files, "host": host });
    NetworkRequest::read(&serde_json::from_value(body).expect("a network")).map(drop)
}

/// Every file option of every model, and a path in every remaining field, is refused without
/// looking up the path: the response does not depend on whether the file exists.
#[test]
fn refused_paths_are_not_looked_up() {
    let trap = Trap::new();
    let options = FileOption::all();
    assert!(options.len() > 12, "{options:?}");
    let absolute = trap.absolute();
    let relative = trap.relative();
    let cases = [
        (false, &absolute[..]),
        (false, &relative),
        (true, &relative),
    ];
    for (files, paths) in cases {
        let refusal = |text: &str, refused: Result<(), NodeRefusal>, at: &str| {
            let refused = refused.err().unwrap_or_else(|| panic!("{at}: {text}"));
            let answer = refused.to_string();
            let reason = if files { "a relative path" } else { NO_FILES };
            // Plugins have a separate error message.
            let is_known = answer.contains(reason) || answer.contains(NO_PLUGINS);
            assert!(is_known, "{at}: {text}: {answer}");
            assert!(!answer.contains(SECRET), "{at}: {answer}");
            assert!(!answer.contains("root:"), "{at}: {answer}");
        };
        for path in paths {
            for [at, kind, request] in rows(OPTIONS) {
                for option in options.iter().filter(|option| takes(at, option)) {
                    let text = option.text(path, trap.folder.path());
                    let given = (option.option, text.as_str());
                    refusal(&text, enter((kind, request), given, files), at);
                }
            }
            for [at, kind, request] in rows(PATHS) {
                refusal(path, enter((kind, request), ("", path), files), at);
            }
        }
    }
    assert!(!trap.was_opened());
    // The same rule applies to files named in the rows of a permitted file. Rows are not quoted.
    let rows = trap.folder.path().join("rows.csv");
    for path in &relative {
        fs::write(
            &rows,
            format!("name,rate\n{SECRET},\"trace:file={path}\"\n"),
        )
        .expect("a file");
        let read = network(json!({ "link": [{ "csv": rows }] }), true);
        let answer = read.expect_err("refused").to_string();
        let said = "line 2: not a valid row of links";
        assert!(answer.contains(said), "{answer}");
        assert!(!answer.contains(SECRET), "{answer}");
    }
    assert!(!trap.was_opened());
}

/// Root may name any file by an absolute path, but responses do not contain its contents.
#[test]
fn permitted_files_are_not_quoted() {
    let trap = Trap::new();
    let [secret, fifo, missing, _] = trap.absolute();
    for [at, kind, request] in rows(OPTIONS) {
        for option in FileOption::all() {
            if !takes(at, &option) {
                continue;
            }
            let enter = |path: &str| {
                let text = option.text(path, trap.folder.path());
                let read = enter((kind, request), (option.option, &text), true);
                read.map_err(|refused| format!("{at}: {text}: {refused}"))
            };
            for path in [&fifo, &missing] {
                enter(path).expect_err("not a regular file");
            }
            match enter(&secret) {
                Err(answer) => assert!(!answer.contains(SECRET), "{answer}"),
                // Only the network's process detects this error.
                Ok(()) => assert!(option.is_plugin() && !at.starts_with("att"), "{at}"),
            }
        }
    }
    let answer = network(json!({ "link": [{ "csv": secret }] }), true);
    let answer = answer.expect_err("no such columns").to_string();
    assert!(answer.contains("not a valid row of links"), "{answer}");
    assert!(!answer.contains(SECRET), "{answer}");
    assert!(trap.was_opened(), "the test's own watch works");
}

/// A plugin must not be loaded, because loading it runs its code.
#[test]
fn no_plugin_is_loaded_into_the_node() {
    let folder = Folder::new();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (source, library) = (at("dies.c"), at("dies.so"));
    let dies = "__attribute__((constructor)) static void die(void) { *(volatile int *)0 = 1; }\n";
    fs::write(&source, dies).expect("a file");
    compile_plugin(&source, &library);
    let loss = json!({ "loss": format!("plugin:{library}") });
    let refused = attach(loss.clone(), true).expect_err("refused").to_string();
    assert!(refused.contains(NO_PLUGINS), "{refused}");
    let link = json!({ "name": "x", "up": loss });
    network(json!({ "link": [link] }), true).expect("its own process loads it");
}
