//! Selection of links by name and direction.

use std::fmt;
use std::str::FromStr;

use longwire_units::glob::fits;

/// A link direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogDirection {
    /// Logs named `up`, `ab` or `NAME.up`.
    Up,
    /// Logs named `down`, `ba` or `NAME.down`.
    Down,
}

impl LogDirection {
    /// Both directions.
    pub const ALL: [LogDirection; 2] = [LogDirection::Up, LogDirection::Down];

    /// Returns the direction's name as an option value.
    pub fn name(self) -> &'static str {
        match self {
            LogDirection::Up => "up",
            LogDirection::Down => "down",
        }
    }

    /// Returns the direction in a link name from a log or report.
    pub fn of(link: &str) -> Option<LogDirection> {
        let mut all = LogDirection::ALL.into_iter();
        all.find(|direction| direction.name() == split(link).1)
    }
}

/// Splits a link name into the name proper and the direction.
fn split(link: &str) -> (&str, &str) {
    link.rsplit_once('.').unwrap_or(("", link))
}

/// A pattern of link names: `*` matches any text, `?` one character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkPattern(String);

impl FromStr for LinkPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<LinkPattern, String> {
        if text.is_empty() {
            return Err("a link name cannot be empty".to_owned());
        }
        Ok(LinkPattern(text.to_owned()))
    }
}

impl fmt::Display for LinkPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl LinkPattern {
    /// Whether a name matches, with or without its direction.
    pub fn fits(&self, link: &str) -> bool {
        let (name, _) = split(link);
        fits(&self.0, link) || !name.is_empty() && fits(&self.0, name)
    }
}

/// Selection of links to draw; by default, all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Patterns, of which at least one must match unless there are none.
    pub links: Vec<LinkPattern>,
    /// Direction, if only one is drawn.
    pub direction: Option<LogDirection>,
}

impl Selection {
    /// Whether all links are drawn.
    pub fn is_all(&self) -> bool {
        self.links.is_empty() && self.direction.is_none()
    }

    /// Whether a link is drawn.
    pub fn has(&self, link: &str) -> bool {
        let named = self.links.is_empty() || self.links.iter().any(|of| of.fits(link));
        let direction = self.direction;
        named && direction.is_none_or(|of| LogDirection::of(link) == Some(of))
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let links = self.links.iter().map(|link| format!("--link {link}"));
        let direction = self
            .direction
            .map(|of| format!("--direction {}", of.name()));
        let options: Vec<String> = links.chain(direction).collect();
        f.write_str(&options.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_and_directions_choose_links() {
        let has = |links: &[&str], direction, link: &str| {
            let links = links.iter().map(|link| LinkPattern((*link).to_owned()));
            let links = links.collect();
            Selection { links, direction }.has(link)
        };
        let (up, down) = (Some(LogDirection::Up), Some(LogDirection::Down));
        assert!(has(&[], None, "x") && has(&["up"], None, "up"));
        assert!(has(&["adsl*"], up, "adsl12.up") && !has(&["adsl*"], down, "adsl12.up"));
        assert!(has(&["adsl12"], None, "adsl12.down") && !has(&["adsl1"], None, "adsl12.down"));
        assert!(has(&["*.down", "b"], None, "a.down") && has(&["a.?p"], None, "a.up"));
        assert!(has(&["a*b*c"], None, "axxbybc") && !has(&["a*b*c"], None, "axxbyb"));
        assert!(has(&[], up, "up") && !has(&[], down, "link.up"));
        assert!(!has(&[], up, "out") && !has(&["up"], None, "down"));
    }
}
