"""Which pages every layer of a model has in vLLM.

Source: vLLM 0.33.0, the get_kv_cache_spec methods of model_executor/layers/attention/*.py,
model_executor/models/deepseek_v2.py, models/{deepseek_v4,deepseek_v41,glm5next,qwen4_exp,inkling,minimax_m3}.
"""

from dataclasses import dataclass, replace

from warmset.errors import InputError
from warmset.model.engines import vllm_compressed
from warmset.model.engines.vllm_families import EXPANDED_LATENTS, family, is_inkling, is_packed
from warmset.model.engines.vllm_pages import Cache as PagedCache
from warmset.model.engines.vllm_pages import Page, ceil_div
from warmset.model.engines.vllm_states import PLE_LAYER_INDEX, BlockPlan, padded_ple_page, state_pages
from warmset.model.engines.vllm_types import CacheKind, VllmSettings
from warmset.model.layouts import KvLayout, entry_bytes
from warmset.model.placement import Placement, heads_on_rank
from warmset.model.spec import Cache, CompressedEntry, IndexKey, KvHeads, Latent, Layer, ModelSpec, Reach

KINDS: dict[Reach, CacheKind] = {"full": "full", "sliding": "sliding", "chunked": "chunked", "cross": "cross"}
LATENT_KINDS: dict[CacheKind, CacheKind] = {"full": "latent", "sliding": "sliding_latent"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Server:
    spec: ModelSpec
    layout: KvLayout
    placement: Placement
    settings: VllmSettings
    plan: BlockPlan

    @property
    def tensor_parallel(self) -> int:
        return self.placement.attention_parallel


def model_caches(
    spec: ModelSpec, layout: KvLayout, placement: Placement, settings: VllmSettings, plan: BlockPlan
) -> tuple[PagedCache, ...]:
    """Pages of all layers on one GPU, layer by layer; with drafts also those of the MTP layers that draft.

    Raises: InputError when heads or states do not divide over the GPUs, or the layout does not fit the model.
    """
    server = _Server(spec=spec, layout=layout, placement=placement, settings=settings, plan=plan)
    layers = spec.layers + spec.mtp_layers[: settings.num_speculative_tokens]
    caches = [
        PagedCache(index, page) for index, layer in enumerate(layers) for page in _layer_pages(server, layer)
    ]
    caches += [PagedCache(PLE_LAYER_INDEX, page) for page in padded_ple_page(spec, settings, plan)]
    return tuple(caches)


def _layer_pages(server: _Server, layer: Layer) -> list[Page]:
    pages = [page for cache in layer.caches for page in _cache_pages(server, layer, cache)]
    pages += state_pages(server.spec, layer, server.tensor_parallel, server.settings, server.plan)
    pages += _rings(server, layer)
    if is_inkling(server.spec):
        pages += _inkling_windows(server, layer)
    return pages


def _cache_pages(server: _Server, layer: Layer, cache: Cache) -> list[Page]:
    match cache.entry:
        case KvHeads():
            return [_head_page(server, cache, cache.entry)]
        case Latent():
            if family(server.spec) in EXPANDED_LATENTS:
                return [_expanded_page(server, layer, cache)]
            return [_latent_page(server, cache, cache.entry)]
        case CompressedEntry() | IndexKey() if vllm_compressed.is_compressed(layer):
            return vllm_compressed.pages(server.spec, server.layout, server.settings, server.plan, cache)
        case IndexKey():
            return [replace(_page(server, cache, entry_bytes(cache.entry, server.layout)), role="index")]
    raise AssertionError(cache)


def _page(server: _Server, cache: Cache, size_bytes: int) -> Page:
    """A page for one vector of all heads (MLA), by default."""
    kind = KINDS[cache.reach]
    return Page(
        kind=LATENT_KINDS[kind],
        block_tokens=server.plan.block_tokens,
        entry_bytes=size_bytes,
        tokens_per_entry=cache.tokens_per_entry,
        span_tokens=cache.span_tokens,
        is_dcp_sharded=True,
    )


def _head_page(server: _Server, cache: Cache, entry: KvHeads) -> Page:
    heads = gpu_heads(server.spec, entry.num_heads, server.tensor_parallel)
    share = KvHeads(num_heads=heads, key_size=entry.key_size, value_size=entry.value_size)
    return Page(
        kind=KINDS[cache.reach],
        block_tokens=server.plan.block_tokens,
        entry_bytes=entry_bytes(share, server.layout),
        num_heads=heads,
        span_tokens=cache.span_tokens,
        role=f"{entry.key_size}+{entry.value_size}",
        is_dcp_sharded=True,
    )


def gpu_heads(spec: ModelSpec, num_heads: int, tensor_parallel: int) -> int:
    """KV heads on one GPU: its share, or a copy of one.

    Raises: InputError when neither divides the other.
    """
    if max(num_heads, tensor_parallel) % min(num_heads, tensor_parallel):
        raise InputError(
            f"{spec.name}: {num_heads} KV heads cannot be split over tensor_parallel={tensor_parallel}: "
            "choose a divisor or a multiple of the KV heads"
        )
    return heads_on_rank(num_heads, tensor_parallel)


def _expanded_page(server: _Server, layer: Layer, cache: Cache) -> Page:
    """Keys of all query heads, and values padded to the size of keys."""
    attention = next(attention for mixer in layer.mixers for attention in mixer.attentions)
    entry = KvHeads(num_heads=attention.num_heads, key_size=attention.key_size, value_size=attention.key_size)
    return _head_page(server, cache, entry)


def _latent_page(server: _Server, cache: Cache, entry: Latent) -> Page:
    """Kernels of sparse MLA read a cache as rows, so a block starts on a whole row or kernel block."""
    settings, name = server.settings, server.layout.keys
    is_plain_fp8 = name == "fp8" and settings.capability == "sm100"
    size_bytes = entry.latent_size + entry.rope_size if is_plain_fp8 else entry_bytes(entry, server.layout)
    page = _page(server, cache, size_bytes)
    if not entry.sparse or settings.release == "0.30.0" or not is_packed(server.spec):
        return page
    if name in {"bf16", "fp16"}:
        return replace(page, stride_bytes=size_bytes)
    rows = 32 if settings.capability == "sm100" else 64
    return replace(page, stride_bytes=rows * size_bytes)


def _rings(server: _Server, layer: Layer) -> list[Page]:
    """Raw keys of the tokens that are still being pooled into an index key: one block for each request.

    Drafts are stored before they are accepted, so the ring has room for them.
    """
    tails = [part for part in layer.states if part.role == "tail"]
    index = next((cache for cache in layer.caches if isinstance(cache.entry, IndexKey)), None)
    if not tails or index is None:
        return []
    pool = index.tokens_per_entry
    size_bytes = sum(part.num_units * part.unit_elements * (part.bits or 16) // 8 for part in tails)
    num_pools = ceil_div(pool + server.settings.num_speculative_tokens, pool)
    has_latent = any(isinstance(cache.entry, Latent) for cache in layer.caches)
    if has_latent:
        num_pools = 1 << (num_pools - 1).bit_length()
    return [
        Page(
            kind="ring",
            block_tokens=num_pools * pool,
            entry_bytes=ceil_div(size_bytes, pool),
            is_dcp_sharded=not has_latent,
        )
    ]


def _inkling_windows(server: _Server, layer: Layer) -> list[Page]:
    """Inputs of the four convolutions of an Inkling layer: a window of a width that is a power of 2.

    Raises: InputError when there are more GPUs than KV heads.
    """
    entry = next((cache.entry for cache in layer.caches if isinstance(cache.entry, KvHeads)), None)
    convs = [part for part in layer.states if part.role == "conv"]
    if entry is None or not convs:
        return []
    if server.tensor_parallel > entry.num_heads:
        raise InputError(
            f"{server.spec.name}: vLLM splits its convolutions over at most {entry.num_heads} GPUs, "
            f"the KV heads of a layer; choose a smaller tensor_parallel"
        )
    heads = entry.num_heads // server.tensor_parallel
    width = 2 * entry.key_size + 2 * (server.spec.hidden_size // entry.num_heads)
    kernel_tokens = convs[0].unit_elements // (2 * entry.key_size) + 1
    return [
        Page(
            kind="sliding",
            block_tokens=kernel_tokens,
            entry_bytes=heads * (1 << (width - 1).bit_length()) * 2,
            num_heads=heads,
            span_tokens=kernel_tokens,
            role="conv",
            is_dcp_sharded=True,
        )
    ]
