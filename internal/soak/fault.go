//go:build unix

package soak

import (
	"context"
	"syscall"
	"time"
)

// fault is something that breaks. strike returns when the group has what it needs to recover.
type fault struct {
	name   string
	strike func(*group, context.Context)
	empty  bool // a server loses its data
}

var faults = []fault{
	{"kill the leader", (*group).killLeader, false},
	{"kill the server", (*group).killServer, false},
	{"freeze the leader", (*group).freezeLeader, false},
	{"end the leader politely", (*group).termLeader, false},
	{"freeze the server", (*group).freezeServer, false},
	{"empty the server", (*group).emptyServer, true},
}

// Fault is something that only some stores have. Begin breaks it, and End mends it after Servers.Away; every second time
// the leader dies meanwhile, so that the next one starts with what is left.
type Fault struct {
	Name       string
	Begin, End func(Servers) error
}

// own makes faults of those of a store's own.
func own(more []Fault) (all []fault) {
	for _, m := range more {
		leader := false
		all = append(all, fault{m.Name, func(g *group, ctx context.Context) {
			if err := m.Begin(g.servers); err != nil {
				g.t.Fatalf("%s: %v", m.Name, err)
			}
			began := time.Now()
			if leader = !leader; leader {
				g.killLeader(ctx)
			}
			pause(ctx, g.servers.Away-time.Since(began))
			if err := m.End(g.servers); err != nil {
				g.t.Fatalf("the end of %s: %v", m.Name, err)
			}
		}, false})
	}
	return all
}

func (g *group) killLeader(ctx context.Context) {
	r := g.leader(ctx)
	at := time.Now()
	held, err := g.servers.Store.Leader(ctx, "soak")
	r.kill()
	end := at.Add(held.Remaining)
	if when, ok := g.electedAfter(ctx, at); ok && err == nil {
		g.afterLease = append(g.afterLease, when.Sub(end))
	}
	g.launch(r.name)
}

func (g *group) termLeader(ctx context.Context) {
	r := g.leader(ctx)
	g.terms = append(g.terms, time.Now())
	r.stop(g.t)
	g.launch(r.name)
}

func (g *group) freezeLeader(ctx context.Context) {
	r := g.leader(ctx)
	r.signal(syscall.SIGSTOP)
	pause(ctx, frozen)
	r.signal(syscall.SIGCONT)
}

func (g *group) freezeServer(ctx context.Context) {
	server := g.servers.Leader(ctx)
	server.Stop()
	pause(ctx, frozen)
	server.Cont()
}

func (g *group) killServer(ctx context.Context) {
	server := g.servers.Leader(ctx)
	server.Kill()
	pause(ctx, g.servers.Away)
	if err := server.Restart(); err != nil {
		g.t.Fatal(err)
	}
}

func (g *group) emptyServer(ctx context.Context) {
	server := g.servers.Leader(ctx)
	server.Kill()
	pause(ctx, g.servers.Away)
	if err := server.RestartEmpty(); err != nil {
		g.t.Fatal(err)
	}
}
