//! Options of profiles.

use clap::{Args, ValueEnum};
use longwire_engine::{BitRate, Nanos, PacketRate, Probability};
use longwire_traffic::generator::MACS_MAX;
use longwire_traffic::profile::{Rfc2544Test, Rfc2889Test};

const HEADING: &str = "Profile";

/// A test made of several runs.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = HEADING)]
pub struct ProfileArgs {
    /// Test the device between --to and --receive: rfc2544 measures throughput, latency,
    /// loss and burst length; rfc2889 tests switches; y1564 tests services
    #[arg(long, value_name = "PROFILE", value_enum)]
    pub profile: Option<ProfileKind>,

    /// rfc2544, rfc2889: frame sizes, including the 4-byte frame check sequence
    #[arg(long, value_name = "BYTES", value_delimiter = ',')]
    #[arg(default_value = STANDARD_SIZES)]
    #[arg(value_parser = clap::value_parser!(u32).range(64..65_540))]
    pub frame_sizes: Vec<u32>,

    /// rfc2544: tests to run
    #[arg(long, value_name = "TESTS", value_delimiter = ',', value_enum)]
    #[arg(default_value = "throughput,latency,loss,back-to-back")]
    pub tests: Vec<Test>,

    /// Duration of a trial; RFC 2544 requires 60s, and 120s for latency
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub trial: Nanos,

    /// Resolution of the rate search, as a share of --rate
    #[arg(long, value_name = "SHARE", default_value = "1%")]
    pub resolution: Probability,

    /// Maximum loss of a trial that counts as lossless
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    pub acceptable_loss: Probability,

    /// Minimum share of --rate: rfc2544 fails below this throughput at any frame size,
    /// rfc2889 below this maximum forwarding rate
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    pub min_throughput: Probability,

    /// Repetitions of the burst test; RFC 2544 requires 50
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub bursts: u32,

    /// rfc2889: tests to run
    #[arg(long, value_name = "TESTS", value_delimiter = ',', value_enum)]
    #[arg(default_value = "forwarding,caching,learning")]
    pub switch_tests: Vec<SwitchTest>,

    /// rfc2889: maximum number of MAC addresses to test
    #[arg(long, value_name = "N", default_value_t = 8192)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=MACS_MAX))]
    pub addresses: u64,

    /// rfc2889: rate of learning frames in the caching test, and of frames to learned addresses
    #[arg(long, value_name = "RATE", default_value = "1kpps")]
    pub teaching_rate: PacketRate,

    /// rfc2889: ageing time of the switch; also the wait before each learning trial
    #[arg(long, value_name = "TIME", default_value = "300s")]
    pub aging_time: Nanos,

    /// y1564: service, such as voice:cir=2mbit,eir=1mbit,sizes=214,dscp=46. Repeatable
    #[arg(long = "service", value_name = "SERVICE", long_help = SERVICE_HELP)]
    pub services: Vec<String>,

    /// y1564: committed information rate (CIR); counts frames from destination MAC address to frame
    /// check sequence
    #[arg(long, value_name = "RATE")]
    pub cir: Option<BitRate>,

    /// y1564: excess information rate (EIR), in addition to --cir
    #[arg(long, value_name = "RATE")]
    pub eir: Option<BitRate>,

    /// y1564: duration of the performance test at CIR; Y.1564 specifies 15min, 2h
    /// and 24h
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub performance_time: Nanos,

    /// y1564: maximum loss at CIR
    #[arg(long, value_name = "SHARE", default_value = "0.1%")]
    pub max_loss: Probability,

    /// y1564: maximum one-way delay
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    pub max_delay: Nanos,

    /// y1564: maximum delay variation: 99.9th percentile minus minimum
    #[arg(long, value_name = "TIME", default_value = "10ms")]
    pub max_jitter: Nanos,
}

const SERVICE_HELP: &str = "\
y1564: service, NAME:KEY=VALUE,KEY=VALUE. Repeatable. Services are tested one by one, then
together.

* cir: committed information rate
* eir: excess information rate
* sizes: frame lengths like --sizes, with ; instead of commas between parameters
* max-loss, max-delay, max-jitter: limits; default: the option's value
* vlan, dscp: VLAN tag and DSCP of the frames; vlan=100:5 sets priority 5
* excess-dscp, excess-priority: the same for frames beyond cir, for colour-aware
  networks; they form a separate stream";

/// Frame sizes for Ethernet (RFC 2544, section 9.1).
const STANDARD_SIZES: &str = "64,128,256,512,1024,1280,1518";

/// A test made of several runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProfileKind {
    /// Throughput, latency, loss rate, back-to-back frames (RFC 2544, section
    /// 26)
    Rfc2544,
    /// Forwarding rates, address caching capacity and learning rate (RFC 2889, sections 5.1, 5.2,
    /// 5.7 and 5.8)
    Rfc2889,
    /// Service configuration and performance (ITU-T Y.1564)
    Y1564,
}

/// A test of RFC 2889.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SwitchTest {
    /// Forwarding rates from full load downwards (5.1, 5.2)
    Forwarding,
    /// Address caching capacity (5.7)
    Caching,
    /// Address learning rate (5.8)
    Learning,
}

/// A test of RFC 2544.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Test {
    /// The highest rate without loss (26.1)
    Throughput,
    /// Delay at the throughput rate (26.2)
    Latency,
    /// Loss from full rate downwards (26.3)
    Loss,
    /// The longest burst without loss (26.4)
    BackToBack,
}

impl Test {
    /// Returns the test selected by the option.
    pub(super) fn test(self) -> Rfc2544Test {
        match self {
            Test::Throughput => Rfc2544Test::Throughput,
            Test::Latency => Rfc2544Test::Latency,
            Test::Loss => Rfc2544Test::Loss,
            Test::BackToBack => Rfc2544Test::BackToBack,
        }
    }
}

impl SwitchTest {
    /// Returns the test selected by the option.
    pub(super) fn test(self) -> Rfc2889Test {
        match self {
            SwitchTest::Forwarding => Rfc2889Test::Forwarding,
            SwitchTest::Caching => Rfc2889Test::Caching,
            SwitchTest::Learning => Rfc2889Test::Learning,
        }
    }
}
