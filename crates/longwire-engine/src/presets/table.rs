//! The table of presets.

use super::Preset;

/// WebPageTest's profiles, which many tools have adopted.
const WEBPAGETEST: &str =
    "WebPageTest, connectivity profiles (www/settings/connectivity.ini.sample)";

/// A campaign from fixed nodes in Norway and Sweden: rates and round-trip
/// times by operator, technology and signal.
const ERRANT: &str = "ERRANT (Trevisan et al., Computer Networks 176, 2020), profiles.csv";

/// Every preset, from the slowest technology to the fastest.
pub static PRESETS: [Preset; 13] = [
    Preset {
        name: "dialup",
        summary: "a V.90 modem: 49 kbit/s down, 30 up, 120 ms there and back",
        sources: &[
            WEBPAGETEST,
            "Cheshire, It's the Latency, Stupid (1996): 110 to 159 ms through a modem",
            "PPP in HDLC-like framing, RFC 1662: 8 bytes around each packet",
        ],
        assumptions: "the delay is the same both ways; flags and escapes shared by packets, and \
                      compression, are left out",
        both: &[("framing", "bytes:overhead=-6"), ("delay", "60ms")],
        up: &[("rate", "30kbit")],
        down: &[("rate", "49kbit")],
    },
    Preset {
        name: "edge",
        summary: "an EDGE phone (2.75G): 240 kbit/s down, 200 up, 840 ms there and back",
        sources: &[WEBPAGETEST],
        assumptions: "the delay is the same both ways, and constant",
        both: &[("delay", "420ms")],
        up: &[("rate", "200kbit")],
        down: &[("rate", "240kbit")],
    },
    Preset {
        name: "3g",
        summary: "an HSPA phone at medium signal: 3.3 Mbit/s down, 1.5 up, 107 ms there and back",
        sources: &[ERRANT, "its row telia, norway, 3G, medium"],
        assumptions: "the delay is the same both ways, and constant; the rate too",
        both: &[("delay", "53.3ms")],
        up: &[("rate", "1457kbit")],
        down: &[("rate", "3266kbit")],
    },
    Preset {
        name: "lte",
        summary: "an LTE phone at medium signal: 24 Mbit/s down, 4 up, 86 ms there and back",
        sources: &[ERRANT, "its row telenor, norway, 4G, medium"],
        assumptions: "the delay is the same both ways, and constant; the rate too",
        both: &[("delay", "43.2ms")],
        up: &[("rate", "3955kbit")],
        down: &[("rate", "23928kbit")],
    },
    Preset {
        name: "5g",
        summary: "a 5G phone, the world's median: 203 Mbit/s down, 19 up, 44 ms there and back",
        sources: &[
            "Ookla, The State of Worldwide Connectivity in 2023: medians of the third \
                    quarter, 203.04 and 18.93 Mbit/s and 44 ms to several servers",
        ],
        assumptions: "the delay is the same both ways, and constant; the rate too",
        both: &[("delay", "22ms")],
        up: &[("rate", "18.93mbit")],
        down: &[("rate", "203.04mbit")],
    },
    Preset {
        name: "adsl",
        summary: "an interleaved ADSL line at its full rate: 8 Mbit/s down, 1 up, in ATM cells, \
                  50 ms there and back",
        sources: &[
            "ITU-T G.992.1: up to 8 Mbit/s down and 1 up, in ATM mode",
            "RFC 2516 and RFC 2684: PPPoE in AAL5",
            WEBPAGETEST,
        ],
        assumptions: "the delay is that of WebPageTest's DSL, half of it each way",
        both: &[("framing", "atm:over=pppoe-llc"), ("delay", "25ms")],
        up: &[("rate", "1mbit")],
        down: &[("rate", "8mbit")],
    },
    Preset {
        name: "vdsl",
        summary: "a VDSL2 line to a cabinet nearby: 80 Mbit/s down, 20 up, in 64/65 coding, with \
                  PPPoE",
        sources: &[
            "ITU-T G.993.2; the British fibre-to-the-cabinet product of 80 and 20 Mbit/s",
            "IEEE 802.3, clause 61.3: 64 of 65 bytes are payload, so 78.77 and 19.69 Mbit/s are left",
            "tc-cake(8), pppoe-ptm: 30 bytes around each packet, 16 more than an Ethernet header",
        ],
        assumptions: "10 ms there and back, half of it each way: a line without interleaving",
        both: &[("framing", "bytes:overhead=16"), ("delay", "5ms")],
        up: &[("rate", "19692307bit")],
        down: &[("rate", "78769230bit")],
    },
    Preset {
        name: "cable",
        summary: "a DOCSIS 3.1 modem: 243 Mbit/s down, 12 up, 10 ms there and back, with DOCSIS-PIE \
                  on the way up",
        sources: &[
            "Ookla, second quarter of 2023: a median of 243.02 Mbit/s for Spectrum, a cable operator",
            "White, Sundaresan and Briscoe, Low Latency DOCSIS: Technology Overview (CableLabs, \
             2019): around 10 ms",
            "RFC 8034: the modem's own PIE, with a target of 10 ms",
        ],
        assumptions: "12 Mbit/s up; 6 ms of the 10 are the way up, where a modem waits for its \
                      grant and they vary from 3 to 9",
        both: &[("framing", "docsis")],
        up: &[
            ("rate", "12mbit"),
            ("queue", "pie:target=10ms"),
            ("delay", "uniform:min=3ms,max=9ms"),
        ],
        down: &[("rate", "243.02mbit"), ("delay", "4ms")],
    },
    Preset {
        name: "fiber",
        summary: "fibre to the home on a passive optical network: 1 Gbit/s both ways, 3 ms there \
                  and back",
        sources: &["ITU-T G.987.1, clause 7.2: a mean signal transfer delay of 1.5 ms at the most"],
        assumptions: "a service of 1 Gbit/s both ways, the delay as long as it may be",
        both: &[
            ("rate", "1gbit"),
            ("framing", "ethernet"),
            ("delay", "1.5ms"),
        ],
        up: &[],
        down: &[],
    },
    Preset {
        name: "wifi",
        summary: "802.11ac on a shared channel of 80 MHz: 585 Mbit/s on the air in aggregates, 3 ms \
                  there and back in the median",
        sources: &[
            "IEEE 802.11-2020, clause 21.5: VHT-MCS 7, two streams, 80 MHz, guard interval of 800 ns",
            "Sui et al., MobiSys 2016: a median latency of 3 ms on the Wi-Fi hop, and a tail of 20 \
             ms at 90 %",
        ],
        assumptions: "an exponential wait of 1.5 ms for other stations, which meets the median but \
                      not the tail; the two directions do not wait for each other; what is lost is \
                      sent again by the radio",
        both: &[
            ("rate", "wifi:rate=585mbit,bytes=1048575b,contention=1.5ms"),
            ("framing", "wifi"),
        ],
        up: &[],
        down: &[],
    },
    Preset {
        name: "geo-satellite",
        summary: "a geostationary satellite: 20 Mbit/s down, 2.4 up, 600 ms there and back",
        sources: &[
            "Ookla, second quarter of 2021: medians of HughesNet, 19.73 and 2.43 Mbit/s",
            "RFC 2488: 239.6 to 279.0 ms from ground to ground",
            "Huston, Testing LEO and GEO satellite services (APNIC, 2022): generally around 600 ms",
        ],
        assumptions: "the delay is the same both ways, and constant; no proxy splits TCP",
        both: &[("delay", "300ms")],
        up: &[("rate", "2.43mbit")],
        down: &[("rate", "19.73mbit")],
    },
    Preset {
        name: "starlink",
        summary: "Starlink: 97 Mbit/s down, 14 up, 40 to 60 ms there and back, another every 15 s",
        sources: &[
            "Ookla, second quarter of 2021: medians of 97.23 and 13.89 Mbit/s in the United States",
            "Michel et al., IMC 2022 (APNIC blog, 28 November 2022): a median of 50 ms, quartiles \
             of 40 and 60",
            "Mohan et al., arXiv:2310.09242 (2023): links are configured anew every 15 s",
        ],
        assumptions: "the quartiles follow one another in a minute, half of each way; nothing is \
                      lost when links change",
        both: &[(
            "delay",
            "steps:at=0s/20ms;15s/25ms;30s/30ms;45s/25ms,end=loop",
        )],
        up: &[("rate", "13.89mbit")],
        down: &[("rate", "97.23mbit")],
    },
    Preset {
        name: "datacenter",
        summary: "a switch port in a data centre: 10 Gbit/s, 100 us there and back, congestion \
                  marked from 65 packets on",
        sources: &[
            "Alizadeh et al., Data Center TCP, SIGCOMM 2010: marking from 65 packets on at 10 \
             Gbit/s, shallow buffers, round trips of less than 250 us",
            "RFC 8257: marking by the queue of the moment, which is RED with a weight of 1",
        ],
        assumptions: "100 us there and back, half of it each way; a buffer of 131 packets for the \
                      port, up to which marking is all that happens",
        both: &[
            ("rate", "10gbit"),
            ("framing", "ethernet"),
            (
                "queue",
                "red:limit=131p,min=65p,max=66p,maxp=100%,weight=1,gentle=true,ecn=true",
            ),
            ("delay", "50us"),
        ],
        up: &[],
        down: &[],
    },
];
