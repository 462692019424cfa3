"""Sessions of kv-cache-tester (WEKA) on one clock: a trace for golden tests and the benchmark."""

import gzip
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import numpy as np

from warmset.trace import Provenance, Trace, build_trace
from warmset.trace.forest import RequestColumns

WEKA_SAMPLE = "traces/weka-kv-cache-tester/sample_49_sessions.jsonl.gz"
SESSION_GAP_MS = 60_000


class _Request(msgspec.Struct):
    t: float
    type: str
    hash_ids: list[int] = []
    requests: list["_Request"] = []
    input_tokens: int = msgspec.field(default=0, name="in")
    output_tokens: int = msgspec.field(default=0, name="out")


class _Session(msgspec.Struct):
    block_size: int
    requests: list[_Request]


def read_weka_sessions(path: Path) -> Trace:
    """One session a line, gzipped."""
    with gzip.open(path, "rb") as lines:
        return weka_trace(lines, path.name)


def weka_trace(lines: Iterable[bytes], name: str) -> Trace:
    """By the rules of `ground_truth.json`, `weka_sample.time`.

    Session i starts at 60*i s, its requests count from its first one, and those of a sub-agent from their
    marker. Ids are local to a session: its number becomes part of the id.
    """
    decoder = msgspec.json.Decoder(_Session)
    arrival_ms, input_tokens, output_tokens, sessions = [], [], [], []
    ids = []
    block_tokens = 0
    for number, line in enumerate(lines):
        session = decoder.decode(line)
        block_tokens = session.block_size
        for seconds, request in _requests(session):
            arrival_ms.append(number * SESSION_GAP_MS + round(1000 * seconds))
            input_tokens.append(request.input_tokens)
            output_tokens.append(request.output_tokens)
            sessions.append(number)
            ids.append(np.array(request.hash_ids, dtype=np.int64) + (number << 32))
    columns = RequestColumns(
        arrival_ms=np.array(arrival_ms, dtype=np.int64),
        input_tokens=np.array(input_tokens, dtype=np.int64),
        output_tokens=np.array(output_tokens, dtype=np.int64),
        num_blocks=np.array([row.size for row in ids], dtype=np.int32),
        ids=np.concatenate(ids),
        session=np.array(sessions, dtype=np.int32),
    )
    return build_trace(columns, block_tokens, Provenance(name=name))


def _requests(session: _Session) -> Iterator[tuple[float, _Request]]:
    """Each request with its seconds from the first one of the session."""
    start = session.requests[0].t
    for request in session.requests:
        if request.type == "subagent":
            yield from ((request.t + inner.t - start, inner) for inner in request.requests)
        else:
            yield request.t - start, request
