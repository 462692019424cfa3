"""Generated traffic: kinds of it with published or assumed parameters, each of them a `Generator`."""

from warmset.trace.synth.agentic_code import AgenticCode
from warmset.trace.synth.chat import Chat
from warmset.trace.synth.coding_agent import CodingAgent
from warmset.trace.synth.long_documents import LongDocuments
from warmset.trace.synth.one_shot import OneShot
from warmset.trace.synth.openclaw import OpenClaw
from warmset.trace.synth.parameters import Generator, Parameter, configured, parameters, preset_of, with_seed
from warmset.trace.synth.rag import Rag
from warmset.trace.synth.recording import Limits

GENERATORS: dict[str, type[Generator]] = {
    each.NAME: each for each in (Chat, Rag, LongDocuments, OpenClaw, CodingAgent, AgenticCode, OneShot)
}

__all__ = [
    "GENERATORS",
    "Generator",
    "Limits",
    "Parameter",
    "configured",
    "parameters",
    "preset_of",
    "with_seed",
]
