"""Catalog figures against what their publishers printed, quoted beside each case."""

import statistics

import pytest

from warmset.catalog import (
    default,
    find_accelerator,
    find_medium,
    find_price,
    module_price,
    server_price,
    token_prices,
)

MIB = 2**20


@pytest.mark.parametrize(
    ("name", "printed_mib", "printed_bytes"),
    [
        # stas00/ml-engineering, accelerator README: nvidia-smi prints 143771MiB; "150.8e9 bytes"
        ("H200", 143_771, 150.8e9),
        # NVIDIA aiconfigurator 0.12.0, systems/*.yaml: 189471, 275040, 284208, 46068 and 97887 MiB
        ("GB200", 189_471, 198.7e9),
        ("B300", 275_040, 288.4e9),
        ("GB300", 284_208, 298.0e9),
        ("L40S", 46_068, 48.3e9),
        ("RTX PRO 6000", 97_887, 102.6e9),
    ],
)
def test_memory_as_the_driver_reports_it(name, printed_mib, printed_bytes):
    memory = find_accelerator(name).memory_bytes_per_gpu
    assert memory.value == printed_mib * MIB
    assert memory.value == pytest.approx(printed_bytes, rel=1e-3)
    assert memory.origin == "measured"


@pytest.mark.parametrize(
    ("name", "bf16_tflops", "fp8_tflops", "terabytes_per_s"),
    [
        # NVIDIA data sheets, dense: half of the printed sparse 1979, 3958, 4500 and 9000
        ("H100 SXM", 989, 1979, 3.35),
        ("H200", 989, 1979, 4.8),
        ("B200", 2250, 4500, 7.7),
        # "GPU Performance (Data Sheets) Quick Reference", ArthurChiao: H20 148 / 296 TFLOPS, 4.0 TB/s
        ("H20-96G", 148, 296, 4.0),
        # ROCm documentation: MI300X 1307.4 / 2614.9 TFLOPS, 5.3 TB/s
        ("MI300X", 1307, 2615, 5.3),
    ],
)
def test_dense_peaks_and_bandwidth(name, bf16_tflops, fp8_tflops, terabytes_per_s):
    accelerator = find_accelerator(name)
    assert accelerator.bf16_flops.value == bf16_tflops * 1e12
    assert accelerator.fp8_flops.value == fp8_tflops * 1e12
    assert accelerator.memory_bandwidth.value == pytest.approx(terabytes_per_s * 1e12)


def test_pinned_copies_stay_below_their_link():
    # vLLM blog 2026-01-08: 50 GB/s on H100; ml-engineering network README: 55.43 on H200
    assert find_accelerator("H100").host_copy_bytes_per_s.value == 50e9
    assert find_accelerator("H200").host_copy_bytes_per_s.value == pytest.approx(55.43e9)
    shares = [
        card.host_copy_bytes_per_s.value / card.host_link_bytes_per_s.value
        for card in map(find_accelerator, ("H100", "H20-96G", "H200"))
    ]
    assert min(shares) == pytest.approx(default("host_copy_share_of_link").low, abs=0.005)
    assert statistics.median(shares) == pytest.approx(default("host_copy_share_of_link").value, abs=0.005)
    assert max(shares) == pytest.approx(default("host_copy_share_of_link").high, abs=0.005)


def test_dram_price_is_the_contract_price_of_a_128_gb_module():
    # CFM, 2026-01: RDIMM DDR5 128 GB contract 2100-2400 USD; 64 GB contract from 820; 96 GB spot up to 4000
    price = default("dram_price")
    assert price.value == pytest.approx((2100 + 2400) / 2 / 128, abs=0.05)
    assert price.low == pytest.approx(820 / 64, abs=0.05)
    assert price.high == pytest.approx(4000 / 96, abs=0.05)


def test_nvme_price_is_that_of_a_30_tb_drive():
    # VDURA, 2026-01: 30 TB TLC from 3062 USD (2Q25) to 10 950 USD (1Q26)
    # TrendForce, 2026-02-02: 1Q26 contracts up 53-58 %
    price = default("nvme_price")
    assert price.value == 10_950 / 30
    assert price.low == pytest.approx(3062 / 30, abs=0.1)
    assert price.high == pytest.approx(10_950 / 30 * 1.58, abs=1)


