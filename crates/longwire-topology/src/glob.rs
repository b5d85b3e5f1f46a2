//! Names of links with `*` for anything and `?` for one character.

/// The longest pattern that fits anything, in bytes: a request may send one of
/// megabytes, against a million names.
const PATTERN_MAX: usize = 4096;

/// Whether a name fits a pattern. Takes time in proportion to the product of
/// both lengths at worst.
pub fn fits(pattern: &str, name: &str) -> bool {
    if pattern.len() > PATTERN_MAX {
        return false;
    }
    let (mut rest, mut text) = (pattern, name);
    // Behind the last star, and how much of the name it has taken.
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
            // One character more for the last star.
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

/// Whether it stands for more than one name.
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_of_megabytes_fits_nothing() {
        assert!(fits(&"*".repeat(PATTERN_MAX), "name"));
        assert!(!fits(&"*".repeat(PATTERN_MAX + 1), "name"));
    }
}
