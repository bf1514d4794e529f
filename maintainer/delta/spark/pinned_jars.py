"""The JARs that may stand on the class path beside Spark's own, each pinned by its digest: data, and how to read it.

Delta needs two, reading logs without Spark jobs two more. Each kind of object store has the connector of Spark's own
version of Hadoop with what it needs. Amazon's SDK comes in its parts: 34 JARs with 10 MB, where the bundle that
hadoop-aws names has 600 MB.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from maintainer.delta.spark.installed_versions import DELTA_VERSION

HADOOP_VERSION = "3.4.2"
"""Spark 4.1's Hadoop; a connector of another version does not fit."""

_DELTA = "io.delta"
_HADOOP = "org.apache.hadoop"
_AWS = "software.amazon.awssdk"
_AWS_VERSION = "2.29.52"
"""What hadoop-aws 3.4.2 was built for."""

_JETTY_VERSION = "9.4.57.v20241219"


@dataclass(frozen=True, slots=True)
class Jar:
    """One JAR of a Maven repository, pinned by its digest."""

    artifact: str
    sha256: str
    version: str = DELTA_VERSION
    organisation: str = _DELTA
    classifier: str | None = None

    @property
    def file_name(self) -> str:
        """The name the file has in the repository and in our folder."""
        classifier = "" if self.classifier is None else f"-{self.classifier}"
        return f"{self.artifact}-{self.version}{classifier}.jar"


DELTA_JARS = (
    Jar("delta-spark_4.1_2.13", "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10"),
    Jar("delta-storage", "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc"),
    Jar("delta-kernel-api", "ee9b5a14ac3b7efdff4d61a58478fe8eb0e5a3fbca43889dca7290795fe79a11"),
    Jar("delta-kernel-defaults", "225c975199e4718b38ee5b7e6da7f19e9585024262b2cec2656b32151a856b0b"),
)

_AWS_PARTS = {
    "annotations": "8cd8bd8afd7eca5a367f69fd87427f6d9f3e7d359962122da24d71f1963f00cd",
    "apache-client": "c96494be30ecac6f0ab7a35fdd91a4c77ca8a5daf62f3d9d84644ef0f0524dc6",
    "arns": "f5a4d1d9b4e4fc63c9bda49bcf1c59d23fd876b276c6b43aaca12969337303a6",
    "auth": "4d8143b6198dc7a530c2ccdd813129c132b96736086c0d4fea85480b9bdbc5fe",
    "aws-core": "eb560c064fbaac7e2e7f4a77ac343d3083bea0d7f6e2c69ba022d3f3e859be90",
    "aws-query-protocol": "1b117672963ee5059c45f2aadb110f191b578d108d8f08d7c7a59e6c0b098a8e",
    "aws-xml-protocol": "daf87b429373ad586d165003b5b1d4fe498c6472eb65ec9a9e2aa7d56f3917dd",
    "checksums": "bca99ff25c9b917d6be03e5dce78ad5328e7dca485e96024fa8476e4192a800a",
    "checksums-spi": "21193b9b648843dcaff493f0dd80abab9ee6871b203b9218120554698d8f7b8a",
    "crt-core": "4e1f33de21b688695fec91b977ddfa99e9d376edcbad06a62b0c138c60b37de4",
    "endpoints-spi": "e54f246c668d70b55cffe0c8fad18d4465e74e22db75139918bd30610093d1e6",
    "http-auth": "d8aa3bd376aaec7196396e65fe8755f1fdd169e51357f8128ecdc7d23a687450",
    "http-auth-aws": "7ae124e81ac0c2860bb61fdde34a388dbe823fef8509dd46a6bec805ada90308",
    "http-auth-aws-eventstream": "565a4aacce955c5ffaed551f6faaaa958e9e92b2f8514c8482f664edb2bab576",
    "http-auth-spi": "7a2168c5a7baa856d7ae9f9c4f7522d2db9f1361108c38f5b6ece66f249e6a2d",
    "http-client-spi": "8ea61ce3b527779fbfe119e0775c4b7cfdf274a979b1e50596a634685a5b6542",
    "identity-spi": "85104635abf9e5c044aaf7f8951b63efc2ef82051b5ee303571ee2e1fd8b46d0",
    "json-utils": "2652cdb3668311bcff6e643c8612b9fea266423ae1ce33743c84dd7f77904311",
    "metrics-spi": "1db2e3da338148ee40a716e1733c9a5b99e9e6daa4db3aa8bd7e718adafa2510",
    "netty-nio-client": "07238668c9cf54531ee269fd6e2a1e2650fb75d6774d401f406c2a14f26af654",
    "profiles": "fef84619d101838ba45f48d0caddb09a85d9ed8bf869095bd7d2064796856cf7",
    "protocol-core": "7b32e41a3743b422d2edec1670f60b4c1e512fcd5ab7a53fef20742d6b9104d1",
    "regions": "5ee0e26277c679ffa70d83923b0d5f77a53066ecde8610f28be1856947d60eaf",
    "retries": "ca3752ba31399721980c6398992921ff5aa164e084b4c14484333df58c76a353",
    "retries-spi": "a4218ea742fc9e07a620629d7a258bfd92b8ea3ef75f1b99193d0898ca3efe99",
    "s3": "abaedea7e68063e9c4ab090f80d14b9884c57b50953bfe6e5acaa23025609efa",
    "s3-transfer-manager": "0c9e654637247187a7e2494eb7a8799477a772a7d554cd3ae787cd3e3bae3c55",
    "sdk-core": "ea8e9856569f85075a8a806d0481c4bd848c98b24fd6d706fc0b5883fc4604dc",
    "sts": "6495d0457f4e4c3724d8c9c5fe4f6f98c9530a22f92449c4cca5fd03622e4edb",
    "third-party-jackson-core": "eaece3eb60beb8ec09d8a4f48d5bff4110010b03cc23688bdcf2af2eb075cac6",
    "utils": "f150a38f2fec14ced2de6459bfe804f647c88baa573b218646ef89b436a29d42",
}

