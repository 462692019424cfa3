"""Accelerators by the names people give them."""

import difflib
import re
from functools import cache

import msgspec

from warmset.catalog.tables import AcceleratorRow, accelerator_rows
from warmset.errors import ScenarioError
from warmset.facts import Fact
from warmset.units import BYTE_UNITS

Fields = dict[str, AcceleratorRow]


class Accelerator(msgspec.Struct, frozen=True, kw_only=True):
    """What the product needs to know of one accelerator. `None` is "not found", never zero.

    Rates are per second: `memory_bandwidth` in bytes, `bf16_flops` and `fp8_flops` in dense FLOPs, `int8_ops`
    in dense operations. Links count one direction. `host_copy_bytes_per_s` is a pinned copy from host memory.
    `link_bytes_per_s` is the way to the other accelerators, which is the host link where there is no other.
    """

    name: str
    vendor: str
    memory_bytes_per_gpu: Fact | None
    memory_bandwidth: Fact | None
    bf16_flops: Fact | None
    fp8_flops: Fact | None
    int8_ops: Fact | None
    host_link_bytes_per_s: Fact | None
    host_copy_bytes_per_s: Fact | None
    link_bytes_per_s: Fact | None
    power_w: Fact | None


class LabelShare(msgspec.Struct, frozen=True):
    """What a driver reports, as a share of the label read as GiB."""

    value: float
    low: float
    high: float
    reason: str


HBM_SHARE = LabelShare(
    0.99, 0.98, 0.996, "drivers of H200, GB200, B200 and A100-40 report 0.996 to 0.98 of it"
)
GDDR6_SHARE = LabelShare(0.94, 0.93, 0.996, "an L40S driver reports 0.937 of it with ECC on")
ASCEND_SHARE = LabelShare(0.94, 0.92, 0.96, "an Atlas 800T A2 driver reports 0.943 of it")


def accelerator_names() -> tuple[str, ...]:
    """Every name in the catalog, in its order."""
    return tuple(_fields_by_name())


@cache
def find_accelerator(name: str) -> Accelerator:
    """The accelerator that a person means by `name`.

    Case, spaces, hyphens, the vendor's name and a memory suffix (`141G`, `141 GB`) do not matter. A name that
    leaves only the form factor open (`H100`) means the SXM module, which is what servers of eight carry.

    Raises: ScenarioError when the name fits none or several.

    >>> find_accelerator("nvidia h20-3e").name
    'H20-141G (H20-3e)'
    """
    matches = [known for known in accelerator_names() if _speller(known).fullmatch(_squeezed(name))]
    if len(matches) > 1:
        matches = _sxm_of_one_family(matches) or matches
    if len(matches) == 1:
        return _accelerator(matches[0])
    if matches:
        raise ScenarioError(f"accelerator {name!r} fits several: write one of {', '.join(matches)}")
    nearest = ", ".join(_nearest(name))
    raise ScenarioError(f"accelerator {name!r} is not in the catalog: the nearest names are {nearest}")


def _nearest(name: str) -> list[str]:
    spellings = {_squeezed(known): known for known in accelerator_names()}
    holding = [known for spelling, known in spellings.items() if _squeezed(name) in spelling]
    close = difflib.get_close_matches(_squeezed(name), spellings, n=3, cutoff=0.0)
    return holding[:3] or [spellings[spelling] for spelling in close]


def _sxm_of_one_family(names: list[str]) -> list[str]:
    families = {name.removesuffix(" SXM").removesuffix(" PCIe") for name in names}
    return [name for name in names if name.endswith(" SXM")] if len(families) == 1 else []


def _squeezed(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())


