"""A trace in the formats of others, a row at a time. Block ids are the trace's own numbers of blocks."""

import gzip
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
import numpy as np

from warmset.errors import InputError
from warmset.trace import kernel
from warmset.trace.forest import OPTIONAL_COLUMNS, UNKNOWN, Trace

Row = dict[str, Any]
_SECOND_MS = 1000
_CHUNK = 4096
"""Requests whose numbers are Python objects at a time; paths are rebuilt one by one."""


class Written(NamedTuple):
    """What a file of another format holds, and what it cannot."""

    num_rows: int
    left_out: tuple[str, ...]
    """What the trace knows and the format has no field for."""
    hints: tuple[str, ...]
    """What whoever reads the file has to be told."""


class _Request(NamedTuple):
    row: int
    arrival_ms: int
    input_tokens: int
    output_tokens: int
    ids: list[int]


def _requests(trace: Trace) -> Iterator[_Request]:
    """Each request with the ids of its blocks, from the first to the last."""
    path = np.empty(int(trace.num_blocks.max()), dtype=np.int32)
    columns = (trace.arrival_ms, trace.input_tokens, trace.output_tokens, trace.leaf, trace.num_blocks)
    for start in range(0, trace.num_requests, _CHUNK):
        chunk = (column[start : start + _CHUNK].tolist() for column in columns)
        for row, values in enumerate(zip(*chunk, strict=True), start=start):
            arrival_ms, input_tokens, output_tokens, leaf, num_blocks = values
            kernel.fill_path(trace.node_parent, leaf, num_blocks, path)
            yield _Request(row, arrival_ms, input_tokens, output_tokens, path[:num_blocks].tolist())


def _lengths(request: _Request) -> Row:
    return {
        "timestamp": request.arrival_ms,
        "input_length": request.input_tokens,
        "output_length": request.output_tokens,
        "hash_ids": request.ids,
    }


# --- formats ---------------------------------------------------------------------------------------


def _mooncake_rows(trace: Trace) -> Iterator[Row]:
    for request in _requests(trace):
        row = _lengths(request)
        if trace.session is not None:
            row["session_id"] = int(trace.session[request.row])
        yield row


def _kvcache_simulator_rows(trace: Trace) -> Iterator[Row]:
    for request in _requests(trace):
        row = {**_lengths(request), "block_size": trace.block_tokens}
        if trace.session is not None:
            row["session_id"] = int(trace.session[request.row])
        yield row


def _aiperf_rows(trace: Trace) -> Iterator[Row]:
    """Turns of a session; each holds its whole prompt, and AIPerf must not put earlier turns before it.

    `delay` is the wait after the answer before. AIPerf's fixed schedule goes by `timestamp` where both are.
    Source: ai-dynamo/aiperf, `MooncakeTrace`, `FixedScheduleStrategy` and `MooncakeTraceDatasetLoader`.
    """
    turns = _previous_turns(trace)
    for request in _requests(trace):
        row = _lengths(request)
        if trace.session is not None:
            row["session_id"] = str(trace.session[request.row])
            row["context_mode"] = "message_array_with_responses"
            if trace.think_ms is not None and turns[request.row] >= 0 and trace.think_ms[request.row] >= 0:
                row["delay"] = int(trace.think_ms[request.row])
        yield row


def _aiperf_closed_rows(trace: Trace) -> Iterator[Row]:
    """The same without the times of turns that have a delay: AIPerf then waits for the answer before."""
    for row in _aiperf_rows(trace):
        if "delay" in row:
            del row["timestamp"]
        yield row


def _bailian_rows(trace: Trace) -> Iterator[Row]:
    """`turn` counts from 1 along `parent_chat_id`, which is -1 at the start of a conversation."""
    previous = _previous_turns(trace)
    turns: dict[int, int] = {}
    for request in _requests(trace):
        parent = int(previous[request.row])
        turns[request.row] = turns.get(parent, 0) + 1
        kind = UNKNOWN if trace.kind is None else int(trace.kind[request.row])
        yield {
            "chat_id": request.row,
            "parent_chat_id": parent,
            **_lengths(request),
            "timestamp": request.arrival_ms / _SECOND_MS,
            "type": "text" if kind < 0 else trace.kind_names[kind],
            "turn": turns[request.row],
        }


