//! RocketMQ's Rust client of gRPC, driven by the tests: ../../README.md says by what words.
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rocketmq::conf::{ClientOption, ProducerOption, SimpleConsumerOption};
use rocketmq::error::ClientError;
use rocketmq::model::common::{FilterExpression, FilterType};
use rocketmq::model::message::{Message, MessageBuilder, MessageView};
use rocketmq::model::transaction::{Transaction, TransactionResolution};
use rocketmq::{Producer, SimpleConsumer};
use serde_json::{json, Value};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::watch;

struct Task {
    words: Value,
    end: watch::Receiver<bool>,
}

fn tell(id: &Value, mut seen: Value) {
    seen["id"] = id.clone();
    println!("{seen}");
}

impl Task {
    fn text(&self, name: &str) -> &str {
        self.words[name].as_str().unwrap_or("")
    }

    fn ms(&self, name: &str) -> Duration {
        Duration::from_millis(self.words[name].as_u64().unwrap_or(0))
    }

    fn tell(&self, seen: Value) {
        tell(&self.words["id"], seen);
    }

    /// The client keeps the code in the context of its errors.
    fn fail(&self, what: &str, error: &ClientError) {
        let code = error.context().iter().find(|(key, _)| *key == "code");
        let code = code.and_then(|(_, value)| value.parse::<i32>().ok());
        self.tell(json!({what: format!("{error:?}"), "code": code}));
    }

    fn client(&self) -> ClientOption {
        let mut option = ClientOption::default();
        option.set_access_url(self.text("endpoint"));
        option.set_enable_tls(self.words["tls"].as_bool().unwrap_or(false));
        option.set_timeout(Duration::from_secs(10));
        option
    }

    fn producer_option(&self) -> ProducerOption {
        let mut option = ProducerOption::default();
        option.set_topics(vec![self.text("topic")]);
        option
    }

    fn made(&self, told: &Value, in_transaction: bool) -> Result<impl Message, ClientError> {
        let body = told["body"].as_str().unwrap().as_bytes().to_vec();
        let mut made = MessageBuilder::builder().set_topic(self.text("topic")).set_body(body);
        if let Some(tag) = told["tag"].as_str() {
            made = made.set_tag(tag);
        }
        if let Some(keys) = told["keys"].as_array() {
            made = made.set_keys(keys.iter().map(|key| key.as_str().unwrap()).collect());
        }
        if let Some(properties) = told["properties"].as_object() {
            let pairs = properties.iter().map(|(key, value)| (key.clone(), value.as_str().unwrap()));
            made = made.set_properties(pairs.collect::<HashMap<_, _>>());
        }
        if let Some(group) = told["group"].as_str() {
            made = made.set_message_group(group);
        }
        if let Some(delay_ms) = told["delayMs"].as_u64() {
            let due = SystemTime::now() + Duration::from_millis(delay_ms);
            // This client takes whole seconds.
            let seconds = due.duration_since(UNIX_EPOCH).unwrap().as_secs();
            made = made.set_delivery_timestamp(seconds as i64);
        }
        if in_transaction {
            made = made.enable_transaction();
        }
        made.build()
    }

    fn show(&self, message: &MessageView, how: &str) {
        self.tell(json!({
            "body": String::from_utf8_lossy(message.body()), "messageId": message.message_id(),
            "tag": message.tag(), "keys": message.keys(), "properties": message.properties(),
            "group": message.message_group(), "attempt": message.delivery_attempt(), how: true,
        }));
    }

    async fn send(&self) -> Result<(), ClientError> {
        let mut producer = Producer::new(self.producer_option(), self.client())?;
        producer.start().await?;
        for told in self.words["messages"].as_array().unwrap() {
            let sent = match self.made(told, false) {
                Ok(message) => producer.send(message).await,
                Err(error) => Err(error),
            };
            match sent {
                Ok(receipt) => {
                    self.tell(json!({"sent": told["body"], "messageId": receipt.message_id()}))
                }
                Err(error) => self.fail("refused", &error),
            }
        }
        producer.shutdown().await
    }

