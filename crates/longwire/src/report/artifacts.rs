//! The kinds of artifacts: what the emulator may do to frames that the model
//! did not ask for.

/// One kind.
#[derive(Clone, Copy, Debug)]
pub struct ArtifactKind {
    /// Its name in reports and JSON.
    pub name: &'static str,
    /// What it means and what would help.
    pub hint: &'static str,
}

/// In records of a capture, the only artifact of virtual time.
pub const TIME_WENT_BACK: &str = "time_went_back";

/// Every kind that a report may hold.
pub static ARTIFACTS: [ArtifactKind; 11] = [
    ArtifactKind {
        name: "late",
        hint: "frames were handed over later than --tolerance allows; `longwire doctor` says what \
               disturbs timing here, and --wait spin trades a core for accuracy",
    },
    ArtifactKind {
        name: "memory",
        hint: "frames found no room to wait in; raise --memory",
    },
    ArtifactKind {
        name: "refused",
        hint: "the output port would not take frames, as those longer than its MTU",
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
        name: "send_failed",
        hint: "the output device took frames and lost them; its receiver may be too slow",
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
