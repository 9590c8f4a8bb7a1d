package driver;

import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;

/** Push consumers: every message that reaches a listener becomes an event. */
final class Consumers {
    private static final int THREADS = 4;

    private final Handles<DefaultMQPushConsumer> consumers;
    private final Handles<DefaultMQProducer> producers;
    private final Output output;

    Consumers(Handles<DefaultMQPushConsumer> consumers, Handles<DefaultMQProducer> producers, Output output) {
        this.consumers = consumers;
        this.producers = producers;
        this.output = output;
    }

    void register(Map<String, Command> commands) {
        commands.put("consumer.start", this::start);
        commands.put("consumer.stop", this::stop);
        commands.put("consumer.subscribe", this::subscribe);
        commands.put("consumer.unsubscribe", this::unsubscribe);
        commands.put("consumer.suspend", this::suspend);
        commands.put("consumer.resume", this::resume);
        commands.put("consumer.queues", this::queues);
    }

    private Map<String, Object> start(Arguments args) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(
            args.text("group"), Keys.hook(args), new AllocateMessageQueueAveragely());
        Settings.connect(consumer, args);
        configure(consumer, args);
        Settings.apply(consumer, args.map("set"));
        if (args.has("topic")) {
            subscribe(consumer, args);
        }
        if (args.has("subscriptions")) {
            for (Arguments subscription : args.objects("subscriptions")) {
                subscribe(consumer, subscription);
            }
        }
        listen(consumer, args);
        consumer.start();
        consumers.add(args, consumer);
        return Json.map("clientId", consumer.buildMQClientId());
    }

    private static void configure(DefaultMQPushConsumer consumer, Arguments args) throws Exception {
        int threads = args.number("threads", THREADS);
        consumer.setConsumeThreadMin(threads);
        consumer.setConsumeThreadMax(threads);
        consumer.setConsumeMessageBatchMaxSize(args.number("batch", 1));
        consumer.setConsumeFromWhere(where(args.text("from", "first")));
        if (args.has("timestamp")) {
            consumer.setConsumeTimestamp(args.text("timestamp"));
        }
        if (args.has("maxReconsume")) {
            consumer.setMaxReconsumeTimes(args.number("maxReconsume"));
        }
        if (args.flag("broadcast")) {
            Settings.apply(consumer, "messageModel", "BROADCASTING");
        }
        if (args.has("strategy")) {
            consumer.setAllocateMessageQueueStrategy(Strategies.named(args.text("strategy")));
        }
    }

    private static ConsumeFromWhere where(String word) {
        switch (word) {
            case "first":
                return ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET;
            case "last":
                return ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET;
            case "timestamp":
                return ConsumeFromWhere.CONSUME_FROM_TIMESTAMP;
            default:
                throw new IllegalArgumentException("from is first, last or timestamp");
        }
    }

    private static void subscribe(DefaultMQPushConsumer consumer, Arguments args) throws MQClientException {
        String expression = args.text("expression", "*");
        if (args.has("source")) {
            consumer.subscribe(args.text("topic"), expression, args.text("source"));
        } else if (args.flag("sql")) {
            consumer.subscribe(args.text("topic"), MessageSelector.bySql(expression));
        } else {
            consumer.subscribe(args.text("topic"), expression);
        }
    }

    private void listen(DefaultMQPushConsumer consumer, Arguments args) {
        Replies replies = args.has("reply") ? new Replies(args.text("reply"), producers) : null;
        Listening listening =
            new Listening(consumers.name(args), ListenRule.of(args), replies, output);
        if (args.flag("orderly")) {
            consumer.registerMessageListener((MessageListenerOrderly) listening::orderly);
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) listening::concurrently);
        }
    }

    private Map<String, Object> stop(Arguments args) {
        consumers.remove(args).shutdown();
        return Json.map();
    }

    private Map<String, Object> subscribe(Arguments args) throws Exception {
        subscribe(consumers.get(args), args);
        return Json.map();
    }

    private Map<String, Object> unsubscribe(Arguments args) {
        consumers.get(args).unsubscribe(args.text("topic"));
        return Json.map();
    }

    private Map<String, Object> suspend(Arguments args) {
        consumers.get(args).suspend();
        return Json.map();
    }

    private Map<String, Object> resume(Arguments args) {
        consumers.get(args).resume();
        return Json.map();
    }

    /** The queues that the consumer holds now, its retry queue included. */
    private Map<String, Object> queues(Arguments args) {
        return Json.map("queues", Messages.showQueues(consumers.get(args)
            .getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().keySet()));
    }
}
