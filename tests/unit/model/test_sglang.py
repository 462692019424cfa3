from fractions import Fraction

import pytest

from tests.support.sglang_models import (
    DSA,
    GPT_OSS,
    HEADS,
    HYBRID,
    LLAMA,
    STATES,
    WINDOW,
    layer,
    model,
    pools,
)
from warmset.errors import InfeasibleError, InputError, UnsupportedModelError
from warmset.model.engines.sglang import (
    sglang_budget_bytes,
)
from warmset.model.engines.sglang_layers import stages
from warmset.model.placement import Placement
from warmset.model.spec import (
    Attention,
    Cache,
    CompressedEntry,
    Layer,
    Mixer,
    ModelSpec,
)

GIB = 2**30


def test_budget_is_the_static_share_less_weights():
    assert sglang_budget_bytes(80 * GIB, Fraction(9, 10), 60 * GIB, GIB) == 11 * GIB


def test_budget_without_room_names_the_share_that_would_do():
    with pytest.raises(
        InfeasibleError, match=r"needs 64,424,509,440 bytes .* available 42,949,672,960 .*0\.750"
    ):
        sglang_budget_bytes(80 * GIB, Fraction(1, 2), 60 * GIB)


def test_budget_of_a_share_above_one_is_refused():
    with pytest.raises(InputError, match="mem_fraction_static"):
        sglang_budget_bytes(80 * GIB, Fraction(3, 2), GIB)


@pytest.mark.parametrize(
    ("layout", "cell_bytes"),
    # head of 128: 2 bytes, 1, 0.5 + 1/16 and 1 + 1/32 each; keys and values of 8 heads in 4 layers
    [("bf16", 16_384), ("fp8", 8_192), ("nvfp4", 4_608), ("mxfp4", 4_608), ("mxfp8", 8_448)],
)
def test_cell_of_heads_by_layout(layout, cell_bytes):
    assert pools(LLAMA, layout).cell_bytes == cell_bytes


def test_heads_are_split_until_there_is_one_a_rank():
    cells = [pools(LLAMA, placement=Placement(tensor_parallel=size)).cell_bytes for size in (1, 2, 8, 16)]
    assert cells == [16_384, 8_192, 2_048, 2_048]


def test_dp_attention_keeps_heads_together_and_multiplies_the_cluster():
    answer = pools(LLAMA, placement=Placement(tensor_parallel=8, dp_attention=4))
    assert answer.cell_bytes == 8_192
    assert answer.cluster_tokens == 4 * answer.max_total_num_tokens


def test_dcp_shares_rows_among_copies():
    copies = pools(LLAMA, placement=Placement(tensor_parallel=16))
    shared = pools(LLAMA, placement=Placement(tensor_parallel=16, decode_context_parallel=2))
    assert shared.cell_bytes == copies.cell_bytes
    assert shared.request_tokens == 2 * copies.request_tokens


def test_dcp_copies_index_keys():
    one = pools(DSA, placement=Placement(tensor_parallel=4))
    two = pools(DSA, placement=Placement(tensor_parallel=4, decode_context_parallel=2))
    assert one.cell_bytes == 8 * 1_152 + 4 * 132
    assert two.cell_bytes == 8 * 1_152 + 4 * 132 * 2


@pytest.mark.parametrize(("raw", "latent_bytes"), [(None, 656), (True, 576), (False, 656)])
def test_fp8_latents_have_scales_unless_raw(raw, latent_bytes):
    answer = pools(DSA, "fp8", raw_fp8_latents=raw)
    assert answer.cell_bytes == 8 * latent_bytes + 4 * 132
    assert (f"{latent_bytes} B") in [step.result for step in answer.steps]


def test_drafts_of_dsa_own_an_index_in_every_layer():
    assert pools(DSA, num_draft_layers=2).cell_bytes - pools(DSA).cell_bytes == 2 * (1_152 + 132)


