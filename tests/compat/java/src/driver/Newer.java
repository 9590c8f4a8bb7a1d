package driver;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;

/** Calls methods that only some client versions have. */
final class Newer {
    private Newer() {
    }

    /** Calls the method whose parameters are of exactly the classes of the given arguments. */
    static Object call(Object target, String name, Object... args) throws Exception {
        Class<?>[] types = Arrays.stream(args).map(Object::getClass).toArray(Class<?>[]::new);
        Method method = target.getClass().getMethod(name, types);
        try {
            return method.invoke(target, args);
        } catch (InvocationTargetException failed) {
            throw Failures.cause(failed);
        }
    }

    /** What a getter says, or null in a version that does not have it. */
    static Object callOrNull(Object target, String getter) {
        try {
            return target.getClass().getMethod(getter).invoke(target);
        } catch (ReflectiveOperationException absent) {
            return null;
        }
    }
}
