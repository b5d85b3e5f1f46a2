//! Connections over an interface while links are attached and detached.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::{Joined, name_of};

/// Bytes per write; the pattern's period is not a power of two.
const BLOCK: usize = 251 * 257;

#[test]
fn a_connection_survives_attach_and_detach() {
    let Some(joined) = Joined::new() else { return };
    let address = SocketAddr::new(joined.far_address, 7_000);
    let listener = joined.far.run(|| TcpListener::bind(address));
    let listener = listener.expect("entered").expect("a listener");
    let stream = joined.near.run(|| TcpStream::connect(address));
    let mut stream = stream.expect("entered").expect("a connection");
    let (mut received, _) = listener.accept().expect("a connection");
    let pattern: Vec<u8> = (0..BLOCK).map(|at| (at % 251) as u8).collect();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let mut blocks = 0_u64;
            while !over.load(Ordering::Relaxed) {
                stream.write_all(&pattern).expect("no reset");
                blocks += 1;
            }
            stream.shutdown(std::net::Shutdown::Write).expect("an end");
            blocks
        });
        let receiver = scope.spawn(|| {
            let (mut total, mut buffer) = (0_u64, vec![0; 1 << 16]);
            loop {
                let length = received.read(&mut buffer).expect("no reset");
                if length == 0 {
                    return total;
                }
                let right = buffer[..length]
                    .iter()
                    .zip(total..)
                    .all(|(byte, at)| u64::from(*byte) == at % BLOCK as u64 % 251);
                assert!(right, "other bytes than were sent, near {total}");
                total += length as u64;
            }
        });
        for round in 0..3 {
            let name = name_of(&format!("stream{round}"));
            let attached = joined.attach(&name, &["--delay", "3ms"]);
            joined.round_trip().expect("answers");
            attached.set(&["loss=1%"]);
            if round == 1 {
                attached.kill();
            } else {
                let _ = attached.detach();
            }
        }
        over.store(true, Ordering::Relaxed);
        let blocks = sender.join().expect("it sent");
        let total = receiver.join().expect("it received");
        assert_eq!(total, blocks * BLOCK as u64);
        assert!(blocks > 10);
    });
    joined.assert_clean();
}
