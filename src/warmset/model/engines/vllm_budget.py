"""Bytes that vLLM leaves for KV on a GPU, and how many tokens it batches by default."""

from fractions import Fraction
from math import ceil

from warmset.errors import InfeasibleError, InputError
from warmset.model.engines.vllm_types import Capability

UTILIZATION = Fraction(92, 100)
"""`--gpu-memory-utilization` of 0.33.0; it was 0.9 before."""

GIB = 2**30

CAPABILITIES: dict[Capability, tuple[str, ...]] = {
    "sm90": ("h100", "h200", "h800", "h20", "gh200"),
    "sm100": ("b200", "b300", "gb200", "gb300"),
    "sm120": ("rtx5090", "rtxpro6000"),
}
"""Cards by the start of their names, without spaces and hyphens."""


def available_kv_bytes(
    memory_bytes: int, weight_bytes: int, overhead_bytes: int, utilization_ratio: Fraction = UTILIZATION
) -> int:
    """The "Available KV cache memory" of one GPU: what may be used, less weights and overhead.

    `overhead_bytes`: the peak of activations at `--max-num-batched-tokens`, CUDA graphs and what other
    libraries hold. It is measured when the engine starts and cannot be derived: 1 to 3 GiB are normal.

    Source: vLLM 0.33.0 v1/worker/utils.py request_memory, v1/worker/gpu_worker.py.
    Raises: InputError when the ratio is not above 0 and at most 1; InfeasibleError when nothing is left.
    """
    if not 0 < utilization_ratio <= 1:
        raise InputError(
            f"gpu_memory_utilization={float(utilization_ratio)}: it must be above 0 and at most 1"
        )
    requested_bytes = ceil(memory_bytes * utilization_ratio)
    available = requested_bytes - weight_bytes - overhead_bytes
    if available <= 0:
        raise InfeasibleError(
            f"no memory is left for KV: weights {weight_bytes / GIB:.2f} GiB and overhead "
            f"{overhead_bytes / GIB:.2f} GiB of {requested_bytes / GIB:.2f} GiB; more GPUs to split the "
            f"weights over would do, or a GPU with {-available / GIB / float(utilization_ratio):.2f} GiB more"
        )
    return available


def capability_of(gpu_name: str) -> Capability:
    """The kind of a card, by its name with or without `NVIDIA`; `sm80` where it has no kernels of its own.

    >>> [capability_of(name) for name in ("H20-96G", "NVIDIA B200", "RTX PRO 6000", "L40S", "MI300X")]
    ['sm90', 'sm100', 'sm120', 'sm80', 'sm80']
    """
    name = gpu_name.lower().replace(" ", "").replace("-", "").removeprefix("nvidia").removeprefix("geforce")
    return next((kind for kind, starts in CAPABILITIES.items() if name.startswith(starts)), "sm80")


def default_batched_tokens(
    memory_bytes: int, gpu_name: str = "", *, offline: bool = False, has_small_compute: bool = False
) -> int:
    """`--max-num-batched-tokens` where it is not given, by the memory of the card.

    `offline`: the `LLM` class, not the server. An A100 has the defaults of a small card, and so has a GB10
    (`has_small_compute`), because large batches do not pay there.

    Source: vLLM 0.33.0 engine/arg_utils.py get_batch_defaults.
    """
    if memory_bytes >= 160 * GIB:
        return 16384
    is_large = memory_bytes >= 70 * GIB and "a100" not in gpu_name.lower() and not has_small_compute
    if is_large:
        return 16384 if offline else 8192
    return 8192 if offline else 2048


def default_running_requests(
    memory_bytes: int, gpu_name: str = "", *, has_small_compute: bool = False
) -> int:
    """`--max-num-seqs` where it is not given, by the memory of the card.

    Source: vLLM 0.33.0 engine/arg_utils.py get_batch_defaults.
    """
    is_large = memory_bytes >= 70 * GIB and "a100" not in gpu_name.lower() and not has_small_compute
    return 1024 if is_large or memory_bytes >= 160 * GIB else 256
