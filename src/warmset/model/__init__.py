"""What a model costs: from its config.json to the bytes of its KV cache and weights and to its arithmetic."""

from warmset.model.config import load_model, resolve_config
from warmset.model.flops import (
    Flops,
    all_reduce_bytes,
    decode_flops_per_step,
    decode_kv_bytes_read,
    decode_weight_bytes_read,
    prefill_flops,
)
from warmset.model.kv_bytes import cached_prefix_bytes, growth_bytes_per_token, sequence_bytes
from warmset.model.layouts import KvLayout
from warmset.model.parameters import active_linear_parameters, active_parameters, num_parameters
from warmset.model.placement import growth_bytes_per_token_per_gpu, kv_heads_per_gpu, replication_factor
from warmset.model.shipped import shipped_models
from warmset.model.spec import CacheClass, FeedForward, LatentAttention, ModelSpec
from warmset.model.weights import WeightFormat, weight_bytes, weight_bytes_per_gpu

__all__ = [
    "CacheClass",
    "FeedForward",
    "Flops",
    "KvLayout",
    "LatentAttention",
    "ModelSpec",
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
    "kv_heads_per_gpu",
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
