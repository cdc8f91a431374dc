// Asynq on Redis as a contender. The durability of its jobs is a setting of the server (appendonly, appendfsync), not of Asynq: it
// is read and printed in the settings.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/holdfastdev/holdfast/bench/measure"
)

const (
	version = "0.26.0"
	queue   = "default"
	adders  = 64 // goroutines; Asynq has no bulk call
	pool    = 100

	// Asynq polls, and warns that a short interval loads the server, so the interval is no shorter than needed. Its defaults are 1 s for due jobs and
	// 5 s for jobs that wait for a retry.
	poll      = 10 * time.Millisecond
	retryPoll = 10 * time.Millisecond
)

type contender struct {
	options measure.Options
	redis   *redis.Client
	client  *asynq.Client
	server  string
	payload []byte
}

func main() { measure.Main(open) }

func open(ctx context.Context, o measure.Options) (measure.Contender, error) {
	c := &contender{options: o, redis: redis.NewClient(&redis.Options{Addr: o.Store, PoolSize: pool})}
	c.client = asynq.NewClientFromRedisClient(c.redis)
	var err error
	if c.server, err = server(ctx, c.redis); err != nil {
		return nil, fmt.Errorf("start a redis-server and pass its host:port as -store: %w", err)
	}
	c.payload, err = json.Marshal(map[string]string{"text": measure.Text})
	return c, err
}

// server returns the version of the server and its settings for durability.
func server(ctx context.Context, r *redis.Client) (string, error) {
	info, err := r.Info(ctx, "server").Result()
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(info, "redis_version:")
	number, _, _ := strings.Cut(rest, "\r\n")
	config, err := r.ConfigGet(ctx, "append*").Result()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Redis %s, appendonly %s, appendfsync %s", number, config["appendonly"], config["appendfsync"]), nil
}

func (c *contender) Add(ctx context.Context, jobs int) error { return c.add(ctx, jobs) }

func (c *contender) Schedule(ctx context.Context, jobs int) error {
	return c.add(ctx, jobs, asynq.ProcessIn(24*time.Hour))
}

func (c *contender) add(ctx context.Context, jobs int, options ...asynq.Option) error {
	var group sync.WaitGroup
	var left atomic.Int64
	failed := make([]error, adders)
	left.Store(int64(jobs))
	for i := range adders {
		group.Go(func() {
			for failed[i] == nil && left.Add(-1) >= 0 {
				failed[i] = c.one(ctx, options...)
			}
		})
	}
	group.Wait()
	return errors.Join(failed...)
}

func (c *contender) AddOne(ctx context.Context) error { return c.one(ctx) }

func (c *contender) one(ctx context.Context, options ...asynq.Option) error {
	_, err := c.client.EnqueueContext(ctx, asynq.NewTask("noop", c.payload), options...)
	return err
}

func (c *contender) Work(ctx context.Context, do func(attempt int) error) error {
	config := asynq.Config{
		Concurrency:    c.options.Slots,
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return 0 },
		LogLevel:       asynq.ErrorLevel,
	}
	if !c.options.Defaults {
		config.TaskCheckInterval = poll
		config.DelayedTaskCheckInterval = retryPoll
	}
	s := asynq.NewServerFromRedisClient(c.redis, config)
	err := s.Start(asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error {
		retried, _ := asynq.GetRetryCount(ctx)
		return do(retried + 1)
	}))
	if err != nil {
		return err
	}
	<-ctx.Done()
	s.Shutdown()
	return nil
}

// Complete counts the jobs that are left, because Asynq deletes complete jobs unless retention is set.
func (c *contender) Complete(context.Context) (int, error) {
	info, err := asynq.NewInspectorFromRedisClient(c.redis).GetQueueInfo(queue)
	if errors.Is(err, asynq.ErrQueueNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return -info.Size, nil
}

func (c *contender) Settings() string {
	polls := fmt.Sprintf("TaskCheckInterval %v, DelayedTaskCheckInterval %v", poll, retryPoll)
	if c.options.Defaults {
		polls = "TaskCheckInterval 1s, DelayedTaskCheckInterval 5s (its defaults)"
	}
	return fmt.Sprintf("Asynq v%s, Concurrency %d, %s, RetryDelayFunc 0, no retention, bulk by %d goroutines, pool of %d, %s",
		version, c.options.Slots, polls, adders, pool, c.server)
}

func (c *contender) Close() error { return c.redis.Close() }
