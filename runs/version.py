"""Room: runs. The engine's version: part of every result, raised whenever a run could go differently because of us."""

ENGINE_VERSION = "0.1.0"
