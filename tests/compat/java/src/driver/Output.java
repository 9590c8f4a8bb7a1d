package driver;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** The one place that writes to standard output: whole JSON lines only. */
final class Output {
    private final PrintStream lines;

    private Output(PrintStream lines) {
        this.lines = lines;
    }

    /** Takes standard output for itself; whatever else is printed goes to the error stream. */
    static Output takeStandardOutput() {
        PrintStream lines =
            new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        return new Output(lines);
    }

    /** Something that happened without being asked for. */
    void event(String kind, Map<String, Object> fields) {
        Map<String, Object> event = Json.map("event", kind, "at", System.currentTimeMillis());
        event.putAll(fields);
        write(event);
    }

    void write(Map<String, Object> value) {
        byte[] line = (Json.write(value) + "\n").getBytes(StandardCharsets.UTF_8);
        synchronized (lines) {
            lines.write(line, 0, line.length);
            lines.flush();
        }
    }
}
