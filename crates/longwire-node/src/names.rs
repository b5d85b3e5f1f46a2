//! Attachment names, which are also file names.

use longwire_control::node::NodeRefusal;
use longwire_topology::Problem;
use longwire_units::random::absorb;

/// Maximum name length, in bytes.
const NAME_MAX: usize = 64;

/// Returns the given name, or one derived from a place and an interface.
///
/// # Errors
/// See [`check`].
pub fn choose(given: Option<&str>, place: &str, interface: Option<&str>) -> Result<String, String> {
    if let Some(name) = given {
        check(name)?;
        return Ok(name.to_owned());
    }
    Ok(tidy(&match interface {
        Some(interface) => format!("{place}-{interface}"),
        None => place.to_owned(),
    }))
}

/// Returns the default seed of an attachment. Seeds differ, because links with equal seeds would
/// lose the same packets.
pub(crate) fn seed(name: &str, base: u64) -> u64 {
    let words = name.as_bytes().chunks(8).map(|bytes| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    });
    // Some JSON parsers are limited to 53-bit integers.
    words.fold(absorb(0, base), absorb) >> 11
}

/// Refuses a name that is not a valid file name, or is too long for a socket path.
///
/// # Errors
/// The violated rule.
pub fn check(name: &str) -> Result<(), String> {
    if !name.is_empty() && name == tidy(name) {
        return Ok(());
    }
    Err(format!(
        "'{name}' is not a valid name: 1 to {NAME_MAX} letters, digits, '.', '_' and '-', not \
         starting with '.'"
    ))
}

/// Like [`check`], for a request.
pub(crate) fn check_request(name: &str) -> Result<(), NodeRefusal> {
    check(name).map_err(|reason| {
        NodeRefusal::Invalid(vec![Problem {
            file: "attachment".to_owned(),
            field: "name".to_owned(),
            reason,
            ..Problem::default()
        }])
    })
}

/// Removes leading dots, replaces invalid characters by `-`, and truncates to [`NAME_MAX`].
fn tidy(name: &str) -> String {
    let name = name.trim_start_matches('.');
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let characters = name.chars().map(|c| if is_allowed(c) { c } else { '-' });
    characters.take(NAME_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_distinct_and_stable() {
        let all = [
            seed("web", 1),
            seed("web-2", 1),
            seed("", 1),
            seed("web", 2),
        ];
        for (index, one) in all.iter().enumerate() {
            assert!(*one < 1 << 53 && !all[..index].contains(one), "{all:?}");
        }
        assert_eq!(all[0], seed("web", 1));
    }

    #[test]
    fn names_are_file_names() {
        assert_eq!(tidy("../x y"), "-x-y");
        let chosen = |given| choose(given, "web", Some("eth0"));
        assert_eq!(chosen(None).as_deref(), Ok("web-eth0"));
        assert_eq!(chosen(Some("x")).as_deref(), Ok("x"));
        assert!(chosen(Some("x y")).is_err());
        assert!(check("web-eth0").is_ok());
        for wrong in ["", ".x", "a/b", "a b", "ü", &"x".repeat(65)] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
    }
}
