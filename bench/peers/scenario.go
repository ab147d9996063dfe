package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/go-singleton/singleton/internal/redistest"
)

// fault is what happens to the leader: the replica that ran last.
type fault string

const (
	none fault = "none"
	kill fault = "SIGKILL" // and started again after restartAfter
	stop fault = "SIGSTOP" // and continued after stopFor
)

const (
	restartAfter = time.Second
	stopFor      = 10 * time.Second
)

// scenario is a row of the table.
type scenario struct {
	setup   string
	offsets []time.Duration // of each replica's clock
	job     time.Duration   // how long a run takes
	fault   fault
	first   time.Duration // when the first fault strikes, and
	every   time.Duration // how often
	settle  time.Duration // how long runs of the last ticks may take to come
}

// result is what a row says.
type result struct {
	tally
	faults int
}

// measure runs a scenario on a Redis of its own and counts the given number of ticks, from the first full second after the
// first run on.
func (s scenario) measure(ctx context.Context, ticks int) (res result, err error) {
	server, err := redistest.New(redistest.Config{})
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	dir, err := os.MkdirTemp("", "peers-")
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "runs")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return res, err
	}
	f, err := newFleet(s, server.Addr(), file)
	if err != nil {
		return res, err
	}
	defer f.close()
	if err := awaitRun(ctx, file); err != nil {
		return res, err
	}

	begin := time.Now().Truncate(time.Second).Add(2 * time.Second)
	end := begin.Add(time.Duration(ticks) * time.Second)
	if s.fault != none {
		for at := begin.Add(s.first); at.Before(end); at = at.Add(s.every) {
			sleepUntil(ctx, at)
			if err := f.strike(ctx); err != nil {
				return res, err
			}
			res.faults++
		}
	}
	sleepUntil(ctx, end.Add(s.settle))
	if err := ctx.Err(); err != nil {
		return res, err
	}
	runs, err := readRuns(file)
	res.tally = count(runs, begin.Unix(), ticks)
	return res, err
}

// awaitRun waits for the first line.
func awaitRun(ctx context.Context, file string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, errors.New("no replica has run anything in 30 s"))
	defer cancel()
	for {
		runs, err := readRuns(file)
		if err != nil || len(runs) > 0 {
			return err
		}
		sleepUntil(ctx, time.Now().Add(50*time.Millisecond))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}
