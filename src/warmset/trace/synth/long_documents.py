"""Questions about long documents, each of which is asked again and again.

After vLLM's benchmark_long_document_qa_throughput, which has neither clock nor questions of its own: there a
prompt is repeated whole. Its modes are `random`, `tile` (our `cyclic`: all documents in turn, again and
again) and `interleave` (our `tiled`: all questions about a document in a row).
"""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import numpy as np

from warmset.trace.builder import TraceBuilder
from warmset.trace.synth.distributions import arrival_stream
from warmset.trace.synth.parameters import Generator, Preset, assumed, published
from warmset.trace.synth.prompts import Prompt, Texts
from warmset.trace.synth.recording import Limits, Recorder, Service

_VLLM = "vLLM, benchmarks/benchmark_long_document_qa_throughput.py"


class LongDocuments(Generator, frozen=True, kw_only=True):
    """Questions about long documents."""

    NAME: ClassVar[str] = "long-document-qa"
    TITLE: ClassVar[str] = "questions about long documents: in turn, at random, or document by document"
    PRESETS: ClassVar = {
        "default": Preset("8 documents of 20,000 tokens, each asked twice, in turn", {}),
        "random": Preset("the same, in random order", {"order": "random"}),
        "tiled": Preset("the same, document by document", {"order": "tiled"}),
    }

    num_documents: Annotated[int, published("documents", _VLLM, ge=1)] = 8
    questions_per_document: Annotated[int, published("times that each is asked", _VLLM, ge=1)] = 2
    order: Annotated[
        Literal["cyclic", "random", "tiled"],
        assumed("cyclic: all in turn, again and again; random: shuffled; tiled: each until it is done"),
    ] = "cyclic"
    document_tokens: Annotated[int, published("length of a document", _VLLM, ge=1)] = 20_000
    system_tokens: Annotated[int, published("system prompt that all share", _VLLM, ge=0)] = 0
    question_tokens: Annotated[
        int, assumed("question, new each time; 0 repeats prompts whole, as vLLM's benchmark does", ge=0)
    ] = 50
    answer_tokens: Annotated[int, published("answer", _VLLM, ge=1)] = 10
    requests_per_s: Annotated[float, assumed("rate, Poisson", gt=0)] = 1.0
    prefill_tokens_per_s: Annotated[float, assumed("prompt tokens that the server reads", gt=0)] = 10_000.0
    decode_tokens_per_s: Annotated[float, assumed("tokens that the server writes in an answer", gt=0)] = 50.0

    def service(self) -> Service:
        """How long answers take."""
        return Service(self.prefill_tokens_per_s, self.decode_tokens_per_s)

    def fill(self, rng: np.random.Generator, limits: Limits, block_tokens: int) -> TraceBuilder:
        """All questions, or as many as fit."""
        recorder = Recorder(block_tokens, self.service(), limits)
        texts = Texts()
        system = texts.new(self.system_tokens)
        corpus = texts.new(self.num_documents * self.document_tokens)
        prompt = Prompt(block_tokens)
        prompt.lay(system)
        head = prompt.mark()
        arrivals = arrival_stream(rng, self.requests_per_s)
        for document, now_ms in zip(self._order(rng), arrivals, strict=False):
            if recorder.is_over(now_ms):
                break
            prompt.rewind(head)
            prompt.lay(corpus.after(document * self.document_tokens).upto(self.document_tokens))
            prompt.lay(texts.new(self.question_tokens))
            recorder.single(prompt, now_ms, self.answer_tokens, self.NAME)
        return recorder.builder

    def _order(self, rng: np.random.Generator) -> Iterator[int]:
        """Which document each question is about."""
        documents = np.arange(self.num_documents)
        if self.order == "cyclic":
            return iter(np.tile(documents, self.questions_per_document).tolist())
        tiled = np.repeat(documents, self.questions_per_document)
        return iter((tiled if self.order == "tiled" else rng.permutation(tiled)).tolist())
