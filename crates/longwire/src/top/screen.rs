//! Screen state and key bindings.

use clap::ValueEnum;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Map, Value, json};

use super::source::{ChangeRequest, Query, Snapshot, Update};

/// The order of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// Delivered bits per second
    #[default]
    Rate,
    /// Dropped frames per second
    Drops,
    /// Frames in the queue
    Queue,
    /// Late frames
    Late,
    /// Name, ascending
    Name,
}

impl Sort {
    /// Returns the sort parameters of the request: column and direction.
    pub fn parameters(self) -> (&'static str, &'static str) {
        match self {
            Sort::Rate => ("bits_out", "desc"),
            Sort::Drops => ("drops", "desc"),
            Sort::Queue => ("queued", "desc"),
            Sort::Late => ("late", "desc"),
            Sort::Name => ("name", "asc"),
        }
    }

    fn next(self) -> Sort {
        let all = Sort::value_variants();
        all[(all.iter().position(|sort| *sort == self).unwrap_or(0) + 1) % all.len()]
    }
}

/// A prompt with its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// A name pattern.
    Search(String),
    /// Options for the selected direction.
    Options(String),
}

/// Effect of a key press.
#[derive(Debug, PartialEq)]
pub enum Step {
    Stay,
    Quit,
    Change(ChangeRequest),
}

/// A message at the bottom of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub text: String,
    pub is_error: bool,
}

/// Reason why the displayed data is outdated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The run has ended.
    Ended,
    /// The run does not answer.
    NoAnswer(String),
}

/// State of the screen.
#[derive(Debug, Default)]
pub struct TopScreen {
    pub shown: Option<Box<Snapshot>>,
    /// Why the displayed data is outdated.
    pub lost: Option<Lost>,
    pub message: Option<Message>,
    pub prompt: Option<Prompt>,
    /// Submitted options, kept until the run answers.
    sent: Option<String>,
    pub help: bool,
    pub pattern: Option<String>,
    pub sort: Sort,
    /// Index of the selected direction in the full table.
    pub chosen: usize,
    /// Index of the first visible row.
    pub offset: usize,
    /// Direction in the detail view.
    pub detail: Option<String>,
    rows: usize,
    asked: Option<Query>,
    back: Option<ChangeRequest>,
}

impl TopScreen {
    pub fn new(pattern: Option<String>, sort: Sort) -> TopScreen {
        TopScreen {
            pattern,
            sort,
            rows: 1,
            ..TopScreen::default()
        }
    }

    /// Returns the query for a table of `rows` rows, if it has changed.
    pub fn new_query(&mut self, rows: usize) -> Option<Query> {
        self.rows = rows.max(1);
        self.offset = self
            .offset
            .clamp((self.chosen + 1).saturating_sub(self.rows), self.chosen);
        let query = Query {
            pattern: self.pattern.clone().unwrap_or_else(|| "*".to_owned()),
            sort: self.sort,
            offset: self.offset,
            limit: self.rows.min(500),
            detail: self.detail.clone(),
        };
        if self.asked.as_ref() == Some(&query) {
            return None;
        }
        self.asked = Some(query.clone());
        Some(query)
    }

    /// Applies a message from the polling thread.
    pub fn update(&mut self, update: Update) {
        match update {
            Update::Shown(snapshot) => {
                self.lost = None;
                self.chosen = self.chosen.min(snapshot.page.fitting.saturating_sub(1));
                self.shown = Some(snapshot);
            }
            Update::Made(text, back) => {
                let hint = if back.is_some() { "; z undoes it" } else { "" };
                self.tell(format!("{text}{hint}"), false);
                self.sent = None;
                self.back = back;
            }
            Update::Refused(error) => {
                self.tell(error, true);
                // Reopen the prompt for correction, unless another one is open.
                if self.prompt.is_none() {
                    self.prompt = self.sent.take().map(Prompt::Options);
                }
            }
            Update::Lost(error) => self.lost = Some(Lost::NoAnswer(error)),
            Update::Ended => self.lost = Some(Lost::Ended),
            // `run` ends the program with this error.
            Update::First(_) => {}
        }
    }

    fn tell(&mut self, text: impl Into<String>, is_error: bool) {
        self.message = Some(Message {
            text: text.into(),
            is_error,
        });
    }

    /// Returns the name of the selected direction.
    pub fn chosen_name(&self) -> Option<&str> {
        if let Some(name) = &self.detail {
            return Some(name);
        }
        let asked = self.asked.as_ref()?;
        let place = self.chosen.checked_sub(asked.offset)?;
        Some(&self.shown.as_ref()?.page.rows.get(place)?.name)
    }

