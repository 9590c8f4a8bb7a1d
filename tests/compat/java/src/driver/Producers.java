package driver;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;

/** Producers: send in every way, transactions, requests that wait for a reply. */
final class Producers {
    private final Handles<DefaultMQProducer> producers;
    private final Output output;

    Producers(Handles<DefaultMQProducer> producers, Output output) {
        this.producers = producers;
        this.output = output;
    }

    void register(Map<String, Command> commands) {
        commands.put("producer.start", this::start);
        commands.put("producer.stop", this::stop);
        commands.put("producer.send", this::send);
        commands.put("producer.sendMany", this::sendMany);
        commands.put("producer.sendBatch", this::sendBatch);
        commands.put("producer.sendInTransaction", this::sendInTransaction);
        commands.put("producer.request", this::request);
        commands.put("producer.recall", this::recall);
        commands.put("producer.queues", this::queues);
    }

    private Map<String, Object> start(Arguments args) throws Exception {
        DefaultMQProducer producer = create(args);
        Settings.connect(producer, args);
        producer.setSendMsgTimeout(args.number("timeoutMs", Patience.REQUEST_MS));
        Settings.apply(producer, args.map("set"));
        producer.start();
        Patience.grant(producer.getDefaultMQProducerImpl().getmQClientFactory());
        producers.add(args, producer);
        return Json.map("clientId", producer.buildMQClientId());
    }

    private DefaultMQProducer create(Arguments args) throws Exception {
        if (!args.flag("transactional")) {
            return new DefaultMQProducer(args.text("group"), Keys.hook(args));
        }
        TransactionMQProducer producer = new TransactionMQProducer(args.text("group"), Keys.hook(args));
        producer.setTransactionListener(
            new Transactions(producers.name(args), args.texts("check"), output));
        return producer;
    }

    private Map<String, Object> stop(Arguments args) {
        producers.remove(args).shutdown();
        return Json.map();
    }

    private Map<String, Object> send(Arguments args) throws Exception {
        Message message = Messages.build(args);
        return show(message, launch(producers.get(args), message, args, args).get());
    }

    /** {@code messages}, one send each in the given mode; a failed one leaves its error in the results. */
    private Map<String, Object> sendMany(Arguments args) throws Exception {
        DefaultMQProducer producer = producers.get(args);
        List<Message> messages = new ArrayList<>();
        List<CompletableFuture<SendResult>> sends = new ArrayList<>();
        for (Arguments item : args.objects("messages")) {
            Message message = Messages.build(item.text("topic", args.text("topic", null)), item);
            messages.add(message);
            sends.add(launch(producer, message, args, item));
        }
        List<Map<String, Object>> results = new ArrayList<>();
        for (int i = 0; i < messages.size(); i++) {
            results.add(outcome(messages.get(i), sends.get(i)));
        }
        return Json.map("results", results);
    }

    private static Map<String, Object> outcome(Message message, CompletableFuture<SendResult> send)
        throws InterruptedException {
        try {
            return show(message, send.get());
        } catch (ExecutionException failed) {
            return Failures.show(failed);
        }
    }

    /** Starts one send; only the mode {@code async} leaves the future open. */
    private static CompletableFuture<SendResult> launch(
        DefaultMQProducer producer, Message message, Arguments args, Arguments where) {
        long timeoutMs = args.big("timeoutMs", producer.getSendMsgTimeout());
        Target target = Target.of(where);
        CompletableFuture<SendResult> result = new CompletableFuture<>();
        try {
            switch (args.text("mode", "sync")) {
                case "sync":
                    result.complete(sendSync(producer, message, target, timeoutMs));
                    break;
                case "async":
                    sendAsync(producer, message, target, timeoutMs, result);
                    break;
                case "oneway":
                    sendOneway(producer, message, target);
                    result.complete(null);
                    break;
                default:
                    throw new IllegalArgumentException("mode is sync, async or oneway");
            }
        } catch (Exception failed) {
            result.completeExceptionally(failed);
        }
        return result;
    }

