//! Filter tokens, parser state, and errors with positions.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::facts::Node;
use super::primitives::Qualifier;

/// A filter error with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {message}")]
pub struct FilterError {
    /// Column in characters, from 1.
    pub column: usize,
    /// Reason, with valid alternatives.
    pub message: String,
}

/// A token with its column in characters, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub text: &'a str,
    pub column: usize,
}

/// Self-delimiting tokens, longest first.
const MARKS: [&str; 22] = [
    "==", "!=", "<=", ">=", "&&", "||", "<<", ">>", "=", "<", ">", "!", "(", ")", "[", "]", "{",
    "}", "&", "|", "^", "%",
];

/// Characters that may occur within a word, such as a network, name, address or list. A token that
/// starts with one of them consists only of it; within brackets or braces, some of them also end a
/// word.
const BETWEEN: [&str; 6] = ["+", "-", "*", "/", ":", ","];

/// Characters that end a word.
const ENDS: &str = "=!<>&|()[]{}^%";

/// Context in which a character occurs.
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

/// Splits text at blanks and operators. Returns the tokens and the column after the text.
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

/// Maximum nesting of parentheses and negations.
const DEPTH_MAX: u32 = 32;

/// Parser state: the tokens not yet consumed.
pub(super) struct Parser<'a> {
    tokens: &'a [Token<'a>],
    /// Column after the text.
    end: usize,
    /// Number of VLAN tags already tested in this conjunction; the next test refers to the tag
    /// after them.
    pub(super) vlans: usize,
    /// Most recent qualifier, such as `udp dst port`, which also applies to plain values after
    /// `or`.
    pub(super) qualifier: Option<Qualifier>,
}

impl<'a> Parser<'a> {
    /// Creates a parser; `end` is the column after the text.
    pub(super) fn new(tokens: &'a [Token<'a>], end: usize) -> Parser<'a> {
        Parser {
            tokens,
            end,
            vlans: 0,
            qualifier: None,
        }
    }

    pub(super) fn peek(&self) -> Option<&'a str> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<&'a str> {
        self.tokens.get(ahead).map(|token| token.text)
    }

    pub(super) fn take(&mut self) -> Option<&'a str> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first.text)
    }

    pub(super) fn take_if(&mut self, words: &[&str]) -> bool {
        self.take_as(|word| words.contains(&word).then_some(()))
            .is_some()
    }

    /// Consumes the next token if `read` accepts it.
    pub(super) fn take_as<T>(&mut self, read: impl FnOnce(&'a str) -> Option<T>) -> Option<T> {
        let value = self.peek().and_then(read)?;
        self.take();
        Some(value)
    }

    /// Parses a closing bracket.
    pub(super) fn close(&mut self, mark: &str) -> Result<(), FilterError> {
        let taken = self.take_if(&[mark]).then_some(());
        taken.ok_or_else(|| self.expected(&format!("'{mark}'")))
    }

    /// Returns the column of the next token.
    pub(super) fn column(&self) -> usize {
        self.tokens.first().map_or(self.end, |token| token.column)
    }

    /// Returns an error at the next token.
    pub(super) fn wrong(&self, message: impl Into<String>) -> FilterError {
        FilterError {
            column: self.column(),
            message: message.into(),
        }
    }

    /// Returns an error about an unexpected or missing token.
    pub(super) fn expected(&self, what: &str) -> FilterError {
        match self.peek() {
            Some(word) => self.wrong(format!("'{word}' is not {what}")),
            None => self.wrong(format!("the filter ends early; expected {what}")),
        }
    }

    /// Parses the next token, or reports what was expected.
    pub(super) fn read<T>(
        &mut self,
        what: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, FilterError> {
        self.take_as(read).ok_or_else(|| self.expected(what))
    }

    pub(super) fn check_depth(&self, depth: u32) -> Result<(), FilterError> {
        if depth > DEPTH_MAX {
            let message = format!("more than {DEPTH_MAX} nested parentheses and negations");
            return Err(self.wrong(message));
        }
        Ok(())
    }

    /// Returns the token after the matching parenthesis.
    pub(super) fn behind_parenthesis(&self) -> Option<&'a str> {
        let mut open = 0;
        for (index, token) in self.tokens.iter().enumerate() {
            match token.text {
                "(" => open += 1,
                ")" => open -= 1,
                _ => {}
            }
            if open == 0 {
                return self.peek_at(index + 1);
            }
        }
        None
    }
}

/// Joins several nodes; a single one is returned unchanged.
pub(super) fn joined(mut filters: Vec<Node>, join: fn(Vec<Node>) -> Node) -> Node {
    match filters.len() {
        1 => filters.swap_remove(0),
        _ => join(filters),
    }
}
