//! Long help of the options, for the command line.

/// Help of `--split`.
pub const SPLIT: &str = "\
Send what clients sent to the first port and what servers sent to the second

client=10.0.0.0/8,2001:db8::/32: clients have addresses of these networks
mac=02:00:00:00:00:01: clients' frames come from these Ethernet addresses
syn: the sender of a connection's first SYN is its client; without TCP, the first sender
port: the end with the lower port is the server; with equal ones or none, as syn

Frames without IP go where the last frame from the same Ethernet address went.";

/// Help of `--truncated`.
pub const TRUNCATED: &str = "\
Handling of frames of which the capture kept only the beginning

zeros, random, pattern:HEX: filled up to their length, with correct lengths and checksums. Of a \
fragmented datagram the checksum cannot be known; it stays, and is counted.
keep: sent as short as they are; an emulated link still counts their length
skip: not sent";

/// Help of `--map`.
pub const MAP: &str = "\
Replace a network by another, as in 10.0.0.0/8=192.168.0.0/16

The bits after the new prefix stay. May be given several times; the longest old network that \
fits counts, and each address is mapped once. src:OLD=NEW is for source addresses only, \
dst:OLD=NEW for destinations. Also in ARP, neighbour discovery, routes, home addresses, \
and packets that ICMP errors quote; inside of tunnels with --inner. Checksums are updated: right ones stay right, wrong ones wrong.";

/// Help of `--anonymize`.
pub const ANONYMIZE: &str = "\
Anonymise addresses with a key, keeping prefixes (Crypto-PAn: Fan et al. 2004)

The key is 64 hexadecimal digits: 'openssl rand -hex 32' makes one. Addresses that --map maps are \
not anonymised. This network, loopback, multicast, broadcast and the link-local prefix stay, and \
no other address becomes one of them; with ',plain' after the key every address is anonymised, \
exactly as published. Payload, Ethernet addresses and names in it stay as they are. A frame in \
which an address would stay, or without IP, is not sent, unless --unaltered is send.";

/// Help of `--loop-addresses`.
pub const LOOP_ADDRESSES: &str = "\
Addresses advance by STEP with every round of --loop, so that every round has other flows

STEP: all hosts' addresses, within their last 24 bits. STEP,NETWORK: those of one network, within \
it; may be given several times, the first that fits counts. Multicast, broadcast and loopback \
stay. Comes after --map and --anonymize.";

/// Help of `--loop-renumber`.
pub const LOOP_RENUMBER: &str = "\
With every round of --loop, TCP connections have other sequence numbers, and RTP streams go on

TCP: both directions' sequence and acknowledgement numbers move by an amount that the connection \
and the round decide, selective acknowledgements with them; timestamps go on by the time of the \
previous rounds, in milliseconds. RTP: sequence and timestamp continue after the last packet of \
the previous round; streams are recognised in the first round, 4096 at the most. RTCP stays as it \
is.";

/// Help of `--unaltered`.
pub const UNALTERED: &str = "\
Frames that the options cannot alter, or not wholly

send: sent as far as they are altered (the default)
drop: not sent (the default with --anonymize)

Each is counted with its reason: no IP in it, encrypted, cut within its headers, a packet inside \
of a tunnel without --inner, or a header whose addresses are not understood. About --map, \
--anonymize, --map-port, --fix-checksums, --dscp, --ttl and the changes with every --loop.";
