package maintainer;

import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;

import io.delta.storage.internal.PathLock;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.delta.storage.DelegatingLogStore;
import org.apache.spark.sql.delta.storage.LogStore;
import org.apache.spark.sql.delta.storage.LogStoreAdaptor;

/**
 * Delta's log store for S3, with commits that fail when the version exists already.
 *
 * Delta's own looks whether the version exists and then writes over it: of two drivers that do so at once, one loses its
 * commit. Here the store itself decides: a PUT with `If-None-Match: *`, which S3 has since 2024 and other engines use.
 *
 * Compiled when it is first needed, by the compiler that Spark brings along (Janino: no lambdas, no diamonds).
 */
public class ConditionalLogStore extends io.delta.storage.S3SingleDriverLogStore {

    /** What guard() says where the store cannot be asked for such a PUT, and where it takes no notice of it. */
    private static final String NO_CONDITIONAL_PUT = "no conditional writes";
    private static final String IGNORES_CONDITION = "ignores the condition";

    private static final String IF_ABSENT = "fs.option.create.conditional.overwrite";

    /** Delta's own store that looks and then writes, by the names that logStoreName() gives. */
    private static final List OVERWRITING = Arrays.asList(new String[] {
        "io.delta.storage.S3SingleDriverLogStore",
        "org.apache.spark.sql.delta.storage.S3SingleDriverLogStore"
    });

    /** Endpoints and buckets that were tried in this process: whether they keep the condition. */
    private static final Map HONEST = new ConcurrentHashMap();

    /** The store gave no answer, or none that says what it did: the object may be there now, or come to be there. */
    public static class UnansweredCommit extends IOException {
        UnansweredCommit(Path path, IOException cause) {
            super("no answer that says whether " + path.getName() + " was written", cause);
        }
    }

    public ConditionalLogStore(Configuration hadoopConf) {
        super(hadoopConf);
    }

    public void write(Path path, Iterator actions, Boolean overwrite, Configuration hadoopConf) throws IOException {
        FileSystem fileSystem = path.getFileSystem(hadoopConf);
        if (overwrite.booleanValue()) {
            super.write(path, actions, overwrite, hadoopConf);
            return;
        }
        // Delta's own holds this lock while it looks and writes. Without it, a commit of the session's own that looked
        // before ours was there would be written over it.
        PathLock lock = lockOfDelta();
        Path locked = fileSystem.makeQualified(path);
        try {
            lock.acquire(locked);
        } catch (InterruptedException interrupted) {
            throw new InterruptedIOException(interrupted.getMessage());
        }
        try {
            createIfAbsent(fileSystem, path, actions);
        } finally {
            lock.release(locked);
        }
    }

    private static PathLock lockOfDelta() throws IOException {
        try {
            Field lock = io.delta.storage.S3SingleDriverLogStore.class.getDeclaredField("pathLock");
            lock.setAccessible(true);
            return (PathLock) lock.get(null);
        } catch (ReflectiveOperationException error) {
            throw new IOException(error);
        }
    }

    /**
     * Have a log store of Delta's commit through this one from now on, where it would look and then write.
     *
     * Returns the name of the class that writes commits then, or why it cannot and nothing is changed.
     */
    public String guard(LogStore store, Path logPath, Configuration hadoopConf) throws Exception {
        if (!(store instanceof DelegatingLogStore)) {
            return logStoreName(store);
        }
        synchronized (store) {
            LogStore current = ((DelegatingLogStore) store).getDelegate(logPath);
            if (!OVERWRITING.contains(logStoreName(current))) {
                return logStoreName(current);
            }
            FileSystem fileSystem = logPath.getFileSystem(hadoopConf);
            if (!fileSystem.hasPathCapability(logPath, IF_ABSENT)) {
                return NO_CONDITIONAL_PUT;
            }
            if (!keepsCondition(fileSystem, logPath)) {
                return IGNORES_CONDITION;
            }
            storesOf(store).update(schemeOf(logPath), new LogStoreAdaptor(this));
            return logStoreName(((DelegatingLogStore) store).getDelegate(logPath));
        }
    }

    /** Have the log store commit through Delta's own again: it makes that anew when it is next asked for it. */
    public void release(LogStore store, Path logPath) throws Exception {
        synchronized (store) {
            storesOf(store).remove(schemeOf(logPath));
        }
    }

