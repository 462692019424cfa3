"""All sizes of a model at once, the pool that physics allows, and the formulas that are shown for both."""

import json
from fractions import Fraction

import pytest

from tests.support.small_models import mixers_alone
from warmset.errors import InfeasibleError, InputError
from warmset.facts import Fact
from warmset.model import Placement, kv_layout, load_model, resolve_config
from warmset.model.engine_pools import EngineQuestion, size_engine
from warmset.model.shipped import find_shipped
from warmset.model.size import SizeQuestion, format_words, size_model
from warmset.model.spec import Cache, CompressedEntry, IndexKey, KvHeads, Latent, Mixer, StatePart
from warmset.model.steps import kv_steps, weight_steps
from warmset.model.weights import WeightFormats

GIB = 2**30
BF16, FP8 = kv_layout("bf16"), kv_layout("fp8")
# Qwen3-8B: 36 layers x 8 KV heads x (128 + 128) x 2 bytes; 8,190,735,360 parameters, as Hugging Face counts.
GROWTH, PARAMETERS = 147_456, 8_190_735_360


def question(*lengths, **words):
    return SizeQuestion(**{"lengths": lengths, "layout": BF16, "cached_layout": BF16} | words)


def card(memory_gib, **ends):
    return Fact(value=memory_gib * GIB, unit="bytes", origin="given", source="these tests", **ends)


def physics(**words):
    return EngineQuestion(name="physics", **words)


def pool_of(name, placement=None, weight_bytes=0, **words):
    return size_engine(load_model(name), BF16, placement or Placement(), weight_bytes, physics(**words))


def test_a_decode_step_of_a_batch():
    one = size_model(load_model("Qwen3-8B"), question(1000, batch_size=1)).decode_step["1000"]
    batch = size_model(load_model("Qwen3-8B"), question(1000, batch_size=7)).decode_step["1000"]
    assert (one.kv_bytes, batch.kv_bytes) == (1000 * GROWTH, 7 * 1000 * GROWTH)
    # Each sequence multiplies every linear weight and meets its own 1,000 tokens; the weights are read once.
    assert batch.flops == 7 * one.flops
    assert (
        batch.weight_bytes == one.weight_bytes == pytest.approx(2 * (PARAMETERS - 151_936 * 4096), rel=1e-3)
    )


def test_experts_make_a_batch_read_more_weights():
    spec = load_model("Mixtral-8x7B-v0.1")
    steps = [
        size_model(spec, question(1, batch_size=size)).decode_step["1"].weight_bytes for size in (1, 1000)
    ]
    # 32 layers of 8 experts of 3 x 4,096 x 14,336 weights: 2 of them for one token, all for a thousand.
    assert steps[1] - steps[0] == pytest.approx(6 * 32 * 3 * 4096 * 14_336 * 2, rel=1e-6)


def test_weights_in_the_format_that_is_asked_for():
    spec = load_model("Qwen3-8B")
    own, asked = (size_model(spec, question(1, weights=weights)) for weights in (None, "fp8"))
    assert (own.weight_format, asked.weight_format) == ("bf16", "fp8")
    assert own.weight_bytes == pytest.approx(2 * PARAMETERS, rel=1e-3)
    # Embedding and LM head, 151,936 x 4,096 each, stay in 16 bits.
    tables = 2 * 151_936 * 4096
    assert asked.weight_bytes == pytest.approx(PARAMETERS + tables, rel=2e-3)


def test_a_mix_of_formats_in_words():
    assert format_words(WeightFormats(*["fp8"] * 4)) == "fp8"
    assert format_words(WeightFormats("bf16", "bf16", "bf16", "mxfp4")) == "bf16, mxfp4 routed experts"
    assert format_words(WeightFormats("bf16", "fp8", "fp8", "fp8")) == "fp8, bf16 attention"


