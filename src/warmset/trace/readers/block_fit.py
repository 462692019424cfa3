"""Whether a log's ids are as many as its lengths ask for: the block size, where the log does not name it."""

from array import array
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from warmset.errors import TraceFormatError
from warmset.trace.builder import TraceBuilder
from warmset.trace.tally import Tally

Int64s = npt.NDArray[np.int64]
_FIT_SHARE = 0.5
"""Where a smaller share of the rows has as many ids as its length asks for, the block size is in doubt."""
_SURE_SHARE = 0.9
"""A block size that fits at least so many rows is the right one."""
_CLOSE = 0.9
"""A block size at least this near to the one that the rows suggest is not refused."""
_ROUND_SHARE = 0.98
"""A power of two that fits nearly as many rows as the best size is preferred to it."""
_LARGEST_POWER = 24
_NO_LIMIT = 2**40


class BlockFit:
    """Whether the rows of a file have as many ids as their lengths ask for."""

    def __init__(self, label: str, noun: str = "line") -> None:
        self._label = label
        self._noun = noun
        self._values = array("q")

    def add(self, number: int, num_ids: int, input_tokens: int) -> None:
        """One row."""
        self._values.extend((number, num_ids, input_tokens))

    def refuse_implausible(self, block_tokens: int) -> None:
        """Refuse a block size that most rows contradict, where another one fits nearly all.

        Raises: TraceFormatError with that other one.
        """
        _, num_ids, input_tokens = self._that_tell()
        fitting = _num_that_fit(block_tokens, num_ids, input_tokens)
        if fitting >= _FIT_SHARE * num_ids.size:
            return
        size, best = _best_size(num_ids, input_tokens)
        if best < _SURE_SHARE * num_ids.size or _CLOSE < size / block_tokens < 1 / _CLOSE:
            return
        message = (
            f"{self._label}: {num_ids.size - fitting} of {num_ids.size} rows have another number of "
            f"hash_ids than {block_tokens}-token blocks need: try --block-tokens {size}"
        )
        raise TraceFormatError(message)

    def doubt(self, block_tokens: int) -> tuple[int, str] | None:
        """The likelier size, and what speaks for it, where most rows contradict the given one by far."""
        _, num_ids, input_tokens = self._that_tell()
        fitting = _num_that_fit(block_tokens, num_ids, input_tokens)
        if fitting >= _FIT_SHARE * num_ids.size:
            return None
        tokens_per_id = max(float(input_tokens.sum() / num_ids.sum()), 1.0)
        likely = 2 ** round(np.log2(tokens_per_id))
        detail = (
            f"{num_ids.size - fitting} of {num_ids.size} rows have another number of ids than {block_tokens}-"
            f"token blocks need; there are {tokens_per_id:.1f} input tokens an id"
        )
        return likely, detail

    def note_mismatches(self, block_tokens: int, tally: Tally, *, full_blocks_only: bool = False) -> None:
        """Count the rows with fewer and with more ids than their length asks for."""
        number, num_ids, input_tokens = self._columns()
        expected = input_tokens // block_tokens if full_blocks_only else -(-input_tokens // block_tokens)
        for code, is_odd in (("short_hash_ids", num_ids < expected), ("long_hash_ids", num_ids > expected)):
            if is_odd.any():
                row = int(np.argmax(is_odd))
                first = (
                    f"{self._noun} {number[row]}: {num_ids[row]} ids for {input_tokens[row]} tokens, "
                    f"expected {expected[row]}"
                )
                tally.note(code, first, int(np.count_nonzero(is_odd)))

    def _columns(self) -> Int64s:
        columns: Int64s = np.array(self._values, dtype=np.int64).reshape(-1, 3).T
        return columns

    def _that_tell(self) -> Int64s:
        columns = self._columns()
        telling: Int64s = columns[:, (columns[1] > 0) & (columns[2] > 0)]
        return telling


def settle_block_size(fits: Sequence[BlockFit], builder: TraceBuilder, given_tokens: int | None) -> None:
    """Hold the block size against the rows: refuse it, replace the default of the format, or say it is odd.

    Raises: TraceFormatError where another size fits nearly all rows of a file.
    """
    for fit in fits:
        fit.refuse_implausible(builder.block_tokens)
    for fit in fits:
        doubt = fit.doubt(builder.block_tokens)
        if doubt is None:
            continue
        likely, detail = doubt
        builder.tally.note("odd_block_size", detail)
        if given_tokens is None and likely != builder.block_tokens:
            builder.block_tokens = given_tokens = likely
            builder.assumptions.append(
                f"The log does not say what an id covers, and no size fits all its rows: {likely} tokens "
                "are assumed, from the number of ids."
            )
    for fit in fits:
        fit.note_mismatches(builder.block_tokens, builder.tally)


def _num_that_fit(block_tokens: int, num_ids: Int64s, input_tokens: Int64s) -> int:
    """Rows with one id a block; logs differ in whether a partial last block has one too."""
    full_blocks = input_tokens // block_tokens
    return int(np.count_nonzero((num_ids == full_blocks) | (num_ids == -(-input_tokens // block_tokens))))


def _best_size(num_ids: Int64s, input_tokens: Int64s) -> tuple[int, int]:
    """The size that fits most rows, a power of two if there is one about as good; and how many it fits.

    `n` ids for `t` tokens fit the sizes between t/(n+1) and t/(n-1), and not those two themselves.
    """
    low = np.sort(input_tokens // (num_ids + 1) + 1)
    high = np.where(num_ids > 1, -(-input_tokens // np.maximum(num_ids - 1, 1)) - 1, _NO_LIMIT)
    high = np.sort(np.maximum(high, input_tokens // num_ids))
    powers = 2 ** np.arange(_LARGEST_POWER, dtype=np.int64)
    sizes = np.unique(low)
    fitting = np.searchsorted(low, sizes, "right") - np.searchsorted(high, sizes, "left")
    best = int(np.argmax(fitting))
    fitting_powers = np.searchsorted(low, powers, "right") - np.searchsorted(high, powers, "left")
    best_power = int(np.argmax(fitting_powers))
    if fitting_powers[best_power] >= _ROUND_SHARE * fitting[best]:
        return int(powers[best_power]), int(fitting_powers[best_power])
    end = high[np.searchsorted(high, sizes[best], "left")]
    return int(sizes[best] + end) // 2, int(fitting[best])
