"""The formats that a checkpoint's own weights are in."""

import re

from warmset.errors import InputError
from warmset.model.spec import ModelSpec, Quantization
from warmset.model.weights import WeightFormat, WeightFormats

FORMATS: dict[str, WeightFormat] = {
    "awq": "int4",
    "bf16": "bf16",
    "e4m3": "fp8",
    "fbgemm_fp8": "fp8",
    "float8_e4m3fn": "fp8",
    "fp16": "fp16",
    "fp4": "mxfp4",
    "fp8": "fp8",
    "gptq": "int4",
    "int4": "int4",
    "int4_g32": "int4_g32",
    "int8": "int8",
    "mxfp4": "mxfp4",
    "nvfp4": "nvfp4",
    "w4a16": "int4",
    "w8a8": "int8",
}
"""Names of methods, algorithms and number formats, in lower case."""

EXPERTS_ONLY = {"mxfp4"}
"""Methods that touch routed experts alone: gpt-oss."""
INT4_EXPERTS = {"kimi_k2"}
"""With compressed-tensors: routed experts in int4 with a scale for 32 weights (Kimi-K2 Thinking, K2.5)."""


CONTAINERS = {"auto-round", "bitsandbytes", "compressed-tensors", "modelopt", "quark"}
"""Methods that hold several formats; the config says which, or nothing does."""


def stated_formats(spec: ModelSpec) -> WeightFormats | None:
    """As `checkpoint_formats`, but `None` where a known method does not say which of its formats it uses.

    Raises: InputError when the method is not known.
    """
    quantization = spec.quantization
    if quantization is not None and quantization.weight_format is None:
        method = quantization.method.lower()
        if method in CONTAINERS and spec.model_type not in INT4_EXPERTS:
            return None
    return checkpoint_formats(spec)


def checkpoint_formats(spec: ModelSpec) -> WeightFormats:
    """What the checkpoint itself is: 16 bits (or 32) unless its config says that it is quantised.

    Modules that the config leaves alone stay in 16 bits where they are named for most layers.

    Raises: InputError when the method is not known, or does not say what the weights are in.
    """
    quantization = spec.quantization
    is_kimi = spec.model_type in INT4_EXPERTS
    plain: WeightFormat = "fp32" if spec.dtype_bits == 32 else "bf16"
    if quantization is None:
        return WeightFormats(*[plain] * 4)
    method = quantization.method.lower()
    if method in EXPERTS_ONLY:
        return WeightFormats(plain, plain, plain, "mxfp4")
    if method == "compressed-tensors" and quantization.weight_format is None and is_kimi:
        return WeightFormats(plain, plain, plain, "int4_g32")
    linear = _known(spec, quantization.weight_format or method)
    experts = linear
    if quantization.expert_format is not None:
        experts = _known(spec, quantization.expert_format)
    return WeightFormats(
        attention=plain if _is_left_alone(quantization, r"attn|attention", spec) else linear,
        dense=plain if _is_left_alone(quantization, r"mlp.*(up|down)|mlp\*?$|mlp\.\*", spec) else linear,
        shared_experts=plain if _is_left_alone(quantization, r"shared_expert", spec) else linear,
        routed_experts=plain if _is_left_alone(quantization, r"(?<!shared_)experts", spec) else experts,
    )


def _known(spec: ModelSpec, name: str) -> WeightFormat:
    found = FORMATS.get(name.lower())
    if found is None:
        raise InputError(
            f"{spec.name}: the config does not say what format {name!r} is: "
            f"give the format of the weights, one of {', '.join(sorted(set(FORMATS.values())))}"
        )
    return found


def _is_left_alone(quantization: Quantization, pattern: str, spec: ModelSpec) -> bool:
    """Whether modules of this kind are named for all layers at once, or for at least half of them."""
    named = [module for module in quantization.unquantized_modules if re.search(pattern, module)]
    layers = [re.search(r"layers\.(\d+)\b", module) for module in named]
    indices = {found.group(1) for found in layers if found is not None}
    return any(found is None for found in layers) or 2 * len(indices) >= max(spec.num_layers, 1)
