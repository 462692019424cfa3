"""Where the KV cache of one model replica lies under tensor parallelism."""

from fractions import Fraction

from warmset.errors import InputError
from warmset.model.layouts import KvLayout, bytes_of_elements
from warmset.model.spec import ModelSpec


def kv_heads_per_gpu(spec: ModelSpec, tensor_parallel: int) -> int:
    """KV heads that each GPU keeps: its share, or a copy of one where there are more GPUs than heads.

    Source: `docs/method.md`, Placement; vLLM 0.33.0 and SGLang 0.5.23 refuse the same splits.
    Raises: InputError when the heads do not divide.
    """
    if tensor_parallel < 1 or spec.num_heads % tensor_parallel:
        raise InputError(
            f"{spec.name}: {spec.num_heads} heads cannot be split over tensor_parallel={tensor_parallel}: "
            f"choose a divisor of {spec.num_heads}"
        )
    more, fewer = max(spec.num_kv_heads, tensor_parallel), min(spec.num_kv_heads, tensor_parallel)
    if more % fewer:
        raise InputError(
            f"{spec.name}: {spec.num_kv_heads} KV heads cannot be split over "
            f"tensor_parallel={tensor_parallel}: choose a divisor or a multiple of the KV heads"
        )
    return max(1, spec.num_kv_heads // tensor_parallel)


def growth_bytes_per_token_per_gpu(spec: ModelSpec, layout: KvLayout, tensor_parallel: int) -> int:
    """Bytes that one more token adds on each GPU. Latent attention keeps the whole latent on every GPU.

    Raises: InputError when the heads do not divide.
    """
    heads = kv_heads_per_gpu(spec, tensor_parallel)
    return bytes_of_elements(spec.num_layers * heads * spec.cached_elements_per_head, layout)


def replication_factor(spec: ModelSpec, tensor_parallel: int) -> Fraction:
    """KV bytes on all GPUs together over the bytes of the model: 1 until there are more GPUs than KV heads.

    Raises: InputError when the heads do not divide.
    """
    return Fraction(kv_heads_per_gpu(spec, tensor_parallel) * tensor_parallel, spec.num_kv_heads)
