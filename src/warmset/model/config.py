"""From a config.json, or the name of a shipped one, to a ModelSpec."""

import json
from pathlib import Path

from warmset.errors import InputError, UnsupportedModelError
from warmset.model.families import ARCHITECTURES, ENCODER, FAMILIES, UNKNOWN, family_name
from warmset.model.fields import Fields, language_fields
from warmset.model.layer_kinds import count_layers, window_tokens
from warmset.model.layers import LayerBuilder, class_words
from warmset.model.limits import dtype_bits, max_context_tokens, quantization, tied_embeddings
from warmset.model.refusals import refuse_unsized
from warmset.model.shipped import find_shipped
from warmset.model.spec import ModelSpec
from warmset.model.tables import table_parameters

HIDDEN_SIZE = ("hidden_size", "n_embd", "n_embed", "d_model")
VOCAB_SIZE = ("vocab_size", "padded_vocab_size")

OUTER_TYPES = {"kimi_k3"}
"""Its language model calls itself by the type of Kimi-Linear, whose kernels engines treat otherwise."""

GEMMA3_VOCABULARY = 262_208
"""Default of transformers 5.24.0."""

SIDECAR = "hf_quant_config.json"

MAX_CONFIG_BYTES = 4 * 2**20


def load_model(name_or_path: str, name: str | None = None) -> ModelSpec:
    """The model in a config.json, in a folder that holds one, or among the shipped configs.

    What exists on disk is a path; a shipped model may be named with or without its organisation, in any
    case, or by some of its words as long as only one model has them all. `name`: what to call a model that
    comes from a file.

    Raises:
        ScenarioError: The name is not known; the nearest ones are named.
        InputError: The file cannot be read, or is not a usable config.
        UnsupportedModelError: The model has a cache class that is not sized yet.
    """
    path = Path(name_or_path)
    if path.suffix == ".json" or name_or_path.startswith((".", "/")) or _exists(path):
        file = path / "config.json" if path.is_dir() else path
        found = file.resolve().parent.name if file.name == "config.json" else file.stem
        return resolve_config(_with_sidecar(_read_object(file), file), name or found)
    shipped = find_shipped(name_or_path)
    return resolve_config(_read_object(shipped.path), shipped.model)


def resolve_config(config: dict[str, object], name: str) -> ModelSpec:
    """The model that a config.json describes.

    Raises:
        InputError: A field is missing or impossible.
        UnsupportedModelError: The model has a cache class that is not sized yet.
    """
    fields = language_fields(config, name)
    model_type = _model_type(fields)
    family = FAMILIES.get(family_name(model_type), UNKNOWN)
    context = max_context_tokens(fields, model_type)
    refuse_unsized(fields, model_type, family, context)
    num_layers, hidden_size = count_layers(fields), fields.required(*HIDDEN_SIZE)
    builder = LayerBuilder(fields, model_type, family, hidden_size, window_tokens(fields, family, context))
    layers = builder.layers(num_layers)
    return ModelSpec(
        name=name,
        model_type=model_type,
        cache_class=class_words(builder, layers),
        hidden_size=hidden_size,
        vocab_size=_vocabulary(fields, model_type),
        tied_embeddings=tied_embeddings(fields, family.tied),
        layers=layers,
        mtp_layers=builder.draft_layers(layers),
        num_position_embeddings=(context or 0) if family.learned_positions or ENCODER in family.has else 0,
        table_parameters=table_parameters(fields, model_type, hidden_size, num_layers),
        max_context_tokens=context,
        dtype_bits=dtype_bits(fields),
        quantization=quantization(fields),
        fields_read=tuple(fields.log.values()),
    )


def _vocabulary(fields: Fields, model_type: str) -> int:
    """Gemma 3 configs leave the vocabulary out."""
    if fields.get(*VOCAB_SIZE) is None and family_name(model_type) == "gemma3":
        return fields.assume(VOCAB_SIZE[0], GEMMA3_VOCABULARY, "default of the model type")
    return fields.required(*VOCAB_SIZE)


def _model_type(fields: Fields) -> str:
    """The type of the language model, unless the one around it tells more of it."""
    outer = fields.outer.text("model_type") if fields.outer is not None else None
    if outer in OUTER_TYPES:
        return outer
    level: Fields | None = fields
    while level is not None:
        named = level.text("model_type")
        if named:
            return named
        architectures = level.get("architectures")
        known = architectures if isinstance(architectures, list) else []
        for architecture in known:
            if isinstance(architecture, str) and architecture in ARCHITECTURES:
                return ARCHITECTURES[architecture]
        level = level.outer
    raise UnsupportedModelError(
        f"{fields.name}: the config has no model_type, and its architectures name nothing that is known"
    )


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # too long for a file name, or behind a closed folder
        return False


def _with_sidecar(config: dict[str, object], file: Path) -> dict[str, object]:
    """The config with what ModelOpt writes beside it: `hf_quant_config.json`, where the KV format stands."""
    sidecar = file.with_name(SIDECAR)
    if file.name != "config.json" or "quantization_config" in config or not sidecar.is_file():
        return config
    quantization = _read_object(sidecar).get("quantization")
    if not isinstance(quantization, dict):
        raise InputError(f"{sidecar}: the file has no quantization object")
    return config | {"quantization_config": {"quant_method": "modelopt"} | quantization}


def _read_object(path: Path) -> dict[str, object]:
    """The JSON object in a file of bounded size."""
    try:
        if not path.is_file():
            raise InputError(f"{path}: there is no such file")
        with path.open("rb") as file:
            content = file.read(MAX_CONFIG_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    if len(content) > MAX_CONFIG_BYTES:
        raise InputError(f"{path}: larger than {MAX_CONFIG_BYTES // 2**20} MiB, so not a model's config.json")
    try:
        config = json.loads(content.decode("utf-8"))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: not JSON: {error.msg}") from error
    except (UnicodeDecodeError, RecursionError, ValueError) as error:
        raise InputError(f"{path}: not a JSON text in UTF-8 that can be read") from error
    if not isinstance(config, dict):
        raise InputError(f"{path}: the file holds no JSON object")
    return config
