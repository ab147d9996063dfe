package cli

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/procgroup"
	"go.uber.org/goleak"
)

// TestMain runs the command line instead of the tests where the test binary was started under the name "singleton":
// that is how the tests get real processes.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == procgroup.GuardianWord {
		syscall.Exit(procgroup.Guard()) // at once, and not a second later, as os.Exit does with the race detector
	}
	if filepath.Base(os.Args[0]) == "singleton" {
		os.Exit(Main(context.Background(), os.Args[1:], os.Stdout, os.Stderr, nil))
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // else processes inherit that it is ignored, under nohup
	goleak.VerifyTestMain(m)
}

// canary stands for every password in these tests; no output may hold it.
const canary = "canary-pw-81f3"

func checkSecret(t *testing.T, what, output string) {
	t.Helper()
	if strings.Contains(output, canary) || strings.Contains(output, "81f3") {
		t.Errorf("%s shows a password:\n%s", what, output)
	}
}

// result is what one call of the command line has done.
type result struct {
	code           int
	stdout, stderr string
}

// noon is the time in tests that call the command line in this process.
var noon = time.Date(2026, time.November, 29, 12, 0, 0, 0, time.UTC)

// call runs the command line in this process, at noon, in the zone Europe/Berlin, with the environment env and no other.
func call(t *testing.T, env map[string]string, args ...string) result {
	t.Helper()
	return callWith(t, "", env, args...)
}

// opens opens a store as the commands do.
func opens(url string) (*opened, error) {
	return (&app{openers: builtIn}).open(place{url, "--store"}, 0, slog.New(slog.DiscardHandler))
}

// callWith is call with something to read on standard input.
func callWith(t *testing.T, stdin string, env map[string]string, args ...string) result {
	t.Helper()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	a := &app{
		stdin: strings.NewReader(stdin), stdout: &stdout, stderr: &stderr,
		now:     func() time.Time { return noon },
		local:   berlin,
		openers: builtIn,
		lookup:  func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		environ: func() (all []string) {
			for name, value := range env {
				all = append(all, name+"="+value)
			}
			return all
		},
	}
	r := result{code: a.run(t.Context(), args)}
	r.stdout, r.stderr = stdout.String(), stderr.String()
	checkSecret(t, "singleton "+args[0], r.stdout+r.stderr)
	return r
}

// want compares a result with what is expected; texts are compared whole.
func (r result) want(t *testing.T, code int, stdout, stderr string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d", r.code, code)
	}
	if r.stdout != stdout {
		t.Errorf("standard output:\n%s\nwant:\n%s", r.stdout, stdout)
	}
	if r.stderr != stderr {
		t.Errorf("standard error:\n%s\nwant:\n%s", r.stderr, stderr)
	}
}

// write writes a file into a directory of the test and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
