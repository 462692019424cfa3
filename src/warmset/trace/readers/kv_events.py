"""Captures of the KV events that vLLM and SGLang publish: what was stored, and what was removed.

A batch is `[ts (s), [event, …], data-parallel rank]`. An event is an array with its name first (vLLM up to
0.23, older SGLang) or a map with the key `type` (vLLM from 0.24, SGLang 0.5.23). A capture is a file of JSON
lines, a batch or an event each, or of MessagePack: batches end to end, or frames of topic, sequence number
and batch as published.

Events hold no hits: a prompt that is cached whole leaves nothing. So a request is read off the blocks that
it had to store: a run of stores in which each goes on where the one before ended, within `CHAIN_GAP_MS`, with
all that stands above it. Prompts and answers are not told apart.
Source: vLLM `distributed/kv_events.py` of 0.23 and 0.24; SGLang `disaggregation/kv_events.py` of 0.5.23.
"""

import reprlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np

from warmset.errors import TraceFormatError
from warmset.trace import kernel
from warmset.trace.builder import TraceBuilder, under_model
from warmset.trace.options import ReadOptions
from warmset.trace.readers.kv_messages import messages
from warmset.trace.readers.log_rows import UnusableRowError
from warmset.trace.readers.rows import milliseconds
from warmset.trace.source import NOT_JSON, Head, Input
from warmset.trace.tally import Tally

TITLE = "KV events of vLLM or SGLang"
CHAIN_GAP_MS = 2000
_STORED, _REMOVED, _CLEARED = "BlockStored", "BlockRemoved", "AllBlocksCleared"
_MARKS = (_STORED.encode(), _REMOVED.encode(), _CLEARED.encode())
_STORED_FIELDS = (
    *("block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium", "lora_name"),
    *("extra_keys", "group_idx"),
)
_REMOVED_FIELDS = ("block_hashes", "medium", "group_idx")
_FIELDS = {_STORED: _STORED_FIELDS, _REMOVED: _REMOVED_FIELDS, _CLEARED: ()}
_ASSUMPTIONS = (
    "KV events hold no hits: prompts that were cached whole are not in the log, so reuse is a lower bound.",
    (
        f"Stores that go on within {CHAIN_GAP_MS // 1000} s where another ended are taken for one request; "
        "its answer counts as input."
    ),
)
_MAX_BLOCKS = 2**24


class _Batch(NamedTuple):
    place: str
    ts_ms: int
    events: list[Any]
    rank: int


@dataclass(slots=True)
class _Chain:
    """A request in the making."""

    first_ms: int
    last_ms: int
    tail: int
    is_restored: bool


def matches(head: Head) -> bool:
    """The names of the events stand in the first bytes, of a binary file or of JSON lines."""
    return any(mark in head.start for mark in _MARKS)


def read(inputs: Sequence[Input], options: ReadOptions, tally: Tally) -> TraceBuilder:
    """All captures; each of them, and each data-parallel rank in it, has a cache of its own.

    Raises: TraceFormatError where the block size is not what the captures say.
    """
    reader = _Reader(options, tally)
    for source in inputs:
        caches: dict[int, _Cache] = {}
        for batch in _batches(source, tally):
            cache = caches.setdefault(batch.rank, _Cache(reader, f"{source.label} rank {batch.rank}"))
            for event in batch.events:
                cache.take(event, batch.ts_ms, batch.place)
        for cache in caches.values():
            cache.finish()
    return reader.builder


# --- batches ---------------------------------------------------------------------------------------


def _batches(source: Input, tally: Tally) -> Iterator[_Batch]:
    """Every batch that can be used; the others are dropped, and gaps in the sequence noted."""
    last_sequence: int | None = None
    for place, value, sequence in _values(source):
        tally.rows += 1
        try:
            if sequence is not None:
                if last_sequence is not None and sequence > last_sequence + 1:
                    tally.note("sequence_gaps", place, sequence - last_sequence - 1)
                last_sequence = sequence
            yield _batch(value, place)
        except UnusableRowError as error:
            tally.drop(place, str(error))


def _values(source: Input) -> Iterator[tuple[str, Any, int | None]]:
    """Place, decoded batch and sequence number of each message; `None` for a batch that does not decode."""
    if source.head().start.lstrip()[:1] in {b"[", b"{"}:
        for number, text in source.lines():
            if text.strip():
                try:
                    yield f"{source.label}:{number}", msgspec.json.decode(text), None
                except NOT_JSON:
                    yield f"{source.label}:{number}", None, None
        return
    for offset, message in messages(source):
        place = f"{source.label}, byte {offset}"
        value = _decoded(message)
        if isinstance(value, list) and len(value) == 3 and isinstance(value[2], bytes):
            topic_sequence = value[1]
            sequence = int.from_bytes(topic_sequence, "big") if isinstance(topic_sequence, bytes) else None
            yield place, _decoded(value[2]), sequence
        else:
            yield place, value, None


