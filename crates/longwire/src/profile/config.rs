//! Converts options to tests.

use longwire_engine::Probability;
use longwire_traffic::arrivals::LoadRate;
use longwire_traffic::profile::{Rfc2544, Rfc2889, Y1564};
use longwire_traffic::sizes::FCS_LEN;

use super::args::ProfileArgs;
use super::service::services;
use crate::Error;
use crate::cli::TrafficArgs;

/// Returns the RFC 2544 benchmarks of the options.
///
/// # Errors
/// If the rate is missing, or its framing is invalid.
pub(super) fn rfc2544(args: &ProfileArgs, traffic: &TrafficArgs) -> Result<Rfc2544, Error> {
    let rate = traffic.load_rate("ethernet")?;
    let sizes = args.frame_sizes.iter();
    Ok(Rfc2544 {
        rate: rate.ok_or_else(|| Error::usage("give --rate, what 100 % is"))?,
        sizes: sizes.map(|size| size - FCS_LEN).collect(),
        tests: args.tests.iter().map(|test| test.test()).collect(),
        trial: args.trial,
        resolution: parts_per_million(args.resolution),
        acceptable_loss: args.acceptable_loss.as_f64(),
        min_throughput: parts_per_million(args.min_throughput),
        bursts: args.bursts,
    })
}

/// Returns the RFC 2889 benchmarks of the options.
///
/// # Errors
/// If the rate is missing, or its framing is invalid.
pub(super) fn rfc2889(args: &ProfileArgs, traffic: &TrafficArgs) -> Result<Rfc2889, Error> {
    Ok(Rfc2889 {
        loads: rfc2544(args, traffic)?,
        tests: args.switch_tests.iter().map(|test| test.test()).collect(),
        addresses: args.addresses,
        learning_rate: LoadRate::Packets(args.teaching_rate),
        aging: args.aging_time,
    })
}

/// Returns the Y.1564 activation test of the options.
///
/// # Errors
/// If there is no service, or a service or the arrivals are invalid.
pub(super) fn y1564(args: &ProfileArgs, traffic: &TrafficArgs) -> Result<Y1564, Error> {
    Ok(Y1564 {
        services: services(args)?,
        step: args.trial,
        performance: args.performance_time,
        arrivals: traffic.arrival_model()?,
    })
}

/// Returns a share in parts per million; at least 1 if the share is above 0.
fn parts_per_million(share: Probability) -> u32 {
    let parts = (share.as_f64() * 1e6).round() as u32;
    parts.max(u32::from(share != Probability::ZERO))
}
