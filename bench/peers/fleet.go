package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"
)

// fleet is the running processes of a set-up's replicas.
type fleet struct {
	scenario scenario
	addr     string // of the Redis
	file     string // where the jobs write
	running  map[string]*process
}

// process is a replica. Closing its standard input asks it to end, and it ends as well when this process dies.
type process struct {
	*exec.Cmd
	stdin io.Closer
}

// newFleet starts one replica per offset, named r-1, r-2, …
func newFleet(s scenario, addr, file string) (*fleet, error) {
	f := &fleet{scenario: s, addr: addr, file: file, running: map[string]*process{}}
	for i := range s.offsets {
		if err := f.start(i); err != nil {
			f.close()
			return nil, err
		}
	}
	return f, nil
}

func name(i int) string { return fmt.Sprintf("r-%d", i+1) }

// start starts replica i.
func (f *fleet) start(i int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, "replica", "-setup", f.scenario.setup, "-addr", f.addr, "-file", f.file,
		"-id", name(i), "-offset", f.scenario.offsets[i].String(), "-job", f.scenario.job.String())
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	f.running[name(i)] = &process{cmd, stdin}
	return nil
}

// leader returns the replica that ran last.
func (f *fleet) leader() (int, error) {
	runs, err := readRuns(f.file)
	if err != nil {
		return 0, err
	}
	for i := range f.scenario.offsets {
		if len(runs) > 0 && name(i) == runs[len(runs)-1].replica {
			return i, nil
		}
	}
	return 0, fmt.Errorf("after %d runs, no replica is known to lead", len(runs))
}

// strike does to the leader what the fault says, and undoes it after a while.
func (f *fleet) strike(ctx context.Context) error {
	i, err := f.leader()
	if err != nil {
		return err
	}
	p := f.running[name(i)]
	switch f.scenario.fault {
	case kill:
		if err := p.Process.Kill(); err != nil {
			return err
		}
		_ = p.Wait() // says that it was killed
		sleepUntil(ctx, time.Now().Add(restartAfter))
		return f.start(i)
	case stop:
		if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
		sleepUntil(ctx, time.Now().Add(stopFor))
		return p.Process.Signal(syscall.SIGCONT)
	}
	return nil
}

// close ends all replicas: politely, and by force after a while.
func (f *fleet) close() {
	for _, p := range f.running {
		_ = p.Process.Signal(syscall.SIGCONT)
		_ = p.stdin.Close()
	}
	for _, id := range slices.Sorted(maps.Keys(f.running)) {
		p := f.running[id]
		force := time.AfterFunc(10*time.Second, func() { _ = p.Process.Kill() })
		if err := p.Wait(); err != nil {
			fmt.Fprintf(os.Stderr, "%s of %s: %v\n", id, f.scenario.setup, err)
		}
		force.Stop()
	}
}

// sleepUntil returns at t, or when ctx ends.
func sleepUntil(ctx context.Context, t time.Time) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Until(t)):
	}
}