    private static scala.collection.mutable.Map storesOf(LogStore store) throws Exception {
        Field stores = DelegatingLogStore.class.getDeclaredField("schemeToLogStoreMap");
        stores.setAccessible(true);
        return (scala.collection.mutable.Map) stores.get(store);
    }

    private static String schemeOf(Path logPath) {
        return logPath.toUri().getScheme().toLowerCase(Locale.ROOT);
    }

    private static String logStoreName(LogStore store) {
        if (store instanceof LogStoreAdaptor) {
            return ((LogStoreAdaptor) store).logStoreImpl().getClass().getName();
        }
        return store.getClass().getName();
    }

    /** Whether a bucket keeps the condition: an object is created twice, and the second time must be refused. */
    private static synchronized boolean keepsCondition(FileSystem fileSystem, Path logPath) throws IOException {
        String bucket = fileSystem.getConf().get("fs.s3a.endpoint", "") + " " + fileSystem.getUri();
        Object known = HONEST.get(bucket);
        if (known != null) {
            return ((Boolean) known).booleanValue();
        }
        // Its name stands before every version, so no reader of the log lists it.
        Path probe = new Path(logPath, ".maintainer-probe-" + UUID.randomUUID());
        boolean keeps = false;
        try {
            createIfAbsent(fileSystem, probe, Collections.singletonList("first").iterator());
            try {
                createIfAbsent(fileSystem, probe, Collections.singletonList("second").iterator());
            } catch (FileAlreadyExistsException refused) {
                keeps = true;
            }
        } finally {
            fileSystem.delete(probe, false);
        }
        HONEST.put(bucket, Boolean.valueOf(keeps));
        return keeps;
    }

    /** Create an object of these lines; never over another one. */
    private static void createIfAbsent(FileSystem fileSystem, Path path, Iterator lines) throws IOException {
        MessageDigest written = sha256();
        FSDataOutputStreamBuilder builder = fileSystem.createFile(path);
        builder.overwrite(true);
        builder.recursive();
        builder.must(IF_ABSENT, true);
        FSDataOutputStream stream = (FSDataOutputStream) builder.build();
        boolean whole = false;
        try {
            while (lines.hasNext()) {
                byte[] line = (lines.next() + "\n").getBytes(StandardCharsets.UTF_8);
                written.update(line);
                stream.write(line);
            }
            whole = true;
        } finally {
            if (!whole) {
                // What is closed is put there: a part of a commit must not be.
                stream.abort();
            }
        }
        try {
            stream.close();
        } catch (IOException failure) {
            // Hadoop tries again by itself and tells of its last try: an earlier one may have reached the store.
            if (!isRefusal(failure)) {
                throw new UnansweredCommit(path, failure);
            }
            byte[] present;
            try {
                present = digestOf(fileSystem, path);
            } catch (IOException unread) {
                throw new UnansweredCommit(path, unread);
            }
            // Asked again after a lost answer, the store refuses what it has from us already.
            if (MessageDigest.isEqual(written.digest(), present)) {
                return;
            }
            FileAlreadyExistsException exists = new FileAlreadyExistsException(path.toString());
            exists.initCause(failure);
            throw exists;
        }
    }

    /** 412: there is such an object. 409: another PUT of it was under way, and was done first. */
    private static boolean isRefusal(Throwable error) {
        for (Throwable cause = error; cause != null; cause = cause.getCause()) {
            String text = String.valueOf(cause.getMessage());
            if (text.indexOf("Status Code: 412") >= 0 || text.indexOf("Status Code: 409") >= 0) {
                return true;
            }
        }
        return false;
    }

    private static byte[] digestOf(FileSystem fileSystem, Path path) throws IOException {
        MessageDigest digest = sha256();
        InputStream stream = fileSystem.open(path);
        try {
            byte[] buffer = new byte[1 << 16];
            for (int read = stream.read(buffer); read >= 0; read = stream.read(buffer)) {
                digest.update(buffer, 0, read);
            }
        } finally {
            stream.close();
        }
        return digest.digest();
    }

    private static MessageDigest sha256() throws IOException {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (java.security.NoSuchAlgorithmException error) {
            throw new IOException(error);
        }
    }
}
