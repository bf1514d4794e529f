"""Forgeries of tables: live files, commits, partitions, deletions and the trash, files that are left."""

from __future__ import annotations

import json

from tests.unit.support.forged_project import COMPACTED, NEW, OLD, OLD_BYTES, TABLE, VACUUMED, ForgedProject
from tests.unit.support.forgery_cases import Case, registering

LOG_FORGERIES: list[Case] = []
forgery = registering(LOG_FORGERIES)


@forgery("live_files_are_there", "it is not on disk")
def a_live_file_is_gone(project: ForgedProject) -> None:
    del project.files[f"{TABLE}/{NEW}"]


@forgery("live_files_are_there", "on disk it has 149")
def a_live_file_is_cut_off(project: ForgedProject) -> None:
    project.files[f"{TABLE}/{NEW}"] -= 1


@forgery("live_files_are_there", "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin")
def a_deletion_vector_is_gone(project: ForgedProject) -> None:
    # The example of the Delta protocol.
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "sizeInBytes": 40}
    project.log[4] = [{"remove": {"path": NEW, "dataChange": True}}]
    project.log[4] += [{"add": {**project.action(1, "add"), "dataChange": True, "deletionVector": vector}}]


@forgery("logs_can_be_read", "misses a commit")
def the_log_of_a_table_that_is_done_has_a_hole(project: ForgedProject) -> None:
    del project.log[2]


@forgery("rewrites_change_no_data", "dataChange True")
def a_rewrite_says_that_it_changed_data(project: ForgedProject) -> None:
    project.action(1, "add")["dataChange"] = True


@forgery("rewrites_change_no_data", "removed files with 20 rows and added files with 19")
def a_rewrite_lost_a_row(project: ForgedProject) -> None:
    project.action(1, "add")["stats"] = json.dumps({"numRecords": 19})


@forgery("metrics_agree_with_actions", "numRemovedFiles is 3, the actions come to 2")
def metrics_count_a_file_too_many(project: ForgedProject) -> None:
    project.action(1, "commitInfo")["operationMetrics"]["numRemovedFiles"] = "3"


@forgery("other_commits_touch_no_file", "our step vacuum adds or removes files")
def a_vacuum_start_removes_a_file(project: ForgedProject) -> None:
    project.log[2].append({"remove": {"path": NEW, "dataChange": False}})


@forgery("partition_folders_agree", "lies in day=1")
def a_file_lies_in_another_partition(project: ForgedProject) -> None:
    add = project.action(1, "add")
    add["path"], add["partitionValues"] = f"day=1/{NEW}", {"day": "2"}
    project.files = {f"{TABLE}/day=1/{NEW}": add["size"]}


@forgery("stamps_are_single", "versions 1 and 4 carry the same stamp")
def a_rewrite_landed_twice(project: ForgedProject) -> None:
    project.log[4] = [{"commitInfo": project.action(1, "commitInfo")}]


@forgery("deleted_files_are_gone", "1 of 2 planned are gone")
def a_deleted_file_is_there(project: ForgedProject) -> None:
    project.files[f"{TABLE}/{OLD[0]}"] = OLD_BYTES


@forgery("deleted_files_are_gone", "and left")
def a_deleted_file_leaves_its_checksum(project: ForgedProject) -> None:
    project.files[f"{TABLE}/.{OLD[0]}.crc"] = 8


@forgery("vacuum_commits_agree", "VACUUM END says 49 files")
def a_vacuum_end_says_another_number(project: ForgedProject) -> None:
    project.action(3, "commitInfo")["operationMetrics"]["numDeletedFiles"] = "49"


@forgery("vacuum_commits_agree", "is COMPLETED, but 1 files remain")
def an_incomplete_vacuum_is_completed(project: ForgedProject) -> None:
    project.step(VACUUMED)["vacuum"].update(remaining=[OLD[0]], num_files_deleted=1)


@forgery("trash_holds_what_was_moved", "holds 0")
def the_trash_is_empty(project: ForgedProject) -> None:
    project.step(VACUUMED)["vacuum"]["trash"] = f"file:{project.root}/.maintainer-trash/orders"


@forgery("promised_versions_are_whole", "every version from 0 on is whole; 0 needs")
def a_promised_version_is_not_whole(project: ForgedProject) -> None:
    project.step(VACUUMED)["vacuum"]["oldest_version"] = 0


@forgery("deletions_spare_live_files", "which is live")
def a_deleted_file_is_live(project: ForgedProject) -> None:
    project.log[4] = [{"add": {**project.action(0, "add"), "path": f"{project.root}/{TABLE}/{OLD[0]}"}}]


@forgery("interrupted_deletions_are_told", "when 2 of its files were gone; no row of the ledger tells it")
def a_killed_vacuum_has_no_row(project: ForgedProject) -> None:
    del project.vacuumed.events[2:], project.log[3]
    project.vacuumed.results = None
    later = {**project.rows.pop(1), "run_id": "20261122T000000Z-cccc", "version_after": None}
    project.rows.append(later)


@forgery("nothing_temporary_stays", ".results.json.0a0b.tmp is left")
def a_temporary_file_stays(project: ForgedProject) -> None:
    project.files[f".maintainer/runs/{COMPACTED}/.results.json.0a0b.tmp"] = 1


@forgery("no_unknown_files", "no record names it")
def a_failed_rewrite_leaves_a_file(project: ForgedProject) -> None:
    project.files[f"{TABLE}/part-9.parquet"] = 1


@forgery("no_checksum_alone", "lies there without its file")
def a_failed_rewrite_leaves_a_checksum(project: ForgedProject) -> None:
    project.files[f"{TABLE}/.part-9.parquet.crc"] = 1
