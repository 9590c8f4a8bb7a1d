// RocketMQ's Go client of gRPC, driven by the tests: ../README.md says by what words.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	rmq "github.com/apache/rocketmq-clients/golang/v5"
	"github.com/apache/rocketmq-clients/golang/v5/credentials"
	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
)

type message struct {
	Body       string            `json:"body"`
	Tag        string            `json:"tag"`
	Keys       []string          `json:"keys"`
	Properties map[string]string `json:"properties"`
	Group      string            `json:"group"`
	DelayMs    int64             `json:"delayMs"`
	Priority   *int32            `json:"priority"`
}

type task struct {
	ID          int       `json:"id"`
	End         int       `json:"end"`
	Do          string    `json:"do"`
	Endpoint    string    `json:"endpoint"`
	TLS         bool      `json:"tls"`
	Topic       string    `json:"topic"`
	Group       string    `json:"group"`
	Messages    []message `json:"messages"`
	Recall      bool      `json:"recall"`
	Expression  string    `json:"expression"`
	IsSQL       bool      `json:"isSql"`
	Max         int32     `json:"max"`
	AwaitMs     int64     `json:"awaitMs"`
	InvisibleMs int64     `json:"invisibleMs"`
	Then        string    `json:"then"`
	ChangeMs    int64     `json:"changeMs"`
	Fails       []string  `json:"fails"`
	FailsOnce   []string  `json:"failsOnce"`
	AccessKey   string    `json:"accessKey"`
	SecretKey   string    `json:"secretKey"`
	end         chan struct{}
}

var lines sync.Mutex

func (t *task) tell(seen map[string]any) {
	lines.Lock()
	defer lines.Unlock()
	seen["id"] = t.ID
	line, _ := json.Marshal(seen)
	fmt.Println(string(line))
}

func (t *task) fail(what string, err error) {
	seen := map[string]any{what: err.Error()}
	if status, ok := rmq.AsErrRpcStatus(err); ok {
		seen["code"] = status.Code
	}
	t.tell(seen)
}

func (t *task) config() *rmq.Config {
	keys := &credentials.SessionCredentials{AccessKey: t.AccessKey, AccessSecret: t.SecretKey}
	return &rmq.Config{Endpoint: t.Endpoint, ConsumerGroup: t.Group, Credentials: keys}
}

