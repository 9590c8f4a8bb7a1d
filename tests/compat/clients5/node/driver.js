// RocketMQ's Node client of gRPC, driven by the tests: ../README.md says by what words.
'use strict';

const readline = require('node:readline');
const rocketmq = require('rocketmq-client-nodejs');

const TAG = 1;
const SQL = 2;
const COMMIT = 1;
const ROLLBACK = 2;

const quiet = { info() {}, warn() {}, error() {}, debug() {} };
const tasks = new Map();
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

class Task {
  constructor(words) {
    this.words = words;
    this.ended = new Promise((done) => {
      this.end = () => {
        this.isOver = true;
        done();
      };
    });
  }

  tell(seen) {
    process.stdout.write(`${JSON.stringify({ id: this.words.id, ...seen })}\n`);
  }

  fail(what, error) {
    this.tell({ [what]: `${error.name}: ${error.message}`, code: error.code });
  }

  options(more) {
    const { endpoint, tls, accessKey, secretKey } = this.words;
    const usual = { namespace: '', requestTimeout: 30000, logger: quiet };
    if (accessKey) usual.sessionCredentials = { accessKey, accessSecret: secretKey };
    return { endpoints: endpoint, sslEnabled: Boolean(tls), ...usual, ...more };
  }

  subscriptions() {
    const { topic, expression, isSql } = this.words;
    const filter = new rocketmq.FilterExpression(expression ?? '*', isSql ? SQL : TAG);
    return new Map([[topic, filter]]);
  }

  made(told) {
    const made = { topic: this.words.topic, body: Buffer.from(told.body) };
    if (told.tag) made.tag = told.tag;
    if (told.keys) made.keys = told.keys;
    if (told.properties) made.properties = new Map(Object.entries(told.properties));
    if (told.group) made.messageGroup = told.group;
    if (told.delayMs) made.delay = told.delayMs;
    if (told.priority !== undefined) made.priority = told.priority;
    return made;
  }

  show(message, more) {
    this.tell({
      body: message.body.toString(),
      messageId: message.messageId,
      tag: message.tag,
      keys: [...message.keys].sort(),
      properties: Object.fromEntries(message.properties),
      group: message.messageGroup,
      attempt: message.deliveryAttempt,
      ...more,
    });
  }

  async send() {
    const { topic, messages, recall } = this.words;
    const producer = new rocketmq.Producer(this.options({ topic }));
    await producer.startup();
    for (const told of messages) {
      try {
        const receipt = await producer.send(this.made(told));
        const handle = receipt.recallHandle;
        this.tell({ sent: told.body, messageId: receipt.messageId, handle });
        if (recall) {
          const recalled = await producer.recallMessage(topic, handle);
          this.tell({ recalled: recalled.messageId });
        }
      } catch (error) {
        this.fail('refused', error);
      }
    }
    await producer.shutdown();
  }

  async transact() {
    const { topic, messages } = this.words;
    const checker = {
      check: async (message) => {
        const body = message.body.toString();
        this.tell({ asked: body });
        return body === 'commit later' ? COMMIT : ROLLBACK;
      },
    };
    const producer = new rocketmq.Producer(this.options({ topic, checker }));
    await producer.startup();
    this.tell({ ready: true });
    for (const told of messages) {
      try {
        const transaction = producer.beginTransaction();
        await producer.send(this.made(told), transaction);
        if (told.body === 'commit') await transaction.commit();
        if (told.body === 'rollback') await transaction.rollback();
        this.tell({ sent: told.body });
      } catch (error) {
        this.fail('refused', error);
      }
    }
    await this.ended;
    await producer.shutdown();
  }

  async receive() {
    const { group, max, awaitMs, invisibleMs } = this.words;
    const consumer = new rocketmq.SimpleConsumer(
      this.options({
        consumerGroup: group,
        subscriptions: this.subscriptions(),
        awaitDuration: awaitMs,
      }),
    );
    await consumer.startup();
    this.tell({ ready: true });
    while (!this.isOver) {
      try {
        for (const message of await consumer.receive(max, invisibleMs)) {
          await this.settle(consumer, message);
        }
      } catch (error) {
        this.fail('refused', error);
        await sleep(200);
      }
    }
    await consumer.shutdown();
  }

  async settle(consumer, message) {
    const then = message.deliveryAttempt === 1 ? (this.words.then ?? 'ack') : 'ack';
    try {
      if (then === 'change') {
        await consumer.changeInvisibleDuration(message, this.words.changeMs);
        this.show(message, { changed: true });
      } else if (then === 'nothing') {
        this.show(message, { left: true });
      } else {
        await consumer.ack(message);
        this.show(message, { acked: true });
      }
    } catch (error) {
      this.fail('refused', error);
      this.show(message, {});
    }
  }

  async consume() {
    const { group, fails = [], failsOnce = [] } = this.words;
    const messageListener = {
      consume: async (message) => {
        const body = message.body.toString();
        const isFirst = message.deliveryAttempt === 1;
        const failed = fails.includes(body) || (failsOnce.includes(body) && isFirst);
        this.show(message, { failed });
        return failed ? rocketmq.ConsumeResult.FAILURE : rocketmq.ConsumeResult.SUCCESS;
      },
    };
    const consumer = new rocketmq.PushConsumer(
      this.options({
        consumerGroup: group,
        subscriptions: this.subscriptions(),
        messageListener,
        longPollingTimeout: 5000,
      }),
    );
    await consumer.startup();
    this.tell({ ready: true });
    await this.ended;
    await consumer.shutdown();
  }

  async run() {
    try {
      await this[this.words.do]();
      this.tell({ done: true });
    } catch (error) {
      this.fail('failed', error);
    }
  }
}

const input = readline.createInterface({ input: process.stdin });
input.on('line', (line) => {
  const words = JSON.parse(line);
  if (words.end !== undefined) {
    tasks.get(words.end).end();
    return;
  }
  const task = new Task(words);
  tasks.set(words.id, task);
  task.run();
});
input.on('close', () => process.exit(0));
