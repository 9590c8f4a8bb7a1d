package driver;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.message.MessageExt;

/** Answers requests, through a producer that runs already: "re:" and the body that came. */
final class Replies {
    private final String producer;
    private final Handles<DefaultMQProducer> producers;

    Replies(String producer, Handles<DefaultMQProducer> producers) {
        this.producer = producer;
        this.producers = producers;
    }

    void send(MessageExt request) {
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        body.writeBytes("re:".getBytes(StandardCharsets.UTF_8));
        body.writeBytes(request.getBody());
        try {
            producers.find(producer).send(MessageUtil.createReplyMessage(request, body.toByteArray()));
        } catch (Exception failed) {
            throw new IllegalStateException("no reply sent", failed);
        }
    }
}
