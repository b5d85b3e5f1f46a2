//! Real traffic between two stations, captured live.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::process::{Command, Stdio};

use longwire_io::net::veth::End;
use longwire_io::net::{self, NetNamespace, sysctl};
use longwire_testbed::support::{Folder, device, namespace, wire};

use crate::common::process::{Capture, PATIENCE};
use crate::common::wire::finish_frames;
use crate::replay::frames::{CLIENT4, CLIENT6, SERVER4, SERVER6};

/// A client and a server joined by a wire.
pub struct Stations {
    pub client: NetNamespace,
    server: NetNamespace,
}

impl Stations {
    pub fn new(mtu: u32) -> Option<Stations> {
        let stations = Stations {
            client: namespace()?,
            server: namespace()?,
        };
        let Stations { client, server } = &stations;
        let end = |namespace| End {
            mtu: Some(mtu),
            ..device("station", Some(namespace))
        };
        // Addresses are usable at once.
        let at_once = || sysctl::set("ipv6/conf/default/dad_transmits", "0");
        for namespace in [client, server] {
            let set = namespace.run(at_once);
            set.expect("entered").expect("a setting");
        }
        wire(end(client), end(server)).expect("a pair");
        for (namespace, v4, v6) in [(client, CLIENT4, CLIENT6), (server, SERVER4, SERVER6)] {
            let ready = namespace.run(|| {
                finish_frames("station");
                net::addr_add("station", IpAddr::V4(v4), 24)?;
                net::addr_add("station", IpAddr::V6(v6), 64)?;
                net::link_up("lo")
            });
            ready.expect("entered").expect("a station");
        }
        Some(stations)
    }

    /// Captures at least `frames` frames at the client while `speak` runs.
    pub fn capture(
        &self,
        (dir, name): (&Folder, &str),
        options: &[&str],
        frames: usize,
        speak: impl FnOnce(&Stations),
    ) -> String {
        let capture = Capture::start(dir, name, &self.client, options);
        speak(self);
        capture.with_frames(frames)
    }

    fn udp(namespace: &NetNamespace, address: impl Into<IpAddr>, port: u16) -> UdpSocket {
        let address = SocketAddr::new(address.into(), port);
        let socket = namespace.run(|| UdpSocket::bind(address));
        let socket = socket.expect("entered").expect("a free port");
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        socket
    }

    /// Runs a program at the client; it must succeed.
    fn at_client(&self, program: &str, arguments: &[&str]) {
        let status = self.client.run(|| {
            let mut command = Command::new(program);
            command.args(arguments).stdout(Stdio::null()).status()
        });
        let status = status.expect("entered").expect("it starts");
        assert!(status.success(), "{program} {arguments:?}: {status}");
    }

    /// Pings over both protocols, whole and in fragments, and an unreachable port.
    pub fn ping(&self, sizes: &[&str]) {
        for size in sizes {
            for server in [SERVER4.to_string(), SERVER6.to_string()] {
                let arguments = ["-c", "2", "-i", "0.2", "-W", "5", "-s", size, &server];
                self.at_client("ping", &arguments);
            }
        }
        let client = Stations::udp(&self.client, CLIENT4, 0);
        let sent = client.send_to(b"is anybody there?", (SERVER4, 9));
        assert_eq!(sent.ok(), Some(17));
    }

    /// DNS queries and responses over both protocols.
    pub fn look_up(&self) {
        let ends: [(IpAddr, IpAddr); 2] = [
            (CLIENT4.into(), SERVER4.into()),
            (CLIENT6.into(), SERVER6.into()),
        ];
        for (client, server) in ends {
            let (from, to) = (Stations::udp(&self.client, client, 0), (server, 53));
            let server = Stations::udp(&self.server, server, 53);
            let mut buffer = [0; 512];
            for (id, name) in [(1, "www.example.org"), (2, "mail.example.org")] {
                let question = question(id, name);
                from.send_to(&question, to).expect("it is sent");
                let (len, asker) = server.recv_from(&mut buffer).expect("a question");
                assert_eq!(buffer[..len], question);
                let answer = answer(&question);
                server.send_to(&answer, asker).expect("it is sent");
                from.recv(&mut buffer).expect("an answer");
            }
        }
    }

    /// Fetches a page with curl over both protocols.
    pub fn fetch(&self, bytes: usize) {
        for server in [IpAddr::from(SERVER4), IpAddr::from(SERVER6)] {
            let address = SocketAddr::new(server, 80);
            let listener = self.server.run(|| TcpListener::bind(address));
            let listener = listener.expect("entered").expect("port 80");
            let serving = std::thread::spawn(move || serve(&listener, bytes));
            let url = format!("http://{address}/page");
            self.at_client("curl", &["--silent", "--fail", "--max-time", "20", &url]);
            serving.join().expect("a server").expect("a page");
        }
    }

