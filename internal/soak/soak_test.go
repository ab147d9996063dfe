package soak_test

import (
	"flag"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/program"
	"github.com/go-singleton/singleton/internal/soak"
)

var (
	length = flag.Duration("for", 20*time.Second, "length of each scenario")
	on     = flag.String("on", "", "the store; empty: each fault on one Redis, a few of them on some others")
)

var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(program.Run(m, &binary))
}

// TestSoak runs each kind of fault.
func TestSoak(t *testing.T) {
	t.Parallel()
	start := stores[*on]
	switch {
	case *on == "":
		start = startRedis
	case start == nil:
		t.Fatalf("-on %s: want one of %v", *on, slices.Sorted(maps.Keys(stores)))
	}
	soak.Run(t, binary, *length, start, own[*on]...)
}

// TestSoakOnOthers runs the kinds of faults in turn, and where a store is asked for on that one only.
func TestSoakOnOthers(t *testing.T) {
	t.Parallel()
	others := []string{*on}
	if *on == "" {
		others = []string{"zookeeper", "redlock"}
	}
	for _, name := range others {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			soak.RunInTurn(t, binary, *length, stores[name], own[name]...)
		})
	}
}