func (t *task) filter() map[string]*rmq.FilterExpression {
	kind := rmq.TAG
	if t.IsSQL {
		kind = rmq.SQL92
	}
	return map[string]*rmq.FilterExpression{
		t.Topic: rmq.NewFilterExpressionWithType(t.Expression, kind),
	}
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func (t *task) made(m message) *rmq.Message {
	made := &rmq.Message{Topic: t.Topic, Body: []byte(m.Body)}
	if m.Tag != "" {
		made.SetTag(m.Tag)
	}
	if len(m.Keys) > 0 {
		made.SetKeys(m.Keys...)
	}
	for key, value := range m.Properties {
		made.AddProperty(key, value)
	}
	if m.Group != "" {
		made.SetMessageGroup(m.Group)
	}
	if m.DelayMs != 0 {
		made.SetDelayTimestamp(time.Now().Add(ms(m.DelayMs)))
	}
	if m.Priority != nil {
		made.SetPriority(*m.Priority)
	}
	return made
}

func (t *task) show(m *rmq.MessageView, more map[string]any) {
	seen := map[string]any{
		"body": string(m.GetBody()), "messageId": m.GetMessageId(), "keys": m.GetKeys(),
		"properties": m.GetProperties(), "attempt": m.GetDeliveryAttempt(),
	}
	if m.GetTag() != nil {
		seen["tag"] = *m.GetTag()
	}
	if m.GetMessageGroup() != nil {
		seen["group"] = *m.GetMessageGroup()
	}
	for key, value := range more {
		seen[key] = value
	}
	t.tell(seen)
}

type client interface {
	Start() error
	GracefulStop() error
}

// The client gives its first requests three seconds, which a busy machine may need for itself.
func started[C client](made func() (C, error)) (C, error) {
	for try := 1; ; try++ {
		client, err := made()
		if err == nil {
			err = client.Start()
		}
		if err == nil || try == 5 || !strings.Contains(strings.ToLower(err.Error()), "deadline") {
			return client, err
		}
	}
}

func (t *task) send() error {
	producer, err := started(func() (rmq.Producer, error) {
		return rmq.NewProducer(t.config(), rmq.WithTopics(t.Topic))
	})
	if err != nil {
		return err
	}
	defer producer.GracefulStop()
	for _, each := range t.Messages {
		receipts, err := producer.Send(context.Background(), t.made(each))
		if err != nil {
			t.fail("refused", err)
			continue
		}
		t.tell(map[string]any{
			"sent": each.Body, "messageId": receipts[0].MessageID, "handle": receipts[0].RecallHandle,
		})
		if t.Recall {
			recalled, err := producer.Recall(context.Background(), t.Topic, receipts[0].RecallHandle)
			if err != nil {
				t.fail("refused", err)
				continue
			}
			t.tell(map[string]any{"recalled": recalled})
		}
	}
	return nil
}

func (t *task) transact() error {
	check := func(m *rmq.MessageView) rmq.TransactionResolution {
		t.tell(map[string]any{"asked": string(m.GetBody())})
		if string(m.GetBody()) == "commit later" {
			return rmq.COMMIT
		}
		return rmq.ROLLBACK
	}
	checker := rmq.WithTransactionChecker(&rmq.TransactionChecker{Check: check})
	producer, err := started(func() (rmq.Producer, error) {
		return rmq.NewProducer(t.config(), rmq.WithTopics(t.Topic), checker)
	})
	if err != nil {
		return err
	}
	defer producer.GracefulStop()
	t.tell(map[string]any{"ready": true})
	for _, each := range t.Messages {
		transaction := producer.BeginTransaction()
		_, err := producer.SendWithTransaction(context.Background(), t.made(each), transaction)
		if err == nil && each.Body == "commit" {
			err = transaction.Commit()
		} else if err == nil && each.Body == "rollback" {
			err = transaction.RollBack()
		}
		if err != nil {
			t.fail("refused", err)
			continue
		}
		t.tell(map[string]any{"sent": each.Body})
	}
	<-t.end
	return nil
}

func (t *task) receive() error {
	consumer, err := started(func() (rmq.SimpleConsumer, error) {
		return rmq.NewSimpleConsumer(
			t.config(), rmq.WithSimpleAwaitDuration(ms(t.AwaitMs)),
			rmq.WithSimpleSubscriptionExpressions(t.filter()),
		)
	})
	if err != nil {
		return err
	}
	defer consumer.GracefulStop()
	t.tell(map[string]any{"ready": true})
	for {
		select {
		case <-t.end:
			return nil
		default:
		}
		found, err := consumer.Receive(context.Background(), t.Max, ms(t.InvisibleMs))
		if err != nil {
			if status, ok := rmq.AsErrRpcStatus(err); !ok || status.Code != int32(v2.Code_MESSAGE_NOT_FOUND) {
				t.fail("refused", err)
				time.Sleep(ms(200))
			}
			continue
		}
		for _, m := range found {
			t.settle(consumer, m)
		}
	}
}

func (t *task) settle(consumer rmq.SimpleConsumer, m *rmq.MessageView) {
	settled := "acked"
	var err error
	switch {
	case t.Then == "change" && m.GetDeliveryAttempt() == 1:
		settled = "changed"
		err = consumer.ChangeInvisibleDuration(m, ms(t.ChangeMs))
	case t.Then == "nothing" && m.GetDeliveryAttempt() == 1:
		settled = "left"
	default:
		err = consumer.Ack(context.Background(), m)
	}
	if err != nil {
		t.fail("refused", err)
	}
	t.show(m, map[string]any{settled: err == nil})
}

func (t *task) consume() error {
	listen := func(m *rmq.MessageView) rmq.ConsumerResult {
		body := string(m.GetBody())
		fails := slices.Contains(t.Fails, body) ||
			slices.Contains(t.FailsOnce, body) && m.GetDeliveryAttempt() == 1
		t.show(m, map[string]any{"failed": fails})
		if fails {
			return rmq.FAILURE
		}
		return rmq.SUCCESS
	}
	consumer, err := started(func() (rmq.PushConsumer, error) {
		return rmq.NewPushConsumer(
			t.config(), rmq.WithPushAwaitDuration(5*time.Second),
			rmq.WithPushSubscriptionExpressions(t.filter()),
			rmq.WithPushMessageListener(&rmq.FuncMessageListener{Consume: listen}),
			rmq.WithPushConsumptionThreadCount(4),
		)
	})
	if err != nil {
		return err
	}
	defer consumer.GracefulStop()
	t.tell(map[string]any{"ready": true})
	<-t.end
	return nil
}

func (t *task) run() {
	rmq.EnableSsl = t.TLS
	do := map[string]func() error{
		"send": t.send, "transact": t.transact, "receive": t.receive, "consume": t.consume,
	}[t.Do]
	if err := do(); err != nil {
		t.fail("failed", err)
		return
	}
	t.tell(map[string]any{"done": true})
}

func main() {
	rmq.ResetLogger()
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 16<<20)
	running := map[int]*task{}
	for input.Scan() {
		t := &task{end: make(chan struct{})}
		if err := json.Unmarshal(input.Bytes(), t); err != nil {
			panic(err)
		}
		if t.End != 0 {
			close(running[t.End].end)
			continue
		}
		running[t.ID] = t
		go t.run()
	}
}
