import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONObject;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.acl.plain.PlainAccessValidator;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/**
 * Asks RocketMQ 4.x's access control about requests: a line of JSON each, with the folder of its
 * configuration; a line of JSON each says whether it lets the request pass, and its words if not.
 */
public class Judge {
    public static void main(String[] args) throws Exception {
        Map<String, PlainAccessValidator> validators = new HashMap<>();
        Map<String, String> broken = new HashMap<>();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JSONObject asked = JSON.parseObject(line);
            String home = asked.getString("home");
            if (!validators.containsKey(home) && !broken.containsKey(home)) {
                System.setProperty("rocketmq.home.dir", home);
                try {
                    validators.put(home, new PlainAccessValidator());
                } catch (Throwable error) {
                    broken.put(home, String.valueOf(error.getMessage()));
                }
            }
            JSONObject answer = new JSONObject();
            if (broken.containsKey(home)) {
                answer.put("broken", broken.get(home));
            } else {
                String refusal = refusal(validators.get(home), asked);
                answer.put("allowed", refusal == null);
                answer.put("words", refusal);
            }
            System.out.println(answer.toJSONString());
        }
        System.exit(0);
    }

    private static String refusal(PlainAccessValidator validator, JSONObject asked) {
        RemotingCommand request = RemotingCommand.createRequestCommand(asked.getIntValue("code"), null);
        HashMap<String, String> fields = new HashMap<>();
        for (Map.Entry<String, Object> each : asked.getJSONObject("fields").entrySet()) {
            fields.put(each.getKey(), String.valueOf(each.getValue()));
        }
        request.setExtFields(fields);
        if (asked.getString("body") != null) {
            request.setBody(asked.getString("body").getBytes());
        }
        if (asked.getString("key") != null) {
            SessionCredentials keys = new SessionCredentials(asked.getString("key"), asked.getString("secret"));
            new AclClientRPCHook(keys).doBeforeRequest(asked.getString("from"), request);
        }
        try {
            validator.validate(validator.parse(request, asked.getString("from") + ":1234"));
            return null;
        } catch (Throwable error) {
            return String.valueOf(error.getMessage());
        }
    }
}
