"""Slow and obvious bytes of a KV cache: token by token and layer by layer, straight from the config's fields.

For the plain classes only, in bf16. Nothing here knows of specs, entries, growth or windows as numbers.
"""

from typing import Any

BF16_BYTES = 2
FP32_BYTES = 4
INDEX_SCALE_BYTES = 4

Config = dict[str, Any]


def sequence_bytes(config: Config, tokens: int) -> int:
    """What all layers hold after `tokens` tokens."""
    return sum(
        layer_state_bytes(config, layer)
        + sum(entry_bytes(config, layer) for token in range(tokens) if is_kept(config, layer, token, tokens))
        for layer in range(config["num_hidden_layers"])
    )


def kind(config: Config, layer: int) -> str:
    """`full`, `sliding` or `linear`."""
    if "layer_types" in config:
        return config["layer_types"][layer].removesuffix("_attention")
    if "hybrid_layer_pattern" in config:
        return ("full", "sliding")[config["hybrid_layer_pattern"][layer]]
    if "full_attention_interval" in config:
        return "linear" if (layer + 1) % config["full_attention_interval"] else "full"
    if config["model_type"] == "mistral" and config.get("sliding_window"):
        return "sliding"
    return "full"


def is_kept(config: Config, layer: int, token: int, tokens: int) -> bool:
    """Whether a later token could still attend to this one."""
    if kind(config, layer) == "linear":
        return False
    return kind(config, layer) == "full" or token >= tokens - config["sliding_window"]


def entry_bytes(config: Config, layer: int) -> int:
    """Of one token in one layer."""
    if "kv_lora_rank" in config:
        latent = BF16_BYTES * (config["kv_lora_rank"] + config["qk_rope_head_dim"])
        if config.get("indexer_types", [])[layer : layer + 1] == ["full"]:
            return latent + config["index_head_dim"] + INDEX_SCALE_BYTES
        return latent
    prefix = "swa_" if kind(config, layer) == "sliding" and "swa_head_dim" in config else ""
    key_size = config[f"{prefix}head_dim"]
    value_size = config.get(f"{prefix}v_head_dim", key_size)
    return BF16_BYTES * config[f"{prefix}num_key_value_heads"] * (key_size + value_size)


def layer_state_bytes(config: Config, layer: int) -> int:
    """Of one sequence: a Gated DeltaNet's matrices in fp32 and the last inputs of its convolution."""
    if kind(config, layer) != "linear":
        return 0
    keys = config["linear_num_key_heads"] * config["linear_key_head_dim"]
    values = config["linear_num_value_heads"] * config["linear_value_head_dim"]
    inputs = (config["linear_conv_kernel_dim"] - 1) * (keys + keys + values)
    return FP32_BYTES * values * config["linear_key_head_dim"] + BF16_BYTES * inputs
