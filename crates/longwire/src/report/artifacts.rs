//! The kinds of artifacts: frames that the emulator treated differently from
//! its models.

use longwire_runtime::Artifact;

/// A kind of artifact.
#[derive(Clone, Copy, Debug)]
pub struct ArtifactKind {
    /// Its name in reports and JSON.
    pub name: &'static str,
    /// Its meaning and a remedy.
    pub hint: &'static str,
}

/// Records of a capture whose stamps go back; the only artifact of virtual
/// time.
pub const TIME_WENT_BACK: &str = "time_went_back";

/// Frames that a witnessed pause of the machine made late.
pub const LATE_PAUSED: &str = "late_paused";

/// Frames late within the grace at the start of a run.
pub const LATE_START: &str = "late_start";

/// Whether artifacts of this kind are the emulator's own, rather than the
/// machine's or those of its start.
pub fn is_own(kind: &str) -> bool {
    kind != LATE_PAUSED && kind != LATE_START
}

/// Whether artifacts of this kind are frames that were delivered late.
pub fn is_late(kind: &str) -> bool {
    late_kinds().any(|late| late == kind)
}

/// The kinds of [`is_late`].
fn late_kinds() -> impl Iterator<Item = &'static str> {
    let late = Artifact::ALL.into_iter().filter(|kind| kind.is_late());
    late.map(Artifact::name)
}

/// Whether artifacts of this kind are frames that the emulator lost.
pub fn is_lost(kind: &str) -> bool {
    LOST.contains(&kind)
}

/// The kinds of [`is_lost`].
const LOST: [&str; 7] = [
    "memory",
    "refused",
    "ring_full",
    "too_long",
    "port_down",
    "send_failed",
    "unusable",
];

/// Every kind that a report may hold.
pub static ARTIFACTS: [ArtifactKind; 15] = [
    ArtifactKind {
        name: "late",
        hint: "frames were handed over later than --tolerance allows; `longwire doctor` says what \
               disturbs timing here, and --wait spin trades a core for accuracy",
    },
    ArtifactKind {
        name: LATE_PAUSED,
        hint: "the machine stood still, by the kernel's own accounts, and frames were late by \
               that; artifacts-own leaves them out",
    },
    ArtifactKind {
        name: LATE_START,
        hint: "frames were late while the program started (--grace); artifacts-own leaves them \
               out",
    },
    ArtifactKind {
        name: "memory",
        hint: "there was no memory for frames to wait in; raise --memory",
    },
    ArtifactKind {
        name: "refused",
        hint: "the output port refused frames, such as those longer than its MTU",
    },
    ArtifactKind {
        name: "ring_full",
        hint: "frames came faster than they could be read; fewer other programs, or more cores \
               with --placement per-stage, would help",
    },
    ArtifactKind {
        name: "too_long",
        hint: "frames were longer than the input port can take",
    },
    ArtifactKind {
        name: "late_receiver",
        hint: "frames were late because the output port was full: its receiver takes them more \
               slowly than the link delivers them",
    },
    ArtifactKind {
        name: "port_down",
        hint: "the output device had no carrier, so that frames were lost: its peer was down or \
               its cable unplugged",
    },
    ArtifactKind {
        name: "send_failed",
        hint: "the output device took frames and lost them: its receiver is too slow for them",
    },
    ArtifactKind {
        name: "unusable",
        hint: "frames came with offload notes that contradict them; switch offloads off at their \
               sender",
    },
    ArtifactKind {
        name: "unrecorded",
        hint: "events came faster than --capture and --log could be written; a faster disk, or \
               --log alone, would help. The link itself was not disturbed",
    },
    ArtifactKind {
        name: "behind",
        hint: "the trace could not be read before its frames were due; a faster disk, a larger \
               --read-ahead or a trace that is not compressed would help",
    },
    ArtifactKind {
        name: "overload",
        hint: "the network carries more than this machine can: frames were handed over later and \
               later. Fewer links, lower rates, fewer other programs, or more cores would help",
    },
    ArtifactKind {
        name: TIME_WENT_BACK,
        hint: "records stamped before the record in front of them were taken as simultaneous with \
               it; sort the capture by time",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_an_overload_are_late_and_not_lost() {
        assert!(is_late("overload"));
        assert!(!is_late("refused") && !is_late("behind"));
        assert!(late_kinds().all(|kind| !is_lost(kind)));
        for kind in late_kinds().chain(LOST) {
            assert!(ARTIFACTS.iter().any(|row| row.name == kind), "{kind}");
        }
    }
}
