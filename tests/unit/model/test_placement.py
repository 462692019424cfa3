from fractions import Fraction

import pytest

from warmset.errors import InputError
from warmset.model import (
    growth_bytes_per_token,
    growth_bytes_per_token_per_gpu,
    kv_heads_per_gpu,
    load_model,
    replication_factor,
)


@pytest.mark.parametrize(
    ("model", "tensor_parallel", "share", "replication"),
    [
        ("Qwen3-235B-A22B", 1, Fraction(1), 1),
        ("Qwen3-235B-A22B", 4, Fraction(1, 4), 1),
        ("Qwen3-235B-A22B", 8, Fraction(1, 4), 2),  # four KV heads, each on two GPUs
        ("Qwen3-235B-A22B", 16, Fraction(1, 4), 4),
        ("gemma-2b", 8, Fraction(1), 8),  # one KV head
        ("DeepSeek-V3", 8, Fraction(1), 8),  # one latent
        ("Llama-2-7b-hf", 32, Fraction(1, 32), 1),
    ],
)
def test_share_of_each_gpu(model, tensor_parallel, share, replication):
    spec = load_model(model)
    per_gpu = growth_bytes_per_token_per_gpu(spec, "bf16", tensor_parallel)
    assert per_gpu == share * growth_bytes_per_token(spec, "bf16")
    assert replication_factor(spec, tensor_parallel) == replication


@pytest.mark.parametrize(
    ("model", "tensor_parallel", "words"),
    [
        ("Qwen3-235B-A22B", 0, "64 heads cannot be split over tensor_parallel=0"),
        ("Qwen3-235B-A22B", 3, "64 heads cannot be split over tensor_parallel=3"),
        ("falcon-7b", 2, "71 heads cannot be split over tensor_parallel=2"),
        ("phi-4", 4, "10 KV heads cannot be split over tensor_parallel=4"),
        ("DeepSeek-V3", 3, "128 heads cannot be split over tensor_parallel=3"),
    ],
)
def test_splits_that_do_not_divide(model, tensor_parallel, words):
    with pytest.raises(InputError, match=words):
        kv_heads_per_gpu(load_model(model), tensor_parallel)
