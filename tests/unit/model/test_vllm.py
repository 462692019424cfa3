from fractions import Fraction

import pytest

from tests.support.vllm_models import HEADS, INDEX, LATENT, STATE, layer, model, pool_of
from warmset.errors import InfeasibleError, InputError, UnsupportedModelError
from warmset.model.engines.vllm import (
    VllmSettings,
    available_kv_bytes,
    capability_of,
    default_batched_tokens,
    default_running_requests,
)
from warmset.model.engines.vllm_packing import _padding_divisor
from warmset.model.layouts import kv_layout
from warmset.model.placement import Placement, stage_ranges
from warmset.model.spec import (
    Attention,
    Cache,
    CompressedEntry,
    KvHeads,
    Latent,
    Layer,
    Mixer,
    ModelSpec,
    Quantization,
    StatePart,
)

GIB = 2**30
PLAIN = model(*[layer(HEADS)] * 4)
WINDOWED = model(layer(HEADS), *[layer(HEADS, reach="sliding", span=128)] * 5)
HYBRID = model(layer(HEADS), *[layer(states=STATE)] * 3, model_type="qwen3_5_text")


def test_plain_pool():
    pool = pool_of(PLAIN, available_bytes=1000 * 4 * 16 * 4096 + 17)
    assert (pool.num_blocks, pool.bytes_per_block, pool.blocks_per_request) == (1000, 4 * 16 * 4096, 512)
    assert pool.max_concurrency_ratio == Fraction(1000, 512)
    assert pool.pool_tokens == 16_000
    assert (pool.padding_bytes, pool.num_state_slots, pool.snapshot_tokens) == (0, None, None)


def test_tensor_parallelism_replicates_heads_beyond_their_number():
    sizes = [pool_of(PLAIN, Placement(tensor_parallel=tp)).bytes_per_block for tp in (1, 2, 8, 16)]
    assert sizes == [262_144, 131_072, 32_768, 32_768]


def test_data_parallel_attention_splits_over_fewer_gpus():
    placement = Placement(tensor_parallel=8, dp_attention=4)
    assert pool_of(PLAIN, placement).bytes_per_block == 131_072


def test_latents_are_whole_on_every_gpu_and_split_by_decode_context_parallel():
    spec = model(*[layer(LATENT)] * 2)
    pool = pool_of(spec, Placement(tensor_parallel=8, decode_context_parallel=4))
    assert pool.bytes_per_block == 2 * 16 * 1152
    assert pool.blocks_per_request == 8192 // 4 // 16


def test_windows_form_groups_of_the_rarer_kind():
    pool = pool_of(WINDOWED, batched_tokens=512)
    assert [group.kind for group in pool.groups] == ["full", *["sliding"] * 5]
    assert pool.bytes_per_block == 16 * 4096
    # 128 - 1 + 2 x 512 tokens in blocks of 16, one more for the start of a window
    assert pool.blocks_per_request == 512 + 5 * (72 + 1)


def test_groups_of_nearly_equal_kinds_take_the_larger_number():
    """v1/core/kv_cache_planning.py: 12 windows and 13 full caches make two groups of 13."""
    spec = model(*[layer(HEADS)] * 13, *[layer(HEADS, reach="sliding", span=128)] * 12)
    pool = pool_of(spec)
    assert [group.num_caches for group in pool.groups] == [13, 12]
    assert [group.padding_bytes for group in pool.groups] == [0, 16 * 4096]


def test_without_the_manager_windows_cost_as_much_as_full_attention():
    pool = pool_of(WINDOWED, hybrid_manager=False)
    assert [(group.kind, group.num_caches) for group in pool.groups] == [("full", 6)]
    assert pool.request_bytes == 8192 * 6 * 4096


def test_chunks_keep_a_chunk_and_what_is_in_flight():
    spec = model(layer(HEADS), layer(HEADS, reach="chunked", span=1024))
    assert pool_of(spec, batched_tokens=512).blocks_per_request == 512 + 128


def test_unequal_pages_take_larger_blocks_or_padding():
    small = KvHeads(num_heads=4, key_size=128, value_size=128)
    odd = KvHeads(num_heads=6, key_size=128, value_size=128)
    for entry, block_tokens, padding in [(small, 32, 0), (odd, 16, 16 * 1024)]:
        pool = pool_of(model(layer(entry), layer(HEADS, reach="sliding", span=64)))
        full = next(group for group in pool.groups if group.kind == "full")
        assert (full.block_tokens, full.padding_bytes) == (block_tokens, padding)


