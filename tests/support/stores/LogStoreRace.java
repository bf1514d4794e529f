import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

import io.delta.storage.LogStore;

/**
 * Several writers commit one version at once, again and again, through one of Delta's log stores.
 *
 * <p>Arguments: the class of the store, a folder as a URI, the number of rounds, and settings of Hadoop as KEY=VALUE.
 * Each round prints a line: how many wrote, how many were told that the version exists, and other errors.
 */
public final class LogStoreRace {
    private static final int WRITERS = 4;

    public static void main(String[] arguments) throws Exception {
        Configuration conf = new Configuration();
        for (int number = 3; number < arguments.length; number++) {
            String[] setting = arguments[number].split("=", 2);
            conf.set(setting[0], setting[1]);
        }
        LogStore store =
            (LogStore) Class.forName(arguments[0]).getConstructor(Configuration.class).newInstance(conf);
        ExecutorService writers = Executors.newFixedThreadPool(WRITERS);
        Path log = new Path(URI.create(arguments[1]));
        log.getFileSystem(conf).mkdirs(log);
        for (int round = 0; round < Integer.parseInt(arguments[2]); round++) {
            Path version = new Path(log, String.format("%020d.json", round));
            CyclicBarrier together = new CyclicBarrier(WRITERS);
            List<Future<String>> ends = new ArrayList<>();
            for (int writer = 0; writer < WRITERS; writer++) {
                String line = "{\"writer\": " + writer + "}";
                Callable<String> commit = () -> {
                    together.await();
                    return committed(store, version, line, conf);
                };
                ends.add(writers.submit(commit));
            }
            int wrote = 0;
            int exists = 0;
            StringBuilder others = new StringBuilder();
            for (Future<String> end : ends) {
                String told = end.get();
                wrote += told.equals("wrote") ? 1 : 0;
                exists += told.equals("exists") ? 1 : 0;
                others.append(told.equals("wrote") || told.equals("exists") ? "" : " " + told);
            }
            System.out.println("round " + wrote + " " + exists + others);
        }
        writers.shutdown();
        System.exit(0);
    }

    private static String committed(LogStore store, Path version, String line, Configuration conf) {
        try {
            store.write(version, List.of(line).iterator(), false, conf);
            return "wrote";
        } catch (java.nio.file.FileAlreadyExistsException exists) {
            return "exists";
        } catch (IOException | RuntimeException other) {
            return other.getClass().getName() + ": " + String.valueOf(other.getMessage()).split("\n")[0];
        }
    }
}
