"""Which client reads a store: obstore, or Hadoop where obstore does not understand how to log in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from maintainer.delta.storage.object_files import Bucket
from maintainer.delta.storage.table_storage import _client

ACCOUNT = {
    "type": "external_account",
    "audience": "//iam.googleapis.com/x",
    "token_url": "https://sts.googleapis.com/v1",
}


def test_a_key_file_that_obstore_cannot_read_sends_the_store_through_hadoop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Federated accounts of Google, for one: Google's own connector logs in with them."""
    (tmp_path / "login.json").write_text(json.dumps({**ACCOUNT, "credential_source": {"file": "/x"}}))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "login.json"))
    why = _client("gs://lake", {})
    assert isinstance(why, str)
    assert "external_account" in why


def test_a_client_is_made_once_for_all_tables_of_a_bucket() -> None:
    conf = {"spark.hadoop.fs.s3a.access.key": "key", "spark.hadoop.fs.s3a.secret.key": "secret"}
    client = _client("s3a://lake", conf)
    assert isinstance(client, Bucket)
    assert _client("s3a://lake", dict(conf)) is client
    assert _client("s3a://lake", {**conf, "spark.hadoop.fs.s3a.requester.pays.enabled": "true"}) is not client
    proxy = {"spark.hadoop.fs.s3a.proxy.host": "proxy"}
    assert _client("s3a://lake", {**conf, **proxy}) is not client
    assert _client("s3a://lake", {"spark.hadoop.fs.s3a.acl.default": "Private"}) == "spark.hadoop.fs.s3a.acl.default"
