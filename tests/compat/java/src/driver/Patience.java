package driver;

import java.util.concurrent.Callable;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;

/** Limits that clients have of their own, stretched for a slow machine. */
final class Patience {
    static final int REQUEST_MS = 60_000;
    private static final int PAUSE_MS = 200;

    private Patience() {
    }

    /** Lets what is asked for in an administrator's way, topics and single messages, take longer. */
    static void grant(MQClientInstance client) {
        client.getMQAdminImpl().setTimeoutMillis(REQUEST_MS);
    }

    /**
     * Sends, and again as long as the client knows no route and so has sent nothing: it gives up when the
     * lock under which it asks for routes is not free within 3 seconds.
     */
    static <T> T routed(Callable<T> send) throws Exception {
        long deadline = System.currentTimeMillis() + REQUEST_MS;
        while (true) {
            try {
                return send.call();
            } catch (MQClientException failed) {
                if (!lacksRoute(failed) || System.currentTimeMillis() > deadline) {
                    throw failed;
                }
                Thread.sleep(PAUSE_MS);
            }
        }
    }

    private static boolean lacksRoute(Throwable failed) {
        return failed != null && (String.valueOf(failed.getMessage()).contains("No route info ")
            || lacksRoute(failed.getCause()));
    }
}