    /// A call: SIP (RFC 3261) with SDP, and RTP (RFC 3550) in both directions.
    pub fn call(&self) {
        let phone = |ns, address, port| Stations::udp(ns, address, port);
        let (caller, called) = (
            phone(&self.client, CLIENT4, 5_060),
            phone(&self.server, SERVER4, 5_060),
        );
        let mut buffer = [0; 2_048];
        let mut say = |from: &UdpSocket, to: &UdpSocket, text: String| {
            let address = to.local_addr().expect("an address");
            from.send_to(text.as_bytes(), address).expect("it is sent");
            let len = to.recv(&mut buffer).expect("it comes");
            assert_eq!(buffer[..len], *text.as_bytes());
        };
        let invite = "INVITE sip:bob@10.9.0.2 SIP/2.0";
        let ok = "SIP/2.0 200 OK";
        say(
            &caller,
            &called,
            sip(invite, "1 INVITE", Some((CLIENT4, 40_000))),
        );
        say(
            &called,
            &caller,
            sip("SIP/2.0 180 Ringing", "1 INVITE", None),
        );
        say(
            &called,
            &caller,
            sip(ok, "1 INVITE", Some((SERVER4, 40_002))),
        );
        say(
            &caller,
            &called,
            sip("ACK sip:bob@10.9.0.2 SIP/2.0", "1 ACK", None),
        );
        let here = phone(&self.client, CLIENT4, 40_000);
        let there = phone(&self.server, SERVER4, 40_002);
        let mut heard = [0; 256];
        for number in 0..VOICE_PACKETS {
            for (from, to, source) in [(&here, &there, 0xaaaa), (&there, &here, 0xbbbb)] {
                let address = to.local_addr().expect("an address");
                from.send_to(&voice(number, source), address)
                    .expect("it is sent");
                assert_eq!(to.recv(&mut heard).ok(), Some(172));
            }
        }
        say(
            &caller,
            &called,
            sip("BYE sip:bob@10.9.0.2 SIP/2.0", "2 BYE", None),
        );
        say(&called, &caller, sip(ok, "2 BYE", None));
    }
}

/// Voice packets sent by each side of a call.
pub const VOICE_PACKETS: u16 = 50;

/// Returns an RTP packet with 20 ms of G.711 silence.
fn voice(number: u16, source: u32) -> Vec<u8> {
    let mut packet = vec![0x80, if number == 0 { 0x80 } else { 0 }];
    packet.extend((1_000 + number).to_be_bytes());
    packet.extend((u32::from(number) * 160).to_be_bytes());
    packet.extend(source.to_be_bytes());
    packet.resize(172, 0xff);
    packet
}

/// Returns a SIP message; `media` is the address for voice.
fn sip(start: &str, sequence: &str, media: Option<(std::net::Ipv4Addr, u16)>) -> String {
    let body = media.map_or_else(String::new, |(address, port)| {
        format!(
            "v=0\r\no=- 1 1 IN IP4 {address}\r\ns=-\r\nc=IN IP4 {address}\r\nt=0 0\r\n\
             m=audio {port} RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\n"
        )
    });
    let kind = if body.is_empty() {
        ""
    } else {
        "Content-Type: application/sdp\r\n"
    };
    format!(
        "{start}\r\nVia: SIP/2.0/UDP 10.9.0.1:5060;branch=z9hG4bK776asdhds\r\n\
         Max-Forwards: 70\r\nFrom: <sip:alice@10.9.0.1>;tag=1928301774\r\n\
         To: <sip:bob@10.9.0.2>;tag=a6c85cf\r\nCall-ID: a84b4c76e66710@10.9.0.1\r\n\
         CSeq: {sequence}\r\nContact: <sip:alice@10.9.0.1>\r\n{kind}\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Returns a query for a name's IPv4 address (RFC 1035, section 4).
fn question(id: u8, name: &str) -> Vec<u8> {
    let mut message = vec![0, id, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        message.push(label.len() as u8);
        message.extend(label.bytes());
    }
    message.extend([0, 0, 1, 0, 1]);
    message
}

/// Returns the response to a query.
fn answer(question: &[u8]) -> Vec<u8> {
    let mut message = question.to_vec();
    message[2..4].copy_from_slice(&[0x81, 0x80]);
    message[7] = 1;
    // The queried name, its address, with a TTL of 300 s.
    message.extend([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 1, 44, 0, 4, 192, 0, 2, 80]);
    message
}

/// Serves one request with a page of `bytes` bytes.
fn serve(listener: &TcpListener, bytes: usize) -> std::io::Result<()> {
    let (mut stream, _) = listener.accept()?;
    let mut request = Vec::new();
    let mut buffer = [0; 1_024];
    while !request.ends_with(b"\r\n\r\n") {
        let len = stream.read(&mut buffer)?;
        request.extend(&buffer[..len]);
    }
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {bytes}\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(&b"All work and no play. ".repeat(bytes / 22 + 1)[..bytes])
}
