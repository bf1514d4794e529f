"""Run Great Expectations suites. It is imported only here, and only when something is verified (3 s, 215 MB).

How it is used, and why:

* ``persist=False``: by default it caches the whole table, never lets go of it, and later checks read the cache.
* One ephemeral context and one asset name for each validation: shared batch definitions answered with another table's
  figures. Since 1.24 a batch asks the context that made it, so only making one, which its project manager remembers
  for the process, is under a lock: no validation waits for another table's scan.
* A metric that throws does not raise: it is a result without success whose ``exception_info`` has one of two
  shapes. We tell *checked, wrong* (``fail``) from *could not check* (``error``).
* Pairs are compared with ``ignore_row_if="neither"``, and a missing figure becomes a text: ``None == None`` passes.
* Usage statistics off before the import, progress bars off, no Data Docs, no files.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from maintainer.errors import ProjectError, VerifierUnfit
from maintainer.model.plan.plan import CheckedExpectation
from maintainer.model.run.outcome import Assertion
from maintainer.model.run.receipts import Verdict
from maintainer.verification.verification_result import Pair, figures_by_name

LOCK_TIMEOUT_SECONDS = 300.0
"""Longest wait until others have made their contexts; then this validation could not be checked."""

MAX_TEXT = 300
_BEFORE, _AFTER = "before", "after"
"""The columns of the frame in which figures are compared."""
_POSITION = "maintainer_position"
"""The key of an expectation's ``meta`` that holds its place in the suite."""
_ERROR = "error"
"""The key of a result document that says why nothing could be checked."""
_lock = threading.Lock()
_numbers = itertools.count(1)

_SQL_TYPES = frozenset({"unexpected_rows_expectation", "expect_query_results_to_match_comparison"})
_SQL_ARGUMENTS = frozenset({"row_condition", "condition_parser", "unexpected_rows_query", "template_dict"})


@dataclass(frozen=True, slots=True)
class Validated:
    """Results of one validation: assertions in the order they were asked for, and the result document."""

    assertions: tuple[Assertion, ...]
    document: dict[str, Any]

    @property
    def is_run(self) -> bool:
        """Whether the expectations were run; else one assertion in the place of all says why not."""
        return _ERROR not in self.document


def preflight(expectations: tuple[CheckedExpectation, ...] = ()) -> None:
    """Import Great Expectations and build every expectation, before anything is changed.

    Raises:
        EnvironmentUnfit: E653, Great Expectations cannot be imported or does not work.
        ProjectError: P316, an expectation that it does not know, or arguments that it does not take.
    """
    pair = Pair("rows before", "1", "rows after", "1")
    (probe,) = validate_pairs((pair,), "preflight").assertions
    if probe.outcome != Verdict.PASS:
        raise VerifierUnfit(
            "Great Expectations does not work here",
            found=probe.error or probe.outcome,
            help="install the release that maintainer names: pip install 'great-expectations>=1.24,<2'",
        )
    for expectation in expectations:
        build(expectation)


def build(expectation: CheckedExpectation) -> object:
    """Make the expectation of the user's that a name and arguments stand for.

    Raises:
        ProjectError: P316, it is not known, its arguments do not fit, or it carries SQL text (a plan runs none).
    """
    arguments = json.loads(expectation.arguments_json)
    sql = sorted(_SQL_ARGUMENTS.intersection(arguments))
    if expectation.type in _SQL_TYPES or sql:
        raise ProjectError(
            "an expectation that carries a query or a condition is not accepted",
            code="P316",
            found=f"{expectation.type}({', '.join(sql)})",
            help="a plan holds no SQL text; state the expectation by columns and values",
        )
    _, registry = import_great_expectations()
    try:
        return registry.get_expectation_impl(expectation.type)(**arguments)
    except Exception as error:  # its own error classes, pydantic's, TypeError: all mean the same to a user
        raise ProjectError(
            f"Great Expectations does not accept the expectation {expectation.type}",
            code="P316",
            found=_short(error),
            help="names and arguments are those of its gallery; see `maintainer schema verify.expectations`",
        ) from error


