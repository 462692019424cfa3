"""Parts of a hand-made evaluation: traffic, reuse and tiers. Hit counts are those of a real trace."""

import itertools
import math

from warmset.evaluation import (
    ByBaseline,
    ByteLine,
    CurvePoint,
    LengthQuantiles,
    ReuseSummary,
    TierBoundary,
    TierBudget,
    TierTraffic,
    TrafficKind,
    TrafficSummary,
    WorkingSet,
)
from warmset.facts import Estimate, Fact, exact

BLOCK_TOKENS = 512
GROWTH = 192_512
BLOCK = GROWTH * BLOCK_TOKENS
INPUT_TOKENS = 144_793_823
# Tokens hit by capacity in blocks, from the shared ground truth (LRU, tails first).
HITS = {
    1000: 0.045413,
    3000: 0.066611,
    5859: 0.13873,
    10000: 0.215748,
    30000: 0.332153,
    50000: 0.36153,
    97656: 0.370653,
    300000: 0.373624,
}


def about(mid, unit, spread=0.2):
    return Estimate(mid=mid, low=mid * (1 - spread), high=mid * (1 + spread), unit=unit)


def by(none, engine, tiered, unit, spread=0.2):
    return ByBaseline(
        none=about(none, unit, spread), engine=about(engine, unit, spread), tiered=about(tiered, unit, spread)
    )


def counted(none, engine, tiered, unit):
    return ByBaseline(none=exact(none, unit), engine=exact(engine, unit), tiered=exact(tiered, unit))


def fact(value, unit, origin="published", **more):
    return Fact(
        value=value, unit=unit, origin=origin, source="press on channel prices", date="2026-01", **more
    )


def hit_at(blocks):
    """The curve between its known points, straight over the logarithm of the capacity."""
    known = list(HITS.items())
    if blocks <= known[0][0]:
        return known[0][1] * blocks / known[0][0]
    for (low, low_hit), (high, high_hit) in itertools.pairwise(known):
        if blocks <= high:
            share = math.log(blocks / low) / math.log(high / low)
            return low_hit + share * (high_hit - low_hit)
    return known[-1][1]


def curve():
    capacities = sorted({*HITS, *(round(100 * 1.15**step) for step in range(58))})
    return tuple(
        CurvePoint(
            capacity_blocks=blocks,
            capacity_bytes=blocks * BLOCK,
            hit_tokens=round(hit_at(blocks) * INPUT_TOKENS),
            token_hit_ratio=hit_at(blocks),
        )
        for blocks in capacities
    )


def boundary(tier, blocks):
    return TierBoundary(
        tier=tier, capacity_blocks=blocks, capacity_bytes=blocks * BLOCK, token_hit_ratio=hit_at(blocks)
    )


def working_set(window_s, mean, largest, fits=True):
    return WorkingSet(
        window_s=window_s,
        mean_blocks=mean,
        max_blocks=largest,
        mean_bytes=mean * BLOCK,
        max_bytes=largest * BLOCK,
        window_fits_trace=fits,
    )


def reuse():
    return ReuseSummary(
        unlimited_hit_tokens=54_098_403,
        unlimited_token_hit_ratio=0.373624,
        points=curve(),
        boundaries=(boundary("hbm", 9_600), boundary("dram", 37_800), boundary("nvme", 610_000)),
        rise_start_blocks=3_400,
        plateau_start_blocks=46_000,
        working_sets=(
            working_set(60, 4_588, 5_885),
            working_set(600, 35_453, 36_620),
            working_set(3600, 182_790, 182_790, fits=False),
        ),
    )


def kind(name, requests, tokens, engine, tiered, ttft):
    return TrafficKind(
        kind=name,
        num_requests=requests,
        input_tokens=tokens,
        hit_tokens={"none": 0, "engine": engine, "tiered": tiered},
        ttft_p50_s=by(*(0.4 * value for value in ttft), "s"),
        ttft_p95_s=by(*ttft, "s"),
    )


