"""Frames/s of ``longwire.Link.simulate``, compared with numpy's cumulative sum of the same array.

``python simulate.py [FRAMES]``; needs numpy. Medians of five interleaved rounds.
"""

import statistics
import sys
import time
from typing import Callable

import numpy

import longwire

SPECIFICATIONS = (
    "delay=20ms",
    "rate=600mbit delay=20ms loss=1%",
    "rate=600mbit queue=fq-codel delay=20ms",
)

ROUNDS = 5


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    frames = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000
    # On average, a million frames/s of 64 B, 85 % of the rate.
    gaps = numpy.random.default_rng(1).exponential(1_000, frames)
    times = numpy.cumsum(gaps).astype(numpy.int64)
    works: "dict[str, Callable[[], object]]" = {"numpy.cumsum": lambda: numpy.cumsum(times)}
    for text in SPECIFICATIONS:
        works[text] = lambda link=longwire.Link(text): link.simulate(times, 64)
    found: "dict[str, list[float]]" = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, work in works.items():
            found[name].append(seconds(work))
    print(f"{'':40} million frames/s")
    for name, times_taken in found.items():
        print(f"{name:40} {frames / statistics.median(times_taken) / 1e6:16.1f}")


if __name__ == "__main__":
    main()