def test_one_gpu_of_two_by_two():
    found = size_model(
        load_model("Qwen3-8B"), question(10, placement=Placement(tensor_parallel=2, pipeline_parallel=2))
    )
    assert found.per_gpu.num_gpus == 4
    assert found.per_gpu.growth_bytes_per_token == GROWTH // 4  # half of the heads of 18 layers
    assert found.per_gpu.sequence_bytes == {"10": 10 * GROWTH // 4}
    assert found.per_gpu.replication_factor == 1
    # Half of the layers and of one of the two tables on each side of the pipeline, and half of that.
    assert found.per_gpu.weight_bytes == pytest.approx(2 * PARAMETERS / 4, rel=1e-3)
    assert found.sequence_bytes == {"10": 10 * GROWTH}


NOTES = [
    ("Qwen3-8B", {}, "reuse points", False),
    ("Qwen3-8B", {"lengths": (40_960,)}, "beyond the model's context", False),
    ("Qwen3-8B", {"lengths": (1, 40_961)}, "40,961 tokens are beyond the model's context of 40,960", True),
    ("Qwen3.5-27B", {}, "with one state at its end", True),
    ("Qwen3.5-27B", {"snapshot_tokens": 784}, "with one state at its end", False),
    ("Qwen3.5-27B", {"snapshot_tokens": 784, "lengths": (0, 784)}, "nothing of them", False),
    ("Qwen3.5-27B", {"snapshot_tokens": 784, "lengths": (783,)}, "783 tokens are fewer than the 784", True),
    ("gemma-3-4b-it", {}, "windows:", False),  # one window for all
    ("Gemma-4-31B-IT-NVFP4", {}, "asks for an fp8 KV cache", False),  # a layout was given
    ("Gemma-4-31B-IT-NVFP4", {"layout": None}, "asks for an fp8 KV cache", True),
    ("Qwen3-8B", {"layout": None}, "asks for an fp8 KV cache", False),
    ("Kimi-K3", {}, "give --weights", True),
    ("Kimi-K3", {"weights": "int4"}, "give --weights", False),
]


@pytest.mark.parametrize(("name", "words", "text", "is_there"), NOTES)
def test_notes(name, words, text, is_there):
    notes = size_model(load_model(name), question(**{"lengths": (4096,)} | words)).notes
    assert any(text in note for note in notes) is is_there


def test_windows_of_two_lengths_are_noted():
    entry = KvHeads(num_heads=1, key_size=8, value_size=8)
    windows = [Cache(entry=entry, reach="sliding", span_tokens=span) for span in (16, 16, 1024)]
    found = size_model(mixers_alone(*(Mixer(caches=(cache,)) for cache in windows)), question(1))
    # 2 layers and 1 layer of (8 + 8) x 2 bytes.
    assert "windows: 64 B/token up to 16 tokens, 32 B/token up to 1,024 tokens" in found.notes


def test_the_engine_says_how_far_apart_reuse_points_are():
    engine = EngineQuestion(name="vllm", kv_memory_bytes=20 * GIB, vllm_release="0.30.0")
    spec = load_model("Qwen3.5-27B")
    found = size_model(spec, question(7840, engine=engine))
    # vLLM 0.30.0 logs a block of 784 tokens for it: kv-physics.md, section 8; 153,944,064 bytes of state.
    assert found.engine.snapshot_tokens == 784
    assert found.cached_prefix_bytes == {"7840": 7840 * 65_536 + 10 * 153_944_064}
    own = size_model(spec, question(7840, engine=engine, snapshot_tokens=3920))
    assert own.cached_prefix_bytes == {"7840": 7840 * 65_536 + 2 * 153_944_064}


def test_physics_takes_all_that_is_left():
    found = pool_of("Qwen3-8B", kv_memory_bytes=10_500 * GROWTH, context_tokens=1024)
    assert (found.pool_tokens, found.num_blocks, found.block_tokens) == (10_500, 10_500, 1)
    assert found.max_concurrency == 10_500 / 1024
    assert found.bytes_per_block == GROWTH
    assert (found.least_pool_tokens, found.most_pool_tokens) == (10_500, 10_500)
    assert pool_of("Qwen3-8B", kv_memory_bytes=40_960 * GROWTH).context_tokens == 40_960  # its config


def test_physics_divides_windows_by_sequence():
    # gemma-3-27b-it: 81,920 bytes for every token, 425,984 for each of the last 1,024.
    each = 4096 * 81_920 + 1024 * 425_984
    found = pool_of("gemma-3-27b-it", kv_memory_bytes=3 * each, context_tokens=4096)
    assert (found.max_concurrency, found.pool_tokens) == (3, 3 * 4096)


def test_physics_on_one_gpu_of_several():
    found = pool_of(
        "Qwen3-8B", Placement(tensor_parallel=4), kv_memory_bytes=GROWTH * 512, context_tokens=1024
    )
    assert found.pool_tokens == 4 * 512


def test_a_sequence_fits_to_the_byte():
    assert pool_of("Qwen3-8B", kv_memory_bytes=1024 * GROWTH, context_tokens=1024).max_concurrency == 1
    with pytest.raises(InfeasibleError, match="1,024 tokens takes 150,994,944 bytes"):
        pool_of("Qwen3-8B", kv_memory_bytes=1024 * GROWTH - 1, context_tokens=1024)


def test_memory_for_kv_is_a_share_less_weights_and_overhead():
    words = {"memory": card(100), "context_tokens": 1024, "gpu_name": "a card"}
    assert pool_of("Qwen3-8B", weight_bytes=16 * GIB, **words).available_bytes == (100 - 16 - 2) * GIB
    found = pool_of("Qwen3-8B", weight_bytes=16 * GIB, memory_share=Fraction(9, 10), **words)
    assert found.available_bytes == (90 - 16 - 2) * GIB
    # Overheads of 1 and 3 GiB.
    assert found.most_pool_tokens == (90 - 16 - 1) * GIB // GROWTH
    assert found.least_pool_tokens == (90 - 16 - 3) * GIB // GROWTH
    assert "a card: 100 GiB (given), of it 0.9, less weights and an overhead of 2 GiB" in found.notes[0]


def test_a_range_of_the_memory_of_a_card():
    memory = card(100, low=98 * GIB, high=101 * GIB)
    found = pool_of("Qwen3-8B", memory=memory, context_tokens=1024, overhead_bytes=4 * GIB)
    pools = (found.least_pool_tokens, found.pool_tokens, found.most_pool_tokens)
    assert pools == tuple(gib * GIB // GROWTH for gib in (94, 96, 97))
    assert "4 GiB (given)" in found.notes[0]


def test_a_corner_in_which_nothing_fits_is_a_pool_of_none():
    # One sequence of 1,024 tokens takes 144 MiB: with 2 GiB of overhead it fits, with 3 GiB it does not.
    found = pool_of("Qwen3-8B", memory=card(3), context_tokens=1024)
    assert (found.least_pool_tokens, found.pool_tokens) == (0, GIB // GROWTH)


# `--gpu-memory-utilization` of vLLM 0.33.0 is 0.92; physics takes all.
@pytest.mark.parametrize(("name", "share"), [("physics", 1), ("vllm", Fraction(92, 100))])
def test_shares_of_the_memory(name, share):
    asked = EngineQuestion(name=name, memory=card(100))
    assert asked.usable_bytes == int(100 * GIB * share)
    found = size_engine(load_model("Qwen3-8B"), BF16, Placement(), 0, asked)
    assert found.available_bytes == int(100 * GIB * share) - 2 * GIB


@pytest.mark.parametrize("share", [Fraction(0), Fraction(-1, 2), Fraction(101, 100)])
def test_shares_that_are_none(share):
    with pytest.raises(InputError, match="above 0 and at most 1"):
        pool_of("Qwen3-8B", memory=card(100), memory_share=share)
    assert pool_of("Qwen3-8B", memory=card(100), memory_share=Fraction(1)).available_bytes == 98 * GIB


def test_a_model_without_a_context_needs_one():
    config = json.loads(find_shipped("Qwen3-8B").path.read_bytes())
    del config["max_position_embeddings"]
    spec = resolve_config(config, "m")
    with pytest.raises(InputError, match="give --max-model-len"):
        size_engine(spec, BF16, Placement(), 0, physics(kv_memory_bytes=GIB))


def fit(name, memory_gib, **words):
    engine = physics(memory=card(memory_gib), context_tokens=1024, gpu_name="a card")
    return size_model(load_model(name), question(1, engine=engine, **words))


def test_the_smallest_tensor_parallel_that_fits_the_weights():
    # Qwen3-8B is 15.26 GiB in bf16: with 2 GiB of overhead a card of 18 holds it, of 17 does not.
    assert fit("Qwen3-8B", 18).engine.available_bytes < GIB
    with pytest.raises(InfeasibleError, match=r"15\.3 GiB .* 15 GiB are there: tensor_parallel=2 fits"):
        fit("Qwen3-8B", 17)
    with pytest.raises(InfeasibleError, match="tensor_parallel=4 fits"):
        fit("Qwen3-8B", 8)  # 7.6 GiB of weights each over two, 6 GiB are there
    with pytest.raises(InfeasibleError, match="tensor_parallel=4 fits"):
        fit("Qwen3-8B", 8, placement=Placement(tensor_parallel=2))


def test_no_tensor_parallel_fits():
    # 32 heads divide by 32 at most: 0.48 GiB of weights each, and 0.25 GiB are there.
    with pytest.raises(InfeasibleError, match="use smaller weights, pipeline parallelism or a larger GPU"):
        size_model(
            load_model("Qwen3-8B"),
            question(1, engine=physics(memory=card(9 / 4), context_tokens=16)),
        )


def lines(spec, layout=BF16):
    return [(step.label, step.formula, step.result) for step in kv_steps(spec, layout)]


HEADS = KvHeads(num_heads=2, key_size=8, value_size=4)
LATENT = Latent(latent_size=512, rope_size=64)
ENTRY = CompressedEntry(size=512, rope_size=64)
KEY = IndexKey(size=128, default_format="fp8_scaled")
CACHES = [  # bytes by hand: 2 x (8 + 4) x 2; 576 x 2; 512 x 2; 448 + 128 + 8; 128 + 4; 128 x 2
    (
        Cache(entry=HEADS),
        BF16,
        "keys and values, every token",
        "2 KV heads x (8 + 4) in bf16: 48 bytes",
        "96",
    ),
    (
        Cache(entry=HEADS, reach="sliding", span_tokens=1024),
        BF16,
        "keys and values, up to 1,024 tokens",
        "2 KV heads x (8 + 4) in bf16: 48 bytes",
        "96",
    ),
    (
        Cache(entry=HEADS, reach="chunked", span_tokens=8192),
        BF16,
        "keys and values, up to 8,192 tokens, a chunk",
        "2 KV heads x (8 + 4) in bf16: 48 bytes",
        "96",
    ),
    (
        Cache(entry=HEADS, reach="cross", span_tokens=1500),
        BF16,
        "keys and values, for 1,500 tokens of an encoder input",
        "2 KV heads x (8 + 4) in bf16: 48 bytes",
        "96",
    ),
    (
        Cache(entry=LATENT),
        BF16,
        "latent and rotated key, every token",
        "(512 + 64) in bf16: 1,152 bytes",
        "2,304",
    ),
    (
        Cache(entry=ENTRY, tokens_per_entry=128),
        BF16,
        "compressed entry, every token",
        "512 in bf16: 1,024 bytes",
        "16",
    ),
    (
        Cache(entry=ENTRY, reach="sliding", span_tokens=128),
        FP8,
        "window entry, up to 128 tokens",
        "512 in fp8: 584 bytes",
        "1,168",
    ),
    (Cache(entry=KEY), BF16, "index key, every token", "128 in fp8 with a scale: 132 bytes", "264"),
    (
        Cache(entry=KEY),
        kv_layout("bf16", "bf16"),
        "index key, every token",
        "128 in bf16: 256 bytes",
        "512",
    ),
]


@pytest.mark.parametrize(("cache", "layout", "label", "inside", "rate"), CACHES)
def test_steps_of_caches(cache, layout, label, inside, rate):
    mixer = Mixer(caches=(cache,))
    every = f" / {cache.tokens_per_entry} tokens" if cache.tokens_per_entry > 1 else ""
    expected = (label, f"2 layers x [{inside}]{every}", f"{rate} bytes per token")
    assert lines(mixers_alone(mixer, mixer), layout) == [expected]


def test_steps_of_a_large_rate():
    # 40 layers x 64 heads x (128 + 128) x 2 bytes.
    mixer = Mixer(caches=(Cache(entry=KvHeads(num_heads=64, key_size=128, value_size=128)),))
    assert lines(mixers_alone(*[mixer] * 40))[0][2] == "1,310,720 bytes per token"


def test_steps_of_a_rate_that_is_not_whole():
    # 584 bytes for 16 tokens: 36.5.
    assert lines(mixers_alone(Mixer(caches=(Cache(entry=ENTRY, tokens_per_entry=16),))), FP8)[0][2] == (
        "36.5 bytes per token"
    )
    # 584 bytes for 128 tokens: 4.5625.
    assert lines(mixers_alone(Mixer(caches=(Cache(entry=ENTRY, tokens_per_entry=128),))), FP8)[0][2] == (
        "4.5625 bytes per token"
    )


def test_steps_of_states():
    recurrent = StatePart(role="recurrent", num_units=32, unit_elements=128 * 128, bits=32)
    conv = StatePart(role="conv", num_units=3, unit_elements=5)
    mixer = Mixer(states=(recurrent, conv))
    assert lines(mixers_alone(mixer, mixer, mixer)) == [
        # 3 x 32 x 16,384 x 4
        ("recurrent state", "3 layers x 32 x 16,384 elements of 32 bits", "6,291,456 bytes per sequence"),
        ("conv state", "3 layers x 3 x 5 elements of 16 bits", "90 bytes per sequence"),
    ]


def test_steps_of_weights_add_up():
    total, active = weight_steps(load_model("Qwen3-8B"))
    parts = [int(part.split()[0].replace(",", "")) for part in total.formula.split(" + ")]
    assert sum(parts) == int(total.result.replace(",", "")) == pytest.approx(PARAMETERS, rel=6e-4)
    assert 151_936 * 4096 in parts  # the embedding
    # All but two tables of 151,936 x 4,096, and norms.
    assert int(active.result.replace(",", "")) == pytest.approx(PARAMETERS - 2 * 151_936 * 4096, rel=1e-3)


def test_physics_counts_tokens_exactly():
    # 2,046 tokens of room in sequences of 1,000: a float of 2.046 x 1,000 rounds down to 2,045.
    for tokens in range(1000, 3000):
        found = pool_of("Qwen3-8B", kv_memory_bytes=tokens * GROWTH, context_tokens=1000)
        assert found.pool_tokens == tokens
