package driver;

import java.lang.reflect.Method;
import java.util.Collection;
import java.util.Collections;
import java.util.Map;
import org.apache.rocketmq.client.MQAdmin;
import org.apache.rocketmq.client.QueryResult;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.MessageQueue;

/** What every producer and pull consumer can ask: topics, offsets, single messages. */
final class Queries {
    private static final int MESSAGES_MAX = 32;

    private final Handles<DefaultMQProducer> producers;
    private final Handles<DefaultMQPullConsumer> pulls;

    Queries(Handles<DefaultMQProducer> producers, Handles<DefaultMQPullConsumer> pulls) {
        this.producers = producers;
        this.pulls = pulls;
    }

    void register(Map<String, Command> commands) {
        commands.put("query.createTopic", this::createTopic);
        commands.put("query.offsets", this::offsets);
        commands.put("query.search", this::search);
        commands.put("query.view", this::view);
        commands.put("query.byKey", this::byKey);
    }

    /** On every broker that has the topic {@code template}. */
    private Map<String, Object> createTopic(Arguments args) throws Exception {
        MQAdmin admin = admin(args);
        String template = args.text("template", "TBW102");
        int queues = args.number("queues", 4);
        Method method = creation();
        if (method.getParameterCount() == 3) {
            invoke(method, admin, template, args.text("topic"), queues);
        } else {
            invoke(method, admin, template, args.text("topic"), queues, Collections.emptyMap());
        }
        return Json.map();
    }

    /** The shortest form of the method; newer versions take attributes as well. */
    private static Method creation() throws NoSuchMethodException {
        try {
            return MQAdmin.class.getMethod("createTopic", String.class, String.class, int.class);
        } catch (NoSuchMethodException newer) {
            return MQAdmin.class.getMethod("createTopic", String.class, String.class, int.class, Map.class);
        }
    }

    private static void invoke(Method method, Object target, Object... args) throws Exception {
        try {
            method.invoke(target, args);
        } catch (ReflectiveOperationException failed) {
            throw Failures.cause(failed);
        }
    }

    private Map<String, Object> offsets(Arguments args) throws Exception {
        MQAdmin admin = admin(args);
        MessageQueue queue = queue(args);
        return Json.map("minOffset", admin.minOffset(queue), "maxOffset", admin.maxOffset(queue),
            "earliestStoreTime", admin.earliestMsgStoreTime(queue));
    }

    private Map<String, Object> search(Arguments args) throws Exception {
        return Json.map("offset", admin(args).searchOffset(queue(args), args.big("timestamp")));
    }

    /** By {@code id}: an offset id, or the unique key that the sender was told. */
    private Map<String, Object> view(Arguments args) throws Exception {
        return Json.map("message", Messages.show(admin(args).viewMessage(args.text("topic"), args.text("id"))));
    }

    private Map<String, Object> byKey(Arguments args) throws Exception {
        QueryResult result = admin(args).queryMessage(args.text("topic"), args.text("key"),
            args.number("max", MESSAGES_MAX), args.big("begin", 0), args.big("end", Long.MAX_VALUE));
        return Json.map("indexUpdatedAt", result.getIndexLastUpdateTimestamp(),
            "messages", Messages.showAll(result.getMessageList()));
    }

    /** {@code client} names a producer or a pull consumer; without it, the producer without a name. */
    private MQAdmin admin(Arguments args) {
        String name = args.text("client", "producer");
        MQAdmin producer = producers.find(name);
        MQAdmin found = producer == null ? pulls.find(name) : producer;
        if (found == null) {
            throw new IllegalArgumentException("no such client: " + name);
        }
        return found;
    }

    private MessageQueue queue(Arguments args) throws Exception {
        MQAdmin admin = admin(args);
        Collection<MessageQueue> known = admin instanceof DefaultMQProducer
            ? ((DefaultMQProducer) admin).fetchPublishMessageQueues(args.text("topic"))
            : ((DefaultMQPullConsumer) admin).fetchSubscribeMessageQueues(args.text("topic"));
        return Messages.queue(args, known);
    }
}
