"""Contexts, number formats and quantisation, field by field."""

import pytest

from warmset.errors import InputError
from warmset.model.fields import Fields, language_fields
from warmset.model.limits import dtype_bits, max_context_tokens, quantization, tied_embeddings


def context(model_type="llama", **config):
    return max_context_tokens(Fields("m", config), model_type)


# One of the spellings that vLLM 0.33.0 looks for, `max_target_positions` of Whisper among them.
@pytest.mark.parametrize(
    "field",
    [
        "max_position_embeddings",
        "n_positions",
        "max_seq_len",
        "seq_length",
        "model_max_length",
        "max_sequence_length",
        "max_target_positions",
    ],
)
def test_names_of_the_context(field):
    assert context(**{field: 2048}) == 2048


def test_the_smallest_limit_holds():
    assert context(max_position_embeddings=4096, seq_length=1, n_positions=0) == 1
    assert context(n_positions=-1) is None
    assert context() is None


YARN = {"rope_type": "yarn", "factor": 4.0}


@pytest.mark.parametrize(
    ("scaling", "tokens"),
    [
        ({"rope_type": "linear", "factor": 0.5}, 500),
        ({"rope_type": "linear", "factor": 1.0}, 1000),
        ({"rope_type": "linear", "factor": 2.5}, 2500),
        ({"type": "linear"}, 1000),
        ({"factor": 4.0}, 1000),  # of a kind nobody says
        ({"rope_type": "mrope", "factor": 4.0}, 1000),
        ({"rope_type": "su", "factor": 4.0}, 1000),
        (YARN, 4000),
        (YARN | {"original_max_position_embeddings": 250}, 1000),
        # only yarn stretches the original
        ({"rope_type": "linear", "factor": 4.0, "original_max_position_embeddings": 250}, 4000),
    ],
    ids=str,
)
def test_rope_scaling(scaling, tokens):
    assert context(max_position_embeddings=1000, rope_scaling=scaling) == tokens
    assert context(max_position_embeddings=1000, rope_parameters=scaling) == tokens


@pytest.mark.parametrize("factor", [0, -2.0, 1e6, "4", float("inf")])
def test_factors_that_cannot_be(factor):
    with pytest.raises(InputError, match="a rope scaling factor of"):
        context(max_position_embeddings=1000, rope_scaling={"rope_type": "linear", "factor": factor})
    assert (
        context(max_position_embeddings=1, rope_scaling={"rope_type": "linear", "factor": 999_999}) == 999_999
    )


def test_cohere_names_its_whole_context():
    # c4ai-command-r-v01: max_position_embeddings 8,192, model_max_length 131,072.
    both = {"max_position_embeddings": 8192, "model_max_length": 131_072}
    assert context("cohere", **both) == 131_072
    assert context("llama", **both) == 8192
    assert context("cohere", max_position_embeddings=8192) == 8192


@pytest.mark.parametrize(
    ("config", "bits"),
    [
        ({"torch_dtype": "bfloat16"}, 16),
        ({"dtype": "half"}, 16),
        ({"torch_dtype": "torch.float32"}, 32),
        ({"torch_dtype": "float"}, 32),
        ({"dtype": "float8_e4m3fn"}, 8),
        ({"dtype": "auto"}, None),
        ({}, None),
        ({"text_config": {"dtype": "float32"}, "dtype": "bfloat16"}, 32),  # the language model's own
        ({"text_config": {"x": 1}, "dtype": "bfloat16"}, 16),
    ],
    ids=str,
)
def test_number_formats(config, bits):
    assert dtype_bits(language_fields(config, "m")) == bits


def stated(**section):
    return quantization(Fields("m", {"quantization_config": section}))


def group(bits, kind, size=None):
    return {"config_groups": {"group_0": {"weights": {"num_bits": bits, "type": kind, "group_size": size}}}}


@pytest.mark.parametrize(
    ("section", "weight_format"),
    [
        ({"quant_algo": "FP8"}, "FP8"),
        ({"fmt": "e4m3"}, "e4m3"),
        (group(8, "float"), "fp8"),
        (group(4, "float"), "nvfp4"),
        (group(8, "int"), "int8"),
        (group(8, "int", 32), "int8"),
        (group(4, "int", 128), "int4"),
        (group(4, "int", 32), "int4_g32"),
        (group(4, "float", 32), "nvfp4"),
        (group(3, "int"), None),
        ({"config_groups": {}}, None),
        ({"load_in_4bit": True}, "int4"),
        ({"load_in_8bit": True}, "int8"),
        ({"load_in_4bit": False, "load_in_8bit": False}, None),
        ({"bits": 4}, "int4"),
        ({"w_bit": 8}, "int8"),
        ({"bits": 3}, None),
        ({}, None),
    ],
    ids=str,
)
def test_formats_of_weights(section, weight_format):
    assert stated(**section).weight_format == weight_format


@pytest.mark.parametrize("key", ["modules_to_not_convert", "ignore", "exclude_modules", "ignored_layers"])
def test_modules_that_stay_as_they_are(key):
    assert stated(**{key: ["lm_head", "re:.*gate"]}).unquantized_modules == ("lm_head", "re:.*gate")
    assert stated(**{key: None}).unquantized_modules == ()


@pytest.mark.parametrize(
    ("config", "expert_format"),
    [
        ({"quantization_config": {"expert_dtype": "fp4"}}, "fp4"),
        ({"quantization_config": {"bits": 4}, "expert_dtype": "fp8"}, "fp8"),
        ({"quantization_config": {"bits": 4}}, None),
    ],
    ids=str,
)
def test_experts_in_a_format_of_their_own(config, expert_format):
    assert quantization(Fields("m", config)).expert_format == expert_format


@pytest.mark.parametrize(
    ("algorithm", "bits"), [("fp8", 8), ("INT8", 8), ("nvfp4", 4), ("FP4", 4), ("INT4", 4), ("x", None)]
)
def test_bits_of_cached_elements(algorithm, bits):
    assert stated(kv_cache_quant_algo=algorithm).kv_cache_bits == bits


def test_names_of_tied_embeddings():
    for key in ("tie_word_embeddings", "tie_embedding", "use_embedding_sharing"):
        for tied in (True, False):
            assert tied_embeddings(Fields("m", {key: tied}), not tied) is tied
    assert tied_embeddings(Fields("m", {}), default=True)
