//! `longwire top`: shows the links of a run in a terminal, as a client of its control API.
//!
//! A separate thread polls the run (`source`). This thread reads keys, keeps the displayed state
//! (`screen::TopScreen`) and draws it (`draw`).

mod detail;
mod draw;
mod screen;
mod source;
#[cfg(test)]
mod tests;

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::Duration;

use clap::Args;
use longwire_engine::Nanos;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use self::screen::{Sort, Step, TopScreen};
use self::source::{Request, Update};
use crate::commands::ctl::{RunAddress, connect};
use crate::signals::stop_flag;
use crate::{Error, Globals};

/// Interval between checks for keys and signals.
const LOOK_EVERY: Duration = Duration::from_millis(50);

const EXAMPLES: &str = "\
Keys: up and down select a direction, Enter shows it, s changes the sort column,
/ filters by name, e sets options, f turns a link off, p pauses it, o turns it on,
z undoes the last change, ? shows all keys, q quits.

Examples:
  longwire top                          the only run with a control socket
  longwire top 'adsl*' --sort drops     links with the most drops
  ssh lab longwire top --control /run/longwire/net.sock

In a pipe, `longwire ctl watch` prints counters line by line.";

/// Arguments of `top`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct TopArgs {
    /// The run.
    #[command(flatten)]
    pub run: RunAddress,

    /// Name or pattern of links: * any text, ? one character; default: all
    #[arg(value_name = "NAME")]
    pub name: Option<String>,

    /// Sort column, in descending order; names ascend
    #[arg(long, value_enum, default_value_t)]
    pub sort: Sort,

    /// Refresh interval, 200ms to 1min
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub every: Nanos,
}

/// Shows the links of a run until a key or a signal ends it.
///
/// # Errors
/// If stdout is not a terminal, or no run answers at the start.
pub fn run(args: &TopArgs, _globals: &Globals) -> Result<ExitCode, Error> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Error::usage(
            "top needs a terminal; `longwire ctl watch` prints counters line by line",
        ));
    }
    let (least, most) = (Nanos::from_millis(200), Nanos::from_secs(60));
    if !(least..=most).contains(&args.every) {
        return Err(Error::usage("--every: takes 200ms to 1min"));
    }
    let client = connect(&args.run)?;
    let every = Duration::from_nanos(args.every.as_nanos());
    let stop = stop_flag()?;
    let mut screen = TopScreen::new(args.name.clone(), args.sort);
    let (requests, asked) = channel();
    let (updates, answers) = channel();
    // The thread ends when `requests` is dropped.
    std::thread::Builder::new()
        .name("longwire-top".to_owned())
        .spawn(move || source::serve(client, every, &asked, &updates))?;
    let mut terminal = Restored(ratatui::try_init()?);
    loop {
        if let Some(query) = screen.new_query(draw::rows_of(terminal.0.size()?.height)) {
            let _ = requests.send(Request::Look(query));
        }
        terminal.0.draw(|frame| draw::draw(frame, &screen))?;
        if stop.load(Ordering::Relaxed) || hung_up(LOOK_EVERY) {
            return Ok(ExitCode::SUCCESS);
        }
        if event::poll(Duration::ZERO)?
            && let Event::Key(key) = event::read()?
            && key.kind == KeyEventKind::Press
        {
            match screen.press(key) {
                Step::Stay => {}
                Step::Quit => return Ok(ExitCode::SUCCESS),
                Step::Change(change) => {
                    let _ = requests.send(Request::Change(change));
                }
            }
        }
        while let Ok(update) = answers.try_recv() {
            match update {
                Update::First(error) => return Err(error),
                other => screen.update(other),
            }
        }
    }
}

/// Waits for input; returns whether the terminal is gone. At the end of input, crossterm would
/// retry forever.
fn hung_up(timeout: Duration) -> bool {
    let stdin = io::stdin();
    let mut input = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
    let gone = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
    // A signal, such as SIGWINCH, ends the wait early.
    poll(&mut input, timeout).is_ok()
        && input[0]
            .revents()
            .is_some_and(|found| found.intersects(gone))
}

/// A terminal that is restored on drop; ratatui's hook restores it after a panic.
struct Restored(ratatui::DefaultTerminal);

impl Drop for Restored {
    fn drop(&mut self) {
        ratatui::restore();
    }
}