def validate_frame(frame: object, name: str, expectations: Sequence[CheckedExpectation], *, version: int) -> Validated:
    """Run expectations on a data frame of a table at one version.

    First only whether each holds, which needs fewer Spark jobs; those that do not are run again for what was observed.
    """

    def run(asked: Sequence[CheckedExpectation], result_format: str) -> Validated:
        suite = [build(expectation) for expectation in asked]
        return _validate(frame, name, suite, version, result_format)

    briefly = run(expectations, "BOOLEAN_ONLY")
    failed = [number for number, asserted in enumerate(briefly.assertions) if asserted.outcome != Verdict.PASS]
    if not failed or not briefly.is_run:
        return briefly
    again = run([expectations[number] for number in failed], "SUMMARY")
    if not again.is_run:
        return again
    assertions = list(briefly.assertions)
    for number, asserted in zip(failed, again.assertions, strict=True):
        assertions[number] = asserted
    return Validated(tuple(assertions), {**briefly.document, "failed_in_detail": again.document["results"]})


def validate_pairs(pairs: tuple[Pair, ...], name: str, *, version: int | None = None) -> Validated:
    """Assert that the figures of each pair are equal: in pandas, a row a pair, one expectation, no Spark job.

    A figure that was not measured is None and equals nothing, not even another None.

    Returns:
        One assertion for each pair, in their order, and the result document with all figures by name.
    """
    module, _ = import_great_expectations()
    import pandas as pd

    equal = module.expectations.ExpectColumnPairValuesToBeEqual(
        column_A=_BEFORE, column_B=_AFTER, ignore_row_if="neither"
    )
    # Great Expectations takes two nulls for equal, so each missing figure is a text of its own.
    rows = [(pair.before or "not measured before", pair.after or "not measured after") for pair in pairs]
    # dtype=object keeps sums of hashes text; they exceed 64 bits.
    frame = pd.DataFrame(rows, columns=[_BEFORE, _AFTER], dtype=object)
    validated = _validate(frame, name, [equal], version, "COMPLETE")
    document = {**validated.document, "figures": figures_by_name(pairs)}
    if validated.assertions[0].outcome == Verdict.ERROR:
        return Validated(validated.assertions, document)
    (asserted,), (result,) = validated.assertions, validated.document["results"]
    unequal = _unequal_rows(result)
    assertions = (
        dataclasses.replace(
            asserted,
            expectation=f"{asserted.expectation}: {pair.name_before} = {pair.name_after}",
            outcome=Verdict.FAIL if unequal is None or number in unequal else Verdict.PASS,
            expected=pair.before,
            observed=pair.after,
        )
        for number, pair in enumerate(pairs)
    )
    return Validated(tuple(assertions), document)


def _unequal_rows(result: dict[str, Any]) -> frozenset[int] | None:
    """The rows of the frame whose figures differ; None where the expectation failed and does not name them."""
    if result["success"]:
        return frozenset()
    rows = (result.get("result") or {}).get("unexpected_index_list")
    return frozenset(rows) if rows else None


def import_great_expectations() -> tuple[Any, Any]:
    """Import it and its registry, also ahead of the first check, while Spark starts.

    Only ``preflight`` says whether it works.

    Raises:
        EnvironmentUnfit: E653.
    """
    os.environ["GX_ANALYTICS_ENABLED"] = "false"  # read at import; matters for 1.0 to 1.2
    try:
        import great_expectations as gx
        import great_expectations.expectations
        from great_expectations.expectations import registry
    except Exception as error:  # a broken install fails in any way there is
        raise VerifierUnfit(
            "Great Expectations cannot be imported, so nothing could be verified; nothing was changed",
            found=f"{type(error).__name__}: {_short(error)}",
            help=_import_help(error),
        ) from error
    return gx, registry


def _import_help(error: Exception) -> str:
    """Say what to do about a package that cannot be imported; it may be this Python's options that it cannot bear."""
    if isinstance(error, Warning):
        return "packages that it imports warn: run without -W error, and without error in PYTHONWARNINGS"
    if sys.flags.optimize > 1:
        return "it reads its own docstrings: run without -OO, and without PYTHONOPTIMIZE=2"
    return "pip install 'great-expectations>=1.24,<2'"


