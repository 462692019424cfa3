"""An import spread over a Ray cluster: one part a file, merged one part at a time.

The files must lie at the same path on every node, as on a shared file system.
"""

import logging
import reprlib
import socket
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from warmset.errors import InputError, WarmsetError

if TYPE_CHECKING:
    from warmset.trace import ReadOptions, Trace, TraceBuilder
    from warmset.trace.reading import Logs

_AHEAD = 2
"""Parts in work for each core of the cluster: enough to keep it busy, few enough to hold."""
_ANSWER_S = 10
_CLIENT = "ray://"


def read_on_ray(
    names: Sequence[str], format_name: str | None, options: "ReadOptions", address: str
) -> "Trace":
    """Read many logs of one format on an existing Ray cluster, as `read_trace` would have read them here.

    Raises: InputError where Ray is not installed, no cluster answers, or a file of the format cannot be read
    without the others.
    """
    from warmset.trace.reading import find_logs, finish
    from warmset.trace.source import STDIN

    if STDIN in names:
        raise InputError("--ray: stdin is here and not on the cluster: write it to a file that all nodes see")
    logs = find_logs(names, format_name, options.bad_share)
    _check_parts(logs, options)
    paths = [str(source.path.absolute()) for source in logs.inputs]  # workers run in a folder of their own
    parts = _parts(paths, logs.found.name, options, address)
    builder = next(parts)
    for part in parts:
        builder.absorb(part)
    logs.tally.absorb(builder.tally)
    builder.tally = logs.tally
    return finish(builder, logs)


def _check_parts(logs: "Logs", options: "ReadOptions") -> None:
    """Refuse logs of which a file cannot be read alone."""
    if getattr(logs.found.format, "FILES_REFER_TO_EACH_OTHER", False):
        raise InputError(f"--ray: files of {logs.found.name} refer to one another: import them without --ray")
    if logs.found.prompts() and options.tokenizer is None and options.chars_per_token is None:
        raise InputError(
            "--ray: text is cut alike on all nodes only if told how: give --tokenizer or --chars-per-token"
        )


def _parts(
    paths: list[str], format_name: str, options: "ReadOptions", address: str
) -> Iterator["TraceBuilder"]:
    """The part of each file, in order, with only so many in work as keep the cluster busy."""
    try:
        import ray
    except ImportError as error:
        raise InputError("--ray needs Ray: pip install 'warmset[ray]'") from error
    try:
        _check_answers(address)
        ray.init(address=address, ignore_reinit_error=True, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, ValueError, RuntimeError, OverflowError) as error:
        raise InputError(
            f"--ray {address}: no cluster answers: {error}: start one with ray start --head"
        ) from error
    read_part = ray.remote(_read_part)
    cores = ray.cluster_resources().get("CPU", 1)  # type: ignore[no-untyped-call]
    ahead = _AHEAD * max(int(cores), 1)
    started: deque[Any] = deque()
    remaining = iter(paths)
    try:
        for path in islice(remaining, ahead):
            started.append(read_part.remote(path, format_name, options))
        while started:
            try:
                part = ray.get(started.popleft())
            except ray.exceptions.RayError as error:
                raise _explained(error, address) from error
            yield part
            for path in islice(remaining, 1):
                started.append(read_part.remote(path, format_name, options))
    finally:
        ray.shutdown()


def _check_answers(address: str) -> None:
    """Refuse an address where nothing listens: Ray itself would wait minutes for it.

    Raises: OSError or ValueError.
    """
    from ray._private.services import canonicalize_bootstrap_address

    is_client = address.startswith(_CLIENT)
    found = address.removeprefix(_CLIENT) if is_client else canonicalize_bootstrap_address(address)
    if found is not None:
        host, _, port = found.rpartition(":")
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER_S).close()


def _explained(error: Exception, address: str) -> Exception:
    """What a worker said, or what became of it."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, WarmsetError):
        return cause
    if isinstance(cause, ImportError):
        return InputError(
            f"--ray {address}: a worker cannot read logs: {cause}: install warmset on all nodes"
        )
    if cause is not None:
        return error
    return InputError(
        f"--ray {address}: a worker was lost: {reprlib.repr(str(error))}: give each node more memory"
    )


def _read_part(path: str, format_name: str, options: "ReadOptions") -> "TraceBuilder":
    """One file, on a worker. Bad rows are only counted: their share is that of the whole import."""
    from pathlib import Path

    from warmset.trace.readers import format_named
    from warmset.trace.source import Input
    from warmset.trace.tally import Tally

    return format_named(format_name).format.read([Input(Path(path))], options, Tally(bad_share=1.0))
