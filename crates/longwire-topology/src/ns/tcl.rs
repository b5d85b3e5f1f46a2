//! A subset of Tcl: commands made of words, variables, and text in braces, brackets and quotes.

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// An unquoted or quoted word, subject to variable substitution.
    Plain(String),
    /// Literal text in braces, with the number of its first line.
    Braced(String, usize),
    /// A command in brackets, replaced by its result.
    Bracket(String),
}

/// A command and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptCommand {
    /// Line number, from 1.
    pub line: usize,
    /// At least one word.
    pub words: Vec<Word>,
}

/// A line number and a message.
pub type ScriptError = (usize, String);

/// Splits a script into commands; `line` is the number of its first line.
///
/// # Errors
/// If a brace, bracket or quote is unclosed.
pub fn commands(script: &str, line: usize) -> Result<Vec<ScriptCommand>, ScriptError> {
    let mut scanner = Scanner { rest: script, line };
    let mut commands = Vec::new();
    let mut words = Vec::new();
    let mut began = line;
    while let Some(next) = scanner.peek() {
        match next {
            '\n' | ';' => {
                end(&mut commands, &mut words, began);
                scanner.take();
            }
            '#' if words.is_empty() => scanner.skip_line(),
            '\\' if scanner.rest.starts_with("\\\n") => {
                scanner.take();
                scanner.take();
            }
            space if space.is_whitespace() => {
                scanner.take();
            }
            _ => {
                if words.is_empty() {
                    began = scanner.line;
                }
                words.push(scanner.word()?);
            }
        }
    }
    end(&mut commands, &mut words, began);
    Ok(commands)
}

fn end(commands: &mut Vec<ScriptCommand>, words: &mut Vec<Word>, line: usize) {
    if !words.is_empty() {
        let words = std::mem::take(words);
        commands.push(ScriptCommand { line, words });
    }
}

struct Scanner<'a> {
    rest: &'a str,
    line: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.rest = &self.rest[next.len_utf8()..];
        self.line += usize::from(next == '\n');
        Some(next)
    }

    fn skip_line(&mut self) {
        while self.peek().is_some_and(|next| next != '\n') {
            self.take();
        }
    }

    fn word(&mut self) -> Result<Word, ScriptError> {
        let line = self.line;
        match self.peek() {
            Some('{') => Ok(Word::Braced(self.nested('{', '}')?, line)),
            Some('[') => Ok(Word::Bracket(self.nested('[', ']')?)),
            Some('"') => {
                self.take();
                let mut text = String::new();
                loop {
                    match self.take() {
                        Some('"') => return Ok(Word::Plain(text)),
                        Some(next) => text.push(next),
                        None => return Err((line, "unclosed quote".to_owned())),
                    }
                }
            }
            _ => {
                let mut text = String::new();
                let ends = |c: char| c.is_whitespace() || c == ';';
                while let Some(next) = self.peek().filter(|next| !ends(*next)) {
                    text.push(next);
                    self.take();
                }
                Ok(Word::Plain(text))
            }
        }
    }

    /// Reads text up to the matching closing character.
    fn nested(&mut self, open: char, close: char) -> Result<String, ScriptError> {
        let line = self.line;
        let (mut depth, mut text) = (0, String::new());
        while let Some(next) = self.take() {
            depth += i32::from(next == open) - i32::from(next == close);
            if depth == 0 {
                // Omit the opening character.
                return Ok(text.split_off(open.len_utf8()));
            }
            text.push(next);
        }
        Err((line, format!("unclosed '{open}'")))
    }
}
