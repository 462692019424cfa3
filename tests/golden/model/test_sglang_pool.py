"""What SGLang's own logs and pull requests print, to the digit where they give the tokens.

The budgets are not in the logs: each case gives the bytes that the printed tokens take and a little more, so
that cells, rows, pages and the printed sizes are what is checked.
"""

from fractions import Fraction

import pytest

from warmset.model import load_model
from warmset.model.engines.sglang import SglangPools, SglangSettings, sglang_pools
from warmset.model.layouts import kv_layout
from warmset.model.placement import Placement

GIB = 2**30
ONE_GPU = Placement()


def pools(model: str, layout: str, available_bytes: int, placement=ONE_GPU, **settings) -> SglangPools:
    return sglang_pools(
        load_model(model),
        kv_layout(layout),
        placement,
        SglangSettings(available_bytes=available_bytes, context_tokens=32_768, **settings),
    )


def test_r1_under_dp_attention_as_in_issue_7055():
    # sglang#7055: DeepSeek-R1, tp 8, dp 8: "#tokens: 1230416, KV size: 80.53 GB" on each rank, 9.84 M in all
    answer = pools(
        "DeepSeek-R1", "bf16", 1_230_416 * 70_272 + 70_271, Placement(tensor_parallel=8, dp_attention=8)
    )
    assert answer.log_lines == ("#tokens: 1230416, KV size: 80.53 GB",)
    assert answer.cluster_tokens == 9_843_328


def test_r1_under_plain_tp_keeps_a_copy_on_every_rank():
    # sglang#7055 again: with plain TP 8 the server holds the 1.23 M of one rank
    answer = pools("DeepSeek-R1", "bf16", 1_230_416 * 70_272, Placement(tensor_parallel=8))
    assert answer.max_total_num_tokens == answer.cluster_tokens == 1_230_416


def test_qwen3_235b_on_four_gpus_as_in_vllm_issue_21348():
    # vllm#21348: SGLang holds 367,404 tokens in 16.46 GB, keys and values together, of each of 4 GPUs
    answer = pools("Qwen3-235B-A22B", "bf16", 367_404 * 48_128 + 48_127, Placement(tensor_parallel=4))
    assert answer.log_lines == ("#tokens: 367404, K size: 8.23 GB, V size: 8.23 GB",)


def test_v32_with_its_index_as_in_pull_request_11309():
    # SGLang PR#11309, with the fix: "#tokens: 975424, KV size: 43.67 GB" on 8 B200 with dp 8
    answer = pools(
        "DeepSeek-V3.2", "fp8", 975_424 * 48_068 + 48_067, Placement(tensor_parallel=8, dp_attention=8)
    )
    assert answer.log_lines == ("#tokens: 975424, KV size: 43.67 GB",)
    assert answer.page_tokens == 64


def test_v32_latents_without_index_as_in_pull_request_11309():
    # SGLang PR#11309, before the fix: 1,462,784 tokens, 54.52 GB of latents; 65.49 GB with the index keys
    answer = pools("DeepSeek-V3.2", "fp8", 1_462_784 * 48_068)
    rows = answer.max_total_num_tokens + answer.page_tokens
    assert answer.max_total_num_tokens == 1_462_784
    assert round(answer.pools[0].logged_bytes / GIB, 2) == 65.49
    index_bytes = rows * 61 * 132
    assert round((answer.pools[0].logged_bytes - index_bytes) / GIB, 2) == 54.52


def test_mimo_with_a_window_pool_of_full_size_as_in_pull_request_15464():
    # SGLang PR#15464, MiMo-V2-Flash, tp 4: K 41.76, V 27.84 GB for the windows, K 4.82, V 3.21 for the rest
    answer = pools(
        "MiMo-V2-Flash",
        "bf16",
        1_496_958 * 55_680,
        Placement(tensor_parallel=4),
        swa_full_tokens_ratio=Fraction(1),
    )
    assert answer.log_lines == (
        "#tokens: 1496958, K size: 4.82 GB, V size: 3.21 GB",
        "#tokens: 1496958, K size: 41.76 GB, V size: 27.84 GB",
    )


def test_mimo_with_a_window_pool_of_default_size_as_in_pull_request_18039():
    # SGLang PR#18039, MiMo-V2-Flash, tp 4, pages of 64: full 375,360, windows 300,288 tokens, 8.38 + 5.59 GB
    cell = 5_760 + Fraction(4, 5) * 49_920
    answer = pools(
        "MiMo-V2-Flash",
        "bf16",
        int(375_360 * cell) + 1,
        Placement(tensor_parallel=4),
        page_tokens=64,
    )
    assert answer.pools[0].tokens == 375_360
    assert answer.pools[1].log_text == "#tokens: 300288, K size: 8.38 GB, V size: 5.59 GB"


