//go:build unix

package singleton_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store"
)

// TestFollowersSendLittle counts what two hundred followers of one group, in one process, ask of an idle Redis over two
// lengths of the default lease.
func TestFollowersSendLittle(t *testing.T) {
	t.Parallel()
	const followers, lengths, most = 200, 2, 1.5
	for name, follow := range map[string]func(g *group, st store.Store, known election.Callbacks){
		"electors": func(g *group, st store.Store, known election.Callbacks) {
			g.start(st, election.Config{Lease: far, Callbacks: known}, untilEnd)
		},
		"schedulers": func(g *group, st store.Store, known election.Callbacks) {
			s := &shift{group: g, started: make(chan scheduler.Run, 100)}
			s.work(st, scheduler.Config{Lease: far, Callbacks: known}, scheduler.Job{Name: "yearly", Spec: "0 0 0 1 1 *"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGroup(t)
			st := g.store(g.server.Addr())
			var knowing sync.WaitGroup
			for i := range followers + 1 {
				knowing.Add(1)
				known := sync.OnceFunc(knowing.Done)
				follow(g, st, election.Callbacks{LeaderChanged: func(store.Leader) { known() }})
				if i == 0 { // it leads
					knowing.Wait()
				}
			}
			done := make(chan struct{})
			go func() { knowing.Wait(); close(done) }()
			receive(t, done, "followers that know the leader")

			pass(t, time.Now().Add(far/2)) // all sleep now, and none ends near the begin or end of the count
			requests := g.watchRequests()
			begun := time.Now()
			pass(t, begun.Add(lengths*far))
			n := requests()
			perFollower := float64(n) / followers / lengths
			t.Logf("%d requests in %v: %.2f per follower and lease length", n, time.Since(begun), perFollower)
			if perFollower > most {
				t.Errorf("%.2f requests per follower and lease length, want at most %.1f", perFollower, most)
			}
			if n < followers {
				t.Error("so few requests cannot be all")
			}
		})
	}
}

// watchRequests has Redis tell each request that comes over the network, and returns a function that tells how many there
// were. What a script calls is not one.
func (g *group) watchRequests() func() int {
	g.t.Helper()
	conn, err := net.Dial("tcp", g.server.Addr())
	if err != nil {
		g.t.Fatal(err)
	}
	if _, err := fmt.Fprint(conn, "MONITOR\r\n"); err != nil {
		g.t.Fatal(err)
	}
	lines := bufio.NewScanner(conn)
	if !lines.Scan() || lines.Text() != "+OK" {
		g.t.Fatalf("Redis answers %q to MONITOR", lines.Text())
	}
	var n atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines.Scan() {
			if !strings.Contains(lines.Text(), "[0 lua]") {
				n.Add(1)
			}
		}
	}()
	g.t.Cleanup(func() { conn.Close(); <-done })
	return func() int { return int(n.Load()) }
}
