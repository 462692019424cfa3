"""Quantiles; empty input is refused."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.integer] | npt.NDArray[np.floating] | Sequence[float]


def quantile(values: Numbers, share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed (nearest rank)."""
    column = np.asarray(values)
    if column.size == 0:
        raise ValueError("a quantile of no values")
    # 0.07 * 100 is a little above 7: without rounding it would be the eighth of a hundred values.
    rank = int(np.ceil(round(share * column.size, 9))) - 1
    position = min(max(rank, 0), column.size - 1)
    return float(np.partition(column, position)[position])
