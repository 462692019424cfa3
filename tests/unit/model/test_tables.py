"""Look-up tables beside the layers, and what decides that there are any."""

import pytest

from warmset.errors import InputError
from warmset.model import load_model
from warmset.model.fields import Fields
from warmset.model.tables import table_parameters


def tables(hidden_size=64, num_layers=3, **config):
    return table_parameters(Fields("m", config), "test", hidden_size, num_layers)


@pytest.mark.parametrize(
    ("config", "parameters"),
    [
        ({}, 0),
        ({"vocab_size": 100}, 0),
        ({"vocab_size": 100, "hidden_size_per_layer_input": 0}, 0),
        # 3 layers x 100 words x 1 or 8 elements
        ({"vocab_size": 100, "hidden_size_per_layer_input": 1}, 300),
        ({"vocab_size": 100, "hidden_size_per_layer_input": 8}, 2400),
        # a vocabulary of its own (Gemma 3n): 3 x 50 x 8
        ({"vocab_size": 100, "vocab_size_per_layer_input": 50, "hidden_size_per_layer_input": 8}, 1200),
        # n-gram tables: (10 + 20 + 5) x 4
        ({"engram_num_embeddings": [10, 20, 5], "engram_head_dim": 4}, 140),
        ({"engram_num_embeddings": None, "engram_head_dim": 4}, 0),
        # an encoder belongs to Whisper alone
        ({"encoder_layers": 2, "encoder_ffn_dim": 8, "num_mel_bins": 4, "max_source_positions": 7}, 0),
    ],
    ids=str,
)
def test_tables(config, parameters):
    assert tables(**config) == parameters


def test_tables_of_the_same_model_add_up():
    engram = {"engram_num_embeddings": [10, 20, 5], "engram_head_dim": 4}
    assert tables(vocab_size=100, hidden_size_per_layer_input=8, **engram) == 2400 + 140


def test_a_table_without_its_width():
    with pytest.raises(InputError, match="engram_head_dim"):
        tables(engram_num_embeddings=[10])


def test_an_encoder_of_whisper():
    # whisper-large-v3: hidden 1,280, 32 layers, MLP 5,120, 128 mel bins, 1,500 positions.
    # modeling_whisper.py:
    # q, v and out have a bias, k has none; two norms of weight and bias; fc1 and fc2 with biases.
    h, width = 1280, 5120
    layer = 4 * h * h + 3 * h + 2 * 2 * h + 2 * h * width + width + h
    convolutions = 3 * 128 * h + h + 3 * h * h + h
    assert load_model("whisper-large-v3").table_parameters == 32 * layer + convolutions + 1500 * h + 2 * h
