package driver;

import java.io.IOException;
import java.lang.reflect.Method;
import java.util.Arrays;

/** Runs another program's main method, so that no process outlives its purpose. */
public final class Launch {
    private Launch() {
    }

    /**
     * {@code tied MAIN ARGS...}: a server that ends when the owner of its standard input ends.
     * {@code once MAIN ARGS...}: a tool that ends when its main method returns, whatever threads it leaves.
     */
    public static void main(String[] args) throws Exception {
        Method main = Class.forName(args[1]).getMethod("main", String[].class);
        String[] rest = Arrays.copyOfRange(args, 2, args.length);
        if (args[0].equals("tied")) {
            endWithStandardInput();
            main.invoke(null, (Object) rest);
        } else {
            main.invoke(null, (Object) rest);
            System.exit(0);
        }
    }

    private static void endWithStandardInput() {
        Thread watch = new Thread(Launch::haltAtEndOfInput, "standard-input");
        watch.setDaemon(true);
        watch.start();
    }

    private static void haltAtEndOfInput() {
        try {
            while (System.in.read() >= 0) {
                continue;
            }
        } catch (IOException broken) {
            System.err.println("standard input is gone: " + broken);
        }
        Runtime.getRuntime().halt(1);
    }
}