def test_base_server_is_server_less_module():
    assert default("base_server_price").value == server_price("H200").value - module_price("H200").value


def test_electricity_on_the_coast():
    # Financial Times, 2025-11-04: 0.4 CNY/kWh with subsidy, about 30 % below the coastal price
    assert default("electricity_price").value == pytest.approx(0.4 / 0.7, abs=0.005)


def test_exchange_rate_is_the_last_fixing():
    # PBoC central parity, 2026-07-03: 6.7845
    assert default("cny_per_usd").value == find_price("fx", "CNY per USD").value == 6.7845


def test_raid0_of_four_drives():
    # natoscott/benchmarks, fio at 5 MiB, 16 jobs, one Micron 7450: 6.92 GB/s read, 5.27 GB/s write
    for name, one_drive in (("nvme_read_bytes_per_s", 6.9e9), ("nvme_write_bytes_per_s", 5.3e9)):
        fact = default(name)
        assert fact.value == pytest.approx(4 * one_drive * 0.9, rel=0.005)
        assert fact.low == pytest.approx(4 * one_drive * 0.85, rel=0.005)
        assert fact.high == pytest.approx(4 * one_drive * 0.95, rel=0.005)
    raid = find_medium("RAID0 of 4 Gen4 TLC", "read")
    assert raid.value == default("nvme_read_bytes_per_s").value


def test_writing_beside_reading():
    # same source, 75 % read 25 % write: 6.92 -> 2.8 GB/s at 5 MiB, 6.23 -> 4.6 GB/s at 2.25 MiB
    assert default("nvme_mixed_read_ratio").value == pytest.approx(2.8 / 6.92, abs=0.001)
    assert default("nvme_mixed_read_ratio").high == pytest.approx(4.6 / 6.23, abs=0.001)


@pytest.mark.parametrize(
    ("tokens", "hbm_hit_s", "dram_hit_s"),
    # vLLM 0.18 native offload on H20: TTFT of a prefix in HBM and in DRAM; 64k tokens are 6.44 GB
    [(1024, 0.042, 0.057), (65536, 0.111, 0.272)],
)
def test_a_dram_hit_is_an_hbm_hit_plus_a_fixed_cost_and_a_copy(tokens, hbm_hit_s, dram_hit_s):
    load_bytes = 6.44e9 * tokens / 65536
    copy_bytes_per_s = default("host_copy_usable_share").value * default("host_copy_bytes_per_s").value
    predicted = hbm_hit_s + default("dram_hit_fixed_s").value + load_bytes / copy_bytes_per_s
    assert predicted == pytest.approx(dram_hit_s, rel=0.02)


def test_an_hbm_hit_grows_with_its_tokens():
    # same runs: 42 ms at 1k, 111 ms at 64k
    slope = (0.111 - 0.042) / (65536 - 1024)
    assert default("hbm_hit_s_per_token").value == pytest.approx(slope, rel=0.03)


def test_usable_share_follows_from_the_watermarks():
    # LMCache: evicts 20 % once 80 % is full
    trigger, evicted = 0.8, 0.2
    usable = default("tier_usable_share")
    assert usable.low == pytest.approx(trigger * (1 - evicted))
    assert usable.high == trigger


def test_cached_tokens_cost_a_tenth():
    # vendor price pages, 2026-11, through genai-prices and the litellm price table
    ratios = [price.cached_ratio for price in token_prices() if "(before)" not in price.model]
    assert statistics.median(ratios) == pytest.approx(0.10, abs=0.005)
    assert min(ratios) >= 0.02
    assert max(ratios) == pytest.approx(0.25, abs=0.005)


def test_server_power_is_the_system_less_its_gpus():
    # DGX H100: 10.2 kW with 8 x 700 W; DGX B200: 14.3 kW with 8 x 1000 W
    power = default("server_power_w")
    assert power.value == pytest.approx(find_price("server_power", "DGX H100").value * 1000 - 8 * 700)
    assert power.high == pytest.approx(find_price("server_power", "DGX B200").value * 1000 - 8 * 1000)
