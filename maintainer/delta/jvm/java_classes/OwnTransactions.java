package maintainer;

import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.Snapshot;
import scala.Option;

/**
 * Starts Delta's transactions, of which a due checkpoint can be left to us.
 *
 * Delta asks whether a checkpoint is due not only to write it: if it is, the statistics of the commit get the number of
 * all files, for which Delta builds the table's state. That Spark job costs more than the rest of a small rewrite.
 *
 * Compiled when it is first needed, as the log stores are.
 */
public class OwnTransactions {

    public static class OwnTransaction extends OptimisticTransaction {

        private boolean leavesCheckpoint = false;

        OwnTransaction(DeltaLog log, Option snapshot) {
            super(log, Option.empty(), snapshot);
        }

        /** From now on no checkpoint is due for Delta: the caller writes it. */
        public void leaveCheckpoint() {
            leavesCheckpoint = true;
        }

        /** So Delta 4.1 and later ask; 4.0 does not, and builds the state. */
        public boolean isCheckpointNeeded(long version, Snapshot snapshot) {
            return !leavesCheckpoint && version != 0
                && version % deltaLog().checkpointInterval(snapshot.metadata()) == 0;
        }
    }

    public OptimisticTransaction start(DeltaLog log, Option snapshot) {
        return new OwnTransaction(log, snapshot);
    }
}
