"""What users and GPUs see of a plan: latency, throughput and concurrency under each baseline.

The analytic stand-in: closed formulas for each request's times, and one first-come-first-served pass over the
arrivals. `ServingOutcome` is what an event simulation and a measurement return too.
"""

from warmset.serving.analytic import Fleet, RequestHits, Workload, serve, worth_loading
from warmset.serving.latency import EngineTimes, LoadPath
from warmset.serving.outcome import ServingOutcome
from warmset.serving.slo import Promise, sustainable_load_factor

__all__ = [
    "EngineTimes",
    "Fleet",
    "LoadPath",
    "Promise",
    "RequestHits",
    "ServingOutcome",
    "Workload",
    "serve",
    "sustainable_load_factor",
    "worth_loading",
]
