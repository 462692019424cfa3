"""Models small enough to add up by hand, and what holds of every model that a test makes up."""

from typing import Any

from warmset.model import ModelSpec
from warmset.model.spec import Attention, Cache, FeedForward, KvHeads, Latent, Layer, Mixer

HIDDEN, VOCAB = 8, 100
TABLE = HIDDEN * VOCAB
NORMS = (2 * 2 + 1) * HIDDEN

# Two layers, four heads of two, two KV heads; a gated dense part of 16.
QUERY_AND_OUTPUT, KEY_AND_VALUE, DENSE_FFN = 8 * 8 + 8 * 8, 8 * 4 + 8 * 4, 3 * 8 * 16
HEADS = Mixer(
    caches=(Cache(entry=KvHeads(num_heads=2, key_size=2, value_size=2)),),
    attentions=(Attention(num_heads=4, key_size=2, value_size=2),),
    split_parameters=QUERY_AND_OUTPUT,
    kv_parameters=KEY_AND_VALUE,
)
DENSE = ModelSpec(
    name="dense",
    model_type="test",
    cache_class="GQA",
    hidden_size=HIDDEN,
    vocab_size=VOCAB,
    tied_embeddings=False,
    layers=2
    * (
        Layer(
            mixers=(HEADS,),
            feed_forward=FeedForward(dense_parameters=DENSE_FFN),
            norm_parameters=2 * HIDDEN,
        ),
    ),
)
DENSE_LINEAR = 2 * (QUERY_AND_OUTPUT + KEY_AND_VALUE + DENSE_FFN)

# Two layers with a latent of 3 + 1 and a factored query; one is dense, one has 4 experts, 2 chosen, 1 shared.
EXPERT, ROUTER = 3 * 8 * 6, 8 * 4
LATENT = Latent(latent_size=3, rope_size=1)
LATENT_HEADS = Mixer(
    caches=(Cache(entry=LATENT),),
    attentions=(Attention(num_heads=4, key_size=3, value_size=2, latent=LATENT),),
    split_parameters=5 * 4 * 3 + 3 * 4 * (2 + 2) + 4 * 2 * 8,
    replicated_parameters=8 * 5 + 8 * (3 + 1),
)
MIXED = ModelSpec(
    name="mixed",
    model_type="test",
    cache_class="MLA",
    hidden_size=HIDDEN,
    vocab_size=VOCAB,
    tied_embeddings=True,
    layers=(
        Layer(
            mixers=(LATENT_HEADS,),
            feed_forward=FeedForward(dense_parameters=DENSE_FFN),
            norm_parameters=2 * HIDDEN,
        ),
        Layer(
            mixers=(LATENT_HEADS,),
            feed_forward=FeedForward(
                shared_parameters=EXPERT,
                router_parameters=ROUTER,
                expert_parameters=EXPERT,
                num_experts=4,
                experts_per_token=2,
            ),
            norm_parameters=2 * HIDDEN,
        ),
    ),
)
DOWN = 2 * (8 * 5 + 8 * (3 + 1))
BY_HEADS = 2 * (5 * 4 * 3 + 3 * 4 * (2 + 2) + 4 * 2 * 8)
MIXED_LINEAR = DOWN + BY_HEADS + DENSE_FFN + EXPERT  # with the shared expert, without router and routed ones


def spec_of(*layers: Layer, **fields: Any) -> ModelSpec:
    """A model of these layers; the rest is of no account unless it is given."""
    return ModelSpec(
        **{
            "name": "m",
            "model_type": "test",
            "cache_class": "test",
            "hidden_size": 4096,
            "vocab_size": 1000,
            "tied_embeddings": False,
        }
        | fields,
        layers=layers,
    )


def mixers_alone(*mixers: Mixer) -> ModelSpec:
    """A model of one layer for each mixer, with nothing but the mixer in it."""
    layers = (Layer(mixers=(mixer,)) for mixer in mixers)
    return spec_of(*layers, hidden_size=HIDDEN, vocab_size=VOCAB, tied_embeddings=True)
