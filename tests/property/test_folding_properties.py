"""Several sentences said once: whatever stands in them, they are one sentence, with the ends of their figures."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from maintainer.report.document.folding import merged, wording
from tests.support.suites.example_counts import examples

texts = st.one_of(
    st.text(max_size=30),
    st.text(alphabet="# 059,.sfile=/MiB\x00٥", max_size=30),
    st.lists(
        st.sampled_from(["#", "55", "1,200", "files", "file", "s", "4 MiB", "5h 3m", "40s", "by job", " "]), max_size=8
    ).map(" ".join),
)


@given(st.lists(texts, min_size=1, max_size=4))
@example(["x by job 55", "x by job #"])
@example(["5 files", "# file"])
@example(["\x00 files 5", "7 files \x00"])
@settings(max_examples=examples(400))
def test_any_sentences_are_one_and_those_of_other_words_are_counted(several: list[str]) -> None:
    said = merged(several)
    distinct = dict.fromkeys(several)
    if len(set(map(wording, distinct))) > 1:
        assert said == f"{several[0]} (and {len(distinct) - 1:,} more like it)"
    if len(distinct) == 1:
        assert said == several[0]


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_figures_that_differ_are_said_from_the_least_to_the_most(one: int, other: int) -> None:
    least, most = sorted((one, other))
    span = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    assert merged([f"# of {one:,} of b", f"# of {other:,} of b"]) == f"# of {span} of b"
