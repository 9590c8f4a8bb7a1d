package driver;

import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Measurements of the client as a user has it: nothing is set that a user would not set. */
final class Benches {
    private static final int PATIENCE_S = 120;
    private static final int PROBE_MS = 50;

    private final Handles<DefaultMQProducer> producers;

    Benches(Handles<DefaultMQProducer> producers) {
        this.producers = producers;
    }

    void register(Map<String, Command> commands) {
        commands.put("bench.send", this::send);
        commands.put("bench.consume", this::consume);
        commands.put("bench.latency", this::latency);
        commands.put("bench.idle", Benches::idle);
    }

    /** {@code count} asynchronous sends to {@code topic}, at most {@code window} of them unanswered. */
    private Map<String, Object> send(Arguments args) throws Exception {
        DefaultMQProducer producer = producers.get(args);
        Outstanding sends = new Outstanding(args.number("count"), args.number("window"));
        byte[] body = new byte[args.number("bodyBytes")];
        Stopwatch watch = new Stopwatch();
        for (int i = 0; i < args.number("count"); i++) {
            sends.send(producer, new Message(args.text("topic"), body), i);
        }
        sends.awaitAll();
        Map<String, Object> result = watch.stop();
        result.putAll(sends.latencies.show());
        return result;
    }

    /** A new {@code group} takes {@code count} messages of {@code topic}; timed from the first to the last. */
    private Map<String, Object> consume(Arguments args) throws Exception {
        AtomicReference<Stopwatch> watch = new AtomicReference<>();
        AtomicReference<Map<String, Object>> result = new AtomicReference<>();
        AtomicInteger left = new AtomicInteger(args.number("count"));
        CountDownLatch all = new CountDownLatch(1);
        DefaultMQPushConsumer consumer = listen(args, message -> {
            if (watch.get() == null) {
                watch.compareAndSet(null, new Stopwatch());
            }
            if (left.decrementAndGet() == 0) {
                result.set(watch.get().stop());
                all.countDown();
            }
        });
        try {
            await(all);
        } finally {
            consumer.shutdown();
        }
        return result.get();
    }

    /** A consumer of a topic to which nothing comes, watched for {@code seconds}. */
    private static Map<String, Object> idle(Arguments args) throws Exception {
        DefaultMQPushConsumer consumer = listen(args, message -> { });
        try {
            TimeUnit.SECONDS.sleep(args.number("settleSeconds"));
            Stopwatch watch = new Stopwatch();
            TimeUnit.SECONDS.sleep(args.number("seconds"));
            return watch.stop();
        } finally {
            consumer.shutdown();
        }
    }

    /**
     * {@code count} messages at {@code perSecond}, after {@code warmUp} others at the same pace: the time
     * from the call that sends one to the call that hands it to the listener, in this same process.
     */
    private Map<String, Object> latency(Arguments args) throws Exception {
        int warmUp = args.number("warmUp");
        int count = args.number("count");
        long run = System.nanoTime();
        Latencies latencies = new Latencies(count);
        CountDownLatch ready = new CountDownLatch(1);
        CountDownLatch all = new CountDownLatch(count);
        DefaultMQPushConsumer consumer = listen(args, message -> {
            long now = System.nanoTime();
            ByteBuffer body = ByteBuffer.wrap(message.getBody());
            if (body.getLong() != run) {
                return;
            }
            int number = body.getInt() - warmUp;
            ready.countDown();
            if (number >= 0) {
                latencies.set(number, now - body.getLong());
                all.countDown();
            }
        });
        try {
            probe(args, run, ready);
            Stopwatch watch = new Stopwatch();
            pace(args, run, warmUp + count);
            await(all);
            Map<String, Object> result = watch.stop();
            result.putAll(latencies.show());
            return result;
        } finally {
            consumer.shutdown();
        }
    }

