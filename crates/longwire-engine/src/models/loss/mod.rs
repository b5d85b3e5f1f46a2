//! Loss, before the queue or on the medium.

use dyn_clone::DynClone;

use crate::loader::Hook;
use crate::models::plugin::{FILE, NAME, OWN, PluginHook};
use crate::models::prelude::*;

mod chains;
mod content;
mod numbered;
mod outages;
pub mod packet;
mod trace;

/// A loss model's decision about one frame.
pub type LossDecision = Option<DropReason>;

/// A process that drops frames.
pub trait LossModel: DynClone + fmt::Debug + Send + Sync {
    /// Returns the probability and reason, if constant. The link then decides by one draw instead
    /// of calling [`LossModel::judge`], which must decide identically from the same draw.
    fn fixed(&self) -> Option<(Probability, DropReason)> {
        None
    }

    /// Called once, before any other method. `epoch` is the origin of schedules.
    fn start(&mut self, _epoch: Nanos) {}

    /// Whether the model reads frame bytes, which requires super-packets to be segmented first.
    fn reads_bytes(&self) -> bool {
        false
    }

    /// Decides whether and why this frame is lost. Called for every frame that reaches the model,
    /// regardless of other models' decisions.
    fn judge(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> LossDecision;
}

dyn_clone::clone_trait_object!(LossModel);

/// Position of a loss model on a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossPlace {
    /// On the medium, after the frame has used transmission time.
    #[default]
    Medium,
    /// Before the queue: a lost frame uses neither queue space nor transmission time.
    Entry,
}

/// Treatment of ECN-capable frames (RFC 3168) selected by a loss model. Other selected frames are
/// lost or, with [`LossEcn::MarkOnly`], pass unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossEcn {
    /// Drop them.
    #[default]
    Drop,
    /// Mark them Congestion Experienced.
    Mark,
    /// Mark them; drop no other frames.
    MarkOnly,
}

/// A loss model and its place.
#[derive(Clone, Debug)]
pub struct PlacedLoss {
    /// Model name, which determines the random stream.
    pub name: &'static str,
    /// The model's specification text, including place and ECN treatment.
    pub text: String,
    /// Place at which it acts.
    pub place: LossPlace,
    /// Treatment of ECN-capable frames.
    pub ecn: LossEcn,
    /// The model.
    pub model: Box<dyn LossModel>,
}

impl fmt::Display for PlacedLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Place at which the model acts; common to all loss models.
pub(super) const PLACE: Param =
    Param::with_default("at", Unit::Choice(&["medium", "entry"]), "medium")
        .help("medium: lose frames after serialisation; entry: before the queue");

/// ECN treatment; common to all loss models.
pub(super) const ECN: Param =
    Param::with_default("ecn", Unit::Choice(&["drop", "mark", "mark-only"]), "drop").help(
        "mark: mark ECN-capable IP packets (CE) instead of dropping them, like netem's ecn; \
         mark-only: never drop; drop: drop all",
    );

pub(super) fn placed(
    arguments: &Arguments,
    model: impl LossModel + 'static,
) -> Result<PlacedLoss, SpecError> {
    let place = [LossPlace::Medium, LossPlace::Entry][arguments.choice(PLACE.name)?];
    let ecn = [LossEcn::Drop, LossEcn::Mark, LossEcn::MarkOnly][arguments.choice(ECN.name)?];
    let mut text = arguments.notation(&[PLACE, ECN]);
    for param in [PLACE, ECN] {
        let word = arguments.word(param.name);
        if let Some(word) = word.filter(|_| word != param.default) {
            text += &format!(",{}={word}", param.name);
        }
    }
    Ok(PlacedLoss {
        name: arguments.model_name(),
        text,
        place,
        ecn,
        model: Box::new(model),
    })
}

const PLUGIN: Entry<PlacedLoss> = Entry::new(
    NAME,
    "losses from a C plugin's lose hook",
    &[FILE, PLACE, ECN, OWN],
    |arguments| placed(arguments, PluginHook::load(arguments, Hook::Loss)?),
);

impl LossModel for PluginHook {
    fn start(&mut self, epoch: Nanos) {
        PluginHook::start(self, epoch);
    }

    fn reads_bytes(&self) -> bool {
        true
    }

    fn judge(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> LossDecision {
        self.state()?.lose(frame, stream)
    }
}

/// Loss models.
pub static KIND: Kind<PlacedLoss> = Kind {
    name: "loss",
    example: "1%",
    entries: &[
        packet::PACKET,
        packet::BIT_ERROR,
        numbered::NTH,
        numbered::LIST,
        numbered::PER_PACKET,
        chains::BURST,
        chains::GILBERT,
        chains::GILBERT_ELLIOTT,
        chains::STATE,
        chains::CORRELATED,
        outages::OUTAGE,
        outages::OUTAGES,
        content::ENTRY,
        trace::ENTRY,
        PLUGIN,
    ],
};
