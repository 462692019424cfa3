"""The command line answers at once: asking for help loads no heavy library."""

import subprocess
import sys

HEAVY = ("numpy", "numba", "jinja2", "rich", "aiohttp", "starlette")
SCRIPT = """
import sys
import warmset.cli
sys.argv = ["warmset", "--help"]
try:
    warmset.cli.main()
except SystemExit as end:
    assert not end.code
print("LOADED", *sorted(sys.modules))
"""


def test_help_loads_nothing_heavy():
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr
    text, loaded = run.stdout.split("LOADED ")
    assert "curve" in text
    assert set(HEAVY) & set(loaded.split()) == set()
