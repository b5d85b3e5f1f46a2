//! Names of protocols, services and constants.

/// IP protocols (IANA).
const PROTOCOLS: [(&str, u8); 18] = [
    ("icmp", 1),
    ("igmp", 2),
    ("tcp", 6),
    ("egp", 8),
    ("igrp", 9),
    ("udp", 17),
    ("dccp", 33),
    ("rsvp", 46),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmp6", 58),
    ("icmpv6", 58),
    ("ospf", 89),
    ("pim", 103),
    ("vrrp", 112),
    ("sctp", 132),
    ("udplite", 136),
];

/// EtherTypes.
const ETHERTYPES: [(&str, u16); 10] = [
    ("ip", 0x0800),
    ("arp", 0x0806),
    ("rarp", 0x8035),
    ("aarp", 0x80f3),
    ("atalk", 0x809b),
    ("ip6", 0x86dd),
    ("ipv6", 0x86dd),
    ("mpls", 0x8847),
    ("lldp", 0x88cc),
    ("loopback", 0x9000),
];

/// Registered service ports (IANA).
const SERVICES: [(&str, u16); 39] = [
    ("ftp-data", 20),
    ("ftp", 21),
    ("ssh", 22),
    ("telnet", 23),
    ("smtp", 25),
    ("domain", 53),
    ("bootps", 67),
    ("bootpc", 68),
    ("tftp", 69),
    ("gopher", 70),
    ("finger", 79),
    ("http", 80),
    ("kerberos", 88),
    ("pop3", 110),
    ("sunrpc", 111),
    ("nntp", 119),
    ("ntp", 123),
    ("netbios-ns", 137),
    ("netbios-dgm", 138),
    ("netbios-ssn", 139),
    ("imap2", 143),
    ("imap", 143),
    ("snmp", 161),
    ("snmp-trap", 162),
    ("bgp", 179),
    ("ldap", 389),
    ("https", 443),
    ("microsoft-ds", 445),
    ("isakmp", 500),
    ("syslog", 514),
    ("submission", 587),
    ("ldaps", 636),
    ("imaps", 993),
    ("pop3s", 995),
    ("nfs", 2_049),
    ("mysql", 3_306),
    ("sip", 5_060),
    ("sip-tls", 5_061),
    ("mdns", 5_353),
];

/// Constants from pcap-filter(7): offsets, TCP flags, ICMP types.
const CONSTANTS: [(&str, u32); 44] = [
    ("tcpflags", 13),
    ("tcp-fin", 0x01),
    ("tcp-syn", 0x02),
    ("tcp-rst", 0x04),
    ("tcp-push", 0x08),
    ("tcp-ack", 0x10),
    ("tcp-urg", 0x20),
    ("tcp-ece", 0x40),
    ("tcp-cwr", 0x80),
    ("icmptype", 0),
    ("icmpcode", 1),
    ("icmp-echoreply", 0),
    ("icmp-unreach", 3),
    ("icmp-sourcequench", 4),
    ("icmp-redirect", 5),
    ("icmp-echo", 8),
    ("icmp-routeradvert", 9),
    ("icmp-routersolicit", 10),
    ("icmp-timxceed", 11),
    ("icmp-paramprob", 12),
    ("icmp-tstamp", 13),
    ("icmp-tstampreply", 14),
    ("icmp-ireq", 15),
    ("icmp-ireqreply", 16),
    ("icmp-maskreq", 17),
    ("icmp-maskreply", 18),
    ("icmp6type", 0),
    ("icmp6code", 1),
    ("icmp6-destinationunreach", 1),
    ("icmp6-packettoobig", 2),
    ("icmp6-timeexceeded", 3),
    ("icmp6-parameterproblem", 4),
    ("icmp6-echo", 128),
    ("icmp6-echoreply", 129),
    ("icmp6-multicastlistenerquery", 130),
    ("icmp6-multicastlistenerreportv1", 131),
    ("icmp6-multicastlistenerdone", 132),
    ("icmp6-routersolicit", 133),
    ("icmp6-routeradvert", 134),
    ("icmp6-neighborsolicit", 135),
    ("icmp6-neighboradvert", 136),
    ("icmp6-redirect", 137),
    ("icmp6-routerrenum", 138),
    ("icmp6-nodeinformationquery", 139),
];

fn find<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    let found = table.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value)
}

fn name_of<T: Copy + PartialEq>(table: &[(&'static str, T)], value: T) -> Option<&'static str> {
    let found = table.iter().find(|(_, known)| *known == value);
    found.map(|(name, _)| *name)
}

/// Returns the first name of a protocol.
pub(crate) fn protocol_name(number: u8) -> Option<&'static str> {
    name_of(&PROTOCOLS, number)
}

/// Returns the first name of an EtherType.
pub(crate) fn ethertype_name(number: u16) -> Option<&'static str> {
    name_of(&ETHERTYPES, number)
}

/// Returns the number of a protocol.
pub(crate) fn protocol(name: &str) -> Option<u8> {
    find(&PROTOCOLS, name)
}

/// Returns an EtherType.
pub(crate) fn ethertype(name: &str) -> Option<u16> {
    find(&ETHERTYPES, name)
}

/// Returns the port of a service.
pub(super) fn service(name: &str) -> Option<u16> {
    find(&SERVICES, name)
}

/// Returns a pcap-filter(7) constant.
pub(super) fn constant(name: &str) -> Option<u32> {
    find(&CONSTANTS, name)
}
