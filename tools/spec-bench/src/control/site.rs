//! Where the programs run: hosts' devices in one namespace, the emulator's in
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
use longwire_control::Address;
use longwire_control::client::Client;
use longwire_testbed::support::{Folder, device, wire};

/// The link that is used.
pub(super) const LINK: &str = "link";

/// Something takes longer than any machine that can be measured.
const PATIENCE: Duration = Duration::from_secs(60);

/// Probes go on so much longer than what is measured, at both ends of it.
const AROUND: Duration = Duration::from_millis(500);

/// Two devices of hosts, and the emulator's ends of them.
pub(super) struct Site {
    hosts: NetNamespace,
    middle: NetNamespace,
    folder: Folder,
}

/// The emulator, ended with this.
pub(super) struct Running<'a> {
    site: &'a Site,
    child: Killed,
}

/// A program that does not outlive this.
struct Killed(Option<Child>);

impl Drop for Killed {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Site {
    /// A site with the topology of one link that is used and others that are
    /// not.
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
    pub fn start(&self) -> Result<Running<'_>, Error> {
        let mut command = Command::new(program::path()?);
        command
            .arg("run")
            .arg(self.folder.path().join("network.toml"))
            .arg("--control")
            .arg(self.socket())
            .arg("--json");
        let child = self.middle.run(|| piped(&mut command))??;
        Ok(Running {
            site: self,
            child: Killed(Some(child)),
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
    // Whatever the delay and the rate become, the queue holds it all.
    format!(
        "unmatched = \"drop\"\n\
         [ports]\nnear = \"packet:near\"\nfar = \"packet:far\"\n\
         [[link]]\nname = \"{LINK}\"\nmatch = \"in-port=near,proto=udp\"\n\
         rate = \"1gbit\"\ndelay = \"2ms\"\nqueue = \"200000p\"\n\
         [[link]]\nname = \"idle{{n}}\"\ncount = {links}\nbetween = [\"10.128.0.0/16\"]\n\
         match = \"src={{a}}\"\nrate = \"1mbit\"\ndelay = \"20ms\"\n"
    )
}

impl Running<'_> {
    /// Where it is asked.
    pub fn address(&self) -> Address {
        Address::Unix(self.site.socket())
    }

    /// Waits until it answers.
    pub fn wait(&self) -> Result<(), Error> {
        let mut client = Client::new(self.address(), None)?;
        until(|| Ok(client.get("/v1").is_ok()))
    }

    /// Starts probes, and waits until they cross the link.
    pub fn generate(&self, pps: u64, time: Duration) -> Result<Generator, Error> {
        let time = time + 2 * AROUND;
        let mut command = Command::new(program::path()?);
        command.args(["generate", "--to", "packet:near", "--receive", "packet:far"]);
        command.args(["--sizes", "64", "--json"]);
        command.arg("--rate").arg(format!("{pps}pps"));
        command.arg("--time").arg(format!("{}ms", time.as_millis()));
        let child = self.site.hosts.run(|| piped(&mut command))??;
        let generator = Generator(Killed(Some(child)));
        let mut client = Client::new(self.address(), None)?;
        until(|| {
            let told = client.get(&format!("/v1/links/{LINK}"))?;
            Ok(told["up"]["packets_in"].as_u64() > Some(0))
        })?;
        std::thread::sleep(AROUND);
        Ok(generator)
    }

    /// Ends it, as Ctrl-C does; its report.
    pub fn stop(mut self) -> Result<Value, Error> {
        if let Some(child) = &self.child.0 {
            let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGINT);
        }
        said(&mut self.child)
    }
}

/// Probes that are being sent.
pub(super) struct Generator(Killed);

impl Generator {
    /// Waits for its report.
    pub fn finish(mut self) -> Result<Value, Error> {
        said(&mut self.0)
    }
}

/// What a program says in the end.
fn said(child: &mut Killed) -> Result<Value, Error> {
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
        if began.elapsed() > PATIENCE {
            return Err(Error::Failed(
                "the emulator or its traffic did not start".to_owned(),
            ));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
