"""Command ``python -m tools.mutation``: run mutants, write the page, fail for survivors that have no reason.

With ``--guards`` it takes the guards of promises out instead, and fails for one that no test misses.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from tools.mutation import trials
from tools.mutation.mutants import mutants_of
from tools.mutation.page import GUARDS_PAGE, PAGE, guards_page, page
from tools.mutation.planted import read_guards, try_all
from tools.mutation.survivors import key_of, place_of, read_fates, read_reasons, unused, write_fates
from tools.mutation.targets import SUITES, TARGETS
from tools.mutation.trials import KILLED, Fate, Trials

ROOT = Path(__file__).resolve().parents[2]
PROFILE = "mutation"


def main() -> int:
    asked = _arguments()
    if asked.guards:
        return _guards(asked)
    mutants = {
        target: [mutant for source in sources for mutant in mutants_of(ROOT, source.file, source.names)]
        for target, sources in TARGETS.items()
        if not asked.target or target in asked.target
    }
    every = [mutant for listed in mutants.values() for mutant in listed]
    drawn = every
    if asked.sample and asked.sample < len(every):
        chosen = set(random.Random(asked.seed).sample(range(len(every)), asked.sample))
        drawn = [mutant for place, mutant in enumerate(every) if place in chosen]
    if asked.only:
        drawn = [mutant for mutant in drawn if asked.only in f"{mutant.file}:{mutant.line}: {mutant.change}"]
    known = read_fates() if asked.again else {}
    fates = {mutant: fate for mutant in drawn if (fate := known.get(place_of(mutant, ROOT))) in KILLED}
    drawn = [mutant for mutant in drawn if mutant not in fates]
    say(f"{len(drawn):,} of {len(every):,} mutants in {len(mutants)} targets, seed {asked.seed}")
    run = Trials(ROOT, drawn, asked.jobs, say)
    _pytest(run)
    if run.failed or len(run.fates) != len(drawn):
        say(f"nothing was shown: tests fail without any change, or were not run: {run.failed[:5]}")
        return 2
    fates |= run.fates
    write_fates(fates, ROOT)
    reasons = read_reasons()
    unexplained = [
        mutant
        for mutant, fate in fates.items()
        if fate is Fate.NOT_RUN or (fate is Fate.SURVIVED and key_of(mutant, ROOT) not in reasons)
    ]
    for mutant in unexplained:
        say(f"lives without a reason: {mutant.file}:{mutant.line}: {mutant.change}")
    whole = len(fates) == sum(map(len, (mutants_of(ROOT, s.file, s.names) for t in TARGETS.values() for s in t)))
    stale = unused(reasons, every, ROOT) if whole else []
    for file, line, change in stale:
        say(f"a reason for a change that is no more: {file}: {line}: {change}")
    killed = sum(fate in KILLED for fate in fates.values())
    say(f"{killed:,} of {len(fates):,} mutants were killed, {len(unexplained)} live without a reason")
    if whole:
        PAGE.write_text(page(mutants, fates, reasons, ROOT, run.num_tests), encoding="utf-8")
        say(f"written: {PAGE.relative_to(ROOT)}")
    return 1 if unexplained or stale else 0


def _guards(asked: argparse.Namespace) -> int:
    every = read_guards()
    chosen = [guard for guard in every if (asked.only or "") in f"{guard.file}: {guard.name}"]
    wrong = try_all(chosen, ROOT, asked.jobs, say)
    for sentence in wrong:
        say(sentence)
    say(
        f"{len(chosen)} of {len(every)} guards were taken out; {len(wrong)} tests did not tell"
        if wrong
        else f"{len(chosen)} of {len(every)} guards were taken out, and each was missed by its tests"
    )
    if not wrong and chosen == list(every):
        GUARDS_PAGE.write_text(guards_page(every), encoding="utf-8")
        say(f"written: {GUARDS_PAGE.relative_to(ROOT)}")
    return 1 if wrong else 0


def say(text: str) -> None:
    print(text, file=trials.screen(), flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.mutation", description=__doc__)
    parser.add_argument("--sample", type=int, default=0, help="so many mutants, drawn by the seed; all without it")
    parser.add_argument("--seed", type=int, default=0, help="what is drawn by")
    parser.add_argument("--target", action="append", choices=sorted(TARGETS), help="these targets only")
    parser.add_argument("--only", help="mutants with this text in FILE:LINE: CHANGE, guards with it in FILE: SENTENCE")
    parser.add_argument("--guards", action="store_true", help="take out the guards of guards.yml instead")
    parser.add_argument(
        "--again", action="store_true", help="only what the last run here did not kill, after new tests"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    return parser.parse_args()


def _pytest(run: Trials) -> None:
    """Collect the tests and run the mutants in their place; what pytest itself prints is left out."""
    # Failing examples are not made smaller: one is enough.
    settings.register_profile(
        PROFILE, deadline=None, derandomize=True, database=None,
        phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    os.environ["HYPOTHESIS_PROFILE"] = PROFILE
    with trials.silence():
        pytest.main(["-q", "-p", "no:cacheprovider", "-m", "not long", *SUITES], plugins=[run])


if __name__ == "__main__":
    sys.exit(main())
