"""`floe serve`."""

import os
import sys
import time
from collections.abc import Mapping, Sequence

from floe.cli.main import EXIT_FAILURE, EXIT_UNAVAILABLE, EXIT_USAGE, fail
from floe.config.errors import SettingsError
from floe.config.load import load_settings
from floe.config.settings import Settings


def serve(*, flags: Mapping[str, str | None], assignments: Sequence[str], config: str | None) -> None:
    """Read the settings, run the broker, and turn what goes wrong into a sentence and an exit code."""
    began = time.perf_counter()
    try:
        settings, _ = load_settings(
            flags=flags, assignments=assignments, environment=os.environ, config=config
        )
    except SettingsError as error:
        fail(str(error), error.hint, EXIT_USAGE)
    _run(settings, began)


def _run(settings: Settings, began: float) -> None:
    from floe.observability.logs import configure_logs, get_log
    from floe.server.banner import banner
    from floe.server.broker import Broker
    from floe.server.errors import CannotStart
    from floe.server.run import run_broker

    as_json = {"auto": None, "json": True, "text": False}[settings.logging.format]
    configure_logs(level=settings.logging.level, as_json=as_json)

    def started(broker: Broker) -> None:
        sys.stdout.write(banner(broker, settings, time.perf_counter() - began))
        sys.stdout.flush()

    try:
        run_broker(settings, started)
    except SettingsError as error:
        fail(str(error), error.hint, EXIT_USAGE)
    except CannotStart as error:
        fail(str(error), error.hint, EXIT_UNAVAILABLE)
    except Exception as error:  # noqa: BLE001 - the process's boundary: a trace is for the log
        get_log("cli").exception("broker failed")
        fail(f"the broker failed: {type(error).__name__}: {error}", "see the log above", EXIT_FAILURE)
