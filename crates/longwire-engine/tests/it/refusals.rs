//! Rejected model specifications and their error messages.

use longwire_engine::models;
use longwire_testbed::support::rows;

use crate::common::refusal;

/// Checks a table of options, values and error messages; `…` marks a part of the message.
fn assert_refused(table: &str) {
    for [option, text, message] in rows(table) {
        let refused = refusal(option, text);
        match message.strip_prefix('…') {
            Some(part) => assert!(refused.contains(part), "{option}={text}: {refused}"),
            None => assert_eq!(refused, format!("{option}: {message}"), "{option}={text}"),
        }
    }
}

#[test]
fn unknown_models_and_parameters_are_refused() {
    let names = models::DELAY.entries.iter().map(|entry| entry.info.name);
    let names = names.collect::<Vec<_>>().join(", ");
    assert!(names.starts_with("constant, uniform, "), "{names}");
    let known = format!("known: {names}; or a plain value such as 20ms");
    for (text, name) in [
        ("gauss:mean=20ms", "gauss"),
        ("fast", "fast"),
        ("Constant", "Constant"),
        ("derived", "derived"),
        ("delay=20ms", "delay=20ms"),
        ("20ms:5ms", "20ms"),
        (":20ms", ""),
    ] {
        let message = format!("delay: unknown delay model '{name}'; {known}");
        assert_eq!(refusal("delay", text), message, "{text}");
    }
    assert_refused(
        "
        delay   | uniform:mean=20ms | uniform has no parameter 'mean'; it takes min, max, correlation
        order   | reorder:often | reorder has no parameter 'often'; it takes no parameters
        framing | 24    | unknown framing model '24'; known: none, ethernet, atm, docsis, wireguard, wifi, bytes; or a plain value such as ethernet
        framing | sonet | unknown framing model 'sonet'; known: none, ethernet, atm, docsis, wireguard, wifi, bytes; or a plain value such as ethernet
        order   | random | unknown order model 'random'; known: in-order, reorder; or a plain value such as in-order
        router  | switch | unknown router model 'switch'; known: hop; or a plain value such as hop
        ",
    );
}

#[test]
fn missing_repeated_and_empty_values_are_refused() {
    assert_refused(
        "
        delay |                           | no value; write 20ms
        queue |                           | no value; write 100p
        delay | uniform                   | uniform: 'min' is required; for example: min=20ms
        delay | uniform:10ms              | uniform: 'max' is required; for example: max=20ms
        delay | uniform:min=,max=2ms      | uniform: 'min' has no value; for example: min=20ms
        delay | uniform:min=1ms,min=2ms   | uniform: 'min' is given twice
        delay | 1ms,2ms                   | constant: 'delay' is given twice
        delay | uniform:min=2ms,max=1ms   | uniform: min=2ms is above max=1ms
        delay | exponential:1ms,2ms       | exponential: min=2ms is above mean=1ms
        loss  | gilbert:p=1%              | gilbert: 'r' is required; for example: r=1%
        rate  | slots:packets=5p          | …'wait' is required
        delay | 20ms,                     | …a stray comma
        delay | normal:mean=20ms,stddev=1ms,  | …normal: 'mean=20ms,stddev=1ms,' has a stray comma
        delay | normal:mean=20ms,,stddev=1ms  | …a stray comma
        delay | normal:,                      | …a stray comma
        ",
    );
}

/// Errors for plain values name only the unit; for named values, also the parameter. Queue limits
/// are in packets or bytes: errors for other units name both, and out-of-range values have their
/// own error.
#[test]
fn values_are_refused_with_their_unit() {
    assert_refused(
        "
        delay   | 20                     | '20' has no unit: 20ms or 20s
        delay   | 10minutes              | '10minutes': unknown unit 'minutes'; times are in ns, us, ms, s, min or h
        delay   | -5ms                   | '-5ms' is negative; the minimum is 0
        delay   | -1ms                   | '-1ms' is negative; the minimum is 0
        delay   | uniform:min=5,max=20ms | uniform: min: '5' has no unit: 5ms or 5s
        delay   | uniform:5,20ms         | '5' has no unit: 5ms or 5%
        delay   | uniform:0.5,20ms       | '0.5' has no unit: 0.5ms or 50% (a share of 0.5) or 0.5%
        delay   | uniform:5ms,late       | uniform: no parameter takes 'late'; for example: max=20ms or correlation=25%
        rate    | 10                     | '10' has no unit: 10mbit or 10kbit
        rate    | 0bit                   | '0bit' is zero; write 'unlimited' for a link without a rate
        loss    | 1                      | '1' has no unit: 1%
        loss    | 2                      | '2' has no unit: 2%
        loss    | 0.01                   | '0.01' has no unit: 1% (a share of 0.01) or 0.01%
        loss    | 1%,at=exit             | packet: at: 'exit' is not one of medium, entry
        corrupt | 2                      | '2' has no unit: 2%
        mtu     | 1500b                  | '1500b' is not a number; for example: 1000
        queue   | 100                    | '100' has no unit: 100p or 100kb
        queue   | 64tb                   | tail-drop: no parameter takes '64tb'; for example: packets=100p or bytes=64kb
        queue   | 1.5p                   | '1.5p' is finer than the resolution of 1p
        queue   | 2000gb                 | '2000gb' is too large; the maximum is 1024gb
        queue   | tail-drop              | tail-drop: no limit; give packets, bytes or both; for example: 100p or 64kb
        queue   | 0p                     | tail-drop: a queue of 0 passes no frames; the minimum is 1p
        ",
    );
}

