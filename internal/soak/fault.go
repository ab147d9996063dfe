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
