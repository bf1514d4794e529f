"""Faults of bins that executors write, by the name of a table: planted in the Python of executors, and nowhere else.

``plant`` makes a folder for ``PYTHONPATH`` whose ``sitecustomize`` changes the module of the tasks as it is imported
there; the driver's Python leaves it alone.
"""

from __future__ import annotations

from pathlib import Path

SITECUSTOMIZE = '''
import importlib.abc, importlib.util, os, signal, sys, time

MODULE = "maintainer.delta.rewrite.executor_bins"


def executor_of(process):
    """The Java process above a Python of an executor."""
    while True:
        with open(f"/proc/{process}/cmdline", "rb") as file:
            if b"CoarseGrainedExecutorBackend" in file.read():
                return process
        with open(f"/proc/{process}/stat") as file:
            process = int(file.read().rpartition(")")[2].split()[1])


def plant(module):
    write, answer = module.write_in_process, module._answer
    from maintainer.delta.rewrite.local import local_lane
    write_local = local_lane.write_local

    def local(rows, target):
        if "/forged/" in target.path:
            rows = (batch.slice(1) for batch in rows)
        return write_local(rows, target)

    def in_process(work, place):
        if work.where.endswith("/full"):
            with open(place.path(work.table.uri(work.path())), "wb") as file:
                file.write(b"half")
            raise OSError(28, "No space left on device")
        return write(work, place)

    def answered(task, work, here, attempt):
        found = answer(task, work, here, attempt)
        if work.where.endswith("/killed") and attempt == 0:
            os.kill(executor_of(os.getpid()), signal.SIGKILL)
            time.sleep(60)
        if work.where.endswith("/again") and attempt == 0 or work.where.endswith("/lost"):
            os._exit(3)
        return found

    local_lane.write_local, module.write_in_process, module._answer = local, in_process, answered


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name != MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def executed(module):
            execute(module)
            plant(module)

        spec.loader.exec_module = executed
        return spec


if "pyspark.daemon" in sys.orig_argv:
    sys.meta_path.insert(0, Finder())
'''


def plant(folder: Path) -> Path:
    """Write the module that plants the faults, and return its folder."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(SITECUSTOMIZE, encoding="utf-8")
    return folder
