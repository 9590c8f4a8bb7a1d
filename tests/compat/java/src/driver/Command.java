package driver;

import java.util.Map;

/** One thing the driver can be told to do; the map becomes the fields of its answer. */
interface Command {
    Map<String, Object> run(Arguments args) throws Exception;
}