#[test]
fn values_out_of_range_are_refused() {
    assert_refused(
        "
        mtu       | 0                                 | '0' is outside 68..65535 bytes after the Ethernet header; write 'none' for no limit
        mtu       | 67                                | '67' is outside 68..65535 bytes after the Ethernet header; write 'none' for no limit
        mtu       | 65536                             | '65536' is outside 68..65535 bytes after the Ethernet header; write 'none' for no limit
        mtu       | 18446744073709551615              | '18446744073709551615' is outside 68..65535 bytes after the Ethernet header; write 'none' for no limit
        framing   | bytes:cell=0                      | bytes: cell: '0' is outside 1..65535
        framing   | bytes:overhead=-5000              | bytes: overhead: '-5000' is outside -64..65535; -14 counts IP packets
        framing   | bytes:overhead=-65                | bytes: overhead: '-65' is outside -64..65535; -14 counts IP packets
        framing   | bytes:overhead=65536              | bytes: overhead: '65536' is outside -64..65535; -14 counts IP packets
        framing   | wireguard:mtu=0                   | wireguard: mtu: '0' is outside 68..65535
        framing   | wireguard:mtu=67                  | wireguard: mtu: '67' is outside 68..65535
        framing   | wireguard:mtu=65536               | wireguard: mtu: '65536' is outside 68..65535
        corrupt   | random:1%,bits=0                  | random: bits: '0' is outside 1 to 524280, the bits of the longest frame
        corrupt   | offset:offset=65535               | offset: offset: '65535' is outside 0 to 65534, the last byte of the longest frame
        corrupt   | ber:0.6                           | ber: rate: '0.6' is outside 0 to 0.5
        duplicate | nth:every=0                       | nth: every=0 duplicates no frame; the minimum is 1
        duplicate | nth:every=1,copies=101            | nth: copies: '101' is outside 1 to 100
        reorder   | gap:0                             | gap: gap=0; the minimum is 1
        loss      | packet:1%,run-max=0               | packet: run-max=0 drops no frame; the minimum is 1
        loss      | nth:every=0                       | nth: every=0 drops no frame; the minimum is 1
        loss      | burst:start=1%,length=0           | burst: length: '0' is outside 1 to 1000000 frames
        delay     | pareto:scale=10ms,shape=0         | pareto: shape: '0' is outside 0.1 to 1000
        delay     | weibull:scale=0ns,shape=1         | weibull: scale=0 allows no variation; the minimum is 1ns
        delay     | sinusoid:mean=1ms,amplitude=1ms,period=1s,phase=400 | sinusoid: phase: '400' is outside -360 to 360 degrees
        router    | hop:limit=2000000                 | hop: limit: '2000000' is outside 0 to 1000000 errors/s
        router    | hop:address=10.0.0                | hop: address: '10.0.0' is not a unicast address; write one such as 10.0.0.1
        router    | hop:address=224.0.0.1             | hop: address: '224.0.0.1' is not a unicast address; write one such as 10.0.0.1
        router    | hop:address6=10.0.0.1             | hop: address6: '10.0.0.1' is not a unicast address; write one such as fd00::1
        router    | hop:address6=::                   | hop: address6: '::' is not a unicast address; write one such as fd00::1
        queue     | 1b                                | …a queue of 1b holds no frame; Ethernet frames are 60b
        queue     | tail-drop:packets=10p,bytes=59b   | …holds no frame
        queue     | codel:limit-bytes=1b              | …holds no frame
        rate      | slots:wait=0s                     | …wait=0s is zero
        rate      | slots:wait=0s..0s                 | …wait=0s..0s is zero
        rate      | slots:wait=10ms,packets=0p        | …a slot of 0 passes no frames
        rate      | slots:wait=10ms,bytes=0b          | …a slot of 0 passes no frames
        ",
    );
}

