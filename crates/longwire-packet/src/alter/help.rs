//! Long command-line help for the alteration options.

/// Help of `--split`.
pub const SPLIT: &str = "\
Send frames from clients to the first port and frames from servers to the second

client=10.0.0.0/8,2001:db8::/32: clients have addresses in these networks
mac=02:00:00:00:00:01: clients have these source MAC addresses
syn: the client is the sender of a connection's first SYN, or without TCP the first sender
port: the end with the lower port is the server; with equal ports or none, like syn

Frames without IP follow the last frame from the same MAC address.";

/// Help of `--truncated`.
pub const TRUNCATED: &str = "\
Handling of truncated frames

zeros, random, pattern:HEX: pad to the original length, and correct lengths and checksums. The \
checksum of a fragmented datagram cannot be computed: it is kept, and the frame is counted.
keep: send truncated; an emulated link still uses the original length
skip: do not send";

/// Help of `--map`.
pub const MAP: &str = "\
Replace one network with another, such as 10.0.0.0/8=192.168.0.0/16

Host bits are kept. Repeatable: the longest matching OLD applies, and each address is mapped once. \
src:OLD=NEW maps source addresses only, dst:OLD=NEW destination addresses only. Also applies to \
ARP, neighbour discovery, routes, home addresses and packets quoted in ICMP errors, and with \
--inner to packets in tunnels. Checksums are updated incrementally, so wrong ones stay wrong.";

/// Help of `--anonymize`.
pub const ANONYMIZE: &str = "\
Anonymise IP addresses with a key, preserving prefixes (Crypto-PAn: Fan et al. 2004)

KEY: 64 hexadecimal digits ('openssl rand -hex 32'). Special addresses (this network, loopback, \
multicast, broadcast, the prefix fe80::/10) are preserved and never produced; KEY,plain \
anonymises them too, as published. Not anonymised: addresses changed by --map, MAC addresses, \
payload. Frames without IP, and frames that would keep an original IP address, are dropped unless \
--unaltered send is given.";

/// Help of `--loop-addresses`.
pub const LOOP_ADDRESSES: &str = "\
Advance addresses by STEP in each round of --loop, so that each round has different flows

STEP: all host addresses advance within their last 24 bits. STEP,NETWORK: only addresses in \
NETWORK advance, within it; repeatable, the first match applies. Multicast, broadcast and loopback \
addresses do not change. Applied after --map and --anonymize.";

/// Help of `--loop-renumber`.
pub const LOOP_RENUMBER: &str = "\
Change TCP sequence numbers and continue RTP streams in each round of --loop

TCP: each direction's sequence numbers get an offset derived from connection and round, which \
acknowledgements and SACK follow; timestamps advance by 1 per millisecond of the previous rounds. \
RTP: sequence numbers and timestamps continue from the last packet of the previous round; the \
first round detects at most 4096 streams. RTCP is unchanged.";

/// Help of `--unaltered`.
pub const UNALTERED: &str = "\
Handling of frames that the options cannot alter completely

send: alter as far as possible, and send (default)
drop: do not send (default with --anonymize)

The frames are counted by reason: no IP, encrypted, truncated headers, tunnelled without --inner, \
or unknown header. Applies to --map, --anonymize, --map-port, --fix-checksums, --dscp, --ttl, \
--loop-addresses and --loop-renumber.";
