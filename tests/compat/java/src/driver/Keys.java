package driver;

import org.apache.rocketmq.remoting.RPCHook;

/** What signs a client's requests, if it is given keys. */
final class Keys {
    private static final String PACKAGE = "org.apache.rocketmq.acl.common.";

    private Keys() {
    }

    /** Reads {@code accessKey} and {@code secretKey}; null without them. The class is not in each release's client. */
    static RPCHook hook(Arguments args) throws Exception {
        if (!args.has("accessKey")) {
            return null;
        }
        Class<?> credentials = Class.forName(PACKAGE + "SessionCredentials");
        Object keys = credentials.getConstructor(String.class, String.class)
            .newInstance(args.text("accessKey"), args.text("secretKey"));
        return (RPCHook) Class.forName(PACKAGE + "AclClientRPCHook").getConstructor(credentials).newInstance(keys);
    }
}
