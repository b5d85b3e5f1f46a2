//! Classifies artifacts by the names used in reports.

use longwire_runtime::Artifact;

/// Returns whether the emulator causes artifacts of this kind, rather than the machine or the
/// start.
pub fn is_own(kind: &str) -> bool {
    Artifact::named(kind).is_none_or(Artifact::is_own)
}

/// Returns whether artifacts of this kind are frames delivered late.
pub fn is_late(kind: &str) -> bool {
    Artifact::named(kind).is_some_and(Artifact::is_late)
}

/// Returns whether artifacts of this kind are frames lost by the emulator.
pub fn is_lost(kind: &str) -> bool {
    Artifact::named(kind).is_some_and(Artifact::is_lost)
}

/// Returns remedies for the kinds of artifacts that occurred.
pub fn hints(happened: impl Fn(Artifact) -> bool) -> impl Iterator<Item = String> {
    let kinds = Artifact::ALL.into_iter();
    let kinds = kinds.filter(move |kind| happened(*kind));
    kinds.map(|kind| format!("{}: {}", kind.name(), kind.hint()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_an_overload_are_late_and_not_lost() {
        assert!(is_late("overload"));
        assert!(!is_late("refused") && !is_late("behind"));
        for kind in Artifact::ALL {
            assert!(!(kind.is_late() && kind.is_lost()), "{kind:?}");
        }
    }
}
