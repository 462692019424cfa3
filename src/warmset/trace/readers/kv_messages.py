"""MessagePack values end to end, or each behind a length of four bytes: where one ends."""

from collections.abc import Iterator

import numba
import numpy as np
import numpy.typing as npt

from warmset.errors import TraceFormatError
from warmset.trace.source import Input

MAX_MESSAGE_BYTES = 32 * 2**20
_CHUNK_BYTES = 2**20
_LENGTH_BYTES = 4
_CUT_OFF, _BROKEN = -1, -2
_FIXARRAYS = range(0x91, 0x9A)


def messages(source: Input) -> Iterator[tuple[int, bytes]]:
    """Where each message starts in the unpacked file, and its bytes.

    Raises: TraceFormatError for what is no MessagePack, a message that is cut off, and one above
    `MAX_MESSAGE_BYTES`.
    """
    offset = 0
    buffer = b""
    has_lengths: bool | None = None
    with source.opened() as stream:
        while True:
            chunk = stream.read(_CHUNK_BYTES)
            buffer += chunk
            if has_lengths is None and len(buffer) > _LENGTH_BYTES:
                has_lengths = buffer[0] not in _FIXARRAYS
            position = 0
            while position < len(buffer):
                start = position + (_LENGTH_BYTES if has_lengths else 0)
                end = message_end(np.frombuffer(buffer, dtype=np.uint8), start)
                if end == _BROKEN:
                    raise TraceFormatError(
                        f"{source.label}, byte {offset + position}: is no MessagePack: "
                        "capture the payloads as they come"
                    )
                if end == _CUT_OFF:
                    break
                yield offset + start, buffer[start:end]
                position = end
            offset += position
            buffer = buffer[position:]
            if len(buffer) > MAX_MESSAGE_BYTES:
                raise TraceFormatError(
                    f"{source.label}, byte {offset}: the message is longer than "
                    f"{MAX_MESSAGE_BYTES // 2**20} MiB"
                )
            if not chunk:
                break
    if buffer:
        raise TraceFormatError(
            f"{source.label}, byte {offset}: the last message is cut off: end the capture, then copy it again"
        )


@numba.njit(cache=True)
def message_end(  # noqa: C901, PLR0912 - one branch a family of formats, as the specification lists them
    codes: npt.NDArray[np.uint8], start: int
) -> int:
    """The place behind the value that starts here; -1 where it is cut off, -2 where it is none.

    Source: the MessagePack specification, formats by their first byte.
    """
    position = start
    pending = 1
    while pending > 0:
        if position >= codes.size:
            return _CUT_OFF
        code = codes[position]
        position += 1
        pending -= 1
        if code <= 0x7F or code >= 0xE0 or code in (0xC0, 0xC2, 0xC3):
            continue
        if code <= 0x8F:
            pending += 2 * (code & 0x0F)
        elif code <= 0x9F:
            pending += code & 0x0F
        elif code <= 0xBF:
            position += code & 0x1F
        elif code == 0xC1:
            return _BROKEN
        elif 0xCA <= code <= 0xD3:
            position += 4 if code == 0xCA else 8 if code == 0xCB else 1 << ((code - 0xCC) & 3)
        elif 0xD4 <= code <= 0xD8:
            position += 1 + (1 << (code - 0xD4))
        else:
            size_bytes = _size_bytes(code)
            if position + size_bytes > codes.size:
                return _CUT_OFF
            size = 0
            for _ in range(size_bytes):
                size = size * 256 + codes[position]
                position += 1
            if code >= 0xDE:
                pending += 2 * size
            elif code >= 0xDC:
                pending += size
            else:
                position += size + (1 if 0xC7 <= code <= 0xC9 else 0)
    return position if position <= codes.size else _CUT_OFF


@numba.njit(cache=True, inline="always")
def _size_bytes(code: int) -> int:
    """How many bytes say how long it is: bin, ext, str, array, map."""
    if code <= 0xC6:
        return 1 << (code - 0xC4)
    if code <= 0xC9:
        return 1 << (code - 0xC7)
    if code <= 0xDB:
        return 1 << (code - 0xD9)
    return 2 if code in (0xDC, 0xDE) else 4
