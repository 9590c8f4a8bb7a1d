package driver;

import java.lang.reflect.InvocationTargetException;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;

/** Exceptions as answers. */
final class Failures {
    private Failures() {
    }

    /** The exception that was meant: what futures and reflection put around it is taken off. */
    static Exception cause(Throwable failed) {
        boolean wrapped = failed instanceof ExecutionException || failed instanceof InvocationTargetException;
        Throwable meant = wrapped && failed.getCause() != null ? failed.getCause() : failed;
        return meant instanceof Exception ? (Exception) meant : new IllegalStateException(meant);
    }

    static Map<String, Object> show(Throwable failed) {
        Exception meant = cause(failed);
        return Json.map("ok", false, "error", meant.getClass().getSimpleName(), "code", code(meant),
            "message", text(meant));
    }

    private static String text(Exception failed) {
        Throwable cause = failed.getCause();
        return cause == null ? String.valueOf(failed.getMessage()) : failed.getMessage() + "; cause: " + cause;
    }

    private static Integer code(Exception failed) {
        if (failed instanceof MQBrokerException) {
            return ((MQBrokerException) failed).getResponseCode();
        }
        return failed instanceof MQClientException ? ((MQClientException) failed).getResponseCode() : null;
    }
}
