"""Documents: what a plan and a run look like as JSON, against their committed schemas."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from typing import Any

import jsonschema
import pytest

from maintainer.errors import ExitCode, Refused, TableError
from maintainer.model.codec import DecodeError, canonical_json, decode, encode
from maintainer.model.plan import plan_document
from maintainer.model.plan.layout_tags import RewriteRequest
from maintainer.model.plan.plan import Plan, Problem, TablePlan
from maintainer.model.plan.plan_document import from_json, json_pieces, plan_bytes, to_json
from maintainer.model.plan.steps import (
    Batch,
    Bin,
    ClusterStep,
    CompactStep,
    PartitionRewriteStep,
    PurgeStep,
    SetPropertiesStep,
    Step,
    StepKind,
    VacuumStep,
    ZOrderStep,
)
from maintainer.model.plan.zorder_turn import LayoutFigures, Strategy, ZOrderSettings, ZOrderTurn
from maintainer.model.run.outcome import (
    Assertion,
    RunOutcome,
    StepOutcome,
    StepStatus,
    TableOutcome,
    TableStatus,
    run_from_json,
    run_to_document,
    run_to_json,
)
from maintainer.model.run.receipts import CommitReceipt, Fingerprint, Proof, VacuumReceipt, Verdict
from maintainer.model.table.storage_facts import TrashedRun
from maintainer.model.table.table_facts import DataFile, RemovedFile, TableRecord, TableRef
from maintainer.planning.plan_input import TableInput
from maintainer.planning.planner import assemble, plan_table, problem_plan
from maintainer.policy.predicate.partition_predicate import parse_predicate
from maintainer.policy.resolve.resolved import AutoCompactPolicy, Expectation, ZOrderMode, ZOrderPolicy
from tests.support.policies.edited_documents import digest_of
from tests.support.tables.builders import (
    DAY_MS,
    NEVER_TOUCHED,
    NOW_MS,
    make_facts,
    make_file,
    make_files,
    make_optimize,
    make_policy,
    make_vacuum,
)
from tools.wire_schema import DOCUMENTS, SCHEMAS, text_of

TODAY = date(2026, 11, 21)


def document_of(plan: Plan) -> dict[str, Any]:
    """The plan as it is written."""
    document: dict[str, Any] = json.loads(to_json(plan))
    return document


def whole_plan() -> Plan:
    """A plan with every kind of step and state in it."""
    policy = make_policy(name="a", vacuum=make_vacuum(), auto_compact=AutoCompactPolicy(True))
    expectation = Expectation("expect_column_values_to_not_be_null", {"column": "id"})
    policy = replace(policy, verify=replace(policy.verify, expectations=(expectation,)))
    facts = make_facts(
        name="a",
        files=[*make_files(10, 20), make_file("d", size=80, deleted=60)],
        removed_files=(RemovedFile("old", 5, NOW_MS - 8 * DAY_MS, "deletion_vector", 3),),
    )
    where = parse_predicate("p = 'x'")
    zorder = make_policy(name="b", optimize=make_optimize(zorder=ZOrderPolicy(("id",), ZOrderMode.FULL), where=where))
    partitioned = make_facts(
        name="b",
        files=[make_file(f"{p}{i}", partition={"p": p}) for p in ("x", None) for i in range(2)],
        partitioned_by=("p",),
    )
    limited = make_policy(name="c", max_bytes=1)
    problem = problem_plan(make_policy(name="d"), TableError("no such table", code="T401", where="d", found="nothing"))
    tables = [
        problem,
        plan_table(TableInput(limited, make_facts(name="c", files=make_files(1, 1)), NEVER_TOUCHED, NOW_MS, TODAY)),
        plan_table(TableInput(zorder, partitioned, NEVER_TOUCHED, NOW_MS, TODAY)),
        plan_table(TableInput(policy, facts, TableRecord(), NOW_MS, TODAY)),
    ]
    return replace(
        assemble(tables, created_at_ms=NOW_MS),
        environment="prod",
        selection=("tag:nightly",),
        git_commit="3f2c1a9",
        maintainer_version="0.1.0",
    )


def whole_run() -> RunOutcome:
    """A run with every kind of receipt in it."""
    proof = Proof(Fingerprint(3, (2**70, -5)), Fingerprint(3, (2**70, -5)), 3, ("props",), 0.25)
    rewrite = StepOutcome(
        "a/compact",
        StepKind.COMPACT,
        StepStatus.SUCCEEDED,
        NOW_MS,
        1.5,
        commits=(CommitReceipt(8, 7, 3, 1, 300, 290, 1, proof, 2, 1.0),),
        assertions=(Assertion("expect_table_row_count_to_equal", Verdict.PASS, 8, "3", "3"),),
    )
    vacuum = StepOutcome(
        "a/vacuum",
        StepKind.VACUUM,
        StepStatus.INCOMPLETE,
        NOW_MS,
        2,
        vacuum=VacuumReceipt(1, 10, ("left.parquet",), 8, 10, 0.5),
        error=Problem("C701", "would not go", "a", "look at permissions"),
        note="one file is left",
    )
    return RunOutcome(
        "20261121T220000Z-ab12",
        NOW_MS,
        4.0,
        (
            TableOutcome(TableRef("a"), TableStatus.DONE, (rewrite, vacuum), None, "a.yml", "team"),
            TableOutcome(TableRef("b"), TableStatus.FAILED, (), Problem("T401", "no such table")),
        ),
        interrupted_by="SIGTERM",
    )


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_the_committed_schema_is_that_of_the_model(name: str) -> None:
    """After a change on purpose: ``python -m tools.wire_schema``."""
    assert (SCHEMAS / name).read_text(encoding="utf-8") == text_of(DOCUMENTS[name]())


def schema(name: str) -> Any:
    loaded = json.loads((SCHEMAS / name).read_text(encoding="utf-8"))
    jsonschema.validators.validator_for(loaded).check_schema(loaded)
    return loaded


def test_a_plan_with_everything_fits_the_schema_and_comes_back_equal() -> None:
    plan = whole_plan()
    assert [table.state for table in plan.tables] == ["changes", "changes", "blocked", "problem"]
    assert [step.kind for _, step in plan.steps()] == ["set_properties", "compact", "vacuum", "zorder"]
    jsonschema.validate(json.loads(to_json(plan)), schema("plan.schema.json"))
    assert from_json(to_json(plan)) == plan


def test_a_saved_plan_has_each_file_on_a_line_without_what_it_does_not_have() -> None:
    one = (("d", "1"),)
    files = (DataFile("a", 0, 0), DataFile("b", 5, 6, one, 3, tags=(("t", "x"),), stored_values=one))
    plan = whole_plan()
    step = CompactStep((Batch((Bin(files[:1]), Bin(files[1:]))),), 30, 2, ())
    plan = replace(plan, tables=(replace(plan.tables[0], steps=(step,)),))
    lines = [line.strip().rstrip(",") for line in to_json(plan).splitlines()]
    assert [json.loads(line) for line in lines if line.startswith("{") and '"path":' in line] == [
        {"path": "a", "size_bytes": 0, "modification_time_ms": 0},
        {"path": "b", "size_bytes": 5, "modification_time_ms": 6, "partition_values": [["d", "1"]],
         "physical_records": 3, "tags": [["t", "x"]], "stored_values": [["d", "1"]]},
    ]  # fmt: skip
    assert from_json(to_json(plan)) == plan


def test_a_plan_of_many_tables_is_written_in_small_pieces_that_are_the_same_text() -> None:
    plan = whole_plan()
    many = replace(plan, tables=tuple(replace(plan.tables[-1], ref=TableRef(f"t{n}")) for n in range(200)))
    written = list(plan_bytes(many))
    assert b"".join(written).decode() == to_json(many) + "\n"
    assert max(map(len, written)) < len(to_json(many)) / 5
    assert max(map(len, json_pieces(many))) < len(to_json(many)) / 100
    assert from_json(b"".join(written).decode()) == many
    none = replace(plan, tables=())
    assert from_json(b"".join(plan_bytes(none)).decode()) == from_json(to_json(none)) == none


BATCHES = (Batch((Bin(tuple(make_files(10, 20))),)),)
FIGURES = LayoutFigures(2.0, 200, 1.0, 0.0)
TURN = ZOrderTurn(Strategy.LEVELED, "1:ab", 999, (7, 3), level=1, cube="01", before=FIGURES)
SETTINGS = ZOrderSettings("1:ab", "1:ab", tuple(Strategy), 10, 20, 30, 0.05, partitions=((("p", None),),))
EVERY_STEP: tuple[Step, ...] = (
    SetPropertiesStep((("a", None), ("b", "1")), (("a", "2"), ("b", "2")), (), ("c",)),
    CompactStep(BATCHES, 30, 2, (), repartition=True),
    ZOrderStep(BATCHES, ("id",), 30, 2, (), TURN, SETTINGS),
    PartitionRewriteStep(BATCHES, RewriteRequest(None, 64, ("id",)), 2, ()),
    ClusterStep(BATCHES, ("id",), 1, 2, 3, 4, True, ()),
    PurgeStep(BATCHES, 30, 2, ()),
    VacuumStep(
        (RemovedFile("old", 5, NOW_MS),), NOW_MS, 60, "policy", (),
        trash_seconds=60, emptied=(TrashedRun("r1", "file:/x", 2, 20, NOW_MS),),
    ),
)  # fmt: skip


@pytest.mark.parametrize("step", EVERY_STEP, ids=lambda step: step.kind.value)
def test_every_kind_of_step_fits_the_schema_and_comes_back_equal(step: Step) -> None:
    plan = replace(whole_plan(), tables=(TablePlan(TableRef("a"), "a.yml", "sha256:0", steps=(step,)),))
    jsonschema.validate(json.loads(to_json(plan)), schema("plan.schema.json"))
    assert from_json(to_json(plan)) == plan


def test_every_kind_of_step_is_among_them() -> None:
    assert {step.kind for step in EVERY_STEP} == set(StepKind)


def test_a_name_that_is_text_in_no_encoding_comes_back_equal() -> None:
    """What a file system gives as bytes that are not UTF-8 is a lone surrogate in Python."""
    [table] = [table for table in whole_plan().tables if table.steps and table.ref.identifier == "a"]
    plan = replace(whole_plan(), tables=(replace(table, ref=TableRef("/lake/caf\udce9")),))
    assert from_json(to_json(plan)) == plan


def test_a_run_with_everything_fits_the_schema_and_comes_back_equal() -> None:
    run = whole_run()
    jsonschema.validate(json.loads(run_to_json(run)), schema("results.schema.json"))
    assert run_from_json(run_to_json(run)) == run
    assert run_to_document(run)["counts"]["done"] == 1
    assert sum(run_to_document(run)["counts"].values()) == len(run.tables)


def test_sums_beyond_what_json_readers_hold_are_text() -> None:
    commit = run_to_document(whole_run())["tables"][0]["steps"][0]["commits"][0]
    assert commit["proof"]["read"]["sums"] == ["1180591620717411303424", "-5"]


def test_what_people_want_to_see_is_counted() -> None:
    table = document_of(whole_plan())["tables"][0]
    assert table["state"] == "changes"
    assert [step["totals"] for step in table["steps"]] == [
        {"num_properties": 1},
        {"num_batches": 1, "num_bins": 2, "num_files_removed": 3, "num_files_added": 2, "size_bytes": 110},
        {"num_files_deleted": 1, "size_bytes": 5},
    ]


def test_the_digest_does_not_depend_on_layout_and_changes_with_content() -> None:
    plan = whole_plan()
    digest = document_of(plan)["digest"]
    assert from_json(json.dumps(document_of(plan), indent=4)) == from_json(json.dumps(document_of(plan))) == plan
    assert document_of(replace(plan, git_commit="0000000"))["digest"] != digest


def test_a_plan_holds_no_sql_but_what_a_reason_quotes() -> None:
    text = to_json(whole_plan())
    assert "p = 'x'" in text  # the reason quotes the policy
    document = document_of(whole_plan())
    for table in document["tables"]:
        for step in table["steps"]:
            assert "p = 'x'" not in canonical_json({**step, "reasons": []})


def edited(**changes: Any) -> str:
    document = {**document_of(whole_plan()), **changes}
    return json.dumps({key: value for key, value in document.items() if value is not ...})


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "this is not a plan: it cannot be read as JSON"),
        ("[" * 100_000, "this is not a plan: it cannot be read as JSON"),
        ("[]", "this is not a plan"),
        ('{"a": 1, "a": 2}', "this is not a plan: it cannot be read as JSON"),
        ('{"format_version": NaN}', "this is not a plan: it cannot be read as JSON"),
        (edited(format_version=2), "the plan was made by another version of maintainer"),
        (edited(expires_at_ms=NOW_MS * 2), "the plan was edited after it was made: its digest does not match"),
        (edited(digest=...), "the plan was edited after it was made: its digest does not match"),
        (edited(tables=[]), "the plan was edited after it was made: its digest does not match"),
    ],
)
def test_what_is_no_plan_is_refused_with_a_way_out(text: str, what: str) -> None:
    with pytest.raises(Refused) as refused:
        from_json(text, where="plan.json")
    error = refused.value
    assert (error.code, error.what, error.where) == ("A402", what, "plan.json")
    assert error.exit_code is ExitCode.REFUSED
    assert error.help == "make the plan again: `maintainer plan --out FILE`"


def test_what_stands_behind_the_tables_has_no_digest() -> None:
    document = {key: value for key, value in document_of(whole_plan()).items() if key not in ("digest", "selection")}
    signed = json.dumps({**document, "digest": digest_of(document)}, sort_keys=True)
    assert from_json(signed) == replace(whole_plan(), selection=())
    with pytest.raises(Refused, match="its digest does not match"):
        from_json(f'{signed[:-1]},"selection":["other"]}}')


def test_a_right_digest_over_a_wrong_model_is_still_refused() -> None:
    document = document_of(whole_plan())
    document["tables"][0]["steps"][1]["batches"] = [{"bins": []}]
    document["digest"] = digest_of(document)
    with pytest.raises(Refused) as refused:
        from_json(json.dumps(document))
    assert refused.value.found == "tables[0].steps[1].batches[0]: a batch holds at least one bin"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"rows": True, "sums": []}, "rows: Input should be a valid integer"),
        ({"rows": 1.0, "sums": []}, "rows: Input should be a valid integer"),
        ({"rows": "1", "sums": []}, "rows: Input should be a valid integer"),
        ({"rows": 1, "sums": ["x"]}, "sums[0]: expected an integer as text"),
        ({"rows": 1, "sums": ["1", 5]}, "sums[1]: expected an integer as text"),
        ({"rows": 1, "sums": ["1" * 101]}, "sums[0]: expected an integer as text"),
        ({"rows": 1}, "sums: Field required"),
        ({"rows": 1, "sums": [], "more": 0}, "more: Unexpected keyword argument"),
        ({"rows": float("nan"), "sums": []}, "the document: a number is not finite, and JSON has only those that are"),
        ([], "the document: expected an object, found list"),
        (None, "the document: expected an object, found NoneType"),
    ],
)
def test_decoding_is_strict_and_says_where(value: Any, problem: str) -> None:
    with pytest.raises(DecodeError) as error:
        decode(Fingerprint, value)
    assert str(error.value) == problem


def test_what_an_earlier_version_did_not_write_is_read_as_its_default() -> None:
    document = encode(whole_plan())
    observed = [table["observed"] for table in document["tables"] if table["observed"]]
    for value in observed:
        for name in ("small_files", "listed"):
            del value[name]
    tables = decode(Plan, document).tables
    assert {(table.observed.small_files, table.observed.listed) for table in tables if table.observed} == {
        (None, False)
    }
    del observed[0]["version"]
    with pytest.raises(DecodeError, match=r"^tables\[\d\]\.observed\.version: Field required$"):
        decode(Plan, document)


def test_results_that_cannot_be_read_are_an_error_that_says_so() -> None:
    for text in ("", "[]", '{"format_version": 9}', "[" * 100_000):
        with pytest.raises(DecodeError):
            run_from_json(text)


def test_only_models_are_encoded() -> None:
    with pytest.raises(TypeError):
        encode({"a": 1})


def test_a_text_longer_than_any_plan_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    text = to_json(whole_plan())
    monkeypatch.setattr(plan_document, "MAX_PLAN_CHARACTERS", len(text))
    assert from_json(text) == whole_plan()
    with pytest.raises(Refused) as caught:
        from_json(f"{text} ", where="plan.json")
    assert (caught.value.code, caught.value.found) == ("A402", f"more than {len(text):,} characters")
