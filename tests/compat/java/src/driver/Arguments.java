package driver;

import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The arguments of one command: missing ones are an error unless a default is given. */
final class Arguments {
    private final JSONObject values;

    Arguments(JSONObject values) {
        this.values = values;
    }

    boolean has(String key) {
        return values.get(key) != null;
    }

    String text(String key) {
        return required(key, values.getString(key));
    }

    String text(String key, String otherwise) {
        return has(key) ? values.getString(key) : otherwise;
    }

    int number(String key) {
        return required(key, values.getInteger(key));
    }

    int number(String key, int otherwise) {
        return has(key) ? values.getIntValue(key) : otherwise;
    }

    long big(String key) {
        return required(key, values.getLong(key));
    }

    long big(String key, long otherwise) {
        return has(key) ? values.getLongValue(key) : otherwise;
    }

    boolean flag(String key) {
        return flag(key, false);
    }

    boolean flag(String key, boolean otherwise) {
        return has(key) ? values.getBooleanValue(key) : otherwise;
    }

    byte[] bytes(String key) {
        return Base64.getDecoder().decode(text(key));
    }

    /** A list of texts; a single text counts as a list of one. */
    List<String> texts(String key) {
        List<String> texts = new ArrayList<>();
        Object value = values.get(key);
        if (value instanceof JSONArray) {
            ((JSONArray) value).forEach(item -> texts.add(String.valueOf(item)));
        } else if (value != null) {
            texts.add(String.valueOf(value));
        }
        return texts;
    }

    /** A list of objects, each to be read like the arguments of a command. */
    List<Arguments> objects(String key) {
        List<Arguments> objects = new ArrayList<>();
        JSONArray array = required(key, values.getJSONArray(key));
        for (int i = 0; i < array.size(); i++) {
            objects.add(new Arguments(array.getJSONObject(i)));
        }
        return objects;
    }

    /** An object of texts, in no particular order; empty if it is missing. */
    Map<String, String> map(String key) {
        Map<String, String> map = new LinkedHashMap<>();
        if (has(key)) {
            JSONObject object = values.getJSONObject(key);
            object.keySet().forEach(name -> map.put(name, object.getString(name)));
        }
        return map;
    }

    private static <T> T required(String key, T value) {
        if (value == null) {
            throw new IllegalArgumentException("missing argument: " + key);
        }
        return value;
    }
}
