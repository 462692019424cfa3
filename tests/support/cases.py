"""Small evaluations, each made for one question: a log, and what its scenario changes."""

from typing import Any

from tests.support.scenarios import CHEAP_TIERS, assume, chat_rows, row, unique_rows
from tests.support.traces import mooncake_row

Case = tuple[list[dict[str, object]], *tuple[dict[str, Any], ...]]

CHAT = chat_rows(sessions=60, turns=5, blocks=40, gap_ms=2500)
"""79 % reuse at a distance of 2,500 blocks: more than the HBM of five small nodes, less than their DRAM."""
EMPTY_PROMPTS = [
    *(row(number * 100, [number]) for number in range(50)),
    *(mooncake_row(timestamp=6000 + number, input_length=0, hash_ids=[]) for number in range(20)),
]

SMALL: dict[str, Case] = {
    "chat": (CHAT,),
    "cheap_tiers": (CHAT, assume(**CHEAP_TIERS)),
    "no_reuse": (unique_rows(requests=200, blocks=20, gap_ms=2500),),
    "slow_nvme": (CHAT, {"tiers": {"dram": "0GB"}}, assume(nvme_read_bytes_per_s=1e8)),
    "slow_nvme_recomputed": (
        CHAT,
        {"tiers": {"dram": "0GB", "load": "when_faster"}},
        assume(nvme_read_bytes_per_s=1e8),
    ),
    "impossible_slo": (CHAT, {"slo": {"ttft": "1ms"}}),
    "no_tiers": (CHAT, {"tiers": {"dram": "0GB", "nvme": "0GB"}}),
    "twice_as_fast": (CHAT, {"traffic": {"load_factor": 2.0}}),
    "long_context": (CHAT, {"model": {"max_context_tokens": 10**7}}),
    "small_nvme": (CHAT, {"tiers": {"dram": "0GB", "nvme": "10GB"}}),
    "shared_root": ([row(number * 100, [1, 2 + number % 50]) for number in range(200)],),
    "dram_alone": (CHAT, {"tiers": {"nvme": "0GB"}}),
    "two_engines_a_node": (CHAT, {"hardware": {"gpus_per_node": 8, "tensor_parallel": 4}}),
    "mla": (CHAT, {"model": {"name": "DeepSeek-V3"}, "hardware": {"gpu": "H200", "gpus_per_node": 8}}),
    "usd": (CHAT, {"currency": "USD"}),
    "exclusive": (CHAT, {"tiers": {"inclusive": False}}),
    "round_robin": (chat_rows(61, 5, 40, 2500), {"traffic": {"routing": "round_robin"}}),
    "remote": (CHAT, {"tiers": {"remote": "1TB"}}, assume(remote_price_per_tb=100)),
    "given_nodes": (CHAT, {"hardware": {"nodes": 7}}),
    "too_few_nodes": (CHAT, {"hardware": {"nodes": 3, "max_nodes": 3}}),
    "one_request": ([row(0, [1, 2, 3], 350)],),
    "at_once": ([row(0, [number, number + 1000]) for number in range(50)],),
    "same_at_once": ([row(0, [1, 2])] * 50,),
    "empty_prompts": (EMPTY_PROMPTS,),
    "short_answers": ([row(number * 100, [number % 7, 100 + number], number % 2) for number in range(100)],),
    "no_answers": ([row(number * 100, [number % 7, 100 + number], 0) for number in range(100)],),
}
