package driver;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** The running clients of one kind, by the name that the commands use for them. */
final class Handles<T> {
    private final String kind;
    private final Map<String, T> running = new ConcurrentHashMap<>();

    Handles(String kind) {
        this.kind = kind;
    }

    /** The name in the arguments, or the kind itself: one of a kind needs no name. */
    String name(Arguments args) {
        return args.text("name", kind);
    }

    void add(Arguments args, T handle) {
        if (running.putIfAbsent(name(args), handle) != null) {
            throw new IllegalArgumentException(kind + " runs already: " + name(args));
        }
    }

    T get(Arguments args) {
        return known(name(args), running.get(name(args)));
    }

    T find(String name) {
        return running.get(name);
    }

    T remove(Arguments args) {
        return known(name(args), running.remove(name(args)));
    }

    List<T> removeAll() {
        List<T> all = new ArrayList<>(running.values());
        running.clear();
        return all;
    }

    private T known(String name, T handle) {
        if (handle == null) {
            throw new IllegalArgumentException("no such " + kind + ": " + name);
        }
        return handle;
    }
}
