import subprocess
import sys

import numpy as np

from tests.unit.model.test_weights import DENSE, HIDDEN, MIXED, VOCAB
from warmset.model import active_linear_parameters, all_reduce_bytes, decode_flops_per_step, prefill_flops

LOGITS = 2 * VOCAB * HIDDEN


def test_prefill_counts_each_pair_of_query_and_key():
    flops = prefill_flops(DENSE, 3, 10)
    pairs = 11 + 12 + 13
    assert flops.attention == 2 * 2 * 4 * (2 + 2) * pairs
    assert flops.gemm == 2 * 3 * active_linear_parameters(DENSE) + LOGITS
    assert flops.total == flops.gemm + flops.attention


def test_cached_latents_are_expanded_again():
    flops = prefill_flops(MIXED, 3, 10)
    assert flops.attention == 2 * 2 * 4 * (3 + 2) * (11 + 12 + 13)
    expanded = 2 * 2 * 10 * 3 * 4 * (2 + 2)
    assert flops.gemm == 2 * 3 * active_linear_parameters(MIXED) + LOGITS + expanded


def test_nothing_new_costs_nothing():
    assert prefill_flops(MIXED, 0, 10) == (0, 0)
    columns = prefill_flops(MIXED, np.array([0, 3]), np.array([10, 10]))
    assert columns.gemm.tolist() == [0, prefill_flops(MIXED, 3, 10).gemm]


def test_decode():
    dense = decode_flops_per_step(DENSE, 5, 100)
    assert dense == (2 * 5 * active_linear_parameters(DENSE) + 5 * LOGITS, 2 * 2 * 4 * (2 + 2) * 100)
    assert decode_flops_per_step(MIXED, 5, 100).attention == 2 * 2 * 4 * (2 * 3 + 1) * 100


def test_all_reduce():
    assert all_reduce_bytes(DENSE, 10) == 2 * 2 * 10 * HIDDEN * 2


def test_sizes_need_no_numpy():
    script = (
        "import sys; from warmset.model import load_model, growth_bytes_per_token; "
        "growth_bytes_per_token(load_model('gpt2'), 'bf16'); print('numpy' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
