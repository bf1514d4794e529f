"""Faults of bins that executors write, by the name of a table.

They are planted in the Python of executors by a ``sitecustomize``, which in the driver's Python holds bins back until
so many of them wait, and writes down how many each job has.
"""

from __future__ import annotations

from pathlib import Path

SITECUSTOMIZE = '''
import importlib.abc, importlib.util, os, signal, sys, time

TASKS = "maintainer.delta.rewrite.executors.executor_tasks"
JOBS = "maintainer.delta.rewrite.executors.executor_bins"
FOLDER = os.path.dirname(__file__)


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
    from maintainer.engine.store.object_storage import ObjectStorage
    write_local, download = local_lane.write_local, ObjectStorage.download

    def forged(rows, target):
        return write_local((batch.slice(1) for batch in rows), target)

    def downloaded(storage, name, path):
        if name.startswith("unfetched/"):
            with open(path, "wb") as file:
                file.write(b"half")
            raise OSError(28, "No space left on device")
        return download(storage, name, path)

    def in_process(work, place):
        local_lane.write_local = forged if work.where.endswith("/forged") else write_local
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
        if work.where.endswith("/slow"):
            time.sleep(500)
        return found

    ObjectStorage.download, module.write_in_process, module._answer = downloaded, in_process, answered


def gather(module):
    with open(os.path.join(FOLDER, "together")) as file:
        together = int(file.read())
    send, run, leave = module.SharedJobs._send, module.SharedJobs._run, module.SharedJobs._leave

    def sent(jobs, context):
        if jobs._jobs or jobs._sent or len(jobs._waiting) >= together or gather.done:
            gather.done = True
            send(jobs, context)

    def ran(jobs, context, job):
        with open(os.path.join(FOLDER, "jobs"), "a") as file:
            file.write(f"{len(job.bins)}\\n")
        run(jobs, context, job)

    def left(jobs, context, bin_):
        leave(jobs, context, bin_)
        if not gather.done:  # it waited no longer than its table may take: so many will never wait
            gather.done = True
            send(jobs, context)

    module.SharedJobs._send, module.SharedJobs._run, module.SharedJobs._leave = sent, ran, left


gather.done = False
PLANTED = {TASKS: plant} if "pyspark.daemon" in sys.orig_argv else {JOBS: gather}


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if (planted := PLANTED.pop(name, None)) is None:
            return None
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def executed(module):
            execute(module)
            planted(module)

        spec.loader.exec_module = executed
        return spec


sys.meta_path.insert(0, Finder())
'''


def plant(folder: Path, together: int) -> Path:
    """Write the module that plants the faults and waits for so many bins, and return its folder."""
    folder.mkdir()
    (folder / "together").write_text(str(together), encoding="utf-8")
    (folder / "sitecustomize.py").write_text(SITECUSTOMIZE, encoding="utf-8")
    return folder


def jobs_of(folder: Path) -> list[int]:
    """How many bins each job had."""
    return [int(line) for line in (folder / "jobs").read_text(encoding="utf-8").split()]
