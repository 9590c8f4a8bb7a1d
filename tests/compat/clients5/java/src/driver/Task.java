package driver;

import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collections;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientException;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.FilterExpressionType;
import org.apache.rocketmq.client.apis.consumer.LitePushConsumer;
import org.apache.rocketmq.client.apis.consumer.PushConsumer;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.Message;
import org.apache.rocketmq.client.apis.message.MessageBuilder;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;
import org.apache.rocketmq.client.apis.producer.ProducerBuilder;
import org.apache.rocketmq.client.apis.producer.SendReceipt;
import org.apache.rocketmq.client.apis.producer.Transaction;
import org.apache.rocketmq.client.apis.producer.TransactionChecker;
import org.apache.rocketmq.client.apis.producer.TransactionResolution;

/** One task; ../../../README.md says by what words. */
final class Task {
    private static final ClientServiceProvider PROVIDER = ClientServiceProvider.loadService();

    private final JSONObject words;
    private final String topic;
    private final CountDownLatch ended = new CountDownLatch(1);

    Task(JSONObject words) {
        this.words = words;
        this.topic = words.getString("topic");
    }

    void end() {
        ended.countDown();
    }

    void run() {
        try {
            switch (words.getString("do")) {
                case "send": send(); break;
                case "transact": transact(); break;
                case "receive": receive(); break;
                case "consume": consume(); break;
                default: throw new IllegalArgumentException(words.getString("do"));
            }
            tell(new JSONObject().fluentPut("done", true));
        } catch (Exception error) {
            fail("failed", error);
        }
    }

    private void tell(JSONObject seen) {
        String line = seen.fluentPut("id", words.getIntValue("id")).toJSONString();
        synchronized (System.out) {
            System.out.println(line);
        }
    }

    /** What went wrong, with RocketMQ's code where the exception has one. */
    private void fail(String what, Throwable error) {
        JSONObject seen = new JSONObject().fluentPut(what, String.valueOf(error));
        for (Throwable each = error; each != null; each = each.getCause()) {
            try {
                Method code = each.getClass().getMethod("getResponseCode");
                seen.put("code", code.invoke(each));
            } catch (ReflectiveOperationException none) {
                continue;
            }
        }
        tell(seen);
    }

    private ClientConfiguration configuration() {
        return ClientConfiguration.newBuilder().setEndpoints(words.getString("endpoint"))
            .setRequestTimeout(Duration.ofSeconds(30))
            .enableSsl(words.getBooleanValue("tls")).build();
    }

    private Map<String, FilterExpression> subscriptions() {
        String expression = Optional.ofNullable(words.getString("expression")).orElse("*");
        FilterExpressionType type =
            words.getBooleanValue("isSql") ? FilterExpressionType.SQL92 : FilterExpressionType.TAG;
        return Collections.singletonMap(topic, new FilterExpression(expression, type));
    }

    private Message made(JSONObject told) {
        MessageBuilder made = PROVIDER.newMessageBuilder().setTopic(topic)
            .setBody(told.getString("body").getBytes(StandardCharsets.UTF_8));
        if (told.containsKey("tag")) {
            made.setTag(told.getString("tag"));
        }
        if (told.containsKey("keys")) {
            made.setKeys(told.getJSONArray("keys").toArray(new String[0]));
        }
        if (told.containsKey("properties")) {
            told.getJSONObject("properties").forEach((k, v) -> made.addProperty(k, (String) v));
        }
        if (told.containsKey("group")) {
            made.setMessageGroup(told.getString("group"));
        }
        if (told.containsKey("delayMs")) {
            made.setDeliveryTimestamp(System.currentTimeMillis() + told.getLongValue("delayMs"));
        }
        if (told.containsKey("priority")) {
            made.setPriority(told.getIntValue("priority"));
        }
        if (told.containsKey("lite")) {
            made.setLiteTopic(told.getString("lite"));
        }
        return made.build();
    }

    private static String body(MessageView message) {
        return StandardCharsets.UTF_8.decode(message.getBody()).toString();
    }

    private void show(MessageView message, String how, boolean value) {
        tell(new JSONObject().fluentPut("body", body(message))
            .fluentPut("messageId", message.getMessageId().toString())
            .fluentPut("tag", message.getTag().orElse(null))
            .fluentPut("keys", message.getKeys())
            .fluentPut("properties", message.getProperties())
            .fluentPut("group", message.getMessageGroup().orElse(null))
            .fluentPut("attempt", message.getDeliveryAttempt())
            .fluentPut("lite", message.getLiteTopic().orElse(null))
            .fluentPut(how, value));
    }

    private Producer producer(TransactionChecker checker) throws ClientException {
        ProducerBuilder builder =
            PROVIDER.newProducerBuilder().setClientConfiguration(configuration()).setTopics(topic);
        return checker == null ? builder.build() : builder.setTransactionChecker(checker).build();
    }