    async fn transact(&mut self) -> Result<(), ClientError> {
        let id = self.words["id"].clone();
        let check = move |_, message: MessageView| {
            let body = String::from_utf8_lossy(message.body()).to_string();
            tell(&id, json!({"asked": body}));
            match body.as_str() {
                "commit later" => TransactionResolution::COMMIT,
                _ => TransactionResolution::ROLLBACK,
            }
        };
        let option = self.producer_option();
        let mut producer =
            Producer::new_transaction_producer(option, self.client(), Box::new(check))?;
        producer.start().await?;
        self.tell(json!({"ready": true}));
        for told in self.words["messages"].as_array().unwrap() {
            let message = self.made(told, true)?;
            let settled = match producer.send_transaction_message(message).await {
                Ok(transaction) => match told["body"].as_str() {
                    Some("commit") => transaction.commit().await,
                    Some("rollback") => transaction.rollback().await,
                    _ => Ok(()),
                },
                Err(error) => Err(error),
            };
            match settled {
                Ok(()) => self.tell(json!({"sent": told["body"]})),
                Err(error) => self.fail("refused", &error),
            }
        }
        let _ = self.end.wait_for(|is_over| *is_over).await;
        producer.shutdown().await
    }

    /// It polls for as long as it likes, 40 seconds; a call under way is given up at the end.
    async fn receive(&mut self) -> Result<(), ClientError> {
        let mut option = SimpleConsumerOption::default();
        option.set_consumer_group(self.text("group"));
        option.set_topics(vec![self.text("topic")]);
        let mut consumer = SimpleConsumer::new(option, self.client())?;
        consumer.start().await?;
        self.tell(json!({"ready": true}));
        let is_sql = self.words["isSql"].as_bool().unwrap_or(false);
        let kind = if is_sql { FilterType::Sql } else { FilterType::Tag };
        let filter = FilterExpression::new(kind, self.words["expression"].as_str().unwrap_or("*"));
        let max = self.words["max"].as_i64().unwrap_or(32) as i32;
        let mut end = self.end.clone();
        loop {
            let invisible = self.ms("invisibleMs");
            let received = tokio::select! {
                received = consumer.receive_with(self.text("topic"), &filter, max, invisible) => received,
                _ = end.wait_for(|is_over| *is_over) => break,
            };
            match received {
                Ok(messages) => {
                    for message in messages {
                        let is_left = self.text("then") == "nothing";
                        if is_left && message.delivery_attempt() == 1 {
                            self.show(&message, "left");
                            continue;
                        }
                        match consumer.ack(&message).await {
                            Ok(()) => self.show(&message, "acked"),
                            Err(error) => self.fail("refused", &error),
                        }
                    }
                }
                Err(error) => {
                    self.fail("refused", &error);
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            }
        }
        consumer.shutdown().await
    }

    async fn run(mut self) {
        let done = match self.text("do") {
            "send" => self.send().await,
            "transact" => self.transact().await,
            "receive" => self.receive().await,
            other => panic!("this client cannot {other}"),
        };
        match done {
            Ok(()) => self.tell(json!({"done": true})),
            Err(error) => self.fail("failed", &error),
        }
    }
}

#[tokio::main]
async fn main() {
    let mut ends: HashMap<i64, Arc<watch::Sender<bool>>> = HashMap::new();
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let words: Value = serde_json::from_str(&line).unwrap();
        if let Some(number) = words["end"].as_i64() {
            let _ = ends[&number].send(true);
            continue;
        }
        let (sender, end) = watch::channel(false);
        ends.insert(words["id"].as_i64().unwrap(), Arc::new(sender));
        tokio::spawn(Task { words, end }.run());
    }
    std::process::exit(0);
}
