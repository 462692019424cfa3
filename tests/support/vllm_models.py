"""Models made up for vLLM's pool, and the pool of one."""

from tests.support.small_models import spec_of
from warmset.model import ModelSpec
from warmset.model.engines.vllm import VllmPool, VllmSettings, vllm_pool
from warmset.model.layouts import KvLayout
from warmset.model.placement import Placement
from warmset.model.spec import Cache, Entry, IndexKey, KvHeads, Latent, Layer, Mixer, Reach, StatePart

AMPLE_BYTES = 10**13
HEADS = KvHeads(num_heads=8, key_size=128, value_size=128)
LATENT = Latent(latent_size=512, rope_size=64)
INDEX = IndexKey(size=128, default_format="fp8_scaled")
STATE = (
    StatePart(role="conv", num_units=32, unit_elements=3 * 128),
    StatePart(role="recurrent", num_units=32, unit_elements=128 * 128, bits=32),
)


def layer(
    *entries: Entry, reach: Reach = "full", span: int = 0, ratio: int = 1, states: tuple[StatePart, ...] = ()
) -> Layer:
    caches = tuple(
        Cache(entry=entry, reach=reach, span_tokens=span, tokens_per_entry=ratio) for entry in entries
    )
    return Layer(mixers=(Mixer(caches=caches, states=states),))


def model(*layers: Layer, model_type: str = "llama", mtp: tuple[Layer, ...] = ()) -> ModelSpec:
    return spec_of(*layers, model_type=model_type, mtp_layers=mtp, max_context_tokens=8192)


def pool_of(
    spec: ModelSpec, placement: Placement | None = None, layout: KvLayout | None = None, **flags: object
) -> VllmPool:
    settings = VllmSettings(**{"available_bytes": AMPLE_BYTES, **flags})
    return vllm_pool(spec, settings, placement or Placement(), layout)
