"""Sessions of kv-cache-tester (WEKA): real traces beside the repository."""

from pathlib import Path

from warmset.trace import Trace, read_trace

WEKA_SAMPLE = "traces/weka-kv-cache-tester/sample_49_sessions.jsonl.gz"
WEKA_ALL = "traces/weka-kv-cache-tester/traces_710_sessions.jsonl.zst"


def read_weka_sessions(path: Path) -> Trace:
    """Session i starts at 60*i s, as in `ground_truth.json`, `weka_sample.time`."""
    return read_trace([path], "weka")