_S3 = (
    Jar(
        "hadoop-aws",
        "d2d24e6b715b5656b9d238bf13b6682a07e2004dd36aad74a73aeb854319f4d9",
        HADOOP_VERSION,
        _HADOOP,
    ),
    Jar(
        "eventstream",
        "0c37d8e696117f02c302191b8110b0d0eb20fa412fce34c3a269ec73c16ce822",
        "1.0.1",
        "software.amazon.eventstream",
    ),
    Jar(
        "reactive-streams",
        "f75ca597789b3dac58f61857b9ac2e1034a68fa672db35055a8fb4509e325f28",
        "1.0.4",
        "org.reactivestreams",
    ),
    *(Jar(part, digest, _AWS_VERSION, _AWS) for part, digest in _AWS_PARTS.items()),
)

_AZURE = (
    Jar(
        "hadoop-azure",
        "f02ab756037abaecc45ea1869144ad3a69e25ccd84062bc37805837ca254e21c",
        HADOOP_VERSION,
        _HADOOP,
    ),
    Jar(
        "hadoop-shaded-guava",
        "a5dd4b1ca2521ad66cc555f784c4d35927171ed04d263d4b233cebab745430b5",
        "1.4.0",
        "org.apache.hadoop.thirdparty",
    ),
    Jar(
        "azure-storage",
        "32249cf9b550e247e257c0a508f93526d35e072509aa637fd33b3d54e267b1e2",
        "7.0.1",
        "com.microsoft.azure",
    ),
    Jar(
        "azure-keyvault-core",
        "d8c6ca5bc1c50fd2c74d81b8731b67aa72fa5c9e086623439ba4e950138937a0",
        "1.0.0",
        "com.microsoft.azure",
    ),
    Jar(
        "wildfly-openssl",
        "95decbc5d088b40e85f58d7726b8c8f4e3be6312a0f2660c2d714a23cee80279",
        "2.1.4.Final",
        "org.wildfly.openssl",
    ),
    Jar(
        "jetty-util",
        "6ccbf678716778e316cc097d8aada4fe2a2e16c0bbfd8a1763204d6724b423f4",
        _JETTY_VERSION,
        "org.eclipse.jetty",
    ),
    Jar(
        "jetty-util-ajax",
        "67af50dd7714803b1bcdfabac181dd8b279d0ba6ba7fd27ea80c5b2099016542",
        _JETTY_VERSION,
        "org.eclipse.jetty",
    ),
)

_GCS = (
    Jar(
        "gcs-connector",
        "34752716758917d9a266ca7e770ffdd3fd430c7a3c48078c525264681da91db1",
        "3.1.3",
        "com.google.cloud.bigdataoss",
        "shaded",
    ),
)

CONNECTORS: Mapping[str, tuple[Jar, ...]] = {"s3": _S3, "azure": _AZURE, "gcs": _GCS}
"""The JARs of each kind of object store, the connector itself first."""


def connector_jars(kinds: Iterable[str]) -> tuple[Jar, ...]:
    """Return the JARs that some kinds of object store need, each kind once."""
    return tuple(jar for kind in dict.fromkeys(kinds) for jar in CONNECTORS[kind])
