package mutants

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	only  = flag.String("mutants.run", "", "regexp of the names of the mutants to kill; empty: the quick ones")
	limit = flag.Duration("mutants.limit", 3*time.Minute, "how long one mutant's test may take: some wait a minute for what a mutant keeps from coming")
)

// atOnce is how many mutants are tested at a time; a test of theirs may use a processor of its own.
const atOnce = 2

// TestMutantsBuild builds every mutant, those of different files of a module together.
func TestMutantsBuild(t *testing.T) {
	type round struct {
		module string
		n      int
	}
	batches := make(map[round][]mutant)
	place := make(map[string]int) // of the next mutant of a file
	for _, m := range all() {
		module, _ := within(m.pkg())
		r := round{module, place[m.file]}
		place[m.file]++
		batches[r] = append(batches[r], m)
	}
	for r, batch := range batches {
		spec, err := overlay(t.TempDir(), batch...)
		if err != nil {
			t.Error(err)
			continue
		}
		args := []string{"build", "-overlay", spec}
		for _, m := range batch {
			if _, pkg := within(m.pkg()); !slices.Contains(args, pkg) {
				args = append(args, pkg)
			}
		}
		if output, err := goCommand(t.Context(), r.module, args...); err != nil {
			t.Errorf("mutants that do not build: %v\n%s", err, output)
		}
	}
}

// TestMutants runs each mutant's test, which must fail by assertion, and the same tests without a mutant, which must pass.
func TestMutants(t *testing.T) {
	chosen := choose(t)
	began := time.Now()
	unharmed(t, chosen)
	var (
		mu    sync.Mutex
		dead  int
		wg    sync.WaitGroup
		next  = make(chan mutant)
		width = 0
	)
	for _, m := range chosen {
		width = max(width, len(m.name))
	}
	for range atOnce {
		wg.Go(func() {
			for m := range next {
				start := time.Now()
				v, test, output := kill(t, m)
				took := time.Since(start).Seconds()
				mu.Lock()
				if v == killed {
					dead++
				} else {
					t.Errorf("%s %s: %s\nits test: %s\n%s", m.name, v, m.rule, strings.Join(m.killer.command(), " "), tail(text(output)))
				}
				fmt.Fprintf(t.Output(), "%-*s  %s %5.1f s  %s  [%s]\n", width, m.name, v, took, m.rule, strings.TrimPrefix(m.killer.pkg, "./")+" "+test)
				mu.Unlock()
			}
		})
	}
	for _, m := range chosen {
		next <- m
	}
	close(next)
	wg.Wait()
	fmt.Fprintf(t.Output(), "%d of %d mutants are killed, in %d s\n", dead, len(chosen), int(time.Since(began).Seconds()))
}

func choose(t *testing.T) []mutant {
	t.Helper()
	wanted, err := regexp.Compile(*only)
	if err != nil {
		t.Fatal(err)
	}
	chosen := slices.DeleteFunc(all(), func(m mutant) bool {
		return *only == "" && !m.quick || !wanted.MatchString(m.name)
	})
	if len(chosen) == 0 {
		t.Fatalf("no mutant is called %q", *only)
	}
	return chosen
}

// unharmed runs the tests of the chosen mutants on the source as it is: a test that fails anyway kills nothing.
func unharmed(t *testing.T, chosen []mutant) {
	t.Helper()
	runs := make(map[string][]string) // by package and flags
	for _, m := range chosen {
		group := strings.Join(append([]string{m.killer.pkg}, m.killer.args...), " ")
		runs[group] = append(runs[group], m.killer.tops()...)
	}
	for _, group := range slices.Sorted(maps.Keys(runs)) {
		slices.Sort(runs[group])
		words := strings.Split(group, " ")
		k := killer{pkg: words[0], run: strings.Join(slices.Compact(runs[group]), "|"), args: words[1:]}
		output, err := goCommand(t.Context(), k.module(), k.command("-timeout", (5**limit).String())...)
		if err != nil {
			v, test := judge(output)
			t.Fatalf("without a mutant: %s %s %s: %v\n%s", k.pkg, test, v, err, tail(text(output)))
		}
	}
}

// kill runs a mutant's test.
func kill(t *testing.T, m mutant) (v verdict, test string, output []byte) {
	spec, err := overlay(t.TempDir(), m)
	if err != nil {
		return notBuilt, "", []byte(err.Error())
	}
	output, err = goCommand(t.Context(), m.killer.module(), m.killer.command("-overlay", spec, "-failfast", "-timeout", limit.String())...)
	v, test = judge(output)
	if (v == survived) != (err == nil) && v != nothing {
		output = fmt.Appendf(output, "go: %v", err)
		if v == survived || v == killed {
			v = goTrouble
		}
	}
	return v, test, output
}

// command returns the arguments of go for k and further flags.
func (k killer) command(flags ...string) []string {
	args := append([]string{"test", "-json", "-count=1", "-vet=off"}, flags...)
	_, pkg := within(k.pkg)
	args = append(args, "-run", k.pattern(), pkg)
	return append(args, k.args...)
}

// module is the directory of the module that k is in.
func (k killer) module() string {
	module, _ := within(k.pkg)
	return module
}

// tops returns the names of the tests without those of their subtests.
func (k killer) tops() []string {
	var names []string
	for name := range strings.SplitSeq(k.run, "|") {
		top, _, _ := strings.Cut(name, "/")
		names = append(names, top)
	}
	return names
}

// pattern makes a pattern of the names that matches no longer ones.
func (k killer) pattern() string {
	var parts []string
	for name := range strings.SplitSeq(k.run, "|") {
		top, sub, found := strings.Cut(name, "/")
		part := "^" + top + "$"
		if found {
			part += "/" + sub
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "|")
}

// goCommand runs go in the directory of a module, seen from the root of the repository, and returns what it has printed.
func goCommand(ctx context.Context, module string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(root, module)
	cmd.WaitDelay = time.Second
	output, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		output = append(output, exit.Stderr...)
	}
	return output, err
}

// tail returns the last lines of s.
func tail(s string) string {
	const most = 40
	lines := strings.SplitAfter(s, "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "")
}
