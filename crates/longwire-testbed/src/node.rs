//! One end of a link in a test: its addresses and programs.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::panic;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};

use longwire_io::net::NetNamespace;

use crate::config::Side;
use crate::error::EnvironmentError;
use crate::networks::Networks;
use crate::plan::Plan;
use crate::spawn::{self, Place};
use crate::testbed_error::TestbedError;

/// One of the two networks joined by the link. Sockets opened in it reach the other network only
/// through the link.
#[derive(Debug)]
pub struct Node {
    side: Side,
    plan: Plan,
    variables: Vec<(&'static str, String)>,
    namespace: NetNamespace,
    starter: Arc<Starter>,
}

impl Node {
    pub(crate) fn new(
        side: Side,
        networks: &Networks,
        starter: &Arc<Starter>,
    ) -> Result<Node, TestbedError> {
        Ok(Node {
            side,
            plan: networks.plan(),
            variables: networks.names().variables(),
            namespace: networks.network(side).try_clone()?,
            starter: Arc::clone(starter),
        })
    }

    /// Returns the node's IPv4 address.
    pub fn addr(&self) -> Ipv4Addr {
        self.plan.v4_of(self.side)
    }

    /// Returns the node's IPv6 address.
    pub fn addr_v6(&self) -> Ipv6Addr {
        self.plan.v6_of(self.side)
    }

    /// Returns the node's network namespace.
    pub fn namespace(&self) -> &NetNamespace {
        &self.namespace
    }

    /// Runs `work` on a thread in this network and returns its value. Propagates panics of `work`.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started, or cannot enter the network.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, TestbedError> {
        Ok(self.namespace.run(work)?)
    }

    /// Starts `work` on a thread in this network. The network exists until the thread ends, even
    /// after the link is removed.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started, or cannot enter the network.
    pub fn spawn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<JoinHandle<T>, TestbedError> {
        let namespace = self.namespace.try_clone()?;
        let (entered, result) = channel();
        let thread = Builder::new().name(self.side.name().to_owned());
        let thread = thread.spawn(move || {
            let entering = namespace.enter();
            let failed = entering.is_err();
            let _ = entered.send(entering);
            drop(namespace);
            if failed {
                // Ends the thread silently: no thread joins it, and the error has been sent.
                panic::resume_unwind(Box::new(()));
            }
            work()
        });
        let thread = thread.map_err(TestbedError::Thread)?;
        // The channel is closed only if the thread ended before it sent its result.
        result.recv().unwrap_or(Ok(()))?;
        Ok(thread)
    }

    /// Starts a program in this network, with the addresses of both ends in the environment
    /// variables `LONGWIRE_NEAR`, `LONGWIRE_FAR`, `LONGWIRE_NEAR6` and `LONGWIRE_FAR6`. The program
    /// is killed when the testbed or this process ends.
    ///
    /// # Errors
    ///
    /// If the program does not exist, or cannot be started.
    pub fn start(&self, mut command: Command) -> Result<Child, TestbedError> {
        command.envs(self.variables.iter().cloned());
        let namespace = self.namespace.try_clone()?;
        let started = self.starter.run(move || {
            let place = Place {
                network: &namespace,
                mounts: None,
            };
            spawn::start_in(place, &mut command)
        });
        Ok(started?)
    }
}

/// Work for the thread of a [`Starter`].
type Job = Box<dyn FnOnce() + Send>;

/// A thread that starts programs. It ends with the testbed, and the kernel then kills its programs.
#[derive(Debug)]
pub(crate) struct Starter {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Starter {
    pub(crate) fn new() -> Result<Starter, TestbedError> {
        let (jobs, todo) = channel::<Job>();
        let thread = Builder::new().name("longwire-starter".to_owned());
        let thread = thread.spawn(move || todo.into_iter().for_each(|job| job()));
        let thread = thread.map_err(TestbedError::Thread)?;
        Ok(Starter {
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    fn run(
        &self,
        work: impl FnOnce() -> Result<Child, EnvironmentError> + Send + 'static,
    ) -> Result<Child, EnvironmentError> {
        let (done, result) = channel();
        let job: Job = Box::new(move || {
            let _ = done.send(work());
        });
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send(job);
        }
        result.recv().unwrap_or_else(|_| {
            let ended = std::io::Error::other("its thread has ended");
            Err(EnvironmentError::system("start a program", ended))
        })
    }
}

impl Drop for Starter {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
