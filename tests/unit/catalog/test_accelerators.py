import pytest

from warmset.catalog import accelerator_names, find_accelerator
from warmset.errors import ScenarioError
from warmset.facts import Fact


@pytest.mark.parametrize("name", accelerator_names())
def test_a_catalog_name_finds_itself(name):
    assert find_accelerator(name).name == name


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("H20-141G", "H20-141G (H20-3e)"),
        ("h20-141gb", "H20-141G (H20-3e)"),
        ("H20 141 GB", "H20-141G (H20-3e)"),
        ("H20-3e", "H20-141G (H20-3e)"),
        ("NVIDIA H20-3e", "H20-141G (H20-3e)"),
        ("h20-96gb", "H20-96G"),
        ("H100", "H100 SXM"),
        ("h100 sxm5", "H100 SXM"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("H100-PCIe", "H100 PCIe"),
        ("H200", "H200 SXM"),
        ("A100-80GB", "A100-80 SXM"),
        ("A100 40G", "A100-40 SXM"),
        ("L4", "L4"),
        ("A10", "A10"),
        ("rtx4090", "RTX 4090"),
        ("mi 300x", "MI300X"),
        ("Ascend 910B3", "Ascend 910B3 (Atlas 800T A2 class)"),
        ("Atlas 800T A2", "Ascend 910B3 (Atlas 800T A2 class)"),
        ("P800", "Kunlun P800"),
        ("TPUv5e", "TPU v5e"),
        ("PPU", "PPU (96 GB)"),
        ("B300", "B300 SXM"),
        ("GB300", "GB300 (per GPU)"),
    ],
)
def test_the_names_people_write(spelling, name):
    assert find_accelerator(spelling).name == name


@pytest.mark.parametrize(
    ("spelling", "offered"),
    [
        ("H20", ["H20-96G", "H20-141G (H20-3e)"]),
        ("A100", ["A100-40 SXM", "A100-80 SXM", "A100-80 PCIe"]),
        ("141G", ["H20-141G (H20-3e)", "H200 SXM"]),
        ("910B", ["Ascend 910B2", "Ascend 910B3", "Ascend 910B4"]),
        ("H20-144G", ["H20-141G (H20-3e)"]),
        ("H1O0", ["H100"]),
        ("4090", ["RTX 4090"]),
    ],
)
def test_an_unclear_name_is_refused_with_names_that_work(spelling, offered):
    with pytest.raises(ScenarioError) as refusal:
        find_accelerator(spelling)
    assert "\n" not in str(refusal.value)
    assert [name for name in offered if name not in str(refusal.value)] == []


@pytest.mark.parametrize("spelling", ["", "  ", "gpu-9000 ultra"])
def test_nonsense_is_refused(spelling):
    with pytest.raises(ScenarioError, match="is not in the catalog: the nearest names are "):
        find_accelerator(spelling)


@pytest.mark.parametrize("name", accelerator_names())
def test_a_known_figure_is_positive_and_sourced(name):
    accelerator = find_accelerator(name)
    facts = [getattr(accelerator, field) for field in accelerator.__struct_fields__[2:]]
    known = [fact for fact in facts if fact is not None]
    assert all(isinstance(fact, Fact) and fact.least > 0 and fact.source and fact.date for fact in known)


@pytest.mark.parametrize("name", accelerator_names())
def test_dense_peaks_are_ordered(name):
    # A sparse figure slipped into bf16 would equal fp8. Gaudi 3 and TPU v5p, v6e do run both at one rate.
    accelerator = find_accelerator(name)
    if accelerator.bf16_flops and accelerator.fp8_flops:
        ratio = accelerator.fp8_flops.value / accelerator.bf16_flops.value
        same_rate = {"Gaudi 3", "TPU v5p", "TPU v6e"}
        # RTX 4090's bf16 is printed with fp32 accumulation, Rubin's fp8 is an announcement.
        fast_fp8 = {"RTX 4090", "Rubin SXM (announced)"}
        assert ratio == 1 if name in same_rate else 1.8 < ratio < (4.5 if name in fast_fp8 else 2.2)


def test_h20_141g():
    card = find_accelerator("H20-141G")
    assert card.memory_bandwidth.value == 4.8e12
    assert (card.bf16_flops.value, card.fp8_flops.value) == (148e12, 296e12)
    assert card.link_bytes_per_s.value == 450e9
    assert card.host_link_bytes_per_s.value == 63e9
    # Taken from the 96G card, and says so.
    assert (card.host_copy_bytes_per_s.value, card.host_copy_bytes_per_s.origin) == (53.7e9, "assumed")
    assert "H20-96G" in card.host_copy_bytes_per_s.note
    assert (card.power_w.value, card.power_w.high, card.power_w.origin) == (400, 550, "assumed")
    # The same label as H200, whose driver reports 143 771 MiB.
    memory = card.memory_bytes_per_gpu
    assert memory.origin == "assumed"
    assert memory.low < 143771 * 2**20 < memory.high


def test_memory_of_a_label():
    assert find_accelerator("L4").memory_bytes_per_gpu.value == pytest.approx(0.94 * 24 * 2**30)
    assert find_accelerator("H100").memory_bytes_per_gpu.value == pytest.approx(0.99 * 80 * 2**30)
    assert find_accelerator("Ascend 910B2").memory_bytes_per_gpu.value == pytest.approx(0.94 * 64 * 2**30)


def test_unknown_is_none_and_never_zero():
    assert find_accelerator("MLU590").memory_bytes_per_gpu is None
    assert find_accelerator("H800").power_w is None
    assert find_accelerator("H800").host_copy_bytes_per_s is None
    assert find_accelerator("A100-80 PCIe").link_bytes_per_s is None
    assert find_accelerator("H20-96G").fp8_flops is not None
    assert find_accelerator("A100-80").fp8_flops is None


def test_without_an_accelerator_link_peers_share_the_host_link():
    link = find_accelerator("L40S").link_bytes_per_s
    assert (link.value, link.origin) == (31e9, "assumed")