@pytest.mark.parametrize(("num_slots", "tokens"), [(21, 158_116), (10, 182_901)])
def test_fewer_state_slots_give_more_tokens_as_measured_on_two_3090(num_slots, tokens):
    # noonghunna/club-3090 PR#1331: Qwen3.8-27B (geometry of Qwen3.5-27B), tp 2, fp8 KV, one MTP layer, 16-bit
    # states, --max-running-requests 1, one budget: 21 slots and 158,116 tokens, 10 slots and 182,901
    answer = pools(
        "Qwen3.5-27B",
        "fp8",
        22 * 39_223_296 + 158_116 * 17_408 + 16_384,
        Placement(tensor_parallel=2),
        max_mamba_cache_size=num_slots,
        recurrent_bits=16,
        num_draft_layers=1,
        max_running_requests=1,
    )
    assert answer.max_total_num_tokens == tokens


@pytest.mark.parametrize(
    ("strategy", "overlap", "slots"),
    [
        # SGLang PR#32789, table of S
        ("off", True, 1),
        ("no_buffer", False, 3),
        ("extra_buffer", True, 5),
        ("extra_buffer", False, 4),
        ("extra_buffer_lazy", True, 4),
        ("auto", True, 5),
    ],
)
def test_state_slots_of_a_request(strategy, overlap, slots):
    answer = pools("Qwen3.5-27B", "bf16", 40 * GIB, radix_strategy=strategy, overlap_schedule=overlap)
    assert answer.state_pool is not None
    assert answer.state_pool.num_slots_per_request == slots


@pytest.mark.parametrize(
    ("model", "num_slots", "strategy", "requests"),
    [
        # sglang#36889: "capped to 2 by the mamba state cache (max_mamba_cache_size=10, 5 state slots per
        # request)"
        ("GLM-5.3-Flash", 10, "auto", 2),
        # jpezzulli/sglang-rtxpro6000#5: 40 slots, "max_running_requests=8 (40 / 5)"
        ("Qwen3.5-27B", 40, "extra_buffer", 8),
        # SGLang PR#33666: a pool of 26 slots "clamps max_running_requests to 6", on Kimi-K3
        ("Kimi-K3", 26, "extra_buffer_lazy", 6),
    ],
)
def test_state_slots_cap_the_running_requests(model, num_slots, strategy, requests):
    answer = pools(
        model,
        "bf16",
        200 * GIB,
        Placement(tensor_parallel=4),
        max_mamba_cache_size=num_slots,
        radix_strategy=strategy,
    )
    assert answer.max_running_requests == requests


def test_states_of_qwen3_next_are_fp32():
    # kv-physics section 4: SGLang keeps fp32 where vLLM keeps bf16; EXPECTED-DETAIL.csv, other dtype
    answer = pools("Qwen3-Next-80B-A3B-Instruct", "bf16", 40 * GIB)
    assert answer.state_pool is not None
    assert answer.state_pool.slot_bytes == 77_266_944


def test_hunyuan_lets_every_layer_write_its_own_kv():
    # kv-physics section 2: 163,840 bytes a token in SGLang 0.5.23, where the physics is 81,920
    answer = pools("Hunyuan-Large", "bf16", 100 * GIB)
    assert answer.cell_bytes == 163_840
    assert any(step.label == "layers without KV" for step in answer.steps)


@pytest.mark.parametrize(
    ("model", "cell_bytes"),
    [
        # kv-physics section 2, engine rates in bf16; one rank of TP 1
        ("LongCat-Flash-Chat", 64_512),
        ("GLM-5", 100_152),
        ("GLM-5.2", 92_628),
        ("MiniMax-M3", 137_472),
        ("Kimi-Linear-48B-A3B-Instruct", 8_064),
        ("Meta-Llama-3.1-70B", 327_680),
        ("step3", 62_464),
        ("Qwen3.8-Flash-Next", 25_344),
    ],
)
def test_bytes_of_a_token(model, cell_bytes):
    assert pools(model, "bf16", 60 * GIB).cell_bytes == cell_bytes


@pytest.mark.parametrize(
    ("model", "extra_bytes"),
    [("DeepSeek-V3", 1_152), ("DeepSeek-V3.2", 1_284), ("GLM-4.5", 4_096)],  # kv-physics section 2, last row
)
def test_an_mtp_layer_widens_the_cell(model, extra_bytes):
    plain = pools(model, "bf16", 200 * GIB)
    drafting = pools(model, "bf16", 200 * GIB, num_draft_layers=1)
    assert drafting.cell_bytes - plain.cell_bytes == extra_bytes


def test_global_kv_of_v41_flash_is_890_bytes_a_token():
    # DeepSeek-V4.1-Flash technical report after vllm-project/recipes PR#959: 890 bytes a token of global KV
    answer = pools("DeepSeek-V4.1-Flash", "fp8", 60 * GIB, is_blackwell=True)
    assert answer.pools[0].bytes_per_token == 890


def test_dsa_under_decode_context_parallelism():
    # SGLang PR#31821: 2,292,288 tokens a rank become 4,252,416 at dcp 2, × 1.855. Its model and budget are
    # not given, so only the range: index keys are copied, latents shared, in the raw layout of trtllm.
    for model in ("DeepSeek-V3.2", "GLM-5", "GLM-5.2"):
        one = pools(model, "fp8", 100 * GIB, Placement(tensor_parallel=4), is_blackwell=True)
        two = pools(
            model,
            "fp8",
            100 * GIB,
            Placement(tensor_parallel=4, decode_context_parallel=2),
            is_blackwell=True,
        )
        assert 1.68 < two.request_tokens / one.request_tokens < 1.90
