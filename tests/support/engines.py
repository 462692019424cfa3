"""An engine so small that its times can be worked out by hand, and workloads for it.

The model has one layer, hidden size 10, one head of 5, a gated feed-forward part of 10, a vocabulary of 10:

    linear weights  q 10·5 + o 5·10 + k, v 2·10·5 + ffn 3·10·10 = 500
    GEMM            2·500·T + 2·10·10 (logits)  = 1000·T + 200
    attention       1·1·(5 + 5)·(2·T·P + T·(T + 1)) = 10·(2·T·P + T² + T)
    all-reduce      2·1·10·2 = 40 bytes a token
    KV in bf16      (5 + 5)·2 = 20 bytes a token
    weights read    2·(LM head 100 + norms 30) + 2·500 in bf16 = 1260 bytes a step
"""

from typing import Any

import numpy as np

from warmset.model import ModelSpec
from warmset.model.spec import Attention, Cache, FeedForward, KvHeads, Layer, Mixer
from warmset.serving import EngineTimes, Fleet, LoadPath, RequestHits, Workload
from warmset.serving.latency import EngineRates

TINY = ModelSpec(
    name="tiny",
    model_type="test",
    cache_class="MHA",
    hidden_size=10,
    vocab_size=10,
    tied_embeddings=False,
    layers=(
        Layer(
            mixers=(
                Mixer(
                    caches=(Cache(entry=KvHeads(num_heads=1, key_size=5, value_size=5)),),
                    attentions=(Attention(num_heads=1, key_size=5, value_size=5),),
                    split_parameters=100,
                    kv_parameters=100,
                ),
            ),
            feed_forward=FeedForward(dense_parameters=300),
            norm_parameters=20,
        ),
    ),
)
ROUND_RATES: dict[str, Any] = {
    "gemm_flops_per_s": 1e6,
    "attention_flops_per_s": 1e6,
    "all_reduce_bytes_per_s": None,
    "prefill_startup_s": 0.5,
    "hbm_hit_s_per_token": 1e-4,
    "prefill_scale_ratio": 1.0,
    "prefill_chunk_tokens": 1000,
    "weight_bytes_per_s": 1.26e6,
    "kv_bytes_per_s": 2e6,
    "decode_startup_s": 0.004,
    "decode_layers_s": 0.002,
    "decode_scale_ratio": 1.0,
}
FREE = 1e30
"""A rate at which nothing takes any time."""


def engine(num_gpus: int = 1, **rates: Any) -> EngineTimes:
    """The tiny model at round rates, with some of them changed."""
    return EngineTimes(
        spec=TINY,
        weight_format="bf16",
        num_gpus=num_gpus,
        kv_bytes_per_token=20,
        rates=EngineRates(**(ROUND_RATES | rates)),
    )


def workload(arrival_s: Any, input_tokens: Any, output_tokens: Any = 1) -> Workload:
    """Columns from lists, or from one number for all."""
    arrivals = np.asarray(arrival_s, dtype=np.float64)
    columns = [
        np.zeros(arrivals.size, np.int64) + np.asarray(tokens) for tokens in (input_tokens, output_tokens)
    ]
    return Workload(arrivals, *columns)


def fleet(
    times: EngineTimes, num_nodes: int = 1, engines_per_node: int = 1, *paths: LoadPath, **more: Any
) -> Fleet:
    return Fleet(
        engine=times,
        num_nodes=num_nodes,
        engines_per_node=engines_per_node,
        paths=paths,
        **({"pool_tokens_per_engine": 10**9} | more),
    )


def hits(requests: int, hbm: Any = 0, *lower: Any) -> RequestHits:
    """Hit tokens in HBM and in each lower tier, from lists or one number for all."""
    tiers = [np.zeros(requests, np.int64) + np.asarray(tokens) for tokens in lower]
    return RequestHits(
        np.zeros(requests, np.int64) + np.asarray(hbm),
        np.stack(tiers, axis=1) if tiers else np.zeros((requests, 0), np.int64),
    )
