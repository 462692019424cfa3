"""First come, first served over the engines of a fleet, compiled.

A request goes to the engine with the least work ahead of it, loads its cached KV over the channels of that
node (one for each lower tier, one load at a time), and is prefilled when it is loaded and its turn has come.
"""

import numba
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]


@numba.njit(cache=True)
def assign_and_load(
    arrival_s: Floats,
    prefill_s: Floats,
    load_s: Floats,
    fixed_s: Floats,
    num_engines: int,
    engines_per_node: int,
) -> tuple[Int64s, Floats]:
    """The engine of each request, and when its cached KV is in HBM.

    Shapes: `load_s` is requests x tiers, the time on each tier's channel; `fixed_s` has one entry a request.
    """
    engine = np.empty(arrival_s.size, dtype=np.int64)
    ready_s = np.empty(arrival_s.size)
    work_until = np.zeros(num_engines)
    channel_free = np.zeros(((num_engines + engines_per_node - 1) // engines_per_node, load_s.shape[1]))
    for request in range(arrival_s.size):
        chosen = 0
        for candidate in range(1, num_engines):
            if work_until[candidate] < work_until[chosen]:
                chosen = candidate
        node = chosen // engines_per_node
        ready = arrival_s[request]
        for tier in range(load_s.shape[1]):
            if load_s[request, tier] > 0.0:
                start = max(arrival_s[request], channel_free[node, tier])
                channel_free[node, tier] = start + load_s[request, tier]
                ready = max(ready, channel_free[node, tier])
        ready += fixed_s[request]
        engine[request] = chosen
        ready_s[request] = ready
        work_until[chosen] = max(work_until[chosen], arrival_s[request]) + prefill_s[request]
    return engine, ready_s


@numba.njit(cache=True)
def prefill_in_turn(
    order: Int64s, engine: Int64s, ready_s: Floats, prefill_s: Floats, num_engines: int
) -> Floats:
    """When each request's prefill starts, if every engine takes its requests in the given order."""
    start_s = np.empty(ready_s.size)
    free_at = np.zeros(num_engines)
    for request in order:
        start = max(ready_s[request], free_at[engine[request]])
        start_s[request] = start
        free_at[engine[request]] = start + prefill_s[request]
    return start_s


@numba.njit(cache=True)
def decode_until(
    order: Int64s,
    engine: Int64s,
    start_s: Floats,
    end_s: Floats,
    steps: Int64s,
    free_steps_per_s: float,
    busy_steps_per_s: float,
    num_engines: int,
) -> Floats:
    """When the engine of each request has done so many decode steps after the end of its prefill.

    An engine steps at `busy_steps_per_s` while it prefills and at `free_steps_per_s` otherwise. So the steps
    done by a time are a broken line; its value at the end of a prefill, plus the steps wanted, is looked up.
    `order` lists the prefills of every engine in the order in which it takes them.
    """
    counts = np.zeros(num_engines + 1, dtype=np.int64)
    for request in order:
        counts[engine[request] + 1] += 1
    first = np.cumsum(counts)
    filled = first[:-1].copy()
    turn = np.empty(order.size, dtype=np.int64)
    for request in order:
        turn[filled[engine[request]]] = request
        filled[engine[request]] += 1
    at_start, at_end = np.empty(order.size), np.empty(order.size)
    finished_s = np.empty(order.size)
    for number in range(num_engines):
        begin, stop = first[number], first[number + 1]
        done, now = 0.0, 0.0
        for place in range(begin, stop):
            request = turn[place]
            done += (start_s[request] - now) * free_steps_per_s
            at_start[place] = done
            done += (end_s[request] - start_s[request]) * busy_steps_per_s
            at_end[place] = done
            now = end_s[request]
        for place in range(begin, stop):
            wanted = at_end[place] + steps[turn[place]]
            # The last prefill of this engine that starts before the steps are done.
            last = place + np.searchsorted(at_start[place + 1 : stop], wanted)
            request = turn[last]
            if wanted < at_end[last]:
                finished_s[turn[place]] = start_s[request] + (wanted - at_start[last]) / busy_steps_per_s
            else:
                finished_s[turn[place]] = end_s[request] + (wanted - at_end[last]) / free_steps_per_s
    return finished_s
