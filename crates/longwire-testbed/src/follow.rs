//! Restores neighbours and routes after commands change host devices.
//!
//! When a device goes down, the kernel removes its neighbours and routes, even permanent ones. When
//! its MAC address changes, other hosts keep the old one. Address resolution is no substitute,
//! because it can fail over a long or lossy link.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::thread::{self, JoinHandle};

use longwire_io::net::address::{Prefix, neighbour_add_by, route_add_by};
use longwire_io::net::interface::LinkEvents;
use longwire_io::net::link::link_index;
use longwire_io::net::netlink::Netlink;
use longwire_io::net::{NetError, NetNamespace};
use longwire_io::rights::{self, Capability};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::network::{DEVICE, routes_of};
use crate::plan::{Host, link_local_of, mac_of};

/// A thread that follows changes until dropped.
#[derive(Debug)]
pub(crate) struct Follower {
    /// Closed to end the thread.
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

/// A host whose device is followed.
struct FollowedHost {
    events: LinkEvents,
    netlink: Netlink,
    addresses: Vec<IpAddr>,
    routes: Vec<Prefix>,
    /// Interface index, state and address of the device as of the last event.
    device: u32,
    up: bool,
    mac: [u8; 6],
}

impl Follower {
    /// Starts following the devices of configured hosts.
    pub fn start(hosts: &[Host], namespaces: &[NetNamespace]) -> Result<Follower, NetError> {
        let failed = |error: io::Error| NetError::System {
            action: "start",
            what: "a thread that follows devices".into(),
            source: error,
        };
        let followed = hosts.iter().zip(namespaces).map(|(host, namespace)| {
            let netlink = || Netlink::route().map_err(|error| failed(error.source));
            let opened = || Ok((LinkEvents::open()?, netlink()?, link_index(DEVICE)?));
            let (events, netlink, device) = namespace.run(opened)??;
            Ok(FollowedHost {
                events,
                netlink,
                addresses: host.addresses.iter().map(|found| found.address).collect(),
                routes: routes_of(host, hosts),
                device,
                up: true,
                mac: mac_of(host.number, 0),
            })
        });
        let mut followed: Vec<FollowedHost> = followed.collect::<Result<_, NetError>>()?;
        let (ended, stop) = nix::unistd::pipe().map_err(|error| failed(error.into()))?;
        let thread = thread::Builder::new().name("longwire-follow".into());
        let thread = thread.spawn(move || {
            // Failing to drop privileges does not affect the run.
            let _ = rights::give_up(&[Capability::NetAdmin]);
            while wait(&ended, &followed) {
                for host in 0..followed.len() {
                    follow(&mut followed, host);
                }
            }
        });
        Ok(Follower {
            stop: Some(stop),
            thread: Some(thread.map_err(failed)?),
        })
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // The panic has already been printed.
            let _ = thread.join();
        }
    }
}

/// Waits for an event; returns whether to continue.
fn wait(ended: &OwnedFd, hosts: &[FollowedHost]) -> bool {
    let watched = |fd| PollFd::new(fd, PollFlags::POLLIN);
    let mut fds = vec![watched(ended.as_fd())];
    fds.extend(hosts.iter().map(|host| watched(host.events.as_fd())));
    loop {
        match poll(&mut fds, PollTimeout::NONE) {
            Err(Errno::EINTR) => {}
            Err(_) => return false,
            Ok(_) => return fds[0].revents().is_none_or(|events| events.is_empty()),
        }
    }
}

/// Processes a host's events: restores its routes and neighbours after it came up. If its MAC
/// address changed, updates the other hosts' neighbour entries.
fn follow(hosts: &mut [FollowedHost], number: usize) {
    let host = &mut hosts[number];
    let (known, mut came_up) = (host.mac, false);
    let (device, up, mac) = (&mut host.device, &mut host.up, &mut host.mac);
    host.events.drain(|event| match event {
        Some(found) if found.name == DEVICE => {
            came_up |= found.up && !*up;
            *up = found.up;
            *mac = found.mac.unwrap_or(*mac);
            *device = found.index;
        }
        Some(_) => {}
        // Events were lost: assume that the device came up again.
        None => came_up = true,
    });
    if came_up && host.up {
        for route in &host.routes {
            // Fails if the route already exists, because an earlier event restored it.
            let _ = route_add_by(&mut host.netlink, *route, None, Some(host.device));
        }
        for other in (0..hosts.len()).filter(|other| *other != number) {
            introduce(hosts, other, number);
        }
    }
    if hosts[number].mac != known {
        for other in (0..hosts.len()).filter(|other| *other != number) {
            introduce(hosts, number, other);
        }
    }
}

