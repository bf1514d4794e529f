"""The functions between a command and the first byte of a data file: ``python -m tools.run_chain``.

An ``apply`` of one small table runs in this process. When it opens its first new data file, the package's functions on
that thread's stack are noted, and those on the stacks of the threads that led to it, each as it was when it started
the next one. A comprehension counts as the function that it stands in.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = os.fspath(ROOT / "maintainer") + os.sep
TABLE, FILES, ROWS = "lake/orders", 4, 100
POLICY = "version: 1\ntable: lake/orders\noptimize: {maxFileSize: 64MiB}\n"


class RunChain:
    """What led to the first new file in a folder: Python gives notice of files, and each thread's start is noted."""

    def __init__(self, folder: Path) -> None:
        self.functions: list[str] = []
        self._folder = os.fspath(folder)
        self._starters: dict[threading.Thread, list[str]] = {}
        self._is_over = False

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note what happens within the block."""
        start = threading.Thread.start

        def started(thread: threading.Thread) -> None:
            self._starters[thread] = self._chain()
            start(thread)

        sys.addaudithook(self._hear)
        threading.Thread.start = started  # type: ignore[assignment, method-assign]
        try:
            yield
        finally:
            threading.Thread.start = start  # type: ignore[method-assign]
            self._is_over = True  # a hook cannot be taken away

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._is_over or event != "open" or not isinstance(arguments[0], str) or not arguments[2] & os.O_CREAT:
            return
        if arguments[0].startswith(self._folder) and arguments[0].endswith(".parquet"):
            self.functions, self._is_over = self._chain(), True

    def _chain(self) -> list[str]:
        """Functions from the first thread to here, each once."""
        here = [name for frame in reversed(list(_frames(sys._getframe(2)))) if (name := _function(frame.f_code))]
        return list(dict.fromkeys([*self._starters.get(threading.current_thread(), ()), *here]))


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _function(code: CodeType) -> str | None:
    """A function of the package by module and name."""
    if not code.co_filename.startswith(PACKAGE) or code.co_name == "<module>":
        return None
    name = code.co_qualname
    for inner in ("<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>"):
        name = name.removesuffix(f".<locals>.{inner}")
    return f"{code.co_filename.removeprefix(PACKAGE)}: {name}"


def apply_small_table(folder: Path) -> list[str]:
    """Make a project with one table of small files in a folder, apply it, and return the chain."""
    import pyarrow as pa
    from deltalake import write_deltalake

    from maintainer.cli.main import job

    for number in range(FILES):
        rows = pa.table({"id": pa.array(range(number * ROWS, (number + 1) * ROWS), pa.int64())})
        write_deltalake(os.fspath(folder / TABLE), rows, mode="append")
    (folder / "policies").mkdir()
    (folder / "policies" / "orders.yaml").write_text(POLICY, encoding="utf-8")
    (folder / "maintainer.yml").write_text("version: 1\n", encoding="utf-8")
    chain = RunChain(folder / TABLE)
    arguments, before = sys.argv, Path.cwd()
    os.chdir(folder)
    try:
        sys.argv = ["maintainer", "apply", "--yes"]
        with chain.noted():
            job()
    finally:
        sys.argv = arguments
        os.chdir(before)
    return chain.functions


def main() -> None:
    """Print the chain, and its length last."""
    with tempfile.TemporaryDirectory(prefix="run-chain-") as folder:
        functions = apply_small_table(Path(folder).resolve())
    for number, function in enumerate(functions, start=1):
        print(f"{number:>3}  {function}")
    print(f"{len(functions)} functions of the package before the first byte of a data file")


if __name__ == "__main__":
    main()
