//! The table of presets.

use super::Preset;

/// Source of WebPageTest's profiles, which many tools have adopted.
const WEBPAGETEST: &str =
    "WebPageTest, connectivity profiles (www/settings/connectivity.ini.sample)";

/// A measurement campaign with fixed nodes in Norway and Sweden: rates and round-trip times by
/// operator, technology and signal.
const ERRANT: &str = "ERRANT (Trevisan et al., Computer Networks 176, 2020), profiles.csv";

/// All presets, grouped by technology.
pub static PRESETS: [Preset; 13] = [
    Preset {
        name: "dialup",
        summary: "V.90 modem: 49 kbit/s down, 30 up, 120 ms round trip",
        sources: &[
            WEBPAGETEST,
            "Cheshire, It's the Latency, Stupid (1996): 110 to 159 ms through a modem",
            "PPP in HDLC-like framing, RFC 1662: 8 bytes around each packet",
        ],
        assumptions: "equal delay in both directions; no shared flags and escapes, no compression",
        both: "framing=bytes:overhead=-6 delay=60ms",
        up: "rate=30kbit",
        down: "rate=49kbit",
    },
    Preset {
        name: "edge",
        summary: "EDGE phone (2.75G): 240 kbit/s down, 200 up, 840 ms round trip",
        sources: &[WEBPAGETEST],
        assumptions: "equal, constant delay in both directions",
        both: "delay=420ms",
        up: "rate=200kbit",
        down: "rate=240kbit",
    },
    Preset {
        name: "3g",
        summary: "HSPA phone at medium signal: 3.3 Mbit/s down, 1.5 up, 107 ms round trip",
        sources: &[ERRANT, "profiles.csv, row telia, norway, 3G, medium"],
        assumptions: "equal, constant delay in both directions; constant rate",
        both: "delay=53.3ms",
        up: "rate=1457kbit",
        down: "rate=3266kbit",
    },
    Preset {
        name: "lte",
        summary: "LTE phone at medium signal: 24 Mbit/s down, 4 up, 86 ms round trip",
        sources: &[ERRANT, "profiles.csv, row telenor, norway, 4G, medium"],
        assumptions: "equal, constant delay in both directions; constant rate",
        both: "delay=43.2ms",
        up: "rate=3955kbit",
        down: "rate=23928kbit",
    },
    Preset {
        name: "5g",
        summary: "5G phone, global median: 203 Mbit/s down, 19 up, 44 ms round trip",
        sources: &[
            "Ookla, The State of Worldwide Connectivity in 2023: medians of the third quarter, \
             203.04 and 18.93 Mbit/s and 44 ms to several servers",
        ],
        assumptions: "equal, constant delay in both directions; constant rate",
        both: "delay=22ms",
        up: "rate=18.93mbit",
        down: "rate=203.04mbit",
    },
    Preset {
        name: "adsl",
        summary: "interleaved ADSL line at full rate: 8 Mbit/s down, 1 up, ATM cells, 50 ms round \
                  trip",
        sources: &[
            "ITU-T G.992.1: up to 8 Mbit/s down and 1 up, in ATM mode",
            "RFC 2516 and RFC 2684: PPPoE in AAL5",
            WEBPAGETEST,
        ],
        assumptions: "WebPageTest's DSL delay, half in each direction",
        both: "framing=atm:over=pppoe-llc delay=25ms",
        up: "rate=1mbit",
        down: "rate=8mbit",
    },
    Preset {
        name: "vdsl",
        summary: "VDSL2 line to a nearby cabinet: 80 Mbit/s down, 20 up, 64/65 coding, PPPoE",
        sources: &[
            "ITU-T G.993.2; the British 80/20 Mbit/s fibre-to-the-cabinet product",
            "IEEE 802.3, clause 61.3: 64 of 65 bytes are payload, so 78.77 and 19.69 Mbit/s remain",
            "tc-cake(8), pppoe-ptm: 30 bytes around each packet, 16 more than an Ethernet header",
        ],
        assumptions: "10 ms round trip, half in each direction: a line without interleaving",
        both: "framing=bytes:overhead=16 delay=5ms",
        up: "rate=19692307bit",
        down: "rate=78769230bit",
    },
    Preset {
        name: "cable",
        summary: "DOCSIS 3.1 modem: 243 Mbit/s down, 12 up, 10 ms round trip, DOCSIS-PIE upstream",
        sources: &[
            "Ookla, second quarter of 2023: a median of 243.02 Mbit/s for Spectrum, a cable operator",
            "White, Sundaresan and Briscoe, Low Latency DOCSIS: Technology Overview (CableLabs, \
             2019): around 10 ms",
            "RFC 8034: the modem's own PIE, with a target of 10 ms",
        ],
        assumptions: "12 Mbit/s up; 6 of the 10 ms are upstream, where a modem waits 3 to 9 ms \
                      for its grant",
        both: "framing=docsis",
        up: "rate=12mbit queue=pie:target=10ms delay=uniform:min=3ms,max=9ms",
        down: "rate=243.02mbit delay=4ms",
    },
    Preset {
        name: "fiber",
        summary: "fibre to the home (PON): 1 Gbit/s in both directions, 3 ms round trip",
        sources: &["ITU-T G.987.1, clause 7.2: mean signal transfer delay of at most 1.5 ms"],
        assumptions: "1 Gbit/s in both directions, with the maximum delay",
        both: "rate=1gbit framing=ethernet delay=1.5ms",
        up: "",
        down: "",
    },
    Preset {
        name: "wifi",
        summary: "802.11ac on a shared 80 MHz channel: PHY rate 585 Mbit/s, aggregates, median \
                  round trip 3 ms",
        sources: &[
            "IEEE 802.11-2020, clause 21.5: VHT-MCS 7, two streams, 80 MHz, guard interval of 800 ns",
            "Sui et al., MobiSys 2016: a median latency of 3 ms on the Wi-Fi hop, and a tail of 20 \
             ms at 90 %",
        ],
        assumptions: "exponential wait of 1.5 ms for other stations, which fits the median but \
                      not the tail; directions do not contend with each other; the radio \
                      retransmits losses",
        both: "rate=wifi:rate=585mbit,bytes=1048575b,contention=1.5ms framing=wifi",
        up: "",
        down: "",
    },
    Preset {
        name: "geo-satellite",
        summary: "geostationary satellite: 20 Mbit/s down, 2.4 up, 600 ms round trip",
        sources: &[
            "Ookla, second quarter of 2021: medians of HughesNet, 19.73 and 2.43 Mbit/s",
            "RFC 2488: 239.6 to 279.0 ms from ground to ground",
            "Huston, Testing LEO and GEO satellite services (APNIC, 2022): generally around 600 ms",
        ],
        assumptions: "equal, constant delay in both directions; no TCP proxy",
        both: "delay=300ms",
        up: "rate=2.43mbit",
        down: "rate=19.73mbit",
    },
    Preset {
        name: "starlink",
        summary: "Starlink: 97 Mbit/s down, 14 up, 40 to 60 ms round trip, changing every 15 s",
        sources: &[
            "Ookla, second quarter of 2021: medians of 97.23 and 13.89 Mbit/s in the United States",
            "Michel et al., IMC 2022 (APNIC blog, 28 November 2022): a median of 50 ms, quartiles \
             of 40 and 60",
            "Mohan et al., arXiv:2310.09242 (2023): links are reconfigured every 15 s",
        ],
        assumptions: "the round trip cycles through 40, 50, 60 and 50 ms, half in each direction; \
                      no loss at handovers",
        both: "delay=steps:at=0s/20ms;15s/25ms;30s/30ms;45s/25ms,end=loop",
        up: "rate=13.89mbit",
        down: "rate=97.23mbit",
    },
    Preset {
        name: "datacenter",
        summary: "data centre switch port: 10 Gbit/s, 100 us round trip, ECN marking from 65 \
                  packets",
        sources: &[
            "Alizadeh et al., Data Center TCP, SIGCOMM 2010: marking from 65 packets at 10 Gbit/s, \
             shallow buffers, round trips below 250 us",
            "RFC 8257: marking by instantaneous queue length, which is RED with weight 1",
        ],
        assumptions: "100 us round trip, half in each direction; a port buffer of 131 packets; \
                      ECN-capable packets are dropped only when it is full",
        both: "rate=10gbit framing=ethernet queue=red:limit=131p,min=65p,max=66p,maxp=100%,weight=1,gentle=true,ecn=true delay=50us",
        up: "",
        down: "",
    },
];