def _decoded(message: bytes) -> Any:  # noqa: ANN401 - whatever was captured
    try:
        return msgspec.msgpack.decode(message)
    except NOT_JSON:
        return None


def _batch(value: object, place: str) -> _Batch:
    if isinstance(value, dict):
        if "events" in value:
            value = [value.get("ts"), value["events"], value.get("data_parallel_rank")]
        elif "type" in value:
            value = [value.get("ts", value.get("timestamp")), [value], value.get("data_parallel_rank")]
    if not isinstance(value, list) or len(value) < 2 or not isinstance(value[1], list):
        raise UnusableRowError("is no batch of events: it must hold a time and a list of events")
    rank = value[2] if len(value) > 2 else None
    if isinstance(value[0], bool) or not isinstance(value[0], int | float):
        raise UnusableRowError(f"the time of the batch is {reprlib.repr(value[0])}, not a number of seconds")
    return _Batch(
        place, milliseconds("the time of the batch", value[0]), value[1], rank if isinstance(rank, int) else 0
    )


# --- events ----------------------------------------------------------------------------------------


class _Reader:
    """What all caches of an import share: the builder and the one block size."""

    def __init__(self, options: ReadOptions, tally: Tally) -> None:
        self.tally = tally
        self.given_tokens = options.block_tokens
        self.builder = TraceBuilder(options.block_tokens or 1, tally, times_are_epoch=True)
        self.builder.assumptions.extend(_ASSUMPTIONS)
        self.size_is_known = False

    def check_size(self, tokens: object, place: str) -> None:
        """Take the first block size, and hold every later one against it."""
        if not isinstance(tokens, int) or not 1 <= tokens <= 2**30:
            raise UnusableRowError(f"block_size is {reprlib.repr(tokens)}: it must be at least 1")
        if self.size_is_known and tokens != self.builder.block_tokens:
            raise UnusableRowError(
                f"block_size is {tokens}, and {self.builder.block_tokens} before: import each size apart"
            )
        if self.given_tokens not in {None, tokens}:
            raise TraceFormatError(
                f"{place}: block_size is {tokens}: leave --block-tokens {self.given_tokens} out, "
                "and reblock the trace"
            )
        self.size_is_known = True
        self.builder.block_tokens = tokens