def traffic(name="mooncake-conversation"):
    return TrafficSummary(
        name=name,
        source="kvcache-ai/Mooncake, FAST25-release",
        licence="Apache-2.0",
        citation="Qin et al., “Mooncake: Trading More Storage for Less Computation”, FAST'25",
        block_tokens=BLOCK_TOKENS,
        num_requests=12_031,
        span_s=3_537.0,
        requests_per_s=3.4015,
        clock_step_ms=3000,
        block_refs=288_500,
        unique_blocks=182_790,
        input_tokens=INPUT_TOKENS,
        output_tokens=4_122_048,
        input_lengths=LengthQuantiles(mean=12_035.06, p50=6_909, p90=27_367, p99=85_400, longest=126_195),
        output_lengths=LengthQuantiles(mean=342.6, p50=350, p90=597, p99=1_119, longest=2_000),
        kinds=(
            kind("first", 7_376, 78_102_400, 0, 3_776_512, (9.8, 7.6, 5.1)),
            kind("multi_turn", 3_975, 58_210_304, 25_231_360, 47_802_368, (10.9, 6.1, 2.2)),
            kind("shared_prefix", 618, 8_064_512, 1_712_128, 2_104_832, (10.2, 7.0, 4.4)),
            kind("repeated", 62, 416_607, 102_400, 401_408, (8.1, 3.0, 0.7)),
            kind("beyond_32k", 961, 52_008_960, 9_502_720, 21_303_296, (22.4, 17.9, 11.8)),
        ),
    )


def budgets():
    reserve = fact(0.92, "ratio", "vendor", low=0.90, high=0.95)
    hbm = TierBudget(
        tier="hbm",
        lines=(
            ByteLine(key="hbm_total", size_bytes=1_199_500_000_000, fact=fact(1.1995e12, "bytes", "assumed")),
            ByteLine(key="utilization_reserve", size_bytes=-95_960_000_000, fact=reserve),
            ByteLine(key="weights", size_bytes=-236_600_000_000),
            ByteLine(
                key="activation_reserve",
                size_bytes=-34_359_738_368,
                fact=fact(4294967296, "bytes", "assumed"),
            ),
            ByteLine(key="block_rounding", size_bytes=-7_320_000_000),
        ),
        usable_bytes=825_260_261_632,
        bytes_per_block=2 * BLOCK,
        usable_blocks=4_186,
        inclusive=False,
    )
    dram = lower("dram", 2**40, 9_450)
    return (hbm, dram, lower("nvme", 14_000_000_000_000, 152_500))


def lower(tier, total, blocks):
    watermark = fact(0.72, "ratio", "assumed", low=0.64, high=0.80)
    return TierBudget(
        tier=tier,
        lines=(
            ByteLine(key="tier_total", size_bytes=total, fact=fact(total, "bytes", "given")),
            ByteLine(key="watermark_reserve", size_bytes=-round(total * 0.28), fact=watermark),
            ByteLine(key="metadata", size_bytes=-21_474_836, fact=fact(1024, "bytes", "vendor")),
            ByteLine(key="chunk_tail", size_bytes=-2_380_000_000),
            ByteLine(key="alignment", size_bytes=-1_048_576),
            ByteLine(key="staging", size_bytes=-8_589_934_592),
        ),
        usable_bytes=blocks * BLOCK,
        bytes_per_block=BLOCK,
        usable_blocks=blocks,
        inclusive=True,
    )


def tier_traffic():
    def row(tier, engine, tiered, loaded, written):
        return TierTraffic(
            tier=tier,
            hit_tokens={"none": 0, "engine": engine, "tiered": tiered},
            loaded_bytes={"none": 0, "engine": 0, "tiered": loaded},
            written_bytes={"none": 0, "engine": 0, "tiered": written},
        )

    return (
        row("hbm", 30_263_000, 30_263_000, 0, 0),
        row("dram", 0, 20_010_000, 3_852_165_120_000, 17_449_000_000_000),
        row("nvme", 0, 3_811_000, 733_663_232_000, 17_449_000_000_000),
    )
