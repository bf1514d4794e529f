"""What is asked of a server before a command runs there."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest

from maintainer.delta.commands.command_session import CommandSession


@dataclass
class Server:
    """Answers one question, as a server with this Delta and this time zone would."""

    answer: tuple[str, str] | Exception

    @property
    def conf(self) -> Any:
        return SimpleNamespace(set=lambda key, value: None)

    def sql(self, statement: str) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return SimpleNamespace(collect=lambda: [self.answer])


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (("4.0.1", "Europe/Vilnius"), "Delta 4.0.1, and Java's time zone is Europe/Vilnius"),
        (("3.3.2", "America/Bahia_Banderas"), "Delta 3.3.2, and Java's time zone is America/Bahia_Banderas"),
        (("4.0.1", "Etc/UTC"), None),
        (("4.1.0", "Europe/Vilnius"), None),
        (("10.0.0-SNAPSHOT", "Europe/Vilnius"), None),
        (ValueError("no such class"), "the server does not say which Delta it has: no such class"),
        (("", "Europe/Vilnius"), "the server does not say which Delta it has"),
    ],
)
def test_what_shifts_the_times_of_partitions(answer: tuple[str, str] | Exception, why: str | None) -> None:
    session = CommandSession(cast(Any, Server(answer)), lambda: None)
    said = session.what_shifts_times()
    assert said == why if why is None else str(said).startswith(why)


def test_a_server_that_is_gone_is_no_answer() -> None:
    session = CommandSession(cast(Any, Server(ConnectionRefusedError())), lambda: None)
    with pytest.raises(ConnectionRefusedError):
        session.what_shifts_times()
