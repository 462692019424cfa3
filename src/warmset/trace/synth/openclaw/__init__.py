"""The traffic of an OpenClaw-like agent platform."""

from warmset.trace.synth.openclaw.parameters import OpenClaw

__all__ = ["OpenClaw"]
