"""Parts of a hand-made evaluation: what the serving model, the plan and the money come to. All invented."""

from tests.support.evaluation_inputs import BLOCK, GROWTH, about, by, counted, fact
from warmset.evaluation import (
    Assumption,
    ByBaseline,
    CapacityPlan,
    ComplexityItem,
    ConcurrencyRow,
    CostLine,
    DedupRow,
    EconomicsSummary,
    LoadPoint,
    MetricRow,
    NamedEstimate,
    OccupancyPoint,
    OverheadRow,
    RecommendedSize,
    SessionCount,
    SessionSize,
    TierWear,
    TtlRow,
)
from warmset.facts import Estimate, exact, unknown


def gains(**values):
    return tuple(NamedEstimate(key=key, value=value) for key, value in values.items())


def metrics():
    every = ("first", "multi_turn", "shared_prefix", "repeated", "beyond_32k")
    hot = ("multi_turn", "shared_prefix", "repeated")

    def row(key, values, gain=(), holds_for=every):
        return MetricRow(key=key, values=values, gain=gain, holds_for=holds_for)

    hits = gains(
        tokens_hit=exact(23_821_000, "tokens"),
        load_seconds=about(0.041, "s"),
        queue_seconds_saved=about(1.4, "s"),
    )
    flops = gains(flops_avoided=exact(9.8e13, "flops"), bytes_written=exact(90_709_000, "bytes"))
    return (
        row("ttft", {"p50": by(3.1, 1.9, 0.92, "s"), "p95": by(10.4, 6.8, 3.2, "s", 0.25)}, hits, hot),
        row("tpot", {"p50": by(0.041, 0.039, 0.036, "s"), "p95": by(0.052, 0.049, 0.044, "s")}),
        row(
            "prefill_flops",
            {
                "mean": counted(6.2e14, 4.9e14, 3.9e14, "flops"),
                "total": counted(7.4e18, 5.9e18, 4.7e18, "flops"),
            },
            flops,
            hot,
        ),
        row(
            "goodput",
            {"rate": by(1.9, 2.8, 3.4, "requests_per_s")},
            gains(gpu_seconds_saved=about(9_310, "s")),
        ),
        row(
            "hbm_per_request",
            {"p50": counted(2.8e9, 2.8e9, 2.8e9, "bytes"), "p99": counted(33.3e9, 33.3e9, 33.3e9, "bytes")},
        ),
        row("max_concurrency", {"mean": counted(173, 173, 173, "requests")}),
        row(
            "sustainable_concurrency",
            {"mean": by(21, 31, 44, "requests")},
            gains(gpu_seconds_saved=about(9_310, "s")),
        ),
        row("active_decodes", {"mean": by(14, 21, 29, "requests")}),
        row(
            "sessions_held",
            {"total": counted(173, 173, 6_390, "sessions")},
            gains(bytes_written=exact(6_217, "bytes")),
            ("multi_turn",),
        ),
        row("throughput", {"mean": by(23_500, 34_600, 42_100, "tokens_per_s")}),
        row("cold_ttft", {"p50": by(3.0, 2.4, 1.7, "s"), "p95": by(9.8, 7.6, 5.1, "s")}, (), ("first",)),
        row("hot_ttft", {"p50": by(3.3, 1.2, 0.31, "s"), "p95": by(10.9, 6.1, 2.2, "s")}, hits, hot),
        row("complexity", {}),
    )


def complexity():
    def item(kind_key, key, detail=""):
        return ComplexityItem(kind=kind_key, key=key, detail=detail)

    base = (
        item("component", "engine"),
        item("component", "metrics_stack"),
        item("port", "engine_api", "8000"),
        item("watch", "hbm_usage"),
        item("failure", "engine_restart_cold"),
    )
    tiered = (
        *(
            item("component", key)
            for key in ("prefix_router", "cache_server", "cache_connector", "nvme_volume")
        ),
        *(
            item("port", key, port)
            for key, port in (("cache_rpc", "5555"), ("cache_admin", "8080"), ("metrics", "9090"))
        ),
        *(
            item("watch", key)
            for key in ("hit_ratio", "tier_usage", "load_latency", "write_backlog", "drive_wear")
        ),
        *(
            item("failure", key)
            for key in ("cache_server_down", "stale_fingerprint", "drive_full_or_failed", "slow_tier")
        ),
    )
    return {"none": base, "engine": base, "tiered": base + tiered}


