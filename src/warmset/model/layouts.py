"""How many bits a cached element takes."""

from typing import Literal

KvLayout = Literal["bf16", "fp16", "fp8", "int8"]

BITS_PER_ELEMENT: dict[KvLayout, int] = {"bf16": 16, "fp16": 16, "fp8": 8, "int8": 8}
"""`fp8` and `int8` are the layouts with one scale a layer; the scales are negligible.

Source: vLLM 0.33.0, v1/kv_cache_interface.py. Scales per token and head, 4-bit caches and `fp8_ds_mla` cost
more and are other layouts.
"""


def bytes_of_elements(num_elements: int, layout: KvLayout) -> int:
    """Bytes of that many cached elements, rounded up once."""
    return -(-num_elements * BITS_PER_ELEMENT[layout] // 8)
