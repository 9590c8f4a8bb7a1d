// Load for a proxy of RocketMQ's gRPC service: bare calls, without a client's own work.
//
//	grpcload -endpoint 127.0.0.1:8081 -mode send -topic T -total 10000 -flight 64 -size 128
//
// Modes: send (one message a call) and receive (batches of 32, then their acknowledgement; each caller
// receives once at least). It
// prints one line of JSON: calls or messages, seconds, quantiles of the latency in ms.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	pb "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

var (
	endpoint = flag.String("endpoint", "127.0.0.1:8081", "the proxy")
	mode     = flag.String("mode", "send", "send or receive")
	topic    = flag.String("topic", "BenchGrpc", "topic")
	group    = flag.String("group", "bench", "consumer group")
	total    = flag.Int("total", 10000, "messages")
	flight   = flag.Int("flight", 64, "calls in flight")
	size     = flag.Int("size", 128, "bytes of a body")
)

type shared struct {
	client pb.MessagingServiceClient
	ctx    context.Context
	done   atomic.Int64
	mutex  sync.Mutex
	took   []time.Duration
}

func (s *shared) note(took []time.Duration) {
	s.mutex.Lock()
	s.took = append(s.took, took...)
	s.mutex.Unlock()
}

func main() {
	flag.Parse()
	conn, err := grpc.NewClient(*endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	id := fmt.Sprintf("bench@%d", os.Getpid())
	pairs := metadata.Pairs("x-mq-client-id", id, "x-mq-language", "GO",
		"x-mq-client-version", "5.1.4", "x-mq-protocol", "v2")
	s := &shared{client: pb.NewMessagingServiceClient(conn),
		ctx: metadata.NewOutgoingContext(context.Background(), pairs)}
	s.register()
	work := s.send
	if *mode == "receive" {
		work = s.receive
	}
	var group sync.WaitGroup
	began := time.Now()
	for i := 0; i < *flight; i++ {
		group.Add(1)
		go func() { defer group.Done(); work() }()
	}
	group.Wait()
	seconds := time.Since(began).Seconds()
	sort.Slice(s.took, func(a, b int) bool { return s.took[a] < s.took[b] })
	at := func(share float64) float64 {
		if len(s.took) == 0 {
			return 0
		}
		return float64(s.took[int(share*float64(len(s.took)-1))]) / 1e6
	}
	json.NewEncoder(os.Stdout).Encode(map[string]any{
		"count": s.done.Load(), "seconds": seconds, "p50": at(0.5), "p99": at(0.99)})
}

// register sends settings, without which a proxy serves no consumer.
func (s *shared) register() {
	stream, err := s.client.Telemetry(s.ctx)
	if err != nil {
		log.Fatal(err)
	}
	kind := pb.ClientType_PRODUCER
	settings := &pb.Settings{ClientType: &kind,
		PubSub: &pb.Settings_Publishing{Publishing: &pb.Publishing{
			Topics: []*pb.Resource{{Name: *topic}}}}}
	if *mode == "receive" {
		kind = pb.ClientType_SIMPLE_CONSUMER
		settings.RequestTimeout = durationpb.New(3 * time.Second)
		settings.PubSub = &pb.Settings_Subscription{Subscription: &pb.Subscription{
			Group: &pb.Resource{Name: *group},
			Subscriptions: []*pb.SubscriptionEntry{{Topic: &pb.Resource{Name: *topic},
				Expression: &pb.FilterExpression{Type: pb.FilterType_TAG, Expression: "*"}}}}}
	}
	command := &pb.TelemetryCommand{Command: &pb.TelemetryCommand_Settings{Settings: settings}}
	if err := stream.Send(command); err != nil {
		log.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		log.Fatal(err)
	}
}

func (s *shared) send() {
	var took []time.Duration
	defer func() { s.note(took) }()
	body := make([]byte, *size)
	for {
		number := s.done.Add(1)
		if number > int64(*total) {
			s.done.Add(-1)
			return
		}
		message := &pb.Message{Topic: &pb.Resource{Name: *topic}, Body: body,
			SystemProperties: &pb.SystemProperties{
				MessageId: fmt.Sprintf("01AABBCCDDEE%022X", number), BornHost: "bench",
				BornTimestamp: timestamppb.Now(), MessageType: pb.MessageType_NORMAL}}
		ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
		began := time.Now()
		reply, err := s.client.SendMessage(ctx, &pb.SendMessageRequest{
			Messages: []*pb.Message{message}})
		cancel()
		if err != nil {
			log.Fatal(err)
		}
		if reply.Status.Code != pb.Code_OK {
			log.Fatal(reply.Status)
		}
		took = append(took, time.Since(began))
	}
}

func (s *shared) receive() {
	var took []time.Duration
	defer func() { s.note(took) }()
	for first := true; first || s.done.Load() < int64(*total); first = false {
		began := time.Now()
		ctx, cancel := context.WithTimeout(s.ctx, 15*time.Second)
		stream, err := s.client.ReceiveMessage(ctx, &pb.ReceiveMessageRequest{
			Group:            &pb.Resource{Name: *group},
			MessageQueue:     &pb.MessageQueue{Topic: &pb.Resource{Name: *topic}, Id: -1},
			FilterExpression: &pb.FilterExpression{Type: pb.FilterType_TAG, Expression: "*"},
			BatchSize:        32, InvisibleDuration: durationpb.New(60 * time.Second),
			LongPollingTimeout: durationpb.New(5 * time.Second)})
		if err != nil {
			log.Fatal(err)
		}
		var entries []*pb.AckMessageEntry
		for {
			part, err := stream.Recv()
			if err != nil {
				break
			}
			if message := part.GetMessage(); message != nil {
				entries = append(entries, &pb.AckMessageEntry{
					MessageId:     message.SystemProperties.MessageId,
					ReceiptHandle: *message.SystemProperties.ReceiptHandle})
			}
		}
		if len(entries) > 0 {
			reply, err := s.client.AckMessage(ctx, &pb.AckMessageRequest{
				Group: &pb.Resource{Name: *group}, Topic: &pb.Resource{Name: *topic},
				Entries: entries})
			if err != nil {
				log.Fatal(err)
			}
			if reply.Status.Code != pb.Code_OK {
				log.Fatal(reply.Status)
			}
			s.done.Add(int64(len(entries)))
			took = append(took, time.Since(began))
		}
		cancel()
	}
}
