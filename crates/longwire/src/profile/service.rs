//! A service as its user describes it: rates, limits, and how its frames look.

use std::sync::Arc;

use longwire_engine::models::sizes::SizeModel;
use longwire_engine::models::{Kind, SIZES};
use longwire_engine::{BitRate, Nanos, Probability};
use longwire_runtime::FileLoader;
use longwire_runtime::feed::generator::VlanTag;
use serde::Serialize;

use super::args::ProfileArgs;
use super::trial::Headers;
use crate::Error;
use crate::suggest;

/// The most services of one test.
pub const SERVICES_MAX: usize = 16;

/// The limits of a service.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Limits {
    /// Frame loss ratio.
    pub loss: f64,
    /// Frame transfer delay, in microseconds.
    pub delay_us: f64,
    /// Frame delay variation, in microseconds.
    pub jitter_us: f64,
}

/// A service that is to be tested.
#[derive(Clone, Debug)]
pub struct Service {
    /// What it is called.
    pub name: String,
    /// Committed information rate.
    pub cir: BitRate,
    /// Excess information rate.
    pub eir: Option<BitRate>,
    /// What it must keep to.
    pub limits: Limits,
    /// How long its frames are; `None` is what the other options say.
    pub sizes: Option<Arc<dyn SizeModel>>,
    /// How its frames are marked.
    pub committed: Headers,
    /// How those are marked that go beyond the committed rate, where the
    /// network goes by colours.
    pub excess: Option<Headers>,
}

impl Service {
    /// The services that the options describe: those of --service, or the one
    /// of --cir.
    ///
    /// # Errors
    /// If there is none, there are too many, or one is described wrongly.
    pub fn all(args: &ProfileArgs) -> Result<Vec<Service>, Error> {
        let usage = |message: String| Err(Error::Usage(message));
        match (args.cir, args.services.as_slice()) {
            (None, []) => usage(
                "--profile y1564 needs --cir, the rate that is guaranteed, or --service".to_owned(),
            ),
            (Some(cir), []) => Ok(vec![Service {
                eir: args.eir,
                ..Service::plain("service".to_owned(), cir, args)
            }]),
            (None, services) if services.len() > SERVICES_MAX => usage(format!(
                "at most {SERVICES_MAX} services are tested together"
            )),
            (None, services) if args.eir.is_none() => {
                let services = services.iter().map(|text| Service::parse(text, args));
                let services: Vec<Service> = services.collect::<Result<_, _>>()?;
                let twice = |(at, one): (usize, &Service)| {
                    services[..at].iter().any(|other| other.name == one.name)
                };
                match services.iter().enumerate().find(|one| twice(*one)) {
                    Some((_, one)) => usage(format!("--service {}: there are two of it", one.name)),
                    None => Ok(services),
                }
            }
            _ => {
                usage("--cir and --eir are of one service; with --service each has its own".into())
            }
        }
    }

    /// A service with the limits that are common to all.
    fn plain(name: String, cir: BitRate, args: &ProfileArgs) -> Service {
        Service {
            name,
            cir,
            eir: None,
            limits: Limits {
                loss: args.max_loss.as_f64(),
                delay_us: args.max_delay.as_micros_f64(),
                jitter_us: args.max_jitter.as_micros_f64(),
            },
            sizes: None,
            committed: Headers::default(),
            excess: None,
        }
    }

    /// Reads `NAME:cir=10mbit,eir=5mbit,max-delay=20ms`.
    fn parse(text: &str, args: &ProfileArgs) -> Result<Service, Error> {
        let wrong = |message: String| Error::Usage(format!("--service {text}: {message}"));
        let (name, rest) = text
            .split_once(':')
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| wrong("write NAME:cir=RATE and what else it has".to_owned()))?;
        let mut cir = None;
        let none = BitRate::from_bits_per_sec(1).ok_or_else(|| wrong("no rate".to_owned()))?;
        let mut service = Service::plain(name.to_owned(), none, args);
        let mut excess = Excess::default();
        for pair in rest.split(',') {
            let (key, value) = pair
                .split_once('=')
                .ok_or_else(|| wrong(format!("'{pair}' is no key=value")))?;
            match key {
                "cir" => cir = Some(read(value).map_err(|e| wrong(format!("cir: {e}")))?),
                _ => service
                    .set(key, value, &mut excess)
                    .map_err(|message| wrong(format!("{key}: {message}")))?,
            }
        }
        service.cir = cir.ok_or_else(|| wrong("cir is missing, the guaranteed rate".to_owned()))?;
        service.excess = excess.headers(service.committed).map_err(wrong)?;
        if service.excess.is_some() && service.eir.is_none() {
            return Err(wrong(
                "excess frames are marked, and there is no eir".to_owned(),
            ));
        }
        Ok(service)
    }

    fn set(&mut self, key: &str, value: &str, excess: &mut Excess) -> Result<(), String> {
        match key {
            "eir" => self.eir = Some(read(value)?),
            "sizes" => self.sizes = Some(sizes(&SIZES, value)?),
            "max-loss" => self.limits.loss = read::<Probability>(value)?.as_f64(),
            "max-delay" => self.limits.delay_us = read::<Nanos>(value)?.as_micros_f64(),
            "max-jitter" => self.limits.jitter_us = read::<Nanos>(value)?.as_micros_f64(),
            "vlan" => self.committed.vlan = Some(read(value)?),
            "dscp" => self.committed.dscp = Some(below(value, 64)?),
            "excess-dscp" => excess.dscp = Some(below(value, 64)?),
            "excess-priority" => excess.priority = Some(below(value, 8)?),
            _ => {
                return Err(
                    "no such key; there are cir, eir, sizes, max-loss, max-delay, \
                            max-jitter, vlan, dscp, excess-dscp and excess-priority"
                        .to_owned(),
                );
            }
        }
        Ok(())
    }
}

/// How frames beyond the committed rate are marked.
#[derive(Default)]
struct Excess {
    dscp: Option<u8>,
    priority: Option<u8>,
}

impl Excess {
    fn headers(&self, committed: Headers) -> Result<Option<Headers>, String> {
        if self.dscp.is_none() && self.priority.is_none() {
            return Ok(None);
        }
        let mut headers = committed;
        if let Some(priority) = self.priority {
            let Some(tag) = committed.vlan else {
                return Err("excess-priority is a VLAN tag's, and there is no vlan".to_owned());
            };
            headers.vlan = Some(VlanTag { priority, ..tag });
        }
        headers.dscp = self.dscp.or(committed.dscp);
        Ok(Some(headers))
    }
}

fn read<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

fn below(text: &str, end: u8) -> Result<u8, String> {
    let number = text.parse().ok().filter(|number| *number < end);
    number.ok_or_else(|| format!("'{text}' is no number from 0 to {}", end - 1))
}

/// A model of sizes, with `;` for the commas between its parameters: commas
/// part what a service has.
fn sizes(kind: &Kind<Box<dyn SizeModel>>, text: &str) -> Result<Arc<dyn SizeModel>, String> {
    let text = text.replace(';', ",");
    let model = kind.parse_with(&text, &FileLoader::default());
    model
        .map(Arc::from)
        .map_err(|error| suggest::spec_error(&error))
}
