//! Fields of a text row.

use alloc::borrow::Cow;
use alloc::string::String;

/// Field separator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separator {
    /// This character.
    Char(char),
    /// Any amount of whitespace.
    Blanks,
}

impl Separator {
    /// Detects the separator from the first row: a comma, semicolon or tab, otherwise blanks.
    pub fn of(first: &str) -> Separator {
        let marks = [',', ';', '\t'];
        let found = marks.into_iter().find(|mark| first.contains(*mark));
        found.map_or(Separator::Blanks, Separator::Char)
    }

    /// Returns the fields of a row.
    pub fn fields(self, row: &str) -> Fields<'_> {
        Fields {
            separator: self,
            rest: Some(row),
        }
    }
}

/// Iterator over trimmed fields.
pub struct Fields<'a> {
    separator: Separator,
    rest: Option<&'a str>,
}

impl<'a> Iterator for Fields<'a> {
    type Item = Cow<'a, str>;

    fn next(&mut self) -> Option<Cow<'a, str>> {
        let rest = self.rest?.trim_start_matches(' ');
        if let Some(inner) = rest.strip_prefix('"') {
            return Some(self.quoted(inner));
        }
        let (field, after) = match self.separator {
            Separator::Char(mark) => rest.split_once(mark).unzip(),
            Separator::Blanks => rest.split_once(char::is_whitespace).unzip(),
        };
        self.rest = match self.separator {
            Separator::Char(_) => after,
            Separator::Blanks => after.map(str::trim_start),
        };
        Some(Cow::Borrowed(field.unwrap_or(rest).trim()))
    }
}

impl<'a> Fields<'a> {
    /// Parses a quoted field; `inner` follows the opening quote. A doubled quote is a literal
    /// quote. Text between the closing quote and a separator character is dropped.
    fn quoted(&mut self, inner: &'a str) -> Cow<'a, str> {
        let mut field = String::new();
        let mut rest = inner;
        loop {
            let Some((part, after)) = rest.split_once('"') else {
                field.push_str(rest);
                self.rest = None;
                return Cow::Owned(field);
            };
            field.push_str(part);
            match after.strip_prefix('"') {
                Some(after) => {
                    field.push('"');
                    rest = after;
                }
                None => {
                    self.rest = match self.separator {
                        Separator::Char(mark) => after.split_once(mark).map(|(_, rest)| rest),
                        Separator::Blanks => {
                            Some(after.trim_start()).filter(|rest| !rest.is_empty())
                        }
                    };
                    return Cow::Owned(field);
                }
            }
        }
    }
}
