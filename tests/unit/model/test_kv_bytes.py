from fractions import Fraction

import pytest

from warmset.errors import InputError
from warmset.model import cached_prefix_bytes, kv_bytes, kv_layout, load_model, sequence_bytes

BF16 = kv_layout("bf16")


def test_the_parts_of_a_windowed_model():
    # Gemma-3-27B: 10 full layers and 52 with a window of 1,024, each 16 KV heads of 128 twice in bf16.
    kv = kv_bytes(load_model("gemma-3-27b-it"), BF16)
    assert kv.growth_bytes_per_token == 10 * 8192
    assert kv.windows == {1024: 52 * 8192}
    assert (kv.window_bytes_per_token, kv.window_tokens) == (52 * 8192, 1024)
    assert kv.constant_bytes_per_sequence == 1024 * 52 * 8192


def test_a_window_fills_and_then_stays():
    spec = load_model("Mistral-7B-v0.1")
    sizes = [sequence_bytes(spec, tokens, BF16) for tokens in (0, 1, 4096, 4097, 100_000)]
    assert sizes == [0, 131_072, 4096 * 131_072, 4096 * 131_072, 4096 * 131_072]


def test_compressed_entries_exist_once_all_their_tokens_are_there():
    # DeepSeek-V4-Flash: 21 layers with an entry for 4 tokens (1,024 bytes, index key 132), 20 for 128.
    spec = load_model("DeepSeek-V4-Flash")
    fixed = 12_206_080 + 43 * 1024 * 128
    assert sequence_bytes(spec, 131, BF16) == fixed + 21 * 32 * (1024 + 132) + 20 * 1024
    assert sequence_bytes(spec, 132, BF16) == fixed + 21 * 33 * (1024 + 132) + 20 * 1024
    growth = kv_bytes(spec, BF16).growth_bytes_per_token
    assert growth == Fraction(21 * (1024 + 132), 4) + Fraction(20 * 1024, 128)


def test_a_cached_prefix_keeps_a_state_at_each_reuse_point():
    spec = load_model("Qwen3.5-27B")
    state = 153_944_064
    assert cached_prefix_bytes(spec, 1000, BF16) == 1000 * 65_536 + state
    assert cached_prefix_bytes(spec, 1000, BF16, snapshot_tokens=1000) == 1000 * 65_536 + state
    assert cached_prefix_bytes(spec, 1000, BF16, snapshot_tokens=300) == 1000 * 65_536 + 3 * state
    assert cached_prefix_bytes(spec, 1000, BF16, snapshot_tokens=1001) == 1000 * 65_536


def test_a_cached_prefix_keeps_a_window_at_each_reuse_point():
    # Up to a whole window, and no more than the tokens since the point before.
    spec = load_model("gemma-3-27b-it")
    growth, window = 10 * 8192, 52 * 8192
    assert cached_prefix_bytes(spec, 500, BF16) == 500 * (growth + window)
    assert cached_prefix_bytes(spec, 40_960, BF16) == 40_960 * growth + 1024 * window
    assert cached_prefix_bytes(spec, 40_960, BF16, 4096) == 40_960 * growth + 10 * 1024 * window
    assert cached_prefix_bytes(spec, 40_960, BF16, 512) == 40_960 * (growth + window)


def test_an_encoder_input_is_no_part_of_a_prefix():
    spec = load_model("whisper-large-v3")
    assert sequence_bytes(spec, 0, BF16) == 245_760_000
    assert cached_prefix_bytes(spec, 100, BF16) == 100 * 163_840


def test_a_plain_model_is_the_same_cached_and_running():
    spec = load_model("Meta-Llama-3.1-8B")
    for snapshot in (None, 1, 16, 1000):
        assert (
            cached_prefix_bytes(spec, 999, BF16, snapshot) == sequence_bytes(spec, 999, BF16) == 999 * 131_072
        )


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda spec: sequence_bytes(spec, -1, BF16), "-1 tokens"),
        (lambda spec: cached_prefix_bytes(spec, -1, BF16), "-1 tokens"),
        (lambda spec: cached_prefix_bytes(spec, 10, BF16, 0), "snapshot_tokens=0 is not positive"),
        (lambda spec: cached_prefix_bytes(spec, 10, BF16, -5), "snapshot_tokens=-5 is not positive"),
    ],
    ids=["sequence", "prefix", "snapshot 0", "snapshot -5"],
)
def test_lengths_that_are_none(ask, words):
    with pytest.raises(InputError, match=words) as error:
        ask(load_model("Meta-Llama-3.1-8B"))
    assert "\n" not in str(error.value)
