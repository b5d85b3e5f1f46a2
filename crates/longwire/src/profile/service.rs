//! Parses the services of a Y.1564 test.

use std::collections::HashSet;
use std::sync::Arc;

use longwire_engine::models::Kind;
use longwire_engine::{BitRate, Nanos, Probability};
use longwire_runtime::{FileLoader, suggest};
use longwire_traffic::SIZES;
use longwire_traffic::generator::VlanTag;
use longwire_traffic::profile::{Headers, Limits, Service};
use longwire_traffic::sizes::SizeModel;

use super::args::ProfileArgs;
use crate::Error;

/// Maximum number of services per test.
pub const SERVICES_MAX: usize = 16;

/// Returns the services given with --service, or the single one given with --cir.
///
/// # Errors
/// If there is none, there are too many, or one is invalid.
pub(super) fn services(args: &ProfileArgs) -> Result<Vec<Service>, Error> {
    let usage = |message: String| Err(Error::usage(message));
    match (args.cir, args.services.as_slice()) {
        (None, []) => {
            usage("--profile y1564 needs --cir (the guaranteed rate) or --service".to_owned())
        }
        (Some(cir), []) => Ok(vec![Service {
            eir: args.eir,
            ..plain("service".to_owned(), cir, args)
        }]),
        (None, services) if services.len() > SERVICES_MAX => {
            usage(format!("more than {SERVICES_MAX} services"))
        }
        (None, services) if args.eir.is_none() => {
            let services = services.iter().map(|text| parse(text, args));
            let services: Vec<Service> = services.collect::<Result<_, _>>()?;
            let mut names = HashSet::new();
            match services.iter().find(|one| !names.insert(&one.name)) {
                Some(one) => usage(format!("--service {} is given twice", one.name)),
                None => Ok(services),
            }
        }
        _ => {
            usage("--cir and --eir conflict with --service; set cir and eir of each service".into())
        }
    }
}

/// Returns a service with the limits common to all services.
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

/// Parses `NAME:cir=10mbit,eir=5mbit,max-delay=20ms`.
fn parse(text: &str, args: &ProfileArgs) -> Result<Service, Error> {
    let wrong = |message: String| Error::usage(format!("--service {text}: {message}"));
    let named = text.split_once(':').filter(|(name, _)| !name.is_empty());
    let (name, rest) = named.ok_or_else(|| wrong("write NAME:cir=RATE,…".to_owned()))?;
    let mut cir = None;
    let none = BitRate::from_bits_per_sec(1).ok_or_else(|| wrong("no rate".to_owned()))?;
    let mut service = plain(name.to_owned(), none, args);
    let mut excess = Excess::default();
    for pair in rest.split(',') {
        let (key, value) = pair
            .split_once('=')
            .ok_or_else(|| wrong(format!("'{pair}' is not key=value")))?;
        match key {
            "cir" => cir = Some(read(value).map_err(|e| wrong(format!("cir: {e}")))?),
            _ => set(&mut service, key, value, &mut excess)
                .map_err(|message| wrong(format!("{key}: {message}")))?,
        }
    }
    service.cir = cir.ok_or_else(|| wrong("cir, the guaranteed rate, is missing".to_owned()))?;
    service.excess = excess.headers(service.committed).map_err(wrong)?;
    if service.excess.is_some() && service.eir.is_none() {
        return Err(wrong("marking excess frames needs eir".to_owned()));
    }
    Ok(service)
}

/// Sets one key of a service.
fn set(service: &mut Service, key: &str, value: &str, excess: &mut Excess) -> Result<(), String> {
    match key {
        "eir" => service.eir = Some(read(value)?),
        "sizes" => service.sizes = Some(sizes(&SIZES, value)?),
        "max-loss" => service.limits.loss = read::<Probability>(value)?.as_f64(),
        "max-delay" => service.limits.delay_us = read::<Nanos>(value)?.as_micros_f64(),
        "max-jitter" => service.limits.jitter_us = read::<Nanos>(value)?.as_micros_f64(),
        "vlan" => service.committed.vlan = Some(read(value)?),
        "dscp" => service.committed.dscp = Some(below(value, 64)?),
        "excess-dscp" => excess.dscp = Some(below(value, 64)?),
        "excess-priority" => excess.priority = Some(below(value, 8)?),
        _ => {
            return Err(
                "unknown key; keys are cir, eir, sizes, max-loss, max-delay, max-jitter, vlan, \
                 dscp, excess-dscp and excess-priority"
                    .to_owned(),
            );
        }
    }
    Ok(())
}

/// Marking of frames above the committed rate.
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
                return Err("excess-priority needs vlan".to_owned());
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
    number.ok_or_else(|| format!("'{text}' is not a number from 0 to {}", end - 1))
}

/// Parses a size model with `;` between its parameters, because commas separate a service's keys.
fn sizes(kind: &Kind<Box<dyn SizeModel>>, text: &str) -> Result<Arc<dyn SizeModel>, String> {
    kind.parse_with(&text.replace(';', ","), &FileLoader::default())
        .map(Arc::from)
        .map_err(|error| suggest::spec_error(&error))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use longwire_testbed::support::rows;

    use super::*;

    #[derive(Debug, Parser)]
    struct Options {
        #[command(flatten)]
        profile: ProfileArgs,
    }

    fn parsed(line: &str) -> Result<Vec<Service>, Error> {
        let words = ["test"].into_iter().chain(line.split_whitespace());
        services(&Options::try_parse_from(words).expect("options").profile)
    }

    #[test]
    fn services_are_read_or_refused_with_the_reason() {
        let voice = "voice:cir=2mbit,eir=1mbit,sizes=fixed:size=218;fcs=with,max-delay=20ms,\
                     vlan=10:5,dscp=46,excess-priority=1";
        let line = format!("--max-loss 1% --service {voice} --service data:cir=9mbit");
        let found = parsed(&line).expect("services");
        let (voice, data) = (&found[0], &found[1]);
        assert_eq!((voice.limits.delay_us, voice.limits.loss), (20_000.0, 0.01));
        assert_eq!(voice.sizes.as_ref().expect("sizes").fixed(), Some(214));
        let excess = voice.excess.expect("colours");
        assert_eq!(excess.vlan.map(|tag| (tag.id, tag.priority)), Some((10, 1)));
        assert_eq!((excess.dscp, voice.committed.dscp), (Some(46), Some(46)));
        assert_eq!((data.name.as_str(), data.excess), ("data", None));
        assert_eq!(data.limits.delay_us, 100_000.0);
        let refused = rows(
            "
                                                                | --cir
            --service x:eir=1mbit                               | cir, the guaranteed rate, is missing
            --service :cir=1mbit                                | NAME:
            --service x:cir                                     | 'cir' is not key=value
            --service x:cir=fast                                | cir:
            --service x:cir=1mbit,colour=red                    | excess-dscp
            --service x:cir=1mbit,dscp=64                       | 0 to 63
            --service x:cir=1mbit,eir=1mbit,excess-priority=1   | needs vlan
            --service x:cir=1mbit,excess-dscp=1                 | needs eir
            --service x:cir=1mbit --service x:cir=2mbit         | is given twice
            --service x:cir=1mbit --cir 1mbit                   | conflict with --service
            --service x:cir=1mbit --eir 1mbit                   | conflict with --service
            ",
        );
        for [line, said] in refused {
            let refused = parsed(line).expect_err(said).to_string();
            assert!(refused.contains(said), "{line}: {refused}");
        }
    }
}
