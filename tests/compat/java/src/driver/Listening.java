package driver;

import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.common.message.MessageExt;

/** The listener of one consumer: tells what came, then succeeds or fails by its rule. */
final class Listening {
    private final String consumer;
    private final ListenRule rule;
    private final Replies replies;
    private final Output output;

    Listening(String consumer, ListenRule rule, Replies replies, Output output) {
        this.consumer = consumer;
        this.rule = rule;
        this.replies = replies;
        this.output = output;
    }

    ConsumeConcurrentlyStatus concurrently(List<MessageExt> batch, ConsumeConcurrentlyContext context) {
        boolean failed = take(batch);
        context.setDelayLevelWhenNextConsume(rule.delayLevel);
        if (!failed) {
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        }
        switch (rule.failWith) {
            case "later":
                return ConsumeConcurrentlyStatus.RECONSUME_LATER;
            case "ack":
                context.setAckIndex(rule.firstFailure(batch) - 1);
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            default:
                return failOtherwise();
        }
    }

    ConsumeOrderlyStatus orderly(List<MessageExt> batch, ConsumeOrderlyContext context) {
        if (!take(batch)) {
            return ConsumeOrderlyStatus.SUCCESS;
        }
        return rule.failWith.equals("later")
            ? ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
            : failOtherwise();
    }

    /** Tells of each message, takes its time, replies if asked to; true if the batch is to fail. */
    private boolean take(List<MessageExt> batch) {
        for (MessageExt message : batch) {
            tell(message, batch.size());
        }
        rule.work();
        if (replies != null) {
            batch.forEach(replies::send);
        }
        return rule.firstFailure(batch) < batch.size();
    }

    private void tell(MessageExt message, int batchSize) {
        Map<String, Object> shown = Messages.show(message);
        shown.put("consumer", consumer);
        shown.put("batchSize", batchSize);
        shown.put("failed", rule.fails(message));
        output.event("message", shown);
    }

    private <T> T failOtherwise() {
        if (rule.failWith.equals("null")) {
            return null;
        }
        throw new IllegalStateException("planned failure");
    }
}
