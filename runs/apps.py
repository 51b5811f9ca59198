"""Room: runs. How Django finds it. The models live in a package without imports of its own, so they are named here."""

from importlib import import_module

from django.apps import AppConfig

MODEL_MODULES = ("config", "run", "log", "evaluation")


class RunsConfig(AppConfig):
    """The room with the label `runs`."""

    name = "runs"
    label = "runs"

    def import_models(self) -> None:
        """Load every file of `runs.models`: its `__init__.py` stays empty like all others."""
        super().import_models()
        for name in MODEL_MODULES:
            import_module(f"runs.models.{name}")
