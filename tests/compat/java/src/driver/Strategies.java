package driver;

import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;

/** The ways to share queues among the members of a group, by name. */
final class Strategies {
    private Strategies() {
    }

    static AllocateMessageQueueStrategy named(String name) {
        switch (name) {
            case "average":
                return new AllocateMessageQueueAveragely();
            case "circle":
                return new AllocateMessageQueueAveragelyByCircle();
            case "hash":
                return new AllocateMessageQueueConsistentHash();
            default:
                throw new IllegalArgumentException("strategy is average, circle or hash");
        }
    }
}
