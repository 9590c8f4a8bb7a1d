package driver;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.common.message.MessageQueue;

/** Lite pull consumers: polling, with queues either given to them or chosen by the group. */
final class LitePulls {
    private static final long POLL_MS = 5_000;

    private final Handles<DefaultLitePullConsumer> consumers;

    LitePulls(Handles<DefaultLitePullConsumer> consumers) {
        this.consumers = consumers;
    }

    void register(Map<String, Command> commands) {
        commands.put("lite.start", this::start);
        commands.put("lite.stop", this::stop);
        commands.put("lite.poll", this::poll);
        commands.put("lite.queues", this::queues);
        commands.put("lite.assignment", this::assignment);
        commands.put("lite.assign", this::assign);
        commands.put("lite.seek", this::seek);
        commands.put("lite.pause", this::pause);
        commands.put("lite.resume", this::resume);
        commands.put("lite.commit", this::commit);
        commands.put("lite.committed", this::committed);
        commands.put("lite.search", this::search);
    }

    /** With a {@code topic} the group shares the queues out; without, {@code lite.assign} says which. */
    private Map<String, Object> start(Arguments args) throws Exception {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(args.text("group"), Keys.hook(args));
        Settings.connect(consumer, args);
        consumer.setAutoCommit(args.flag("autoCommit", true));
        if (args.has("from")) {
            Settings.apply(consumer, "consumeFromWhere",
                args.text("from").equals("last") ? "CONSUME_FROM_LAST_OFFSET" : "CONSUME_FROM_FIRST_OFFSET");
        }
        Settings.apply(consumer, args.map("set"));
        if (args.has("topic")) {
            consumer.subscribe(args.text("topic"), selector(args));
        }
        consumer.start();
        consumers.add(args, consumer);
        return Json.map("clientId", consumer.buildMQClientId());
    }

    private static MessageSelector selector(Arguments args) {
        String expression = args.text("expression", "*");
        return args.flag("sql") ? MessageSelector.bySql(expression) : MessageSelector.byTag(expression);
    }

    private Map<String, Object> stop(Arguments args) {
        consumers.remove(args).shutdown();
        return Json.map();
    }

    private Map<String, Object> poll(Arguments args) {
        return Json.map("messages",
            Messages.showAll(consumers.get(args).poll(args.big("timeoutMs", POLL_MS))));
    }

    private Map<String, Object> queues(Arguments args) throws Exception {
        return Json.map("queues", Messages.showQueues(known(args)));
    }

    private Map<String, Object> assignment(Arguments args) throws Exception {
        return Json.map("queues", Messages.showQueues(consumers.get(args).assignment()));
    }

    /** Takes {@code queueIds} of {@code topic}, or all of its queues. */
    private Map<String, Object> assign(Arguments args) throws Exception {
        List<String> ids = args.texts("queueIds");
        List<MessageQueue> chosen = new ArrayList<>();
        for (MessageQueue queue : known(args)) {
            if (ids.isEmpty() || ids.contains(String.valueOf(queue.getQueueId()))) {
                chosen.add(queue);
            }
        }
        consumers.get(args).assign(chosen);
        return Json.map("queues", Messages.showQueues(chosen));
    }

    /** To {@code offset}, or {@code to}: begin or end. */
    private Map<String, Object> seek(Arguments args) throws Exception {
        DefaultLitePullConsumer consumer = consumers.get(args);
        MessageQueue queue = queue(args);
        if (args.has("offset")) {
            consumer.seek(queue, args.big("offset"));
        } else if (args.text("to").equals("begin")) {
            consumer.seekToBegin(queue);
        } else {
            consumer.seekToEnd(queue);
        }
        return Json.map();
    }

    private Map<String, Object> pause(Arguments args) throws Exception {
        consumers.get(args).pause(Collections.singleton(queue(args)));
        return Json.map();
    }

    private Map<String, Object> resume(Arguments args) throws Exception {
        consumers.get(args).resume(Collections.singleton(queue(args)));
        return Json.map();
    }

    private Map<String, Object> commit(Arguments args) {
        consumers.get(args).commitSync();
        return Json.map();
    }

    private Map<String, Object> committed(Arguments args) throws Exception {
        return Json.map("offset", consumers.get(args).committed(queue(args)));
    }

    private Map<String, Object> search(Arguments args) throws Exception {
        return Json.map("offset",
            consumers.get(args).offsetForTimestamp(queue(args), args.big("timestamp")));
    }

    private Collection<MessageQueue> known(Arguments args) throws Exception {
        return consumers.get(args).fetchMessageQueues(args.text("topic"));
    }

    private MessageQueue queue(Arguments args) throws Exception {
        return Messages.queue(args, known(args));
    }
}
