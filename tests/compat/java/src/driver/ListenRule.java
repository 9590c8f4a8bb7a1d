package driver;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.rocketmq.common.message.MessageExt;

/** Which messages a listener is to fail, how, and how long it takes. */
final class ListenRule {
    final String failWith;
    final int delayLevel;
    private final int failTimes;
    private final Set<String> failKeys;
    private final long workMs;

    private ListenRule(Arguments args) {
        failTimes = args.number("failTimes", 0);
        failKeys = new HashSet<>(args.texts("failKeys"));
        failWith = args.text("failWith", "later");
        delayLevel = args.number("delayLevel", 0);
        workMs = args.big("workMs", 0);
    }

    /**
     * {@code failTimes}: the first so many attempts of a message fail (-1: all); {@code failKeys}: only of
     * messages with one of these keys; {@code failWith}: later, throw, null, ack (acknowledge the batch up to
     * the failed message); {@code delayLevel}: of the next attempt; {@code workMs}: time taken per call.
     */
    static ListenRule of(Arguments args) {
        return new ListenRule(args);
    }

    boolean fails(MessageExt message) {
        return isChosen(message) && (failTimes < 0 || message.getReconsumeTimes() < failTimes);
    }

    /** The place of the first message of the batch that fails, or the size of the batch. */
    int firstFailure(List<MessageExt> batch) {
        int i = 0;
        while (i < batch.size() && !fails(batch.get(i))) {
            i++;
        }
        return i;
    }

    void work() {
        try {
            Thread.sleep(workMs);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }

    private boolean isChosen(MessageExt message) {
        if (failKeys.isEmpty()) {
            return true;
        }
        String keys = message.getKeys() == null ? "" : message.getKeys();
        for (String key : keys.split(" ")) {
            if (failKeys.contains(key)) {
                return true;
            }
        }
        return false;
    }
}