def _previous_turns(trace: Trace) -> np.ndarray:
    """The request that each goes on from; where the log does not say, the one before it in its session."""
    if trace.previous is not None or trace.session is None:
        none = np.full(trace.num_requests, UNKNOWN, dtype=np.int32)
        return none if trace.previous is None else trace.previous
    order = np.argsort(trace.session, kind="stable")
    follows = trace.session[order[1:]] == trace.session[order[:-1]]
    previous = np.full(trace.num_requests, UNKNOWN, dtype=np.int64)
    previous[order[1:][follows]] = order[:-1][follows]
    return previous


class Target(NamedTuple):
    """A format to write: its rows, the optional columns that they carry, and what it takes for granted."""

    rows: Callable[[Trace], Iterator[Row]]
    carries: tuple[str, ...]
    block_tokens: int | None
    """What a reader takes for the block size unless told; `None` where each row names it."""
    block_flag: str = ""
    """How a reader is told another one."""


TARGETS = {
    "mooncake": Target(_mooncake_rows, ("session",), 512, "--block-tokens"),
    "bailian": Target(_bailian_rows, ("session", "previous", "kind"), 16, "--block-tokens"),
    "aiperf": Target(_aiperf_rows, ("session", "previous", "think_ms"), 512, "--isl-block-size"),
    "kvcache-simulator": Target(_kvcache_simulator_rows, ("session",), None),
}
"""Formats that `export` writes; a session follows from `previous` where a format has no field for it."""


# --- files -----------------------------------------------------------------------------------------


def export_trace(
    trace: Trace, target: str, path: Path | None, stdout: IO[bytes], *, closed_loop: bool = False
) -> Written:
    """Write a trace as JSON lines of another format, gzipped or zstd by the name; `path` `None` is stdout.

    With `closed_loop`, turns of a session have the wait after the answer before them, and no time.

    Raises: InputError for a format that is not one or cannot hold this trace, or a file that cannot be
    written.
    """
    if target not in TARGETS:
        raise InputError(f"--to {target}: it must be one of {', '.join(TARGETS)}")
    if target == "kvcache-simulator" and not trace.has_blocks:
        raise InputError(f"{trace.provenance.name}: has lengths only, and {target} needs block ids")
    rows = TARGETS[target].rows
    if closed_loop:
        _check_closed_loop(trace, target)
        rows = _aiperf_closed_rows
    encode = msgspec.json.Encoder().encode
    num_rows = 0
    with _target_file(path, stdout) as file:
        for row in rows(trace):
            file.write(encode(row))
            file.write(b"\n")
            num_rows += 1
    return Written(num_rows, tuple(_left_out(trace, target)), tuple(_hints(trace, target)))


def _check_closed_loop(trace: Trace, target: str) -> None:
    if target != "aiperf":
        raise InputError(f"--closed-loop: {target} has no field for a wait; --to aiperf has")
    if trace.session is None or trace.think_ms is None:
        raise InputError("--closed-loop: the trace does not know how long its sessions wait between turns")


def _left_out(trace: Trace, target: str) -> Iterator[str]:
    for name in OPTIONAL_COLUMNS:
        if getattr(trace, name) is not None and name not in TARGETS[target].carries:
            yield name
    if trace.provenance.epoch_ms is not None:
        yield "epoch"


def _hints(trace: Trace, target: str) -> Iterator[str]:
    _, _, block_tokens, flag = TARGETS[target]
    if trace.has_blocks and block_tokens not in {None, trace.block_tokens}:
        yield f"{target} takes blocks for {block_tokens} tokens: read it with {flag} {trace.block_tokens}"
    num_without = int(np.count_nonzero(trace.num_blocks == 0))
    if target == "kvcache-simulator" and num_without:
        yield f"{target} skips the {num_without:,} requests without blocks"


@contextmanager
def _target_file(path: Path | None, stdout: IO[bytes]) -> Iterator[IO[bytes]]:
    """The file to fill; one that is there is replaced only once the new one is whole."""
    if path is None:
        yield stdout
        return
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as raw, _packed(raw, path.suffix) as file:
            yield file
        draft.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def _packed(raw: IO[bytes], suffix: str) -> Iterator[IO[bytes]]:
    if suffix == ".gz":
        with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as file:
            yield file  # type: ignore[misc]
    elif suffix == ".zst":
        import zstandard

        with zstandard.ZstdCompressor().stream_writer(raw, closefd=False) as file:
            yield file
    else:
        yield raw
