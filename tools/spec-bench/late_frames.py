"""Effect of late frames on results: TCP and ping over a link whose emulator stalls.

Stalls of a fixed length hit the output at random times. Every frame whose release falls into a
stall leaves at its end, as when another program takes the core. For each fraction of frames late
by more than 1 ms, the script prints how much throughput and RTTs differ from those of the same
link without stalls. Times are virtual. Decision 0055 has the output.
"""

import bisect
import heapq
import random
import statistics

MSS, HEADER = 1448, 66
TOLERANCE = 1e-3


class Stalls:
    """Stalls of an output: a Poisson process of intervals with the same length."""

    def __init__(self, rng: random.Random, length: float, busy: float, until: float) -> None:
        self.length, self.starts = length, []
        at = 0.0
        while busy > 0 and at < until:
            at += rng.expovariate(busy / length)
            self.starts.append(at)
        self.late, self.added = 0, []

    def leave(self, release: float) -> float:
        """Returns the time at which a frame with this release time leaves."""
        index = bisect.bisect_right(self.starts, release) - 1
        end = self.starts[index] + self.length if index >= 0 else 0.0
        leaves = max(release, end)
        self.late += leaves - release > TOLERANCE
        self.added.append(leaves - release)
        return leaves


def tcp(rate, delay, queue, window, loss, stalls, seconds, seed):
    """Returns the goodput of a Reno flow in bit/s; each packet is acknowledged."""
    rng = random.Random(seed)
    forward, back = stalls
    events, order = [], 0
    cwnd, ssthresh, flying = 10.0, float("inf"), 0
    sent, delivered, recovery, free = 0, 0, -1, 0.0
    now = 0.0

    def send():
        nonlocal flying, sent, free, order
        while flying < min(cwnd, window):
            flying += 1
            wait = max(free - now, 0.0)
            lost = wait * rate / 8 > queue or rng.random() < loss
            if wait * rate / 8 <= queue:
                free = max(free, now) + (MSS + HEADER) * 8 / rate
            arrives = forward.leave(max(free, now) + delay)
            heapq.heappush(events, (back.leave(arrives + delay), order, sent, lost))
            order, sent = order + 1, sent + 1

    send()
    while events and now < seconds:
        now, _, number, lost = heapq.heappop(events)
        flying -= 1
        if lost:
            if number > recovery:
                ssthresh = max(cwnd / 2, 2.0)
                cwnd, recovery = ssthresh, sent - 1
        else:
            delivered += 1
            cwnd += 1.0 if cwnd < ssthresh else 1.0 / cwnd
        send()
    return delivered * MSS * 8 / now


def ping(delay, stalls, seconds, interval=0.01):
    """Returns RTTs in seconds over a link with a jitter of 5 % of its delay."""
    rng = random.Random(1)
    forward, back = stalls
    trips = []
    for number in range(int(seconds / interval)):
        at = number * interval
        there = forward.leave(at + delay * rng.uniform(1, 1.05))
        trips.append(back.leave(there + delay * rng.uniform(1, 1.05)) - at)
    return sorted(trips)


def change(value, base):
    return (value / base - 1) * 100


def main() -> None:
    seconds, delay = 60.0, 10e-3
    flows = {
        "window-limited": dict(rate=1e9, queue=1e9, window=64, loss=0.0),
        "loss-limited": dict(rate=1e9, queue=1e9, window=1e9, loss=1e-3),
        "rate-limited": dict(rate=20e6, queue=50_000, window=1e9, loss=0.0),
    }

    def both(length, busy):
        return [Stalls(random.Random(seed), length, busy, seconds + 1) for seed in (7, 8)]

    def throughput(length, busy, flow):
        seeds = range(3)
        runs = [tcp(delay=delay, stalls=both(length, busy), seconds=seconds, seed=s, **flow) for s in seeds]
        return statistics.mean(runs)

    base = {name: throughput(1e-3, 0.0, flow) for name, flow in flows.items()}
    quiet = ping(delay, both(1e-3, 0.0), seconds * 10)

    def quantile(sorted_values, q):
        return sorted_values[int(q * (len(sorted_values) - 1))]

    print("stall ms | late % | mean us | p99 us | p50 % | p95 % | " + " % | ".join(flows) + " %")
    for length in (2e-3, 5e-3, 20e-3):
        for share in (0.001, 0.004, 0.01, 0.02, 0.05, 0.1):
            busy = share * length / max(length - TOLERANCE, 1e-9)
            stalls = [Stalls(random.Random(s), length, busy, seconds * 10 + 1) for s in (7, 8)]
            trips = ping(delay, stalls, seconds * 10)
            added = sorted(stalls[0].added)
            row = [
                f"{length * 1e3:.0f}",
                f"{stalls[0].late / len(added) * 100:.2f}",
                f"{statistics.mean(added) * 1e6:.0f}",
                f"{quantile(added, 0.99) * 1e6:.0f}",
                f"{change(quantile(trips, 0.5), quantile(quiet, 0.5)):+.1f}",
                f"{change(quantile(trips, 0.95), quantile(quiet, 0.95)):+.1f}",
            ]
            for name, flow in flows.items():
                row.append(f"{change(throughput(length, busy, flow), base[name]):+.1f}")
            print(" | ".join(row), flush=True)


if __name__ == "__main__":
    main()
