//! Runs every command of the book in a shell.
//!
//! bash runs the blocks marked `sh` in README.md and docs/, except decisions. The blocks of a page
//! run in order, in one shell and one scratch directory, as root in network, mount and process
//! namespaces that end with the page. A block must exit with 0. A comment before a block changes
//! that:
//!
//! | comment | meaning |
//! |---|---|
//! | `<!-- test: not run: REASON -->` | the block is not run |
//! | `<!-- test: exit 0 3 -->` | the block exits with one of these codes; its variables are lost |
//! | `<!-- test: needs promtool -->` | the block is skipped if this program is not installed |
//! | `<!-- test: background until COMMAND -->` | the block keeps running; the page waits for COMMAND |
//! | `<!-- test: replace A => B; C => D -->` | the text is changed first |
//! | `<!-- test: save as FILE -->` | the block, in any language, is saved to the scratch directory |
//! | `<!-- test: run`, lines, `-->` | the lines are run too, hidden from readers |
//!
//! Commands in blocks of other languages must be marked `not run`. `sudo` only runs its command.
//! `$LONGWIRE` is the repository.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::common::program::path_with_program;
use crate::common::{have, write};
use longwire_testbed::support::{Folder, skip, words};

/// Timeout after which a block is considered hung.
const LIMIT: Duration = Duration::from_secs(180);

/// Number of pages run concurrently; pages spend most of their time waiting.
const PAGES_AT_ONCE: usize = 4;

/// A block of a page, as a step to run.
struct Block {
    /// Line of the block in the page.
    line: usize,
    kind: BlockKind,
    text: String,
}

enum BlockKind {
    /// Commands for the page's shell.
    Shell,
    /// Commands for a separate shell, which must exit with one of these codes.
    Exits(Vec<i32>),
    /// Commands that keep running; the page continues once this readiness command succeeds.
    Background(String),
    /// The contents of a file.
    File(String),
    /// Commands that are not run, with the reason.
    NotRun(String),
}

/// Annotations before a block.
#[derive(Default)]
struct Annotations {
    kind: Option<BlockKind>,
    needs: Option<String>,
    replacements: Vec<(String, String)>,
}

impl Annotations {
    /// Parses one annotation; `None` if it is invalid.
    fn read(&mut self, comment: &str) -> Option<()> {
        if let Some(reason) = comment.strip_prefix("not run: ") {
            self.kind = Some(BlockKind::NotRun(reason.to_owned()));
        } else if let Some(codes) = comment.strip_prefix("exit ") {
            let codes: Result<Vec<i32>, _> = codes.split_whitespace().map(str::parse).collect();
            self.kind = Some(BlockKind::Exits(codes.ok()?));
        } else if let Some(command) = comment.strip_prefix("background until ") {
            self.kind = Some(BlockKind::Background(command.to_owned()));
        } else if let Some(file) = comment.strip_prefix("save as ") {
            self.kind = Some(BlockKind::File(file.to_owned()));
        } else if let Some(program) = comment.strip_prefix("needs ") {
            self.needs = Some(program.to_owned());
        } else {
            for pair in comment.strip_prefix("replace ")?.split("; ") {
                let (from, to) = pair.split_once(" => ")?;
                self.replacements.push((from.to_owned(), to.to_owned()));
            }
        }
        Some(())
    }

    /// Returns the step for a block in this language.
    fn step(self, line: usize, language: &str, mut text: String) -> Result<Option<Block>, String> {
        for (from, to) in &self.replacements {
            if !text.contains(from) {
                return Err(format!(
                    "'{from}', which is to be replaced, is not in the block"
                ));
            }
            text = text.replace(from, to);
        }
        let kind = match self.kind {
            _ if self.needs.as_deref().is_some_and(|program| !have(program)) => {
                BlockKind::NotRun("a program is not installed".to_owned())
            }
            Some(kind) => kind,
            None if language == "sh" => BlockKind::Shell,
            None if text.lines().any(is_command) => {
                let what = "a command that is not run: mark the block `sh`, or say why not";
                return Err(what.to_owned());
            }
            None => return Ok(None),
        };
        Ok(Some(Block { line, kind, text }))
    }
}

/// Returns whether a line begins like a shell command.
fn is_command(line: &str) -> bool {
    ["longwire ", "sudo ", "$ ", "cargo "]
        .iter()
        .any(|start| line.starts_with(start))
}

