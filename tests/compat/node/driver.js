'use strict';
// One Node client, driven by the tests: what to do is one JSON object, the only argument; what it
// sees goes to standard output, one JSON object a line. A consumer ends when its input ends.

const { Consumer, Message, Producer } = require(process.env.NODE_CLIENT || 'ali-ons');

const task = JSON.parse(process.argv[2]);
const tell = seen => console.log(JSON.stringify(seen));
const silent = () => {};
const logger = {
  info: silent, debug: silent, warn: silent,
  error: error => console.error(error), // a test that fails shows it
};
// The address of the name servers is given, so nothing is ever asked by HTTP.
const options = {
  nameSrv: task.names, logger, httpclient: {}, accessKeyId: 'none', accessKeySecret: 'none',
};

function made(one) {
  const message = new Message(task.topic, one.tag || '', one.body);
  if (one.keys) message.keys = one.keys;
  if (one.delayLevel) message.delayTimeLevel = one.delayLevel;
  Object.assign(message.properties, one.properties || {});
  return message;
}

async function produce() {
  const producer = new Producer({ ...options, producerGroup: task.group });
  await producer.ready();
  for (const one of task.messages) {
    const sent = await producer.send(made(one));
    tell({
      status: sent.sendStatus, id: sent.msgId, queue: sent.messageQueue.queueId,
      offset: sent.queueOffset,
    });
  }
  await producer.close();
}

async function consume() {
  const fails = new Set(task.fails);
  const consumer = new Consumer({
    ...options, consumerGroup: task.group, isBroadcast: task.isToAll,
    consumeFromWhere: 'CONSUME_FROM_FIRST_OFFSET',
    ...(task.triesMax ? { maxReconsumeTimes: task.triesMax } : {}),
  });
  const expression = task.isSql
    ? { expressionType: 'SQL92', subString: task.expression }
    : task.expression;
  consumer.subscribe(task.topic, expression, async message => {
    const body = message.body.toString();
    tell({
      body, tag: message.tags, keys: message.keys, id: message.msgId, queue: message.queueId,
      offset: message.queueOffset, times: message.reconsumeTimes, properties: message.properties,
      topic: message.topic,
    });
    if (fails.has(body)) throw new Error('not now');
  });
  consumer.on('error', error => { if (error.message !== 'not now') console.error(error); });
  await consumer.ready();
  tell({ ready: true });
  process.stdin.resume();
  await new Promise(resolve => process.stdin.on('end', resolve));
  await consumer.close();
}

({ produce, consume })[task.do]().then(() => process.exit(0), error => {
  console.error(error);
  process.exit(1);
});
