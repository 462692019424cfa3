"""Models made up for SGLang's pools, and the pools of one."""

from typing import Any

from tests.support.small_models import spec_of
from warmset.model import ModelSpec
from warmset.model.engines.sglang import SglangPools, SglangSettings, sglang_pools
from warmset.model.layouts import kv_layout
from warmset.model.placement import Placement
from warmset.model.spec import Cache, IndexKey, KvHeads, Latent, Layer, Mixer, StatePart

GIB = 2**30
ONE_GPU = Placement()
HEADS = Cache(entry=KvHeads(num_heads=8, key_size=128, value_size=128))
WINDOW = Cache(entry=KvHeads(num_heads=8, key_size=64, value_size=64), reach="sliding", span_tokens=128)
LATENT = Cache(entry=Latent(latent_size=512, rope_size=64, sparse=True))
INDEX = Cache(entry=IndexKey(size=128, default_format="fp8_scaled"))
STATES = (
    StatePart(role="conv", num_units=32, unit_elements=3 * 64),
    StatePart(role="recurrent", num_units=32, unit_elements=64 * 128),
)


def layer(*caches: Cache, states: tuple[StatePart, ...] = ()) -> Layer:
    return Layer(mixers=(Mixer(caches=caches, states=states),))


def model(model_type: str, *layers: Layer, **more: Any) -> ModelSpec:
    return spec_of(
        *layers, **{"name": f"a-{model_type}", "model_type": model_type, "max_context_tokens": 32_768} | more
    )


LLAMA = model("llama", *[layer(HEADS)] * 4)
GPT_OSS = model("gpt_oss", *[layer(HEADS), layer(WINDOW)] * 4)
DSA = model("deepseek_v32", *[layer(LATENT, INDEX), layer(LATENT)] * 4)
HYBRID = model("qwen3_next", *[layer(states=STATES)] * 3, layer(HEADS))


def pools(
    spec: ModelSpec, layout: str = "bf16", placement: Placement = ONE_GPU, **settings: Any
) -> SglangPools:
    return sglang_pools(
        spec, kv_layout(layout), placement, SglangSettings(**{"available_bytes": 4 * GIB} | settings)
    )
