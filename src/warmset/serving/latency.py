"""Times of one engine: prefill, decode step and KV load, each a sum of named terms.

    prefill = startup + GEMM / rate + attention / rate + all-reduce / rate + cached tokens x hit cost
    decode  = startup + weights / rate + KV / rate + layers x (all-reduce + routing)
    load    = fixed + bytes / rate

Source: forms and constants as `catalog/defaults.toml` says, each with its error on published measurements.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warmset.model import (
    ModelSpec,
    WeightFormat,
    all_reduce_bytes,
    decode_weight_bytes_read,
    prefill_flops,
)

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class EngineRates:
    """What the GPUs of one engine do together; efficiencies are already in the rates."""

    gemm_flops_per_s: float
    attention_flops_per_s: float
    all_reduce_bytes_per_s: float | None
    """`None` on a single GPU: there is nothing to reduce."""
    prefill_startup_s: float
    hbm_hit_s_per_token: float
    prefill_scale_ratio: float
    prefill_chunk_tokens: int
    weight_bytes_per_s: float
    kv_bytes_per_s: float
    decode_startup_s: float
    decode_layers_s: float
    """What a step spends per layer besides bytes, over all layers: all-reduces, routing, grouped kernels."""
    decode_scale_ratio: float


@dataclass(frozen=True, slots=True)
class EngineTimes:
    """The latency model of one engine with one model on it."""

    spec: ModelSpec
    weight_format: WeightFormat
    num_gpus: int
    kv_bytes_per_token: int
    """On all GPUs of the engine together, copies included."""
    rates: EngineRates

    def prefill_compute_s(self, new_tokens: Int64s, cached_tokens: Int64s) -> Floats:
        """Time the GPUs are busy with each prompt; `startup` comes on top of it as latency only."""
        flops = prefill_flops(self.spec, new_tokens, cached_tokens)
        rates = self.rates
        compute = flops.gemm / rates.gemm_flops_per_s + flops.attention / rates.attention_flops_per_s
        if rates.all_reduce_bytes_per_s is not None:
            ring = 2 * (self.num_gpus - 1) / self.num_gpus
            compute = (
                compute + ring * new_tokens * all_reduce_bytes(self.spec, 1) / rates.all_reduce_bytes_per_s
            )
        return np.asarray(rates.prefill_scale_ratio * compute + rates.hbm_hit_s_per_token * cached_tokens)

    def weight_read_s(self, batch: int) -> float:
        """Time to stream the weights that a step of this batch touches."""
        return decode_weight_bytes_read(self.spec, self.weight_format, batch) / self.rates.weight_bytes_per_s

    def kv_read_s(self, context_tokens: float) -> float:
        """Time to read the KV of so many tokens, over all GPUs of the engine."""
        return (
            self.rates.decode_scale_ratio
            * context_tokens
            * self.kv_bytes_per_token
            / self.rates.kv_bytes_per_s
        )

    def decode_step_s(self, batch: int, context_tokens: float) -> float:
        """One step in which every active request gets a token and no prompt is prefilled.

        `context_tokens` counts the cached tokens of all requests of the batch.
        """
        rates = self.rates
        fixed = rates.decode_startup_s + self.weight_read_s(batch) + rates.decode_layers_s
        return rates.decode_scale_ratio * fixed + self.kv_read_s(context_tokens)


@dataclass(frozen=True, slots=True)
class LoadPath:
    """The way of cached KV from one lower tier of a node into HBM."""

    bytes_per_token: int
    """What moves for one token, copies for every GPU that reads its own included."""
    bytes_per_s: float
    fixed_s: float
    """Added to each request that loads anything: scheduler, connector and the medium's own latency."""