    /** Sends until something comes back: from then on the consumer has its queues. */
    private void probe(Arguments args, long run, CountDownLatch ready) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
        do {
            producers.get(args).send(stamped(args, run, -1));
            if (System.nanoTime() > deadline) {
                throw new TimeoutException("nothing came back");
            }
        } while (!ready.await(PROBE_MS, TimeUnit.MILLISECONDS));
    }

    private void pace(Arguments args, long run, int total) throws Exception {
        DefaultMQProducer producer = producers.get(args);
        Outstanding sends = new Outstanding(total, total);
        long step = TimeUnit.SECONDS.toNanos(1) / args.number("perSecond");
        long start = System.nanoTime();
        for (int i = 0; i < total; i++) {
            for (long early = start + i * step - System.nanoTime(); early > 0;
                early = start + i * step - System.nanoTime()) {
                LockSupport.parkNanos(early);
            }
            sends.send(producer, stamped(args, run, i), i);
        }
        sends.awaitAll();
    }

    private static Message stamped(Arguments args, long run, int number) {
        byte[] body = new byte[args.number("bodyBytes")];
        ByteBuffer.wrap(body).putLong(run).putInt(number).putLong(System.nanoTime());
        return new Message(args.text("topic"), body);
    }

    private static DefaultMQPushConsumer listen(Arguments args, Taker taker) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(args.text("group"));
        Settings.connect(consumer, args);
        consumer.setInstanceName(args.text("group"));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(args.text("topic"), "*");
        if (args.flag("ordered")) {
            consumer.registerMessageListener((MessageListenerOrderly) (batch, context) -> {
                batch.forEach(taker::take);
                return ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (batch, context) -> {
                batch.forEach(taker::take);
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        consumer.start();
        return consumer;
    }

    private static void await(CountDownLatch latch) throws Exception {
        if (!latch.await(PATIENCE_S, TimeUnit.SECONDS)) {
            throw new TimeoutException("not everything came");
        }
    }

    private interface Taker {
        void take(MessageExt message);
    }

    /** Wall time, and the processor time of this whole process. */
    private static final class Stopwatch {
        private final long cpu = cpuNanos();
        private final long start = System.nanoTime();

        Map<String, Object> stop() {
            long end = System.nanoTime();
            return Json.map("seconds", (end - start) / 1e9, "cpuSeconds", (cpuNanos() - cpu) / 1e9);
        }

        private static long cpuNanos() {
            return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
                .getProcessCpuTime();
        }
    }

    /** Asynchronous sends that have no answer yet, and the time that each took. */
    private static final class Outstanding {
        final Latencies latencies;
        private final int window;
        private final Semaphore free;
        private final AtomicReference<Throwable> failure = new AtomicReference<>();

        Outstanding(int count, int window) {
            this.latencies = new Latencies(count);
            this.window = window;
            this.free = new Semaphore(window);
        }

        void send(DefaultMQProducer producer, Message message, int number) throws Exception {
            acquire(1);
            long start = System.nanoTime();
            producer.send(message, new SendCallback() {
                @Override
                public void onSuccess(SendResult sent) {
                    latencies.set(number, System.nanoTime() - start);
                    free.release();
                }

                @Override
                public void onException(Throwable failed) {
                    failure.set(failed);
                    free.release();
                }
            });
        }

        void awaitAll() throws Exception {
            acquire(window);
            if (failure.get() != null) {
                throw Failures.cause(failure.get());
            }
        }

        private void acquire(int permits) throws Exception {
            if (!free.tryAcquire(permits, PATIENCE_S, TimeUnit.SECONDS)) {
                throw new TimeoutException("not everything was answered");
            }
        }
    }

    /** One time for each message; of one that came twice, the later. */
    private static final class Latencies {
        private final AtomicLongArray nanos;

        Latencies(int count) {
            nanos = new AtomicLongArray(count);
        }

        void set(int number, long taken) {
            nanos.set(number, taken);
        }

        Map<String, Object> show() {
            long[] sorted = new long[nanos.length()];
            Arrays.setAll(sorted, nanos::get);
            Arrays.sort(sorted);
            return Json.map("p50Ms", quantile(sorted, 0.5), "p99Ms", quantile(sorted, 0.99));
        }

        private static double quantile(long[] sorted, double share) {
            return sorted[(int) Math.min(sorted.length - 1, share * sorted.length)] / 1e6;
        }
    }
}
