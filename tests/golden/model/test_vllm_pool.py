"""vLLM's pools against block counts traced from running engines and figures in users' logs.

Traces: mondegreens/apron, which ran vLLM 0.29 and 0.30; `needed_bytes` is what it asks for one request
of the greatest length, at --max-num-batched-tokens 8192 with async scheduling unless said.
"""

from typing import NamedTuple

import pytest

from warmset.errors import InfeasibleError
from warmset.model import load_model
from warmset.model.engines.vllm import VllmPool, VllmSettings, vllm_pool
from warmset.model.layouts import kv_layout
from warmset.model.placement import Placement

AMPLE_BYTES = 10**13
ONE_MILLION = 2**20
QUARTER_MILLION = 2**18


class Traced(NamedTuple):
    model: str
    needed_bytes: int
    block_bytes: int | None = None
    block_tokens: int | None = None
    context_tokens: int = QUARTER_MILLION
    batched_tokens: int = 8192
    tensor_parallel: int = 1
    prefix_caching: bool | None = None
    layout: str | None = None


TRACED = {
    # Qwen3.8-27B, which has the geometry of Qwen3.5-27B; block 784 as its log says
    "27b": Traced("Qwen3.5-27B", 17_520_656_384, 51_380_224, 784),
    "27b_no_cache": Traced("Qwen3.5-27B", 17_366_515_712, 51_380_224, 784, prefix_caching=False),
    # Qwen3.6-35B-A3B, likewise; block 1056
    "35b_a3b": Traced("Qwen3.5-35B-A3B", 5_514_854_400, 21_626_880, 1056),
    "nemotron_3_nano": Traced("NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 1_725_628_416),
    # traced in bf16, while the checkpoint itself says fp8
    "gemma_4": Traced("Gemma-4-31B-IT-NVFP4", 13_637 * 2_621_440, 2_621_440, layout="bf16"),
    "gemma_4_small_batch": Traced(
        "Gemma-4-31B-IT-NVFP4", 9_797 * 2_621_440, 2_621_440, batched_tokens=2048, layout="bf16"
    ),
    "v4": Traced("DeepSeek-V4-Flash", 7_723_261_440, 1_002_240, 256),
    "v4_million": Traced("DeepSeek-V4-Flash", 10_802_142_720, 1_002_240, 256, context_tokens=ONE_MILLION),
    "v4_tp8": Traced("DeepSeek-V4-Flash", 7_723_261_440, 1_002_240, 256, tensor_parallel=8),
    "v4_small_batch": Traced("DeepSeek-V4-Flash", 2_720_079_360, batched_tokens=2048),
    "v4_small_batch_million": Traced(
        "DeepSeek-V4-Flash", 5_798_960_640, context_tokens=ONE_MILLION, batched_tokens=2048
    ),
    "v41": Traced("DeepSeek-V4.1-Flash", 902_216_448, 116_928, 64),
    "v41_million": Traced("DeepSeek-V4.1-Flash", 2_339_027_712, 116_928, 64, context_tokens=ONE_MILLION),
    "flash_next": Traced("Qwen3.8-Flash-Next", 7_033_872_384, 39_739_392, 1568),
    "flash_next_tp4": Traced("Qwen3.8-Flash-Next", 344 * 10_235_904, 10_235_904, 784, tensor_parallel=4),
    "glm_5_3": Traced("GLM-5.3-Flash", 70 * 50_600_704, 50_600_704),
    "glm_5_3_tp4": Traced("GLM-5.3-Flash", 237 * 13_394_304, 13_394_304, 1152, tensor_parallel=4),
}


@pytest.mark.parametrize("case", TRACED.values(), ids=TRACED.keys())
def test_traced_engines(case: Traced):
    settings = VllmSettings(
        available_bytes=AMPLE_BYTES,
        context_tokens=case.context_tokens,
        batched_tokens=case.batched_tokens,
        prefix_caching=case.prefix_caching,
        release="0.30.0",
    )
    placement = Placement(tensor_parallel=case.tensor_parallel)
    layout = kv_layout(case.layout) if case.layout else None
    pool = vllm_pool(load_model(case.model), settings, placement, layout)
    assert pool.request_bytes == case.needed_bytes
    assert pool.bytes_per_block == (case.block_bytes or pool.bytes_per_block)
    assert pool.block_tokens == (case.block_tokens or pool.block_tokens)


def test_user_log_with_fp8_cache():
    """Qwen3.8-27B-FP8, TP 2, fp8 KV: "302,921 tokens", "2.31x" for 131,072 tokens; 208 blocks."""
    settings = VllmSettings(available_bytes=208 * 25_690_112, context_tokens=131_072, release="0.30.0")
    pool = vllm_pool(load_model("Qwen3.5-27B"), settings, Placement(tensor_parallel=2), kv_layout("fp8"))
    assert (pool.num_blocks, pool.blocks_per_request) == (208, 90)
    assert pool.log_line == (
        "GPU KV cache size: 302,921 tokens, Maximum concurrency for 131,072 tokens per request: 2.31x"
    )


def test_user_log_of_small_cards():
    """Qwen3.8-27B, TP 2, bf16 KV on cards of 20 GiB: "123,399 tokens" for 122,633 tokens; 161 blocks.

    A request takes 160, so with the block that stays free not one token more would fit than the user found.
    """
    settings = VllmSettings(
        available_bytes=161 * 25_690_112, context_tokens=122_633, prefix_caching=False, capability="sm80"
    )
    pool = vllm_pool(load_model("Qwen3.5-27B"), settings, Placement(tensor_parallel=2))
    assert (pool.num_blocks, pool.blocks_per_request, pool.pool_tokens) == (161, 160, 123_399)


def request_of(context_tokens: int, batched_tokens: int = 8192) -> VllmPool:
    settings = VllmSettings(
        available_bytes=AMPLE_BYTES, context_tokens=context_tokens, batched_tokens=batched_tokens
    )
    return vllm_pool(load_model("DeepSeek-V4-Flash"), settings)


@pytest.mark.parametrize(("context_tokens", "num_blocks"), [(30_000, 6_800), (13_528, 5_554)])
def test_compressed_requests_in_release_0_22(context_tokens: int, num_blocks: int):
    """vllm#44376: 6.66 GiB and 5.44 GiB at 1.0517 MB a block. Blocks weigh less since; the counts stay."""
    assert request_of(context_tokens).blocks_per_request == num_blocks


def test_parts_of_a_compressed_request():
    """DeepSeek-V4-Flash at 2^20 tokens: full blocks, two groups of windows, C4 and C128 compressors."""
    pool = request_of(ONE_MILLION)
    assert sorted(group.request_blocks for group in pool.groups) == [259, 259, 2065, 4096, 4099]
    assert pool.in_flight_tokens == 16_384


def test_plain_attention_in_a_known_pool():
    """vllm#10517: Llama-3-8B, 1,952 blocks of 16 tokens in 3.81 GiB, logged then as blocks times 16."""
    settings = VllmSettings(available_bytes=int(3.8125 * 2**30), context_tokens=8192)
    pool = vllm_pool(load_model("Meta-Llama-3.1-8B"), settings)
    assert (pool.num_blocks, pool.block_tokens) == (1952, 16)
    assert pool.legacy_pool_tokens == pool.pool_tokens == 1952 * 16


def test_window_reservation_of_gpt_oss():
    """SlidingWindowSpec: 128 - 1 + 2 x 8,192 = 16,511 tokens in blocks of 16, and one block for the start."""
    settings = VllmSettings(available_bytes=AMPLE_BYTES, context_tokens=131_072)
    pool = vllm_pool(load_model("gpt-oss-120b"), settings)
    windows = [group.request_blocks for group in pool.groups if group.kind == "sliding"]
    assert windows == [-(-16_511 // 16) + 1]


def test_release_0_33_on_hopper_and_ampere():
    """0.33.0 with FlashInfer's gated delta rule (Hopper): blocks in steps of 64 tokens and three states.

    v1/attention/backends/gdn_attn.py FLASHINFER_GDN_CHECKPOINT_ALIGNMENT; Triton (Ampere) changes neither.
    """
    model = load_model("Qwen3.5-27B")
    pools = [
        vllm_pool(
            model, VllmSettings(available_bytes=AMPLE_BYTES, context_tokens=QUARTER_MILLION, capability=on)
        )
        for on in ("sm90", "sm80")
    ]
    assert [pool.block_tokens for pool in pools] == [832, 784]
    assert [pool.snapshot_tokens for pool in pools] == [832, 784]
    states = [{group.request_blocks for group in pool.groups if group.kind == "state"} for pool in pools]
    assert states == [{3}, {2}]


def test_the_greatest_length_that_fits():
    """One token more does not fit."""
    model = load_model("Qwen3.5-27B")
    settings = VllmSettings(available_bytes=10 * 2**30, context_tokens=QUARTER_MILLION, release="0.30.0")
    with pytest.raises(InfeasibleError, match=r"needs 17520656384 bytes .* fits is 157584 tokens"):
        vllm_pool(model, settings)
    # 208 blocks, one free, six for states: 201 blocks of 784 tokens
    fitting = VllmSettings(available_bytes=10 * 2**30, context_tokens=201 * 784, release="0.30.0")
    assert vllm_pool(model, fitting).blocks_per_request == 207
