package driver;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Messages and queues, out of arguments and into answers. */
final class Messages {
    private static final int SHOWN_BODY_BYTES_MAX = 65_536;

    private Messages() {
    }

    /** {@code topic}, {@code body} (base64) or {@code text}, and whatever else a message can carry. */
    static Message build(Arguments args) {
        return build(args.text("topic"), args);
    }

    static Message build(String topic, Arguments args) {
        Message message = new Message(topic, body(args));
        if (args.has("tag")) {
            message.setTags(args.text("tag"));
        }
        if (args.has("keys")) {
            message.setKeys(args.texts("keys"));
        }
        if (args.has("delayLevel")) {
            message.setDelayTimeLevel(args.number("delayLevel"));
        }
        message.setFlag(args.number("flag", 0));
        message.setWaitStoreMsgOK(args.flag("waitStoreOk", true));
        args.map("properties").forEach(message::putUserProperty);
        args.map("system").forEach((key, value) -> MessageAccessor.putProperty(message, key, value));
        return message;
    }

    private static byte[] body(Arguments args) {
        return args.has("text") ? args.text("text").getBytes(StandardCharsets.UTF_8) : args.bytes("body");
    }

    static List<Map<String, Object>> showAll(Collection<MessageExt> messages) {
        List<Map<String, Object>> shown = new ArrayList<>();
        messages.forEach(message -> shown.add(show(message)));
        return shown;
    }

    /** Everything a consumer can see of a message; a long body only as its digest. */
    static Map<String, Object> show(Message message) {
        Map<String, Object> shown = Json.map(
            "topic", message.getTopic(),
            "tags", message.getTags(),
            "keys", message.getKeys(),
            "flag", message.getFlag(),
            "properties", new TreeMap<>(message.getProperties()));
        byte[] body = message.getBody() == null ? new byte[0] : message.getBody();
        shown.put("bodySize", body.length);
        shown.put("sha256", sha256(body));
        if (body.length <= SHOWN_BODY_BYTES_MAX) {
            shown.put("bodyBase64", Base64.getEncoder().encodeToString(body));
        }
        if (message instanceof MessageExt) {
            shown.putAll(showStored((MessageExt) message));
        }
        return shown;
    }

    private static Map<String, Object> showStored(MessageExt message) {
        return Json.map(
            "brokerName", message.getBrokerName(),
            "queueId", message.getQueueId(),
            "queueOffset", message.getQueueOffset(),
            "msgId", message.getMsgId(),
            "offsetMsgId", offsetMessageId(message),
            "reconsumeTimes", message.getReconsumeTimes(),
            "sysFlag", message.getSysFlag(),
            "bodyCrc", message.getBodyCRC(),
            "commitLogOffset", message.getCommitLogOffset(),
            "storeSize", message.getStoreSize(),
            "bornTimestamp", message.getBornTimestamp(),
            "bornHost", String.valueOf(message.getBornHost()),
            "storeTimestamp", message.getStoreTimestamp(),
            "storeHost", String.valueOf(message.getStoreHost()),
            "preparedTransactionOffset", message.getPreparedTransactionOffset());
    }

    private static String offsetMessageId(MessageExt message) {
        return message instanceof MessageClientExt ? ((MessageClientExt) message).getOffsetMsgId() : null;
    }

    static List<Map<String, Object>> showQueues(Collection<MessageQueue> queues) {
        List<MessageQueue> sorted = new ArrayList<>(queues);
        sorted.sort(null);
        List<Map<String, Object>> shown = new ArrayList<>();
        sorted.forEach(queue -> shown.add(show(queue)));
        return shown;
    }

    static Map<String, Object> show(MessageQueue queue) {
        return Json.map("topic", queue.getTopic(), "brokerName", queue.getBrokerName(),
            "queueId", queue.getQueueId());
    }

    /**
     * The queue that {@code topic}, {@code queueId} and perhaps {@code brokerName} mean. Without a broker
     * name it is the known queue with that number, or, for a number that no queue has, one of the broker
     * that comes first: so commands can also ask for queues that do not exist.
     */
    static MessageQueue queue(Arguments args, Collection<MessageQueue> known) {
        int id = args.number("queueId");
        String broker = args.text("brokerName", null);
        List<MessageQueue> sorted = new ArrayList<>(known);
        sorted.sort(null);
        for (MessageQueue queue : sorted) {
            if (queue.getQueueId() == id && (broker == null || broker.equals(queue.getBrokerName()))) {
                return queue;
            }
        }
        MessageQueue first = sorted.get(0);
        return new MessageQueue(first.getTopic(), broker == null ? first.getBrokerName() : broker, id);
    }

    private static String sha256(byte[] body) {
        try {
            StringBuilder hex = new StringBuilder();
            for (byte b : MessageDigest.getInstance("SHA-256").digest(body)) {
                hex.append(String.format("%02x", b));
            }
            return hex.toString();
        } catch (NoSuchAlgorithmException missing) {
            throw new IllegalStateException(missing);
        }
    }
}
