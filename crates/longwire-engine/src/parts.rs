//! The parts of a link: one table from which specifications, configurations, changes and the
//! options of all interfaces are generated.

use core::fmt::Display;

use longwire_units::Nanos;

use crate::link_spec::{OptionError, Setting};
use crate::loader::Loader;
use crate::models::corruption::CorruptionModel;
use crate::models::delay::DelayModel;
use crate::models::duplication::DuplicationModel;
use crate::models::framing::Framing;
use crate::models::loss::PlacedLoss;
use crate::models::mtu::Mtu;
use crate::models::order::OrderPolicy;
use crate::models::queue::Queue;
use crate::models::rate::Rate;
use crate::models::reordering::ReorderingModel;
use crate::models::rewrite::RewriteModel;
use crate::models::router::Router;
use crate::models::{self, Described};
use crate::prelude::*;
use crate::spec::{ModelInfo, ModelSpec};

/// A warning about an option value that is allowed but probably unintended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// Option name, such as `rate` or `queue`.
    pub option: &'static str,
    /// The doubtful value and a suggested correction.
    pub message: String,
}

/// Whether a link is on, off or paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LinkState {
    /// The link carries frames.
    #[default]
    On,
    /// Arrivals and queued frames are dropped with [`DropReason::Outage`]. Frames in transit
    /// arrive.
    ///
    /// [`DropReason::Outage`]: crate::DropReason::Outage
    Off,
    /// Arrivals are queued while there is space. Frames in transit arrive.
    Paused,
}

impl LinkState {
    /// Returns the state's name as used in files, on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            LinkState::On => "on",
            LinkState::Off => "off",
            LinkState::Paused => "paused",
        }
    }
}

/// A part's models as stored in a link: exactly one, at most one, or a list.
pub trait Held<M>: Default {
    /// Whether the part accepts several models.
    const IS_LIST: bool = false;

    /// Converts models to this form; an empty list yields the default.
    fn from_models(models: Vec<M>) -> Self;

    /// Returns the text of each model.
    fn texts(&self) -> Vec<String>;
}

impl<M: Default + Display> Held<M> for M {
    fn from_models(models: Vec<M>) -> M {
        models.into_iter().next_back().unwrap_or_default()
    }

    fn texts(&self) -> Vec<String> {
        Vec::from([self.to_string()])
    }
}

impl<M: Display> Held<M> for Option<M> {
    fn from_models(models: Vec<M>) -> Option<M> {
        models.into_iter().next_back()
    }

    fn texts(&self) -> Vec<String> {
        self.iter().map(M::to_string).collect()
    }
}

impl<M: Display> Held<M> for Vec<M> {
    const IS_LIST: bool = true;

    fn from_models(models: Vec<M>) -> Vec<M> {
        models
    }

    fn texts(&self) -> Vec<String> {
        self.iter().map(M::to_string).collect()
    }
}

/// A part of a link, as presented by all interfaces.
#[derive(Debug)]
pub struct Part {
    /// Name of the model kind, of the option, and of the key in files and JSON.
    pub name: &'static str,
    /// Value placeholder in help texts.
    pub value_name: &'static str,
    /// One-line help.
    pub summary: &'static str,
    /// Keyword for "no model", if the part has one.
    pub absent: Option<&'static str>,
    /// Whether the option may be repeated.
    pub is_repeated: bool,
    models: fn() -> Vec<(&'static str, &'static ModelInfo)>,
    add: fn(&mut LinkSpec, &str, &dyn Loader) -> Result<(), OptionError>,
    texts: fn(&LinkSpec) -> Option<Vec<String>>,
    doubts: fn(&LinkSpec) -> Vec<String>,
    files: fn(&LinkSpec) -> Vec<String>,
    default: fn() -> Vec<String>,
    clear: fn(&mut LinkSpec),
}

impl Part {
    /// Returns the part with this name.
    pub fn named(name: &str) -> Option<&'static Part> {
        PARTS.iter().find(|part| part.name == name)
    }

    /// Returns the part's name with each model's description.
    pub fn models(&self) -> Vec<(&'static str, &'static ModelInfo)> {
        (self.models)()
    }

    /// Parses a value and sets the part to it; a repeatable part appends it. `loader` provides
    /// files and plugins.
    ///
    /// # Errors
    /// If the value is invalid.
    pub fn add(
        &self,
        spec: &mut LinkSpec,
        text: &str,
        loader: &dyn Loader,
    ) -> Result<(), OptionError> {
        (self.add)(spec, text, loader)
    }

    /// Returns the models' texts in a specification, or the keyword for "no model"; `None` if the
    /// part is not specified.
    pub fn texts(&self, spec: &LinkSpec) -> Option<Vec<String>> {
        let texts = (self.texts)(spec)?;
        Some(match (texts.as_slice(), self.absent) {
            ([], Some(absent)) => Vec::from([absent.to_string()]),
            _ => texts,
        })
    }

    /// Returns the text that restores the part's default.
    pub fn default_text(&self) -> String {
        let absent = self.absent.map(ToString::to_string);
        absent.unwrap_or_else(|| (self.default)().concat())
    }

    /// Removes this part from a specification.
    pub fn clear(&self, spec: &mut LinkSpec) {
        (self.clear)(spec);
    }

    /// Returns the paths of the models' files and plugins.
    pub(crate) fn files(&self, spec: &LinkSpec) -> Vec<String> {
        (self.files)(spec)
    }

    /// Returns warnings about the part's values.
    pub(crate) fn doubts(&self, spec: &LinkSpec) -> impl Iterator<Item = Doubt> + use<> {
        let option = self.name;
        let doubts = (self.doubts)(spec).into_iter();
        doubts.map(move |message| Doubt { option, message })
    }
}

