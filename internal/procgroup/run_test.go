//go:build unix

package procgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == GuardianWord {
		syscall.Exit(Guard()) // at once, and not a second later, as os.Exit does with the race detector
	}
	if script := os.Getenv("PROCGROUP_TEST_PARENT"); script != "" {
		parent(script, os.Getenv("PROCGROUP_TEST_GUARDED") != "")
		return
	}
	if fifo := os.Getenv("PROCGROUP_TEST_ESCAPE"); fifo != "" {
		if _, err := syscall.Setsid(); err != nil {
			fmt.Println(err)
		}
		_ = os.WriteFile(fifo, []byte("escaped\n"), 0)
		select {}
	}
	goleak.VerifyTestMain(m)
}

// parent runs a script, as a process that a test kills.
func parent(script string, guarded bool) {
	spec := Spec{Argv: []string{"sh", "-c", script}}
	if guarded {
		g, err := StartGuardian(slog.Default())
		if err != nil {
			fmt.Println(err)
			return
		}
		spec.Guardian = g
	}
	_, _ = Run(context.Background(), spec)
}

// lines collects the output of a command; it is safe for concurrent use.
type lines struct {
	mu   sync.Mutex
	all  []string
	seen chan string // gets each line, when not nil
}

func (l *lines) add(stream string, line []byte) {
	text := stream + ":" + string(line)
	l.mu.Lock()
	l.all = append(l.all, text)
	l.mu.Unlock()
	if l.seen != nil {
		l.seen <- text
	}
}

// of returns the lines of one stream.
func (l *lines) of(stream string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, line := range l.all {
		if text, ok := strings.CutPrefix(line, stream+":"); ok {
			out = append(out, text)
		}
	}
	return out
}

func sh(script string) []string { return []string{"sh", "-c", script} }

