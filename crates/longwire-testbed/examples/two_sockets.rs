//! Measures the RTT between two UDP sockets across a link with a delay of 20 ms each way: `sudo
//! cargo run -p longwire-testbed --example two_sockets`.

use std::error::Error;
use std::net::UdpSocket;
use std::time::Instant;

use longwire_testbed::Testbed;

fn main() -> Result<(), Box<dyn Error>> {
    let net = Testbed::link("delay=20ms")?.start()?;
    let server = net.far().run(|| UdpSocket::bind("0.0.0.0:7"))??;
    let client = net.near().run(|| UdpSocket::bind("0.0.0.0:0"))??;
    client.connect((net.far().addr(), 7))?;
    let mut buffer = [0; 64];

    let begin = Instant::now();
    client.send(b"hello")?;
    let (length, sender) = server.recv_from(&mut buffer)?;
    server.send_to(&buffer[..length], sender)?;
    client.recv(&mut buffer)?;
    println!("round trip: {:.2?}", begin.elapsed());

    let report = net.finish()?;
    println!(
        "packets late or lost by this machine: {}",
        report.up.artifacts()
    );
    Ok(())
}
