//go:build unix

package table

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/internal/process"
	"github.com/go-singleton/singleton/internal/tally"
	"github.com/go-singleton/singleton/scheduler"
)

// orderVariable makes a test binary a replica: its value is an order.
const orderVariable = "SINGLETON_TABLE_REPLICA"

// The group, and its job.
const (
	group = "g"
	job   = "tick"
)

// order says what a replica in a process of its own is to do until it gets SIGTERM.
type order struct {
	Kind  string
	Addrs []string
	Lease time.Duration
	ID    string
	Terms string // file of its stints
	Ticks string // file of the job's lines, of all replicas
	Reach string // file of what it can reach
}

// Obey makes the process a replica, and ends it when that has been told to end, where it was started as one by Run; else it
// returns at once. It comes first in the TestMain of a package that calls Run.
func Obey(kinds ...Kind) {
	text := os.Getenv(orderVariable)
	if text == "" {
		return
	}
	var o order
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		err = o.obey(kinds)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (o order) obey(kinds []Kind) error {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == o.Kind })
	if i < 0 {
		return fmt.Errorf("table: no kind is called %s", o.Kind)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	link := &Link{}
	go link.follow(o.Reach)
	st, err := kinds[i].Open(o.Addrs, link, o.Lease)
	if err != nil {
		return err
	}
	terms, err := os.Create(o.Terms)
	if err != nil {
		return err
	}
	ticks, err := os.OpenFile(o.Ticks, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	recorder := &recorder{file: terms}
	s, err := scheduler.New(st, scheduler.Config{
		Group: group, ID: o.ID, Lease: o.Lease, Seconds: true, History: 2000,
		Logger:    slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Callbacks: election.Callbacks{Elected: recorder.watch},
	})
	if err != nil {
		return err
	}
	err = s.Add(scheduler.Job{Name: job, Spec: "* * * * * *", CatchUp: scheduler.CatchUpAll, OnInterrupt: scheduler.InterruptRerun,
		Do: func(_ context.Context, run scheduler.Run) error {
			_, err := ticks.WriteString(tally.Effect{Tick: run.Tick.Unix(), At: time.Now()}.Line())
			return err
		}})
	if err != nil {
		return err
	}
	return errors.Join(s.Run(ctx), st.Close())
}

// Replica is one of a group, in a process of its own.
type Replica struct {
	name    string
	dir     string
	process process.Process
	files   []string // of its stints, one for each process that it has been
	reach   string
}

// launch starts a replica, again where it has been killed.
func (s *Scene) launch(name string) {
	s.t.Helper()
	r := s.replicas[name]
	if r == nil {
		r = &Replica{name: name, dir: s.dir, reach: filepath.Join(s.dir, name+".reach")}
		s.replicas[name] = r
	}
	o := order{Kind: s.kind.Name, Addrs: s.servers.Addrs, Lease: Lease, ID: name, Reach: r.reach,
		Terms: filepath.Join(s.dir, fmt.Sprintf("%s-%d.terms", name, len(r.files))), Ticks: s.ticks}
	r.files = append(r.files, o.Terms)
	text, err := json.Marshal(o)
	if err != nil {
		s.t.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(s.dir, name+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = log.Close() })
	err = r.process.Launch(process.Command{Args: []string{os.Args[0]}, Env: []string{orderVariable + "=" + string(text)}, Output: log})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(r.process.Kill)
	s.Await("the start of "+name, func() bool { // from then on it takes SIGTERM
		_, err := os.Stat(o.Terms)
		return err == nil
	})
}

// Reach cuts the replica off from all but one address.
func (r *Replica) Reach(addr string) {
	err := os.WriteFile(r.reach+".new", []byte(addr), 0o600)
	if err == nil {
		err = os.Rename(r.reach+".new", r.reach)
	}
	if err != nil {
		panic(fmt.Sprintf("table: %v", err)) // the directory is the test's own
	}
}

func (r *Replica) kill() { r.process.Kill() }

// stop ends the replica politely.
func (r *Replica) stop(s *Scene) {
	r.process.Signal(syscall.SIGTERM)
	if err := r.process.Wait(patience, func() bool { return false }); !strings.Contains(err.Error(), "exit status 0") {
		s.t.Errorf("%s has been told to end: %v", r.name, err)
	}
}

// stints returns those of all processes that it has been.
func (r *Replica) stints() (all []stint, err error) {
	for _, f := range r.files {
		some, err := readStints(f, r.name)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}
