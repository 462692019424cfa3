"""What each number of a description is, by its path in the JSON; a field without a line has its parent's.

Definitions of hits and windows are those of the published tables that the tests hold them against.
"""

from collections.abc import Mapping

DEFINITIONS: Mapping[str, str] = {
    "block_tokens": "tokens that one block covers",
    "num_requests": "requests in the trace",
    "input_tokens": "prompt tokens of all requests",
    "output_tokens": "answer tokens of all requests",
    "arrivals.span_s": "from the first arrival to the last",
    "arrivals.requests_per_s": "requests over the span",
    "arrivals.p99_requests_per_s": "arrivals in each second of the span, empty seconds included",
    "arrivals.max_requests_per_s": "most arrivals in one of these seconds; a coarse clock makes peaks",
    "arrivals.inter_arrival_cv_ratio": "standard deviation over mean of the gaps; 1 for a Poisson process",
    "arrivals.clock_step_ms": "median step between distinct arrival times",
    "input": "prompt tokens of a request; quantiles interpolate between the two values next in rank",
    "output": "answer tokens of a request",
    "reuse.block_refs": "blocks of all prompts, repeats counted",
    "reuse.unique_blocks": "distinct blocks, each with all that precedes it",
    "reuse.hit_blocks": "leading blocks that an earlier prompt had: hits of an unlimited cache",
    "reuse.hit_tokens": "tokens that these blocks cover, at most the prompt's",
    "reuse.block_hit_ratio": "hit blocks over block references, unlimited cache",
    "reuse.token_hit_ratio": "hit tokens over prompt tokens, unlimited cache",
    "reuse.mean_of_request_block_hit_ratio": (
        "mean over requests with blocks of hit blocks over blocks; a mean of ratios: short prompts weigh as "
        "much as long ones"
    ),
    "reuse.requests_over_one_block_ratio": "over all requests",
    "reuse.reuse_times": "time since the reference before to the same block, over all re-uses",
    "popularity.used_once_ratio": "over distinct blocks",
    "popularity.top.top_percent": "of the distinct blocks, the most referenced first",
    "popularity.top.num_blocks": "so many blocks",
    "popularity.top.refs_ratio": (
        "of the references that go to the most referenced blocks; re-uses leave out the first of each block"
    ),
    "popularity.top.reuse_ratio": "the same, without the first reference of each block",
    "popularity.zipf": (
        "references of the block at rank r as r ** -alpha: least squares on logarithms at 200 ranks, evenly "
        "spaced in the logarithm; R2: variance explained"
    ),
    "popularity.zipf_body": "the same from rank 100 on, of blocks with at least two references",
    "popularity.life_span": "from the first reference of a block to the last, of blocks with more than one",
    "working_sets": "distinct blocks in consecutive windows from the first arrival on, the last one included",
    "sessions.num_sessions": "named in the log, or chained by its links, or inferred from prompts that go on",
    "sessions.duplicate_sessions": (
        "with the paths and lengths of an earlier session, request by request; of three requests or more"
    ),
    "sessions.turns": "requests of a session",
    "sessions.turn_gaps": "from a request's arrival to the next one's in its session",
    "sessions.think_times": (
        "from the end of an answer to the request that goes on: as logged, or else the gap between arrivals "
        "less the logged duration, or else the whole gap; requests that overlap the answer are left out"
    ),
    "sessions.context.all_requests": "prompt plus answer of a request",
    "sessions.context.at_last_request": "prompt plus answer of each session's last request",
    "sessions.context.longest_of_session": "the largest prompt plus answer of each session",
    "sessions.activity.active_window_s": "the window that tells active from dormant",
    "sessions.activity.mean_open_sessions": "from a session's first request to its last; mean over the span",
    "sessions.activity.max_open_sessions": "most at once",
    "sessions.activity.mean_active_sessions": "open, with a request within the window",
    "sessions.activity.max_active_sessions": "most at once",
    "sessions.activity.mean_dormant_sessions": "open, without one",
    "sessions.activity.max_dormant_sessions": "most at once",
    "sessions.activity.dormant_time_ratio": "dormant session-time over open session-time, totals",
    "sessions.activity.over_time": "sessions at regular moments, from the first arrival to the last",
    "reported_cache": (
        "cached tokens over prompt tokens where the log counts them: the provider's cache, with its time to "
        "live, and not what could be reused"
    ),
    "generated_tokens.num_continuations": (
        "requests that start with all full blocks of the request before, which is "
        "linked, or of the same session, or inferred: the latest whose last full block is deepest"
    ),
    "generated_tokens.hit_tokens": "tokens of known blocks alone, as in reuse",
    "generated_tokens.with_partial_block_tokens": (
        "and the last, partial block of the prompt before, if this prompt is at least as long"
    ),
    "generated_tokens.with_answer_tokens": (
        "and its answer, up to the end of this prompt: decode left it in the cache; one that comes back "
        "changed counts too"
    ),
    "generated_tokens.token_hit_ratio": "of known blocks alone, unlimited cache",
    "generated_tokens.with_partial_block_token_hit_ratio": "and the partial last block of the prompt before",
    "generated_tokens.with_answer_token_hit_ratio": "and its answer, which decode left in the cache",
}


def definition_of(path: str) -> str:
    """The line of a field, or that of the nearest field around it.

    Raises: `KeyError` where there is none.
    """
    around = path
    while around not in DEFINITIONS:
        if "." not in around:
            raise KeyError(path)
        around = around.rpartition(".")[0]
    return DEFINITIONS[around]
