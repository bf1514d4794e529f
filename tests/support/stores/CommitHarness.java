import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.Iterator;
import java.util.Scanner;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.codehaus.janino.SimpleCompiler;

/**
 * Writes commits by the log store for S3 without a Spark session: `PATH CONTENT` in, one line of what came of it out.
 *
 * Its source is compiled as in Spark, by Janino. Arguments: the source file, then settings of Hadoop, `key=value`.
 */
public class CommitHarness {
    public static void main(String[] arguments) throws Exception {
        SimpleCompiler compiler = new SimpleCompiler();
        compiler.setParentClassLoader(CommitHarness.class.getClassLoader());
        compiler.cook(Files.readString(java.nio.file.Path.of(arguments[0])));
        Class<?> store = compiler.getClassLoader().loadClass("maintainer.ConditionalLogStore");
        Configuration conf = new Configuration();
        for (String argument : Arrays.asList(arguments).subList(1, arguments.length)) {
            String[] pair = argument.split("=", 2);
            conf.set(pair[0], pair[1]);
        }
        Object logStore = store.getConstructor(Configuration.class).newInstance(conf);
        Method write = store.getMethod("write", Path.class, Iterator.class, Boolean.class, Configuration.class);
        Scanner questions = new Scanner(System.in);
        while (questions.hasNextLine()) {
            String[] question = questions.nextLine().split(" ", 2);
            String answer = "written";
            try {
                Iterator<String> lines = Arrays.asList(question[1]).iterator();
                write.invoke(logStore, new Path(question[0]), lines, Boolean.FALSE, conf);
            } catch (InvocationTargetException error) {
                answer = error.getCause().getClass().getSimpleName();
            }
            System.out.println(answer);
            System.out.flush();
        }
    }
}
