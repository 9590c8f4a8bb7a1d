package driver;

import org.apache.rocketmq.client.producer.MessageQueueSelector;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;

/** Where a message is to go, if the producer is not to choose: a queue's number, or the hash of a text. */
final class Target {
    final MessageQueueSelector selector;
    final Object argument;

    private Target(MessageQueueSelector selector, Object argument) {
        this.selector = selector;
        this.argument = argument;
    }

    /** Reads {@code queueId} (with {@code brokerName}) or {@code hash}; null if neither is there. */
    static Target of(Arguments args) {
        if (args.has("queueId")) {
            return new Target((queues, message, given) -> Messages.queue((Arguments) given, queues), args);
        }
        return args.has("hash") ? new Target(new SelectMessageQueueByHash(), args.text("hash")) : null;
    }
}