    /// Applies a key press; returns its effect.
    pub fn press(&mut self, key: KeyEvent) -> Step {
        // A key right after Escape has the same bytes as that key with Alt.
        if key.modifiers.contains(KeyModifiers::ALT) {
            self.press(KeyEvent::from(KeyCode::Esc));
            let modifiers = key.modifiers - KeyModifiers::ALT;
            return self.press(KeyEvent { modifiers, ..key });
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && key.code == KeyCode::Char('c') {
            return Step::Quit;
        }
        if let Some(prompt) = self.prompt.take() {
            return self.type_in(prompt, key.code, control);
        }
        // Ignore editing keys: the prompt may have just closed.
        if control {
            return Step::Stay;
        }
        self.message = None;
        if self.help {
            self.help = false;
            return Step::Stay;
        }
        match key.code {
            KeyCode::Char('q') => return Step::Quit,
            KeyCode::Char('?' | 'h') => self.help = true,
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Char('/') => self.prompt = Some(Prompt::Search(String::new())),
            KeyCode::Esc | KeyCode::Backspace if self.detail.is_some() => self.detail = None,
            KeyCode::Esc => self.pattern = None,
            KeyCode::Enter => self.detail = self.chosen_name().map(str::to_owned),
            KeyCode::Char('e') if self.may_change() => {
                self.prompt = Some(Prompt::Options(String::new()));
            }
            KeyCode::Char('f') => return self.set_state("off"),
            KeyCode::Char('p') => return self.set_state("pause"),
            KeyCode::Char('o') => return self.set_state("on"),
            KeyCode::Char('z') => return self.take_back(),
            code => self.scroll(code),
        }
        Step::Stay
    }

    fn scroll(&mut self, code: KeyCode) {
        let shown = self.shown.as_ref();
        let last = shown.map_or(0, |shown| shown.page.fitting.saturating_sub(1));
        let page = self.rows;
        self.chosen = match code {
            KeyCode::Down | KeyCode::Char('j') => self.chosen + 1,
            KeyCode::Up | KeyCode::Char('k') => self.chosen.saturating_sub(1),
            KeyCode::PageDown => self.chosen + page,
            KeyCode::PageUp => self.chosen.saturating_sub(page),
            KeyCode::Home => 0,
            KeyCode::End => last,
            _ => self.chosen,
        }
        .min(last);
    }

    fn may_change(&mut self) -> bool {
        let shown = self.shown.as_ref();
        let may = shown.is_some_and(|shown| shown.overview.may_change);
        if !may {
            self.tell("read-only token; nothing can be changed", true);
        }
        may
    }

    fn set_state(&mut self, action: &str) -> Step {
        let may_change = self.may_change();
        let Some(name) = self.chosen_name().filter(|_| may_change).map(str::to_owned) else {
            return Step::Stay;
        };
        Step::Change(ChangeRequest {
            body: json!({ action: [name] }),
            text: format!("{name}: {action}"),
            of: Some(name),
        })
    }

    fn take_back(&mut self) -> Step {
        match self.back.take() {
            Some(back) => Step::Change(back),
            None => {
                self.tell("no change to undo", true);
                Step::Stay
            }
        }
    }

    fn type_in(&mut self, mut prompt: Prompt, code: KeyCode, control: bool) -> Step {
        let (Prompt::Search(text) | Prompt::Options(text)) = &mut prompt;
        match code {
            KeyCode::Esc => {
                self.message = None;
                return Step::Stay;
            }
            // Ctrl-U deletes the line and Ctrl-W the last word, like a shell.
            KeyCode::Char('u') if control => text.clear(),
            KeyCode::Char('w') if control => {
                text.truncate(text.trim_end().rfind(' ').map_or(0, |space| space + 1));
            }
            KeyCode::Char(_) if control => {}
            KeyCode::Char(character) => text.push(character),
            KeyCode::Backspace => {
                text.pop();
            }
            KeyCode::Enter => return self.enter(prompt),
            _ => {}
        }
        self.prompt = Some(prompt);
        Step::Stay
    }

    fn enter(&mut self, prompt: Prompt) -> Step {
        match prompt {
            Prompt::Search(text) => {
                let text = text.trim();
                let pattern = if text.contains(['*', '?']) {
                    text.to_owned()
                } else {
                    format!("*{text}*")
                };
                self.pattern = Some(pattern).filter(|_| !text.is_empty());
                (self.chosen, self.offset, self.detail) = (0, 0, None);
                Step::Stay
            }
            Prompt::Options(text) => {
                let Some(name) = self.chosen_name().map(str::to_owned) else {
                    return Step::Stay;
                };
                match options(&text) {
                    Ok(options) => {
                        let change = ChangeRequest {
                            text: format!("{name}: {}", text.trim()),
                            body: json!({ "set": { name.clone(): options } }),
                            of: Some(name),
                        };
                        self.message = None;
                        self.sent = Some(text);
                        Step::Change(change)
                    }
                    Err(problem) => {
                        self.tell(problem, true);
                        self.prompt = Some(Prompt::Options(text));
                        Step::Stay
                    }
                }
            }
        }
    }
}

/// Parses options such as `rate=5mbit delay=20ms`; the run validates their values.
fn options(text: &str) -> Result<Map<String, Value>, String> {
    let mut options = Map::new();
    for word in text.split_whitespace() {
        let Some((name, value)) = word.split_once('=') else {
            return Err(format!("'{word}' is not OPTION=VALUE, such as rate=5mbit"));
        };
        options.insert(name.to_owned(), value.into());
    }
    if options.is_empty() {
        return Err("no options; for example: rate=5mbit delay=20ms".to_owned());
    }
    Ok(options)
}
