package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// replica is one process of a set-up: it competes with the others for each tick of an every-second job.
type replica struct {
	id     string
	client *redis.Client
	offset time.Duration // how far this machine's clock is behind the first's
	job    time.Duration // how long a run takes
	out    *os.File
}

// setups are the ways to run a job on one of several replicas. Each returns when ctx ends.
var setups = map[string]func(ctx context.Context, r *replica) error{
	"cron":           bareCron, // no coordination: every replica runs every tick; it shows that the harness counts
	"cron+lock":      cronWithLock,
	"cron+kept lock": cronWithKeptLock,
	"gocron+lock":    gocronWithLocker,
	"cron+flag":      cronWithLeaderFlag,
	"singleton":      withSingleton,
}

// replicaMain is the program of a replica: it runs until its standard input ends, as it does when the parent dies.
func replicaMain(args []string) error {
	var r replica
	flags := flag.NewFlagSet("replica", flag.ExitOnError)
	setup := flags.String("setup", "", "what to run")
	addr := flags.String("addr", "", "Redis `address`")
	file := flags.String("file", "", "where the job writes its lines")
	flags.StringVar(&r.id, "id", "", "this replica")
	flags.DurationVar(&r.offset, "offset", 0, "how far the clock is behind")
	flags.DurationVar(&r.job, "job", 0, "how long the job takes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	work, ok := setups[*setup]
	if !ok {
		return fmt.Errorf("no set-up is called %q", *setup)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		defer stop()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	var err error
	if r.out, err = os.OpenFile(*file, os.O_APPEND|os.O_WRONLY, 0); err != nil {
		return err
	}
	r.client = redis.NewClient(&redis.Options{Addr: *addr})
	return errors.Join(work(ctx, &r), r.client.Close(), r.out.Close())
}

// wait stands for the difference of the clocks: all replicas share this machine's, so one whose clock is behind turns to
// a tick that much later.
func (r *replica) wait() { time.Sleep(r.offset) }

// work is the job: it writes one line and takes its time.
func (r *replica) work(this run) {
	if _, err := r.out.WriteString(this.String()); err != nil {
		fmt.Fprintln(os.Stderr, "writing a line failed:", err)
		os.Exit(1)
	}
	time.Sleep(r.job)
}
