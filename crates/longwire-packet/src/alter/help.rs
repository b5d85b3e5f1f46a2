//! Long command-line help for the options.

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
Handling of truncated frames

zeros, random, pattern:HEX: padded to their length, with correct lengths and checksums. The \
checksum of a fragmented datagram cannot be computed; it stays, and is counted.
keep: sent truncated; an emulated link still counts their original length
skip: not sent";

/// Help of `--map`.
pub const MAP: &str = "\
Replace a network by another, as in 10.0.0.0/8=192.168.0.0/16

The bits after the new prefix stay. Repeatable: the longest matching OLD applies, and each address \
is mapped once. src:OLD=NEW maps source addresses only, dst:OLD=NEW destinations. Also applies to \
ARP, neighbour discovery, routes, home addresses and packets quoted in ICMP errors, and with \
--inner to packets in tunnels. Checksums are updated: correct ones stay correct, wrong ones wrong.";

/// Help of `--anonymize`.
pub const ANONYMIZE: &str = "\
Anonymise addresses with a key, keeping prefixes (Crypto-PAn: Fan et al. 2004)

KEY: 64 hexadecimal digits ('openssl rand -hex 32'). Special addresses (this network, loopback, \
multicast, broadcast, the link-local prefix) are preserved and never produced; KEY,plain \
anonymises them too, as published. Not anonymised: addresses changed by --map, MAC addresses, \
payload. Frames without IP, or that would keep an IP address, are dropped unless --unaltered send.";

/// Help of `--loop-addresses`.
pub const LOOP_ADDRESSES: &str = "\
Addresses advance by STEP with every round of --loop, so that every round has other flows

STEP: all hosts' addresses, within their last 24 bits. STEP,NETWORK: those of one network, within \
it; repeatable, the first that fits counts. Multicast, broadcast and loopback stay. Comes after \
--map and --anonymize.";

/// Help of `--loop-renumber`.
pub const LOOP_RENUMBER: &str = "\
With every round of --loop, TCP connections have other sequence numbers, and RTP streams go on

TCP: both directions' sequence and acknowledgement numbers move by an amount that the connection \
and the round decide, selective acknowledgements with them; timestamps go on by the time of the \
previous rounds, in milliseconds. RTP: sequence and timestamp continue after the last packet of \
the previous round; streams are recognised in the first round, at most 4096. RTCP stays as it is.";

/// Help of `--unaltered`.
pub const UNALTERED: &str = "\
Handling of frames that the options cannot alter, or only in part

send: sent, altered as far as possible (the default)
drop: not sent (the default with --anonymize)

Such frames are counted by reason: no IP, encrypted, truncated headers, tunnelled without --inner, \
or unknown header. Concerns --map, --anonymize, --map-port, --fix-checksums, --dscp, --ttl, \
--loop-addresses and --loop-renumber.";
