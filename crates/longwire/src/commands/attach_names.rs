//! Names of attached links.

use crate::Error;

/// The longest name.
const NAME_MAX: usize = 64;

/// Returns the name that is given, or one made of a place and its interface.
pub(super) fn name(
    given: Option<&str>,
    label: &str,
    interface: Option<&str>,
) -> Result<String, Error> {
    match given {
        Some(name) => Ok(checked(name)?.to_owned()),
        None => Ok(tidy(&match interface {
            Some(interface) => format!("{label}-{interface}"),
            None => label.to_owned(),
        })),
    }
}

/// Refuses a name that is not one whole file name, or that a socket's path cannot hold.
pub(super) fn checked(name: &str) -> Result<&str, Error> {
    if !name.is_empty() && name.len() <= NAME_MAX && name == tidy(name) {
        return Ok(name);
    }
    Err(Error::Usage(format!(
        "'{name}': a name has 1 to {NAME_MAX} letters, digits, '.', '_' and '-', and no \
         '.' at its start"
    )))
}

/// Replaces what a name may not hold.
fn tidy(name: &str) -> String {
    let name = name.trim_start_matches('.');
    let kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let kept = name.chars().map(|c| if kept(c) { c } else { '-' });
    kept.take(NAME_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_file_names() {
        assert_eq!(tidy("../x y"), "-x-y");
        assert!(checked("web-eth0").is_ok());
        for wrong in ["", ".x", "a/b", "a b", &"x".repeat(65)] {
            assert!(checked(wrong).is_err(), "{wrong}");
        }
    }
}