def concurrency():
    beyond = unknown("concurrency", "beyond_model_context")
    return (
        ConcurrencyRow(key="hbm_bound", values=counted(173, 173, 173, "concurrency")),
        ConcurrencyRow(key="active_on_gpu", values=by(14, 21, 29, "concurrency")),
        ConcurrencyRow(key="total_in_system", values=by(21, 31, 6_421, "concurrency")),
        ConcurrencyRow(key="stable_under_load", values=by(19, 27, 40, "concurrency")),
        ConcurrencyRow(key="at_200k_context", values=ByBaseline(none=beyond, engine=beyond, tiered=beyond)),
    )


def load_curve(limits=(2.1, 3.0, 4.1)):
    names = ("none", "engine", "tiered")
    points = []
    for factor in (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0):
        offered = 3.4015 * factor
        served = dict(zip(names, limits, strict=True))
        use = {name: offered / served[name] for name in names}
        points.append(
            LoadPoint(
                load_factor=factor,
                offered_requests_per_s=offered,
                goodput_requests_per_s={
                    name: offered if use[name] < 0.8 else max(0.0, served[name] * (1.75 - use[name])) * 0.84
                    for name in names
                },
                throughput_tokens_per_s={name: min(offered, served[name]) * 12_377 for name in names},
                ttft_p95_s={name: 1.1 / (1 - use[name]) for name in names if use[name] < 1},
            )
        )
    return tuple(points)


def occupancy():
    ratios = (0.05, 0.10, 0.15, 0.20, 0.25, 0.30, 0.35)
    sizes = (1_100, 3_900, 5_900, 8_900, 14_000, 22_000, 41_000)
    return tuple(
        OccupancyPoint(
            token_hit_ratio=ratio,
            engine_hbm_bytes=2 * blocks * BLOCK,
            tiered_hbm_bytes=2 * min(blocks, 4_600) * BLOCK,
        )
        for ratio, blocks in zip(ratios, sizes, strict=True)
    )


def capacity():
    sizes = ((50, 7_259), (90, 27_964), (99, 86_519))
    return CapacityPlan(
        session_sizes=tuple(
            SessionSize(
                percentile=percentile,
                tokens=tokens,
                logical_bytes=tokens * GROWTH,
                hbm_bytes=2 * tokens * GROWTH,
            )
            for percentile, tokens in sizes
        ),
        session_source="inferred",
        num_sessions=8_056,
        mean_turns=1.49,
        session_counts=(
            SessionCount(
                window_s=60, mean_sessions=196.4, max_sessions=260, mean_active=31.2, mean_dormant=165.2
            ),
            SessionCount(
                window_s=600,
                mean_sessions=1_480.0,
                max_sessions=1_590,
                mean_active=31.2,
                mean_dormant=1_448.8,
            ),
            SessionCount(
                window_s=3600,
                mean_sessions=8_056.0,
                max_sessions=8_056,
                mean_active=31.2,
                mean_dormant=8_024.8,
            ),
        ),
        dedup=(
            DedupRow(window_s=60, logical_bytes=490_000_000_000, physical_bytes=452_000_000_000),
            DedupRow(window_s=600, logical_bytes=4_820_000_000_000, physical_bytes=3_494_000_000_000),
            DedupRow(window_s=3600, logical_bytes=28_436_000_000_000, physical_bytes=18_017_000_000_000),
        ),
        ttl_windows=tuple(
            TtlRow(
                ttl_s=ttl,
                token_hit_ratio=hit,
                mean_bytes=mean * BLOCK,
                max_bytes=exact(most * BLOCK, "bytes"),
                fits=fits,
                window_fits_trace=ttl < 3537,
            )
            for ttl, hit, mean, most, fits in (
                (60, 0.105371, 4_588, 5_885, ("hbm", "dram", "nvme")),
                (600, 0.350122, 35_453, 36_620, ("dram", "nvme")),
                (1800, 0.370646, 97_000, 101_000, ("nvme",)),
                (3600, 0.373624, 182_790, 182_790, ("nvme",)),
                (86400, 0.373624, 4_464_000, 4_464_000, ()),
            )
        ),
        overheads=(
            OverheadRow(tier="hbm", key="block_rounding", size_bytes=1_020_000_000, share_ratio=0.0012),
            OverheadRow(tier="dram", key="watermark_reserve", size_bytes=307_863_255_000, share_ratio=0.28),
            OverheadRow(tier="dram", key="metadata", size_bytes=21_474_836, share_ratio=0.00002),
            OverheadRow(tier="dram", key="chunk_tail", size_bytes=2_380_000_000, share_ratio=0.0022),
            OverheadRow(tier="nvme", key="alignment", size_bytes=1_048_576, share_ratio=0.0000001),
        ),
        recommended=(
            RecommendedSize(
                tier="dram",
                given_bytes=2**40,
                recommended_bytes=1_250_000_000_000,
                reason="grow",
                token_hit_ratio=0.352,
                net_value_per_hour=96.4,
            ),
            RecommendedSize(
                tier="nvme",
                given_bytes=14_000_000_000_000,
                recommended_bytes=0,
                reason="not_worth",
                token_hit_ratio=0.352,
                net_value_per_hour=-0.8,
            ),
        ),
    )


