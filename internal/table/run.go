//go:build unix

package table

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
)

var (
	on     = flag.String("table.on", "", "names of stores, or their first words, with commas between, or all; the first one and its first fault where nothing is said")
	faults = flag.String("table.fault", "", "only the faults with these words")
	times  = flag.Int("table.times", 1, "how often each fault strikes")
)

// Run measures the rows that the flags ask for, as many at once as -parallel says, because most of the time they wait, and
// prints them.
func Run(t *testing.T, kinds ...Kind) {
	var rows []*row
	t.Run("measure", func(t *testing.T) {
		for i, k := range kinds {
			if *on == "" && i > 0 || *on != "" && !k.named(*on) {
				continue
			}
			for i, f := range slices.Concat(replicaFaults, k.Faults) {
				if *on == "" && i > 0 || !strings.Contains(f.Name, *faults) {
					continue
				}
				r := &row{}
				rows = append(rows, r)
				t.Run(k.Name+"/"+f.Name, func(t *testing.T) {
					t.Parallel()
					*r = measure(t, k, f, *times)
					t.Log(r)
				})
			}
		}
	})
	if rows == nil {
		t.Fatalf("-table.on %s -table.fault %q: there is no such row", *on, *faults)
	}
	var text strings.Builder
	text.WriteString(Header + "\n")
	for _, r := range rows {
		if r.times > 0 {
			text.WriteString(r.String() + "\n")
		}
	}
	fmt.Print(text.String())
}

// Lost measures one row and returns how many leases and claims, granted to replicas, the store had forgotten after a
// fault of this name.
func Lost(t *testing.T, k Kind, fault string) (leases, claims int) {
	t.Helper()
	i := slices.IndexFunc(k.Faults, func(f Fault) bool { return f.Name == fault })
	if i < 0 {
		t.Fatalf("%s knows no fault %q", k.Name, fault)
	}
	r := measure(t, k, k.Faults[i], 1)
	t.Log(&r)
	return r.lostTerms, r.lostTicks
}

// measure returns the row of one fault. The test fails when it shows that a promise was broken which holds.
func measure(t *testing.T, k Kind, f Fault, times int) row {
	t.Helper()
	s := newScene(t, k, k.Start(t))
	r := s.run(f, times)
	if problem := r.broken(); problem != "" && !f.Forgets {
		t.Error(problem)
		s.keepLogs()
	}
	return r
}