def test_tokens_are_whole_pages():
    answer = pools(LLAMA, available_bytes=1_000 * 16_384, page_tokens=64)
    assert answer.max_total_num_tokens == 960
    assert answer.pools[0].logged_bytes == 1_024 * 16_384


def test_max_total_tokens_limits_the_pool():
    assert pools(LLAMA, max_total_tokens=1_000).max_total_num_tokens == 1_000


@pytest.mark.parametrize(
    ("num_layers", "pipeline_parallel", "sizes"), [(8, 1, [8]), (8, 3, [2, 3, 3]), (10, 4, [2, 2, 3, 3])]
)
def test_left_over_layers_go_to_the_last_stages(num_layers, pipeline_parallel, sizes):
    assert [len(stage) for stage in stages(num_layers, pipeline_parallel)] == sizes


def test_the_widest_stage_decides():
    answer = pools(LLAMA, placement=Placement(pipeline_parallel=3))
    assert (answer.stage_index, answer.cell_bytes) == (2, 2 * 4_096)


def test_a_stage_without_kv_does_not_decide():
    answer = pools(HYBRID, placement=Placement(pipeline_parallel=2), radix_strategy="off")
    assert answer.stage_index == 1


def test_windows_have_a_pool_of_their_own():
    answer = pools(GPT_OSS, available_bytes=1_000 * 16_384 + 800 * 8_192)
    assert [(pool.name, pool.tokens) for pool in answer.pools] == [("full", 1_000), ("swa", 800)]
    assert answer.used_bytes == answer.available_bytes


def test_windows_of_other_families_cost_full_price():
    answer = pools(model("gemma3", layer(HEADS), layer(WINDOW)))
    assert answer.cell_bytes == 4_096 + 2_048
    assert "full price" in [step.result for step in answer.steps]


def test_without_radix_cache_running_requests_cap_the_window_pool():
    # 10 × (127 + 128 + 1 + 1) + 2 chunks of 8192 + 1, the window counted without the token itself
    answer = pools(GPT_OSS, radix_strategy="off", max_running_requests=10)
    assert answer.pools[1].tokens == 10 * 257 + 2 * 8_192 + 1
    assert answer.cell_bytes == 16_384


def test_layers_with_windows_only_make_one_pool():
    answer = pools(model("gpt_oss", layer(WINDOW), layer(WINDOW)), available_bytes=4_096 * 1_000)
    assert [(pool.name, pool.tokens) for pool in answer.pools] == [("swa", 1_000)]


def test_a_draft_with_a_window_widens_the_window_pool():
    spec = model("mimo_v2_flash", *[layer(HEADS), layer(WINDOW)] * 4, mtp_layers=(layer(WINDOW),))
    drafting = pools(spec, num_draft_layers=1)
    assert drafting.pools[0].bytes_per_token == 16_384
    assert drafting.pools[1].bytes_per_token == 5 * 2_048


def test_a_window_pool_too_small_for_a_request_is_refused():
    with pytest.raises(
        InfeasibleError, match=r"more than 128 tokens .* available 100 .*swa_full_tokens_ratio"
    ):
        pools(GPT_OSS, available_bytes=1_000 * 17_204, swa_full_tokens_ratio=Fraction(1, 10))


def test_layers_that_share_kv_get_rows_too():
    borrowing = Layer(mixers=(Mixer(attentions=(Attention(num_heads=8, key_size=128, value_size=128),)),))
    answer = pools(model("hunyuan", layer(HEADS), borrowing, layer(HEADS), borrowing))
    assert answer.cell_bytes == 16_384
    assert answer.steps[0].label == "layers without KV"


def test_layers_that_share_a_window_get_rows_in_the_window_pool():
    borrowing = Attention(num_heads=8, key_size=64, value_size=64, reach="sliding", span_tokens=128)
    spec = model("gemma4", layer(HEADS), layer(WINDOW), Layer(mixers=(Mixer(attentions=(borrowing,)),)))
    assert [pool.num_layers for pool in pools(spec).pools] == [1, 2]


