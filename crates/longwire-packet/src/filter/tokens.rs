//! Splits a filter into tokens.

use alloc::string::String;
use alloc::vec::Vec;

/// Error of a filter, with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {message}")]
pub struct FilterError {
    /// Column in characters, from 1.
    pub column: usize,
    /// The reason, with alternatives.
    pub message: String,
}

/// A token with its column in characters, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub text: &'a str,
    pub column: usize,
}

/// Separate tokens, longest first.
const MARKS: [&str; 22] = [
    "==", "!=", "<=", ">=", "&&", "||", "<<", ">>", "=", "<", ">", "!", "(", ")", "[", "]", "{",
    "}", "&", "|", "^", "%",
];

/// Characters that may occur within a word: networks, names, addresses, lists. They are
/// separate tokens where no word can start with them, and some in brackets.
const BETWEEN: [&str; 6] = ["+", "-", "*", "/", ":", ","];

/// Characters that end a word.
const ENDS: &str = "=!<>&|()[]{}^%";

/// Context of a position.
#[derive(Clone, Copy, Default)]
struct Within {
    brackets: u32,
    braces: u32,
}

impl Within {
    fn note(&mut self, mark: &str) {
        match mark {
            "[" => self.brackets += 1,
            "]" => self.brackets = self.brackets.saturating_sub(1),
            "{" => self.braces += 1,
            "}" => self.braces = self.braces.saturating_sub(1),
            _ => {}
        }
    }

    /// Whether a word ends before this character.
    fn ends(self, c: char) -> bool {
        c.is_whitespace()
            || ENDS.contains(c)
            || self.brackets > 0 && "+-*/:".contains(c)
            || self.braces > 0 && c == ','
    }
}

/// Splits a text at blanks and operators. Returns the tokens, and the column after the
/// text.
pub(super) fn tokens(text: &str) -> (Vec<Token<'_>>, usize) {
    let mut tokens = Vec::new();
    let mut within = Within::default();
    let (mut rest, mut column) = (text, 1);
    while let Some(first) = rest.chars().next() {
        if first.is_whitespace() {
            rest = &rest[first.len_utf8()..];
            column += 1;
            continue;
        }
        let starts = |mark: &&&str| rest.starts_with(**mark);
        // An IPv6 address may start with two colons.
        let mark = MARKS.iter().chain(&BETWEEN).find(starts);
        let len = match mark.filter(|_| !rest.starts_with("::") || within.brackets > 0) {
            Some(mark) => mark.len(),
            None => {
                let after = rest.char_indices().skip(1);
                let end = after.into_iter().find(|(_, c)| within.ends(*c));
                end.map_or(rest.len(), |(at, _)| at)
            }
        };
        let (word, after) = rest.split_at(len);
        within.note(word);
        tokens.push(Token { text: word, column });
        column += word.chars().count();
        rest = after;
    }
    (tokens, column)
}