    private static SendResult sendSync(
        DefaultMQProducer producer, Message message, Target target, long timeoutMs) throws Exception {
        return Patience.routed(() -> target == null
            ? producer.send(message, timeoutMs)
            : producer.send(message, target.selector, target.argument, timeoutMs));
    }

    private static void sendAsync(DefaultMQProducer producer, Message message, Target target,
        long timeoutMs, CompletableFuture<SendResult> result) throws Exception {
        SendCallback callback = callback(result);
        if (target == null) {
            producer.send(message, callback, timeoutMs);
        } else {
            producer.send(message, target.selector, target.argument, callback, timeoutMs);
        }
    }

    private static void sendOneway(DefaultMQProducer producer, Message message, Target target)
        throws Exception {
        if (target == null) {
            producer.sendOneway(message);
        } else {
            producer.sendOneway(message, target.selector, target.argument);
        }
    }

    private static SendCallback callback(CompletableFuture<SendResult> result) {
        return new SendCallback() {
            @Override
            public void onSuccess(SendResult sent) {
                result.complete(sent);
            }

            @Override
            public void onException(Throwable failed) {
                result.completeExceptionally(failed);
            }
        };
    }

    /** {@code messages} in one request; {@code queueId} sends them to that queue. */
    private Map<String, Object> sendBatch(Arguments args) throws Exception {
        DefaultMQProducer producer = producers.get(args);
        String topic = args.text("topic");
        List<Message> batch = new ArrayList<>();
        for (Arguments item : args.objects("messages")) {
            batch.add(Messages.build(topic, item));
        }
        long timeoutMs = args.big("timeoutMs", producer.getSendMsgTimeout());
        SendResult sent = Patience.routed(() -> args.has("queueId")
            ? producer.send(batch, Messages.queue(args, publishQueues(producer, topic)), timeoutMs)
            : producer.send(batch, timeoutMs));
        return show(sent);
    }

    private Map<String, Object> sendInTransaction(Arguments args) throws Exception {
        Message message = Messages.build(args);
        return show(message, Patience.routed(() ->
            producers.get(args).sendMessageInTransaction(message, Transactions.Plan.of(args))));
    }

    private Map<String, Object> request(Arguments args) throws Exception {
        long timeoutMs = args.big("timeoutMs", Patience.REQUEST_MS);
        Message reply =
            Patience.routed(() -> producers.get(args).request(Messages.build(args), timeoutMs));
        return Json.map("reply", Messages.show(reply));
    }

    /** Takes a timed message back; only newer clients can. */
    private Map<String, Object> recall(Arguments args) throws Exception {
        Object id = Newer.call(producers.get(args), "recallMessage", args.text("topic"), args.text("handle"));
        return Json.map("msgId", id);
    }

    private Map<String, Object> queues(Arguments args) throws Exception {
        return Json.map("queues",
            Messages.showQueues(publishQueues(producers.get(args), args.text("topic"))));
    }

    private static Collection<MessageQueue> publishQueues(DefaultMQProducer producer, String topic)
        throws Exception {
        return producer.fetchPublishMessageQueues(topic);
    }

    private static Map<String, Object> show(Message message, SendResult sent) {
        return sent == null ? Json.map("msgId", message.getProperty("UNIQ_KEY")) : show(sent);
    }

    private static Map<String, Object> show(SendResult sent) {
        Map<String, Object> shown = Json.map(
            "status", sent.getSendStatus().name(),
            "msgId", sent.getMsgId(),
            "offsetMsgId", sent.getOffsetMsgId(),
            "queueOffset", sent.getQueueOffset(),
            "transactionId", sent.getTransactionId(),
            "regionId", sent.getRegionId(),
            "traceOn", sent.isTraceOn(),
            "recallHandle", Newer.callOrNull(sent, "getRecallHandle"),
            "localState", Transactions.localState(sent));
        if (sent.getMessageQueue() != null) {
            shown.putAll(Messages.show(sent.getMessageQueue()));
        }
        return shown;
    }
}