@pytest.mark.parametrize(
    ("flags", "num_states"),
    [
        ({"prefix_caching": False}, 1),
        ({"capability": "sm80"}, 2),
        ({"capability": "sm90"}, 3),
        ({"release": "0.30.0"}, 2),
        ({"capability": "sm80", "num_speculative_tokens": 2}, 4),
    ],
    ids=str,
)
def test_states_of_a_request(flags: dict[str, object], num_states: int):
    groups = pool_of(HYBRID, **flags).groups
    assert {group.request_blocks for group in groups if group.kind == "state"} == {num_states}


def test_drafts_widen_convolutions_and_so_the_block():
    """mamba_utils.py: the convolution keeps one more input for each draft."""
    row_bytes = 32 * 128 * 2
    state_bytes = 32 * 128 * 128 * 4 + 3 * row_bytes
    page_bytes = 16 * 4096
    for num_drafts in (0, 8):
        pool = pool_of(HYBRID, num_speculative_tokens=num_drafts, release="0.30.0")
        assert pool.block_tokens == -(-(state_bytes + num_drafts * row_bytes) // page_bytes) * 16


def test_mtp_layers_have_caches_only_when_they_draft():
    spec = model(*[layer(HEADS)] * 4, mtp=(layer(HEADS),))
    assert [group.num_caches for group in pool_of(spec).groups] == [4]
    assert [group.num_caches for group in pool_of(spec, num_speculative_tokens=1).groups] == [5]


def test_several_draft_modules_keep_more_below_a_window():
    windows = layer(HEADS, reach="sliding", span=17)
    spec = model(windows, mtp=(windows, windows, windows))
    blocks = [
        pool_of(spec, batched_tokens=8, num_speculative_tokens=drafts).blocks_per_request for drafts in (1, 3)
    ]
    assert blocks == [2 + 1, 3 + 1]  # 16 + 16 tokens, then two more


def test_state_slots_cap_running_requests():
    pool = pool_of(HYBRID, available_bytes=3 * GIB, max_running_requests=100_000)
    assert pool.num_state_slots == pool.num_blocks
    assert pool.findings[0].count == 100_000 - pool.num_blocks
    assert f"at most {pool.num_blocks}" in pool.findings[0].first_example
    assert pool_of(HYBRID, available_bytes=3 * GIB, max_running_requests=pool.num_blocks).findings == ()


def test_a_length_beyond_the_model():
    assert pool_of(PLAIN, context_tokens=8192).findings == ()
    assert [finding.count for finding in pool_of(PLAIN, context_tokens=8200).findings] == [8]


def test_only_states():
    spec = model(*[layer(states=STATE)] * 2, model_type="falcon_mamba")
    pool = pool_of(spec)
    assert pool.bytes_per_block == 2 * (32 * 128 * 128 * 4 + 32 * 3 * 128 * 2)
    assert (pool.blocks_per_request, pool.snapshot_tokens) == (1, None)


def test_encoder_reserves_a_batch():
    spec = model(layer(HEADS), layer(HEADS, reach="cross", span=1500))
    assert pool_of(spec, batched_tokens=2048).blocks_per_request == 512 + 128


def test_latents_that_vllm_expands():
    attention = Attention(num_heads=40, key_size=96, value_size=64)
    expanded = Layer(mixers=(Mixer(caches=(Cache(entry=LATENT),), attentions=(attention,)),))
    pool = pool_of(model(expanded, model_type="minicpm3"))
    assert pool.bytes_per_block == 16 * 40 * 2 * 96 * 2
    assert any("expanded" in step.formula for step in pool.steps)


def test_sparse_latents_and_index_keys_share_a_group():
    sparse = Latent(latent_size=512, rope_size=64, sparse=True)
    pool = pool_of(model(layer(sparse, INDEX), model_type="deepseek_v32"), layout=kv_layout("fp8"))
    assert (pool.block_tokens, pool.bytes_per_block) == (64, 64 * (656 + 132))


def test_convolutions_of_inkling_are_windows():
    convs = (
        StatePart(role="conv", num_units=8, unit_elements=2 * 128 * 3),
        StatePart(role="conv", num_units=4096, unit_elements=2 * 3),
    )
    pool = pool_of(model(layer(HEADS, states=convs), model_type="inkling_mm_model"))
    # 2 x 128 + 2 x 512 elements beside each head are stored as 2,048: 4 tokens weigh as 32 of attention
    assert pool.bytes_per_block == 4 * 8 * 2048 * 2
    assert [(group.kind, group.block_tokens) for group in pool.groups] == [("full", 32), ("sliding", 4)]


@pytest.mark.parametrize(
    ("capability", "block_tokens", "page_bytes"), [("sm90", 64, 37_440 + 8_640), ("sm100", 128, 84_480)]
)
def test_records_of_v41_by_card(capability: str, block_tokens: int, page_bytes: int):
    """deepseek_v41/attention.py: 584 bytes in pages of 576, or on data-centre Blackwell 528 in pages of 512.

    84,480 is 128 x (528 + 132), which both are whole pages, and a multiple of 528.
    """
    window = Cache(entry=CompressedEntry(size=512, rope_size=64), reach="sliding", span_tokens=128)
    source = Cache(entry=CompressedEntry(size=512, rope_size=64))
    caches = (window, source, Cache(entry=INDEX, tokens_per_entry=1))
    spec = model(Layer(mixers=(Mixer(caches=caches),)), model_type="deepseek_v41_text")
    pool = pool_of(spec, capability=capability)
    assert (pool.block_tokens, pool.bytes_per_block) == (block_tokens, page_bytes)


def test_checkpoints_with_fp8_scales_keep_fp8():
    quantized = ModelSpec(
        **{name: getattr(PLAIN, name) for name in PLAIN.__struct_fields__ if name != "quantization"},
        quantization=Quantization(method="modelopt", kv_cache_bits=8),
    )
    assert pool_of(quantized).bytes_per_block * 2 == pool_of(PLAIN).bytes_per_block
    assert pool_of(quantized, layout=kv_layout("bf16")).bytes_per_block == pool_of(PLAIN).bytes_per_block


@pytest.mark.parametrize(
    ("num_layers", "pipeline_parallel", "sizes"),
    [(80, 4, [20, 20, 20, 20]), (61, 4, [15, 15, 16, 15]), (62, 4, [15, 16, 16, 15]), (7, 2, [4, 3])],
)
def test_pipeline_stages(num_layers: int, pipeline_parallel: int, sizes: list[int]):
    """distributed/utils.py get_pp_indices: the rest goes to the stages before the last one."""
    stages = stage_ranges(num_layers, pipeline_parallel)
    assert [len(stage) for stage in stages] == sizes
    assert [index for stage in stages for index in stage] == list(range(num_layers))


def test_the_stage_with_the_least_room_decides():
    placement = Placement(pipeline_parallel=2)
    assert pool_of(PLAIN, placement).bytes_per_block * 2 == pool_of(PLAIN).bytes_per_block
    pool = pool_of(PLAIN, placement, available_bytes=(4 * GIB, 3 * GIB))
    assert (pool.stage_index, pool.num_blocks) == (1, 3 * GIB // 131_072)
    assert pool.in_flight_tokens == 3 * 8192
    assert pool_of(PLAIN, placement, async_scheduling=False).in_flight_tokens == 2 * 8192


def test_steps_carry_the_numbers_of_the_pool():
    pool = pool_of(HYBRID, available_bytes=8 * GIB)
    results = {step.label: step.result for step in pool.steps}
    assert results["blocks"] == f"{pool.num_blocks:,}"
    assert results["bytes per block"] == f"{pool.bytes_per_block:,} bytes"
    assert results["GPU KV cache size"].startswith(f"{pool.pool_tokens:,} tokens")
    assert results["block"].startswith(f"{pool.block_tokens} tokens")
    assert all(step.formula and step.source.startswith("vLLM 0.33.0") for step in pool.steps)


def test_the_greatest_length_that_fits():
    # 101 blocks, of which one stays free
    budget = 101 * 262_144
    with pytest.raises(
        InfeasibleError, match=rf"needs {512 * 262_144} .* {budget} are available; .* 1600 tokens"
    ):
        pool_of(PLAIN, available_bytes=budget)
    assert pool_of(PLAIN, available_bytes=budget, context_tokens=1600).blocks_per_request == 100
    with pytest.raises(InfeasibleError, match="not even one token fits"):
        pool_of(PLAIN, available_bytes=262_144)


REFUSED = {
    "manager_off": (
        HYBRID,
        None,
        {"hybrid_manager": False},
        "hybrid KV cache manager off .* leave the manager on",
    ),
    "heads": (PLAIN, Placement(tensor_parallel=3), {}, "8 KV heads cannot be split over tensor_parallel=3"),
    "state": (
        model(layer(HEADS), layer(states=(StatePart(role="recurrent", num_units=12, unit_elements=64),))),
        Placement(tensor_parallel=8),
        {},
        "12 heads over 8 GPUs",
    ),
    "dcp": (
        WINDOWED,
        Placement(tensor_parallel=2, decode_context_parallel=2),
        {},
        "set decode_context_parallel=1",
    ),
    "block": (model(layer(LATENT, INDEX)), None, {"block_tokens": 16}, "choose a multiple of 64"),
    "stages": (PLAIN, Placement(pipeline_parallel=5), {}, "only 4 layers"),
    "budgets": (
        PLAIN,
        Placement(pipeline_parallel=2),
        {"available_bytes": (1, 2, 3)},
        "3 numbers for pipeline_parallel=2",
    ),
    "no_cache": (model(Layer()), None, {}, "keeps no cache"),
}


@pytest.mark.parametrize(("spec", "placement", "flags", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_refusals(spec: ModelSpec, placement: Placement | None, flags: dict[str, object], message: str):
    with pytest.raises(InputError, match=message):
        pool_of(spec, placement, **flags)


def test_refused_layouts():
    for name in ("q8_0", "bf16/fp8"):
        with pytest.raises(InputError, match="vLLM has none such"):
            pool_of(PLAIN, layout=kv_layout(name))


@pytest.mark.parametrize(("model_type", "release"), [("mllama", "0.10.2"), ("mpt", "0.28.0")])
def test_families_that_vllm_dropped(model_type: str, release: str):
    with pytest.raises(UnsupportedModelError, match=rf"does not serve model type {model_type}.* {release}"):
        pool_of(model(layer(HEADS), model_type=model_type))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Placement(tensor_parallel=0),
        lambda: Placement(tensor_parallel=4, dp_attention=3),
        lambda: Placement(tensor_parallel=4, decode_context_parallel=8),
        lambda: VllmSettings(available_bytes=1, context_tokens=0),
        lambda: VllmSettings(available_bytes=1, num_speculative_tokens=-1),
        lambda: VllmSettings(available_bytes=1, max_running_requests=0),
    ],
    ids=["tp", "dp", "dcp", "context", "drafts", "requests"],
)
def test_impossible_flags(make):
    with pytest.raises(InputError, match=r"must (not )?be|does not divide"):
        make()


def test_budget():
    # 0.92 x 80 GiB = 73.6 GiB, rounded up to a byte
    assert available_kv_bytes(80 * GIB, 16 * GIB, 2 * GIB) == -(-80 * GIB * 92 // 100) - 18 * GIB
    assert available_kv_bytes(100, 10, 5, Fraction(1, 3)) == 34 - 15
    with pytest.raises(InfeasibleError, match="no memory is left"):
        available_kv_bytes(24 * GIB, 30 * GIB, GIB)
    with pytest.raises(InputError, match="at most 1"):
        available_kv_bytes(GIB, 0, 0, Fraction(11, 10))


def test_batches_by_card():
    """engine/arg_utils.py get_batch_defaults; the memory of cards as the driver reports it."""
    cards = [(180, ""), (79, "NVIDIA H100 80GB HBM3"), (79, "NVIDIA A100-SXM4-80GB"), (24, "")]
    assert [default_batched_tokens(size * GIB, name) for size, name in cards] == [16384, 8192, 2048, 2048]
    offline = [default_batched_tokens(size * GIB, name, offline=True) for size, name in cards]
    assert offline == [16384, 16384, 8192, 8192]
    assert [default_running_requests(size * GIB, name) for size, name in cards] == [1024, 1024, 256, 256]


def test_kinds_of_cards():
    names = ["H100 SXM", "NVIDIA GB300 NVL72", "NVIDIA GeForce RTX 5090", "A100-80 SXM", "Ascend 910C", ""]
    assert [capability_of(name) for name in names] == ["sm90", "sm100", "sm120", "sm80", "sm80", "sm80"]


def test_multiples_with_the_least_padding():
    """_approximate_gcd: 43 windows, 21 and 20 states, at least 21 to a group: 22 wastes least."""
    assert _padding_divisor([43, 21, 20], 21) == 22
    assert _padding_divisor([12, 12], 1) == 12