def test_layers_with_states_get_no_rows():
    assert pools(HYBRID).cell_bytes == 4_096


def test_state_slot_has_16_bit_convolutions_and_32_bit_recurrences():
    answer = pools(HYBRID, placement=Placement(tensor_parallel=2))
    assert answer.state_pool is not None
    assert answer.state_pool.slot_bytes == 3 * 16 * (3 * 64 * 2 + 64 * 128 * 4)


def test_state_slot_in_16_bits():
    answer = pools(HYBRID, recurrent_bits=16)
    assert answer.state_pool is not None
    assert answer.state_pool.slot_bytes == 3 * 32 * (3 * 64 + 64 * 128) * 2


def test_states_take_nine_nineteenths():
    answer = pools(HYBRID)
    assert answer.state_pool is not None
    share = Fraction(answer.state_pool.total_bytes, answer.available_bytes)
    assert Fraction(9, 19) - Fraction(1, 100) < share <= Fraction(9, 19)


def test_states_of_draft_tokens_come_from_the_same_share():
    answer = pools(HYBRID, num_draft_tokens=4, max_running_requests=16)
    assert answer.state_pool is not None
    assert answer.state_pool.draft_bytes == 17 * 4 * answer.state_pool.slot_bytes
    assert answer.used_bytes <= answer.available_bytes


def test_without_radix_cache_there_is_a_slot_for_each_request():
    answer = pools(HYBRID, radix_strategy="off", max_running_requests=16)
    assert answer.state_pool is not None
    assert (answer.state_pool.num_slots, answer.max_running_requests) == (16, 16)


def test_dp_ranks_share_the_slots_that_were_asked_for():
    answer = pools(HYBRID, placement=Placement(tensor_parallel=2, dp_attention=2), max_mamba_cache_size=100)
    assert answer.state_pool is not None
    assert (answer.state_pool.num_slots, answer.max_running_requests) == (50, 10)


def test_states_that_leave_no_slot_are_refused():
    with pytest.raises(InfeasibleError, match="mamba_full_memory_ratio"):
        pools(HYBRID, available_bytes=4_000_000)


def test_a_model_without_kv_holds_one_context():
    answer = pools(model("mamba2", layer(states=STATES)))
    assert (answer.max_total_num_tokens, answer.pools) == (32_768, ())


@pytest.mark.parametrize(
    ("context_tokens", "asked", "requests"),
    # 262,144 tokens fit: 512 requests a context, between 2048 and 4096
    [(32_768, None, 4_096), (131_072, None, 2_048), (50_000, None, 2_684), (32_768, 100, 100)],
)
def test_running_requests(context_tokens, asked, requests):
    answer = pools(LLAMA, context_tokens=context_tokens, max_running_requests=asked)
    assert answer.max_running_requests == requests


def test_running_requests_need_a_context_length():
    with pytest.raises(InputError, match="context_tokens"):
        pools(model("llama", layer(HEADS), max_context_tokens=None))


V4_WINDOW = Cache(entry=CompressedEntry(size=512, rope_size=64), reach="sliding", span_tokens=128)


def v4(model_type: str, *ratios: int) -> ModelSpec:
    entry = CompressedEntry(size=512, rope_size=64)
    return model(
        model_type,
        *(
            layer(V4_WINDOW, *([Cache(entry=entry, tokens_per_entry=ratio)] if ratio else []))
            for ratio in ratios
        ),
    )


def test_v4_pages_are_padded_and_states_set_apart():
    # 584 bytes in pages of 256, 64 and 2 entries padded to 576: 585, 585, 864 each; 132 of index at ratio 4
    answer = pools(v4("deepseek_v4", 0, 4, 128))
    assert answer.pools[0].bytes_per_token == Fraction(585 + 132, 4) + Fraction(864, 128)
    # a ring of 8 rows in fp32 for each page of 256: 8/256 × 4 × (512 + 128) × 4
    assert answer.pools[1].bytes_per_token == 3 * 585 + 320
    # 257 requests and a spare ring of 128 rows, one more, rounded up to 128; keys and scores of 512 in fp32
    assert answer.fixed_bytes == (257 * 128 + 256) * 2 * 512 * 4
    assert answer.pools[1].tokens == answer.pools[0].tokens // 10 // 256 * 256


