package driver;

import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONObject;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/** RocketMQ's Java client of gRPC, driven by the tests. */
public final class Driver {
    private Driver() {
    }

    public static void main(String[] args) throws IOException {
        Map<Integer, Task> tasks = new HashMap<>();
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JSONObject words = JSON.parseObject(line);
            if (words.containsKey("end")) {
                tasks.get(words.getInteger("end")).end();
                continue;
            }
            Task task = new Task(words);
            tasks.put(words.getInteger("id"), task);
            new Thread(task::run).start();
        }
        Runtime.getRuntime().halt(0);
    }
}