    private void send() throws Exception {
        try (Producer producer = producer(null)) {
            for (Object each : words.getJSONArray("messages")) {
                JSONObject told = (JSONObject) each;
                try {
                    SendReceipt receipt = producer.send(made(told));
                    tell(new JSONObject().fluentPut("sent", told.getString("body"))
                        .fluentPut("messageId", receipt.getMessageId().toString())
                        .fluentPut("handle", receipt.getRecallHandle()));
                    if (words.getBooleanValue("recall")) {
                        String id = producer.recallMessage(topic, receipt.getRecallHandle())
                            .getMessageId().toString();
                        tell(new JSONObject().fluentPut("recalled", id));
                    }
                } catch (ClientException | IllegalArgumentException refused) {
                    fail("refused", refused);
                }
            }
        }
    }

    private TransactionResolution check(MessageView message) {
        tell(new JSONObject().fluentPut("asked", body(message)));
        return body(message).equals("commit later")
            ? TransactionResolution.COMMIT : TransactionResolution.ROLLBACK;
    }

    private void transact() throws Exception {
        try (Producer producer = producer(this::check)) {
            tell(new JSONObject().fluentPut("ready", true));
            for (Object each : words.getJSONArray("messages")) {
                JSONObject told = (JSONObject) each;
                try {
                    Transaction transaction = producer.beginTransaction();
                    producer.send(made(told), transaction);
                    if (told.getString("body").equals("commit")) {
                        transaction.commit();
                    } else if (told.getString("body").equals("rollback")) {
                        transaction.rollback();
                    }
                    tell(new JSONObject().fluentPut("sent", told.getString("body")));
                } catch (ClientException refused) {
                    fail("refused", refused);
                }
            }
            ended.await();
        }
    }

    private void receive() throws Exception {
        try (SimpleConsumer consumer = PROVIDER.newSimpleConsumerBuilder()
            .setClientConfiguration(configuration()).setConsumerGroup(words.getString("group"))
            .setSubscriptionExpressions(subscriptions())
            .setAwaitDuration(Duration.ofMillis(words.getLongValue("awaitMs"))).build()) {
            tell(new JSONObject().fluentPut("ready", true));
            Duration invisible = Duration.ofMillis(words.getLongValue("invisibleMs"));
            while (ended.getCount() > 0) {
                try {
                    for (MessageView each : consumer.receive(words.getIntValue("max"), invisible)) {
                        settle(consumer, each);
                    }
                } catch (ClientException refused) {
                    fail("refused", refused);
                    Thread.sleep(200);
                }
            }
        }
    }

    private void settle(SimpleConsumer consumer, MessageView message) {
        String then = message.getDeliveryAttempt() == 1 ? words.getString("then") : "ack";
        try {
            if ("change".equals(then)) {
                Duration changed = Duration.ofMillis(words.getLongValue("changeMs"));
                consumer.changeInvisibleDuration(message, changed);
                show(message, "changed", true);
            } else if ("nothing".equals(then)) {
                show(message, "left", true);
            } else {
                consumer.ack(message);
                show(message, "acked", true);
            }
        } catch (ClientException refused) {
            fail("refused", refused);
            show(message, "acked", false);
        }
    }

    private ConsumeResult listen(MessageView message) {
        boolean isFirst = message.getDeliveryAttempt() == 1;
        boolean failed = isIn("fails", message) || isFirst && isIn("failsOnce", message);
        show(message, "failed", failed);
        return failed ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS;
    }

    private boolean isIn(String list, MessageView message) {
        JSONArray bodies = words.getJSONArray(list);
        return bodies != null && bodies.contains(body(message));
    }

    private void consumeLites() throws Exception {
        try (LitePushConsumer consumer = PROVIDER.newLitePushConsumerBuilder()
            .setClientConfiguration(configuration()).setConsumerGroup(words.getString("group"))
            .bindTopic(topic).setMessageListener(this::listen)
            .setConsumptionThreadCount(4).build()) {
            for (Object lite : words.getJSONArray("lites")) {
                consumer.subscribeLite((String) lite);
            }
            tell(new JSONObject().fluentPut("ready", true));
            ended.await();
        }
    }

    private void consume() throws Exception {
        if (words.containsKey("lites")) {
            consumeLites();
            return;
        }
        try (PushConsumer consumer = PROVIDER.newPushConsumerBuilder()
            .setClientConfiguration(configuration()).setConsumerGroup(words.getString("group"))
            .setSubscriptionExpressions(subscriptions()).setMessageListener(this::listen)
            .setConsumptionThreadCount(4).build()) {
            tell(new JSONObject().fluentPut("ready", true));
            ended.await();
        }
    }
}
