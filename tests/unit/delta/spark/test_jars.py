"""Where the JARs are looked for, and that nothing unchecked reaches the class path.

A shell script stands in for the resolver here; the real one is tried in the integration tests.
"""

from __future__ import annotations

import hashlib
import stat
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from maintainer.delta.spark import jars
from maintainer.delta.spark.installed_versions import Versions
from maintainer.delta.spark.jars import Jar, delta_jars
from maintainer.delta.spark.java_home import Java
from maintainer.errors import EnvironmentUnfit

DELTA_JARS = delta_jars("4.1", "4.4.0")
CONTENT = {jar.file_name: f"bytes of {jar.artifact}".encode() for jar in DELTA_JARS}


@pytest.fixture(autouse=True)
def small_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pin digests of small files instead of the real ones."""
    pinned = tuple(replace(jar, sha256=hashlib.sha256(CONTENT[jar.file_name]).hexdigest()) for jar in DELTA_JARS)
    monkeypatch.setattr(jars, "delta_jars", lambda *_: pinned)


@pytest.fixture
def versions(tmp_path: Path) -> Versions:
    home = tmp_path / "spark"
    (home / "jars").mkdir(parents=True)
    (home / "jars" / "ivy-2.5.3.jar").touch()
    return Versions("4.1.4", "4.4.0", home)


def resolver(tmp_path: Path, script: str) -> Java:
    """Return a Java that is a shell script; ``$OUT`` is where the resolver would put the files."""
    binary = tmp_path / "fake-java"
    binary.write_text(
        '#!/bin/sh\nfor last; do :; done\nOUT=$(dirname "$last")\nmkdir -p "$OUT"\n'
        f"echo run >> {tmp_path}/runs\n{script}\n"
    )
    binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
    return Java(binary, "17.0.1", 17, "none")


def bringing(tmp_path: Path) -> Java:
    return resolver(tmp_path, "\n".join(f"printf '{c.decode()}' > \"$OUT/{n}\"" for n, c in CONTENT.items()))


def runs(tmp_path: Path) -> int:
    log = tmp_path / "runs"
    return len(log.read_text().splitlines()) if log.exists() else 0


def env_for(tmp_path: Path) -> dict[str, str]:
    return {"MAINTAINER_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}


def fill(folder: Path) -> None:
    folder.mkdir(parents=True)
    for name, content in CONTENT.items():
        (folder / name).write_bytes(content)


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"MAINTAINER_JARS": "/j", "MAINTAINER_HOME": "/m", "HOME": "/h"}, "/j"),
        ({"MAINTAINER_HOME": "/m", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/m/jars/4.4.0"),
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/maintainer/jars/4.4.0"),
        ({"HOME": "/h"}, "/h/.cache/maintainer/jars/4.4.0"),
    ],
)
def test_folder_follows_the_variables_in_order(env: dict[str, str], expected: str) -> None:
    assert jars.jar_folder(env) == Path(expected)


def test_fetched_once_and_used_afterwards_without_a_resolver(tmp_path: Path, versions: Versions) -> None:
    java = bringing(tmp_path)
    first = jars.ensure_jars(java, versions, env_for(tmp_path))
    second = jars.ensure_jars(java, versions, env_for(tmp_path))
    assert first == second
    assert [path.read_bytes() for path in first] == [CONTENT[path.name] for path in first]
    assert runs(tmp_path) == 1
    assert sorted(p.name for p in first[0].parent.iterdir()) == sorted(CONTENT)


def test_only_the_missing_and_the_damaged_are_fetched(tmp_path: Path, versions: Versions) -> None:
    folder = tmp_path / "home" / "jars" / "4.4.0"
    fill(folder)
    cut_short, gone, *_ = (folder / name for name in CONTENT)
    cut_short.write_bytes(b"bytes o")
    gone.unlink()
    asked = tmp_path / "asked.xml"
    script = f'cp "$(dirname "$OUT")/ivy.xml" {asked}\n' + "\n".join(
        f"printf '{CONTENT[p.name].decode()}' > \"$OUT/{p.name}\"" for p in (cut_short, gone)
    )
    jars.ensure_jars(resolver(tmp_path, script), versions, env_for(tmp_path))
    assert jars.unfit_jars(folder, jars.needed_jars(versions)) == {}
    assert asked.read_text().count("<dependency ") == 2
    assert 'name="delta-spark_4.1_2.13"' in asked.read_text()


def test_other_bytes_are_refused_and_not_kept(tmp_path: Path, versions: Versions) -> None:
    script = "\n".join(f'printf other > "$OUT/{name}"' for name in CONTENT)
    with pytest.raises(EnvironmentUnfit, match="other bytes") as caught:
        jars.ensure_jars(resolver(tmp_path, script), versions, env_for(tmp_path))
    assert caught.value.code == "E605"
    assert list((tmp_path / "home" / "jars" / "4.4.0").iterdir()) == []


def test_failed_fetch_says_what_the_resolver_said_and_what_to_do(tmp_path: Path, versions: Versions) -> None:
    script = "echo ':: loading'; echo ':::: ERRORS'; echo '  Server access error at url x'; exit 1"
    with pytest.raises(EnvironmentUnfit) as caught:
        jars.ensure_jars(resolver(tmp_path, script), versions, env_for(tmp_path))
    text = caught.value.render()
    assert caught.value.code == "E605"
    assert "Server access error at url x" in text
    for way in ("HTTPS_PROXY", "MAINTAINER_JARS", "MAINTAINER_HOME"):
        assert way in text


def test_resolver_that_brings_nothing_is_a_failure(tmp_path: Path, versions: Versions) -> None:
    with pytest.raises(EnvironmentUnfit) as caught:
        jars.ensure_jars(resolver(tmp_path, "exit 0"), versions, env_for(tmp_path))
    assert caught.value.found == f"the resolver did not download {DELTA_JARS[0].file_name}"


def test_fetch_has_a_limit(tmp_path: Path, versions: Versions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "FETCH_TIMEOUT_SECONDS", 0.3)
    with pytest.raises(EnvironmentUnfit) as caught:
        jars.ensure_jars(resolver(tmp_path, "exec sleep 20"), versions, env_for(tmp_path))
    assert "no answer within" in (caught.value.found or "")


def test_named_folder_is_checked_and_never_written(tmp_path: Path, versions: Versions) -> None:
    folder = tmp_path / "mine"
    fill(folder)
    env = {"MAINTAINER_JARS": str(folder)}
    java = bringing(tmp_path)
    assert [p.parent for p in jars.ensure_jars(java, versions, env)] == [folder] * 4
    damaged = folder / next(iter(CONTENT))
    damaged.write_bytes(b"x")
    with pytest.raises(EnvironmentUnfit) as caught:
        jars.ensure_jars(java, versions, env)
    assert caught.value.code == "E605"
    assert f"{damaged.name}: damaged" in (caught.value.found or "")
    assert damaged.read_bytes() == b"x"
    assert runs(tmp_path) == 0


def test_several_at_once_end_with_one_good_set(tmp_path: Path, versions: Versions) -> None:
    java = bringing(tmp_path)
    failures: list[BaseException] = []

    def fetch() -> None:
        try:
            jars.ensure_jars(java, versions, env_for(tmp_path))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=fetch) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert failures == []
    folder = tmp_path / "home" / "jars" / "4.4.0"
    assert jars.unfit_jars(folder, jars.needed_jars(versions)) == {}
    assert sorted(p.name for p in folder.iterdir()) == sorted(CONTENT)


def test_folder_that_cannot_be_made(tmp_path: Path, versions: Versions) -> None:
    (tmp_path / "home").write_text("a file where a folder should be")
    with pytest.raises(EnvironmentUnfit) as caught:
        jars.ensure_jars(bringing(tmp_path), versions, env_for(tmp_path))
    assert caught.value.code == "E605"
    assert runs(tmp_path) == 0


def test_resolver_knows_only_the_central_repository_and_its_own_cache(tmp_path: Path) -> None:
    artifact = Jar("org", "name", "1", None, "digest")
    java = Java(Path("/jdk/bin/java"), "17", 17, "r")
    command = jars.ivy_command([artifact], java, Path("/s/ivy.jar"), tmp_path, {})
    settings = Path(command[command.index("-settings") + 1]).read_text()
    assert settings.count("<ibiblio ") == 1
    assert "://" not in settings
    assert command[command.index("-cache") + 1] == str(tmp_path / "cache")
    assert not any("proxy" in part.lower() for part in command)


def test_proxy_variables_are_followed(tmp_path: Path) -> None:
    env = {"https_proxy": "http://proxy.example:3128", "NO_PROXY": "localhost,.corp.example"}
    command = jars.ivy_command([], Java(Path("j"), "17", 17, "r"), Path("i"), tmp_path, env)
    assert "-Dhttps.proxyHost=proxy.example" in command
    assert "-Dhttps.proxyPort=3128" in command
    assert "-Dhttp.nonProxyHosts=localhost|*.corp.example" in command


def test_own_settings_file_is_used(tmp_path: Path) -> None:
    env = {"MAINTAINER_IVY_SETTINGS": "/etc/mirror.xml"}
    command = jars.ivy_command([], Java(Path("j"), "17", 17, "r"), Path("i"), tmp_path, env)
    assert command[command.index("-settings") + 1] == "/etc/mirror.xml"
