"""The archive of classes beside the JARs: when it is read, recorded, kept and left alone."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from maintainer.delta.spark.java_home import Java
from maintainer.delta.spark.jvm_launch import MAX_ARCHIVES, ClassArchive, class_archive

JAVA = Java(Path("/java/bin/java"), "17.0.15", 17, "OpenJDK Runtime Environment")


def archive(folder: Path, *, java: Java = JAVA, record: bool = False, user_options: str | None = None) -> ClassArchive:
    (folder / "jars").mkdir(exist_ok=True)
    jars = [folder / "jars" / "a.jar"]
    return class_archive(java, jars, Path("/spark"), folder / "session", record=record, user_options=user_options)


def record_classes(folder: Path, chosen: ClassArchive) -> None:
    assert chosen.recording is not None
    (folder / "session").mkdir(exist_ok=True)
    chosen.recording.write_bytes(b"classes")
    chosen.keep_recording()


def test_what_was_recorded_is_read_and_can_be_recorded_again(tmp_path: Path) -> None:
    first = archive(tmp_path, record=True)
    assert f"-XX:ArchiveClassesAtExit={tmp_path / 'session' / 'classes.jsa'}" in first.java_options()
    assert archive(tmp_path).java_options() == ()
    record_classes(tmp_path, first)
    second = archive(tmp_path)
    assert (second.reads, second.recording) == (True, None)
    assert f"-XX:SharedArchiveFile={second.path}" in second.java_options()
    assert [file.name for file in (tmp_path / "jars").iterdir()] == [second.path.name]
    assert archive(tmp_path, record=True) == first


def test_another_java_has_an_archive_of_its_own(tmp_path: Path) -> None:
    record_classes(tmp_path, archive(tmp_path, record=True))
    other = archive(tmp_path, java=replace(JAVA, version="17.0.16"))
    assert not other.reads
    assert other.path != archive(tmp_path).path


def test_nothing_is_recorded_unasked_or_where_the_user_says_how(tmp_path: Path) -> None:
    assert archive(tmp_path).java_options() == ()
    for own in ("-Xshare:off", "-XX:SharedArchiveFile=/mine.jsa", "-XX:+AutoCreateSharedArchive"):
        assert archive(tmp_path, record=True, user_options=own).java_options() == ()


def test_a_recording_that_did_not_come_leaves_nothing(tmp_path: Path) -> None:
    archive(tmp_path, record=True).keep_recording()
    assert list((tmp_path / "jars").iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_nothing_is_recorded_where_the_jars_cannot_be_written(tmp_path: Path) -> None:
    archive(tmp_path)
    (tmp_path / "jars").chmod(0o500)
    assert archive(tmp_path, record=True).recording is None


def test_old_archives_are_removed(tmp_path: Path) -> None:
    for number in range(MAX_ARCHIVES + 2):
        chosen = archive(tmp_path, java=replace(JAVA, version=f"17.0.{number}"), record=True)
        record_classes(tmp_path, chosen)
        os.utime(chosen.path, (number, number))
    remaining = {
        archive(tmp_path, java=replace(JAVA, version=f"17.0.{n}")).path.name for n in range(2, MAX_ARCHIVES + 2)
    }
    assert {file.name for file in (tmp_path / "jars").iterdir()} == remaining
