// Command embed is an HTTP service with two cron jobs that run once, however many replicas it has.
package main

import (
	"cmp"
	"context"
	"errors"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store/redisstore"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	logging.Disable() // go-redis's own lines: the scheduler logs what matters
	st := redisstore.New(redis.NewClient(&redis.Options{Addr: cmp.Or(os.Getenv("REDIS_ADDR"), "127.0.0.1:6379")}), nil)
	jobs, err := scheduler.New(st, scheduler.Config{Group: "billing", Logger: slog.Default()})
	if err != nil {
		log.Fatal(err)
	}
	if err := jobs.Add(
		scheduler.Job{Name: "invoice", Spec: "0 3 * * *", Do: invoice, OnInterrupt: scheduler.InterruptRerun},
		scheduler.Job{Name: "cleanup", Spec: "@every 5m", Do: cleanup, Timeout: time.Minute},
	); err != nil {
		log.Fatal(err)
	}

	server := &http.Server{Addr: cmp.Or(os.Getenv("LISTEN"), "127.0.0.1:8080"), ReadHeaderTimeout: 5 * time.Second}
	go func() {
		defer stop() // a service that cannot listen should not run jobs either
		if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("serving failed", "error", err)
		}
	}()
	context.AfterFunc(ctx, func() { _ = server.Shutdown(context.WithoutCancel(ctx)) })

	// Until SIGTERM: then another replica leads at once, and running jobs get 25 s to end.
	if err := jobs.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

func invoice(ctx context.Context, run scheduler.Run) error {
	slog.InfoContext(ctx, "writing invoices", "day", run.Tick.Format(time.DateOnly), "run", run.ID())
	return nil
}

func cleanup(ctx context.Context, _ scheduler.Run) error { return ctx.Err() }
