package driver;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Map;
import org.apache.rocketmq.client.ClientConfig;

/** Configures clients by the names of their setters, so that no version's settings need a list here. */
final class Settings {
    /** A heartbeat that finds another under way is left out, and pulls are refused until the next one. */
    private static final int HEARTBEAT_MS = 2_000;

    private Settings() {
    }

    /** What all clients share: where the name server is, who they are, patience for a slow machine. */
    static void connect(ClientConfig client, Arguments args) throws Exception {
        client.setNamesrvAddr(args.text("namesrv"));
        client.setMqClientApiTimeout(Patience.REQUEST_MS);
        client.setHeartbeatBrokerInterval(HEARTBEAT_MS);
        client.setVipChannelEnabled(args.flag("vip"));
        if (args.has("instance")) {
            client.setInstanceName(args.text("instance"));
        }
        if (args.has("clientIp")) {
            client.setClientIP(args.text("clientIp"));
        }
    }

    /** Calls a setter for each entry of {@code set}: {@code maxReconsumeTimes} is {@code setMaxReconsumeTimes}. */
    static void apply(Object target, Map<String, String> set) throws Exception {
        for (Map.Entry<String, String> entry : set.entrySet()) {
            apply(target, entry.getKey(), entry.getValue());
        }
    }

    static void apply(Object target, String property, String text) throws Exception {
        Method setter = setter(target, property);
        try {
            setter.invoke(target, convert(setter.getParameterTypes()[0], text));
        } catch (InvocationTargetException failed) {
            throw new IllegalArgumentException(property + "=" + text + ": " + failed.getCause());
        }
    }

    private static Method setter(Object target, String property) {
        String name = "set" + Character.toUpperCase(property.charAt(0)) + property.substring(1);
        for (Method method : target.getClass().getMethods()) {
            if (method.getName().equals(name) && method.getParameterCount() == 1) {
                return method;
            }
        }
        throw new IllegalArgumentException(target.getClass().getSimpleName() + " has no " + name);
    }

    private static Object convert(Class<?> type, String text) {
        if (type == int.class || type == Integer.class) {
            return Integer.valueOf(text);
        }
        if (type == long.class || type == Long.class) {
            return Long.valueOf(text);
        }
        if (type == boolean.class || type == Boolean.class) {
            return Boolean.valueOf(text);
        }
        return type.isEnum() ? constant(type, text) : text;
    }

    private static Object constant(Class<?> type, String name) {
        for (Object constant : type.getEnumConstants()) {
            if (((Enum<?>) constant).name().equals(name)) {
                return constant;
            }
        }
        throw new IllegalArgumentException(type.getSimpleName() + " has no " + name);
    }
}
