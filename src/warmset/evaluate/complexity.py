"""What must be run, opened, watched and kept consistent under each baseline.

Ports are the defaults of vLLM's server and of LMCache's multi-process server.
"""

from warmset.evaluate.fleet import FleetRange
from warmset.evaluation import Baseline, ComplexityItem

ENGINE = (
    ComplexityItem(kind="component", key="engine"),
    ComplexityItem(kind="component", key="metrics_stack"),
    ComplexityItem(kind="port", key="engine_api", detail="8000"),
    ComplexityItem(kind="watch", key="hbm_usage"),
)
PREFIX_CACHE = (
    ComplexityItem(kind="component", key="prefix_router"),
    ComplexityItem(kind="watch", key="hit_ratio"),
    ComplexityItem(kind="failure", key="engine_restart_cold"),
)
CACHE_SERVER = (
    ComplexityItem(kind="component", key="cache_connector"),
    ComplexityItem(kind="component", key="cache_server"),
    ComplexityItem(kind="port", key="cache_rpc", detail="5555"),
    ComplexityItem(kind="port", key="cache_admin", detail="8080"),
    ComplexityItem(kind="watch", key="tier_usage"),
    ComplexityItem(kind="watch", key="load_latency"),
    ComplexityItem(kind="watch", key="write_backlog"),
    ComplexityItem(kind="failure", key="cache_server_down"),
    ComplexityItem(kind="failure", key="stale_fingerprint"),
    ComplexityItem(kind="failure", key="slow_tier"),
)
FLASH = (
    ComplexityItem(kind="component", key="nvme_volume"),
    ComplexityItem(kind="watch", key="drive_wear"),
    ComplexityItem(kind="failure", key="drive_full_or_failed"),
)
REMOTE = (
    ComplexityItem(kind="component", key="remote_pool"),
    ComplexityItem(kind="port", key="remote_rpc"),
    ComplexityItem(kind="failure", key="remote_unreachable"),
)


def complexity(fleet: FleetRange) -> dict[Baseline, tuple[ComplexityItem, ...]]:
    """The list for each baseline; the tiers that the scenario does not have add nothing."""
    tiered: tuple[ComplexityItem, ...] = ENGINE + PREFIX_CACHE
    if any(fleet.sizes.values()):
        tiered += CACHE_SERVER
    if fleet.sizes["nvme"]:
        tiered += FLASH
    if fleet.sizes["remote"]:
        tiered += REMOTE
    return {"none": ENGINE, "engine": ENGINE + PREFIX_CACHE, "tiered": tiered}
