"""What must hold for the arithmetic and the weights of any shipped model."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmset.model import (
    decode_weight_bytes_read,
    load_model,
    num_parameters,
    prefill_flops,
    shipped_models,
    weight_bytes,
)

NAMES = sorted(shipped.model for shipped in shipped_models())
MODELS = st.sampled_from(NAMES)
TOKENS = st.integers(1, 200_000)
CACHED = st.integers(0, 100_000)


@cache
def spec_of(model):
    return load_model(model)


def attentions(spec):
    return [part for layer in spec.layers for mixer in layer.mixers for part in mixer.attentions]


@given(MODELS, CACHED, TOKENS, TOKENS)
def test_a_prefill_in_two_parts_attends_as_often(model, cached, first, second):
    spec = spec_of(model)
    whole = prefill_flops(spec, first + second, cached)
    one, two = prefill_flops(spec, first, cached), prefill_flops(spec, second, cached + first)
    assert one.attention + two.attention == whole.attention
    assert one.gemm + two.gemm >= whole.gemm


PLAIN = [
    model
    for model in NAMES
    if not any(part.latent or part.reach == "cross" for part in attentions(load_model(model)))
]


@given(st.sampled_from(PLAIN), CACHED, TOKENS, TOKENS)
def test_a_prefill_in_two_parts_computes_the_logits_once_more(model, cached, first, second):
    """With a latent, keys and values are expanded once more too."""
    spec = spec_of(model)
    whole = prefill_flops(spec, first + second, cached)
    one, two = prefill_flops(spec, first, cached), prefill_flops(spec, second, cached + first)
    assert one.gemm + two.gemm == whole.gemm + 2 * spec.vocab_size * spec.hidden_size


@given(MODELS, st.lists(st.tuples(TOKENS, CACHED), min_size=1, max_size=20))
def test_columns_agree_with_single_requests(model, requests):
    spec = spec_of(model)
    new, cached = np.array(requests, dtype=np.int64).T
    columns = prefill_flops(spec, new, cached)
    single = [prefill_flops(spec, *request) for request in requests]
    assert columns.gemm.dtype == columns.attention.dtype == np.float64
    np.testing.assert_allclose(columns.gemm, [flops.gemm for flops in single], rtol=1e-12)
    np.testing.assert_allclose(columns.attention, [flops.attention for flops in single], rtol=1e-9)


@given(MODELS, CACHED, TOKENS)
def test_more_tokens_take_more_work(model, cached, new):
    spec = spec_of(model)
    fewer, more = prefill_flops(spec, new, cached), prefill_flops(spec, new + 1, cached)
    assert 0 <= fewer.attention <= more.attention
    assert 0 < fewer.gemm < more.gemm


@given(MODELS, st.integers(1, 4096))
def test_a_larger_batch_reads_more_weights_but_never_more_than_there_are(model, batch_size):
    spec = spec_of(model)
    reads = [decode_weight_bytes_read(spec, "bf16", size) for size in (batch_size, batch_size + 1)]
    assert 0 < reads[0] <= reads[1] * (1 + 1e-12)
    assert reads[1] <= weight_bytes(spec, "bf16") * (1 + 1e-12)


@pytest.mark.parametrize("model", NAMES)
def test_weights_take_two_bytes_in_bf16_and_fewer_otherwise(model):
    spec = spec_of(model)
    whole = weight_bytes(spec, "bf16")
    assert type(whole) is int
    assert whole == 2 * num_parameters(spec)
    sizes = [weight_bytes(spec, name) for name in ("mxfp4", "nvfp4", "int8", "fp8")]
    assert sorted(sizes) == sizes
    assert sizes[-1] < whole
