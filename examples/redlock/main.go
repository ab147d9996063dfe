// Command redlock runs two cron jobs once, however many copies of it there are, on three Redis servers that know nothing of
// each other: one of them may be lost.
package main

import (
	"context"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store/redlock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	servers := "127.0.0.1:6379,127.0.0.1:6380,127.0.0.1:6381" // each a primary of its own, on a machine of its own
	if s, ok := os.LookupEnv("REDIS_NODES"); ok {
		servers = s
	}
	var clients []*redis.Client
	for addr := range strings.SplitSeq(servers, ",") {
		client := redis.NewClient(&redis.Options{Addr: addr, Password: os.Getenv("REDIS_PASSWORD")}) // and TLS, for each its own
		defer client.Close()
		clients = append(clients, client)
	}
	st, err := redlock.New(clients, redlock.Config{Logger: slog.Default()})
	if err != nil {
		log.Fatal(err)
	}
	// Beside one Redis, that is all there is to change.
	jobs, err := scheduler.New(st, scheduler.Config{Group: "billing", Lease: 15 * time.Second, Logger: slog.Default()})
	if err != nil {
		log.Fatal(err)
	}
	if err := jobs.Add(
		scheduler.Job{Name: "invoice", Spec: "0 3 * * *", Do: invoice, OnInterrupt: scheduler.InterruptRerun},
		scheduler.Job{Name: "cleanup", Spec: "@every 5m", Do: cleanup, Timeout: time.Minute},
	); err != nil {
		log.Fatal(err)
	}
	err = jobs.Run(ctx) // until SIGTERM: then another copy leads at once
	if closing := st.Close(); err == nil {
		err = closing
	}
	if err != nil {
		log.Fatal(err)
	}
}

func invoice(ctx context.Context, run scheduler.Run) error {
	slog.InfoContext(ctx, "writing invoices", "day", run.Tick.Format(time.DateOnly), "run", run.ID())
	return nil
}

func cleanup(ctx context.Context, _ scheduler.Run) error { return ctx.Err() }
