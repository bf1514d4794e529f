"""Ask Spark how far the running jobs of a job group are, by its status tracker."""

from __future__ import annotations

from maintainer.delta.jvm.gateway import Gateway


class TaskCalls(Gateway):
    """Reads of Spark's status tracker, which knows the newest thousand jobs."""

    def tasks_of(self, group: str) -> tuple[int, int]:
        """Count the tasks of the stages of a job group's active jobs: done, and all. (0, 0) where none is active."""
        tracker = self.spark.sparkContext.statusTracker()
        active = tracker.getActiveJobsIds()
        if not active:
            return 0, 0
        # As a string: each element of a Java array would be a call of its own.
        known = self._jvm.java.util.Arrays.toString(tracker._jtracker.getJobIdsForGroup(group))
        of_group = {int(number) for number in known.strip("[]").split(",") if number.strip()}
        done = total = 0
        for job_id in of_group.intersection(active):
            job = tracker.getJobInfo(job_id)
            for stage_id in job.stageIds if job is not None else ():
                stage = tracker.getStageInfo(stage_id)
                if stage is not None:
                    done += stage.numCompletedTasks
                    total += stage.numTasks
        return done, total
