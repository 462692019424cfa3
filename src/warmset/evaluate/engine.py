"""From facts to times: the rates of one engine, and the ways of cached KV into it."""

from warmset.evaluate.facts_used import Corner, FactBook
from warmset.evaluation import TierName
from warmset.model import ModelSpec, growth_bytes_per_token_per_gpu, kv_layout
from warmset.scenario import ModelChoice
from warmset.serving import EngineTimes, LoadPath
from warmset.serving.latency import EngineRates


def engine_times(
    spec: ModelSpec, model: ModelChoice, num_gpus: int, book: FactBook, corner: Corner
) -> EngineTimes:
    """The latency model of `spec`, stored as `model` says, on so many GPUs."""
    return EngineTimes(
        spec=spec,
        weight_format=model.weights,
        num_gpus=num_gpus,
        kv_bytes_per_token=num_gpus * growth_bytes_per_token_per_gpu(spec, kv_layout(model.kv), num_gpus),
        rates=_rates(spec, model, num_gpus, book, corner),
    )


def _rates(spec: ModelSpec, model: ModelChoice, num_gpus: int, book: FactBook, corner: Corner) -> EngineRates:
    alone = num_gpus == 1
    bandwidth = num_gpus * book.fact("gpu_memory_bandwidth").value
    routed = spec.num_moe_layers > 0
    layers_s = 0.0 if alone else spec.num_layers * book.fact("decode_all_reduce_s_per_layer").value
    if routed:
        layers_s += spec.num_moe_layers * book.fact("decode_moe_s_per_layer").value
    bf16 = book.fact("gpu_bf16_flops").value
    return EngineRates(
        gemm_flops_per_s=num_gpus * _gemm_peak(model, book) * book.fact("gemm_efficiency").value,
        attention_flops_per_s=num_gpus * bf16 * book.fact("attention_efficiency").value,
        all_reduce_bytes_per_s=None
        if alone
        else book.fact("gpu_link_bytes_per_s").value * book.fact("all_reduce_efficiency").value,
        prefill_startup_s=book.at("moe_prefill_startup_s" if routed else "prefill_startup_s", corner),
        hbm_hit_s_per_token=book.at("hbm_hit_s_per_token", corner),
        prefill_scale_ratio=book.at(
            "mla_prefill_time_scale" if spec.is_latent else "prefill_time_scale", corner
        ),
        prefill_chunk_tokens=int(book.fact("prefill_chunk_tokens").value),
        weight_bytes_per_s=bandwidth * book.fact("decode_weight_bandwidth_efficiency").value,
        kv_bytes_per_s=bandwidth * book.fact("decode_kv_bandwidth_efficiency").value,
        decode_startup_s=book.fact("decode_startup_s").value,
        decode_layers_s=layers_s,
        decode_scale_ratio=book.at("moe_decode_time_scale" if routed else "decode_time_scale", corner),
    )


def _gemm_peak(model: ModelChoice, book: FactBook) -> float:
    """Dense peak for the weights' format; formats that the silicon does not multiply run in bf16."""
    key = {"fp8": "gpu_fp8_flops", "int8": "gpu_int8_ops"}.get(model.weights, "gpu_bf16_flops")
    return book.fact(key if book.has(key) else "gpu_bf16_flops").value


def load_path(
    tier: TierName,
    engine: EngineTimes,
    stored_bytes_per_token: int,
    written_bytes_per_s: float,
    book: FactBook,
    corner: Corner,
) -> LoadPath:
    """The way from one lower tier into an engine, the writes of its node running beside.

    `stored_bytes_per_token` is what the tier keeps for a token, alignment included.
    """
    host = _host_rate(engine.num_gpus, book, corner)
    fixed_s = book.at("dram_hit_fixed_s", corner)
    if tier == "dram":
        return LoadPath(engine.kv_bytes_per_token, host, fixed_s)
    # The host link seen from the medium: a latent is read once and copied to every GPU.
    host *= stored_bytes_per_token / engine.kv_bytes_per_token
    if tier == "nvme":
        read = _flash_read_rate(written_bytes_per_s, book, corner)
        return LoadPath(stored_bytes_per_token, min(read, host), fixed_s + book.at("nvme_latency_s", corner))
    read = book.at("remote_read_bytes_per_s", corner)
    return LoadPath(stored_bytes_per_token, min(read, host), fixed_s + book.at("remote_latency_s", corner))


def _host_rate(num_gpus: int, book: FactBook, corner: Corner) -> float:
    """Host memory into the GPUs of one engine: their links together, or what the host's memory gives."""
    if book.has("gpu_host_copy_bytes_per_s"):
        copy = book.at("gpu_host_copy_bytes_per_s", corner)
    else:
        copy = book.fact("gpu_host_link_bytes_per_s").value * book.fact("host_copy_share_of_link").value
    links = num_gpus * copy * book.at("host_copy_usable_share", corner)
    return min(links, book.at("host_dram_ceiling_bytes_per_s", corner))


def _flash_read_rate(written_bytes_per_s: float, book: FactBook, corner: Corner) -> float:
    """Read rate of the node's NVMe while it is written to.

    Formula: read / (1 + slope x written / write rate); the slope makes three reads beside one write come out
    as measured (`nvme_mixed_read_ratio`).
    """
    read, write = book.at("nvme_read_bytes_per_s", corner), book.at("nvme_write_bytes_per_s", corner)
    left = book.at("nvme_mixed_read_ratio", corner)
    write_share = left * read / 3 / write
    slope = (1 / left - 1) / write_share
    return read / (1 + slope * written_bytes_per_s / write)
