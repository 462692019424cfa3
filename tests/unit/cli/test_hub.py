"""Repository ids: fetched with the extra, refused with its name without it."""

import http.server
import json
import threading
from importlib.util import find_spec

import pytest

from warmset.cli.hub import load_model_or_fetch
from warmset.errors import InputError, ScenarioError
from warmset.model.shipped import find_shipped

HAS_HUB = find_spec("huggingface_hub") is not None


class _Hub(http.server.BaseHTTPRequestHandler):
    """Serves one config.json as the hub does."""

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        if not self.path.startswith("/maker/model/resolve/main/config.json"):
            self.send_error(404)
            return
        content = find_shipped("Qwen3-8B").path.read_bytes()
        self.send_response(200)
        for header, value in (("ETag", '"1"'), ("X-Repo-Commit", 40 * "a"), ("Content-Length", len(content))):
            self.send_header(header, str(value))
        self.end_headers()
        if with_body:
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.skipif(not HAS_HUB, reason="the extra warmset[hub] is not installed")
def test_a_repository_is_fetched(monkeypatch, tmp_path):
    with http.server.HTTPServer(("127.0.0.1", 0), _Hub) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("HF_HOME", str(tmp_path))
        here = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", here)
        template = "huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE"
        monkeypatch.setattr(template, here + "/{repo_id}/resolve/{revision}/{filename}")
        assert load_model_or_fetch("maker/model").name == "maker/model"
        with pytest.raises(InputError, match=r"maker/none: config\.json cannot be fetched"):
            load_model_or_fetch("maker/none")
        server.shutdown()


@pytest.mark.skipif(HAS_HUB, reason="the extra warmset[hub] is installed")
def test_without_the_extra_a_repository_names_it():
    with pytest.raises(ScenarioError, match=r"pip install 'warmset\[hub\]'"):
        load_model_or_fetch("maker/model")


def test_what_is_no_repository_is_not_fetched():
    with pytest.raises(ScenarioError, match="is not known") as error:
        load_model_or_fetch("Qwen9-9B")
    assert "hub" not in str(error.value)


def test_a_kv_format_beside_the_config_counts(tmp_path):
    (tmp_path / "config.json").write_bytes(find_shipped("Llama-3.1-70B-Instruct-FP8").path.read_bytes())
    assert load_model_or_fetch(str(tmp_path)).quantization is None
    sidecar = tmp_path / "hf_quant_config.json"
    sidecar.write_text(json.dumps({"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}))
    quantization = load_model_or_fetch(str(tmp_path)).quantization
    assert quantization is not None
    assert (quantization.weight_format, quantization.kv_cache_bits) == ("FP8", 8)
    sidecar.write_text("[]")
    with pytest.raises(InputError, match=r"hf_quant_config.json: the file holds no JSON object"):
        load_model_or_fetch(str(tmp_path))
