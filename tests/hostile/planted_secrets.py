"""Secrets as they come along in texts, and how to look for one in what was written, also in other spellings.

All are made up. Each has its text, as storage, drivers and people write it, and the part that must not be seen.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from urllib.parse import quote, quote_plus


@dataclass(frozen=True)
class PlantedSecret:
    """``secret`` is what nobody may see of ``text``. ``in_a_policy``: the text alone gives it away."""

    name: str
    text: str
    secret: str
    in_a_policy: bool = True


def _key(letter: str) -> str:
    """Sixty-four bytes in base64, as a storage account's key is written."""
    return base64.b64encode((letter * 64).encode()).decode()


_PEM = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7"

SECRETS = (
    PlantedSecret(
        "SAS of a blob",
        "GET https://acct.blob.core.windows.net/lake/x.parquet?sv=2024-11-04&sr=b&sig=Zm9vYmFyMTIzNDU2Nzg5%2B%2Fq%3D&se=2027",
        "Zm9vYmFyMTIzNDU2Nzg5%2B%2Fq%3D",
    ),
    PlantedSecret(
        "SAS of a container", "SharedAccessSignature sr=c&sig=kYc8RtPlanted0Signature&skn=x", "kYc8RtPlanted0Signature"
    ),
    PlantedSecret(
        "setting of S3A",
        "spark.hadoop.fs.s3a.secret.key=wJalrXUtnFEMI/K7MDENG/bPxRfiCY",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCY",
    ),
    PlantedSecret(
        "setting of S3A for a bucket",
        "fs.s3a.bucket.lake.secret.key = q9Planted/Bucket+Secret7",
        "q9Planted/Bucket+Secret7",
    ),
    PlantedSecret("access key of AWS", "InvalidAccessKeyId: AKIAIOSFODNN7PLANTED (403)", "AKIAIOSFODNN7PLANTED"),
    PlantedSecret("key of a session of AWS", "assumed ASIAIOSFODNN7PLANTED for 1 h", "ASIAIOSFODNN7PLANTED"),
    PlantedSecret(
        "presigned URL of AWS",
        "https://lake.s3.amazonaws.com/a?X-Amz-Algorithm=AWS4&X-Amz-Signature=fe5f80f77d5fa3beca038a248ff027&x=1",
        "fe5f80f77d5fa3beca038a248ff027",
    ),
    PlantedSecret("user of a URL", "s3a://reader:hunter2planted@lake/sales/orders is not there", "hunter2planted"),
    PlantedSecret(
        "key of AWS in a URL",
        "s3a://reader:wJalrXUtnFEMI/K7MDENG/planted0Key@lake/sales/orders",
        "K7MDENG/planted0Key",
    ),
    PlantedSecret("password of digits and a slash", "s3://reader:42/planted0Digits@lake/sales", "planted0Digits"),
    PlantedSecret("password with an at sign and a slash", "https://svc:pa@ss/planted9@host/x", "ss/planted9"),
    PlantedSecret(
        "password with an at sign", "https://svc:pa@ss@word9planted@repo.example.org/x.jar", "ss@word9planted"
    ),
    PlantedSecret(
        "JDBC of PostgreSQL", "jdbc:postgresql://db:5432/meta?user=hive&password=metaPlanted77", "metaPlanted77"
    ),
    PlantedSecret(
        "JDBC of SQL Server", "jdbc:sqlserver://db;user=sa;password=Planted!Server8;encrypt=true", "Planted!Server8"
    ),
    PlantedSecret("JDBC of Oracle", "jdbc:oracle:thin:scott/tigerPlanted9@//db:1521/x", "tigerPlanted9"),
    PlantedSecret(
        "bearer token",
        "401 for Authorization: Bearer planted.bearer.token-0123456789",
        "planted.bearer.token-0123456789",
        False,
    ),
    PlantedSecret(
        "basic authentication", "sent Authorization: Basic cGxhbnRlZDp1c2VyMTIz", "cGxhbnRlZDp1c2VyMTIz", False
    ),
    PlantedSecret(
        "web token",
        "refused eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJwbGFudGVkIn0.c2lnbmF0dXJlLXBsYW50ZWQ",
        "eyJzdWIiOiJwbGFudGVkIn0",
    ),
    PlantedSecret(
        "key of a storage account",
        f"fs.azure.account.key.acct.dfs.core.windows.net: {_key('p')}",
        _key("p"),
    ),
    PlantedSecret("key of a storage account alone", f"AccountName=acct;{_key('q')}", _key("q")),
    PlantedSecret(
        "private key",
        f"-----BEGIN PRIVATE KEY-----\n{_PEM}\nplantedLine2OfTheKey\n-----END PRIVATE KEY-----",
        "plantedLine2OfTheKey",
    ),
    PlantedSecret("private key that was cut", f"key: -----BEGIN RSA PRIVATE KEY-----\n{_PEM[:30]}", _PEM[:30]),
    PlantedSecret(
        "token of GitHub", "https://ghp_0123456789plantedABCDEFGHIJ@github.com/o/r", "ghp_0123456789plantedABCDEFGHIJ"
    ),
    PlantedSecret(
        "token of Databricks", "with dapi0123456789abcdef0123456789planted", "dapi0123456789abcdef0123456789planted"
    ),
    PlantedSecret(
        "address of Spark Connect", "sc://spark.example.org:15002/;token=plantedConnect55;user_id=x", "plantedConnect55"
    ),
    PlantedSecret("JSON", '{"user": "x", "password": "planted in blanks 1"}', "planted in blanks 1", False),
    PlantedSecret("setting as people write it", "password: plantedAfterColon3", "plantedAfterColon3", False),
    PlantedSecret(
        "URL within a URL",
        "https://proxy/?to=https%3A%2F%2Fsvc%3Aplanted0Nested%40db%2Fx",
        "planted0Nested",
    ),
)


def spellings(secret: str) -> frozenset[str]:
    """Return the secret as it is, URL-encoded, in base64 at each of three places in a longer text, and in hex."""
    data = secret.encode()
    texts = {secret, quote(secret, safe=""), quote(secret), quote_plus(secret), data.hex(), repr(secret)[1:-1]}
    for offset in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            # The characters at both ends also depend on what stands around.
            texts.add(encode(b"\0" * offset + data).decode()[4 if offset else 0 :].rstrip("=")[:-1])
    return frozenset(texts)
