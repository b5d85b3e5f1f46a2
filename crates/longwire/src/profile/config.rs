//! The tests that options describe.

use longwire_engine::Probability;
use longwire_traffic::arrivals::LoadRate;
use longwire_traffic::profile::{Rfc2544, Rfc2889, Y1564};
use longwire_traffic::sizes::FCS_LEN;

use super::args::ProfileArgs;
use super::service::services;
use crate::Error;
use crate::cli::TrafficArgs;

/// Returns the benchmarks of RFC 2544 that the options describe.
///
/// # Errors
/// If the rate is missing or its framing wrong.
pub(super) fn rfc2544(args: &ProfileArgs, traffic: &TrafficArgs) -> Result<Rfc2544, Error> {
    let rate = traffic.load_rate("ethernet")?;
    let sizes = args.frame_sizes.iter();
    Ok(Rfc2544 {
        rate: rate.ok_or_else(|| Error::Usage("give --rate, what 100 % is".to_owned()))?,
        sizes: sizes.map(|size| size - FCS_LEN).collect(),
        tests: args.tests.iter().map(|test| test.test()).collect(),
        trial: args.trial,
        resolution: parts_per_million(args.resolution),
        acceptable_loss: args.acceptable_loss.as_f64(),
        min_throughput: parts_per_million(args.min_throughput),
        bursts: args.bursts,
    })
}

/// Returns the benchmarks of RFC 2889 that the options describe.
///
/// # Errors
/// If the rate is missing or its framing wrong.
pub(super) fn rfc2889(args: &ProfileArgs, traffic: &TrafficArgs) -> Result<Rfc2889, Error> {
    Ok(Rfc2889 {
        loads: rfc2544(args, traffic)?,
        tests: args.switch_tests.iter().map(|test| test.test()).collect(),
        addresses: args.addresses,
        learning_rate: LoadRate::Packets(args.teaching_rate),
        aging: args.aging_time,
    })
}

/// Returns the activation test of Y.1564 that the options describe.
///
/// # Errors
/// If there is no service, one is described wrongly, or the arrivals are.
pub(super) fn y1564(args: &ProfileArgs, traffic: &TrafficArgs) -> Result<Y1564, Error> {
    Ok(Y1564 {
        services: services(args)?,
        step: args.trial,
        performance: args.performance_time,
        arrivals: traffic.arrival_model()?,
    })
}

/// Returns a share in parts per million, at least one if it is above zero.
fn parts_per_million(share: Probability) -> u32 {
    let parts = (share.as_f64() * 1e6).round() as u32;
    parts.max(u32::from(share != Probability::ZERO))
}