/// Adds a host as a neighbour of another.
fn introduce(hosts: &mut [FollowedHost], host: usize, to: usize) {
    let mac = hosts[host].mac;
    let mut addresses = hosts[host].addresses.clone();
    addresses.push(link_local_of(mac).into());
    let to = &mut hosts[to];
    for address in addresses {
        // Fails while the device is down; repeated when it comes up.
        let _ = neighbour_add_by(&mut to.netlink, to.device, address, mac);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use longwire_io::net::link::{link_down, link_up, set_mac};
    use longwire_io::net::netlink::REQUEST;
    use longwire_io::net::netlink_message::{Message, attribute};

    use super::*;
    use crate::config::EnvironmentConfig;
    use crate::networks::Networks;
    use crate::support::namespace;

    /// Size of `struct ndmsg` and offset of its state.
    const FIXED: usize = 12;
    const STATE: usize = 8;

    /// Returns the permanent neighbours in a namespace: addresses with MAC addresses.
    fn neighbours(namespace: &NetNamespace) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut found = Vec::new();
        let permanent = libc::NUD_PERMANENT.to_ne_bytes();
        let listed = namespace.run(|| {
            let mut netlink = Netlink::route()?;
            let all = Message::new(libc::RTM_GETNEIGH, REQUEST, &[0; FIXED]);
            netlink.dump(all, |payload| {
                let body = &payload[FIXED..];
                let address = attribute(body, libc::NDA_DST);
                let mac = attribute(body, libc::NDA_LLADDR);
                if let (Some(address), Some(mac)) = (address, mac)
                    && payload[STATE..STATE + 2] == permanent
                {
                    found.push((address.to_vec(), mac.to_vec()));
                }
            })
        });
        listed.expect("a thread").expect("a list");
        found.sort();
        found
    }

    #[track_caller]
    fn assert_soon(namespace: &NetNamespace, holds: impl Fn(&[(Vec<u8>, Vec<u8>)]) -> bool) {
        let end = Instant::now() + Duration::from_secs(5);
        loop {
            let found = neighbours(namespace);
            if holds(&found) {
                return;
            }
            assert!(Instant::now() < end, "{found:?}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn neighbours_are_entered_again() {
        if namespace().is_none() {
            return;
        }
        let networks = Networks::new(&EnvironmentConfig::default()).expect("networks");
        let [near, far] = [0, 1].map(|host| &networks.all()[host]);
        let initial = [near, far].map(neighbours);
        assert!(initial.iter().all(|found| found.len() >= 3), "{initial:?}");
        let down_and_up = || link_down(DEVICE).and_then(|()| link_up(DEVICE));
        for _ in 0..20 {
            near.run(down_and_up).expect("a thread").expect("it is up");
            assert_soon(near, |found| found == initial[0]);
        }
        assert_eq!(neighbours(far), initial[1]);

        let mac = [2, 0, 0, 0, 0, 99];
        let change = || set_mac(DEVICE, mac);
        near.run(change).expect("a thread").expect("its address");
        let has = |found: &[(Vec<u8>, Vec<u8>)]| {
            let known = |address: &Vec<u8>| found.contains(&(address.clone(), mac.to_vec()));
            // The link-local address is derived from the MAC address, which has changed.
            let addresses = initial[1].iter().map(|(address, _)| address);
            addresses.filter(|address| address[0] != 0xfe).all(known)
        };
        assert_soon(far, has);
        // A device that was down at the time of the change learns the new address too.
        far.run(down_and_up).expect("a thread").expect("it is up");
        assert_soon(far, has);
    }
}
