import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Scanner;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.Collectors;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.codehaus.janino.SimpleCompiler;

/**
 * Writes commits by the log store for S3 without a Spark session: `PATH CONTENT` in, one line of what came of it out.
 *
 * Several contents are written at the same moment, each by a thread; what came of each stands in the line.
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
        ExecutorService writers = Executors.newCachedThreadPool();
        while (questions.hasNextLine()) {
            String[] question = questions.nextLine().split(" ");
            List<String> contents = Arrays.asList(question).subList(1, question.length);
            CyclicBarrier together = new CyclicBarrier(contents.size());
            List<Callable<String>> writes = contents.stream().map(content -> (Callable<String>) () -> {
                together.await();
                try {
                    Iterator<String> lines = Arrays.asList(content).iterator();
                    write.invoke(logStore, new Path(question[0]), lines, Boolean.FALSE, conf);
                    return "written";
                } catch (InvocationTargetException error) {
                    return error.getCause().getClass().getSimpleName();
                }
            }).collect(Collectors.toList());
            StringBuilder answers = new StringBuilder();
            for (var answer : writers.invokeAll(writes)) {
                answers.append(answers.length() == 0 ? "" : " ").append(answer.get());
            }
            System.out.println(answers);
            System.out.flush();
        }
        writers.shutdown();
    }
}
