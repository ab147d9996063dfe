package cli

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/crontab"
)

// rewrite gives a file another content in place.
func rewrite(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// count returns how many lines hold all of parts.
func (p *process) count(parts ...string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, l := range p.lines {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(l, part) }) {
			n++
		}
	}
	return n
}

// again waits until the crontab has been read again n times.
func (p *process) again(n int, parts ...string) {
	p.t.Helper()
	parts = append([]string{"the crontab was read again"}, parts...)
	until(p.t, "the crontab is read again", func() bool { return p.count("the crontab was read again") >= n })
	if p.count(parts...) == 0 {
		p.t.Errorf("no line with %q", parts)
	}
}

const (
	everySecond = "#: name=same catch-up=all\n* * * * * * true\n"
	longJob     = "#: name=long\n* * * * * * echo group $$; sleep 1000 & wait\n"
)

// TestCronReadsItsFileAgain changes a crontab under a running replica in every way there is.
func TestCronReadsItsFileAgain(t *testing.T) {
	t.Parallel()
	file := write(t, "jobs.cron", everySecond+longJob+"#: name=gone\n@daily true\n")
	p := start(t, nil, "cron", "--group", "g", "--seconds", "--store", "memory:", "--lease", "2s", "--grace", "1s", file)
	group := p.group()

	rewrite(t, file, everySecond+longJob+"#: name=new\n* * * * * * echo hello\n") // nobody tells
	p.again(1, "jobs=3", "added=new", `changed=""`, "removed=gone")
	p.await("msg=output", "line=hello")

	rewrite(t, file, everySecond+"\n* * * 61 * * true\n* * 25 * * * true\n")
	p.await("level=ERROR", "the jobs stay as they were", file+":4:7: ", "61")
	p.await("level=ERROR", "the jobs stay as they were", file+":5:5: ", "25")
	hellos := p.count("line=hello")
	until(t, "the old jobs run", func() bool { return p.count("line=hello") > hellos+1 })

	next := filepath.Join(filepath.Dir(file), "next")
	rewrite(t, next, everySecond+longJob+"#: name=new\n* * * * * * echo goodbye\n")
	if err := os.Rename(next, file); err != nil {
		t.Fatal(err)
	}
	p.again(2, "jobs=3", `added=""`, "changed=new", `removed=""`)
	p.await("msg=output", "line=goodbye")

	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	p.await("level=ERROR", "the crontab cannot be used; the jobs stay as they were", "no such file")
	rewrite(t, file, everySecond+longJob+"#: name=new\n* * * * * * echo goodbye\n")
	p.again(3, `added=""`, `changed=""`, `removed=""`)

	if left := living(t, group); len(left) == 0 {
		t.Error("the running job has not gone on")
	}
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	// The job that stood in every file has run at each tick, once.
	ticks := map[string]int{}
	var first, last time.Time
	for l := range strings.Lines(p.output()) {
		if strings.Contains(l, "msg=\"run started\"") && strings.Contains(l, "job=same") {
			_, rest, _ := strings.Cut(l, "tick=")
			text, _, _ := strings.Cut(rest, " ")
			ticks[text]++
			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				t.Fatal(err)
			}
			if first.IsZero() {
				first = at
			}
			last = at
		}
	}
	if want := int(last.Sub(first)/time.Second) + 1; len(ticks) != want {
		t.Errorf("%d ticks, want %d", len(ticks), want)
	}
	for tick, n := range ticks {
		if n != 1 {
			t.Errorf("tick %s ran %d times", tick, n)
		}
	}
	if n := p.count("another schedule now"); n > 0 {
		t.Errorf("%d jobs have changed their schedule", n)
	}
}

