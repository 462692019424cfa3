"""What a model costs: from its config.json to the bytes of its KV cache and weights and to its arithmetic."""

from warmset.model.config import load_model, resolve_config
from warmset.model.flops import (
    Flops,
    all_reduce_bytes,
    decode_flops_per_step,
    decode_weight_bytes_read,
    prefill_flops,
)
from warmset.model.kv_bytes import (
    KvBytes,
    cached_prefix_bytes,
    growth_bytes_per_token,
    kv_bytes,
    sequence_bytes,
)
from warmset.model.kv_reads import decode_kv_bytes_read
from warmset.model.layouts import KvLayout, kv_layout
from warmset.model.parameters import active_linear_parameters, active_parameters, num_parameters
from warmset.model.placement import Placement, growth_bytes_per_token_per_gpu, replication_factor
from warmset.model.shipped import shipped_models
from warmset.model.spec import FeedForward, ModelSpec
from warmset.model.weights import WeightFormat, weight_bytes, weight_bytes_per_gpu

__all__ = [
    "FeedForward",
    "Flops",
    "KvBytes",
    "KvLayout",
    "ModelSpec",
    "Placement",
    "WeightFormat",
    "active_linear_parameters",
    "active_parameters",
    "all_reduce_bytes",
    "cached_prefix_bytes",
    "decode_flops_per_step",
    "decode_kv_bytes_read",
    "decode_weight_bytes_read",
    "growth_bytes_per_token",
    "growth_bytes_per_token_per_gpu",
    "kv_bytes",
    "kv_layout",
    "load_model",
    "num_parameters",
    "prefill_flops",
    "replication_factor",
    "resolve_config",
    "sequence_bytes",
    "shipped_models",
    "weight_bytes",
    "weight_bytes_per_gpu",
]
