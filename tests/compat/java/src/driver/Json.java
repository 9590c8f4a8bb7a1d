package driver;

import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONObject;
import com.alibaba.fastjson.serializer.SerializerFeature;
import java.util.LinkedHashMap;
import java.util.Map;

/** JSON text to and from maps, with the library that every RocketMQ client brings along. */
final class Json {
    private Json() {
    }

    static JSONObject read(String line) {
        return JSON.parseObject(line);
    }

    static String write(Map<String, Object> value) {
        return JSON.toJSONString(value, SerializerFeature.DisableCircularReferenceDetect,
            SerializerFeature.WriteMapNullValue);
    }

    /** A map in the given order: name, value, name, value. */
    static Map<String, Object> map(Object... pairs) {
        Map<String, Object> map = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2) {
            map.put((String) pairs[i], pairs[i + 1]);
        }
        return map;
    }
}
