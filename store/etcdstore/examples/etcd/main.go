// Command etcd runs two cron jobs once, however many copies of it there are, on an etcd cluster.
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

	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store/etcdstore"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	endpoints := "127.0.0.1:2379" // all members of the cluster, with commas between them
	if s, ok := os.LookupEnv("ETCD"); ok {
		endpoints = s
	}
	st := etcdstore.New(etcdstore.Config{Endpoints: strings.Split(endpoints, ","), Prefix: "/billing", Logger: slog.Default()})
	// Beside Redis, that is all there is to change.
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