macro_rules! link_parts {
    ($(
        $(#[$doc:meta])*
        $part:ident: $held:ty, of $model:ty, $kind:expr, $value_name:literal, $absent:expr, $summary:literal;
    )*) => {
        /// A link as specified by the user: parsed once, printed as written, and built into any
        /// number of links. Unspecified parts take their defaults in a new link and stay unchanged
        /// in a change.
        ///
        /// ```
        /// use longwire_engine::{BitRate, LinkSpec, Nanos, NoLoader};
        ///
        /// let spec: LinkSpec = "rate=10mbit loss=1% delay=20ms".parse()?;
        /// assert_eq!(spec.to_string(), "rate=10mbit loss=1% delay=20ms");
        /// let config = spec.build(&NoLoader)?;
        /// assert_eq!(config.delay.mean(), Nanos::from_millis(20));
        ///
        /// let rate: BitRate = "10mbit".parse()?;
        /// let built = LinkSpec::new().rate(rate).delay(Nanos::from_millis(20));
        /// assert_eq!(built.to_string(), "rate=10mbit delay=20ms");
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct LinkSpec {
            $( $(#[$doc])* pub $part: Option<Setting<$model>>, )*
        }

        /// The configuration of one link, ready to run.
        #[derive(Debug, Default)]
        pub struct LinkConfig {
            $( $(#[$doc])* pub $part: $held, )*
            /// Link start on the clock of arrivals; the origin of schedules and traces.
            pub epoch: Nanos,
            /// Warnings about values that are allowed but probably unintended.
            pub doubts: Vec<Doubt>,
        }

        /// A partial update of a link; `None` keeps a part with its state and random streams.
        #[derive(Debug, Default)]
        pub struct LinkChange {
            $( $(#[$doc])* pub $part: Option<$held>, )*
            /// Whether the link is on, off or paused.
            pub state: Option<LinkState>,
        }

        /// All parts, in help order.
        pub static PARTS: [Part; [$(stringify!($part)),*].len()] = [$(
            Part {
                name: $kind.name,
                value_name: $value_name,
                summary: $summary,
                absent: $absent,
                is_repeated: <$held as Held<$model>>::IS_LIST,
                models: || $kind.infos().collect(),
                add: |spec, text, loader| {
                    let is_list = <$held as Held<$model>>::IS_LIST;
                    Setting::add(&mut spec.$part, &$kind, ($absent, is_list), text, loader)
                },
                texts: |spec| spec.$part.as_ref().map(Setting::texts),
                doubts: |spec| spec.$part.as_ref().map_or(Vec::new(), Setting::doubts),
                files: |spec| spec.$part.as_ref().map_or(Vec::new(), Setting::files),
                default: || <$held as Default>::default().texts(),
                clear: |spec| spec.$part = None,
            },
        )*];

        impl LinkSpec {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $part(mut self, model: impl Into<ModelSpec<$model>>) -> LinkSpec {
                    let is_list = <$held as Held<$model>>::IS_LIST;
                    Setting::push(&mut self.$part, model.into(), is_list);
                    self
                }
            )*

            /// Returns this specification overridden by `over`, as `--up-delay` overrides
            /// `--delay`. Parts absent from `over` are kept; lists in `over` (losses and rewriting
            /// models) replace those in `self`.
            #[must_use]
            pub fn overlay(&self, over: &LinkSpec) -> LinkSpec {
                LinkSpec {
                    $( $part: over.$part.as_ref().or(self.$part.as_ref()).cloned(), )*
                }
            }

            /// Appends another specification, as if both were written in sequence: losses and
            /// rewriting models accumulate, other parts are replaced.
            ///
            /// # Errors
            /// If the keyword for "no model" would be combined with models.
            pub fn append(&mut self, other: &LinkSpec) -> Result<(), OptionError> {
                $(
                    if let Some(setting) = &other.$part {
                        let is_list = <$held as Held<$model>>::IS_LIST;
                        Setting::append(&mut self.$part, setting, &$kind, ($absent, is_list))?;
                    }
                )*
                Ok(())
            }

            /// Builds a link; `loader` provides the plugins' state.
            ///
            /// # Errors
            /// If a plugin cannot be loaded.
            pub fn build(&self, loader: &dyn Loader) -> Result<LinkConfig, OptionError> {
                loader.begin_link();
                Ok(LinkConfig {
                    $( $part: Setting::build(&self.$part, &$kind, loader)?.unwrap_or_default(), )*
                    epoch: Nanos::ZERO,
                    doubts: self.doubts(),
                })
            }

            /// Builds a change to a running link; unspecified parts are kept. Defaults must be
            /// restored explicitly: `unlimited`, `none`, `in-order`, or `derived` for the queue.
            /// Losses and rewriting models replace all previous ones.
            ///
            /// # Errors
            /// If a plugin cannot be loaded.
            pub fn build_change(&self, loader: &dyn Loader) -> Result<LinkChange, OptionError> {
                loader.begin_link();
                Ok(LinkChange {
                    $( $part: Setting::build(&self.$part, &$kind, loader)?, )*
                    state: None,
                })
            }
        }

        impl From<LinkConfig> for LinkChange {
            /// Creates a change that sets every part.
            fn from(config: LinkConfig) -> LinkChange {
                LinkChange {
                    $( $part: Some(config.$part), )*
                    state: None,
                }
            }
        }

        impl LinkConfig {
            /// Returns every part with a text that a [`LinkSpec`] parses back to the same link. The
            /// queue is the effective one. Each loss or rewriting model is a separate entry.
            pub fn describe(&self) -> Vec<(&'static str, String)> {
                let mut parts = Vec::new();
                $(
                    let mut texts = <$held as Held<$model>>::texts(&self.$part);
                    if texts.is_empty() {
                        let absent: Option<&str> = $absent;
                        texts.push(self.effective($kind.name, absent.unwrap_or_default()));
                    }
                    parts.extend(texts.into_iter().map(|text| ($kind.name, text)));
                )*
                parts
            }
        }
    };
}

/// Keyword for "no model".
const NONE: Option<&str> = Some("none");

link_parts! {
    /// Rate of the link.
    rate: Rate, of Rate, models::RATE, "RATE", None,
        "Rate, such as 10mbit; default: unlimited";
    /// Bytes that the wire adds to each frame.
    framing: Framing, of Framing, models::FRAMING, "FRAMING", None,
        "Per-frame overhead on the wire, such as ethernet; default: none";
    /// Queue. The default is tail drop, with a limit derived from rate and delay and
    /// updated when they change.
    queue: Option<Queue>, of Queue, models::QUEUE, "QUEUE", Some("derived"),
        "Queue limit or discipline, such as 100p or 64kb; default: the bytes that the link sends \
         in twice its delay or 100 ms, whichever is longer, and at least 16 full frames; unlimited \
         without a rate";
    /// Loss models, each with its place, in the specified order.
    loss: Vec<PlacedLoss>, of PlacedLoss, models::LOSS, "LOSS", NONE,
        "Loss, such as 1%; repeatable";
    /// Corruption model.
    corruption: Option<Described<dyn CorruptionModel>>, of Described<dyn CorruptionModel>, models::CORRUPTION, "CORRUPTION", NONE,
        "Corruption, such as 0.1%";
    /// Duplication model.
    duplication: Option<Described<dyn DuplicationModel>>, of Described<dyn DuplicationModel>, models::DUPLICATION, "DUPLICATION", NONE,
        "Duplication, such as 1%";
    /// Propagation delay and jitter.
    delay: Described<dyn DelayModel>, of Described<dyn DelayModel>, models::DELAY, "DELAY", NONE,
        "One-way propagation delay, such as 20ms, and jitter";
    /// Deliberate reordering: frames held back or sent ahead.
    reordering: Option<Described<dyn ReorderingModel>>, of Described<dyn ReorderingModel>, models::REORDERING, "REORDERING", NONE,
        "Deliberate reordering: frames held back or sent ahead, such as 1%,5ms";
    /// Whether jitter may reorder frames.
    order: OrderPolicy, of OrderPolicy, models::ORDER, "ORDER", None,
        "Whether jitter may reorder frames: in-order or reorder";
    /// Maximum payload after the MAC header, and the policy for longer frames.
    mtu: Mtu, of Mtu, models::MTU, "BYTES", None,
        "Maximum payload after the Ethernet header, such as 1500; longer frames are dropped or \
         fragmented";
    /// Router at the link's ingress.
    router: Option<Router>, of Router, models::ROUTER, "ROUTER", NONE,
        "Router hop, such as hop: decrements the time to live and sends ICMP errors";
    /// Rewriting models, applied to every frame in this order.
    rewrite: Vec<Described<dyn RewriteModel>>, of Described<dyn RewriteModel>, models::REWRITE, "REWRITE", NONE,
        "Header fields to change in every frame, such as ip:ttl=1; repeatable";
}

/// Returns every registered model with its kind's name.
pub fn all_models() -> Vec<(&'static str, &'static ModelInfo)> {
    PARTS.iter().flat_map(Part::models).collect()
}
