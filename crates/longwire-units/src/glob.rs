//! Glob patterns: `*` matches any characters, `?` matches one character.

/// Maximum pattern length in bytes. Bounds the cost of matching a request's pattern against a
/// million names.
const PATTERN_MAX: usize = 4096;

/// Whether a name matches a pattern. Patterns of more than 4096 bytes match nothing. Worst-case
/// time is quadratic.
pub fn fits(pattern: &str, name: &str) -> bool {
    if pattern.len() > PATTERN_MAX {
        return false;
    }
    let (mut rest, mut text) = (pattern, name);
    // The pattern after the last star, and the text after the characters it has consumed.
    let mut star: Option<(&str, &str)> = None;
    loop {
        let mut after = rest.chars();
        let mut next = text.chars();
        match (after.next(), next.next()) {
            (Some('*'), _) => {
                rest = after.as_str();
                star = Some((rest, text));
            }
            (Some(wanted), Some(found)) if wanted == '?' || wanted == found => {
                (rest, text) = (after.as_str(), next.as_str());
            }
            (None, None) => return true,
            // Backtrack: the last star consumes one more character.
            _ => match star {
                Some((behind, taken)) => {
                    let mut taken = taken.chars();
                    if taken.next().is_none() {
                        return false;
                    }
                    (rest, text) = (behind, taken.as_str());
                    star = Some((rest, text));
                }
                None => return false,
            },
        }
    }
}

/// Whether text contains wildcards.
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("dsl*", "dsl12", true),
            ("dsl*", "ds", false),
            ("*", "", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*a*b", "xaybzb", true),
            ("*a*b", "xaybz", false),
            ("é?", "éé", true),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn long_patterns_match_nothing() {
        assert!(fits(&"*".repeat(PATTERN_MAX), "name"));
        assert!(!fits(&"*".repeat(PATTERN_MAX + 1), "name"));
    }
}