def _validate(
    frame: object,
    name: str,
    expectations: Sequence[Any],
    version: int | None,
    result_format: str,
) -> Validated:
    """Run expectations on a frame in a context of their own; ``result_format`` says how much of a failure is told."""
    gx, _ = import_great_expectations()
    import pandas as pd
    from great_expectations.data_context.types.base import ProgressBarsConfig

    if not _lock.acquire(timeout=LOCK_TIMEOUT_SECONDS):
        return _not_run(name, version, f"waited {LOCK_TIMEOUT_SECONDS:.0f} s for another validation", {})
    try:
        try:
            context = gx.get_context(mode="ephemeral")
        finally:
            _lock.release()
        unique = f"{name}#{next(_numbers)}"
        context.variables.progress_bars = ProgressBarsConfig(globally=False)
        sources, is_pandas = context.data_sources, isinstance(frame, pd.DataFrame)
        source = sources.add_pandas(unique) if is_pandas else sources.add_spark(unique, persist=False)
        asset = source.add_dataframe_asset(unique)
        batch = asset.add_batch_definition_whole_dataframe("whole").get_batch({"dataframe": frame})
        for position, expectation in enumerate(expectations):  # results come back grouped, not in this order
            expectation.meta = {**(expectation.meta or {}), _POSITION: position}
        suite = gx.ExpectationSuite(name="maintenance", expectations=list(expectations))
        result = batch.validate(suite, result_format={"result_format": result_format})
        return _answered(result, len(expectations), name, version)
    except Exception as error:  # whatever it raises means: could not be checked
        return _not_run(name, version, f"{type(error).__name__}: {_short(error)}", {})


def _answered(result: Any, num_asked: int, name: str, version: int | None) -> Validated:  # noqa: ANN401 - see below
    document: dict[str, Any] = result.to_json_dict()
    if len(result.results) != num_asked:
        text = f"{num_asked} expectations were run and only {len(result.results)} answered"
        return _not_run(name, version, text, document)
    results = sorted(result.results, key=lambda result: int(result.expectation_config.meta[_POSITION]))
    return Validated(tuple(_assertion(result, version) for result in results), document)


def _not_run(name: str, version: int | None, error: str, document: dict[str, Any]) -> Validated:
    """One assertion in the place of all: nothing could be checked."""
    assertion = Assertion(name, Verdict.ERROR, version, error=error)
    return Validated((assertion,), {**document, "success": False, _ERROR: error})


def _assertion(result: Any, version: int | None) -> Assertion:  # noqa: ANN401 - a class without types
    config = result.expectation_config
    arguments = {key: value for key, value in config.kwargs.items() if key != "batch_id"}
    error = _error_of(result)
    detail = result.result or {}
    observed = detail.get("observed_value", detail.get("unexpected_count"))
    column = arguments.pop("column", None)
    return Assertion(
        expectation=str(config.type),
        outcome=Verdict.ERROR if error else (Verdict.PASS if result.success else Verdict.FAIL),
        version=version,
        expected=_text(arguments),
        observed=None if observed is None else _text(observed),
        error=error,
        column=None if column is None else str(column),
    )


def _error_of(result: Any) -> str | None:  # noqa: ANN401 - a class without types
    """Why a metric could not be computed: ``exception_info`` is flat, or keyed by metric id."""
    info = result.exception_info or {}
    if "raised_exception" in info:
        return str(info["exception_message"])[:MAX_TEXT] if info["raised_exception"] else None
    messages = [
        str(metric.get("exception_message") if isinstance(metric, dict) else metric)[:MAX_TEXT]
        for metric in info.values()
    ]
    return "; ".join(messages[:3]) or None


def _text(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str, ensure_ascii=False)
    return text if len(text) <= 10 * MAX_TEXT else text[: 10 * MAX_TEXT] + "..."


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:MAX_TEXT]
