"""What a model says of itself as a whole."""

import pytest

from tests.support.small_models import mixers_alone
from warmset.model import load_model
from warmset.model.spec import Cache, KvHeads, Latent, Mixer

HEADS = KvHeads(num_heads=2, key_size=8, value_size=8)
LATENT = Cache(entry=Latent(latent_size=8, rope_size=4))


@pytest.mark.parametrize(
    ("name", "is_latent"),
    [
        ("DeepSeek-V3", True),
        ("DeepSeek-V3.2", True),  # an index beside the latents
        ("DeepSeek-V4-Flash", True),  # compressed entries
        ("Kimi-Linear-48B-A3B-Instruct", True),  # latents and states
        ("Qwen3-8B", False),
        ("MiniMax-M3", False),  # an index beside heads
        ("Qwen3.5-27B", False),
        ("Mamba-Codestral-7B-v0.1", False),  # nothing grows
    ],
)
def test_models_whose_kv_every_gpu_copies(name, is_latent):
    assert load_model(name).is_latent is is_latent


def test_only_what_grows_decides_whether_it_is_copied():
    window = Cache(entry=HEADS, reach="sliding", span_tokens=16)
    assert mixers_alone(Mixer(caches=(LATENT, window))).is_latent
    assert not mixers_alone(Mixer(caches=(window,))).is_latent
    assert not mixers_alone(Mixer(caches=(LATENT,)), Mixer(caches=(Cache(entry=HEADS),))).is_latent


@pytest.mark.parametrize(
    ("name", "num_layers"),
    # first_k_dense_replace=3 of 61; moe in all of 94; none
    [("DeepSeek-V3", 58), ("Qwen3-235B-A22B", 94), ("Qwen3-8B", 0)],
)
def test_layers_with_routed_experts(name, num_layers):
    assert load_model(name).num_moe_layers == num_layers
