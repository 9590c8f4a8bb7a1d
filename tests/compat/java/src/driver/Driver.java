package driver;

import com.alibaba.fastjson.JSONObject;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.MQVersion;

/**
 * A RocketMQ client that does what it reads. Each line of standard input is a command, {@code {"id": 1,
 * "command": "producer.send", "args": {...}}}, and gets one line of answer with its id: {@code {"id": 1,
 * "ok": true, ...}} or {@code {"id": 1, "ok": false, "error": ..., "code": ..., "message": ...}}. Lines with
 * {@code "event"} come in between, whenever something happens. Commands run beside each other. The end of
 * the input is the end of the process.
 */
public final class Driver {
    private final Output output;
    private final Map<String, Command> commands = new HashMap<>();
    private final ExecutorService workers = Executors.newCachedThreadPool();
    private final Handles<DefaultMQProducer> producers = new Handles<>("producer");
    private final Handles<DefaultMQPushConsumer> consumers = new Handles<>("consumer");
    private final Handles<DefaultMQPullConsumer> pulls = new Handles<>("pull");
    private final Handles<DefaultLitePullConsumer> lites = new Handles<>("lite");

    private Driver(Output output) {
        this.output = output;
        new Producers(producers, output).register(commands);
        new Consumers(consumers, producers, output).register(commands);
        new Pulls(pulls).register(commands);
        new LitePulls(lites).register(commands);
        new Queries(producers, pulls).register(commands);
        new Benches(producers).register(commands);
        commands.put("stopAll", this::stopAll);
    }

    public static void main(String[] args) throws IOException {
        Output output = Output.takeStandardOutput();
        Driver driver = new Driver(output);
        output.event("ready", Json.map("version", MQVersion.getVersionDesc(MQVersion.CURRENT_VERSION)));
        driver.readCommands();
        Runtime.getRuntime().halt(0);
    }

    private void readCommands() throws IOException {
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JSONObject request = Json.read(line);
            workers.execute(() -> answer(request));
        }
    }

    private void answer(JSONObject request) {
        Map<String, Object> answer = Json.map("id", request.get("id"), "ok", true);
        try {
            answer.putAll(run(request));
        } catch (Throwable failed) {
            failed.printStackTrace();
            answer.putAll(Failures.show(failed));
        }
        output.write(answer);
    }

    private Map<String, Object> run(JSONObject request) throws Exception {
        Command command = commands.get(request.getString("command"));
        if (command == null) {
            throw new IllegalArgumentException("no such command: " + request.getString("command"));
        }
        return command.run(new Arguments(request.getJSONObject("args")));
    }

    /** Shuts every client down in order: consumers first, so that they commit what they have. */
    private Map<String, Object> stopAll(Arguments args) {
        consumers.removeAll().forEach(DefaultMQPushConsumer::shutdown);
        lites.removeAll().forEach(DefaultLitePullConsumer::shutdown);
        pulls.removeAll().forEach(DefaultMQPullConsumer::shutdown);
        producers.removeAll().forEach(DefaultMQProducer::shutdown);
        return Json.map();
    }
}
