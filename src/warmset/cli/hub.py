"""Models that are not on this machine: the config.json of a repository, with the extra `warmset[hub]`."""

import re
from importlib.util import find_spec
from pathlib import Path

from warmset.errors import InputError, ScenarioError
from warmset.model.config import load_model
from warmset.model.spec import ModelSpec

REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def load_model_or_fetch(name: str) -> ModelSpec:
    """The model of a file, a folder or a shipped name; else of a repository on the Hugging Face hub.

    Only config.json is fetched, into the hub's own cache. `HF_ENDPOINT` and `HF_TOKEN` are honoured.

    Raises: ScenarioError when the name is not known and cannot be fetched; otherwise as `load_model`.
    """
    try:
        return load_model(name)
    except ScenarioError as error:
        if not REPOSITORY.fullmatch(name):
            raise
        if find_spec("huggingface_hub") is None:
            raise ScenarioError(
                f"{error}; with `pip install 'warmset[hub]'` a repository is fetched"
            ) from error
    return load_model(str(_fetched_config(name)), name)


def _fetched_config(repository: str) -> Path:
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(repository, "config.json"))
    except (OSError, ValueError) as error:  # no answer, no entry, no access: the hub raises one of these
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{repository}: config.json cannot be fetched from the hub: {reason}") from error
