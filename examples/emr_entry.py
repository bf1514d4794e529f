"""What spark-submit starts on EMR: the command line of maintainer in the Spark session of the job."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from maintainer.cli.main import run

SparkSession.builder.getOrCreate()
sys.exit(run(sys.argv[1:]))
