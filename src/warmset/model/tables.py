"""Look-up tables and encoders: weights that no prompt token is multiplied with layer by layer."""

from warmset.model.fields import Fields


def table_parameters(fields: Fields, model_type: str, hidden_size: int, num_layers: int) -> int:
    """Weights of per-layer embeddings (Gemma 3n and 4), n-gram tables (V4.1) and an encoder (Whisper, BART).

    Raises: InputError when a field is missing or impossible.
    """
    return (
        _per_layer_inputs(fields, num_layers)
        + _engram_tables(fields)
        + (_audio_encoder(fields, hidden_size) if model_type == "whisper" else 0)
        + (_text_encoder(fields, hidden_size) if model_type == "bart" else 0)
    )


def _per_layer_inputs(fields: Fields, num_layers: int) -> int:
    """A small embedding for every layer."""
    size = fields.integer("hidden_size_per_layer_input") or 0
    if size < 1:
        return 0
    vocabulary = fields.integer("vocab_size_per_layer_input") or fields.required("vocab_size")
    return num_layers * size * vocabulary


def _engram_tables(fields: Fields) -> int:
    sizes = fields.get("engram_num_embeddings")
    if not isinstance(sizes, list):
        return 0
    return sum(size for size in sizes if type(size) is int) * fields.required("engram_head_dim")


def _text_encoder(fields: Fields, hidden_size: int) -> int:
    """BART: learned positions, a norm of the embeddings, and layers as the audio encoder has them."""
    positions = (fields.required("max_position_embeddings") + 2) * hidden_size
    return (
        fields.required("encoder_layers") * _encoder_layer(fields, hidden_size) + positions + 2 * hidden_size
    )


def _encoder_layer(fields: Fields, hidden_size: int) -> int:
    """Attention, a two-matrix MLP, their biases and two norms."""
    width = fields.required("encoder_ffn_dim")
    return 4 * hidden_size * hidden_size + 2 * hidden_size * width + 9 * hidden_size + width


def _audio_encoder(fields: Fields, hidden_size: int) -> int:
    """Two convolutions over the spectrum, sinusoids, and layers of attention and a two-matrix MLP."""
    layer = _encoder_layer(fields, hidden_size) - hidden_size  # keys have no bias
    convolutions = 3 * hidden_size * (fields.required("num_mel_bins") + hidden_size) + 2 * hidden_size
    positions = fields.required("max_source_positions") * hidden_size
    return fields.required("encoder_layers") * layer + convolutions + positions + 2 * hidden_size
