//! Testbed of `bench control`: the hosts' devices in one namespace, the emulator's in
//! another.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use longwire_io::net::NetNamespace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::program;
use longwire::Error;
use longwire_client::Client;
use longwire_control::Address;
use longwire_testbed::support::{Folder, device, wire};

/// The link in use.
pub(super) const LINK: &str = "link";

/// Timeout of every wait, longer than any usable machine needs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Time that probes run before and after the measurement.
const AROUND: Duration = Duration::from_millis(500);

/// Two host devices, and their peers at the emulator.
pub(super) struct Site {
    hosts: NetNamespace,
    middle: NetNamespace,
    folder: Folder,
}

/// The running emulator, stopped on drop.
pub(super) struct RunningEmulator<'a> {
    site: &'a Site,
    child: ChildGuard,
}

/// A program that is killed on drop.
struct ChildGuard(Option<Child>);

impl Drop for ChildGuard {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Site {
    /// Creates a testbed whose topology has one link in use and `links` idle ones.
    pub fn new(links: u32) -> Result<Site, Error> {
        let (hosts, middle) = (NetNamespace::new()?, NetNamespace::new()?);
        for name in ["near", "far"] {
            wire(device(name, Some(&hosts)), device(name, Some(&middle)))?;
        }
        let folder = Folder::create()?;
        std::fs::write(folder.path().join("network.toml"), topology(links))?;
        Ok(Site {
            hosts,
            middle,
            folder,
        })
    }

    /// Starts the emulator.
    pub fn start(&self) -> Result<RunningEmulator<'_>, Error> {
        let mut command = Command::new(program::path()?);
        command
            .arg("run")
            .arg(self.folder.path().join("network.toml"))
            .arg("--control")
            .arg(self.socket())
            .arg("--json");
        let child = self.middle.run(|| piped(&mut command))??;
        Ok(RunningEmulator {
            site: self,
            child: ChildGuard(Some(child)),
        })
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("control.sock")
    }
}

fn piped(command: &mut Command) -> std::io::Result<Child> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

fn topology(links: u32) -> String {
    // The queue suffices for every delay and rate of the changes.
    format!(
        "unmatched = \"drop\"\n\
         [ports]\nnear = \"packet:near\"\nfar = \"packet:far\"\n\
         [[link]]\nname = \"{LINK}\"\nmatch = \"in-port=near,proto=udp\"\n\
         rate = \"1gbit\"\ndelay = \"2ms\"\nqueue = \"200000p\"\n\
         [[link]]\nname = \"idle{{n}}\"\ncount = {links}\nbetween = [\"10.128.0.0/16\"]\n\
         match = \"src={{a}}\"\nrate = \"1mbit\"\ndelay = \"20ms\"\n"
    )
}

impl RunningEmulator<'_> {
    /// Returns the address of the control API.
    pub fn address(&self) -> Address {
        Address::Unix(self.site.socket())
    }

    /// Waits until the control API responds.
    pub fn wait(&self) -> Result<(), Error> {
        let mut client = Client::new(self.address(), None)?;
        until(|| Ok(client.get("/v1").is_ok()))
    }

    /// Starts probes and waits until they cross the link.
    pub fn generate(&self, pps: u64, time: Duration) -> Result<Generator, Error> {
        let time = time + 2 * AROUND;
        let mut command = Command::new(program::path()?);
        command.args(["generate", "--to", "packet:near", "--receive", "packet:far"]);
        command.args(["--sizes", "64", "--json"]);
        command.arg("--rate").arg(format!("{pps}pps"));
        command.arg("--time").arg(format!("{}ms", time.as_millis()));
        let child = self.site.hosts.run(|| piped(&mut command))??;
        let generator = Generator(ChildGuard(Some(child)));
        let mut client = Client::new(self.address(), None)?;
        until(|| {
            let told = client.get(&format!("/v1/links/{LINK}"))?;
            Ok(told["up"]["packets_in"].as_u64() > Some(0))
        })?;
        std::thread::sleep(AROUND);
        Ok(generator)
    }

    /// Stops the emulator, as Ctrl-C does; returns its report.
    pub fn stop(mut self) -> Result<Value, Error> {
        if let Some(child) = &self.child.0 {
            let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGINT);
        }
        said(&mut self.child)
    }
}

/// A running generator of probes.
pub(super) struct Generator(ChildGuard);

impl Generator {
    /// Waits for the generator's report.
    pub fn finish(mut self) -> Result<Value, Error> {
        said(&mut self.0)
    }
}

/// Waits for a program to end and returns its report.
fn said(child: &mut ChildGuard) -> Result<Value, Error> {
    let Some(child) = child.0.take() else {
        return Ok(Value::Null);
    };
    let Output { stdout, stderr, .. } = child.wait_with_output()?;
    serde_json::from_slice(&stdout).map_err(|_| {
        let mut why = String::new();
        let _ = stderr.as_slice().read_to_string(&mut why);
        Error::Failed(format!("a program of this bench failed: {}", why.trim()))
    })
}

fn until(mut done: impl FnMut() -> Result<bool, Error>) -> Result<(), Error> {
    let began = Instant::now();
    while !done()? {
        if began.elapsed() > TIMEOUT {
            return Err(Error::Failed(
                "the emulator or its traffic did not start".to_owned(),
            ));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