#[test]
fn inconsistent_values_are_refused() {
    assert_refused(
        "
        delay   | normal:mean=20ms,stddev=1ms,min=30ms | normal: only 7.6e-24 of the distribution is between min=30ms and max=86400s; the minimum is 1e-6
        delay   | normal:mean=20ms,stddev=1ms,min=5ms,max=4ms | normal: min=5ms is above max=4ms
        delay   | gamma:mean=20ms,stddev=300ms | gamma: stddev must be 0, or mean/100 to 10*mean; below that, use normal (equal within 1 %)
        delay   | normal:mean=20ms,stddev=1ms,correlation=100% | normal: correlation must be above -100% and below 100%; at the limits, one delay would determine all others
        delay   | exponential:mean=20ms,correlation=-90% | exponential: correlation=-90% is impossible with this distribution; the minimum is -64.49%
        delay   | sinusoid:mean=1ms,amplitude=2ms,period=1s | sinusoid: amplitude=2ms is above mean=1ms; delays cannot be negative
        delay   | sinusoid:mean=1ms,amplitude=1ms,period=0 | sinusoid: period=0; the minimum is 1ns
        loss    | correlated:rate=1%,correlation=100% | …it must be below 100%
        reorder | gap:gap=5,rate=50%,correlation=100% | …it must be below 100%
        loss    | correlated:rate=1%,correlation=-2% | correlated: correlation=-2% is impossible at rate=1%; the minimum is -1.0101%
        reorder | gap:gap=2,rate=1%,correlation=-5% | gap: correlation=-5% is impossible at rate=1%; the minimum is -1.0101%
        loss    | state:p13=60%,p31=1%,p14=50% | state: p13=60% plus p14=50% is above 100%
        loss    | state:p13=1%,p31=60%,p32=41% | state: p31=60% plus p32=41% is above 100%
        rate    | slots:wait=20ms..10ms | …min=20ms is above max=10ms
        rate    | slots:wait=sinusoid:mean=5ms | …is not a distribution
        rate    | slots:wait=10 | …'10' has no unit: 10ms or 10s
        rate    | slots:wait=norm:mean=5ms | …unknown delay model 'norm'
        rate    | markov:rates=1mbit;2mbit;3mbit,times=1s;1s;1s,matrix=0/1/0;1/0/0;1/0/0 | …state 3 is unreachable from state 1
        rate    | markov:rates=1mbit;2mbit;3mbit,times=1s;1s;1s,matrix=1/0/0;1/0/0;0/1/0 | …state 1 has no successor
        rate    | markov:rates=1mbit;2mbit;3mbit,times=1s;1s;1s,matrix=0/1;1/0 | …3 rows of 3
        rate    | markov:rates=1mbit;2mbit;3mbit,times=1s;1s;1s,matrix=0/1/-1;1/0/1;1/1/0 | …negative
        rate    | markov:rates=1mbit;2mbit,times=1s | …give as many times as rates
        rate    | markov:rates=1mbit;2mbit,times=1s;999ns | …below 1us
        rate    | two-state:good=0,bad=0,good-time=1s,bad-time=1s | …no frame would pass
        ",
    );
}

#[test]
fn faults_of_lists_name_the_item() {
    assert_refused(
        "
        delay | steps:at=10s/5ms              | steps: at: '10s/5ms': the first time must be 0s
        delay | steps:at=0s/5ms;1s            | steps: at: '1s': expected TIME/DELAY; for example: 10s/50ms
        delay | steps:at=0s/5ms;9s/1ms;8s/2ms | steps: at: '8s/2ms': time is before the previous step's; sort the steps
        delay | steps:at=0s/5ms;1s/5          | steps: at: '1s/5': '5' has no unit: 5ms or 5s
        delay | steps:at=0s/5ms,end=stop      | steps: end=stop needs at least two steps; a single step has no end
        delay | steps:at=0s/20ms;10s/50ms;10s/60ms | …'10s/60ms': same time as the previous step
        delay | steps:at=0s/20ms;10s/50ms;10s/60ms,change=linear | …same time
        rate  | steps:at=0s/20mbit;10s/50mbit;10s/60mbit | …is not after the previous step
        rate  | steps:at=0s/20mbit;           | …'' is not TIME/RATE
        loss  | list:packets=0                | list: packets: the first frame is number 1
        loss  | list:packets=3;x              | list: packets: 'x' is not a number or a range such as 9-12
        loss  | list:packets=3;               | list: packets: '' is not a number or a range such as 9-12
        loss  | list:packets=9-7              | list: packets: range '9-7' is reversed; write the lower number first
        loss  | list:packets=1-2-3            | list: packets: '1-2-3' is not a number or a range such as 9-12
        loss  | outage:period=1s,duration=2s  | outage: duration=2s is above period=1s; shorten it
        loss  | outage:period=0,duration=0    | outage: period=0; the minimum is 1ns
        loss  | outages:schedule=5s           | outages: schedule: '5s' is not START/DURATION; for example: 10s/500ms
        loss  | outages:schedule=5s/2s;6s/1s  | outages: schedule: '6s/1s' overlaps the previous outage
        loss  | outages:schedule=5s/2         | outages: schedule: '5s/2': '2' has no unit: 2ms or 2s
        loss  | outages:schedule=5s/2s,repeat=6s | outages: repeat=6s is before the end of the last outage, at 7s
        ",
    );
}