func run(t *testing.T, ctx context.Context, spec Spec) Result {
	t.Helper()
	res, err := Run(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// groupOf returns the group that a command's output names, as "pid N".
func groupOf(t *testing.T, out []string) int {
	t.Helper()
	for _, line := range out {
		if text, ok := strings.CutPrefix(line, "pid "); ok {
			pid, err := strconv.Atoi(text)
			if err != nil || pid < 2 {
				t.Fatalf("the command's line %q names no process", line)
			}
			return pid
		}
	}
	t.Fatalf("no line of %q names the group", out)
	return 0
}

// gone fails the test when a process is alive in the group that a command's output names. Dead ones that process 1 has
// not reaped do not count.
func gone(t *testing.T, out []string) {
	t.Helper()
	pgid := strconv.Itoa(groupOf(t, out))
	list, err := exec.Command("ps", "-axo", "pgid=,stat=,pid=,args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(list)) {
		if f := strings.Fields(line); f[0] == pgid && !strings.HasPrefix(f[1], "Z") {
			t.Errorf("a process of the group is left: %s", line)
		}
	}
}

func TestResultSaysHowTheCommandEnded(t *testing.T) {
	for _, tt := range []struct {
		script string
		code   int
		signal syscall.Signal
		text   string
	}{
		{"exit 0", 0, 0, "exit status 0"},
		{"exit 3", 3, 0, "exit status 3"},
		{"exit 255", 255, 0, "exit status 255"},
		{"kill -9 $$", 137, syscall.SIGKILL, "killed by signal 9 (killed)"},
		{"kill -15 $$", 143, syscall.SIGTERM, "killed by signal 15 (terminated)"},
	} {
		t.Run(tt.script, func(t *testing.T) {
			res := run(t, t.Context(), Spec{Argv: sh(tt.script)})
			if res.ExitCode != tt.code || res.Signal != tt.signal || res.String() != tt.text {
				t.Errorf("got %d, %v, %q; want %d, %v, %q", res.ExitCode, res.Signal, res, tt.code, tt.signal, tt.text)
			}
			if err := res.Err(); (err == nil) != (tt.code == 0) || err != nil && err.Error() != tt.text {
				t.Errorf("Err() = %v", err)
			}
			if res.Cause != nil || res.Leftover {
				t.Errorf("cause %v, leftover %v: nobody ended it", res.Cause, res.Leftover)
			}
		})
	}
}

func TestCommandGetsItsEnvironmentDirectoryAndNoInput(t *testing.T) {
	dir := t.TempDir()
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out lines
	res := run(t, t.Context(), Spec{
		Argv:   sh(`pwd; echo "$A-$B"; cat; ps -o pgid= -p $$ | tr -d ' '; echo $$`),
		Env:    []string{"PATH=" + os.Getenv("PATH"), "A=1", "B=2", "A=3"},
		Dir:    dir,
		Output: out.add,
	})
	got := out.of("stdout")
	if res.ExitCode != 0 || len(got) != 4 || got[0] != dir || got[1] != "3-2" {
		t.Fatalf("%v: %q", res, got)
	}
	if got[2] != got[3] {
		t.Errorf("group %s of process %s, want its own", got[2], got[3])
	}
}

func TestStartErrorsNameProgramAndReason(t *testing.T) {
	dir := t.TempDir()
	plain, script, broken := filepath.Join(dir, "plain"), filepath.Join(dir, "script"), filepath.Join(dir, "broken")
	for _, f := range []struct {
		name, text string
		mode       os.FileMode
	}{{plain, "#!/bin/sh\n", 0o644}, {script, "#!/no/such/interpreter\n", 0o755}, {broken, "echo hello\n", 0o755}} {
		if err := os.WriteFile(f.name, []byte(f.text), f.mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name   string
		spec   Spec
		reason string
		is     error
	}{
		{"no such word", Spec{Argv: []string{"no-such-program-here"}}, `"no-such-program-here": not found in PATH`, exec.ErrNotFound},
		{"no such file", Spec{Argv: []string{"/no/such/file"}}, `"/no/such/file": not found`, fs.ErrNotExist},
		{"not executable", Spec{Argv: []string{plain}}, "not executable: permission denied", fs.ErrPermission},
		{"a directory", Spec{Argv: []string{dir}}, `not executable`, nil},
		{"no interpreter", Spec{Argv: []string{script}}, "interpreter that its first line names", fs.ErrNotExist},
		{"no format", Spec{Argv: []string{broken}}, "not executable: no program", syscall.ENOEXEC},
		{"no directory", Spec{Argv: sh(":"), Dir: "/no/such/dir"}, `"sh": no working directory: stat /no/such/dir`, fs.ErrNotExist},
		{"no directory but a file", Spec{Argv: sh(":"), Dir: plain}, `no working directory`, nil},
		{"nothing", Spec{}, "no program is given", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Run(t.Context(), tt.spec)
			if _, ok := errors.AsType[*StartError](err); !ok {
				t.Fatalf("%v is no *StartError", err)
			}
			if !strings.Contains(err.Error(), tt.reason) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("got %q (%v), want %q", err, errors.Unwrap(err), tt.reason)
			}
		})
	}
}

func TestContextThatHasEndedStartsNothing(t *testing.T) {
	cause := errors.New("shutting down")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	file := filepath.Join(t.TempDir(), "started")
	if _, err := Run(ctx, Spec{Argv: []string{"touch", file}}); !errors.Is(err, cause) {
		t.Errorf("got %v, want the context's cause", err)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the command ran: %v", err)
	}
}

func TestManyRunsLeaveNothingOpen(t *testing.T) {
	open := func() int {
		entries, err := os.ReadDir("/dev/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	run(t, t.Context(), Spec{Argv: sh(":")})
	before := open()
	for range 30 {
		run(t, t.Context(), Spec{Argv: sh("echo x; echo y >&2")})
		if _, err := Run(t.Context(), Spec{Argv: []string{"no-such-program-here"}}); err == nil {
			t.Fatal("started what is not there")
		}
	}
	if after := open(); after != before {
		t.Errorf("%d open files after 30 runs, %d before", after, before)
	}
}

func TestCommandsSurviveTheEndOfThreads(t *testing.T) {
	// A goroutine that ends while locked to its thread ends the thread; one that has forked takes its child along.
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	out := lines{seen: make(chan string, 10)}
	var res Result
	var err error
	var done sync.WaitGroup
	done.Go(func() {
		// The goroutine that calls Run is about to end its thread too.
		runtime.LockOSThread()
		res, err = Run(t.Context(), Spec{Argv: sh(`echo ready; read line < ` + fifo + `; exit 4`), Output: out.add})
	})
	<-out.seen
	for range 200 {
		var ended sync.WaitGroup
		ended.Go(runtime.LockOSThread)
		ended.Wait()
	}
	if e := os.WriteFile(fifo, []byte("go\n"), 0); e != nil {
		t.Fatal(e)
	}
	done.Wait()
	if err != nil || res.ExitCode != 4 {
		t.Errorf("got %v, %v; want exit status 4", res, err)
	}
}

func TestManyRunAtOnce(t *testing.T) {
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			var out lines
			res, err := Run(t.Context(), Spec{Argv: sh(fmt.Sprintf("sleep 100 & echo %d; exit %d", i, i)), Output: out.add})
			if err != nil || res.ExitCode != i || res.Leftover || !slices.Equal(out.of("stdout"), []string{strconv.Itoa(i)}) {
				t.Errorf("%d: %+v, %v, %q", i, res, err, out.of("stdout"))
			}
		})
	}
	all.Wait()
}

func itoa(n int) string { return strconv.Itoa(n) }
