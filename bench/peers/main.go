// Command peers measures how many ticks of an every-second job the usual set-ups double and lose, with three replicas as
// processes on a private redis-server, and prints a table. It counts the lines that the jobs wrote.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	var err error
	if len(os.Args) > 1 && os.Args[1] == "replica" {
		err = replicaMain(os.Args[2:])
	} else {
		err = table()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// table measures the scenarios, one after another, and prints a row for each.
func table() error {
	ticks := flag.Int("ticks", 60, "how many ticks each row counts")
	only := flag.String("only", "", "measure only set-ups whose name `contains` this")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()

	fmt.Println("| set-up | job takes | clocks apart | fault of the leader | ticks | ran once | doubled | lost | load |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|")
	for _, s := range scenarios() {
		if !strings.Contains(s.setup, *only) {
			continue
		}
		r, err := s.measure(ctx, *ticks)
		if err != nil {
			return fmt.Errorf("%s: %w", s.setup, err)
		}
		what := string(s.fault)
		if s.fault != none {
			what = fmt.Sprintf("%d × %s", r.faults, s.fault)
		}
		fmt.Printf("| %s | %v | %v | %s | %d | %d | %d | %d | %s |\n",
			s.setup, s.job, s.offsets[len(s.offsets)-1], what, r.ticks, r.once, r.doubled, r.lost, load())
	}
	return nil
}

// scenarios are the rows: locks without any fault, whose runs are shorter or longer than the clocks are apart, and leaders
// with faults.
func scenarios() (rows []scenario) {
	const ms = time.Millisecond
	for _, setup := range []string{"cron+lock", "gocron+lock", "cron+kept lock"} {
		for _, c := range []struct{ job, apart time.Duration }{{1 * ms, 0}, {10 * ms, 5 * ms}, {10 * ms, 20 * ms}} {
			offsets := []time.Duration{0, c.apart / 2, c.apart}
			rows = append(rows, scenario{setup: setup, job: c.job, offsets: offsets, fault: none, settle: time.Second})
		}
	}
	for _, setup := range []string{"cron+flag", "singleton"} {
		row := scenario{setup: setup, job: 10 * ms, offsets: []time.Duration{0, 10 * ms, 20 * ms}, fault: none, settle: time.Second}
		rows = append(rows, row)
		row.first, row.settle = 5500*ms, 6*time.Second // between two ticks; longer than a lease
		row.fault, row.every = kill, 15*time.Second
		rows = append(rows, row)
		row.fault, row.every = stop, 20*time.Second
		rows = append(rows, row)
	}
	return rows
}

// load returns the machine's load average over the last minute, where it tells: a busy machine delays timers, and so
// lets locks double more.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	minute, _, _ := strings.Cut(string(text), " ")
	return minute
}
