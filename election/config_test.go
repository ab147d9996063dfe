package election_test

import (
	"bytes"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/memstore"
)

func TestAllProblemsOfAConfigAreReportedAtOnce(t *testing.T) {
	_, err := election.New(memstore.New(), election.Config{
		Group: "no group", ID: "no id", Lease: time.Millisecond, Info: make([]byte, store.MaxInfo+1),
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{`group name "no group"`, `replica name "no id"`, "lease of 1ms", "info has 4097 bytes"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
}

func TestConfigLimits(t *testing.T) {
	long := strings.Repeat("x", 119)
	for _, c := range []struct {
		cfg  election.Config
		want string // part of the error; "" is none
	}{
		{election.Config{Group: "g"}, ""},
		{election.Config{Group: "g", ID: long}, ""},
		{election.Config{Group: "g", ID: long + "x"}, "at most 119"},
		{election.Config{Group: "g", Lease: 500 * time.Millisecond}, ""},
		{election.Config{Group: "g", Lease: 499 * time.Millisecond}, "at least 500ms"},
		{election.Config{Group: "g", Lease: -time.Second}, "at least 500ms"},
		{election.Config{Group: "g", Lease: time.Second + time.Microsecond}, "whole milliseconds"},
		{election.Config{Group: "g", Lease: store.MaxDuration}, ""},
		{election.Config{Group: "g", Lease: store.MaxDuration + time.Second}, "at most 24h"},
	} {
		e, err := election.New(memstore.New(), c.cfg)
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%+v: %v, want %q", c.cfg, err, c.want)
		case err == nil && store.CheckName("replica", e.ID()) != nil:
			t.Errorf("ID %q", e.ID())
		}
	}
	if _, err := election.New(nil, election.Config{Group: "g"}); err == nil {
		t.Error("no store was accepted")
	}
}

func TestIDHasARandomSuffix(t *testing.T) {
	form := regexp.MustCompile(`^box-[0-9a-f]{8}$`)
	seen := map[string]bool{}
	for range 100 {
		e, err := election.New(memstore.New(), election.Config{Group: "g", ID: "box"})
		if err != nil || !form.MatchString(e.ID()) || seen[e.ID()] {
			t.Fatalf("ID %q, %v", e.ID(), err)
		}
		seen[e.ID()] = true
	}
	e, err := election.New(memstore.New(), election.Config{Group: "g"})
	if err != nil || !regexp.MustCompile(`^[A-Za-z0-9].*-\d+-[0-9a-f]{8}$`).MatchString(e.ID()) {
		t.Errorf("default ID %q, %v", e.ID(), err)
	}
}

func TestShortLeaseIsWarnedOf(t *testing.T) {
	for _, c := range []struct {
		lease time.Duration
		warn  bool
	}{{0, false}, {2 * time.Second, false}, {1999 * time.Millisecond, true}} {
		var log bytes.Buffer
		_, err := election.New(memstore.New(), election.Config{Group: "g", Lease: c.lease, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil || strings.Contains(log.String(), "level=WARN") != c.warn {
			t.Errorf("%v: %v, log %s", c.lease, err, log.String())
		}
	}
}
