package driver;

import com.alibaba.fastjson.JSONObject;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.regex.Pattern;
import org.apache.rocketmq.common.MixAll;

/** Runs another program's main method, so that no process outlives its purpose. */
public final class Launch {
    private static final int HURRY_MS = 100;

    private Launch() {
    }

    /**
     * {@code tied MAIN ARGS...}: a server that ends when the owner of its standard input ends.
     * {@code many MAIN}: a tool that is run once for each line of standard input, {@code {"args": [...]}},
     * and answered with what it printed, {@code {"printed": ...}}. With {@code "until"}, a regular
     * expression, it is interrupted once it has printed that.
     */
    public static void main(String[] args) throws Exception {
        Method main = Class.forName(args[1]).getMethod("main", String[].class);
        if (args[0].equals("tied")) {
            start("standard-input", Launch::haltAtEndOfInput);
            main.invoke(null, (Object) Arrays.copyOfRange(args, 2, args.length));
        } else {
            runMany(main);
        }
    }

    private static void runMany(Method main) throws IOException {
        Output output = Output.takeStandardOutput();
        start("hurry", Launch::hurry);
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JSONObject asked = Json.read(line);
            String[] args = asked.getJSONArray("args").toArray(new String[0]);
            output.write(Json.map("printed", run(main, args, asked.getString("until"))));
        }
        Runtime.getRuntime().halt(0);
    }

    /** A client that shuts down waits up to three seconds for this thread, which waits for events. */
    private static void hurry() {
        while (true) {
            for (Thread thread : Thread.getAllStackTraces().keySet()) {
                if (thread.getName().startsWith("NettyEventExecutor")) {
                    thread.interrupt();
                }
            }
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(HURRY_MS));
        }
    }

    private static void start(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        thread.start();
    }

    /** The tool keeps its commands, and some of them the client that they have already shut down. */
    private static void forgetCommands(Class<?> tool) throws ReflectiveOperationException {
        for (Field field : tool.getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) && List.class.isAssignableFrom(field.getType())) {
                field.setAccessible(true);
                ((List<?>) field.get(null)).clear();
            }
        }
    }

    /** All that one run prints, stack traces included; it leaves no name server to the next one. */
    private static String run(Method main, String[] args, String until) {
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        PrintStream out = System.out;
        PrintStream err = System.err;
        PrintStream capture = new PrintStream(printed, true, StandardCharsets.UTF_8);
        System.setOut(capture);
        System.setErr(capture);
        Thread running = Thread.currentThread();
        if (until != null) {
            Pattern pattern = Pattern.compile(until);
            start("until", () -> interruptOnce(running, printed, pattern));
        }
        try {
            forgetCommands(main.getDeclaringClass());
            main.invoke(null, (Object) args);
        } catch (ReflectiveOperationException failed) {
            failed.printStackTrace();
        } finally {
            System.setOut(out);
            System.setErr(err);
            System.clearProperty(MixAll.NAMESRV_ADDR_PROPERTY);
        }
        return printed.toString(StandardCharsets.UTF_8);
    }

    private static void interruptOnce(Thread running, ByteArrayOutputStream printed, Pattern until) {
        while (!until.matcher(printed.toString(StandardCharsets.UTF_8)).find()) {
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(HURRY_MS));
        }
        running.interrupt();
    }

    private static void haltAtEndOfInput() {
        try {
            while (System.in.read() >= 0) {
                continue;
            }
        } catch (IOException broken) {
            System.err.println("standard input is gone: " + broken);
        }
        Runtime.getRuntime().halt(1);
    }
}
