package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/tally"
	"github.com/go-singleton/singleton/internal/zktest"
	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/zkstore"
)

// TestStoresAreChangedAsThePageSays moves a group from Redis to ZooKeeper with the commands of docs/changing-stores.md.
func TestStoresAreChangedAsThePageSays(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/changing-stores.md")
	if err != nil {
		t.Fatal(err)
	}
	steps := regexp.MustCompile("(?ms)^```sh\n(.*?)^```").FindAllStringSubmatch(string(page), -1)
	if len(steps) != 5 {
		t.Fatalf("the page has %d steps with commands, want 5", len(steps))
	}
	redis, zookeeper := newGroup(t), zktest.Start(t)
	from, to := redis.URL(), "zk://"+zookeeper.Addr()+"/cron"
	step := stepper(t, from, to)

	effects := filepath.Join(t.TempDir(), "effects")
	file := write(t, "jobs.cron", "#: name=tick catch-up=all\n* * * * * * echo $SINGLETON_TICK_UNIX $(date +%s%N) >> "+effects+
		"\n#: name=held\n* * * * * * echo held\n")
	replica := func(id, url string) *process {
		return start(t, nil, "cron", "--group", "g", "--seconds", "--lease", "30s", "--id", id, "--store", url, file)
	}
	tokens := func(p *process) uint64 { return numberIn(t, p.await("msg=elected"), "token=") }
	old := []*process{replica("a", from), replica("b", from)}
	leader, _ := lead(t, old[0], old[1])
	leader.await("job=tick", "outcome=succeeded")
	last := tokens(leader)

	for i, s := range steps[:3] {
		step(i+1, s[1])
	}
	paused := ranUntil(t, effects)
	fresh := []*process{replica("c", to), replica("d", to)}
	next, _ := lead(t, fresh[0], fresh[1])
	if token := tokens(next); token <= last {
		t.Errorf("token %d in the new store, after %d", token, last)
	}
	spared := watch(t, from, to)
	until(t, "ticks are skipped in both stores", func() bool { return spared.rows(t) == 2 })
	for _, p := range old {
		p.signal(syscall.SIGTERM)
		if code := p.exit(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
	if out := step(5, steps[3][1]); !strings.Contains(out, "NO LEADER") || !strings.Contains(out, "paused") {
		t.Errorf("the old store says:\n%s", out)
	}
	if ran := ranUntil(t, effects); ran != paused {
		t.Errorf("tick %d ran after the pause at %d", ran, paused)
	}
	r := call(t, nil, "pause", "--group", "g", "held", "--store", to)
	r.want(t, 0, "held: paused\n", "")
	step(6, steps[4][1])
	next.await("job=tick", "outcome=succeeded")
	if _, _, ran := next.find("job=held", "outcome=succeeded"); ran {
		t.Error("a job that is paused ran")
	}
	for _, p := range fresh {
		p.signal(syscall.SIGTERM)
		p.exit()
	}

	// Each tick ran once, or one of the stores says that it was skipped.
	all, err := tally.Read(effects)
	if err != nil {
		t.Fatal(err)
	}
	spared.gather(t)
	v := tally.Judge(all, &spared.said)
	if len(v.Doubled) > 0 || len(v.Rerun) > 0 || len(v.Unaccounted) > 0 || !strings.Contains(spared.said.Skipped(), "paused") {
		t.Errorf("%v; skipped: %s\n%+v", v, spared.said.Skipped(), v)
	}
	if t.Logf("%v; skipped: %s", v, spared.said.Skipped()); len(v.Missing) == 0 {
		t.Error("no tick fell into the move")
	}
}

// stepper returns what runs a step's commands with a shell, as those who read the page do.
func stepper(t *testing.T, from, to string) func(n int, commands string) (output string) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "singleton")); err != nil {
		t.Fatal(err)
	}
	return func(n int, commands string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", commands)
		cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "SINGLETON_") }),
			"PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"), "GROUP=g", "OLD="+from, "NEW="+to, "SINGLETON_LEASE=2s")
		out, err := cmd.CombinedOutput()
		_, lost := err.(*exec.ExitError)
		if err != nil && !(lost && strings.Contains(string(out), "NO LEADER")) { // status says so with its exit code, too
			t.Fatalf("step %d: %v\n%s", n, err, out)
		}
		return string(out)
	}
}

// histories are what two stores say about the job "tick".
type histories struct {
	inspectors []*scheduler.Inspector
	said       tally.Chronicle
}

func watch(t *testing.T, from, to string) *histories {
	a, err := parseStore(from)
	if err != nil {
		t.Fatal(err)
	}
	redis, client, err := a.open(nil)
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := parseZooKeeper(to, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	h := &histories{}
	for _, st := range []store.Store{redis, zkstore.New(c)} {
		in, err := scheduler.NewInspector(st, "g", "test")
		if err != nil {
			t.Fatal(err)
		}
		h.inspectors = append(h.inspectors, in)
		t.Cleanup(func() { _ = st.Close() })
	}
	t.Cleanup(func() { _ = client.Close() })
	return h
}

// rows returns how many of the stores say that ticks were skipped.
func (h *histories) rows(t *testing.T) (n int) {
	for _, in := range h.inspectors {
		for e, err := range in.History(t.Context(), "tick") {
			if errors.Is(err, scheduler.ErrUnknownJob) {
				break // not yet
			}
			if err != nil {
				t.Fatal(err)
			}
			if e.Outcome == scheduler.Skipped && e.Detail == "paused" && e.Ticks > 1 {
				n++
			}
		}
	}
	return n
}

func (h *histories) gather(t *testing.T) {
	for _, in := range h.inspectors {
		if err := h.said.Gather(t.Context(), in, "tick"); err != nil {
			t.Fatal(err)
		}
	}
}

// ranUntil returns the newest tick that has run.
func ranUntil(t *testing.T, effects string) int64 {
	all, err := tally.Read(effects)
	if err != nil || len(all) == 0 {
		t.Fatalf("%d ticks ran, %v", len(all), err)
	}
	return all[len(all)-1].Tick
}

// numberIn returns the number that stands behind a key in a line of the log.
func numberIn(t *testing.T, line, key string) (n uint64) {
	_, text, _ := strings.Cut(line, key)
	if _, err := fmt.Sscanf(text, "%d", &n); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return n
}