// TestCronReadsItsFileAgainOnSIGHUP says so at once, also where nothing has changed.
func TestCronReadsItsFileAgainOnSIGHUP(t *testing.T) {
	t.Parallel()
	file := write(t, "jobs.cron", "#: name=a\n@daily true\n")
	p := start(t, nil, "cron", "--group", "g", "--store", "memory:", file)
	p.await("msg=scheduling")
	p.signal(syscall.SIGHUP)
	p.again(1, "jobs=1", `added=""`, `changed=""`)
	rewrite(t, file, "#: name=a\n0 5 * * * true\n")
	p.signal(syscall.SIGHUP)
	p.again(2, "jobs=1", "changed=a")
	p.await("job has another schedule now; it starts from now", "from=@daily", "to=\"0 5 * * *\"")
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestCronSeesAConfigMapChange moves the link behind which Kubernetes keeps the files of a ConfigMap.
func TestCronSeesAConfigMapChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for version, spec := range map[string]string{"..1": "@daily", "..2": "@weekly"} {
		if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
			t.Fatal(err)
		}
		rewrite(t, filepath.Join(dir, version, "jobs"), "#: name=a\n"+spec+" true\n")
	}
	link := func(target, name string) {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("..1", "..data")
	link("..data/jobs", "jobs")
	p := start(t, nil, "cron", "--group", "g", "--store", "memory:", filepath.Join(dir, "jobs"))
	p.await("msg=scheduling")
	link("..2", "..tmp")
	if err := os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	p.again(1, "changed=a")
	p.await("job has another schedule now; it starts from now", "to=@weekly")
}

// TestCronDoesNotReadAPipeTwice keeps the jobs that came through one.
func TestCronDoesNotReadAPipeTwice(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "jobs")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, nil, "cron", "--group", "g", "--seconds", "--store", "memory:", fifo)
	rewrite(t, fifo, everySecond)
	p.await("msg=scheduling")
	p.signal(syscall.SIGHUP)
	p.await("level=WARN", "cannot be read again")
	p.await("job=same", "outcome=succeeded")
}

func TestCompareJobs(t *testing.T) {
	parse := func(text string) []crontab.Job {
		file, err := crontab.Parse("f", []byte(text), crontab.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return file.Jobs
	}
	const job = "#: name=a\n@daily true\n"
	for _, c := range []struct {
		name, before, after string
		changed             bool
	}{
		{"nothing", job, job, false},
		{"another line", job, "\n# comment\n" + job, false},
		{"blanks", job, "#:   name=a\n@daily   true\n", false},
		{"command", job, "#: name=a\n@daily false\n", true},
		{"spec", job, "#: name=a\n@weekly true\n", true},
		{"zone", job, "CRON_TZ=Asia/Tokyo\n" + job, true},
		{"shell", job, "SHELL=/bin/bash\n" + job, true},
		{"environment", job, "A=b\n" + job, true},
		{"policy", job, "#: name=a timeout=1m\n@daily true\n", true},
	} {
		added, changed, removed := compare(parse(c.before), parse(c.after))
		if (len(changed) == 1) != c.changed || len(added)+len(removed) > 0 {
			t.Errorf("%s: added %v, changed %v, removed %v", c.name, added, changed, removed)
		}
	}
	added, changed, removed := compare(parse(job), parse("#: name=b\n@daily true\n"))
	if !slices.Equal(added, []string{"b"}) || len(changed) > 0 || !slices.Equal(removed, []string{"a"}) {
		t.Errorf("added %v, changed %v, removed %v", added, changed, removed)
	}
}

// TestReloadLogsNotEveryErrorOfAFile reads a file in which a thousand lines are wrong, as often as somebody touches it.
func TestReloadLogsNotEveryErrorOfAFile(t *testing.T) {
	for wrong, want := range map[int]int{1: 1, mostErrors: mostErrors, 1000: mostErrors + 1} {
		file := write(t, "jobs.cron", strings.Repeat("* * * * x true\n", wrong))
		var log strings.Builder
		r := &reloader{path: file, reading: new(reading), log: slog.New(slog.NewTextHandler(&log, nil))}
		r.read(look(file))
		if got := strings.Count(log.String(), "\n"); got != want {
			t.Errorf("%d errors make %d lines, want %d", wrong, got, want)
		}
		if wrong > mostErrors && !strings.Contains(log.String(), "errors=980\n") {
			t.Errorf("it is not said that there are more: %s", log.String())
		}
	}
}
