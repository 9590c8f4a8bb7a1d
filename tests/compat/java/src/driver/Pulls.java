package driver;

import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.impl.FindBrokerResult;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Pull consumers: one request at a time, offsets by hand. */
@SuppressWarnings("deprecation")
final class Pulls {
    private static final int MESSAGES_MAX = 32;

    private final Handles<DefaultMQPullConsumer> consumers;

    Pulls(Handles<DefaultMQPullConsumer> consumers) {
        this.consumers = consumers;
    }

    void register(Map<String, Command> commands) {
        commands.put("pull.start", this::start);
        commands.put("pull.stop", this::stop);
        commands.put("pull.queues", this::queues);
        commands.put("pull.pull", this::pull);
        commands.put("pull.fetchOffset", this::fetchOffset);
        commands.put("pull.updateOffset", this::updateOffset);
        commands.put("pull.sendBack", this::sendBack);
    }

    private Map<String, Object> start(Arguments args) throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer(args.text("group"));
        Settings.connect(consumer, args);
        consumer.setConsumerPullTimeoutMillis(Patience.REQUEST_MS);
        if (args.flag("broadcast")) {
            Settings.apply(consumer, "messageModel", "BROADCASTING");
        }
        Settings.apply(consumer, args.map("set"));
        consumer.start();
        Patience.grant(consumer.getDefaultMQPullConsumerImpl().getRebalanceImpl().getmQClientFactory());
        consumers.add(args, consumer);
        return Json.map("clientId", consumer.buildMQClientId());
    }

    private Map<String, Object> stop(Arguments args) {
        consumers.remove(args).shutdown();
        return Json.map();
    }

    private Map<String, Object> queues(Arguments args) throws Exception {
        return Json.map("queues", Messages.showQueues(
            consumers.get(args).fetchSubscribeMessageQueues(args.text("topic"))));
    }

    /** {@code block} holds the request until there is something, or some 20 seconds have passed. */
    private Map<String, Object> pull(Arguments args) throws Exception {
        DefaultMQPullConsumer consumer = consumers.get(args);
        return show(args.flag("block") ? pullBlocking(consumer, args) : pullOnce(consumer, args));
    }

    private static PullResult pullBlocking(DefaultMQPullConsumer consumer, Arguments args) throws Exception {
        return consumer.pullBlockIfNotFound(queue(consumer, args), args.text("expression", "*"),
            args.big("offset"), args.number("max", MESSAGES_MAX));
    }

    private static PullResult pullOnce(DefaultMQPullConsumer consumer, Arguments args) throws Exception {
        String expression = args.text("expression", "*");
        MessageQueue queue = queue(consumer, args);
        if (args.flag("sql")) {
            learnBrokerVersion(consumer, queue);
        }
        MessageSelector selector =
            args.flag("sql") ? MessageSelector.bySql(expression) : MessageSelector.byTag(expression);
        return consumer.pull(queue, selector, args.big("offset"),
            args.number("max", MESSAGES_MAX), args.big("timeoutMs", Patience.REQUEST_MS));
    }

    /** Before its first heartbeat was answered, a client takes every broker for one without SQL. */
    private static void learnBrokerVersion(DefaultMQPullConsumer consumer, MessageQueue queue)
        throws InterruptedException {
        MQClientInstance client =
            consumer.getDefaultMQPullConsumerImpl().getRebalanceImpl().getmQClientFactory();
        long deadline = System.currentTimeMillis() + Patience.REQUEST_MS;
        while (brokerVersion(client, queue) == 0 && System.currentTimeMillis() < deadline) {
            client.sendHeartbeatToAllBrokerWithLock();
            Thread.sleep(50);
        }
    }

    private static int brokerVersion(MQClientInstance client, MessageQueue queue) {
        FindBrokerResult broker =
            client.findBrokerAddressInSubscribe(queue.getBrokerName(), MixAll.MASTER_ID, false);
        return broker == null ? 0 : broker.getBrokerVersion();
    }

    private static Map<String, Object> show(PullResult result) {
        List<MessageExt> found = result.getMsgFoundList();
        return Json.map(
            "status", result.getPullStatus().name(),
            "nextOffset", result.getNextBeginOffset(),
            "minOffset", result.getMinOffset(),
            "maxOffset", result.getMaxOffset(),
            "messages", Messages.showAll(found == null ? Collections.emptyList() : found));
    }

    /** {@code fromStore} asks the broker instead of the memory of this consumer. */
    private Map<String, Object> fetchOffset(Arguments args) throws Exception {
        DefaultMQPullConsumer consumer = consumers.get(args);
        return Json.map("offset",
            consumer.fetchConsumeOffset(queue(consumer, args), args.flag("fromStore", true)));
    }

    /** Sets the position and, unless {@code persist} is false, waits until the broker has it. */
    private Map<String, Object> updateOffset(Arguments args) throws Exception {
        DefaultMQPullConsumer consumer = consumers.get(args);
        MessageQueue queue = queue(consumer, args);
        consumer.updateConsumeOffset(queue, args.big("offset"));
        if (args.flag("persist", true)) {
            consumer.getDefaultMQPullConsumerImpl().getOffsetStore()
                .updateConsumeOffsetToBroker(queue, args.big("offset"), false);
        }
        return Json.map();
    }

    /** Sends the message at {@code offset} back, to come again later. */
    private Map<String, Object> sendBack(Arguments args) throws Exception {
        DefaultMQPullConsumer consumer = consumers.get(args);
        PullResult found =
            consumer.pull(queue(consumer, args), "*", args.big("offset"), 1, Patience.REQUEST_MS);
        MessageExt message = found.getMsgFoundList().get(0);
        consumer.sendMessageBack(message, args.number("delayLevel", 0), message.getBrokerName());
        return Json.map("message", Messages.show(message));
    }

    private static MessageQueue queue(DefaultMQPullConsumer consumer, Arguments args) throws Exception {
        return Messages.queue(args, consumer.fetchSubscribeMessageQueues(args.text("topic")));
    }
}
