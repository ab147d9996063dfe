//go:build unix

package singleton_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redisstore"
)

// many is a process that takes part in many elections over one store.
type many struct {
	store  *redisstore.Store
	end    context.CancelFunc
	ctx    context.Context
	runs   sync.WaitGroup
	leads  chan struct{} // one for each term that begins
	ends   chan string   // one for each term that ends before the last
	config election.Config
}

func newMany(t testing.TB, client redis.UniversalClient) *many {
	m := &many{store: redisstore.New(client, nil), leads: make(chan struct{}, 1<<16), ends: make(chan string, 1<<16)}
	m.ctx, m.end = context.WithCancel(t.Context())
	t.Cleanup(func() { m.stop(t) })
	return m
}

func (m *many) stop(t testing.TB) {
	m.end()
	m.runs.Wait()
	if err := m.store.Close(); err != nil {
		t.Error(err)
	}
}

// campaign starts electors for groups.
func (m *many) campaign(t testing.TB, groups []string) {
	for _, g := range groups {
		e, err := election.New(m.store, election.Config{Group: g, ID: "r", Lease: m.config.Lease})
		if err != nil {
			t.Fatal(err)
		}
		m.runs.Go(func() {
			err := e.Run(m.ctx, func(ctx context.Context, _ *election.Term) error {
				m.leads <- struct{}{}
				<-ctx.Done()
				if m.ctx.Err() == nil {
					m.ends <- fmt.Sprintf("%s: %v", g, context.Cause(ctx))
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func groups(prefix string, count int) (list []string) {
	for i := range count {
		list = append(list, prefix+strconv.Itoa(i))
	}
	return list
}

// stats returns a field of the server's INFO stats.
func stats(t testing.TB, client *redis.Client, field string) int {
	text, err := client.Info(t.Context(), "stats").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(text, field+":")
	value, _, _ := strings.Cut(rest, "\r\n")
	n, err := strconv.Atoi(value)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func memory() (bytes uint64) {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	fmt.Println("heapalloc", m.HeapAlloc, "heapinuse", m.HeapInuse, "stack", m.StackInuse, "sys", m.Sys)
	return m.HeapInuse + m.StackInuse
}

func BenchmarkManyElections(b *testing.B) {
	server := redistest.Start(b)
	admin := server.Client()
	const led, followed = 1000, 5000
	for b.Loop() {
		m := newMany(b, server.Client())
		m.config.Lease = 6 * time.Second
		before := memory()
		begun := time.Now()
		m.campaign(b, groups("led", led))
		for range led {
			<-m.leads
		}
		b.Logf("all lead after %v", time.Since(begun))
		<-time.After(5 * time.Second)
		reads, commands := stats(b, admin, "total_reads_processed"), stats(b, admin, "total_commands_processed")
		const seconds = 10
		<-time.After(seconds * time.Second)
		b.ReportMetric(float64(stats(b, admin, "total_reads_processed")-reads)/seconds, "reads/s")
		b.ReportMetric(float64(stats(b, admin, "total_commands_processed")-commands)/seconds, "commands/s")
		with := memory()
		b.ReportMetric(float64(with-before)/led, "B/led")

		other := redisstore.New(server.Client(), nil)
		for _, g := range groups("followed", followed) {
			if _, err := other.Acquire(b.Context(), g, store.Candidate{Replica: store.Replica{ID: "x"}, Nonce: "n", TTL: time.Hour, Session: time.Hour, Start: true}); err != nil {
				b.Fatal(err)
			}
		}
		_ = other.Close()
		before = memory()
		m.campaign(b, groups("followed", followed))
		<-time.After(10 * time.Second)
		b.ReportMetric(float64(memory()-before)/followed, "B/followed")
		b.ReportMetric(float64(len(m.ends)), "lost")
		n, _ := admin.Do(b.Context(), "CLIENT", "LIST").Text()
		b.Logf("%d connections, %d goroutines", strings.Count(n, "\n"), runtime.NumGoroutine())
		f, _ := os.Create("/tmp/many.heap")
		pprof.WriteHeapProfile(f)
		f.Close()
		m.stop(b)
	}
}
