"""Retrieval-augmented answers over a shared corpus: a system prompt, chunks of documents, and a question."""

from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from warmset.errors import InputError
from warmset.trace.builder import TraceBuilder
from warmset.trace.synth.distributions import Lognormal, Zipf, arrival_stream, whole_stream
from warmset.trace.synth.parameters import Generator, Preset, assumed
from warmset.trace.synth.prompts import Prompt, Span, Texts
from warmset.trace.synth.recording import Limits, Recorder, Service

_MOST_TRIES = 1000
"""Batches of draws after which a query is not going to find as many chunks as it wants."""


class Rag(Generator, frozen=True, kw_only=True):
    """Questions over retrieved chunks."""

    NAME: ClassVar[str] = "rag"
    TITLE: ClassVar[str] = "retrieval over a shared corpus with Zipf documents"
    USUAL: ClassVar[Limits] = Limits(num_requests=10_000)
    NOTES: ClassVar[tuple[str, ...]] = (
        "Ranked means that hotter documents stand first, so that queries about the same ones share a prefix.",
    )
    PRESETS: ClassVar = {
        "default": Preset("10,000 documents, 5 chunks a query, hot documents first", {}),
        "shuffled": Preset("chunks in an order of each query's own", {"order": "shuffled"}),
        "hot": Preset("a small corpus with a few favourites", {"num_documents": 1000, "zipf_factor": 1.2}),
    }

    requests_per_s: Annotated[float, assumed("rate", gt=0)] = 2.0
    interarrival_cv_factor: Annotated[float, assumed("spread of gaps over mean; 1: Poisson", gt=0)] = 1.0
    num_documents: Annotated[int, assumed("documents in the corpus", ge=1, le=10**7)] = 10_000
    zipf_factor: Annotated[float, assumed("document k is asked for in proportion to 1 / k^this", ge=0)] = 0.9
    chunks_per_document: Annotated[int, assumed("pieces of a document", ge=1)] = 8
    chunk_tokens: Annotated[int, assumed("length of a piece", ge=1)] = 512
    chunks_per_query: Annotated[int, assumed("pieces in a prompt, all different", ge=1)] = 5
    order: Annotated[
        Literal["ranked", "shuffled"], assumed("ranked: hotter documents first; shuffled: at random")
    ] = "ranked"
    system_tokens: Annotated[int, assumed("system prompt that all share", ge=0)] = 500
    question_p50_tokens: Annotated[int, assumed("question, median", ge=1)] = 40
    question_sigma: Annotated[float, assumed("its spread; 0: all alike", ge=0)] = 0.8
    answer_p50_tokens: Annotated[int, assumed("answer, median", ge=1)] = 200
    answer_sigma: Annotated[float, assumed("its spread; 0: all alike", ge=0)] = 0.8
    prefill_tokens_per_s: Annotated[float, assumed("prompt tokens that the server reads", gt=0)] = 10_000.0
    decode_tokens_per_s: Annotated[float, assumed("tokens that the server writes in an answer", gt=0)] = 50.0

    def service(self) -> Service:
        """How long answers take."""
        return Service(self.prefill_tokens_per_s, self.decode_tokens_per_s)

    def fill(self, rng: np.random.Generator, limits: Limits, block_tokens: int) -> TraceBuilder:
        """Queries until there are enough."""
        recorder = Recorder(block_tokens, self.service(), limits)
        texts = Texts()
        system = texts.new(self.system_tokens)
        corpus = texts.new(self.num_documents * self.chunks_per_document * self.chunk_tokens)
        questions = whole_stream(rng, Lognormal(self.question_p50_tokens, self.question_sigma, least=1))
        answers = whole_stream(rng, Lognormal(self.answer_p50_tokens, self.answer_sigma, least=1))
        prompt = Prompt(block_tokens)
        prompt.lay(system)
        head = prompt.mark()
        zipf = Zipf(self.num_documents, self.zipf_factor)
        for now_ms in arrival_stream(rng, self.requests_per_s, self.interarrival_cv_factor):
            if recorder.is_over(now_ms):
                break
            prompt.rewind(head)
            for chunk in self._chunks(rng, zipf).tolist():
                prompt.lay(Span(corpus.first + chunk * self.chunk_tokens, self.chunk_tokens))
            prompt.lay(texts.new(next(questions)))
            recorder.single(prompt, now_ms, next(answers), self.NAME)
        return recorder.builder

    def _chunks(self, rng: np.random.Generator, zipf: Zipf) -> npt.NDArray[np.int64]:
        """Different pieces of the corpus, in the order in which they stand in the prompt."""
        found = np.empty(0, dtype=np.int64)
        for _ in range(_MOST_TRIES):
            document = zipf.draw(rng, 2 * self.chunks_per_query).astype(np.int64)
            piece = rng.integers(self.chunks_per_document, size=document.size)
            drawn = np.append(found, document * self.chunks_per_document + piece)
            found = drawn[np.sort(np.unique(drawn, return_index=True)[1])][: self.chunks_per_query]
            if found.size == self.chunks_per_query:
                return np.sort(found) if self.order == "ranked" else found
        raise InputError(
            f"chunks_per_query {self.chunks_per_query}: so many different chunks are hardly ever found with "
            f"zipf_factor {self.zipf_factor:g}: give fewer, or more documents"
        )

    def __post_init__(self) -> None:
        """Refuse a query for more than there is."""
        if self.chunks_per_query > self.num_documents * self.chunks_per_document:
            raise InputError(
                f"chunks_per_query {self.chunks_per_query}: the corpus has only "
                f"{self.num_documents * self.chunks_per_document} chunks"
            )
