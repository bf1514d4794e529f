"""On S3 nothing is written unless somebody chose a log store."""

from __future__ import annotations

import pytest

from maintainer.delta.log_store import refuse_unsafe_log_store
from maintainer.errors import ExitCode, Refused


@pytest.mark.parametrize(
    ("location", "settings", "refused"),
    [
        ("file:/lake/t", {}, False),
        ("hdfs://nn/lake/t", {}, False),
        ("abfss://c@a/t", {}, False),
        ("s3://b/t", {}, True),
        ("s3a://b/t", {}, True),
        ("s3n://b/t", {}, True),
        ("s3a://b/t", {"spark.delta.logStore.s3a.impl": "io.delta.storage.S3DynamoDBLogStore"}, False),
        ("s3://b/t", {"spark.delta.logStore.s3a.impl": "io.delta.storage.S3DynamoDBLogStore"}, True),
        ("s3://b/t", {"spark.delta.logStore.class": "our.Store"}, False),
        ("s3a://b/t", {"spark.maintainer.singleWriter": "true"}, False),
        ("s3a://b/t", {"spark.maintainer.singleWriter": "false"}, True),
    ],
)
def test_only_s3_with_the_default_store_is_refused(location: str, settings: dict[str, str], refused: bool) -> None:
    if not refused:
        refuse_unsafe_log_store(location, settings.get, "t")
        return
    with pytest.raises(Refused) as caught:
        refuse_unsafe_log_store(location, settings.get, "t")
    assert (caught.value.code, caught.value.exit_code) == ("A432", ExitCode.REFUSED)