@cache
def _speller(name: str) -> re.Pattern[str]:
    """Accepts any run of the words of one accelerator, written without separators."""
    fields = _fields_by_name()[name]
    described = f"{name} {fields['memory_label_gb'].vendor} {fields['mem_type'].value}"
    words = {_squeezed(word) for word in re.split(r"[^A-Za-z0-9]+", described)} - {""}
    words.add(fields["memory_label_gb"].value or "unlabelled")
    spellings = (_memory_spelling(word) if word != "sxm" else r"sxm\d?" for word in sorted(words))
    return re.compile(rf"(?=.*[a-z])(?:{'|'.join(spellings)})+")


def _memory_spelling(word: str) -> str:
    memory = re.fullmatch(r"(\d{2,3})g?", word)
    return rf"{memory[1]}(?:g|gb|gib)?" if memory else re.escape(word)


@cache
def _fields_by_name() -> dict[str, Fields]:
    table: dict[str, Fields] = {}
    for row in accelerator_rows():
        table.setdefault(row.accelerator, {})[row.field] = row
    return table


def _accelerator(name: str) -> Accelerator:
    fields = _fields_by_name()[name]
    host_link = _fact(fields, "host_link_gbs", "bytes/s", 1e9)
    return Accelerator(
        name=name,
        vendor=fields["memory_label_gb"].vendor,
        memory_bytes_per_gpu=_driver_memory(fields) or _labelled_memory(fields),
        memory_bandwidth=_fact(fields, "mem_bw_gbs", "bytes/s", 1e9),
        bf16_flops=_fact(fields, "bf16_tflops", "FLOP/s", 1e12),
        fp8_flops=_fact(fields, "fp8_tflops", "FLOP/s", 1e12),
        int8_ops=_fact(fields, "int8_tops", "OP/s", 1e12),
        host_link_bytes_per_s=host_link,
        host_copy_bytes_per_s=_fact(fields, "h2d_measured_gbs", "bytes/s", 1e9)
        or _fact(fields, "h2d_assumed_gbs", "bytes/s", 1e9),
        link_bytes_per_s=_link(fields, host_link),
        power_w=_fact(fields, "tdp_w", "W") or _fact(fields, "tdp_assumed_w", "W"),
    )


def _fact(fields: Fields, field: str, unit: str, factor: float = 1.0) -> Fact | None:
    row = fields.get(field)
    if row is None or not row.value or row.origin is None:
        return None
    return Fact(
        value=float(row.value) * factor,
        unit=unit,
        origin=row.origin,
        source=row.source,
        date=row.date,
        low=None if row.low is None else row.low * factor,
        high=None if row.high is None else row.high * factor,
        note=row.note,
    )


def _driver_memory(fields: Fields) -> Fact | None:
    return _fact(fields, "memory_driver", "bytes", BYTE_UNITS[fields["memory_driver"].unit])


def _labelled_memory(fields: Fields) -> Fact | None:
    """Bytes where no driver reading is known: HBM labels mostly count GiB, less a reserve.

    B300 and GB300, whose labels do not, have a driver reading.
    """
    label = _fact(fields, "memory_label_gb", "bytes", 2.0**30)
    if label is None:
        return None
    share = _label_share(fields)
    note = f"label {fields['memory_label_gb'].value} read as GiB, times {share.value}: {share.reason}"
    return msgspec.structs.replace(
        label,
        value=label.value * share.value,
        low=label.least * share.low,
        high=label.most * share.high,
        origin="assumed",
        note="; ".join(text for text in (note, label.note) if text),
    )


def _label_share(fields: Fields) -> LabelShare:
    if fields["memory_label_gb"].vendor == "Huawei":
        return ASCEND_SHARE
    if fields["mem_type"].value == "GDDR6":
        return GDDR6_SHARE
    return HBM_SHARE


def _link(fields: Fields, host_link: Fact | None) -> Fact | None:
    link = _fact(fields, "link_gbs", "bytes/s", 1e9)
    if link is None or link.value > 0:
        return link
    if host_link is None:
        return None
    return msgspec.structs.replace(
        host_link, origin="assumed", note="no accelerator link; peers share the host link"
    )
