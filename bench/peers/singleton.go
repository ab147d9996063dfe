package main

import (
	"context"
	"errors"

	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store/redisstore"
)

// withSingleton runs this project's scheduler, with a lease as long as that of the leader flag. Its jobs are told their
// tick, so that one which is caught up counts for the second for which it was due.
func withSingleton(ctx context.Context, r *replica) (err error) {
	st := redisstore.New(r.client, nil)
	defer func() { err = errors.Join(err, st.Close()) }()
	jobs, err := scheduler.New(st, scheduler.Config{Group: "peers", ID: r.id, Lease: flagTTL, Seconds: true})
	if err != nil {
		return err
	}
	err = jobs.Add(scheduler.Job{
		Name: "tick", Spec: everySecond, CatchUp: scheduler.CatchUpAll, OnInterrupt: scheduler.InterruptRerun,
		Do: func(_ context.Context, this scheduler.Run) error {
			r.wait()
			r.work(run{this.Tick.Unix(), r.id})
			return nil
		},
	})
	if err != nil {
		return err
	}
	return jobs.Run(ctx)
}
