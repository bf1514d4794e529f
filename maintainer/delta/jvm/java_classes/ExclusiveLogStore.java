package maintainer;

import java.io.BufferedOutputStream;
import java.io.File;
import java.io.FileNotFoundException;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.spark.sql.delta.storage.DelegatingLogStore;
import org.apache.spark.sql.delta.storage.LogStore;
import org.apache.spark.sql.delta.storage.LogStoreAdaptor;

/**
 * Delta's log store for disks, with commits that fail when the version exists already.
 *
 * Delta's own looks whether the version exists and then renames over it, which loses the commit of another process
 * that comes between the two. Here a commit is written whole beside its place and then linked to it: link(2) fails
 * when the name exists, on NFS as well, and it is what other engines do.
 *
 * Compiled when it is first needed, by the compiler that Spark brings along (Janino: no lambdas, no diamonds).
 */
public class ExclusiveLogStore extends io.delta.storage.HDFSLogStore {

    /** What guard() says where links cannot be made. */
    private static final String NO_HARD_LINKS = "no hard links";

    /** Delta's own stores that look and then rename, by the names that logStoreName() gives. */
    private static final List RENAMING = Arrays.asList(new String[] {
        "io.delta.storage.HDFSLogStore",
        "io.delta.storage.LocalLogStore",
        "org.apache.spark.sql.delta.storage.HDFSLogStore",
        "org.apache.spark.sql.delta.storage.LocalLogStore"
    });

    /** Devices on which a link was made. */
    private static final Set LINKING_DEVICES = ConcurrentHashMap.newKeySet();

    public ExclusiveLogStore(Configuration hadoopConf) {
        super(hadoopConf);
    }

    public void write(Path path, Iterator actions, Boolean overwrite, Configuration hadoopConf) throws IOException {
        FileSystem fileSystem = path.getFileSystem(hadoopConf);
        boolean local = fileSystem instanceof LocalFileSystem || fileSystem instanceof RawLocalFileSystem;
        if (overwrite.booleanValue() || !local) {
            super.write(path, actions, overwrite, hadoopConf);
            return;
        }
        File target = fileOf(path);
        if (target.exists()) {
            throw new FileAlreadyExistsException(path.toString());
        }
        File folder = target.getParentFile();
        if (!folder.isDirectory()) {
            throw new FileNotFoundException("No such file or directory: " + folder);
        }
        File whole = new File(folder, "." + target.getName() + "." + UUID.randomUUID() + ".tmp");
        try {
            writeLines(whole, actions);
            // Left by an earlier file of this name, Hadoop would hold its sum against ours.
            Files.deleteIfExists(new File(folder, "." + target.getName() + ".crc").toPath());
            link(whole, target, path);
        } finally {
            Files.deleteIfExists(whole.toPath());
        }
    }

    /**
     * Have a log store of Delta's commit through this one from now on, where it would look and then rename.
     *
     * Returns the name of the class that writes commits then, or "no hard links" and nothing is changed.
     */
    public String guard(LogStore store, Path logPath, Configuration hadoopConf) throws Exception {
        if (!(store instanceof DelegatingLogStore)) {
            return logStoreName(store);
        }
        synchronized (store) {
            LogStore current = ((DelegatingLogStore) store).getDelegate(logPath);
            if (!RENAMING.contains(logStoreName(current))) {
                return logStoreName(current);
            }
            if (!linksWork(fileOf(logPath))) {
                return NO_HARD_LINKS;
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

    private static File fileOf(Path path) {
        return new File(path.toUri().getPath());
    }

    private static void writeLines(File file, Iterator lines) throws IOException {
        FileOutputStream stream = new FileOutputStream(file);
        try {
            OutputStream buffered = new BufferedOutputStream(stream, 1 << 16);
            while (lines.hasNext()) {
                buffered.write((lines.next() + "\n").getBytes(StandardCharsets.UTF_8));
            }
            buffered.flush();
            // Without it, a version may be there and empty after a power cut.
            stream.getFD().sync();
        } finally {
            stream.close();
        }
    }

    private static void link(File whole, File target, Path path) throws IOException {
        try {
            Files.createLink(target.toPath(), whole.toPath());
        } catch (IOException error) {
            // A server of NFS may have made the link, and its answer got lost: then the second try says it exists.
            if (target.exists() && Files.isSameFile(target.toPath(), whole.toPath())) {
                return;
            }
            if (target.exists()) {
                throw new FileAlreadyExistsException(path.toString());
            }
            throw error;
        } catch (UnsupportedOperationException error) {
            throw new IOException("this file system has no hard links: " + target, error);
        }
    }

    /** Whether links can be made in a folder, or where it will be made; any other trouble is the commit's own. */
    private static boolean linksWork(File logFolder) throws IOException {
        File folder = logFolder;
        while (folder != null && !folder.isDirectory()) {
            folder = folder.getParentFile();
        }
        if (folder == null) {
            return true;
        }
        String device = deviceOf(folder);
        if (LINKING_DEVICES.contains(device)) {
            return true;
        }
        String name = ".links." + UUID.randomUUID();
        File first = new File(folder, name + ".tmp");
        File second = new File(folder, name + ".second.tmp");
        try {
            if (!first.createNewFile()) {
                return true;
            }
        } catch (IOException error) {
            return true;
        }
        try {
            Files.createLink(second.toPath(), first.toPath());
        } catch (AccessDeniedException error) {
            return true;
        } catch (FileSystemException error) {
            return false;
        } catch (UnsupportedOperationException error) {
            return false;
        } finally {
            Files.deleteIfExists(second.toPath());
            Files.deleteIfExists(first.toPath());
        }
        LINKING_DEVICES.add(device);
        return true;
    }

    private static String deviceOf(File folder) {
        try {
            return String.valueOf(Files.getAttribute(folder.toPath(), "unix:dev"));
        } catch (Exception error) {
            return folder.toString();
        }
    }
}
