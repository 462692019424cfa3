"""What a config says beside its shape: the longest context, the number format, quantisation."""

from warmset.model.fields import Fields
from warmset.model.spec import Quantization

CONTEXT = (
    "max_position_embeddings",
    "max_position_embedding",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "model_max_length",
    "max_sequence_length",
    "max_target_positions",
)
ALREADY_SCALED = {"default", "mrope", "llama3", "longrope", "su"}
"""Kinds of rope scaling after which `max_position_embeddings` is the whole context."""

LARGEST_FACTOR = 1e6

DTYPE_BITS = {"bfloat16": 16, "float16": 16, "half": 16, "float32": 32, "float": 32, "float8_e4m3fn": 8}
GROUP_FORMATS = {"float4": "nvfp4", "float8": "fp8", "int4": "int4", "int8": "int8"}
"""Type and bits of a group in compressed-tensors, and the format that they mean."""

QUANT_ALGORITHM_BITS = {"FP8": 8, "INT8": 8, "NVFP4": 4, "FP4": 4, "INT4": 4}


def max_context_tokens(fields: Fields, model_type: str) -> int | None:
    """The longest sequence: the smallest limit in the config, stretched by rope scaling; None if it has none.

    Cohere's `model_max_length` is the whole context although `max_position_embeddings` is smaller.

    Source: vLLM 0.33.0, its derivation of `max_model_len`.
    """
    if model_type == "cohere" and (length := fields.integer("model_max_length")):
        return length
    lengths = [length for key in CONTEXT if (length := fields.integer(key)) is not None and length > 0]
    if not lengths:
        return None
    shortest = min(lengths)
    scaling = fields.section("rope_scaling") or fields.section("rope_parameters")
    if scaling is None:
        return shortest
    kind = scaling.text("rope_type") or scaling.text("type")
    factor = scaling.get("factor")
    if kind in ALREADY_SCALED or kind is None or factor is None:
        return shortest
    if not isinstance(factor, int | float) or not 0 < factor < LARGEST_FACTOR:
        fields.refuse(f"a rope scaling factor of {factor} cannot be used")
    original = scaling.integer("original_max_position_embeddings") if kind == "yarn" else None
    return int((original or shortest) * factor)


def dtype_bits(fields: Fields) -> int | None:
    """Bits of a weight as stored without quantisation, or None where the config does not say."""
    for level in _levels(fields):
        name = level.text("torch_dtype") or level.text("dtype")
        if name is not None:
            return DTYPE_BITS.get(name.removeprefix("torch."))
    return None


def quantization(fields: Fields) -> Quantization | None:
    """What the checkpoint says of its quantisation, or None where it says nothing.

    Raises: InputError when a field has the wrong type.
    """
    for level in _levels(fields):
        section = level.section("quantization_config")
        if section is not None:
            expert_format = section.text("expert_dtype") or fields.text("expert_dtype")
            return Quantization(
                method=section.text("quant_method") or "",
                weight_format=_weight_format(section),
                expert_format=expert_format,
                unquantized_modules=_unquantized(section),
                kv_cache_bits=_kv_cache_bits(section),
            )
    return None


def _weight_format(section: Fields) -> str | None:
    """The format by name, by the first group of compressed-tensors, or by the bits of AWQ and GPTQ."""
    named = section.text("quant_algo") or section.text("fmt")
    if named is not None:
        return named
    groups = section.get("config_groups")
    first = next(iter(groups.values()), None) if isinstance(groups, dict) else None
    weights = first.get("weights") if isinstance(first, dict) else None
    if isinstance(weights, dict):
        group_size = weights.get("group_size")
        name = GROUP_FORMATS.get(f"{weights.get('type')}{weights.get('num_bits')}")
        return "int4_g32" if name == "int4" and group_size == 32 else name
    if section.flag("load_in_4bit"):
        return "int4"
    if section.flag("load_in_8bit"):
        return "int8"
    return {4: "int4", 8: "int8"}.get(section.integer("bits", "w_bit") or 0)


def _unquantized(section: Fields) -> tuple[str, ...]:
    for key in ("modules_to_not_convert", "ignore", "exclude_modules", "ignored_layers"):
        names = section.get(key)
        if isinstance(names, list):
            return tuple(str(name) for name in names)
    return ()


def tied_embeddings(fields: Fields, default: bool) -> bool:  # noqa: FBT001 - read as what it is at its one call
    """Whether embedding and LM head are one table."""
    for level in _levels(fields):
        for key in ("tie_word_embeddings", "tie_embedding", "use_embedding_sharing"):
            tied = level.flag(key)
            if tied is not None:
                return tied
    return default


def _kv_cache_bits(section: Fields) -> int | None:
    scheme = section.section("kv_cache_scheme")
    if scheme is not None:
        return scheme.integer("num_bits")
    algorithm = section.text("kv_cache_quant_algo")
    return None if algorithm is None else QUANT_ALGORITHM_BITS.get(algorithm.upper())


def _levels(fields: Fields) -> list[Fields]:
    levels = [fields]
    while levels[-1].outer is not None:
        levels.append(levels[-1].outer)
    return levels
