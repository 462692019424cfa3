"""Times and block sizes that are not what they seem."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from warmset.trace.forest import Trace
from warmset.trace.lint.advice import MEND
from warmset.trace.lint.findings import LintFinding
from warmset.trace.lint.paths import reuse_ages_ms

Int64s = npt.NDArray[np.int64]

TTLS_S = (60, 300, 600, 1800, 3600)
"""Times to live in use: providers' 5 minutes and 1 hour, and round ones."""
USUAL_BLOCK_TOKENS = (16, 32, 64, 128, 256, 512, 1024, 2048)
_COARSE_MS = 500
_LEAST_REQUESTS = 20
_LEAST_ON_TTL = 5
_LEAST_BLOCKS = 8
"""Shorter prompts say little about the size of a block: the last one may be partly filled."""
_FITS_SHARE = 0.25


def clock_findings(trace: Trace, known: Int64s) -> Iterator[LintFinding]:
    """A coarse clock, and ages that a time to live decides by rounding."""
    stamps, count = np.unique(trace.arrival_ms, return_counts=True)
    tied = int(count[count > 1].sum())
    step_ms = int(np.diff(stamps).min()) if stamps.size > 1 else 0
    if trace.num_requests >= _LEAST_REQUESTS and step_ms >= _COARSE_MS and 2 * tied >= trace.num_requests:
        yield LintFinding(
            code="coarse_clock",
            count=tied,
            num_total=trace.num_requests,
            example=f"{stamps.size:,} different arrivals, none closer than {step_ms / 1000:g} s",
            mend=MEND["coarse_clock"],
            confidence="certain",
        )
    if not trace.has_blocks:
        return
    ages = reuse_ages_ms(trace, known)
    on_ttl = {ttl_s: int(np.count_nonzero(ages == 1000 * ttl_s)) for ttl_s in TTLS_S}
    total = sum(on_ttl.values())
    if total >= _LEAST_ON_TTL:
        most = max(on_ttl, key=lambda ttl_s: on_ttl[ttl_s])
        yield LintFinding(
            code="gaps_on_ttl",
            count=total,
            num_total=int(np.count_nonzero(ages >= 0)),
            example=f"{on_ttl[most]:,} re-uses after exactly {most} s",
            mend=MEND["gaps_on_ttl"],
            confidence="certain",
        )


def block_size_findings(trace: Trace) -> Iterator[LintFinding]:
    """Lengths that do not fit the number of ids."""
    rows = trace.num_blocks >= _LEAST_BLOCKS
    if not rows.any():
        return
    per_block_tokens = float(np.median(trace.input_tokens[rows] / trace.num_blocks[rows]))
    if abs(per_block_tokens / trace.block_tokens - 1) <= _FITS_SHARE:
        return
    nearest = min(USUAL_BLOCK_TOKENS, key=lambda tokens: abs(np.log(per_block_tokens / tokens)))
    yield LintFinding(
        code="block_size",
        count=int(rows.sum()),
        num_total=trace.num_requests,
        example=f"ids cover {per_block_tokens:,.0f} tokens each (median), read as {trace.block_tokens}; "
        f"{nearest} is usual",
        mend=MEND["block_size"],
    )
