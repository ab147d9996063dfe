//go:build unix

package singleton_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redisstore"
)

// crowd is one process with electors over one store.
type crowd struct {
	store.Store
	end  context.CancelFunc
	ctx  context.Context
	runs sync.WaitGroup
	led  chan time.Time // when terms began
	lost atomic.Int64   // terms that ended before the crowd did
	held atomic.Int64   // attempts that were answered with "held"
}

func newCrowd(b *testing.B, server *redistest.Server) *crowd {
	c := &crowd{Store: redisstore.New(server.Client(), nil), led: make(chan time.Time, 1)}
	c.ctx, c.end = context.WithCancel(b.Context())
	b.Cleanup(func() { c.stop(b) })
	return c
}

func (c *crowd) stop(b *testing.B) {
	c.end()
	c.runs.Wait()
	if err := c.Close(); err != nil {
		b.Error(err)
	}
}

func (c *crowd) Acquire(ctx context.Context, group string, candidate store.Candidate) (store.Lease, error) {
	l, err := c.Store.Acquire(ctx, group, candidate)
	if _, held := errors.AsType[*store.HeldError](err); held {
		c.held.Add(1)
	}
	return l, err
}

// campaign starts an elector.
func (c *crowd) campaign(b *testing.B, group string) {
	e, err := election.New(c, election.Config{Group: group, ID: "r"})
	if err != nil {
		b.Fatal(err)
	}
	c.runs.Go(func() {
		err := e.Run(c.ctx, func(ctx context.Context, _ *election.Term) error {
			c.led <- time.Now()
			<-ctx.Done()
			if c.ctx.Err() == nil {
				c.lost.Add(1)
			}
			return nil
		})
		if err != nil {
			b.Error(err)
		}
	})
}

// warm has the store make its connections, which do not become more with the elections.
func (c *crowd) warm() {
	var calls sync.WaitGroup
	for range 100 {
		calls.Go(func() { _, _ = c.Leader(c.ctx, "nobody") })
	}
	calls.Wait()
}

// acquire takes leases of an hour for somebody else.
func acquire(b *testing.B, s store.Store, groups ...string) (leases []store.Lease) {
	for _, group := range groups {
		l, err := s.Acquire(b.Context(), group, store.Candidate{
			Replica: store.Replica{ID: "other"}, Nonce: "n", TTL: time.Hour, Session: time.Hour, Start: true,
		})
		if err != nil {
			b.Fatal(err)
		}
		leases = append(leases, l)
	}
	return leases
}

// statistic returns a number that the server tells of itself.
func statistic(b *testing.B, client *redis.Client, section, field string) float64 {
	text, err := client.Info(b.Context(), section).Result()
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(text, field+":")
	value, _, _ := strings.Cut(rest, "\r\n")
	n, err := strconv.ParseFloat(value, 64)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// memory returns the bytes in use, goroutines' stacks too, and those of the stacks alone, when what is not needed is gone.
func memory() (all, stacks float64) {
	for range 4 { // each halves a stack that is too large
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse), float64(m.StackInuse)
}

// BenchmarkManyElections has one process lead 1000 groups and follow in 5000, with leases of 15 s, and counts for a minute.
// Reads are those of the server: a pipeline is one.
func BenchmarkManyElections(b *testing.B) {
	const led, followed = 1000, 5000
	server := redistest.Start(b)
	admin := server.Client()
	var others []string
	for i := range followed {
		others = append(others, fmt.Sprintf("followed%d", i))
	}
	for b.Loop() {
		other := redisstore.New(server.Client(), nil)
		acquire(b, other, others...)
		if err := other.Close(); err != nil {
			b.Fatal(err)
		}
		c := newCrowd(b, server)
		c.warm()
		before, stacksBefore := memory()
		for i := range led {
			c.campaign(b, fmt.Sprintf("led%d", i))
		}
		for range led {
			<-c.led
		}
		<-time.After(20 * time.Second)
		reads := statistic(b, admin, "stats", "total_reads_processed")
		<-time.After(time.Minute)
		reads = statistic(b, admin, "stats", "total_reads_processed") - reads
		leaders, stacksOfLeaders := memory()
		for _, group := range others {
			c.campaign(b, group)
		}
		<-time.After(time.Minute)
		all, stacks := memory()
		b.ReportMetric((all-leaders)/followed, "B/followed")
		b.ReportMetric((stacks-stacksOfLeaders)/followed, "stackB/followed")
		b.ReportMetric((leaders-before)/led, "B/led")
		b.ReportMetric((stacksOfLeaders-stacksBefore)/led, "stackB/led")
		b.ReportMetric(reads/60, "reads/s")
		b.ReportMetric(float64(c.lost.Load()), "lost")
		b.ReportMetric(statistic(b, admin, "clients", "connected_clients")-1, "connections")
		b.ReportMetric(float64(runtime.NumGoroutine()), "goroutines")
		c.stop(b)
	}
}

// BenchmarkHerd ends a lease that 1000 followers in 50 crowds, each with connections of its own, wait for, and counts for five
// seconds: in that time each has had its turn.
func BenchmarkHerd(b *testing.B) {
	b.Run("release", func(b *testing.B) { handOver(b, false) })
	b.Run("crash", func(b *testing.B) { handOver(b, true) })
}

func handOver(b *testing.B, crash bool) {
	server := redistest.Start(b)
	other := redisstore.New(server.Client(), nil)
	defer func() { _ = other.Close() }()
	var took time.Duration
	var held int64
	round := 0
	for b.Loop() {
		group := fmt.Sprintf("herd%d", round)
		round++
		l, err := other.Acquire(b.Context(), group, store.Candidate{
			Replica: store.Replica{ID: "other"}, Nonce: "n", TTL: 15 * time.Second, Session: time.Hour, Start: true,
		})
		if err != nil {
			b.Fatal(err)
		}
		led := make(chan time.Time, 1000)
		var all []*crowd
		for range 50 {
			c := newCrowd(b, server)
			c.led = led
			all = append(all, c)
			for range 20 {
				c.campaign(b, group)
			}
		}
		var end time.Time
		for range 8 { // all ask again meanwhile, and hear how many they are
			<-time.After(5 * time.Second)
			sent := time.Now()
			g, err := other.Renew(b.Context(), l)
			if err != nil {
				b.Fatal(err)
			}
			end = sent.Add(g.TTL)
		}
		if crash {
			<-time.After(time.Until(end) - time.Second)
		}
		for _, c := range all {
			c.held.Store(0)
		}
		if !crash {
			end = time.Now()
			if err := other.Release(b.Context(), l); err != nil {
				b.Fatal(err)
			}
		}
		took += (<-led).Sub(end)
		<-time.After(5 * time.Second)
		for _, c := range all {
			held += c.held.Load()
		}
		var ends sync.WaitGroup
		for _, c := range all {
			ends.Go(func() { c.stop(b) })
		}
		ends.Wait()
	}
	b.ReportMetric(float64(held)/float64(round), "held/hand-over")
	b.ReportMetric(took.Seconds()*1000/float64(round), "ms/hand-over")
}