/// Returns the steps of a page, or its first error.
fn steps(page: &str) -> Result<Vec<Block>, String> {
    let mut steps = Vec::new();
    let mut annotations = Annotations::default();
    let mut lines = page.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let at = |what: String| format!("line {}: {what}", number + 1);
        let indent = line.len() - line.trim_start().len();
        let line = line.trim_start();
        let mut until = |end: &str| {
            let inside = lines.by_ref().take_while(|(_, line)| line.trim() != end);
            inside.fold(String::new(), |text, (_, line)| {
                text + line.get(indent..).unwrap_or("") + "\n"
            })
        };
        if line == "<!-- test: run" {
            steps.push(Block {
                line: number + 1,
                kind: BlockKind::Shell,
                text: until("-->"),
            });
        } else if let Some(rest) = line.strip_prefix("<!-- test: ") {
            let comment = rest.strip_suffix(" -->").unwrap_or_default();
            let read = annotations.read(comment);
            read.ok_or_else(|| at(format!("unknown annotation: {line}")))?;
        } else if let Some(language) = line.strip_prefix("```") {
            let step = std::mem::take(&mut annotations).step(number + 1, language, until("```"));
            steps.extend(step.map_err(at)?);
        }
    }
    Ok(steps)
}

/// Returns the repository root.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns README.md and all pages in docs/ except decisions, with their paths.
fn pages() -> Vec<(String, String)> {
    let root = root().canonicalize().expect("the repository");
    let mut pages = vec![root.join("README.md")];
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !path.ends_with("decisions") {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    let named = pages.into_iter().map(|path| {
        let name = path.strip_prefix(&root).expect("inside").to_string_lossy();
        let text = fs::read_to_string(&path).expect("a page");
        (name.into_owned(), text)
    });
    named.collect()
}

/// Returns the script of a page. The script writes each block's number to the file `step` before
/// running the block.
fn script(steps: &[Block]) -> String {
    let mut script = PRELUDE.to_owned();
    for (number, step) in steps.iter().enumerate() {
        let text = &step.text;
        script += &match &step.kind {
            BlockKind::NotRun(_) => continue,
            BlockKind::File(name) => format!("cat > '{name}' <<'END-OF-FILE'\n{text}END-OF-FILE\n"),
            BlockKind::Shell => format!("echo {number} > .book/step\n{text}"),
            BlockKind::Exits(codes) => {
                let codes: Vec<String> = codes.iter().map(ToString::to_string).collect();
                format!(
                    "echo {number} > .book/step\nset +e\n( set -e\n{text})\ncode=$?\nset -e\n\
                     case $code in {}) ;; *) echo \"exit code $code\"; exit 1 ;; esac\n",
                    codes.join("|")
                )
            }
            BlockKind::Background(ready) => format!(
                "echo {number} > .book/step\n( set -e\n{text}) &\n\
                 until {ready} > .book/ready 2>&1; do sleep 0.1; done\n"
            ),
        };
    }
    script
}

/// Prepares a page's environment: commands write to tmpfs or to the scratch directory, and `sudo`
/// needs no password.
const PRELUDE: &str = r#"set -e
mount -t tmpfs none /run
ip link set lo up
mkdir -p .book/bin
printf '#!/bin/sh\nexec "$@"\n' > .book/bin/sudo
chmod +x .book/bin/sudo
ln -s "$LONGWIRE/examples" examples
export PATH="$PWD/.book/bin:$PATH"
"#;

/// Starts a page's script in its directory.
fn start(dir: &Folder, steps: &[Block]) -> Child {
    write(dir.file("page.sh"), script(steps).as_bytes());
    let output = File::create(dir.file("output")).expect("a file");
    unshare()
        .args(["bash", "page.sh"])
        .current_dir(dir.path())
        .env("LONGWIRE", root().canonicalize().expect("the repository"))
        .env("PATH", path_with_program())
        .env("HOME", dir.path())
        .env_remove("XDG_RUNTIME_DIR")
        .env_remove("LONGWIRE_CONTROL")
        .stdin(Stdio::null())
        .stdout(output.try_clone().expect("a file"))
        .stderr(output)
        .spawn()
        .expect("unshare starts")
}

/// Returns a command that runs as root in new namespaces, which cease to exist with the command.
fn unshare() -> Command {
    let mut command = Command::new("unshare");
    if !nix::unistd::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(words(
        "--net --mount --pid --fork --kill-child --mount-proc",
    ));
    command
}

/// Runs a page; returns the error of the first failing block.
fn run(steps: &[Block]) -> Result<(), String> {
    let dir = Folder::new();
    let mut child = start(&dir, steps);
    let mut current = (None, Instant::now());
    let ended = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break (!status.success()).then(|| status.to_string());
        }
        let text = fs::read_to_string(dir.path().join(".book/step")).unwrap_or_default();
        let step = text.trim().parse::<usize>().ok();
        if step.is_some() && step != current.0 {
            current = (step, Instant::now());
        }
        if current.1.elapsed() > LIMIT {
            let _ = child.kill();
            let _ = child.wait();
            break Some(format!("still running after {LIMIT:?}"));
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let Some(how) = ended else { return Ok(()) };
    let text = fs::read_to_string(dir.path().join(".book/step")).unwrap_or_default();
    let step = text.trim().parse::<usize>().ok().map(|step| &steps[step]);
    let output = fs::read(dir.path().join("output")).unwrap_or_default();
    let output = String::from_utf8_lossy(&output);
    let tail: Vec<&str> = output.lines().rev().take(40).collect();
    let tail: Vec<&str> = tail.into_iter().rev().collect();
    let place = step.map_or("start".to_owned(), |step| format!("line {}", step.line));
    let block = step.map_or("", |step| &step.text);
    Err(format!(
        "{place}: {how}\n{block}--- output\n{}",
        tail.join("\n")
    ))
}

/// Programs that the pages use.
const PROGRAMS: [&str; 7] = ["bash", "cc", "curl", "ip", "iperf3", "jq", "ping"];

/// Returns whether a page's namespaces can be created and the programs are installed.
fn is_possible() -> bool {
    if !PROGRAMS.into_iter().all(have) {
        return false;
    }
    let tried = unshare()
        .args(["mount", "-t", "tmpfs", "none", "/run"])
        .output();
    let why = match tried {
        Ok(output) if output.status.success() => return true,
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => format!("unshare: {error}"),
    };
    skip::<()>(why).is_some()
}

/// Runs several pages concurrently; returns the errors.
fn run_all(mut pages: Vec<(String, Vec<Block>)>) -> Vec<String> {
    // Pages are popped from the end, so the longest run first.
    pages.sort_by_key(|(_, blocks)| blocks.len());
    let left = Mutex::new(pages);
    let problems = Mutex::new(Vec::new());
    let work = || {
        while let Some((name, blocks)) = { left.lock().expect("a list").pop() } {
            let start = Instant::now();
            let outcome = run(&blocks);
            println!("{name}: {:.1} s", start.elapsed().as_secs_f64());
            if let Err(what) = outcome {
                let mut problems = problems.lock().expect("a list");
                problems.push(format!("{name}: {what}"));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..PAGES_AT_ONCE {
            scope.spawn(work);
        }
    });
    problems.into_inner().expect("a list")
}

/// `BOOK_PAGE=ci.md` in the environment selects pages by substring.
#[test]
fn every_command_of_the_book_works() {
    if !is_possible() {
        return;
    }
    let chosen = std::env::var("BOOK_PAGE").unwrap_or_default();
    let mut problems = Vec::new();
    let mut all = Vec::new();
    let (mut blocks_run, mut blocks_left) = (0, 0);
    for (name, text) in pages() {
        if !name.contains(&chosen) {
            continue;
        }
        let blocks = steps(&text).unwrap_or_else(|what| {
            problems.push(format!("{name}: {what}"));
            Vec::new()
        });
        for block in &blocks {
            if let BlockKind::NotRun(reason) = &block.kind {
                blocks_left += 1;
                println!("{name}:{}: not run: {reason}", block.line);
            } else {
                blocks_run += 1;
            }
        }
        let is_run = |block: &Block| !matches!(block.kind, BlockKind::NotRun(_));
        if blocks.iter().any(is_run) {
            all.push((name, blocks));
        }
    }
    problems.extend(run_all(all));
    println!("{blocks_run} blocks run, {blocks_left} not run");
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
    assert!(!chosen.is_empty() || blocks_run > 60, "{blocks_run} blocks");
}

#[test]
fn commands_without_a_mark_are_found() {
    let wrong = |page: &str| steps(page).is_err();
    assert!(wrong("```\nlongwire doctor\n```\n"));
    assert!(wrong("```console\n$ ls\n```\n"));
    assert!(wrong("<!-- test: sometimes -->\n```sh\nls\n```\n"));
    assert!(wrong("<!-- test: replace a => b -->\n```sh\nls\n```\n"));
    let page = "<!-- test: not run: no -->\n```\nlongwire x\n```\n```text\nls\n```\n";
    assert_eq!(steps(page).expect("a page").len(), 1);
}
