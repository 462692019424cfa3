"""Bytes of the KV cache of a whole model, before any engine rounds or replicates them."""

from warmset.model.layouts import KvLayout, bytes_of_elements
from warmset.model.spec import ModelSpec


def growth_bytes_per_token(spec: ModelSpec, layout: KvLayout) -> int:
    """Bytes that one more token adds to a sequence.

    Formula: MHA, GQA, MQA: n·K·(d_k + d_v)·e;  MLA: n·(c + r)·e
    Source: `docs/method.md`, KV bytes; MLA after arXiv 2405.04434.

    >>> from warmset.model.config import load_model
    >>> growth_bytes_per_token(load_model("Meta-Llama-3.1-405B"), "bf16")  # arXiv 2505.09343, table 1
    516096
    >>> growth_bytes_per_token(load_model("DeepSeek-V3"), "bf16")  # the same table
    70272
    """
    return bytes_of_elements(spec.cached_elements_per_token, layout)


def sequence_bytes(spec: ModelSpec, tokens: int, layout: KvLayout) -> int:
    """Bytes of a running sequence of that many tokens, prompt and output together."""
    return bytes_of_elements(spec.cached_elements_per_token * tokens, layout)


def cached_prefix_bytes(spec: ModelSpec, prefix_tokens: int, layout: KvLayout) -> int:
    """Bytes that a cached prefix takes in any tier.

    With full attention in every layer a prefix needs nothing but its keys and values; a model with
    recurrent state would need a snapshot too.
    """
    return sequence_bytes(spec, prefix_tokens, layout)
