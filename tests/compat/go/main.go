// One Go client, driven by the tests: what to do is one JSON object, the only argument; what it
// sees goes to standard output, one JSON object a line. A consumer ends when its input ends.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

type message struct {
	Body       string            `json:"body"`
	Tag        string            `json:"tag"`
	Keys       []string          `json:"keys"`
	Properties map[string]string `json:"properties"`
	DelayLevel int               `json:"delayLevel"`
	Sharding   string            `json:"sharding"`
}

type task struct {
	Do         string    `json:"do"`
	Names      string    `json:"names"`
	Broker     string    `json:"broker"`
	Group      string    `json:"group"`
	Topic      string    `json:"topic"`
	How        string    `json:"how"`
	Messages   []message `json:"messages"`
	Expression string    `json:"expression"`
	IsSQL      bool      `json:"isSql"`
	IsOrdered  bool      `json:"isOrdered"`
	IsToAll    bool      `json:"isToAll"`
	Fails      []string  `json:"fails"`
	TriesMax   int32     `json:"triesMax"`
	Queue      int       `json:"queue"`
	Offset     int64     `json:"offset"`
	Secret     string    `json:"secret"`
}

var lines sync.Mutex

func tell(seen map[string]any) {
	lines.Lock()
	defer lines.Unlock()
	line, err := json.Marshal(seen)
	must(err)
	fmt.Println(string(line))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (t task) resolver() primitive.NsResolver {
	return primitive.NewPassthroughResolver([]string{t.Names})
}

func (t task) made() []*primitive.Message {
	var all []*primitive.Message
	for _, each := range t.Messages {
		one := primitive.NewMessage(t.Topic, []byte(each.Body))
		for name, value := range each.Properties {
			one.WithProperty(name, value)
		}
		if each.Tag != "" {
			one.WithTag(each.Tag)
		}
		if len(each.Keys) > 0 {
			one.WithKeys(each.Keys)
		}
		if each.Sharding != "" {
			one.WithShardingKey(each.Sharding)
		}
		if each.DelayLevel > 0 {
			one.WithDelayTimeLevel(each.DelayLevel)
		}
		all = append(all, one)
	}
	return all
}

func told(result *primitive.SendResult) map[string]any {
	return map[string]any{
		"status": int(result.Status), "id": result.MsgID, "queue": result.MessageQueue.QueueId,
		"offset": result.QueueOffset, "offsetId": result.OffsetMsgID,
	}
}

func seen(one *primitive.MessageExt) map[string]any {
	return map[string]any{
		"body": string(one.Body), "tag": one.GetTags(), "keys": one.GetKeys(), "id": one.MsgId,
		"properties": one.GetProperties(), "times": one.ReconsumeTimes,
		"queue": one.Queue.QueueId, "offset": one.QueueOffset, "topic": one.Topic,
	}
}

func (t task) options() []producer.Option {
	options := []producer.Option{
		producer.WithNsResolver(t.resolver()), producer.WithGroupName(t.Group),
		producer.WithSendMsgTimeout(15 * time.Second),
	}
	if t.Secret != "" {
		options = append(options, producer.WithCredentials(t.credentials()))
	}
	return options
}

func (t task) credentials() primitive.Credentials {
	return primitive.Credentials{AccessKey: t.Group, SecretKey: t.Secret}
}

func produce(t task) {
	options := t.options()
	if t.How == "sharded" {
		options = append(options, producer.WithQueueSelector(producer.NewHashQueueSelector()))
	}
	p, err := rocketmq.NewProducer(options...)
	must(err)
	must(p.Start())
	ctx := context.Background()
	var waiting sync.WaitGroup
	switch t.How {
	case "batch":
		result, err := p.SendSync(ctx, t.made()...)
		must(err)
		tell(told(result))
	case "request":
		for _, one := range t.made() {
			reply, err := p.Request(ctx, 15*time.Second, one)
			must(err)
			tell(map[string]any{"reply": string(reply.Body)})
		}
	default:
		for _, one := range t.made() {
			switch t.How {
			case "oneway":
				must(p.SendOneWay(ctx, one))
			case "try":
				if result, err := p.SendSync(ctx, one); err != nil {
					tell(map[string]any{"error": err.Error()})
				} else {
					tell(told(result))
				}
			case "async":
				waiting.Add(1)
				must(p.SendAsync(ctx, func(_ context.Context, result *primitive.SendResult, err error) {
					must(err)
					tell(told(result))
					waiting.Done()
				}, one))
			default:
				result, err := p.SendSync(ctx, one)
				must(err)
				tell(told(result))
			}
		}
	}
	waiting.Wait()
	must(p.Shutdown())
}

// Sends each line of the input, again and again until it is accepted.
func relay(t task) {
	p, err := rocketmq.NewProducer(
		producer.WithNsResolver(t.resolver()), producer.WithGroupName(t.Group),
		producer.WithSendMsgTimeout(3*time.Second))
	must(err)
	must(p.Start())
	tell(map[string]any{"ready": true})
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		for {
			one := primitive.NewMessage(t.Topic, []byte(lines.Text()))
			result, err := p.SendSync(context.Background(), one)
			if err == nil && result.Status == primitive.SendOK {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		tell(map[string]any{"sent": lines.Text()})
	}
	must(p.Shutdown())
}

// A message's body is its fate: "commit", "rollback", "commit later" or "rollback later".
type fates struct{}

func (fates) ExecuteLocalTransaction(one *primitive.Message) primitive.LocalTransactionState {
	switch string(one.Body) {
	case "commit":
		return primitive.CommitMessageState
	case "rollback":
		return primitive.RollbackMessageState
	}
	return primitive.UnknowState
}

func (fates) CheckLocalTransaction(one *primitive.MessageExt) primitive.LocalTransactionState {
	tell(map[string]any{"asked": string(one.Body)})
	if string(one.Body) == "commit later" {
		return primitive.CommitMessageState
	}
	return primitive.RollbackMessageState
}

func transact(t task) {
	p, err := rocketmq.NewTransactionProducer(fates{}, t.options()...)
	must(err)
	must(p.Start())
	for _, one := range t.made() {
		result, err := p.SendMessageInTransaction(context.Background(), one)
		must(err)
		tell(map[string]any{"state": int(result.State), "id": result.MsgID})
	}
	untilInputEnds()
	must(p.Shutdown())
}

func consume(t task) {
	selector := consumer.MessageSelector{Type: consumer.TAG, Expression: t.Expression}
	if t.IsSQL {
		selector.Type = consumer.SQL92
	}
	options := []consumer.Option{
		consumer.WithNsResolver(t.resolver()), consumer.WithGroupName(t.Group),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
		consumer.WithConsumerOrder(t.IsOrdered),
	}
	if t.Secret != "" {
		options = append(options, consumer.WithCredentials(t.credentials()))
	}
	if t.TriesMax > 0 {
		options = append(options, consumer.WithMaxReconsumeTimes(t.TriesMax))
	}
	if t.IsToAll {
		options = append(options, consumer.WithConsumerModel(consumer.BroadCasting))
	}
	c, err := rocketmq.NewPushConsumer(options...)
	must(err)
	fails := map[string]bool{}
	for _, body := range t.Fails {
		fails[body] = true
	}
	listen := func(_ context.Context, all ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, one := range all {
			tell(seen(one))
			if fails[string(one.Body)] {
				return consumer.ConsumeRetryLater, nil
			}
		}
		return consumer.ConsumeSuccess, nil
	}
	if t.How == "answer" {
		listen = answering(t)
	}
	must(c.Subscribe(t.Topic, selector, listen))
	must(c.Start())
	untilInputEnds()
	must(c.Shutdown())
}

// Answers requests: the reply is the question with "re:" before it.
func answering(t task) func(context.Context, ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
	p, err := rocketmq.NewProducer(
		producer.WithNsResolver(t.resolver()), producer.WithGroupName(t.Group+"_replies"))
	must(err)
	must(p.Start())
	return func(_ context.Context, all ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, one := range all {
			body := append([]byte("re:"), one.Body...)
			reply, err := consumer.CreateReplyMessage(one, body)
			must(err)
			reply.Body = body // which this client's version 2.1.2 forgets
			_, err = p.SendSync(context.Background(), reply)
			must(err)
		}
		return consumer.ConsumeSuccess, nil
	}
}

func pull(t task) {
	c, err := rocketmq.NewPullConsumer(
		consumer.WithNsResolver(t.resolver()), consumer.WithGroupName(t.Group))
	must(err)
	must(c.Subscribe(t.Topic, consumer.MessageSelector{}))
	must(c.Start())
	queue := &primitive.MessageQueue{Topic: t.Topic, BrokerName: t.Broker, QueueId: t.Queue}
	result, err := c.PullFrom(context.Background(), queue, t.Offset, 32)
	must(err)
	tell(map[string]any{
		"status": int(result.Status), "next": result.NextBeginOffset,
		"min": result.MinOffset, "max": result.MaxOffset,
	})
	for _, one := range result.GetMessageExts() {
		tell(seen(one))
	}
	must(c.Shutdown())
}

func administer(t task) {
	a, err := admin.NewAdmin(admin.WithResolver(t.resolver()))
	must(err)
	ctx := context.Background()
	must(a.CreateTopic(ctx, admin.WithTopicCreate(t.Topic), admin.WithBrokerAddrCreate(t.Broker)))
	list, err := a.FetchAllTopicList(ctx)
	must(err)
	groups, err := a.GetAllSubscriptionGroup(ctx, t.Broker, 10*time.Second)
	must(err)
	names := []string{}
	for name := range groups.SubscriptionGroupTable {
		names = append(names, name)
	}
	tell(map[string]any{"topics": list.TopicList, "groups": names})
	must(a.DeleteTopic(ctx, admin.WithTopicDelete(t.Topic), admin.WithBrokerAddrDelete(t.Broker)))
	must(a.Close())
}

func untilInputEnds() {
	tell(map[string]any{"ready": true})
	_, _ = io.ReadAll(os.Stdin)
}

func main() {
	rlog.SetLogLevel("error")
	var t task
	must(json.Unmarshal([]byte(os.Args[1]), &t))
	map[string]func(task){
		"produce": produce, "transact": transact, "consume": consume, "pull": pull,
		"administer": administer, "relay": relay,
	}[t.Do](t)
}