class _Cache:
    """The blocks of one cache, and the requests that its stores tell."""

    def __init__(self, reader: _Reader, name: str) -> None:
        self._reader = reader
        self._tally = reader.tally
        self._name = name
        self._medium: object = None
        self._number: dict[object, int] = {}
        self._identity = array("q")
        self._parent = array("i")
        self._depth = array("i")
        self._removed_ms = array("q")
        self._gaps_ms = array("q")
        self._open: dict[int, _Chain] = {}
        self._first_restored = ""

    def take(self, event: object, ts_ms: int, place: str) -> None:
        """One event; what it does not know is counted, what is broken is dropped."""
        try:
            kind, fields = _named(event)
        except UnusableRowError as error:
            self._tally.rows += 1
            self._tally.drop(place, str(error))
            return
        if kind not in _FIELDS:
            self._tally.note("unknown_events", f"{place}: {kind[:40]!r}")
        elif kind == _CLEARED:
            self._tally.note("cleared_caches", place)
            self._remove(range(len(self._identity)), ts_ms)
        elif self._is_here(fields, kind, place):
            self._tally.rows += 1
            try:
                if kind == _STORED:
                    self._store(fields, ts_ms, place)
                else:
                    self._drop_blocks(fields, ts_ms, place)
            except UnusableRowError as error:
                self._tally.drop(place, str(error))

    def finish(self) -> None:
        """All requests into the builder, and what can be told of evictions."""
        for chain in self._open.values():
            self._add(chain)
        self._open.clear()
        if self._gaps_ms:
            gaps = np.array(self._gaps_ms)
            told = f"{self._first_restored}: back after {np.median(gaps) / 1000:g} s by the median, "
            self._tally.note(
                "restored_blocks", f"{told}{np.quantile(gaps, 0.9) / 1000:g} s by the P90", len(gaps)
            )

    def _is_here(self, fields: dict[str, Any], kind: str, place: str) -> bool:
        """Whether it is about the first medium and the first group of layers."""
        if fields.get("group_idx"):
            self._tally.note("other_groups", f"{place}: group {fields['group_idx']}")
            return False
        medium = fields.get("medium")
        if kind == _STORED and self._medium is None:
            self._medium = medium
        if medium is not None and medium != self._medium:
            self._tally.note("other_mediums", f"{place}: {str(medium)[:20]!r}")
            return False
        return True

    def _store(self, fields: dict[str, Any], ts_ms: int, place: str) -> None:
        hashes = _hashes(fields)
        self._reader.check_size(fields.get("block_size"), place)
        parent = self._parent_of(fields.get("parent_block_hash"), place)
        above = parent
        num_restored = 0
        for identity in hashes:
            number = self._number.get(identity)
            if number is None:
                number = self._new(identity, above)
            elif self._removed_ms[number] >= 0:
                self._gaps_ms.append(ts_ms - self._removed_ms[number])
                self._first_restored = self._first_restored or place
                num_restored += 1
            self._removed_ms[number] = -1
            above = number
        self._chain(parent, above, ts_ms, is_restored=num_restored == len(hashes))

    def _chain(self, parent: int, tail: int, ts_ms: int, *, is_restored: bool) -> None:
        """Go on with the request that ended at the parent a moment ago, or start one."""
        chain = self._open.pop(parent, None)
        if chain is not None and ts_ms - chain.last_ms > CHAIN_GAP_MS:
            self._add(chain)
            chain = None
        if chain is None:
            chain = _Chain(ts_ms, ts_ms, tail, is_restored)
        before = self._open.pop(tail, None)
        if before is not None:
            self._add(before)
        self._open[tail] = _Chain(chain.first_ms, ts_ms, tail, chain.is_restored and is_restored)

    def _add(self, chain: _Chain) -> None:
        depth = self._depth[chain.tail]
        path = np.empty(depth, dtype=np.int32)
        kernel.fill_path(np.frombuffer(self._parent, dtype=np.int32), chain.tail, depth, path)
        ids = np.frombuffer(self._identity, dtype=np.int64)[path]
        self._reader.builder.add(
            arrival_ms=chain.first_ms,
            input_tokens=depth * self._reader.builder.block_tokens,
            output_tokens=0,
            ids=under_model(ids, self._name),
            kind="restored" if chain.is_restored else "stored",
            duration_ms=chain.last_ms - chain.first_ms,
        )

    def _drop_blocks(self, fields: dict[str, Any], ts_ms: int, place: str) -> None:
        numbers = [self._number.get(identity, -1) for identity in _hashes(fields)]
        known = [number for number in numbers if number >= 0]
        if known:
            self._tally.note("removed_blocks", place, len(known))
        if len(known) < len(numbers):
            self._tally.note("removed_before_stored", place, len(numbers) - len(known))
        self._remove(known, ts_ms)

    def _remove(self, numbers: Sequence[int], ts_ms: int) -> None:
        for number in numbers:
            if self._removed_ms[number] < 0:
                self._removed_ms[number] = ts_ms

    def _parent_of(self, parent: object, place: str) -> int:
        if parent is None:
            return -1
        number = self._number.get(_key(parent))
        if number is None:
            self._tally.note("unknown_parents", f"{place}: stored before the capture began")
            return -1
        return number

    def _new(self, identity: object, above: int) -> int:
        number = len(self._identity)
        if number >= _MAX_BLOCKS * 128:
            raise UnusableRowError("there are more distinct blocks than a trace can hold: split the capture")
        self._number[identity] = number
        self._identity.append(identity if isinstance(identity, int) else _from_bytes(identity))
        self._parent.append(above)
        self._depth.append(1 if above < 0 else self._depth[above] + 1)
        self._removed_ms.append(-1)
        return number


def _named(event: object) -> tuple[str, dict[str, Any]]:
    """Name and fields of an event in either encoding."""
    if isinstance(event, dict) and isinstance(event.get("type"), str):
        return event["type"], event
    if isinstance(event, list) and event and isinstance(event[0], str):
        return event[0], dict(zip(_FIELDS.get(event[0], ()), event[1:], strict=False))
    raise UnusableRowError("is no event: it must be an array that starts with its name, or a map with a type")


def _hashes(fields: dict[str, Any]) -> list[object]:
    hashes = fields.get("block_hashes")
    if not isinstance(hashes, list) or not 1 <= len(hashes) <= _MAX_BLOCKS:
        raise UnusableRowError("block_hashes is missing or empty: it must list the hashes of the blocks")
    return [_key(each) for each in hashes]


def _key(identity: object) -> object:
    """A hash as it can be looked up: a number of 64 bits, signed; or bytes."""
    if isinstance(identity, int) and not isinstance(identity, bool) and -(2**63) <= identity < 2**64:
        return identity - 2**64 if identity >= 2**63 else identity
    if isinstance(identity, bytes) and 8 <= len(identity) <= 64:
        return identity
    if isinstance(identity, str) and 16 <= len(identity) <= 128:  # bytes, as JSON writes them
        return identity.encode("utf-8", "surrogatepass")
    raise UnusableRowError(f"block_hashes holds {reprlib.repr(identity)}, which is no hash")


def _from_bytes(identity: object) -> int:
    assert isinstance(identity, bytes)
    return int.from_bytes(identity[:8], "little", signed=True)