def economics():
    def line(key, none, engine, tiered):
        return CostLine(key=key, values=by(none, engine, tiered, "CNY_per_hour", 0.15))

    return EconomicsSummary(
        currency="CNY",
        nodes=counted(6, 4, 3, "nodes"),
        nodes_exact=by(5.6, 3.8, 2.7, "nodes"),
        cost_lines=(
            line("accelerators", 191.8, 127.9, 95.9),
            line("servers", 13.7, 9.1, 6.8),
            line("dram", 0, 0, 9.4),
            line("nvme", 0, 0, 2.4),
            line("power", 34.5, 23.0, 17.6),
            line("operations", 0, 0, 38.8),
        ),
        cost_per_hour=by(240.0, 160.0, 170.9 - 38.8, "CNY_per_hour", 0.15),
        cost_per_million_tokens=by(1.58, 1.06, 0.87, "CNY_per_million_tokens", 0.15),
        added_capex=about(515_000, "CNY"),
        saving_per_hour=Estimate(mid=27.9, low=3.1, high=48.0, unit="CNY_per_hour"),
        payback_years=Estimate(mid=2.1, low=1.2, high=None, unit="years"),
        wear=TierWear(
            written_bytes_per_day=about(1.42e14, "bytes"),
            drive_writes_per_day=about(4.6, "per_day"),
            years_of_life=Estimate(mid=1.1, low=0.9, high=3.4, unit="years"),
        ),
    )


def assumptions():
    return (
        Assumption(key="load_factor", group="workload", fact=fact(1.0, "factor", "given")),
        Assumption(
            key="bf16_flops", group="hardware", fact=fact(148e12, "FLOP/s", "published", note="dense peak")
        ),
        Assumption(key="memory_bandwidth", group="hardware", fact=fact(4.8e12, "bytes/s", "published")),
        Assumption(key="weight_bytes", group="model", fact=fact(2.366e11, "bytes", "given")),
        Assumption(
            key="gemm_efficiency",
            group="serving",
            fact=fact(0.81, "ratio", "assumed", low=0.71, high=0.90, note="Share of the dense peak, fitted."),
        ),
        Assumption(
            key="tier_usable_share", group="tiers", fact=fact(0.72, "ratio", "assumed", low=0.64, high=0.80)
        ),
        Assumption(key="dram_price", group="prices", fact=fact(119.4, "CNY per GB", low=86.8, high=282.9)),
        Assumption(key="depreciation_years", group="prices", fact=fact(5, "years", low=3, high=6)),
    )
