"""The demo service."""

from __future__ import annotations

import datetime
from types import TracebackType

from . import _bellwether, _values
from ._values import Day

__all__ = ["DemoService", "demo_service"]


class DemoService:
    """A demo service on a free port of this machine, until it is stopped. `demo_service` starts it."""

    __slots__ = ("_service",)

    def __init__(self, service: _bellwether.Service) -> None:
        self._service = service

    @property
    def base_url(self) -> str:
        """The base address of the signals."""
        return self._service.base_url

    @property
    def sentiment_base_url(self) -> str:
        """The base address of news and sentiment."""
        return self._service.sentiment_base_url

    @property
    def key(self) -> str:
        """The key that it accepts; not a secret."""
        return self._service.key

    @property
    def source(self) -> dict[str, str]:
        """Both addresses, as the `source` of a definition."""
        return {"base_url": self.base_url, "sentiment_base_url": self.sentiment_base_url}

    def stop(self) -> None:
        """Stops it."""
        self._service.stop()

    def __enter__(self) -> DemoService:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<DemoService {self.base_url}>"


def demo_service(*, today: Day | None = None, seed: int | None = None, change_set: str | None = None) -> DemoService:
    """Starts the demo service on a free port of this machine.

    `today` is its current day, `seed` makes another universe, and `change_set` is a point of the service's change record:
    `"origin"`, `"G"` to `"A"`, or `"all"`.

    >>> import bellwether as bw
    >>> with bw.demo_service() as service:
    ...     definition = {"name": "mine", "source": service.source, "signals": {"sectors": ["energy"]}}
    ...     bw.run(definition, key=service.key, progress=False).path.parent.name
    'mine'
    """
    today = datetime.datetime.now(datetime.timezone.utc).date() if today is None else today
    text = _values.optional_text("change_set", change_set)
    return DemoService(_bellwether.Service(_values.day("today", today), _values.whole("seed", seed), text))
