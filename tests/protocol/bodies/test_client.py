from __future__ import annotations

from sprocket.protocol.bodies import ConsumerData, HeartbeatBody, ProducerData, SubscriptionData


def test_a_heartbeat_is_written_as_java_writes_it() -> None:
    subscription = SubscriptionData(
        code_set=[65], sub_string="A", sub_version=9, tags_set=["A"], topic="t"
    )
    consumer = ConsumerData(
        "CONSUME_FROM_LAST_OFFSET", "CONSUME_PASSIVELY", "g", "CLUSTERING", [subscription]
    )
    body = HeartbeatBody("c@1", [consumer], 0, [ProducerData("p")], False)
    assert body.encode() == (
        b'{"clientID":"c@1","consumerDataSet":[{"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET",'
        b'"consumeType":"CONSUME_PASSIVELY","groupName":"g","messageModel":"CLUSTERING",'
        b'"subscriptionDataSet":[{"classFilterMode":false,"codeSet":[65],"expressionType":"TAG",'
        b'"subString":"A","subVersion":9,"tagsSet":["A"],"topic":"t"}],"unitMode":false}],'
        b'"heartbeatFingerprint":0,"producerDataSet":[{"groupName":"p"}],"withoutSub":false}'
    )
    assert HeartbeatBody.decode(body.encode()) == body


def test_numbers_and_texts_of_the_cpp_client_are_understood() -> None:
    body = HeartbeatBody.decode(
        b'{"clientID":"c","consumerDataSet":[{"groupName":"g","consumeFromWhere":4,'
        b'"consumeType":1,"messageModel":0,"subscriptionDataSet":[{"codeSet":["65"],'
        b'"subString":"A","subVersion":"123","tagsSet":["A"],"topic":"t"}]}]}'
    )
    (consumer,) = body.consumers
    assert consumer.consume_from_where == "CONSUME_FROM_FIRST_OFFSET"
    assert consumer.consume_type == "CONSUME_PASSIVELY"
    assert consumer.message_model == "BROADCASTING"
    assert consumer.subscriptions[0].code_set == [65]
    assert consumer.subscriptions[0].sub_version == 123


def test_a_heartbeat_without_client_id_and_with_unquoted_names_is_read() -> None:
    body = HeartbeatBody.decode(b"{consumerDataSet:[],producerDataSet:[{groupName:'p'}]}")
    assert body == HeartbeatBody(producers=[ProducerData("p")])
