"""What every test shares: Hypothesis profiles and the reference data beside the repository."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

REPOSITORY = Path(__file__).parents[1]
SHARED = REPOSITORY.parent / "shared"

settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "local")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference data beside the repository; a test that needs it skips where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("needs ../shared: reference data beside the repository")
    return SHARED
