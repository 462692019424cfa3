"""What must hold for any model, not only for the published ones."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from warmset.errors import InputError
from warmset.model import (
    FeedForward,
    LatentAttention,
    ModelSpec,
    decode_flops_per_step,
    decode_weight_bytes_read,
    growth_bytes_per_token,
    growth_bytes_per_token_per_gpu,
    num_parameters,
    prefill_flops,
    replication_factor,
    resolve_config,
    sequence_bytes,
    weight_bytes,
    weight_bytes_per_gpu,
)

POWERS = st.sampled_from([1, 2, 4, 8, 16])
TOKENS = st.integers(1, 200_000)


@st.composite
def feed_forwards(draw, num_layers):
    num_moe_layers = draw(st.integers(0, num_layers))
    num_experts = draw(st.integers(2, 64))
    experts = {
        "num_moe_layers": num_moe_layers,
        "num_experts": num_experts,
        "experts_per_token": draw(st.integers(1, num_experts)),
        "moe_intermediate_size": draw(st.integers(1, 2048)),
    }
    return FeedForward(
        gated=draw(st.booleans()),
        num_dense_layers=num_layers - num_moe_layers,
        dense_intermediate_size=draw(st.integers(1, 8192)),
        **(experts if num_moe_layers else {}),
    )


@st.composite
def specs(draw, latent=False):
    num_layers, num_kv_heads = draw(st.integers(1, 100)), draw(POWERS)
    head_size = draw(st.integers(1, 256))
    sizes = {"latent_size": 512, "rope_head_size": 64, "nope_head_size": head_size}
    return ModelSpec(
        name="drawn",
        model_type="drawn",
        num_layers=num_layers,
        hidden_size=draw(st.integers(1, 8192)),
        num_heads=num_kv_heads * draw(POWERS),
        num_kv_heads=1 if latent else num_kv_heads,
        key_head_size=head_size + 64 if latent else head_size,
        value_head_size=head_size,
        latent=LatentAttention(**sizes) if latent else None,
        feed_forward=draw(feed_forwards(num_layers)),
        vocab_size=draw(st.integers(1, 200_000)),
        tied_embeddings=draw(st.booleans()),
    )


@given(specs(), st.integers(0, 100_000), TOKENS, TOKENS)
def test_prefill_in_two_parts_costs_the_same(spec, cached, first, second):
    whole = prefill_flops(spec, first + second, cached)
    one, two = prefill_flops(spec, first, cached), prefill_flops(spec, second, cached + first)
    logits = 2 * spec.vocab_size * spec.hidden_size
    assert one.attention + two.attention == whole.attention
    assert one.gemm + two.gemm == whole.gemm + logits


@given(specs(latent=True), st.integers(0, 100_000), TOKENS, TOKENS)
def test_latents_are_expanded_again_for_each_part(spec, cached, first, second):
    whole = prefill_flops(spec, first + second, cached)
    one, two = prefill_flops(spec, first, cached), prefill_flops(spec, second, cached + first)
    logits = 2 * spec.vocab_size * spec.hidden_size
    width = spec.num_heads * (spec.latent.nope_head_size + spec.value_head_size)
    again = 2 * spec.num_layers * (cached + first) * spec.latent.latent_size * width
    assert one.attention + two.attention == whole.attention
    assert one.gemm + two.gemm == whole.gemm + logits + again


@given(specs(), specs(latent=True), st.lists(st.tuples(TOKENS, st.integers(0, 200_000)), min_size=1))
def test_columns_agree_with_single_requests(plain, latent, requests):
    new, cached = np.array(requests, dtype=np.int64).T
    for spec in (plain, latent):
        columns = prefill_flops(spec, new, cached)
        assert columns.gemm.dtype == columns.attention.dtype == np.float64
        single = [prefill_flops(spec, *request) for request in requests]
        np.testing.assert_allclose(columns.gemm, [flops.gemm for flops in single], rtol=1e-12)
        np.testing.assert_allclose(columns.attention, [flops.attention for flops in single], rtol=1e-12)
        np.testing.assert_allclose(columns.total, [flops.total for flops in single], rtol=1e-12)


@given(specs(), TOKENS)
def test_a_decoded_token_costs_as_much_as_a_prefilled_one(spec, context):
    assert decode_flops_per_step(spec, 1, context) == prefill_flops(spec, 1, context - 1)


@given(specs(), TOKENS)
def test_sequences_grow_with_tokens_and_layers(spec, tokens):
    growth = growth_bytes_per_token(spec, "bf16")
    assert sequence_bytes(spec, tokens, "bf16") == growth * tokens
    assert growth == 2 * growth_bytes_per_token(spec, "fp8")
    config = {
        "model_type": "llama",
        "hidden_size": 64,
        "num_attention_heads": spec.num_heads,
        "num_key_value_heads": spec.num_kv_heads,
        "head_dim": spec.key_head_size,
        "intermediate_size": 64,
        "vocab_size": 64,
    }
    growths = [
        growth_bytes_per_token(resolve_config(config | {"num_hidden_layers": num_layers}, "m"), "bf16")
        for num_layers in (spec.num_layers, spec.num_layers + 1)
    ]
    assert growths[0] == growth < growths[1]


@given(st.one_of(specs(), specs(latent=True)), st.integers(1, 64))
def test_gpus_together_hold_at_least_the_model(spec, tensor_parallel):
    try:
        on_each = growth_bytes_per_token_per_gpu(spec, "bf16", tensor_parallel)
    except InputError:
        assert spec.num_heads % tensor_parallel
        return
    logical = growth_bytes_per_token(spec, "bf16")
    assert on_each * tensor_parallel == logical * replication_factor(spec, tensor_parallel) >= logical
    for weight_format in ("bf16", "fp8", "int4"):
        parts = weight_bytes_per_gpu(spec, weight_format, tensor_parallel) * tensor_parallel
        assert parts >= weight_bytes(spec, weight_format)


@given(st.one_of(specs(), specs(latent=True)), st.integers(1, 4096))
def test_a_step_reads_more_weights_for_a_larger_batch_but_never_more_than_there_are(spec, batch_size):
    reads = [decode_weight_bytes_read(spec, "bf16", size) for size in (batch_size, batch_size + 1)]
    assert 0 < reads[0] <= reads[1] * (1 + 1e-12)
    table = 2 * spec.vocab_size * spec.hidden_size
    most = weight_bytes(spec, "bf16") - (0 if spec.tied_embeddings else table)
    assert reads[1] <= most * (1 + 1e-12)


@given(specs())
def test_weights_take_two_bytes_in_bf16_and_fewer_otherwise(spec):
    sizes = [weight_bytes(spec, weight_format) for weight_format in ("nvfp4", "mxfp4", "int4", "int8", "fp8")]
    assume(num_parameters(spec) > 10_000)
    assert weight_bytes(spec, "bf16") == 2 * num_parameters(spec)
    assert sizes[1] < sizes[0] < sizes[3] <= sizes[4] < weight_bytes(spec, "bf16")
    assert sizes[2] < sizes[1]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
CONFIG = {
    "model_type": "mixtral",
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 100,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "max_position_embeddings": 4096,
    "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024},
    "sliding_window": None,
    "layer_types": ["full_attention"] * 4,
    "quantization_config": {"quant_method": "fp8", "kv_cache_scheme": {"num_bits": 8}},
    "torch_dtype": "bfloat16",
    "architectures": ["MixtralForCausalLM"],
    "attn_config": {"kv_n_heads": 2},
    "text_config": None,
    "moe_layers_enum": None,
    "moe_layer_freq": 1,
    "mlp_only_layers": [],
    "tie_word_embeddings": False,
}


@given(st.sampled_from(sorted(CONFIG)), JSON)
def test_any_value_in_any_field_is_used_or_refused_in_one_line(key, value):
    message = refusal_of(CONFIG | {key: value})
    assert message is None or (message.startswith("drawn: ") and len(message.splitlines()) == 1)


def refusal_of(config):
    try:
        spec = resolve_config(config, "drawn")
    except InputError as error:
        return str(error)
    assert growth_bytes_per_token(spec, "bf16") > 0
    return None


def test_the_config_of_that_test_is_sized():
    assert growth_bytes_per_token(resolve_config(CONFIG, "m"), "bf16") == pytest.approx(2 * 4 * 2 * 16 * 2)