def test_v41_windows_follow_requests_and_cached_prefixes():
    answer = pools(v4("deepseek_v41", 0, 2, 1), max_running_requests=8)
    cap = 8 * (128 + 128 + 256 + 256) + 2 * 8_192 + 256
    assert answer.pools[1].tokens == cap + 4 * 8 * (128 + 256)


def test_a_stage_of_v41_without_entries_is_refused():
    with pytest.raises(InputError, match="pipeline_parallel=2"):
        pools(v4("deepseek_v41", 2, 0), placement=Placement(pipeline_parallel=2))


def test_v4_with_a_ratio_of_its_own_is_refused():
    with pytest.raises(UnsupportedModelError, match="ratio 8"):
        pools(v4("deepseek_v4", 8))


def test_v4_pages_are_multiples_of_128():
    with pytest.raises(InputError, match="page_tokens=64"):
        pools(v4("deepseek_v4", 4), page_tokens=64)


@pytest.mark.parametrize("model_type", ["jamba", "mpt", "falcon", "minimax_m1", "whisper", "new_model"])
def test_models_without_a_class_are_refused_by_name(model_type):
    with pytest.raises(UnsupportedModelError, match=rf"a-{model_type}: SGLang 0\.5\.23"):
        pools(model(model_type, layer(HEADS)))


@pytest.mark.parametrize("layout", ["q8_0", "int8", "fp8/bf16", "kivi4"])
def test_layouts_of_other_engines_are_refused(layout):
    with pytest.raises(InputError, match="SGLang has no KV layout"):
        pools(LLAMA, layout)


def test_a_latent_layout_for_heads_is_refused():
    with pytest.raises(InputError, match="fp8_ds_mla"):
        pools(LLAMA, "fp8_ds_mla")


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"tensor_parallel": 0}, "tensor_parallel=0"),
        ({"tensor_parallel": 8, "dp_attention": 3}, "dp_attention=3"),
        (
            {"tensor_parallel": 8, "dp_attention": 4, "decode_context_parallel": 4},
            "decode_context_parallel=4",
        ),
    ],
)
def test_placements_that_do_not_divide_are_refused(sizes, words):
    with pytest.raises(InputError, match=words):
        Placement(**sizes)


def test_heads_that_do_not_divide_are_refused():
    with pytest.raises(InputError, match="8 KV heads cannot be split over 3"):
        pools(LLAMA, placement=Placement(tensor_parallel=3))


def test_more_stages_than_layers_are_refused():
    with pytest.raises(InputError, match="pipeline_parallel=5"):
        pools(LLAMA, placement=Placement(pipeline_parallel=5))


@pytest.mark.parametrize(
    "settings",
    [
        {"available_bytes": 0},
        {"page_tokens": 0},
        {"num_draft_layers": -1},
        {"swa_full_tokens_ratio": Fraction(2)},
        {"mamba_full_memory_ratio": Fraction(0)},
    ],
)
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(InputError, match=next(iter(settings))):
        pools(LLAMA, **settings)


def test_a_budget_below_one_page_is_refused():
    with pytest.raises(InfeasibleError, match=r"needs 1,048,576 bytes .* available 1,000,000: give 48,576"):
        pools(LLAMA, available_bytes=1_000_000, page_tokens=64)


def test_steps_show_the_numbers():
    steps = {step.label: step for step in pools(LLAMA, available_bytes=1_000 * 16_384).steps}
    assert steps["KV of a token"].formula == "4 × 4,096 (attention TP 1)"
    assert steps["max_total_num_tokens"].formula == "16,384,000 // 16,384, whole pages of 1"
    assert steps["max_total_num_tokens"].result == "1,000"
    assert "pool_configurator.py" in steps["max_total_num_tokens"].source
