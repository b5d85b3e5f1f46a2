//! Measures one row in one round.

use std::fs;
use std::time::{Duration, Instant};

use longwire_testbed::support::Folder;
use longwire_traffic::sockets::{Datagrams, Path, UdpFlow, tcp_flow, udp_flow};
use serde_json::Value;

use super::{NETWORK_FILE, Setup};
use crate::exec_run::ExecRun;
use crate::program;
use longwire::Error;
use longwire::bench::testbed::Testbed;

/// The results of one round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Measured {
    pub tcp_gbit: f64,
    pub tcp_kernel_cores: f64,
    pub tcp_own_cores: f64,
    pub tcp_late_p99_us: f64,
    pub udp_pps: f64,
    pub udp_flows_pps: f64,
}

/// A network of one link without options.
const NETWORK: &str = "[ports]\nnear = \"packet:near\"\nfar = \"packet:far\"\n\n\
    [[link]]\nname = \"link\"\nmatch = \"in-port=near\"\n";

/// Flows in the second flood.
const FLOWS: u32 = 1_000;

/// Measures a row once.
pub(super) fn measure(setup: &Setup, time: Duration) -> Result<Measured, Error> {
    let Some(options) = setup.options else {
        let testbed = Testbed::bare()?;
        let mut found = Measured {
            tcp_gbit: tcp(testbed.path(), time)?,
            ..Measured::default()
        };
        floods(testbed.path(), time, &mut found)?;
        return Ok(found);
    };
    let folder = Folder::create()?;
    fs::write(folder.path().join(NETWORK_FILE), NETWORK)?;
    let mut found = Measured::default();
    let run = ExecRun::start(&program::path()?, folder.path(), options)?;
    let (before, start) = (run.cpu()?, Instant::now());
    found.tcp_gbit = tcp(run.path(), time)?;
    let (after, seconds) = (run.cpu()?, start.elapsed().as_secs_f64());
    found.tcp_own_cores = (after.own - before.own) / seconds;
    found.tcp_kernel_cores = (after.kernel - before.kernel) / seconds;
    found.tcp_late_p99_us = late_p99(&run.stop()?);
    let run = ExecRun::start(&program::path()?, folder.path(), options)?;
    floods(run.path(), time, &mut found)?;
    run.stop()?;
    Ok(found)
}

fn tcp(path: Path<'_>, time: Duration) -> Result<f64, Error> {
    Ok(tcp_flow(path, time, time / 4)?.goodput / 1e9)
}

fn floods(path: Path<'_>, time: Duration, found: &mut Measured) -> Result<(), Error> {
    let flood = |flows| -> Result<f64, Error> {
        let flow = UdpFlow {
            flows,
            ..UdpFlow::new(64, 0, time)
        };
        let Datagrams { received, .. } = udp_flow(path, flow)?;
        Ok(received as f64 / time.as_secs_f64())
    };
    found.udp_pps = flood(1)?;
    found.udp_flows_pps = flood(FLOWS)?;
    Ok(())
}

/// Returns the 99th percentile of lateness from near to far.
fn late_p99(report: &Value) -> f64 {
    let ports = report["ports"].as_array().into_iter().flatten();
    let mut far = ports.filter(|port| port["name"] == "far");
    let late = far.find_map(|port| port["lateness_us"]["p99"].as_f64());
    late.unwrap_or(0.0)
}
