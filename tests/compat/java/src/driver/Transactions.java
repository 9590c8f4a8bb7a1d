package driver;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionSendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Ends transactions as planned: what the local part says, and what each check of the broker is told. */
final class Transactions implements TransactionListener {
    private final String producer;
    private final List<String> checksOtherwise;
    private final Output output;
    private final Map<String, Plan> plans = new ConcurrentHashMap<>();
    private final Map<String, Integer> checksSeen = new ConcurrentHashMap<>();

    /** {@code checksOtherwise} answers for messages that this producer did not send itself. */
    Transactions(String producer, List<String> checksOtherwise, Output output) {
        this.producer = producer;
        this.checksOtherwise = checksOtherwise;
        this.output = output;
    }

    /** One message's plan: commit, rollback, unknown or throw now; then an answer for each check. */
    static final class Plan {
        private final String local;
        private final List<String> checks;

        private Plan(String local, List<String> checks) {
            this.local = local;
            this.checks = checks;
        }

        static Plan of(Arguments args) {
            return new Plan(args.text("local", "commit"), args.texts("check"));
        }
    }

    @Override
    public LocalTransactionState executeLocalTransaction(Message message, Object plan) {
        plans.put(message.getTransactionId(), (Plan) plan);
        return state(((Plan) plan).local);
    }

    @Override
    public LocalTransactionState checkLocalTransaction(MessageExt message) {
        String id = message.getTransactionId();
        int seen = checksSeen.merge(id, 1, Integer::sum);
        String answer = checkAnswer(id, seen);
        output.event("check", Json.map("producer", producer, "transactionId", id, "times", seen,
            "answer", answer, "message", Messages.show(message)));
        return state(answer);
    }

    /** The answer for this check; the last one given serves for all that follow. */
    private String checkAnswer(String id, int seen) {
        Plan plan = plans.get(id);
        List<String> answers = plan == null || plan.checks.isEmpty() ? checksOtherwise : plan.checks;
        return answers.isEmpty() ? "unknown" : answers.get(Math.min(seen, answers.size()) - 1);
    }

    private static LocalTransactionState state(String word) {
        switch (word) {
            case "commit":
                return LocalTransactionState.COMMIT_MESSAGE;
            case "rollback":
                return LocalTransactionState.ROLLBACK_MESSAGE;
            case "unknown":
                return LocalTransactionState.UNKNOW;
            case "throw":
                throw new IllegalStateException("planned failure");
            default:
                throw new IllegalArgumentException("commit, rollback, unknown or throw, not " + word);
        }
    }

    static String localState(SendResult sent) {
        return sent instanceof TransactionSendResult
            ? String.valueOf(((TransactionSendResult) sent).getLocalTransactionState())
            : null;
    }
}
