"""A slow and obvious queue: the reference for `warmset.serving.queueing` and for what its outcomes claim.

Requests are looked at one by one, every quantity is found anew from the plain list of what happened before,
and nothing is kept that could be forgotten to be updated.
"""

from collections.abc import Sequence
from math import factorial
from typing import NamedTuple


class Job(NamedTuple):
    arrival_s: float
    prefill_s: float
    load_s: tuple[float, ...] = ()
    """Time on the channel of each lower tier; zero where nothing is loaded from it."""
    fixed_s: float = 0.0


class Served(NamedTuple):
    engine: int
    ready_s: float
    start_s: float


def serve_in_turn(jobs: Sequence[Job], num_engines: int, engines_per_node: int) -> list[Served]:
    """First come, first served.

    A job goes to the engine with the least work left at its arrival (of several idle ones, to the one that
    ran out of work first, and then to the first). Its loads wait for the node's channels, in order of
    arrival. Each engine prefills what is loaded, in the order in which it became ready.
    """
    engines = [_engine_for(jobs[:number], num_engines, job) for number, job in enumerate(jobs)]
    nodes = [engine // engines_per_node for engine in engines]
    ready = [_ready(jobs, nodes, number) for number in range(len(jobs))]
    starts = [0.0] * len(jobs)
    for engine in range(num_engines):
        mine = [number for number in range(len(jobs)) if engines[number] == engine]
        done_s = 0.0
        for number in sorted(mine, key=lambda number: (ready[number], number)):
            starts[number] = max(ready[number], done_s)
            done_s = starts[number] + jobs[number].prefill_s
    return [Served(*row) for row in zip(engines, ready, starts, strict=True)]


def _engine_for(before: Sequence[Job], num_engines: int, job: Job) -> int:
    """Replays everything that came before, without loads: the router does not know how long they take."""
    work_until = [0.0] * num_engines
    for earlier in before:
        chosen = work_until.index(min(work_until))
        work_until[chosen] = max(work_until[chosen], earlier.arrival_s) + earlier.prefill_s
    return work_until.index(min(work_until))


def _ready(jobs: Sequence[Job], nodes: Sequence[int], number: int) -> float:
    job = jobs[number]
    ends = [job.arrival_s]
    for tier, load_s in enumerate(job.load_s):
        if load_s > 0:
            free_s = 0.0
            for earlier in range(number):
                if nodes[earlier] == nodes[number] and jobs[earlier].load_s[tier] > 0:
                    free_s = max(free_s, jobs[earlier].arrival_s) + jobs[earlier].load_s[tier]
            ends.append(max(free_s, job.arrival_s) + load_s)
    return max(ends) + job.fixed_s


def area_in_system(arrivals_s: Sequence[float], departures_s: Sequence[float]) -> float:
    """Request-seconds in the system, by sweeping over the moments at which somebody comes or goes."""
    moments = sorted([(moment, 1) for moment in arrivals_s] + [(moment, -1) for moment in departures_s])
    area, inside, last = 0.0, 0, moments[0][0]
    for moment, step in moments:
        area += inside * (moment - last)
        inside, last = inside + step, moment
    assert inside == 0
    return area


def steps_until(
    end_s: float, wanted: float, busy: Sequence[tuple[float, float]], free_rate: float, busy_rate: float
) -> float:
    """When `wanted` decode steps after `end_s` are done, if steps come at one rate inside the busy intervals
    of an engine and at another outside, by walking from one edge to the next."""
    now_s, left = end_s, wanted
    edges = sorted({edge for interval in busy for edge in interval})
    while True:
        rate = busy_rate if any(start <= now_s < end for start, end in busy) else free_rate
        next_edge = next((edge for edge in edges if edge > now_s), float("inf"))
        if now_s + left / rate <= next_edge:
            return now_s + left / rate
        left -= (next_edge - now_s) * rate
        now_s = next_edge


def erlang_c(num_servers: int, offered: float) -> float:
    """Share of the arrivals that must wait in M/M/c. `offered` is arrival rate times mean service time.

    Source: Erlang 1917; Kleinrock, Queueing Systems I, (3.40).
    """
    term = offered**num_servers / factorial(num_servers) * num_servers / (num_servers - offered)
    return term / (sum(offered**busy / factorial(busy) for busy in range(num_servers)) + term)


def mean_wait_mmc(num_servers: int, arrivals_per_s: float, service_s: float) -> float:
    """Mean wait in M/M/c: C / (c·mu - lambda)."""
    return erlang_c(num_servers, arrivals_per_s * service_s) / (num_servers / service_s - arrivals_per_s)


def mean_wait_mg1(arrivals_per_s: float, service_s: float, squared_variation: float) -> float:
    """Mean wait in M/G/1, Pollaczek-Khinchine: rho·S·(1 + C²) / (2·(1 - rho))."""
    load = arrivals_per_s * service_s
    return load * service_s * (1 + squared_variation) / (2 * (1 - load))
