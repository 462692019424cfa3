import pytest

from warmset.catalog import find_medium
from warmset.catalog.tables import medium_rows


def test_figures_come_in_si_units():
    assert find_medium("Micron 7450 7.68 TB (Gen4)", "read_kv_block", "5 MiB blocks, 16 jobs").value == 6.92e9
    assert find_medium("NVMe KV block 2.25 MiB, 1 job", "floor").value == pytest.approx(0.7e-3)
    assert find_medium("3FS", "kv_cache_client_read_peak").value == 40 * 2**30


def test_conditions_tell_rows_apart():
    alone = find_medium("Micron 7450 7.68 TB (Gen4)", "read_kv_block", "5 MiB blocks, 1 job")
    assert (alone.value, alone.unit, alone.origin) == (4.58e9, "bytes/s", "measured")


def test_a_basis_stays_in_the_unit():
    assert find_medium("PCIe Gen5 x16", "payload_ceiling").unit == "bytes/s one way"


def test_not_found_is_none():
    assert find_medium("VAST", "read") is None


def test_a_misspelt_medium_is_our_bug():
    with pytest.raises(KeyError):
        find_medium("no such medium", "read")


def test_several_rows_need_their_conditions():
    with pytest.raises(KeyError, match=r"2\.25 MiB blocks, 1 job"):
        find_medium("Micron 7450 7.68 TB (Gen4)", "read_kv_block")


def test_every_row_can_be_looked_up():
    for row in medium_rows():
        fact = find_medium(row.medium, row.field, row.conditions)
        assert (fact is None) == (row.value is None)
